"""`spanboost train --sharded`: workers of a cluster read their own files.

The command sees no rows, so it reports the loss of all rows and nothing about single ones.
"""

import json
import os
import time
from argparse import Namespace
from pathlib import Path
from typing import Any

from spanboost.cli.checkpoints import Checkpoints, resume_hints
from spanboost.cli.finished_run import check_parameters
from spanboost.cli.from_args import usage_errors
from spanboost.cli.output.plots import plot_paths
from spanboost.cli.output.progress import log
from spanboost.data.problems import StreamError
from spanboost.data.stream import FORMS, Stream
from spanboost.errors import UsageError
from spanboost.models.files import save
from spanboost.models.model import Model
from spanboost.parallel.shard_team import RoundResult, ShardTeam
from spanboost.parallel.shards import ShardFile, complete_schema
from spanboost.parallel.team import EVERY

# options that need the rows in this process
_NEED_ROWS = ("predictions", "report", "plot", "limit", "query", "mlflow")


class Totals:
    """The sums of all rounds so far."""

    def __init__(self, weight: float = 0.0, loss: float = 0.0, skipped: int = 0) -> None:
        self.weight, self.loss, self.skipped = weight, loss, skipped

    def add(self, one: RoundResult) -> None:
        """Add the sums of a round."""
        self.weight += one.weight
        self.loss += one.loss
        self.skipped += one.skipped

    @property
    def average(self) -> float | None:
        """The average loss; None without rows of positive weight."""
        return self.loss / self.weight if self.weight > 0 else None


def check_sharded(args: Namespace, stream: Stream, model: Model) -> None:
    """Check the options of sharded training before the cluster starts."""
    if args.ray is None:
        raise UsageError("--sharded requires --ray")
    if model.has_experts:
        raise UsageError("--sharded cannot be combined with --learner auto, which needs all rows")
    given = [name for name in _NEED_ROWS if getattr(args, name, None) is not None]
    given += [f"plot-{kind}" for kind in plot_paths(args)]
    if given:
        option = "rows" if given[0] == "limit" else given[0]
        raise UsageError(f"--sharded cannot be combined with --{option}")
    if stream.form == "json" or not set(stream.formats) <= set(FORMS):
        raise UsageError("--sharded needs files of tables, VW text or svmlight")
    if any(source.name == "stdin" for source in stream.sources):
        raise UsageError("--sharded needs files that all machines can open, not standard input")


def train_sharded(
    args: Namespace,
    stream: Stream,
    cluster: Any,
    name: str,
    model: Model,
    identity: dict[str, Any],
) -> int:
    """Learn files on a cluster and write the model; with checkpoints, the run can be resumed."""
    output = Path(args.output)
    # opening every file takes hours if there are a million
    sizes = [[source.name, source.size] for source in stream.sources]
    checkpoints = Checkpoints(output, identity, stream, lambda: sizes)
    saved, files = checkpoints.find() if args.resume else None, shard_files(args, stream)
    totals, rows, every, cursors = Totals(), 0, args.checkpoint_every, None
    if saved is not None:
        assert saved.shards is not None, "the identity says that the run is sharded"
        model, rows, every = saved.model, saved.rows, every or saved.every
        cursors, totals = saved.shards["cursors"], Totals(*saved.shards["sums"])
        log(args, f"resuming after {rows:,} rows")
    elif args.resume and output.exists():
        check_parameters(args, output, model)
        log(args, f"{output} is complete; nothing to do")
        return 0
    else:
        checkpoints.clear()
        complete_schema(files[0], model.schema)
    workers = args.workers or max(1, min(cluster.processors, len(stream.sources)))
    if cursors is not None and len(cursors) != workers:
        raise UsageError(f"the checkpoint is of {len(cursors)} workers; use --workers")
    with usage_errors():
        between = args.average_every or EVERY
        team = ShardTeam(model, workers, files, between, cluster, rows, cursors)
    began, before = time.perf_counter(), rows
    with resume_hints(every):
        for one in team.rounds():
            totals.add(one)
            for text in one.warnings:
                log(args, f"warning: {text}")
            if team.rows.bit_length() > (team.rows - one.rows).bit_length():
                log(args, f"{_count_rows(team.rows)}, average loss {totals.average or 0.0:.6g}")
            if every and team.rows // every > (team.rows - one.rows) // every:
                sums = [totals.weight, totals.loss, totals.skipped]
                progress = {"cursors": team.cursors, "sums": sums}
                checkpoints.save_shards(team.model(), team.rows, every, progress)
        if not team.rows:
            raise StreamError(f"{stream.sources[0].name}: there are no rows")
        save(team.model(), output, compact=args.compact)
    checkpoints.clear()
    _report(args, name, team.rows, team.rows - before, totals, time.perf_counter() - began)
    return 0


def shard_files(args: Namespace, stream: Stream) -> list[ShardFile]:
    """Return the files for the workers, which may have another working directory."""
    names = ("delimiter", "header", "decimal")
    options = {name: getattr(args, name) for name in names} | {"skip_bad": stream.problems.skip}
    pairs = zip(stream.sources, stream.formats, strict=True)
    return [
        ShardFile(_absolute(source.name), source.name, format, options) for source, format in pairs
    ]


def _absolute(name: str) -> str:
    return name if "://" in name else os.path.abspath(name)


def _report(
    args: Namespace, name: str, rows: int, learned: int, totals: Totals, seconds: float
) -> None:
    """Print the result."""
    speed = learned / max(seconds, 1e-6)
    if args.json:
        result = {"model": name, "examples": rows, "weight": totals.weight, "loss": totals.average}
        times = {"seconds": round(seconds, 6), "examples_per_second": round(speed, 3)}
        print(json.dumps(result | times | {"skipped": totals.skipped}, indent=2))
    elif not args.quiet:
        shown = "unknown" if totals.average is None else f"{totals.average:.6g}"
        skipped = f", {totals.skipped:,} bad rows left out" if totals.skipped else ""
        print(f"{_count_rows(rows)}, average loss {shown}, {speed:,.0f} rows/s{skipped}")


def _count_rows(rows: int) -> str:
    return "1 row" if rows == 1 else f"{rows:,} rows"
