"""Shared code for the text formats with one row per line: VW text and svmlight.

A line parser (`VwLines`, `SvmlightLines`) parses one line in compiled code. The loop `parse` writes
lines into arrays until a line is bad or contains a number that it cannot round with certainty.
Python code then handles that line.
"""

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import jit, kernel
from spanboost.data.batch import Batch
from spanboost.data.formats.decimals import powers_of_ten
from spanboost.data.formats.lines import Chunk, read_chunks
from spanboost.data.problems import Problems
from spanboost.data.schema import Schema
from spanboost.data.source import Source
from spanboost.rows.validation import Sparse

# outcomes of parsing; the error codes of each line parser start at FIRST_ERROR
GOOD, EMPTY, DONE, UNCERTAIN, FIRST_ERROR = range(5)


class ParseBuffers(NamedTuple):
    """Arrays for parsed lines."""

    labels: Array  # [rows]
    weights: Array  # [rows]
    lines: Array  # [rows] line numbers
    indptr: Array  # [rows + 1] where the features of each row begin
    indices: Array  # [features]
    values: Array  # [features]
    words: Array  # scratch: bounds of the words of a line
    powers: Array  # powers of ten, for `parse_number`
    uncertain: Array  # number of uncertain numbers on this line, and of those resolved by Python
    spans: Array  # [uncertain, 2] where each begins and ends
    exact_values: Array  # [uncertain] their values, as far as resolved


@jit
def parse(
    line_parser: Any, data: Array, p: int, line: int, row: int, buffers: ParseBuffers
) -> tuple[int, ...]:
    """Parse lines from position p on; `line` is the number of the first, `row` its row.

    `data` must end with a newline. Return the outcome (DONE, UNCERTAIN or an error code), the
    position and number of the line where parsing stopped, the next row, and the bounds of the
    invalid text.
    """
    while p < data.shape[0]:
        buffers.uncertain[0] = 0
        outcome, start, end = line_parser.parse_line(data, p, row, buffers)
        if buffers.uncertain[0] > buffers.uncertain[1]:
            return UNCERTAIN, p, line, row, start, end
        buffers.uncertain[1] = 0
        if outcome >= FIRST_ERROR:
            return outcome, p, line, row, start, end
        if outcome == GOOD:
            buffers.lines[row] = line
            row += 1
            buffers.indptr[row] = end
        p = start
        line += 1
    return DONE, p, line, row, p, p


@kernel
def resolve_number(low: Any, high: Any, start: int, end: int, buffers: ParseBuffers) -> Any:
    """Return the number at data[start:end], which lies between low and high.

    If low and high differ, the number is uncertain. Return its exact value if Python has resolved
    it; otherwise note it and return 0, which is always valid, so that one pass finds all uncertain
    numbers of a line.
    """
    if not low < high:
        return low
    k = buffers.uncertain[0]
    buffers.uncertain[0] = k + 1
    if k < buffers.uncertain[1]:
        return buffers.exact_values[k]
    if k < buffers.spans.shape[0]:
        buffers.spans[k, 0], buffers.spans[k, 1] = start, end
    return 0.0


@kernel
def is_blank(data: Array, p: int) -> bool:
    """Return whether there is a space or a tab at p."""
    return data[p] == 32 or data[p] == 9


@kernel
def at_line_end(data: Array, p: int) -> bool:
    """Return whether the line ends at p."""
    return data[p] == 10 or (data[p] == 13 and data[p + 1] == 10)


@kernel
def word_end(data: Array, p: int) -> int:
    """Return where the word at p ends, for a message."""
    while data[p] > 32:
        p += 1
    return p


