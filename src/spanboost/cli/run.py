"""One pass over a stream: every row predicted, then learned, scored, and shown."""

import json
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing

import numpy as np

from spanboost.analysis import loss_curves
from spanboost.analysis.drift import Drift
from spanboost.analysis.label_sums import LabelSums
from spanboost.analysis.progressive import LossTape, Step, losses_of, progressive
from spanboost.atomic_files import check_writable
from spanboost.cli.options import check_apart
from spanboost.cli.output import plots, report
from spanboost.cli.output.certificate import as_json, describe
from spanboost.cli.output.predictions import writer
from spanboost.cli.output.progress import ProgressTable
from spanboost.cli.output.summary import result_of, summary
from spanboost.cli.row_filter import row_filter
from spanboost.compiling.arrays import Array
from spanboost.data.batch import Batch, concatenate
from spanboost.data.problems import StreamError
from spanboost.data.stream import Stream
from spanboost.errors import DataError, UsageError
from spanboost.models.model import Model
from spanboost.models.predictions import prediction_table
from spanboost.theory.certificate import Witness

MOST = 1 << 17  # rows that are kept until there are more of them


class ProgressivePass:
    """Models that share one schema, over one stream; the first of them is the one in question."""

    def __init__(
        self,
        args: Namespace,
        stream: Stream,
        models: Mapping[str, Model],
        tape: LossTape,
        labels: LabelSums | None = None,
    ) -> None:
        self.args, self.stream, self.models, self.tape = args, stream, models, tape
        self.names = list(models)
        self.first = models[self.names[0]]
        self.labels = labels or LabelSums(self.first.loss_)
        self.screen = ProgressTable(args.quiet, self.names, stream, self.first.schema)
        self.screen.go_on(tape)
        self.album = plots.PlotCollector(args, self.first)
        detector = getattr(args, "drift", None)
        self.drift = None if detector is None else Drift(detector, self.first.loss_)
        self.began, self.before = time.perf_counter(), tape.rows

    def steps(self, every: int | None = None, rounds: int | None = None) -> Iterator[Step]:
        """Every batch, once it is learned; none reaches over a multiple of `every` rows.

        With `rounds` they are as large as can be without reaching over a multiple of that.
        """
        learn = not getattr(self.args, "test", False)
        with ExitStack() as stack:
            stack.callback(self.screen.close)
            fit = row_filter(self.models.values(), self.stream.problems)
            batches = self.stream.batches(
                self.first.schema, labelled=True, learn=learn, skip=self.tape.rows, filter_rows=fit
            )
            stack.enter_context(closing(batches))
            place = None
            if self.args.predictions is not None:
                place = stack.enter_context(writer(self.args.predictions))
            last: list[Batch] = []  # the one that is being learned
            parts = split_batches(batches, every, self.tape.rows)
            if rounds is not None:
                parts = join_small_batches(parts, rounds, self.tape.rows)
            parts = self.album.pieces(parts, self.tape.rows)
            parts = _noted(parts, last)
            try:
                for step in progressive(self.models, parts, self.tape, learn=learn):
                    answers = step.answers[self.names[0]]
                    self._count(step.batch, answers)
                    self.screen.show(step)
                    self.album.watch(step, answers)
                    if place is not None:
                        place.write(prediction_table(self.first, answers, learning=True))
                    yield step
            except DataError as error:
                raise last[0].locate(error) from None
            if self.tape.rows == 0:
                raise StreamError(f"{self.stream.sources[0].name}: there are no rows")

    def _count(self, batch: Batch, answers: Array) -> None:
        assert batch.y is not None  # labels were asked for
        self.labels.add(batch.y, np.ones(batch.rows) if batch.weights is None else batch.weights)
        if self.drift is not None:
            self.drift.add(losses_of(self.first, batch.y, answers), batch.y)

    def finish(self, witness: Witness | None = None) -> None:
        """Say what it came to, also according to a witness of all its rows."""
        seconds = time.perf_counter() - self.began
        problems, rows = self.stream.problems, self.tape.rows - self.before
        result = result_of(self.names, self.tape, self.labels, rows, seconds, problems.count)
        moments = () if self.drift is None else self.drift.moments
        if self.drift is not None:
            result["drift"] = {"detector": self.drift.name, "rows": moments}
        for message in problems.first:
            self.screen.say(f"left out: {message}")
        self.screen.say(summary(result, self.labels.label_sum))
        positive = getattr(self.first.schema.target, "positive", None)
        if positive is not None and self.labels.label_sum == -self.tape.last[0]:
            self.screen.say(f"no label was {positive!r}, the value of --positive: all are -1")
        if witness is not None:
            certificate = witness.certificate(float(self.tape.last[1]))
            result["certificate"] = as_json(certificate)
            self.screen.say("\n".join(["", *describe(certificate)]))
        if self.args.json:
            print(json.dumps(result, indent=2, allow_nan=False))
        if self.args.plot is not None:
            curves = (self.names, self.tape, result["best_constant_loss"], moments)
            loss_curves.save(self.args.plot, *curves)
        self.album.save()
        if self.args.report is not None:
            files = [source.name for source in self.stream.sources]
            page = (self.args.words, files, self.models, self.tape, result, problems.first)
            report.save(self.args.report, report.page(*page))


def check_outputs(args: Namespace, stream: Stream, output: str | None = None) -> None:
    """Whether all that is asked for can be written, before anything is learned."""
    written = (output, args.predictions, args.plot, args.report, *plots.plot_paths(args).values())
    check_apart([source.name for source in stream.sources], written)
    if output == "-":
        raise UsageError("-o names a file: a model does not go to standard output")
    if output is not None:
        check_writable(output)
    if args.predictions is not None and getattr(args, "compare", None) is not None:
        raise UsageError("--predictions are of one model: no --compare with them")
    if args.predictions is not None and getattr(args, "resume", False):
        raise UsageError("--predictions are of a whole run: not with --resume")
    if args.json and args.predictions == "-":
        raise UsageError("--json has standard output for itself: --predictions need a file")
    if args.predictions not in (None, "-"):
        check_writable(args.predictions)
    if args.plot is not None:
        loss_curves.check_plot_path(args.plot)
    plots.check_plot_paths(args)
    if args.report is not None:
        report.check(args.report)


def _noted(batches: Iterator[Batch], last: list[Batch]) -> Iterator[Batch]:
    """The same, each of them noted: an error of a model names its row by number only."""
    for batch in batches:
        last[:] = [batch]
        yield batch


def join_small_batches(batches: Iterator[Batch], every: int, rows: int) -> Iterator[Batch]:
    """The same rows, in batches from one multiple of `every` to the next, but each of one file."""
    held: list[Batch] = []
    for part in split_batches(batches, every, rows):
        if held and part.file != held[0].file:
            yield concatenate(held)
            held = []
        held.append(part)
        rows += part.rows
        if rows % every == 0 or sum(one.rows for one in held) >= MOST:
            yield concatenate(held)
            held = []
    if held:
        yield concatenate(held)


def split_batches(batches: Iterator[Batch], every: int | None, rows: int) -> Iterator[Batch]:
    """The same rows, in batches that end at every multiple of `every`; `rows` came before them."""
    for batch in batches:
        first = 0
        while every and rows // every < (rows + batch.rows - first) // every:
            last = first + every - rows % every
            yield batch.part(first, last)
            rows, first = rows + last - first, last
        if first < batch.rows:
            yield batch.part(first, batch.rows) if first else batch
            rows += batch.rows - first
