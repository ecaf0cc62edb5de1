"""`spanboost tune`: choose the parameters of a booster in one pass."""

import sys
import time
from argparse import Namespace
from contextlib import closing
from dataclasses import fields
from typing import Any

import numpy as np

from spanboost.analysis.figures import check_plot_path
from spanboost.atomic_files import check_writable
from spanboost.checks import finite_or_none
from spanboost.cli import from_args
from spanboost.cli.current_rows import CurrentRows
from spanboost.cli.from_args import check_apart, check_replaced
from spanboost.cli.output.json_file import STANDARD_OUTPUT, write_json
from spanboost.cli.output.pacing import pace_batches
from spanboost.cli.output.progress import log
from spanboost.cli.ray_options import cluster_of, expert_team
from spanboost.cli.row_filter import row_filter
from spanboost.data.batch import Batch, join_batches
from spanboost.data.problems import StreamError
from spanboost.data.stream import Stream
from spanboost.data.table_names import apply_schema
from spanboost.errors import DataError, UsageError
from spanboost.models.booster import Booster
from spanboost.models.files import save
from spanboost.models.model import Model
from spanboost.models.model_spec import AUTO_PARAMETERS, ModelSpec, single_booster_parameters
from spanboost.models.spec import BoosterSpec
from spanboost.parallel.expert_team import ExpertTeam
from spanboost.tuning.grid import BOOSTER_PARAMETERS, Configuration, configurations, default_grid
from spanboost.tuning.result import Choice, TuningResult, varied_names
from spanboost.tuning.rival import Rival
from spanboost.tuning.search import (
    Sweep,
    first_rows,
    new_sweep,
    split_batches,
)

SHOWN = 20  # configurations in the table
OPTIONS = {"eta": "step"}  # parameters whose option has another name
TUNED = ("rate", "eta", "scale", "feedback", "hidden")
OF_LEARNERS = {"rate", "hidden"}  # parameters that not every learner has


@np.errstate(over="ignore", invalid="ignore")
def tune(args: Namespace) -> int:
    """Run a grid of boosters over a stream, print the losses, and write the chosen model."""
    stream = from_args.stream_from_args(args)
    _check_outputs(args, stream)
    if args.workers is not None and args.ray is None:
        raise UsageError("--workers requires --ray")
    with cluster_of(args) as cluster:
        return _tune(args, stream, cluster)


def _tune(args: Namespace, stream: Stream, cluster: Any) -> int:
    rival = None if args.learner is not None else _new_rival(args, stream)
    base = _base_booster(args, stream)
    if rival is not None:
        rival.model.schema = base.schema
        if cluster is not None:
            rival.model = expert_team(args, rival.model, cluster)
    sweeping = new_sweep(_configurations(args, base), args.threads, cluster)
    for group in sweeping.groups:
        group.schema = base.schema
        apply_schema(group.core.encoder, base.schema)
    batches = _read(args, stream, base)
    rows = sum(batch.rows for batch in batches)
    with from_args.usage_errors():
        first = first_rows(rows, args.split)
    began = time.perf_counter()
    log(args, f"{len(sweeping.configurations):,} configurations over {rows:,} rows")
    if rival is not None:
        log(args, "tuning trees and comparing them with AutoBoost; --learner NAME tunes another")
    interrupted = not _learn(args, sweeping, rival, batches, first)
    if interrupted:
        rival = None  # it may have learned fewer rows than the grid
    tuned, seconds = sweeping.result(), time.perf_counter() - began
    with from_args.usage_errors():
        tuned.best()
    if args.json != STANDARD_OUTPUT:
        print("\n".join(_table(tuned, min(first, sweeping.rows), sweeping.rows)))
        if rival is not None:
            print("\n".join(_comparison(tuned.best(), rival)))
    facts = {"rows": rows, "first": first, "seconds": round(seconds, 6)}
    _write(args, tuned, sweeping, facts | _rival_facts(tuned.best(), rival))
    if interrupted:
        log(args, f"interrupted after {sweeping.rows:,} of {rows:,} rows; no model was written")
        raise KeyboardInterrupt
    if args.output is not None:
        better = rival is not None and _is_better(rival, tuned.best())
        save(_rival_model(rival) if rival is not None and better else tuned.model(), args.output)
        if rival is not None:
            log(args, f"{args.output} contains {'AutoBoost' if better else 'the tuned trees'}")
    return 0


