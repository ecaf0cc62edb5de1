"""Generated streams: wild labels, trends, units, heavy tails and wild features."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

NOISE = 0.3  # standard deviation of the noise on the smooth function; its own is about 3.3
BURST = 50
EVERY = 1_000
WINDOW = 2_000  # rows after a change that do not count, and length of the first window that does


class Score(NamedTuple):
    """The numbers that predictions are compared with, and the rows that count."""

    truth: np.ndarray
    rows: np.ndarray  # bool


class Stream(NamedTuple):
    """Rows, labels and scores by name. Errors are divided by the unit before they are squared."""

    X: np.ndarray
    y: np.ndarray
    scores: dict[str, Score]
    unit: float = 1.0

    def mse(self, predictions: np.ndarray) -> dict[str, float]:
        """Return the mean squared error for each score."""
        with np.errstate(over="ignore", invalid="ignore"):
            return {
                name: float(np.mean(((predictions - truth)[rows] / self.unit) ** 2))
                for name, (truth, rows) in self.scores.items()
            }

    def since(self, first: int) -> "Stream":
        """Return the stream without the rows before `first`."""
        scores = {
            name: Score(truth[first:], rows[first:]) for name, (truth, rows) in self.scores.items()
        }
        return Stream(self.X[first:], self.y[first:], scores, self.unit)


def second_half(X: np.ndarray, y: np.ndarray, unit: float = 1.0) -> Stream:
    """Return a stream whose second half counts."""
    return Stream(X, y, {"second half": Score(y, np.arange(len(y)) >= len(y) // 2)}, unit)


def smooth_function(X: np.ndarray) -> np.ndarray:
    """Return a smooth function of five features, with a standard deviation of about 3.3."""
    x0, x1, x2, x3, x4 = X.T
    return 4 * np.sin(2 * x0) + 3 * x1 * x2 + 2 * x3**2 + x4


def smooth(rows: int, seed: int) -> Stream:
    """Return five uniform features and a smooth function of them with a little noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, 5))
    return second_half(X, smooth_function(X) + rng.normal(0, NOISE, rows))


# Wild values. A pattern returns the rows with a wild value, and the sign of each of these values.
Pattern = Callable[[int, int, np.random.Generator], tuple[np.ndarray, np.ndarray]]


def single(sign: int, row: int | None = None) -> Pattern:
    """Return a pattern with one wild value, at row `at` unless another row is given."""
    return lambda rows, at, rng: (np.array([at if row is None else row]), np.array([sign]))


def burst(sign: int) -> Pattern:
    """Return a pattern with 50 wild values in a row."""
    return lambda rows, at, rng: (np.arange(at, at + BURST), np.full(BURST, sign))


def regular(rows: int, at: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return every thousandth row, with positive values."""
    bad = np.arange(at, rows, EVERY)
    return bad, np.ones(len(bad))


def scattered(rows: int, at: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return random rows, one in a thousand on average, with values of both signs."""
    bad = at + np.flatnonzero(rng.uniform(size=rows - at) < 1 / EVERY)
    return bad, rng.choice([-1, 1], len(bad))


def wild_labels(rows: int, seed: int, at: int, pattern: Pattern, size: float) -> Stream:
    """Return the smooth stream with wild labels of this size; they do not count."""
    clean = smooth(rows, seed)
    bad, signs = pattern(rows, at, np.random.default_rng([seed, 1]))
    y = clean.y.copy()
    y[bad] = signs * size
    stream = second_half(clean.X, y)
    stream.scores["second half"].rows[bad] = False
    return stream


# Trends and precise functions.


def lagged(series: np.ndarray, lags: int) -> Stream:
    """Return a stream that predicts a series from its last values."""
    columns = [series[lags - k : len(series) - k] for k in range(1, lags + 1)]
    return second_half(np.column_stack(columns), series[lags:])


def counter(rows: int, seed: int) -> Stream:
    """Return a counter that rises by 0.5 to 1.5 each row, with its last value as feature."""
    return lagged(np.cumsum(np.random.default_rng(seed).uniform(0.5, 1.5, rows + 1)), 1)


def walk(rows: int, seed: int) -> Stream:
    """Return a random walk with its last three values as features."""
    return lagged(np.cumsum(np.random.default_rng(seed).normal(0, 1, rows + 3)), 3)


def growth(rows: int, seed: int) -> Stream:
    """Return a series that grows by 1 % each row, with its last value as feature."""
    noise = np.random.default_rng(seed).normal(0, 0.001, rows + 1)
    return lagged(np.cumprod(1.01 * np.exp(noise)), 1)


def precise(rows: int, seed: int, spread: str) -> Stream:
    """Return a linear function with steep slopes and noise of variance 1.

    spread: "uniform" for features in [-1, 1], "normal" for standard normal ones.
    """
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, 4)) if spread == "uniform" else rng.normal(0, 1, (rows, 4))
    return second_half(X, X @ [1000.0, 50.0, -30.0, 10.0] + rng.normal(0, 1, rows))


