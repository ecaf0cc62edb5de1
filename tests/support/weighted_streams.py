"""A stream whose labels widen their range, with weights, for tests of sweeps."""

import numpy as np

ROWS = 160


def stream(rows=ROWS, seed=0):
    """Rows with labels that widen their range more than once, and weights, some of them 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 4)).astype(np.float32)
    X[rng.random(X.shape) < 0.2] = 0
    y = 50 + (1 + np.arange(rows) / 40) * (X[:, 0] - X[:, 1] * (X[:, 2] > 0))
    return X, y, rng.choice([0.0, 0.5, 1.0, 3.0], rows)
