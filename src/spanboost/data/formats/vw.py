"""Vowpal Wabbit's text: `label weight base 'tag|namespace:weight name:value name |... ...`.

Names are hashed as VW hashes them, values multiplied by the weight of their namespace; those that
are 0, or no number (nan), are left out, as VW does. What VW reads in a way nobody can have meant,
with or without a warning, is a bad row here.
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
from spanboost.data.formats.vw_hashing import hash_name

_BAR, _COLON, _QUOTE, _SPACE = 124, 58, 39, 32
_BITS, _ONE = np.uint64(0xFFFFFFFF), np.uint64(1)

_WRONG = (
    "there is no |",
    "the label is missing",
    "the label is missing: {} next to the bar is a tag",
    "{} is one word too many before the bar",
    "{} is no number",
    "the importance weight {} is not between 0 and 1e19",
    "an initial prediction is not supported: {}",
    "the character {} is out of place",
    "a namespace with a weight has no name: {}",
    "the weight of a namespace, {}, is no finite number",
    "the value {} is infinite, or too large a number",
)
(
    _NO_BAR,
    _NO_LABEL,
    _ONLY_TAG,
    _MANY,
    _NO_NUMBER,
    _WEIGHT,
    _BASE,
    _ODD,
    _NAMELESS,
    _SCALE,
    _INFINITE,
) = range(WRONG, WRONG + len(_WRONG))


@kernel
class VwLines(NamedTuple):
    """Lines of VW text."""

    labelled: bool

    def parse_line(self, data: Array, p: int, row: int, room: ParseBuffers) -> tuple[int, int, int]:
        """Parse the line at p: GOOD, where the next begins, where the next row's features do.

        Or EMPTY and where the next begins; or what is wrong, and where that begins and ends.
        """
        count, p = _words(data, p, room)
        if data[p] != _BAR:
            return _without_bar(data, p, count)
        wrong, start, end = _label(data, p, row, count, room, self.labelled)
        if wrong != GOOD:
            return wrong, start, end
        feature = room.indptr[row]
        while data[p] == _BAR:
            start = p + 1
            space, p = hash_name(data, start, np.uint64(0))
            scale = 1.0
            if data[p] == _COLON:
                if p == start:
                    return _NAMELESS, start, word_end(data, p)
                start = p + 1
                scale, p = _number(data, start, room)
                if p == start or not math.isfinite(scale):
                    return _SCALE, start, word_end(data, start)
            wrong, p, feature = _features(data, p, space, scale, feature, room)
            if wrong != GOOD:
                return wrong, p, p + 1 if wrong == _ODD else word_end(data, p)
        return GOOD, p + 1, feature


@kernel
def _words(data: Array, p: int, room: ParseBuffers) -> tuple[int, int]:
    """Words from p to the first bar: how many (5 stands for more), and where they end."""
    count = 0
    while True:
        while data[p] == _SPACE:
            p += 1
        if data[p] < _SPACE or data[p] == _BAR:
            return count, p
        count = min(count + 1, 5)
        room.words[count - 1, 0] = p
        while data[p] > _SPACE and data[p] != _BAR:
            p += 1
        room.words[count - 1, 1] = p


@kernel
def _without_bar(data: Array, p: int, count: int) -> tuple[int, int, int]:
    """What a line is, as `parse_line` says it, whose first words end at p with no bar."""
    end = p
    while skip_blank(data, end):
        end += 1
    if not line_ends(data, end):
        return _ODD, p, p + 1
    if count > 0:
        return _NO_BAR, p, p
    return EMPTY, end + (2 if data[end] == 13 else 1), 0


@kernel
def _label(
    data: Array, bar: int, row: int, count: int, room: ParseBuffers, labelled: bool
) -> tuple[int, int, int]:
    """Read the label and the weight among the words before the bar: GOOD, or what is wrong."""
    words = room.words
    last = words[max(count - 1, 0)]
    tag = count > 0 and (last[1] == bar or data[last[0]] == _QUOTE)
    count -= 1 if tag else 0
    if count > 3:
        return _MANY, words[3, 0], words[3, 1]
    if labelled and count == 0:
        return _ONLY_TAG if tag else _NO_LABEL, last[0], last[1]
    room.weights[row] = 1
    for i in range(0 if labelled else 2, count):
        start, end = words[i, 0], words[i, 1]
        low, high, stop = parse_number(data, start, room.powers)
        x = finish_line(low, high, start, stop, room)
        if stop != end:
            return _NO_NUMBER, start, end
        if i == 0:
            room.labels[row] = x
        elif i == 1:
            if not 0 <= x <= 1e19:
                return _WEIGHT, start, end
            room.weights[row] = x
        elif x != 0:
            return _BASE, start, end
    return GOOD, bar, bar


@kernel
def _features(
    data: Array, p: int, space: np.uint64, scale: float, feature: int, room: ParseBuffers
) -> tuple[int, int, int]:
    """Read features up to the next bar or newline: GOOD or what is wrong, where, the next one."""
    unnamed = space
    while True:
        while skip_blank(data, p):
            p += 1
        if data[p] == _BAR:
            return GOOD, p, feature
        if data[p] < _SPACE:
            if line_ends(data, p):
                return GOOD, p + (1 if data[p] == 13 else 0), feature
            return _ODD, p, feature
        start = p
        name, p = hash_name(data, start, space)
        value = scale
        if data[p] == _COLON:
            if p == start:
                name = unnamed
                unnamed = unnamed + _ONE & _BITS
            start = p + 1
            value, p = _number(data, start, room)
            if p == start:
                return _NO_NUMBER, start, feature
            value = np.float64(np.float32(scale * value))
            if math.isinf(value):
                return _INFINITE, start, feature
        room.indices[feature] = np.int64(name)
        room.values[feature] = value
        feature += 1 if value < 0 or value > 0 else 0


@kernel
def _number(data: Array, start: int, room: ParseBuffers) -> tuple[float, int]:
    """The number at `start`, with the precision of 32 bits, and its end; `start` if it is none."""
    low, high, p = parse_number(data, start, room.powers)
    x = finish_line(np.float32(low), np.float32(high), start, p, room)
    if data[p] > _SPACE and data[p] != _BAR:
        p = start
    return np.float64(np.float32(x)), p


class VwReader(LineReader):
    """Batches of rows from VW text."""

    wrong = _WRONG

    def form(self) -> Any:
        """What parses a line."""
        return VwLines(self.labelled)
