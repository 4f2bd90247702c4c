"""Reads the metrics of a run."""

from __future__ import annotations

import json
import pathlib
from typing import Any, Dict, List


def columns(path: pathlib.Path) -> Dict[str, List[Any]]:
    """The lines of a run's metrics.jsonl as columns; None where a line has no such number.

    Lists and objects, such as the scores of heads, are left out. The last line may be incomplete while a run is
    trained, and counts when it is whole.
    """
    rows = []
    for line in path.read_text("utf-8").splitlines(keepends=True):
        if line.endswith("\n") and line.strip():
            row = json.loads(line)
            if "split" in row:
                rows.append({key: x for key, x in row.items() if not isinstance(x, (list, dict)) and key != "run"})
    keys = list(dict.fromkeys(key for row in rows for key in row))
    return {key: [row.get(key) for row in rows] for key in keys}