def _new_rival(args: Namespace, stream: Stream) -> Rival:
    """Return AutoBoost, to be compared with trees; set the learner to trees."""
    for name, learners in {"rate": "linear, stumps or network", "hidden": "network"}.items():
        if getattr(args, name) is not None:
            raise UsageError(f"--{name} requires --learner {learners}; the default tunes trees")
    fixed = Namespace(
        **vars(args) | dict.fromkeys((*AUTO_PARAMETERS, *single_booster_parameters()))
    )
    spec = from_args.spec_from_args(fixed, stream.form)
    args.learner = "trees"
    return Rival(from_args.build_model(spec, stream.form))


def _rival_model(rival: Rival) -> Model:
    """Return AutoBoost after the last row."""
    return rival.model.model() if isinstance(rival.model, ExpertTeam) else rival.model


def _is_better(rival: Rival, best: Choice) -> bool:
    """Return whether AutoBoost is better than the tuned trees, on the rest if there is one."""
    (first, rest), own = rival.averages(), (best.loss_first, best.loss_rest)
    return rest < own[1] if np.isfinite(rest) and np.isfinite(own[1]) else first < own[0]


def _comparison(best: Choice, rival: Rival) -> list[str]:
    """Return the lines that compare the tuned trees with AutoBoost."""
    first, rest = rival.averages()
    shown = f"{first:z.10g} on the first rows" if np.isnan(rest) else f"{rest:z.10g}"
    if _is_better(rival, best):
        return [f"AutoBoost, without tuning = {shown}", "better: AutoBoost"]
    return [f"AutoBoost, without tuning = {shown}", "better: the tuned trees"]


def _rival_facts(best: Choice, rival: Rival | None) -> dict[str, Any]:
    """Return the losses of AutoBoost as JSON values."""
    if rival is None:
        return {}
    first, rest = map(finite_or_none, rival.averages())
    better = "auto" if _is_better(rival, best) else "trees"
    return {"auto": {"loss_first": first, "loss_rest": rest}, "better": better}


def _base_booster(args: Namespace, stream: Stream) -> Booster:
    """Return a booster with the schema and the parameters that all configurations share."""
    others = dict.fromkeys((*AUTO_PARAMETERS, *single_booster_parameters()))  # the grid has them
    fixed = Namespace(**vars(args) | others)
    spec = from_args.spec_from_args(fixed, stream.form)
    base = from_args.build_model(spec, stream.form)
    base.schema = from_args.schema_from_args(args, stream.form, spec)
    return base.as_booster()


def _configurations(args: Namespace, base: Booster) -> list[Configuration]:
    n = args.n or ModelSpec(learner=args.learner).copies
    given = {name: getattr(args, OPTIONS.get(name, name)) for name in TUNED}
    given = {name: values for name, values in given.items() if values is not None}
    for name in OF_LEARNERS & given.keys():
        if not hasattr(base.learner, name):
            raise UsageError(f"--{name} does not apply to {args.learner}; leave it out")
    grid = default_grid(base.learner, n) | given
    varied = ("learner", "n", *BOOSTER_PARAMETERS)
    fixed = {
        one.name: getattr(base, one.name) for one in fields(BoosterSpec) if one.name not in varied
    }
    with from_args.usage_errors():
        return configurations(base.learner, grid, args.booster, n, **fixed)


def _read(args: Namespace, stream: Stream, base: Booster) -> list[Batch]:
    """Read all rows into memory: the length of the first part depends on their number."""
    fit = row_filter([base], stream.problems)
    batches, rows = stream.batches(base.schema, labelled=True, filter_rows=fit), []
    with closing(batches), _bar(args, stream.size, "reading", unit="B") as bar:
        for batch in batches:
            rows.append(batch)
            bar.update(stream.position_after(sum(one.rows for one in rows)) - bar.n)
    for note in stream.problems.notes:
        print(f"note: {note}", file=sys.stderr)
    for message in stream.problems.first:
        log(args, f"left out: {message}")
    if not rows:
        raise StreamError(f"{stream.sources[0].name}: there are no rows")
    return rows


