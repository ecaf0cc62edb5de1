"""Read Vowpal Wabbit's text: `label weight base 'tag|namespace:weight name:value name |... ...`.

Names are hashed as VW hashes them. Values are multiplied by the weight of their namespace. As in
VW, features whose value is 0 or nan are omitted. Malformed lines that VW accepts with an
unintended meaning are bad rows here.
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
from spanboost.data.formats.vw_hashing import hash_name

_BAR, _COLON, _QUOTE, _SPACE = 124, 58, 39, 32
_BITS, _ONE = np.uint64(0xFFFFFFFF), np.uint64(1)

_MESSAGES = (
    "the line has no '|'",
    "the label is missing",
    "the label is missing ({} next to '|' is a tag)",
    "unexpected {} before '|'",
    "{} is not a number",
    "the weight must be between 0 and 1e19 (got {})",
    "initial predictions are not supported (got {})",
    "unexpected character {}",
    "the namespace {} has a weight but no name",
    "the weight of a namespace must be a finite number (got {})",
    "the value {} is infinite or too large",
)
(
    _NO_BAR,
    _NO_LABEL,
    _TAG_ONLY,
    _EXTRA_WORD,
    _NOT_A_NUMBER,
    _BAD_WEIGHT,
    _INITIAL_PREDICTION,
    _BAD_CHARACTER,
    _NAMELESS,
    _BAD_SCALE,
    _INFINITE,
) = range(FIRST_ERROR, FIRST_ERROR + len(_MESSAGES))


@kernel
class VwLines(NamedTuple):
    """Parser for a line of VW text."""

    labelled: bool

    def parse_line(
        self, data: Array, p: int, row: int, buffers: ParseBuffers
    ) -> tuple[int, int, int]:
        """Parse the line at p.

        Return one of:
        - GOOD, where the next line begins, the index of the next row's first feature;
        - EMPTY, where the next line begins, 0;
        - an error code, and the bounds of the invalid text.
        """
        count, p = _split_words(data, p, buffers)
        if data[p] != _BAR:
            return _classify_without_bar(data, p, count)
        error, start, end = _parse_label(data, p, row, count, buffers, self.labelled)
        if error != GOOD:
            return error, start, end
        feature = buffers.indptr[row]
        while data[p] == _BAR:
            start = p + 1
            space, p = hash_name(data, start, np.uint64(0))
            scale = 1.0
            if data[p] == _COLON:
                if p == start:
                    return _NAMELESS, start, word_end(data, p)
                start = p + 1
                scale, p = _parse_float32(data, start, buffers)
                if p == start or not math.isfinite(scale):
                    return _BAD_SCALE, start, word_end(data, start)
            error, p, feature = _parse_features(data, p, space, scale, feature, buffers)
            if error != GOOD:
                return error, p, p + 1 if error == _BAD_CHARACTER else word_end(data, p)
        return GOOD, p + 1, feature


@kernel
def _split_words(data: Array, p: int, buffers: ParseBuffers) -> tuple[int, int]:
    """Find the words from p to the first bar; return how many (5 or more: 5) and their end."""
    count = 0
    while True:
        while data[p] == _SPACE:
            p += 1
        if data[p] < _SPACE or data[p] == _BAR:
            return count, p
        count = min(count + 1, 5)
        buffers.words[count - 1, 0] = p
        while data[p] > _SPACE and data[p] != _BAR:
            p += 1
        buffers.words[count - 1, 1] = p


@kernel
def _classify_without_bar(data: Array, p: int, count: int) -> tuple[int, int, int]:
    """Return what `parse_line` does, for a line without a bar whose words end at p."""
    end = p
    while is_blank(data, end):
        end += 1
    if not at_line_end(data, end):
        return _BAD_CHARACTER, p, p + 1
    if count > 0:
        return _NO_BAR, p, p
    return EMPTY, end + (2 if data[end] == 13 else 1), 0


@kernel
def _parse_label(
    data: Array, bar: int, row: int, count: int, buffers: ParseBuffers, labelled: bool
) -> tuple[int, int, int]:
    """Parse the label and the weight before the bar; return GOOD or an error, and its bounds."""
    words = buffers.words
    last = words[max(count - 1, 0)]
    tag = count > 0 and (last[1] == bar or data[last[0]] == _QUOTE)
    count -= 1 if tag else 0
    if count > 3:
        return _EXTRA_WORD, words[3, 0], words[3, 1]
    if labelled and count == 0:
        return _TAG_ONLY if tag else _NO_LABEL, last[0], last[1]
    buffers.weights[row] = 1
    for i in range(0 if labelled else 2, count):
        start, end = words[i, 0], words[i, 1]
        low, high, stop = parse_number(data, start, buffers.powers)
        x = resolve_number(low, high, start, stop, buffers)
        if stop != end:
            return _NOT_A_NUMBER, start, end
        if i == 0:
            buffers.labels[row] = x
        elif i == 1:
            if not 0 <= x <= 1e19:
                return _BAD_WEIGHT, start, end
            buffers.weights[row] = x
        elif x != 0:
            return _INITIAL_PREDICTION, start, end
    return GOOD, bar, bar


@kernel
def _parse_features(
    data: Array, p: int, space: np.uint64, scale: float, feature: int, buffers: ParseBuffers
) -> tuple[int, int, int]:
    """Parse features up to the next bar or newline.

    Return GOOD or an error code, the position, and the index of the next feature.
    """
    unnamed = space
    while True:
        while is_blank(data, p):
            p += 1
        if data[p] == _BAR:
            return GOOD, p, feature
        if data[p] < _SPACE:
            if at_line_end(data, p):
                return GOOD, p + (1 if data[p] == 13 else 0), feature
            return _BAD_CHARACTER, p, feature
        start = p
        name, p = hash_name(data, start, space)
        value = scale
        if data[p] == _COLON:
            if p == start:
                name = unnamed
                unnamed = unnamed + _ONE & _BITS
            start = p + 1
            value, p = _parse_float32(data, start, buffers)
            if p == start:
                return _NOT_A_NUMBER, start, feature
            value = np.float64(np.float32(scale * value))
            if math.isinf(value):
                return _INFINITE, start, feature
        buffers.indices[feature] = np.int64(name)
        buffers.values[feature] = value
        feature += 1 if value < 0 or value > 0 else 0


@kernel
def _parse_float32(data: Array, start: int, buffers: ParseBuffers) -> tuple[float, int]:
    """Return the number at `start`, rounded to 32 bits, and its end; `start` if it is invalid."""
    low, high, p = parse_number(data, start, buffers.powers)
    x = resolve_number(np.float32(low), np.float32(high), start, p, buffers)
    if data[p] > _SPACE and data[p] != _BAR:
        p = start
    return np.float64(np.float32(x)), p


class VwReader(LineReader):
    """Reads VW text."""

    messages = _MESSAGES

    def line_parser(self) -> Any:
        """Return the compiled parser of a line."""
        return VwLines(self.labelled)
