"""`spanboost demo`: single learners, AutoBoost and batch trees on a generated stream."""

import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import pairwise
from typing import Any, TextIO

import numpy as np

from spanboost.analysis.batch_trees import BatchTrees
from spanboost.analysis.progressive import LossTape, progressive, rows_to_show
from spanboost.atomic_files import atomic_write, check_writable
from spanboost.compiling.arrays import Array
from spanboost.data.batch import Batch
from spanboost.data.generated import make_drifting_stream
from spanboost.learners.linear import LinearSGD
from spanboost.learners.network import Network
from spanboost.learners.stumps import Stumps
from spanboost.models.auto import AutoBoost
from spanboost.models.booster import HullBoost, SpanBoost
from spanboost.models.model import Model

AUTO, BATCH = "AutoBoost", "batch trees, refitted"
ALONE = {"linear": LinearSGD(), "stumps": Stumps(), "network": Network()}
REFITS = 10  # one after each tenth of the stream


def new_models(n: int) -> dict[str, Model]:
    """Return the base learners of the paper alone, stumps under both boosters, and AutoBoost."""
    alone = {f"{name} alone": HullBoost(learner, n=1) for name, learner in ALONE.items()}
    boosted = {"stumps Alg 1": SpanBoost(Stumps(), n=n), "stumps Alg 2": HullBoost(Stumps(), n=n)}
    return {**alone, **boosted, AUTO: AutoBoost(past=False)}


def batches(X: Array, y: Array, size: int = 1024) -> Iterator[Batch]:
    """Yield the stream in batches."""
    whole = Batch(X, y, None, "generated", np.arange(1, len(y) + 1))
    for start in range(0, len(y), size):
        yield whole.part(start, min(start + size, len(y)))


def save(rows: int, seed: int, path: str) -> None:
    """Write the stream to a CSV file, label last."""
    X, y = make_drifting_stream(rows, seed)
    names = [*(f"x{j}" for j in range(X.shape[1])), "label"]
    table = np.column_stack([X, y])
    with atomic_write(path) as file:
        np.savetxt(file, table, "%.6g", ",", header=",".join(names), comments="")


def run(rows: int, n: int, seed: int, out: TextIO) -> None:
    """Print the progressive table, then the losses before and after the change."""
    X, y = make_drifting_stream(rows, seed)
    print(
        f"A generated stream of {rows:,} rows, 8 features; its rule changes after row "
        f"{rows // 2:,}.\nThree learners alone, {n} stumps boosted by the paper's Algorithm 1 "
        "(span) and 2 (hull), and\nAutoBoost, which needs no settings. Average squared loss so "
        "far; every row is predicted before\nits label is seen.\n",
        file=out,
        flush=True,
    )
    with closing(_bar()) as bar:
        _compile(X[:100], y[:100], n, bar)
        losses = _stream_losses(X, y, new_models(n), out, bar)
        losses[BATCH] = _batch_losses(X, y, bar)
    print(
        "\nThe batch trees are fitted to all rows so far, again after each tenth of the stream.\n"
        "The losses below leave out the first tenth, for which there are no earlier rows.\n",
        file=out,
    )
    _print_summary(losses, out)


def _compile(X: Array, y: Array, n: int, bar: Any) -> None:
    """Learn a few rows with every model, so that the bar shows which one is being compiled."""
    for name, model in new_models(n).items():
        bar.set_description(f"preparing {name}")
        model.learn_many(X, y)


def _stream_losses(
    X: Array, y: Array, models: Mapping[str, Model], out: TextIO, bar: Any
) -> dict[str, Array]:
    """Print the progressive table; return the losses of each model before and after the change."""
    rows = len(y)
    bar.set_description("learning")
    bar.write(f"{'rows':>10}" + "".join(f"{name:>15}" for name in models), file=out)

    def show(row: int, totals: Array) -> None:
        cells = "".join(f"{loss:15.4f}" for loss in totals[1:] / totals[0])
        bar.write(f"{row:>10,}{cells}", file=out)

    with closing(LossTape(1 + len(models))) as tape:
        for step in progressive(models, batches(X, y), tape):
            bar.update(len(step.totals))
            for row in rows_to_show(step):
                show(step.first + row + 1, step.totals[row])
        if rows & (rows - 1):  # the last row is not shown yet
            show(rows, tape.last)
        halves = [tape.average(*half) for half in _halves(rows)]
    return dict(zip(models, np.transpose(halves), strict=True))


def _batch_losses(X: Array, y: Array, bar: Any) -> Array:
    """Return the losses, before and after the change, of trees that are refitted."""
    answers = np.zeros(len(y))
    ends = [len(y) * k // REFITS for k in range(1, REFITS + 1)]
    for seen, end in pairwise(ends):
        bar.set_description(f"fitting batch trees to {seen:,} rows")
        answers[seen:end] = BatchTrees().fit(X[:seen], y[:seen]).predict(X[seen:end])
    return np.array([np.mean((answers - y)[slice(*half)] ** 2) for half in _halves(len(y))])


def _halves(rows: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the rows before and after the change that are scored."""
    return (rows // REFITS, rows // 2), (rows // 2, rows)


def _print_summary(losses: Mapping[str, Array], out: TextIO) -> None:
    print(f"{'average squared loss':<24}{'before the change':>20}{'after it':>12}", file=out)
    for name in sorted(losses, key=lambda name: float(losses[name][1]), reverse=True):
        before, after = losses[name]
        print(f"{name:<24}{before:>20.4f}{after:>12.4f}", file=out)
    print(file=out)
    best = np.min([losses[f"{name} alone"] for name in ALONE], axis=0)
    for when, ours, alone, batch in zip(
        ("before", "after"), losses[AUTO], best, losses[BATCH], strict=True
    ):
        print(
            f"AutoBoost's error {when} the change: {ours / alone - 1:+.0%} against the best "
            f"learner alone, {ours / batch - 1:+.0%} against batch trees",
            file=out,
        )


def _bar() -> Any:
    """Return a progress bar for terminals, on standard error; elsewhere it shows nothing."""
    from tqdm import tqdm

    form = "{desc}: {n:,} rows learned [{elapsed}]"
    return tqdm(leave=False, file=sys.stderr, disable=None, bar_format=form)


def demo(args: Namespace) -> int:
    """Run `spanboost demo`."""
    if args.save is not None:
        check_writable(args.save)
        save(args.rows, args.seed, args.save)
    run(args.rows, args.n, args.seed, sys.stdout)
    return 0
