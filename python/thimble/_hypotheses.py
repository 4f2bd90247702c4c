"""Hypotheses on what heads attend to, as the rows of a file that the program tests."""

import json
from typing import Any, Callable, Iterator, Mapping, Sequence


def rows(listed: Mapping[str, Any], vocabulary: Sequence[str], is_next: bool, rules: Mapping[str, Callable[..., Any]]) -> Iterator[str]:
    """A line for each sequence of a split that the program lists, with the positions at which the rules are true."""
    for one in listed["examples"]:
        tokens, labels, source = one["input"], one["target"], one.get("source", [])
        read = [[listed["tokens"][i] for i in ids] for ids in (tokens, source) if ids]
        attends = [[query, key, name] for name, rule in rules.items() for query, row in enumerate(rule(*read))
                   for key, is_one in enumerate(row) if is_one]
        first = next(i for i, label in enumerate(labels) if label >= 0) if is_next and not source else len(tokens) - 1
        given, answers = (source, labels[:-1]) if source else (tokens[:first + 1], labels[first if is_next else 0:])
        yield json.dumps({"input": [vocabulary[i] for i in given], "varied": listed["split"] == "varied",
                          "target": [None if i < 0 else vocabulary[i] for i in answers], "attends": attends}) + "\n"
