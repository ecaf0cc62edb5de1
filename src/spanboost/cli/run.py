"""One pass over a stream: predict each row, learn it, and report the loss."""

import json
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from functools import partial
from typing import Any

import numpy as np

from spanboost.analysis import comparison_curves, loss_curves
from spanboost.analysis.drift import Drift
from spanboost.analysis.figures import check_plot_path
from spanboost.analysis.interval_picture import present_intervals
from spanboost.analysis.label_sums import LabelSums
from spanboost.analysis.metrics.interval_tape import IntervalTape
from spanboost.analysis.metrics.tape import OutcomeTape
from spanboost.analysis.progressive import LossTape, Step, progressive
from spanboost.analysis.regret_picture import plot_regret
from spanboost.atomic_files import check_writable
from spanboost.cli.current_rows import CurrentRows
from spanboost.cli.from_args import check_apart, check_replaced
from spanboost.cli.label_warnings import PositiveLabel, warn_of_one_class
from spanboost.cli.output import plots, report
from spanboost.cli.output.certificate import as_json, describe, pictured
from spanboost.cli.output.comparisons import PairComparisons
from spanboost.cli.output.interval_results import intervals_as_json, picture_of
from spanboost.cli.output.metrics_table import metrics_as_json
from spanboost.cli.output.pacing import pace_batches
from spanboost.cli.output.predictions import open_answers
from spanboost.cli.output.progress import ProgressTable
from spanboost.cli.output.summary import Speed, add_results, format_summary, result_of
from spanboost.cli.row_filter import row_filter
from spanboost.compiling.compile_time import compile_seconds
from spanboost.data.batch import Batch, concatenate
from spanboost.data.problems import StreamError
from spanboost.data.stream import Stream
from spanboost.errors import DataError, UsageError
from spanboost.losses import predicts_scores
from spanboost.models.model import Model
from spanboost.models.predictions import class_names
from spanboost.models.row_losses import losses_of
from spanboost.rows.row_keys import refuse_absent_key
from spanboost.theory.certificate import Witness

MOST = 1 << 17  # rows in a joined batch
DEPENDENT_PLOTS = ("plot_compare", "plot_certificate", "plot_intervals")  # need another option


