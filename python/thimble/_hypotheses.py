"""Hypotheses on what heads attend to, as the rows of a file that the program tests."""

import json
from typing import Any, Callable, Iterator, Mapping, Sequence


def rows(model: Any, split: str, sequences: int, vocabulary: Sequence[str],
         rules: Mapping[str, Callable[..., Any]]) -> Iterator[str]:
    """A line for each sequence of a split, with the positions at which the rules are true."""
    outputs = model.description["outputs"] or range(len(vocabulary))  # as tokens, which labels number
    batch, is_next = model.data(split, sequences), model.config["model"]["output"]["per"] == "next"
    for i, row in enumerate(batch.ids):
        tokens = row[:batch.lengths[i]].tolist()
        labels = batch.labels[i].reshape(-1)[:len(tokens)].tolist()
        source = [] if batch.sources is None else batch.sources[i][:batch.source_lengths[i]].tolist()
        read = [[model.vocabulary[token] for token in ids] for ids in (tokens, source) if ids]
        matrices = {name: list(rule(*read)) for name, rule in rules.items()}
        for name, matrix in matrices.items():
            if [getattr(keys, "__len__", int)() for keys in matrix] != [len(read[-1])] * len(tokens):
                raise ValueError(f"{name}: must return {len(tokens)} rows of {len(read[-1])} for {' '.join(read[0])}")
        attends = [[query, key, name] for name, matrix in matrices.items() for query, keys in enumerate(matrix)
                   for key, is_one in enumerate(keys) if is_one]
        if source:
            given, answers = source, labels[:-1]  # without <end>
        else:
            first = next(k for k, label in enumerate(labels) if label >= 0) if is_next else 0
            given, answers = tokens[:first + 1] if is_next else tokens, labels[first:]
        yield json.dumps({"input": [vocabulary[token] for token in given], "varied": split == "varied",
                          "target": [None if label < 0 else vocabulary[outputs[label]] for label in answers],
                          "attends": attends}) + "\n"
