"""Pictures: with Matplotlib, and in HTML for the cells of a notebook."""

from html import escape
from typing import Any, Iterable, List, Sequence

from ._server import needed

_CELL, _LEFT, _MOST = 14, 90, 48  # pixels of a cell, and left of a map; positions that a map has in HTML


def attention_map(title: str, weights: Any, queries: Sequence[str], keys: Sequence[str], ax: Any) -> Any:
    ax = ax or needed("matplotlib.pyplot", "plots").figure().add_subplot()
    ax.imshow(weights, vmin=0, vmax=1, cmap="magma")
    x, y = ([token.replace("$", r"\$") for token in tokens] for tokens in (keys, queries))  # it begins a formula
    ax.set_xticks(range(len(x)), x, rotation=90)
    ax.set_yticks(range(len(y)), y)
    ax.set(title=title, xlabel="key", ylabel="query")
    return ax


def curves(metrics: Any) -> Any:
    """Loss and accuracy by step, a line for each split."""
    axes = needed("matplotlib.pyplot", "plots").subplots(1, 2, figsize=(9, 3), layout="constrained")[1]
    for ax, what in zip(axes, ("loss", "accuracy")):
        for split in ("train", "validation", "test"):
            points = [(step, y) for step, of, y in zip(metrics["step"], metrics["split"], metrics[what]) if of == split]
            ax.plot(*zip(*points), marker="." if len(points) < 50 else "", label=split)
        ax.set(xlabel="step", ylabel=what)
        ax.legend()
    return axes


def page(title: str, heads: Iterable[Sequence[str]], name: str, weights: Any, queries: List[str], keys: List[str]) -> str:
    """HTML of names, labels and sentences of heads, and of the map of one of them."""
    rows = "".join("<tr>" + "".join(f"<td>{escape(x)}</td>" for x in row) + "</tr>" for row in heads)
    cells = []
    for i, (row, query) in enumerate(zip(weights[:_MOST], queries)):
        y = _LEFT + i * _CELL
        cells.append(f'<text x="{_LEFT - 4}" y="{y + 11}" text-anchor="end">{escape(query)}</text>')
        cells += [f'<rect x="{_LEFT + j * _CELL}" y="{y}" width="{_CELL}" height="{_CELL}" fill-opacity="{weight:.3f}">'
                  f"<title>{escape(f'{query} → {key}: {weight:.3f}')}</title></rect>"
                  for j, (weight, key) in enumerate(zip(row[:_MOST], keys))]
    cells += [f'<text transform="translate({_LEFT + j * _CELL + 11},{_LEFT - 4}) rotate(-90)">{escape(key)}</text>'
              for j, key in enumerate(keys[:_MOST])]
    width, height = (_LEFT + _CELL * min(len(x), _MOST) + 2 for x in (keys, queries))
    return (f"<p>{escape(title)}</p><table><tr><th>head</th><th>label</th><th></th></tr>{rows}</table>"
            f'<p>head {escape(name)}: attention of queries (rows) on keys</p><svg width="{width}" height="{height}" '
            f'font-size="11" font-family="monospace" fill="currentColor">{"".join(cells)}</svg>')
