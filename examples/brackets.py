"""Sequences of brackets for docs/inspect.md: each ) asks for the kind of the bracket that it closes, and "attends" says which
one that is. Prints JSON Lines of 10,000 sequences, and of 300 that are longer and nest deeper, "varied". With an argument, hypotheses
on a model of these data: 600 and 300 sequences that it has not seen, with three answers to where a head looks."""

import json
import random
import sys


def sequence(draw, pairs, depth):
    """Opening brackets a to d and the closing one ), with the position of the bracket that each ) closes."""
    tokens, opened, closes = [], [], {}
    while len(tokens) < 2 * pairs:
        left = 2 * pairs - len(tokens)
        if opened and (len(opened) in (depth, left) or draw.random() < 0.5):
            closes[len(tokens)] = opened.pop()
            tokens.append(")")
        else:
            opened.append(len(tokens))
            tokens.append(draw.choice("abcd"))
    return tokens, closes


def row(tokens, closes, is_varied, hypotheses):
    rules = {"its bracket": closes}
    if hypotheses:
        rules["one further"] = {query: key + 1 for query, key in closes.items()}
        rules["the nearest bracket"] = {query: max(k for k in range(query) if tokens[k] != ")") for query in closes}
    return {"input": tokens, "target": [tokens[closes[i]] if i in closes else None for i in range(len(tokens))],
            "attends": [[query, key, name] for name, rule in rules.items() for query, key in rule.items()],
            "varied": is_varied}


hypotheses = len(sys.argv) > 1
draw = random.Random(hypotheses)
for number in range(900 if hypotheses else 10300):
    varied = number >= (600 if hypotheses else 10000)
    print(json.dumps(row(*sequence(draw, draw.randint(5, 8) if varied else draw.randint(3, 7), 6 if varied else 4), varied,
                         hypotheses)))
