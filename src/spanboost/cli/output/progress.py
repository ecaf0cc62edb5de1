"""The progress of a command: a table in the format of Vowpal Wabbit, and a progress bar.

Both go to standard error, because standard output is for results. The bar is for terminals only.
"""

import sys
from argparse import Namespace
from contextlib import suppress
from typing import Any

import numpy as np

from spanboost.analysis.progressive import LossTape, Step, rows_to_show, sums_up_to
from spanboost.compiling.arrays import Array
from spanboost.data.schema import Schema
from spanboost.data.stream import Stream
from spanboost.losses import Softmax, predicts_scores
from spanboost.models.model import Model
from spanboost.models.predictions import class_names

_HEAD = """\
average  since         example        example        current        current  current
loss     last          counter         weight          label        predict features"""

SHORT = 1e9  # numbers from here on are printed with an exponent


class ProgressTable:
    """Prints the progressive table and the bar, or nothing if `quiet`.

    Labels and predictions in the table are those of the first model.
    """

    def __init__(self, quiet: bool, names: list[str], stream: Stream, first: Model) -> None:
        self.quiet, self.names, self.stream, self.first = quiet, names, stream, first
        self._since = np.zeros(1 + len(names))  # sums of the rows after the last printed line
        self._bar: Any = None
        self._started = False

    def resume(self, tape: LossTape) -> None:
        """Continue the table after the rows of a resumed run."""
        if tape.rows:
            last = 1 << (tape.rows.bit_length() - 1)
            self._since = tape.sums([last, tape.rows])[0]

    def write(self, text: str) -> None:
        """Print a line, above the bar if there is one."""
        if not self.quiet:
            self._print(text)

    def write_result(self, text: str, *, as_message: bool) -> None:
        """Print the result to standard output, even if `quiet`; as a message, to standard error.

        The empty line below the table belongs to the table, not to the result.
        """
        self.write("")
        if as_message:
            self._print(text)
        else:
            print(text)

    def _print(self, text: str) -> None:
        try:
            if self._bar is not None:
                self._bar.write(text, file=sys.stderr)
            else:
                print(text, file=sys.stderr, flush=True)
        except OSError:  # standard error is closed: keep learning without output
            self.quiet = True

    def start_bar(self) -> bool:
        """Show the bar, if this is a terminal; return whether it is shown."""
        if self.quiet or not sys.stderr.isatty():
            return False
        from tqdm import tqdm

        self._bar = tqdm(
            total=self.stream.size, unit="B", unit_scale=True, leave=False, file=sys.stderr
        )
        self._bar.set_postfix_str("0 rows")
        return True

    def show(self, step: Step) -> None:
        """Print the lines that are due, and move the bar to the position in the stream."""
        if not self._started:
            self._start()
        if self.quiet:
            return
        rows = list(rows_to_show(step))
        gained, self._since = sums_up_to((row + 1 for row in rows), self._since, step.gains)
        for row, sums in zip(rows, gained, strict=True):
            self._line(step, row, sums)
        if self._bar is not None:
            totals = step.totals[-1]
            last = step.first + len(step.totals)
            loss = totals[1] / totals[0] if totals[0] else float("nan")
            self._bar.set_postfix_str(f"{last:,} rows, loss {loss:z.6g}", refresh=False)
            self._bar.update(self.stream.position_after(last) - self._bar.n)

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _start(self) -> None:
        self._started = True
        self.write(_describe_input(self.stream, self.first.schema))
        for note in self.stream.problems.notes:  # also if `quiet`: the results depend on it
            self._print(f"note: {note}")
        if len(self.names) == 1:
            self.write(f"learning with {self.names[0]}\n\n{_HEAD}")
        else:
            self.write(f"{'rows':>12}" + "".join(f"{name:>20}" for name in self.names))

    def _line(self, step: Step, row: int, gained: Array) -> None:
        totals, counter = step.totals[row], step.first + row + 1
        if len(self.names) > 1:
            averages = totals[1:] / max(totals[0], 1e-300)
            self.write(f"{counter:>12,}" + "".join(f"{_short(one):>20}" for one in averages))
            return
        label, answer = self._describe(step.batch.labels[row], step.answers[self.names[0]][row])
        self.write(
            f"{_ratio(totals):<8} {_ratio(gained):<8} {counter:>12} {totals[0]:>14.1f} "
            f"{label:>14.14} {answer:>14.14} {step.batch.count_active(row):>8}"
        )

    def _describe(self, label: float, answer: Any) -> tuple[str, str]:
        """Return a label and a prediction as text: numbers, or the names of classes."""
        loss = self.first.loss_
        if not predicts_scores(loss):
            return _short(label, 4), _short(answer, 4)
        names = class_names(self.first)
        if isinstance(loss, Softmax):
            return names[int(label)], names[int(np.argmax(answer))]
        return names[int(label > 0)], names[int(answer > 0)]


def _describe_input(stream: Stream, schema: Schema) -> str:
    """Return the files, the label and the number of features, known after the first rows."""
    files = stream.sources[0].name
    if len(stream.sources) > 1:
        files += f" and {len(stream.sources) - 1:,} more"
    text = f"reading {files} as {stream.formats[0]}"
    label = schema.label or ("label" if schema.form == "json" else None)
    if label is not None:
        text += f"; the label is {label!r}"
    if schema.columns is not None:
        numeric = _count(len(schema.numbers), "numeric feature")
        text += f"; {numeric}, {_count(len(schema.categories), 'categorical feature')}"
    if schema.times:
        text += f", {_count(len(schema.times), 'column')} of times"
    return text


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _ratio(totals: Array) -> str:
    return _short(totals[1] / totals[0] if totals[0] > 0 else 0.0)


def _short(number: float, digits: int = 6) -> str:
    """Return a number with this many decimal places; one from 1e9 on has an exponent."""
    return f"{number:.{digits}f}" if abs(number) < SHORT else f"{number:.2e}"


def log(args: Namespace, text: str) -> None:
    """Print a line to standard error, unless --quiet."""
    if not args.quiet:
        with suppress(OSError):  # standard error may be closed
            print(text, file=sys.stderr, flush=True)