class ProgressivePass:
    """One pass of models with one schema over a stream; results are those of the first model."""

    def __init__(
        self,
        args: Namespace,
        stream: Stream,
        models: Mapping[str, Model],
        tape: LossTape,
        outcomes: OutcomeTape | None,
        labels: LabelSums | None = None,
        intervals: IntervalTape | None = None,
    ) -> None:
        self.args, self.stream, self.models = args, stream, models
        self.tape, self.outcomes, self.intervals = tape, outcomes, intervals
        self.names = list(models)
        self.first = models[self.names[0]]
        self.labels = labels or LabelSums(self.first.loss_)
        self.positive = PositiveLabel(self.first.schema.target, self.labels)
        self.table = ProgressTable(args.quiet, self.names, stream, self.first)
        self.table.resume(tape)
        self.plots = plots.PlotCollector(args, self.first)
        detector = getattr(args, "drift", None)
        self.drift = None if detector is None else Drift(detector, self.first.loss_)
        several = getattr(args, "compare", None) is not None and len(self.names) > 1
        self.pairs = PairComparisons(self.names) if several else None
        self.positions: dict[str, Any] = {}  # after the last row, if the stream has positions
        self.began, self.before, self.compiled = time.perf_counter(), tape.rows, compile_seconds()

    def steps(self, every: int | None = None, rounds: int | None = None) -> Iterator[Step]:
        """Yield each batch after it is learned.

        every: batches end at each multiple of this number of rows.
        rounds: small batches are joined, up to the next multiple of this number of rows.
        """
        learn = not getattr(self.args, "test", False)
        with ExitStack() as stack:
            stack.callback(self.table.close)
            fit = row_filter([*self.models.values()], self.stream.problems, learn=learn)
            batches = self.stream.batches(
                self.first.schema, labelled=True, learn=learn, skip=self.tape.rows, filter_rows=fit
            )
            stack.enter_context(closing(batches))
            predictions = None
            if self.args.predictions is not None:
                opened = open_answers(self.args.predictions, self.first)
                predictions = stack.enter_context(opened)
            key = None if self.tape.rows else getattr(self.args, "key", None)
            checked = self.positive.refuse_misspelt(check_first_key(batches, key))
            parts = split_batches(checked, every, self.tape.rows)
            if rounds is not None:
                parts = join_small_batches(parts, rounds, self.tape.rows)
            if self.table.start_bar() and rounds is None:
                parts = pace_batches(parts)
            parts = self.plots.pieces(parts, self.tape.rows)
            started = self.first.labels.rows if isinstance(self.first, Model) else self.tape.rows
            earlier = started - self.tape.rows  # rows that the model had learned before this run
            current = CurrentRows()
            parts = current.follow(parts, lambda: earlier + self.tape.rows)
            stack.enter_context(current.name_lines())
            levels = () if self.intervals is None else self.intervals.levels
            try:
                for step in progressive(self.models, parts, self.tape, learn=learn, levels=levels):
                    answers = step.answers[self.names[0]]
                    self._count(step)
                    if self.pairs is not None:
                        self.pairs.add(step)
                    self.table.show(step)
                    if warning := self.positive.warning(self.tape.rows):
                        self.table.write(warning)
                    self.plots.watch(step, answers)
                    if predictions is not None:
                        predictions.add(answers)
                    yield step
            except DataError as error:
                raise current.locate(error) from None
            if self.tape.rows == 0 and not self.stream.resumed:
                raise StreamError(f"{self.stream.sources[0].name}: there are no rows")
            if self.tape.rows and self.args.positive is not None:
                self.positive.check()  # before a model is written

    def _count(self, step: Step) -> None:
        batch, answers = step.batch, step.answers[self.names[0]]
        assert batch.y is not None  # the stream yields labels
        self.positions |= batch.positions or ()
        weights = np.ones(batch.rows) if batch.weights is None else batch.weights
        self.labels.add(batch.y, weights)
        if self.outcomes is not None:
            self.outcomes.extend(batch.y, list(step.answers.values()), weights)
        if self.intervals is not None:
            each = [*step.answers.values()], [*step.quantiles.values()]
            self.intervals.extend(batch.y, weights, *each)
        if self.drift is not None:
            self.drift.add(losses_of(self.first, batch.y, answers), batch.y)

    def _result(self) -> dict[str, Any]:
        """Return all numbers of the pass, as --json prints them."""
        seconds = time.perf_counter() - self.began
        speed = Speed(self.tape.rows - self.before, seconds, compile_seconds() - self.compiled)
        skipped = self.stream.problems.count
        result = result_of(self.names, self.tape, self.labels, speed, skipped)
        if self.outcomes is not None:
            classes = class_names(self.first) if predicts_scores(self.first.loss_) else []
            parts = self.outcomes.parts(self.first.loss_)
            add_results(result, "metrics", metrics_as_json(self.names, parts, classes))
        if self.intervals is not None:
            add_results(result, "intervals", intervals_as_json(self.intervals, self.names))
        if self.drift is not None:
            result["drift"] = {"detector": self.drift.name, "rows": self.drift.moments}
        if self.pairs is not None:
            result["comparisons"] = self.pairs.as_json()
        return result

    def finish(self, witness: Witness | None = None, *, silent: bool) -> dict[str, Any]:
        """Print, write and return the results, with the certificate of the witness if given.

        silent: print nothing for people.
        """
        result, problems = self._result(), self.stream.problems
        moments = () if self.drift is None else self.drift.moments
        for message in problems.first:
            self.table.write(f"left out: {message}")
        shown = [format_summary(result, self.labels.label_sum)]
        if warning := warn_of_one_class(self.first.schema.target):
            self.table.write(warning)
        picture, band = None, None if self.intervals is None else picture_of(self.intervals)
        if witness is not None:
            certificate = witness.certificate(float(self.tape.last[1]))
            result["certificate"], picture = as_json(certificate), pictured(certificate)
            shown += ["", *describe(certificate)]
        if not silent:
            other = self.args.json or self.args.predictions == "-"  # is on standard output
            self.table.write_result("\n".join(shown), as_message=other)
        if self.args.json:
            print(json.dumps(result, indent=2, allow_nan=False))
        if self.args.plot is not None:
            curves = (self.names, self.tape, result["best_constant_loss"], moments)
            loss_curves.plot(*curves, self.args.plot)
        curves_of_pairs = {} if self.pairs is None else self.pairs.curves
        if getattr(self.args, "plot_compare", None) is not None:
            comparison_curves.plot(self.names[0], curves_of_pairs, self.args.plot_compare)
        drawn = self.plots.draw()
        if picture is not None and self.args.plot_certificate is not None:
            plot_regret(picture, self.args.plot_certificate)
        if band is not None and self.args.plot_intervals is not None:
            present_intervals(band, self.args.plot_intervals)
        if self.args.report is not None:
            files = [source.name for source in self.stream.sources]
            page = (self.args.words, files, self.models, self.tape, result, problems.first)
            report.save(self.args.report, report.page(*page, curves_of_pairs, picture, drawn, band))
        return result