class LineReader:
    """Reads files of a format with one row per line."""

    messages: ClassVar[tuple[str, ...]]  # of the error codes, with {} for the invalid text

    def __init__(
        self, schema: Schema, problems: Problems, *, labelled: bool, size: int = 1 << 20
    ) -> None:
        self.schema, self.problems, self.labelled, self.size = schema, problems, labelled, size
        self._line_parser = self.line_parser()
        self._buffers = _allocate(0)

    def line_parser(self) -> Any:
        """Return the compiled parser of a line."""
        raise NotImplementedError

    def batches(self, source: Source) -> Iterator[Batch]:
        """Yield the rows of a file, one batch per chunk."""
        for chunk in read_chunks(source, self.problems, size=self.size):
            batch = self.batch(chunk, source.name)
            if batch.rows:
                yield batch

    def batch(self, chunk: Chunk, file: str) -> Batch:
        """Return the good rows of a chunk; report the bad ones, in order."""
        text = chunk.data if chunk.data[-1:] == b"\n" else bytes(chunk.data) + b"\n"
        rows, bad = self._parse(text, chunk.first)
        buffers = self._buffers
        lines = buffers.lines[:rows].copy()
        y = keep = None
        if self.labelled:
            y = self.schema.target.encode_numbers(buffers.labels[:rows])
            keep = ~np.isnan(y)
            for row in np.flatnonzero(~keep):
                bad[int(lines[row])] = self.schema.target.error_message(float(buffers.labels[row]))
        for line in sorted(bad):
            self.problems.report(file, line, bad[line])
        weights = buffers.weights[:rows] if self.labelled else np.ones(0)
        batch = Batch(
            X=_sparse(buffers, rows),
            y=y,
            weights=None if (weights == 1).all() else weights.copy(),
            file=file,
            lines=lines,
        )
        return batch if keep is None or keep.all() else batch.take(keep)

    def _parse(self, text: Any, line: int) -> tuple[int, dict[int, str]]:
        """Parse lines into the buffers; return the number of rows, and messages by bad line.

        Unless bad rows are skipped, stop at the first bad line.
        """
        data = np.frombuffer(text, np.uint8)
        if len(self._buffers.lines) < len(text) // 2 + 1:
            self._buffers = _allocate(len(text))
        p = row = 0
        bad = dict[int, str]()
        while True:
            outcome, p, line, row, start, end = parse(
                self._line_parser, data, p, line, row, self._buffers
            )
            if outcome == UNCERTAIN:
                self._resolve_uncertain(text)
                continue
            if outcome == DONE:
                return row, bad
            bad[line] = self.messages[outcome - FIRST_ERROR].format(
                _show(bytes(text[start : min(end, start + 200)]))
            )
            if not self.problems.skip:
                return row, bad
            p, line = _next_line(text, p), line + 1

    def _resolve_uncertain(self, text: Any) -> None:
        """Resolve the uncertain numbers of a line with Python; enlarge the buffers if needed."""
        buffers = self._buffers
        count, resolved = buffers.uncertain
        noted = min(count, len(buffers.exact_values))
        for i in range(resolved, noted):
            buffers.exact_values[i] = float(bytes(text[buffers.spans[i, 0] : buffers.spans[i, 1]]))
        buffers.uncertain[1] = noted
        if noted < count:
            spans, exact_values = np.empty((count, 2), np.int64), np.empty(count)
            exact_values[:noted] = buffers.exact_values
            self._buffers = buffers._replace(spans=spans, exact_values=exact_values)


def _allocate(size: int) -> ParseBuffers:
    """Return buffers that are large enough for any text of `size` bytes.

    A row takes at least two bytes, and so does a feature. The buffers are nearly always far too
    large, but memory that is never written to costs nothing.
    """
    rows = features = size // 2 + 1
    return ParseBuffers(
        labels=np.empty(rows),
        weights=np.empty(rows),
        lines=np.empty(rows, np.int64),
        indptr=np.zeros(rows + 1, np.int64),
        indices=np.empty(features, np.int64),
        values=np.empty(features, np.float32),
        words=np.zeros((5, 2), np.int64),
        powers=powers_of_ten(),
        uncertain=np.zeros(2, np.int64),
        spans=np.empty((8, 2), np.int64),
        exact_values=np.empty(8),
    )


def _sparse(buffers: ParseBuffers, rows: int) -> Sparse:
    features = buffers.indptr[rows]
    return Sparse(
        indptr=buffers.indptr[: rows + 1].copy(),
        indices=buffers.indices[:features].copy(),
        data=buffers.values[:features].copy(),
        shape=(rows,),
    )


def _next_line(text: Any, p: int) -> int:
    """Return where the line after the one at p begins."""
    while (newline := bytes(text[p : p + 4096]).find(b"\n")) < 0:
        p += 4096
    return p + newline + 1


def _show(text: bytes) -> str:
    return f"{text.decode(errors='replace')!r:.40}"
