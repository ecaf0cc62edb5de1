"""Helpers for the tests of tables: sources in memory, results of readers, an oracle for CSV."""

import csv
import io
import math
import zlib
from typing import NamedTuple

import numpy as np

from spanboost import Rows
from spanboost.data.problems import StreamError
from spanboost.data.schema import Schema
from spanboost.data.source import Source
from spanboost.data.target import NumberTarget

NULLS = ("NaN", "nan", "null", "NULL", "None", "none")
MISSING = {"", "-", "--", ".", "?", "NA", "N/A", "n/a", "#N/A", "<NA>", *NULLS}


def source_of(data, name="x"):
    """Return a source with these bytes."""
    return Source(name, len(data), lambda: io.BytesIO(data))


def table_schema(target=None, **options):
    """Return a new schema of a table, without columns."""
    return Schema("table", target or NumberTarget(), **options)


class Result(NamedTuple):
    """The result of reading files, in Python objects, with None for NaN."""

    numbers: list
    codes: list
    y: list | None
    weights: list | None
    lines: list
    bad: list  # the number of bad rows, and the first messages
    error: str | None
    state: dict  # the schema as JSON values


def read_all(reader, *sources):
    """Return everything that a reader yields, up to the end or an error."""
    batches, error = [], None
    try:
        for source in sources:
            for batch in reader.batches(source):
                check_batch(batch, reader.labelled)
                batches.append(batch)
    except StreamError as caught:
        error = str(caught)
    return Result(
        numbers=[row for batch in batches for row in nan_to_none(batch_numbers(batch))],
        codes=[row for batch in batches for row in batch_codes(batch)],
        y=[y for batch in batches for y in ([] if batch.y is None else batch.y.tolist())],
        weights=[
            w
            for batch in batches
            for w in ([] if batch.weights is None else batch.weights.tolist())
        ],
        lines=[line for batch in batches for line in batch.lines.tolist()],
        bad=[reader.problems.count, *reader.problems.first],
        error=error,
        state=reader.schema.state(),
    )


def check_batch(batch, labelled):
    """Check the types and shapes of a batch."""
    numbers = batch.X
    if isinstance(batch.X, Rows):
        numbers = batch.X.numbers
        assert batch.X.codes.dtype == np.int64
        assert batch.X.codes.shape[0] == batch.rows
    if numbers is not None:
        assert numbers.dtype == np.float32
        assert numbers.flags.c_contiguous
        assert numbers.shape[0] == batch.rows
        assert not np.isinf(numbers).any()
    assert batch.rows > 0
    assert (batch.y is not None) == labelled
    for part in (batch.y, batch.weights):
        assert part is None or (part.shape == (batch.rows,) and np.isfinite(part).all())


def batch_numbers(batch):
    numbers = batch.X.numbers if isinstance(batch.X, Rows) else batch.X
    return np.zeros((batch.rows, 0)) if numbers is None else numbers


def batch_codes(batch):
    return batch.X.codes.tolist() if isinstance(batch.X, Rows) else [[]] * batch.rows


def nan_to_none(numbers):
    return [[None if math.isnan(v) else v for v in row] for row in numbers.tolist()]


def parse_field(text):
    """Return a field as a number: NaN if it is missing, None if it is not a number."""
    if text.strip() in MISSING:
        return math.nan
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def csv_oracle(text, *, label=None, bits=None, categorical=()):
    """Return the good rows of CSV and the lines of bad rows, by Python's csv module."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows, before = [], 0
    for fields in reader:
        if fields:
            rows.append((before + 1, fields))
        before = reader.line_num
    names = rows.pop(0)[1]
    label = names.index(label) if label else len(names) - 1
    features = [k for k in range(len(names)) if k != label]
    first = [fields for _, fields in rows if len(fields) == len(names)][:1000]
    texts = [
        k
        for k in features
        if names[k] in categorical or not mostly_numbers([fields[k] for fields in first])
    ]
    known = {k: {} for k in texts}
    good, bad = [], []
    for line, fields in rows:
        if len(fields) != len(names):
            bad.append(line)
            continue
        numbers = [parse_field(fields[k]) for k in features if k not in texts]
        y = parse_field(fields[label])
        if (
            None in numbers
            or not all(fits_float32(v) for v in numbers)
            or y is None
            or not abs(y) < math.inf
        ):
            bad.append(line)
            continue
        codes = [encode_category(known[k], fields[k], bits) for k in texts]
        numbers = [None if math.isnan(v) else float(np.float32(v)) for v in numbers]
        good.append((numbers, codes, y, line))
    return good, bad


def mostly_numbers(fields):
    """Return whether at least half of the fields that are not missing are numbers."""
    present = [field for field in fields if field.strip() not in MISSING]
    return sum(parse_field(field) is not None for field in present) >= len(present) / 2


def fits_float32(value):
    with np.errstate(over="ignore"):
        return not np.isinf(np.float32(value))


def encode_category(known, text, bits):
    if not text:
        return -1
    if bits is not None:
        return zlib.crc32(text.encode()) % 2**bits
    return known.setdefault(text, len(known))
