"""What the tests of VW text and svmlight share: readers on bytes, numbers in plain Python."""

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


class Recorded(Problems):
    """Skips, and remembers everything."""

    def __init__(self):
        super().__init__(skip=True)
        self.all = {}

    def bad(self, file, line, what):
        assert what
        assert line not in self.all
        assert not self.all or line > max(self.all)
        self.all[line] = what


def schema(form="vw", bits=None):
    return Schema(form, NumberTarget(), bits=bits)


def rows_of(batches):
    """Batches as a list of (line, label, weight, features)."""
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


def read(reader, text, labelled=True, **options):
    """All rows of a text, and the lines that are bad."""
    problems = Recorded()
    made = reader(schema(**options), problems, labelled=labelled)
    return rows_of([made.batch(Chunk(text, 1), "file")]), problems.all


def read_as_plain_python(*args, **options):
    with plain(), np.errstate(over="ignore", invalid="ignore"):
        return read(*args, **options)


def expected(oracle, text, labelled=True):
    """The same, by an oracle that makes of a line a row, None or a ValueError."""
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


def assert_same(found, wanted):
    rows, bad = found
    np.testing.assert_equal(rows, wanted[0])
    assert [*bad] == wanted[1]


def as_number(text):
    if not NUMBER.fullmatch(text):
        raise ValueError(text)
    return float(text)


def single(x):
    """A number in 32 bits, not infinite."""
    with np.errstate(over="ignore"):
        x = float(np.float32(x))
    if np.isinf(x):
        raise ValueError(x)
    return x


def finite(x):
    if not np.isfinite(x):
        raise ValueError(x)
    return x
