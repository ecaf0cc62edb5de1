"""Parquet, Arrow (files and streams) and Feather: tables that know the kinds of their columns."""

from collections.abc import Iterator
from itertools import repeat
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from pyarrow import ipc, parquet

from spanboost.data.batch import Batch
from spanboost.data.columns import Maker, Part, ahead, is_text
from spanboost.data.problems import Problems, StreamError
from spanboost.data.schema import Places, Schema
from spanboost.data.source import Source

ROWS = 1 << 16  # that are decoded at a time: fewer would take longer
VALUES = 1 << 22

_DAMAGE = (pa.ArrowException, OSError, ValueError, KeyError, TypeError, MemoryError, IndexError)


class TableReader:
    """Reads tables of Parquet and Arrow."""

    def __init__(
        self, schema: Schema, problems: Problems, *, labelled: bool, size: int = ROWS
    ) -> None:
        self.schema, self.problems, self.labelled, self.size = schema, problems, labelled, size

    def batches(self, source: Source) -> Iterator[Batch]:
        """The rows of a file."""
        with source.random_access() as file:
            table = _table(source.name, file)
            names = table.schema.names
            if self.schema.columns is None:
                self._decide(source.name, table.schema)
            places = self.schema.places(source.name, names, self.labelled)
            self._refuse_texts(source.name, table.schema, places)
            parts = self._parts(table, places)
            maker = Maker(self.schema, self.problems, source.name, self.labelled)
            try:
                for part in ahead(lambda parts: next(parts, None), repeat(parts), 1):
                    if part is None:
                        break
                    yield from maker.batches(part)
            except _DAMAGE as error:
                pass