def check_outputs(args: Namespace, stream: Stream, output: str | None = None) -> None:
    """Check that all requested files can be written, before anything is learned."""
    dependent = map(partial(_given, args), DEPENDENT_PLOTS)
    drawn = (args.plot, *dependent, *plots.plot_paths(args).values())
    written = (output, args.predictions, args.report, *drawn)
    check_apart([source.name for source in stream.sources], written)
    if output == "-":
        raise UsageError("-o must name a file; a model cannot be written to standard output")
    if output is not None:
        check_writable(output)
        check_replaced(output, "-o", with_model=True)
    if args.predictions is not None and getattr(args, "compare", None) is not None:
        raise UsageError("--predictions cannot be combined with --compare")
    if args.predictions is not None and getattr(args, "resume", False):
        raise UsageError(
            "--predictions cannot be combined with --resume: rows before the checkpoint would be "
            "missing"
        )
    if args.json and args.predictions == "-":
        raise UsageError(
            "--json and --predictions - both write to standard output; name a file for "
            "--predictions"
        )
    if args.predictions not in (None, "-"):
        check_writable(args.predictions)
        check_replaced(args.predictions, "--predictions", with_model=False)
    _check_plots(args)
    plots.check_plot_paths(args)
    if args.report is not None:
        report.check(args.report)


def _check_plots(args: Namespace) -> None:
    """Check that the options allow the plots that need other options."""
    if args.plot is not None:
        check_plot_path(args.plot)
    pairs, certificate, band = map(partial(_given, args), DEPENDENT_PLOTS)
    if pairs is not None:
        if "," not in (args.compare or "") and (args.compare is None or args.initial is None):
            raise UsageError("--plot-compare requires --compare with at least two models")
        check_plot_path(pairs)
    if certificate is not None:
        if not args.certificate:
            raise UsageError("--plot-certificate needs --certificate")
        check_plot_path(certificate)
    if band is not None:
        if not args.interval:
            raise UsageError("--plot-intervals needs --interval")
        check_plot_path(band)


def _given(args: Namespace, name: str) -> Any:
    return getattr(args, name, None)


def check_first_key(batches: Iterator[Batch], key: Any) -> Iterator[Batch]:
    """Yield batches; raise a UserError if no row of the first one has the key.

    key: the columns of --key; None to check nothing.
    """
    for number, batch in enumerate(batches):
        if number == 0 and key is not None:
            refuse_absent_key(batch.X, key)
        yield batch


def join_small_batches(batches: Iterator[Batch], every: int, rows: int) -> Iterator[Batch]:
    """Join batches up to each multiple of `every` rows; a batch never spans two files."""
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
    """Split batches at each multiple of `every` rows; `rows` rows came before them."""
    for batch in batches:
        first = 0
        while every and rows // every < (rows + batch.rows - first) // every:
            last = first + every - rows % every
            yield batch.part(first, last)
            rows, first = rows + last - first, last
        if first < batch.rows:
            yield batch.part(first, batch.rows) if first else batch
            rows += batch.rows - first
