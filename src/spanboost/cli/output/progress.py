"""What a person sees while a command runs: a table as Vowpal Wabbit prints it, and a bar.

All of it goes to standard error: standard output is for results. The bar is for terminals only.
"""

import sys
from typing import Any

import numpy as np

from spanboost.analysis.progressive import LossTape, Step, rows_to_show
from spanboost.data.schema import Schema
from spanboost.data.stream import Stream

_HEAD = """\
average  since         example        example        current        current  current
loss     last          counter         weight          label        predict features"""


class ProgressTable:
    """The progressive table and the bar, or nothing if `quiet`."""

    def __init__(self, quiet: bool, names: list[str], stream: Stream, schema: Schema) -> None:
        self.quiet, self.names, self.stream, self.schema = quiet, names, stream, schema
        self._before = np.zeros(1 + len(names))  # totals at the last line
        self._bar: Any = None
        self._started = False

    def go_on(self, tape: LossTape) -> None:
        """The last line was that of the rows before these; none if there are none."""
        if tape.rows:
            self._before = tape.at(1 << (tape.rows.bit_length() - 1))

    def say(self, text: str) -> None:
        """A line, above the bar if there is one."""
        if self.quiet:
            return
        try:
            if self._bar is not None:
                self._bar.write(text, file=sys.stderr)
            else:
                print(text, file=sys.stderr, flush=True)
        except OSError:  # nobody listens any more: no reason to give up what is being learned
            self.quiet = True

    def show(self, step: Step) -> None:
        """Lines for the rows that are due; the bar as far as the stream has been read."""
        if self.quiet:
            return
        if not self._started:
            self._start()
        for row in rows_to_show(step):
            self._line(step, row)
        if self._bar is not None:
            totals = step.totals[-1]
            rows = step.first + len(step.totals)
            loss = totals[1] / totals[0] if totals[0] else float("nan")
            self._bar.set_postfix_str(f"{rows:,} rows, loss {loss:.6g}", refresh=False)
            self._bar.update(self.stream.position - self._bar.n)

    def close(self) -> None:
        """No bar any more."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _start(self) -> None:
        self._started = True
        if sys.stderr.isatty():
            from tqdm import tqdm

            self._bar = tqdm(
                total=self.stream.size, unit="B", unit_scale=True, leave=False, file=sys.stderr
            )
        self.say(_reading(self.stream, self.schema))
        if len(self.names) == 1:
            self.say(f"learning with {self.names[0]}\n\n{_HEAD}")
        else:
            self.say(f"{'rows':>12}" + "".join(f"{name:>20}" for name in self.names))

    def _line(self, step: Step, row: int) -> None:
        totals, counter = step.totals[row], step.first + row + 1
        gained = totals - self._before
        self._before = totals
        if len(self.names) > 1:
            averages = totals[1:] / max(totals[0], 1e-300)
            self.say(f"{counter:>12,}" + "".join(f"{value:>20.6f}" for value in averages))
            return
        label = _shown(step.batch.y[row] if step.batch.y is not None else None)
        answer = _shown(step.answers[self.names[0]][row])
        self.say(
            f"{_ratio(totals):<8.6f} {_ratio(gained):<8.6f} {counter:>12} {totals[0]:>14.1f} "
            f"{label:>14} {answer:>14} {step.batch.count_active(row):>8}"
        )


def _reading(stream: Stream, schema: Schema) -> str:
    """What is read, and which column is the label; known once the first rows are."""
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
    return text


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _ratio(totals: Any) -> float:
    return float(totals[1] / totals[0]) if totals[0] > 0 else 0.0


def _shown(value: Any) -> str:
    if value is None:
        return "unknown"
    if np.ndim(value):  # scores of classes: the highest is the answer
        return str(int(np.argmax(value)))
    return f"{float(value):.4f}"
