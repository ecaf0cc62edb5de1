"""The streams that are measured, their targets, and the models that run on them."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from benchmarks.wild import streams
from benchmarks.wild.streams import Stream

BUDGETS = ("fast", "default", "thorough")
MODELS = ("trees", *BUDGETS)  # in the order in which they run: fast ones first
CHEAP = ("trees", "fast")
LOSSES = ("squared", "absolute")
MORE_LOSSES = ("huber", "quantile")
SIZES = {"300": 300.0, "1e4": 1e4, "1e9": 1e9, "1e30": 1e30}
PATTERNS = {
    "one wild label": {"+": streams.single(1), "-": streams.single(-1)},
    "one wild label near the start": {
        "row 0, +": streams.single(1, 0),
        "row 10, -": streams.single(-1, 10),
    },
    "50 wild labels in a row": {"+": streams.burst(1), "-": streams.burst(-1)},
    "a wild label every 1,000 rows": {"+": streams.regular},
    "a wild label in 1,000 rows, at random": {"±": streams.scattered},
}
FACTORS = {"1e-9": 1e-9, "1e-3": 1e-3, "1": 1.0, "1e3": 1e3, "1e9": 1e9}
SHIFTS = {"0": 0.0, "1e3": 1e3, "1e6": 1e6}


class Case(NamedTuple):
    """A stream, with the stream that its error is compared with."""

    name: str
    stream: Callable[[int], Stream]  # from a seed
    reference: "Case | None" = None
    experts: bool = False  # whether to run the experts of AutoBoost alone as well


class Measure(NamedTuple):
    """A figure and its target.

    against: the error below the ratio: of the "reference", of the best of the "experts", of
        "lightgbm", of the code "before", or of nothing ("").
    must: the target; empty for none.
    form: the ratio of "mse" or of "rmse", or the distance of the former "from 1".
    score: the score of the stream that counts; empty for the worst of all.
    """

    title: str
    against: str
    must: str
    form: str = "mse"
    score: str = ""


class Group(NamedTuple):
    """Cases that share a line of the table, which shows the worst of them."""

    part: str
    name: str
    cases: list[Case]
    measures: tuple[Measure, ...]
    losses: tuple[str, ...] = ("squared",)
    models: tuple[str, ...] = MODELS
    peers: bool = False  # whether LightGBM runs as well
    many: int = 3  # seeds for cheap models
    few: int = 1  # seeds for the others

    def seeds(self, model: str) -> range:
        """Return the seeds of the streams."""
        return range(self.many if model in CHEAP else self.few)


CLEAN = Measure("RMSE / clean stream", "reference", "<= 1.05", "rmse")
RESTART = tuple(
    Measure(f"MSE {score} / model started at the change", "reference", "<= 1.2", score=score)
    for score in ("next rows", "to the end")
)
UNITS = Measure("change of MSE / a^2", "reference", "<= 0.01", "from 1")
BEST = Measure("MSE / best expert", "experts", "<= 1.1")
NEARLY_BEST = BEST._replace(must="<= 1.02")
EXACT = Measure("MSE", "", "<= 1.5")
PLAIN = Measure("MSE", "", "")
ZERO = Measure("MSE / label^2", "", "<= 1e-6")
TAILS = tuple(
    Measure(f"MSE against {score} / {title}", against, "<= 1", score=score)
    for score in ("means", "labels")
    for against, title in (("lightgbm", "LightGBM"), ("before", "before"))
)


def groups(quick: bool = False, full: bool = False) -> list[Group]:
    """Return all groups; `quick` shortens the streams, `full` adds losses."""
    shrink = 4 if quick else 1
    losses = LOSSES + (MORE_LOSSES if full else ())
    return [
        *_outliers(40_000 // shrink, losses),
        *_trends(10_000 // shrink),
        *_scales(20_000 // (2 if quick else 1)),
        _units(10_000 // shrink),
        *_tails(40_000 // shrink),
        *_features(20_000 // (2 if quick else 1)),
    ]


def _outliers(rows: int, losses: tuple[str, ...]) -> Iterator[Group]:
    clean = Case("smooth", partial(streams.smooth, rows))
    for name, signs in PATTERNS.items():
        cases = [
            Case(
                f"{name}: {sign}{size}",
                partial(streams.wild_labels, rows, at=2_000, pattern=pattern, size=value),
                clean,
            )
            for sign, pattern in signs.items()
            for size, value in SIZES.items()
        ]
        yield Group("outliers", name, cases, (CLEAN,), losses)


def _trends(rows: int) -> Iterator[Group]:
    made = {
        "counter": partial(streams.counter, rows),
        "random walk": partial(streams.walk, rows),
        "growth of 1 % a row": partial(streams.growth, 2_000),
        "precise linear, uniform": partial(streams.precise, rows, spread="uniform"),
        "precise linear, normal": partial(streams.precise, rows, spread="normal"),
    }
    for name, stream in made.items():
        best = NEARLY_BEST if name == "random walk" else BEST
        measures = (best, EXACT if name.startswith("precise") else PLAIN)
        case = Case(name, stream, experts=True)
        yield Group("trends", name, [case], measures, models=BUDGETS, many=5, few=2)


def _restarted(case: Case, change: int) -> Case:
    """Return the case with, as reference, the same stream from the change on."""
    late = Case(f"{case.name}, from the change", lambda seed: case.stream(seed).since(change))
    return case._replace(reference=late)


def _scales(rows: int) -> Iterator[Group]:
    for factor in ("1e3", "1e-3"):
        name = f"scale x {factor} half-way"
        case = Case(name, partial(streams.rescaled, rows, factor=float(factor)))
        cases = [_restarted(case, rows // 2)]
        yield Group("scale", name, cases, RESTART, LOSSES)


def _units(rows: int) -> Group:
    labels = partial(streams.affine, rows)
    plain = Case("labels y", partial(labels, a=1.0, b=0.0))
    cases = [
        Case(
            f"a = {a}, b = {b} sd", partial(streams.affine, rows, a=FACTORS[a], b=SHIFTS[b]), plain
        )
        for a in FACTORS
        for b in SHIFTS
        if (a, b) != ("1", "0")
    ]
    return Group("units", "labels a y + b", cases, (UNITS,), LOSSES, many=1)


def _tails(rows: int) -> Iterator[Group]:
    made = {"Student t noise, 2 degrees": streams.student, "log-normal prices": streams.prices}
    for name, stream in made.items():
        yield Group("tails", name, [Case(name, partial(stream, rows))], TAILS, peers=True, few=3)


def _features(rows: int) -> Iterator[Group]:
    clean = Case("smooth, shorter", partial(streams.smooth, rows))
    wild = partial(streams.wild_feature, rows, at=2_000)
    extra = partial(streams.extra_column, rows)
    made = {
        "one feature value of 1e30": partial(wild, pattern=streams.single(1)),
        "50 feature values of -1e30 in a row": partial(wild, pattern=streams.burst(-1)),
        "a feature value of 1e30 every 1,000 rows": partial(wild, pattern=streams.regular),
        "a column of ids near 1e15": partial(extra, column="ids"),
        "a column of missing values": partial(extra, column="missing"),
    }
    for name, stream in made.items():
        yield Group("features", name, [Case(name, stream, clean)], (CLEAN,))
    equal = Case("equal labels", partial(streams.constant, rows))
    yield Group("features", equal.name, [equal], (ZERO,))
    flat = Case("equal labels that then change", partial(streams.flat_start, rows, change=5_000))
    yield Group("features", flat.name, [_restarted(flat, 5_000)], RESTART)
