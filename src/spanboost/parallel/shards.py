"""Shards: files that the workers read themselves, so that their rows never pass through the driver.

A worker reads a whole file with the schema that the driver has sent, and numbers categories and
labels that are not in it on its own. The driver gets only their names. It adds them to the schema,
and the rows get its numbers when they are learned. A task that reads a file can run again anywhere.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.data.batch import Batch, concatenate
from spanboost.data.problems import StreamError
from spanboost.data.schema import Schema
from spanboost.data.stream import Stream
from spanboost.errors import DataError, capture_warnings
from spanboost.models.row_losses import losses_of
from spanboost.parallel.executor import pickle_model, unpickle_model
from spanboost.rows.block import Rows


class ShardFile(NamedTuple):
    """A file, and how to read it."""

    path: str  # as the workers open it
    name: str  # as messages show it
    format: str
    options: dict[str, Any]  # of `Stream`


class ShardFacts(NamedTuple):
    """What the driver knows about the rows of a file."""

    rows: int
    first_learned: int  # the first row with a positive weight; the number of rows without one
    categories: list[list[str]]  # of each column of categories, those that the schema lacks
    labels: dict[str, float]  # labels that the schema lacks, and their numbers in the rows
    skipped: int  # bad rows that were left out
    problems: list[str]  # the first of them


class Renumbering(NamedTuple):
    """The numbers of the schema for new categories and labels of a file."""

    categories: list[Array]  # of each column, for the new numbers in the file, in order
    known: list[int]  # of each column, how many numbers have not changed
    labels: dict[float, float]  # those that differ


class PieceResult(NamedTuple):
    """The result of learning some rows of a file."""

    rows: int
    weight: float
    loss: float  # the weighted sum; each row is predicted before it is learned
    warnings: list[str]


def complete_schema(file: ShardFile, schema: Schema) -> None:
    """Choose the columns of a schema from the first rows of a file, without their categories.

    Rows are read ahead, so how many categories were seen depends on time.
    """
    own = copy.deepcopy(schema)
    stream = Stream([file.path], file.format, **file.options)
    with _named(file), closing(stream.batches(own, labelled=True)) as batches:
        next(batches, None)
    for column in own.columns or ():
        column.codes.clear()
    schema.label, schema.columns = own.label, own.columns
    schema.decimal, schema.signs = own.decimal, own.signs


def read_shard(file: ShardFile, schema: Schema) -> tuple[Batch | None, ShardFacts]:
    """Read all rows of a file; None if it has none."""
    own = copy.deepcopy(schema)
    stream = Stream([file.path], file.format, **file.options)
    with _named(file), closing(stream.batches(own, labelled=True)) as batches:
        read = list(batches)
    pairs = zip(own.categories, schema.categories, strict=True)
    new = [[*one.codes][len(known.codes) :] for one, known in pairs]
    values = [value for value in own.target.values if value not in schema.target.values]
    labels = {value: own.target.encode_text(value) for value in values}
    problems = stream.problems
    shown = [message.replace(file.path, file.name) for message in problems.first]
    if not read:
        return None, ShardFacts(0, 0, new, labels, problems.count, shown)
    batch = concatenate(read)._replace(file=file.name)
    learned = np.ones(batch.rows, bool) if batch.weights is None else batch.weights > 0
    first = int(learned.argmax()) if learned.any() else batch.rows
    return batch, ShardFacts(batch.rows, first, new, labels, problems.count, shown)


@contextmanager
def _named(file: ShardFile) -> Iterator[None]:
    """Show the name of a file in errors, not the path by which the workers open it."""
    try:
        yield
    except StreamError as error:
        raise StreamError(str(error).replace(file.path, file.name)) from None


def add_new_names(schema: Schema, sent: list[int], facts: ShardFacts, file: str) -> Renumbering:
    """Add the new categories and labels of a file to the schema; return their numbers.

    sent: how many categories of each column the schema had when the file was read.
    """
    pairs = zip(schema.categories, facts.categories, strict=True)
    codes = [np.array(schema.encode(one, texts, learn=True), np.int64) for one, texts in pairs]
    labels = {}
    for value, own in facts.labels.items():
        number = schema.target.encode_text(value)
        if np.isnan(number):
            column = f"column {schema.label!r:.40}: " if schema.form == "table" else ""
            raise StreamError(f"{file}: {column}{schema.target.error_message(value)}")
        if number != own:
            labels[own] = number
    return Renumbering(codes, sent, labels)


def learn_piece(
    state: bytes, end: int, batch: Batch, first: int, last: int, numbers: Renumbering
) -> tuple[bytes, PieceResult]:
    """Learn the rows first <= t < last of a file; return the new snapshot and the losses.

    end: number of rows that all workers have learned after this round.
    """
    model, piece = unpickle_model(state), renumber(batch.part(first, last), numbers)
    y, weights = piece.labels, piece.weights
    model.labels.rows = 0  # warnings name a row of the piece
    try:
        answers, caught = capture_warnings(lambda: model.learn_many(piece.X, y, weights))
    except DataError as error:
        raise piece.locate(error) from None
    model.labels.rows = end
    each = np.ones(piece.rows) if weights is None else weights
    loss = float((each * losses_of(model, y, answers)).sum())
    shown = [f"{piece.file}:{piece.lines[one.row]}: {one.what}" for one in caught]
    return pickle_model(model), PieceResult(piece.rows, float(each.sum()), loss, shown)


def renumber(batch: Batch, numbers: Renumbering) -> Batch:
    """Return a batch with the numbers of the schema for categories and labels."""
    X, y = batch.X, batch.labels
    if isinstance(X, Rows):
        codes = np.array(X.codes)
        for j, (known, new) in enumerate(zip(numbers.known, numbers.categories, strict=True)):
            unknown = codes[:, j] >= known
            if len(new):
                codes[unknown, j] = new[codes[unknown, j] - known]
        X = Rows(X.numbers, codes)
    if numbers.labels:
        y = np.array([numbers.labels.get(label, label) for label in y.tolist()])
    return batch._replace(X=X, y=y)
