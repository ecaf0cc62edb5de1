"""`spanboost tune`."""

import json
import sys
import time
from argparse import Namespace
from contextlib import closing
from typing import Any

import numpy as np

from spanboost.analysis import loss_curves
from spanboost.atomic_files import atomic_write, check_writable
from spanboost.checks import finite_or_none
from spanboost.cli import options
from spanboost.cli.commands.train import log
from spanboost.cli.options import check_apart
from spanboost.cli.ray_options import cluster_of
from spanboost.cli.row_filter import row_filter
from spanboost.data.batch import Batch, join_batches
from spanboost.data.problems import StreamError
from spanboost.data.stream import Stream
from spanboost.errors import DataError, UsageError
from spanboost.models.booster import Booster
from spanboost.models.files import save
from spanboost.models.model_spec import ModelSpec
from spanboost.tuning import plots
from spanboost.tuning.grid import Configuration, configurations, default_grid
from spanboost.tuning.search import Choice, Sweeping, Tuned, first_rows, parts, sweep_of

SHOWN = 20  # configurations in the table
SPELT = {"eta": "step"}  # as the command line has it
SWEPT = ("rate", "eta", "scale", "feedback", "hidden")


@np.errstate(over="ignore", invalid="ignore")
def tune(args: Namespace) -> int:
    """A grid of boosters over a stream; what it came to, and the chosen model."""
    stream = options.stream_from_args(args)
    _check_places(args, stream)
    with cluster_of(args) as cluster:
        return _tune(args, stream, cluster)


def _tune(args: Namespace, stream: Stream, cluster: Any) -> int:
    base = _base(args, stream)
    sweeping = sweep_of(_configurations(args, base), args.threads, cluster)
    for group in sweeping.groups:
        group.schema = base.schema
    batches = _read(args, stream, base)
    rows = sum(batch.rows for batch in batches)
    with options.usage_errors():
        first = first_rows(rows, args.split)
    began = time.perf_counter()
    log(args, f"{len(sweeping.configurations):,} configurations over {rows:,} rows")
    interrupted = not _learn(args, sweeping, batches, first)
    tuned, seconds = sweeping.tuned(), time.perf_counter() - began
    with options.usage_errors():
        tuned.best()
    if args.json != "-":
        print("\n".join(_table(tuned, min(first, sweeping.rows), sweeping.rows)))
    _write(args, tuned, sweeping, {"rows": rows, "first": first, "seconds": round(seconds, 6)})
    if interrupted:
        log(args, f"interrupted after {sweeping.rows:,} of {rows:,} rows: no model is written")
        raise KeyboardInterrupt
    if args.output is not None:
        save(tuned.model(), args.output)
    return 0


def _base(args: Namespace, stream: Stream) -> Booster:
    """A booster with the parameters that all of them share, and the schema."""
    others = dict.fromkeys((*options.OF_BOOSTERS, "memory", "budget", "x_norm"))
    fixed = Namespace(**vars(args) | others)
    spec = options.spec_from_args(fixed, stream.form)
    base = options.build_model(spec, stream.form)
    base.schema = options.schema_from_args(args, stream.form, spec)
    return base.as_booster()


def _configurations(args: Namespace, base: Booster) -> list[Configuration]:
    n = args.n or ModelSpec(learner=args.learner).copies
    given = {name: getattr(args, SPELT.get(name, name)) for name in SWEPT}
    given = {name: values for name, values in given.items() if values is not None}
    grid = default_grid(base.learner, n) | given
    fixed = {name: getattr(base, name) for name in ("loss", "D", "label_range", "seed")}
    with options.usage_errors():
        return configurations(base.learner, grid, args.booster, n, **fixed)


def _read(args: Namespace, stream: Stream, base: Booster) -> list[Batch]:
    """All rows, parsed once and kept: only then is it known where the first part ends."""
    fit = row_filter([base], stream.problems)
    batches, rows = stream.batches(base.schema, labelled=True, filter_rows=fit), []
    with closing(batches), _bar(args, stream.size, "reading", unit="B") as bar:
        for batch in batches:
            rows.append(batch)
            bar.update(stream.position - bar.n)
    for message in stream.problems.first:
        log(args, f"left out: {message}")
    if not rows:
        raise StreamError(f"{stream.sources[0].name}: there are no rows")
    return rows


