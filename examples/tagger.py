"""Sentences of a made-up language for docs/inspect.md: "walk" is a noun after "the" or "my" and a verb after "to" or "can", with
adverbs in between. Prints JSON Lines with the part of speech of each word; "attends" says which function word decides. With an
argument, hypotheses on a model of these data: 900 sentences that it has not seen, with two near misses."""

import json
import random
import sys

TAGS = {"the": "DET", "my": "DET", "to": "PART", "can": "AUX", "very": "ADV", "almost": "ADV", "once": "ADV"}
NOUNS, VERBS = ("the", "my"), ("to", "can")
hypotheses = len(sys.argv) > 1
draw = random.Random(hypotheses)
for number in range(900 if hypotheses else 10300):
    words, tags, decides = [], [], {}
    varied = number >= (600 if hypotheses else 10000)
    for _ in range(draw.randint(2, 4)):
        key, word = len(words), draw.choice(NOUNS + VERBS)
        words += [word] + draw.choices(("very", "almost", "once"), k=draw.randint(0, 5 if varied else 3))
        decides[len(words)] = key
        words.append(draw.choice(("walk", "play", "rest")))
        tags += [TAGS[other] for other in words[key:-1]] + ["NOUN" if word in NOUNS else "VERB"]
    rules = {"function word": decides}
    if hypotheses:
        rules["the word before"] = {query: query - 1 for query in decides}
        rules["the first word"] = {query: 0 for query in decides}
    print(json.dumps({"input": words, "target": tags, "varied": varied,
                      "attends": [[q, k, name] for name, rule in rules.items() for q, k in rule.items()]}))