# Units.


def affine(rows: int, seed: int, a: float, b: float) -> Stream:
    """Return the smooth stream with labels a (y + b sd), and errors in units of a."""
    plain = smooth(rows, seed)
    return second_half(plain.X, a * (plain.y + b * np.std(plain.y)), unit=a)


def rescaled(rows: int, seed: int, factor: float) -> Stream:
    """Return labels around 10 with a standard deviation of 3 that change their scale half-way.

    The first 2,000 rows after the change do not count.
    """
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, 5))
    f = smooth_function(X)
    y = 10 + 3 * (f - np.mean(f)) / np.std(f) + rng.normal(0, NOISE, rows)
    change = rows // 2
    y[change:] *= factor
    return Stream(X, y, after(y, change), factor)


def after(y: np.ndarray, change: int) -> dict[str, Score]:
    """Return scores for the rows from 2,000 after a change: the next 2,000, and all."""
    row = np.arange(len(y))
    return {
        "next rows": Score(y, (row >= change + WINDOW) & (row < change + 2 * WINDOW)),
        "to the end": Score(y, row >= change + WINDOW),
    }


# Heavy tails.


def tailed(rows: int, X: np.ndarray, y: np.ndarray, mean: np.ndarray) -> Stream:
    """Return a stream with two scores: against the labels, and against their true means."""
    half = np.arange(rows) >= rows // 2
    return Stream(X, y, {"labels": Score(y, half), "means": Score(mean, half)})


def student(rows: int, seed: int) -> Stream:
    """Return the smooth function with noise of Student's t, two degrees of freedom."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, 5))
    mean = smooth_function(X)
    return tailed(rows, X, mean + rng.standard_t(2, rows), mean)


def prices(rows: int, seed: int) -> Stream:
    """Return log-normal prices: the exponential of a smooth function and normal noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, 5))
    log, sd = 5 + 0.3 * smooth_function(X), 0.5
    return tailed(rows, X, np.exp(log + rng.normal(0, sd, rows)), np.exp(log + sd**2 / 2))


# Wild features, and labels that say nothing.


def wild_feature(rows: int, seed: int, at: int, pattern: Pattern) -> Stream:
    """Return the smooth stream with 1e30 as first feature of some rows, which do not count."""
    stream = smooth(rows, seed)
    bad, signs = pattern(rows, at, np.random.default_rng([seed, 1]))
    stream.X[bad, 0] = signs * 1e30
    stream.scores["second half"].rows[bad] = False
    return stream


def extra_column(rows: int, seed: int, column: str) -> Stream:
    """Return the smooth stream with one more feature: "ids" of 1e15, or only "missing" values."""
    X, y = smooth(rows, seed)[:2]
    new = 1e15 + np.arange(rows) if column == "ids" else np.full(rows, np.nan)
    return second_half(np.column_stack([X, new]), y)


def constant(rows: int, seed: int) -> Stream:
    """Return labels that are all equal, with errors in units of the label."""
    label = 123.456
    return second_half(smooth(rows, seed).X, np.full(rows, label), unit=label)


def flat_start(rows: int, seed: int, change: int) -> Stream:
    """Return labels that are all equal at first and then follow the smooth function.

    The first 2,000 rows after the change do not count.
    """
    X, y = smooth(rows, seed)[:2]
    y[:change] = 5.0
    return Stream(X, y, after(y, change))