def _learn(args: Namespace, sweeping: Sweeping, batches: list[Batch], first: int) -> bool:
    """Whether all rows were learned."""
    rows = sum(batch.rows for batch in batches)
    most = sweeping.at_once(rows)
    with _bar(args, rows, "learning", unit=" rows") as bar:
        try:
            for batch in parts(join_batches(batches, most), first, most):
                try:
                    sweeping.learn(batch)
                except DataError as error:
                    raise batch.locate(error) from None
                if sweeping.rows == first:
                    sweeping.mark()
                bar.update(batch.rows)
        except KeyboardInterrupt:
            if not sweeping.rows:
                raise
            return False
    return True


def _bar(args: Namespace, total: int | None, what: str, unit: str) -> Any:
    from tqdm import tqdm

    hidden = args.quiet or not sys.stderr.isatty()
    look = {"unit": unit, "unit_scale": True, "leave": False, "file": sys.stderr}
    return tqdm(total=total, desc=what, disable=hidden, **look)


def _table(tuned: Tuned, first: int, rows: int) -> list[str]:
    """The best configurations, what was chosen, and the learner alone."""
    names = ["booster", *(name for name in plots.names_of(tuned) if name != "booster")]
    each = [one for one in tuned.best_of_each() if np.isfinite(one.loss_first)]
    head = ["loss, first part", "rest", "n", *(SPELT.get(name, name) for name in names)]
    cells = [head]
    for one in each[:SHOWN]:
        settings = [str(one.settings.get(name, "-")) for name in names]
        cells.append([f"{one.loss_first:.6g}", f"{one.loss_rest:.6g}", str(one.n), *settings])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in cells]
    if len(each) > SHOWN:
        lines.append(f"... and {len(each) - SHOWN:,} more configurations")
    best = tuned.best()
    lines += ["", f"chosen on the first {first:,} rows: {_words(best, names)}"]
    if first == rows:
        return lines
    lines.append(f"average loss of the other {rows - first:,} rows = {best.loss_rest:.10g}")
    alone = _alone(tuned)
    if alone is not None:
        lines.append(
            f"the learner alone, chosen likewise ({_words(alone, names)}) = {alone.loss_rest:.10g}"
        )
        if alone.loss_rest > 0:
            lines.append(f"improvement = {1 - best.loss_rest / alone.loss_rest:+.2%}")
    return lines


def _alone(tuned: Tuned) -> Choice | None:
    """One copy is the learner without boosting; None if the grid has none."""
    try:
        return tuned.best(n=1)
    except ValueError:
        return None


def _words(choice: Choice, names: list[str]) -> str:
    parts = [f"n {choice.n}"]
    parts += [f"{SPELT.get(x, x)} {choice.settings[x]}" for x in names if x in choice.settings]
    return ", ".join(parts)


def _write(args: Namespace, tuned: Tuned, sweeping: Sweeping, facts: dict[str, Any]) -> None:
    """The files that were asked for, but the model."""
    if args.json is not None:
        text = json.dumps(_content(tuned, sweeping, facts), indent=1, allow_nan=False) + "\n"
        if args.json == "-":
            print(text, end="")
        else:
            with atomic_write(args.json) as file:
                file.write(text.encode())
    if args.plot is not None:
        plots.save(args.plot, tuned)


def _content(tuned: Tuned, sweeping: Sweeping, facts: dict[str, Any]) -> dict[str, Any]:
    alone = _alone(tuned)
    return facts | {
        "learned": sweeping.rows,
        "chosen": _choice(tuned.best()),
        "alone": None if alone is None else _choice(alone),
        "configurations": [
            {"settings": one.settings, "sizes": _sizes(tuned, k)}
            for k, one in enumerate(tuned.configurations)
        ],
    }


def _choice(choice: Choice) -> dict[str, Any]:
    losses = {
        "loss_first": finite_or_none(choice.loss_first),
        "loss_rest": finite_or_none(choice.loss_rest),
    }
    return {"settings": choice.settings, "n": choice.n, **losses}


def _sizes(tuned: Tuned, k: int) -> dict[str, list[Any]]:
    """The numbers of copies that a configuration tells the losses of, and these."""
    at = np.flatnonzero(tuned.configurations[k].allowed())
    return {
        "n": (at + 1).tolist(),
        "loss_first": [finite_or_none(value) for value in tuned.loss_first[k, at]],
        "loss_rest": [finite_or_none(value) for value in tuned.loss_rest[k, at]],
    }


def _check_places(args: Namespace, stream: Stream) -> None:
    """Whether all that is asked for can be written, before anything is learned."""
    check_apart([source.name for source in stream.sources], (args.output, args.plot, args.json))
    if args.output == "-":
        raise UsageError("-o names a file: a model does not go to standard output")
    for place in (args.output, None if args.json == "-" else args.json):
        if place is not None:
            check_writable(place)
    if args.plot is not None:
        loss_curves.check_plot_path(args.plot)
