"""What the formats with one row to a line have in common: VW text and svmlight.

A form (`VwLines`, `SvmlightLines`) parses one line in compiled code; the loop here parses lines
into arrays until one is bad, or a number on it is in doubt. What happens then happens in Python.
"""

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import jit, kernel
from spanboost.data.batch import Batch
from spanboost.data.formats.decimals import powers_of_ten
from spanboost.data.formats.lines import Chunk, chunks
from spanboost.data.problems import Problems
from spanboost.data.schema import Schema
from spanboost.data.source import Source
from spanboost.rows.validation import Sparse

# what a line turns out to be; every form numbers what can be wrong with one from WRONG on
GOOD, EMPTY, DONE, DOUBT, WRONG = range(5)


class ParseBuffers(NamedTuple):
    """Where parsed lines go."""

    labels: Array  # [rows]
    weights: Array  # [rows]
    lines: Array  # [rows] their numbers
    indptr: Array  # [rows + 1] where their features begin
    indices: Array  # [features]
    values: Array  # [features]
    words: Array  # scratch: where words of a line begin and end
    powers: Array  # of ten
    doubts: Array  # numbers in doubt on this line: how many, and how many are answered below
    spans: Array  # [doubts, 2] where each begins and ends
    answers: Array  # [doubts]


@jit
def parse(
    form: Any, data: Array, p: int, line: int, row: int, room: ParseBuffers
) -> tuple[int, ...]:
    """Parse lines from p on, the first of them numbered `line`, and write them from `row` on.

    `data` ends in a newline. Returns what ended it (DONE, DOUBT or what is wrong), the place and
    number of the line it happened on, the next row, and where what is wrong begins and ends.
    """
    while p < data.shape[0]:
        room.doubts[0] = 0
        found, start, end = form.parse_line(data, p, row, room)
        if room.doubts[0] > room.doubts[1]:
            return DOUBT, p, line, row, start, end
        room.doubts[1] = 0
        if found >= WRONG:
            return found, p, line, row, start, end
        if found == GOOD:
            room.lines[row] = line
            row += 1
            room.indptr[row] = end
        p = start
        line += 1
    return DONE, p, line, row, p, p


@kernel
def finish_line(low: Any, high: Any, start: int, end: int, room: ParseBuffers) -> Any:
    """A number between low and high that stands from start to end.

    Where these differ it is in doubt: the answer if there is one, else 0, which nothing stumbles
    over, so that all doubts of a line come to light at once.
    """
    if not low < high:
        return low
    doubt = room.doubts[0]
    room.doubts[0] = doubt + 1
    if doubt < room.doubts[1]:
        return room.answers[doubt]
    if doubt < room.spans.shape[0]:
        room.spans[doubt, 0], room.spans[doubt, 1] = start, end
    return 0.0


@kernel
def skip_blank(data: Array, p: int) -> bool:
    """Whether there is a blank at p."""
    return data[p] == 32 or data[p] == 9


@kernel
def line_ends(data: Array, p: int) -> bool:
    """Whether the line ends at p."""
    return data[p] == 10 or (data[p] == 13 and data[p + 1] == 10)


@kernel
def word_end(data: Array, p: int) -> int:
    """Where the word at p ends, for a message."""
    while data[p] > 32:
        p += 1
    return p


class LineReader:
    """Batches of rows from files of one form of lines."""

    wrong: ClassVar[tuple[str, ...]]  # what can be, from WRONG on, with {} for the text that is

    def __init__(
        self, schema: Schema, problems: Problems, *, labelled: bool, size: int = 1 << 20
    ) -> None:
        self.schema, self.problems, self.labelled, self.size = schema, problems, labelled, size
        self._form = self.form()
        self._room = _room(0)

    def form(self) -> Any:
        """What parses a line."""
        raise NotImplementedError

    def batches(self, source: Source) -> Iterator[Batch]:
        """The rows of a file, a batch to each of its chunks."""
        for chunk in chunks(source, self.problems, size=self.size):
            batch = self.batch(chunk, source.name)
            if batch.rows:
                yield batch

    def batch(self, chunk: Chunk, file: str) -> Batch:
        """The good rows of a chunk; the bad ones are reported, in order."""
        text = chunk.data if chunk.data[-1:] == b"\n" else bytes(chunk.data) + b"\n"
        rows, bad = self._parsed(text, chunk.first)
        room = self._room
        lines = room.lines[:rows].copy()
        y = keep = None
        if self.labelled:
            y = self.schema.target.numbers(room.labels[:rows])
            keep = ~np.isnan(y)
            for row in np.flatnonzero(~keep):
                bad[int(lines[row])] = self.schema.target.complaint(float(room.labels[row]))
        for line in sorted(bad):
            self.problems.bad(file, line, bad[line])
        weights = room.weights[:rows] if self.labelled else np.ones(0)
        batch = Batch(
            X=_sparse(room, rows),
            y=y,
            weights=None if (weights == 1).all() else weights.copy(),
            file=file,
            lines=lines,
        )
        return batch if keep is None or keep.all() else batch.only(keep)

    def _parsed(self, text: Any, line: int) -> tuple[int, dict[int, str]]:
        """Parse lines into the room: how many rows, and what is wrong with which line.

        Where the first bad line ends everything, so it does here.
        """
        data = np.frombuffer(text, np.uint8)
        if len(self._room.lines) < len(text) // 2 + 1:
            self._room = _room(len(text))
        p = row = 0
        bad = dict[int, str]()
        while True:
            found, p, line, row, start, end = parse(self._form, data, p, line, row, self._room)
            if found == DOUBT:
                self._answer(text)
                continue
            if found == DONE:
                return row, bad
            bad[line] = self.wrong[found - WRONG].format(
                _shown(bytes(text[start : min(end, start + 200)]))
            )
            if not self.problems.skip:
                return row, bad
            p, line = _next_line(text, p), line + 1

    def _answer(self, text: Any) -> None:
        """Ask Python for the numbers of a line that are in doubt, and make room for as many."""
        room = self._room
        count, answered = room.doubts
        noted = min(count, len(room.answers))
        for i in range(answered, noted):
            room.answers[i] = float(bytes(text[room.spans[i, 0] : room.spans[i, 1]]))
        room.doubts[1] = noted
        if noted < count:
            spans, answers = np.empty((count, 2), np.int64), np.empty(count)
            answers[:noted] = room.answers
            self._room = room._replace(spans=spans, answers=answers)


def _room(size: int) -> ParseBuffers:
    """Room for the lines of a text of `size` bytes.

    A row takes two bytes at least, and so does a feature. Nearly always that is far too much, but
    memory that is never written to costs nothing.
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
        doubts=np.zeros(2, np.int64),
        spans=np.empty((8, 2), np.int64),
        answers=np.empty(8),
    )


def _sparse(room: ParseBuffers, rows: int) -> Sparse:
    features = room.indptr[rows]
    return Sparse(
        indptr=room.indptr[: rows + 1].copy(),
        indices=room.indices[:features].copy(),
        data=room.values[:features].copy(),
        shape=(rows,),
    )


def _next_line(text: Any, p: int) -> int:
    """Where the line after that at p begins."""
    while (newline := bytes(text[p : p + 4096]).find(b"\n")) < 0:
        p += 4096
    return p + newline + 1


def _shown(text: bytes) -> str:
    return f"{text.decode(errors='replace')!r:.40}"
