"""`python -m benchmarks.interval_cost`: the time that prediction intervals take."""

import time
from collections.abc import Callable

from benchmarks import common
from benchmarks.accuracy.markdown import markdown
from spanboost import AutoBoost, HullBoost, Intervals, LinearSGD, Network, SpanBoost, Stumps, Trees
from spanboost.models.model import Model

ABOUT = """\
Learn and predict a generated stream with a model, and with the same model in Intervals. The jobs
alternate, and the best of several times counts: CPU times on one thread, and the time by the clock
in which two threads learn the stream. A ratio is the time with intervals divided by the time
without.
"""
ENDS = """\
examples:
  python -m benchmarks.interval_cost           all models
  python -m benchmarks.interval_cost --quick   short streams, to check that the command works
"""
ROWS, QUICK, REPEATS = 100_000, 500, 3
TARGET = "<= 1.5"
MODELS: dict[str, Callable[[], Model]] = {
    "AutoBoost()": AutoBoost,
    'AutoBoost(budget="fast")': lambda: AutoBoost(budget="fast"),
    "SpanBoost(Trees())": lambda: SpanBoost(Trees(), label_range="auto"),
    "SpanBoost(Network(), n=16)": lambda: SpanBoost(Network(), n=16, label_range="auto"),
    "SpanBoost(Stumps(), n=16)": lambda: SpanBoost(Stumps(), n=16, label_range="auto"),
    "SpanBoost(LinearSGD(), n=16)": lambda: SpanBoost(LinearSGD(), n=16, label_range="auto"),
    "HullBoost(LinearSGD(), n=16)": lambda: HullBoost(LinearSGD(), n=16, label_range="auto"),
}


def measure(name: str, rows: int, repeats: int) -> dict[str, float | str]:
    """Return the times of a model without and with intervals, in microseconds a row."""
    stream, make = common.generated(rows), MODELS[name]
    times: dict[str, list[float]] = {}
    for _ in range(1 + repeats):  # the first time includes compiling
        for suffix in ("", "_intervals"):
            model = Intervals(make()) if suffix else make()
            model.threads = 1
            start = time.process_time()
            model.learn_many(stream.X, stream.y)
            learned = time.process_time()
            if isinstance(model, Intervals):
                model.predict_interval(stream.X)
            else:
                model.predict_many(stream.X)
            end = time.process_time()
            times.setdefault(f"learn{suffix}", []).append(learned - start)
            times.setdefault(f"predict{suffix}", []).append(end - learned)
            model = Intervals(make()) if suffix else make()
            model.threads = 2
            begin = time.perf_counter()
            model.learn_many(stream.X, stream.y)
            times.setdefault(f"clock{suffix}", []).append(time.perf_counter() - begin)
    return {"model": name, **{key: 1e6 * min(each[1:]) / rows for key, each in times.items()}}


def table(rows: list[dict[str, float | str]]) -> str:
    """Return the times as a table."""
    head = ["model", "learning", "with intervals", "ratio"]
    head += ["predicting", "with intervals", "ratio"]
    head += ["learning, two threads", "with intervals", "ratio"]
    lines = []
    for row in rows:
        cells = []
        for name in ("learn", "predict", "clock"):
            alone, both = float(row[name]), float(row[f"{name}_intervals"])
            cells += [f"{alone:.2f} us", f"{both:.2f} us", f"{both / alone:.2f}"]
        lines.append([f"`{row['model']}`", *cells])
    return markdown(head, lines)


def main() -> None:
    """Measure all models, and print the table."""
    args = common.parser("interval_cost", ABOUT, ENDS).parse_args()
    size, repeats = (QUICK, 1) if args.quick else (ROWS, REPEATS)
    rows = [measure(name, size, repeats) for name in MODELS]
    print(table(rows))
    for row in rows:
        for name, how in {"learn": "one thread", "clock": "two threads, by the clock"}.items():
            ratio = float(row[f"{name}_intervals"]) / float(row[name])
            met = common.yes_no(common.meets(ratio, TARGET))
            print(
                f"{row['model']}: learning takes {ratio:.2f} times as long ({how}); {TARGET}: {met}"
            )
    common.save(args.json, rows, size=size, repeats=repeats)


if __name__ == "__main__":
    main()