def _learn(
    args: Namespace, sweeping: Sweep, rival: Rival | None, batches: list[Batch], first: int
) -> bool:
    """Learn all rows; return False if Ctrl-C ended it early."""
    rows = sum(batch.rows for batch in batches)
    most = sweeping.block_rows(rows)
    current = CurrentRows()
    with _bar(args, rows, "learning", unit=" rows") as bar, current.name_lines():
        try:
            parts = split_batches(join_batches(batches, most), first, most)
            parts = parts if bar.disable or args.ray else pace_batches(parts)
            for batch in current.follow(parts, lambda: sweeping.rows):
                try:
                    sweeping.learn(batch)
                except DataError as error:
                    raise current.locate(error) from None
                if rival is not None:
                    rival.learn(batch)
                if sweeping.rows == first:
                    sweeping.mark()
                    if rival is not None:
                        rival.mark()
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


def _table(tuned: TuningResult, first: int, rows: int) -> list[str]:
    """Return the best configurations, the choice, and the learner alone as lines of text."""
    names = ["booster", *(name for name in varied_names(tuned) if name != "booster")]
    each = [one for one in tuned.best_of_each() if np.isfinite(one.loss_first)]
    head = ["loss, first part", "rest", "n", *(OPTIONS.get(name, name) for name in names)]
    cells = [head]
    for one in each[:SHOWN]:
        settings = [str(one.settings.get(name, "-")) for name in names]
        cells.append([_loss(one.loss_first), _loss(one.loss_rest), str(one.n), *settings])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in cells]
    if len(each) > SHOWN:
        lines.append(f"... and {len(each) - SHOWN:,} more configurations")
    best = tuned.best()
    lines += ["", f"chosen on the first {first:,} rows: {_describe(best, names)}"]
    if first == rows:
        return lines
    lines.append(f"average loss of the other {rows - first:,} rows = {best.loss_rest:z.10g}")
    alone = _alone(tuned)
    if alone is not None:
        lines.append(
            f"the learner alone, chosen the same way ({_describe(alone, names)}) = "
            f"{alone.loss_rest:z.10g}"
        )
        if alone.loss_rest > 0:
            lines.append(f"improvement = {1 - best.loss_rest / alone.loss_rest:+.2%}")
    return lines


def _loss(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:z.6g}"


def _alone(tuned: TuningResult) -> Choice | None:
    """Return the best choice of one copy, the learner without boosting; None if not tried."""
    try:
        return tuned.best(n=1)
    except ValueError:
        return None


def _describe(choice: Choice, names: list[str]) -> str:
    parts = [f"n {choice.n}"]
    parts += [f"{OPTIONS.get(x, x)} {choice.settings[x]}" for x in names if x in choice.settings]
    return ", ".join(parts)


def _write(args: Namespace, tuned: TuningResult, sweeping: Sweep, facts: dict[str, Any]) -> None:
    """Write the requested files, except the model."""
    if args.json is not None:
        write_json(args.json, _content(tuned, sweeping, facts))
    if args.plot is not None:
        tuned.plot(args.plot)


def _content(tuned: TuningResult, sweeping: Sweep, facts: dict[str, Any]) -> dict[str, Any]:
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


def _sizes(tuned: TuningResult, k: int) -> dict[str, list[Any]]:
    """Return the numbers of copies with a known loss in a configuration, and these losses."""
    at = np.flatnonzero(tuned.configurations[k].allowed())
    return {
        "n": (at + 1).tolist(),
        "loss_first": [finite_or_none(value) for value in tuned.loss_first[k, at]],
        "loss_rest": [finite_or_none(value) for value in tuned.loss_rest[k, at]],
    }


def _check_outputs(args: Namespace, stream: Stream) -> None:
    """Check that all requested files can be written, before anything is learned."""
    check_apart([source.name for source in stream.sources], (args.output, args.plot, args.json))
    if args.output == "-":
        raise UsageError("-o must name a file; a model cannot be written to standard output")
    for path in (args.output, None if args.json == STANDARD_OUTPUT else args.json):
        if path is not None:
            check_writable(path)
    if args.output is not None:
        check_replaced(args.output, "-o", with_model=True)
    if args.plot is not None:
        check_plot_path(args.plot)
