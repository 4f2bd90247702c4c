"""A linear probe: what can be read off activations."""

from typing import Any, NamedTuple, Tuple

from ._server import needed


class Probe(NamedTuple):
    """score: accuracy for classes, else R², on held-out sequences; control: with shuffled labels; baseline: of the best
    constant, for classes the share of the most frequent. X @ weights + bias predicts, with a column for each class."""

    score: float
    control: float
    baseline: float
    weights: Any
    bias: Any
    classes: Any
    n_train: int
    n_test: int


def probe(X: Any, y: Any, *, test: float = 0.3, ridge: float = 1e-3, seed: int = 0) -> Probe:
    """Ridge regression from activations X (N, C) or (B, T, C) to labels y (N) or (B, T): classes, or numbers if floats. The
    share `test` of the different sequences is held out, whole; what is not finite or has label -1 does not count."""
    np = needed("numpy", "arrays")
    X, y = np.asarray(X, "f8"), np.asarray(y)
    if X.shape[:-1] != y.shape or X.ndim not in (2, 3):
        raise ValueError(f"probe: X must be (N, C) or (B, T, C), and y (N) or (B, T), not {X.shape} and {y.shape}")
    numbers = y.dtype.kind == "f"
    counts = np.isfinite(X).all(-1) & (np.isfinite(y) if numbers else y.astype(object) != -1)
    equal = np.unique(np.nan_to_num(X.reshape(len(X), -1)), axis=0, return_inverse=True)[1].ravel()
    sequences, labels, rows = equal[np.nonzero(counts)[0]], y[counts], X[counts]
    draw, classes, present = np.random.default_rng(seed), np.unique(labels), np.unique(sequences)
    held = np.isin(sequences, draw.permutation(present)[:round(test * len(present))])
    if len(classes) < 2 or held.all() or not held.any():
        raise ValueError(f"probe: {len(present)} sequences with {len(classes)} different labels are too few")
    mean, deviation = rows[~held].mean(0), rows[~held].std(0)
    scale = np.where(deviation > 0, deviation, 1)
    train, rest = (rows[~held] - mean) / scale, (rows[held] - mean) / scale

    def fitted(labels: Any) -> Tuple[float, float, Any, Any]:
        targets = (labels[:, None] if numbers else labels[:, None] == classes)[~held].astype("f8")
        gram = train.T @ train + ridge * len(train) * np.eye(len(mean))
        solution, middle, true = np.linalg.solve(gram, train.T @ (targets - targets.mean(0))), targets.mean(0), labels[held]

        def score(predicted: Any) -> float:
            if numbers:
                return float(1 - ((true - predicted[:, 0]) ** 2).sum() / ((true - true.mean()) ** 2).sum())
            return float((classes[predicted.argmax(1)] == true).mean())

        return score(rest @ solution + middle), score(middle[None]), solution / scale[:, None], middle

    value, baseline, weights, middle = fitted(labels)
    return Probe(value, fitted(draw.permutation(labels))[0], baseline, weights, middle - mean @ weights,
                 None if numbers else classes, len(train), len(rest))
