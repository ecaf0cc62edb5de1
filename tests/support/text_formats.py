"""Helpers for the tests of VW text and svmlight: run readers on bytes, parse numbers in Python."""

import re

import numpy as np

from spanboost.compiling.kernels import plain
from spanboost.data.formats.lines import Chunk
from spanboost.data.problems import Problems
from spanboost.data.schema import Schema
from spanboost.data.target import NumberTarget

NUMBER = re.compile(
    rb"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|nan|inf(?:inity)?)", re.IGNORECASE
)


class RecordedProblems(Problems):
    """Skips bad rows and records all of them. `messages` maps line numbers to messages."""

    def __init__(self):
        super().__init__(skip=True)
        self.messages = {}

    def report(self, file, line, what):
        assert what
        assert line not in self.messages
        assert not self.messages or line > max(self.messages)
        self.messages[line] = what


def schema(form="vw", bits=None):
    return Schema(form, NumberTarget(), bits=bits)


def row_tuples(batches):
    """Return the rows of batches as a list of (line, label, weight, features)."""
    rows = []
    for batch in batches:
        assert len(batch.X.indptr) == batch.rows + 1
        assert batch.X.shape == (batch.rows,)
        assert batch.X.data.dtype == np.float32
        for i in range(batch.rows):
            part = slice(batch.X.indptr[i], batch.X.indptr[i + 1])
            rows.append(
                (
                    int(batch.lines[i]),
                    None if batch.y is None else float(batch.y[i]),
                    1.0 if batch.weights is None else float(batch.weights[i]),
                    [
                        *zip(
                            batch.X.indices[part].tolist(), batch.X.data[part].tolist(), strict=True
                        )
                    ],
                )
            )
    return rows


def read(reader_class, text, labelled=True, **options):
    """Return all rows of a text, and the messages about bad lines."""
    problems = RecordedProblems()
    reader = reader_class(schema(**options), problems, labelled=labelled)
    return row_tuples([reader.batch(Chunk(text, 1), "file")]), problems.messages


def read_as_plain_python(*args, **options):
    with plain(), np.errstate(over="ignore", invalid="ignore"):
        return read(*args, **options)


def expected(oracle, text, labelled=True):
    """Return rows and bad lines by an oracle.

    For a line it returns a row, returns None if the line is blank, or raises ValueError.
    """
    rows, bad = [], []
    lines = text.split(b"\n")
    for number, line in enumerate(lines, 1):
        try:
            row = oracle(line.removesuffix(b"\r"), labelled)
        except ValueError:
            bad.append(number)
        else:
            if row is not None:
                rows.append((number, *row))
    return rows, bad


def assert_same_rows(actual, expected):
    rows, bad = actual
    np.testing.assert_equal(rows, expected[0])
    assert [*bad] == expected[1]


def parse_float(text):
    if not NUMBER.fullmatch(text):
        raise ValueError(text)
    return float(text)


def as_float32(x):
    """Round a number to 32 bits; raise ValueError if the result is infinite."""
    with np.errstate(over="ignore"):
        x = float(np.float32(x))
    if np.isinf(x):
        raise ValueError(x)
    return x


def require_finite(x):
    if not np.isfinite(x):
        raise ValueError(x)
    return x
