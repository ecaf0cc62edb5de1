"""Read svmlight's and libsvm's text: `label qid:n index:value index:value ... # comment`.

Indices are used unchanged, whether they start at 0 or at 1, and must increase within a row. A
comment may end a line or have its own line. A query id after the label is ignored.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.data.formats.decimals import parse_number
from spanboost.data.formats.text_rows import (
    EMPTY,
    FIRST_ERROR,
    GOOD,
    LineReader,
    ParseBuffers,
    at_line_end,
    is_blank,
    resolve_number,
    word_end,
)

_HASH, _COLON = 35, 58
_QUERY = (113, 105, 100, _COLON)  # qid:
_LARGEST = 2**22 - 1  # index, without hashing
_LARGEST_HASHED = 2**40 - 1  # index that a block of rows accepts

_MESSAGES = (
    "the label is missing",
    "{} is not a number",
    "expected INDEX:VALUE, got {}",
    "the index of {} is too large; use -b BITS to hash indices",
    "the index of {} is too large",
    "the indices must increase, but do not at {}",
    "the value {} is infinite or too large",
)
_NO_LABEL, _NOT_A_NUMBER, _NOT_A_PAIR, _UNHASHED, _TOO_LARGE, _NOT_INCREASING, _INFINITE = range(
    FIRST_ERROR, FIRST_ERROR + len(_MESSAGES)
)


@kernel
class SvmlightLines(NamedTuple):
    """Parser for a line of svmlight text."""

    labelled: bool
    largest: int  # the largest index allowed

    def parse_line(
        self, data: Array, p: int, row: int, buffers: ParseBuffers
    ) -> tuple[int, int, int]:
        """Parse the line at p.

        Return one of:
        - GOOD, where the next line begins, the index of the next row's first feature;
        - EMPTY, where the next line begins, 0;
        - an error code, and the bounds of the invalid text.
        """
        while is_blank(data, p):
            p += 1
        if _at_row_end(data, p):
            return EMPTY, _next_line(data, p), 0
        start = p
        while not (data[p] == _COLON or is_blank(data, p) or _at_row_end(data, p)):
            p += 1
        end = p
        if data[p] == _COLON:  # the first feature
            if self.labelled:
                return _NO_LABEL, start, end
            p = start
        elif self.labelled:
            low, high, p = parse_number(data, start, buffers.powers)
            buffers.labels[row] = resolve_number(low, high, start, p, buffers)
            buffers.weights[row] = 1
            if p != end:
                return _NOT_A_NUMBER, start, end
        p = _skip_query(data, p)
        error, p, feature = _parse_features(data, p, buffers.indptr[row], self.largest, buffers)
        if error != GOOD:
            return error, p, word_end(data, p)
        return GOOD, p, feature


@kernel
def _parse_features(
    data: Array, p: int, feature: int, largest: int, buffers: ParseBuffers
) -> tuple[int, int, int]:
    """Parse features up to the next line.

    Return GOOD or an error code, the position, and the index of the next feature.
    """
    before = -1
    while True:
        while is_blank(data, p):
            p += 1
        if _at_row_end(data, p):
            return GOOD, _next_line(data, p), feature
        start, index = p, 0
        while 48 <= data[p] <= 57:
            index = 10 * index + int(data[p]) - 48
            if index > largest:
                return _UNHASHED if largest == _LARGEST else _TOO_LARGE, start, feature
            p += 1
        if p == start or data[p] != _COLON:
            return _NOT_A_PAIR, start, feature
        if index <= before:
            return _NOT_INCREASING, start, feature
        before = index
        start = p + 1
        low, high, p = parse_number(data, start, buffers.powers)
        value = resolve_number(np.float32(low), np.float32(high), start, p, buffers)
        if p == start or not (is_blank(data, p) or _at_row_end(data, p)):
            return _NOT_A_NUMBER, start, feature
        if math.isinf(np.float32(value)):
            return _INFINITE, start, feature
        buffers.indices[feature] = index
        buffers.values[feature] = value
        feature += 1


@kernel
def _skip_query(data: Array, p: int) -> int:
    """Return where the query id after the blanks at p ends; p without a query id."""
    begin = p
    while is_blank(data, p):
        p += 1
    for c in _QUERY:
        if data[p] != c:
            return begin
        p += 1
    while 48 <= data[p] <= 57:
        p += 1
    return p if is_blank(data, p) or _at_row_end(data, p) else begin


@kernel
def _at_row_end(data: Array, p: int) -> bool:
    """Return whether a comment or the end of the line follows at p."""
    return data[p] == _HASH or at_line_end(data, p)


@kernel
def _next_line(data: Array, p: int) -> int:
    while data[p] != 10:
        p += 1
    return p + 1


class SvmlightReader(LineReader):
    """Reads svmlight text."""

    messages = _MESSAGES

    def line_parser(self) -> Any:
        """Return the compiled parser of a line."""
        hashed = self.schema.bits is not None
        return SvmlightLines(self.labelled, _LARGEST_HASHED if hashed else _LARGEST)
