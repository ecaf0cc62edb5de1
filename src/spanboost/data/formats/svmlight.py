"""svmlight's text, also libsvm's: `label qid:n index:value index:value ... # comment`.

Indices are taken as they stand, from 0 or from 1, and ascend within a row. A comment may follow,
or be a line of its own; a query's number may stand behind the label and is left out.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.data.formats.decimals import parse_number
from spanboost.data.formats.text_rows import (
    EMPTY,
    GOOD,
    WRONG,
    LineReader,
    ParseBuffers,
    finish_line,
    line_ends,
    skip_blank,
    word_end,
)

_HASH, _COLON = 35, 58
_QUERY = (113, 105, 100, _COLON)  # qid:
_LARGEST = 2**22 - 1  # of a table that is not hashed
_LARGEST_HASHED = 2**40 - 1  # what a block of rows takes

_WRONG = (
    "the label is missing",
    "{} is no number",
    "{} is not a whole number, a colon and a value",
    "the index of {} is too large: give -b BITS to hash it",
    "the index of {} is too large",
    "the indices do not ascend at {}",
    "the value {} is infinite, or too large a number",
)
_NO_LABEL, _NO_NUMBER, _NO_PAIR, _UNHASHED, _TOO_LARGE, _NOT_ASCENDING, _INFINITE = range(
    WRONG, WRONG + len(_WRONG)
)


@kernel
class SvmlightLines(NamedTuple):
    """Lines of svmlight's text."""

    labelled: bool
    largest: int  # index

    def parse_line(self, data: Array, p: int, row: int, room: ParseBuffers) -> tuple[int, int, int]:
        """Parse the line at p: GOOD, where the next begins, where the next row's features do.

        Or EMPTY and where the next begins; or what is wrong, and where that begins and ends.
        """
        while skip_blank(data, p):
            p += 1
        if _row_ends(data, p):
            return EMPTY, _next_line(data, p), 0
        start = p
        while not (data[p] == _COLON or skip_blank(data, p) or _row_ends(data, p)):
            p += 1
        end = p
        if data[p] == _COLON:  # the first feature
            if self.labelled:
                return _NO_LABEL, start, end
            p = start
        elif self.labelled:
            low, high, p = parse_number(data, start, room.powers)
            room.labels[row] = finish_line(low, high, start, p, room)
            room.weights[row] = 1
            if p != end:
                return _NO_NUMBER, start, end
        p = _behind_query(data, p)
        wrong, p, feature = _features(data, p, room.indptr[row], self.largest, room)
        if wrong != GOOD:
            return wrong, p, word_end(data, p)
        return GOOD, p, feature


@kernel
def _features(
    data: Array, p: int, feature: int, largest: int, room: ParseBuffers
) -> tuple[int, int, int]:
    """Read features up to the next line: GOOD or what is wrong, where, the next feature."""
    before = -1
    while True:
        while skip_blank(data, p):
            p += 1
        if _row_ends(data, p):
            return GOOD, _next_line(data, p), feature
        start, index = p, 0
        while 48 <= data[p] <= 57:
            index = 10 * index + int(data[p]) - 48
            if index > largest:
                return _UNHASHED if largest == _LARGEST else _TOO_LARGE, start, feature
            p += 1
        if p == start or data[p] != _COLON:
            return _NO_PAIR, start, feature
        if index <= before:
            return _NOT_ASCENDING, start, feature
        before = index
        start = p + 1
        low, high, p = parse_number(data, start, room.powers)
        value = finish_line(np.float32(low), np.float32(high), start, p, room)
        if p == start or not (skip_blank(data, p) or _row_ends(data, p)):
            return _NO_NUMBER, start, feature
        if math.isinf(np.float32(value)):
            return _INFINITE, start, feature
        room.indices[feature] = index
        room.values[feature] = value
        feature += 1


@kernel
def _behind_query(data: Array, p: int) -> int:
    """Where a query's number that begins at p, behind blanks, ends; p if there is none."""
    begin = p
    while skip_blank(data, p):
        p += 1
    for c in _QUERY:
        if data[p] != c:
            return begin
        p += 1
    while 48 <= data[p] <= 57:
        p += 1
    return p if skip_blank(data, p) or _row_ends(data, p) else begin


@kernel
def _row_ends(data: Array, p: int) -> bool:
    """Whether a comment, or nothing more, follows at p."""
    return data[p] == _HASH or line_ends(data, p)


@kernel
def _next_line(data: Array, p: int) -> int:
    while data[p] != 10:
        p += 1
    return p + 1


class SvmlightReader(LineReader):
    """Batches of rows from svmlight's text."""

    wrong = _WRONG

    def form(self) -> Any:
        """What parses a line."""
        hashed = self.schema.bits is not None
        return SvmlightLines(self.labelled, _LARGEST_HASHED if hashed else _LARGEST)
