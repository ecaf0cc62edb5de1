"""Read the rows of files, message systems and databases, ahead of time in a thread."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any

from spanboost.data.batch import Batch
from spanboost.data.inputs import MESSAGES, SQL, find_inputs, has_positions
from spanboost.data.prefetch import prefetch
from spanboost.data.problems import Problems, StreamError
from spanboost.data.query_table import Query
from spanboost.data.schema import Schema
from spanboost.data.sniffing import (
    LIMIT,
    format_of_line,
    is_comment,
    is_json_array,
    is_json_over_lines,
)
from spanboost.data.source import suffix

SUFFIXES = {
    "vw": "vw",
    **dict.fromkeys(("svmlight", "libsvm", "svm"), "svmlight"),
    "csv": "csv",
    **dict.fromkeys(("tsv", "tab"), "tsv"),
    **dict.fromkeys(("parquet", "pq"), "parquet"),
    **dict.fromkeys(("arrow", "feather", "ipc"), "arrow"),
    **dict.fromkeys(("jsonl", "ndjson"), "jsonl"),
}
FORMS = {
    "vw": "vw",
    "svmlight": "svmlight",
    **dict.fromkeys(("csv", "tsv", "parquet", "arrow"), "table"),
    "jsonl": "json",
}
_LIVE_FORMS = {MESSAGES: "json", SQL: "table"}  # of inputs that are not files
_TITLES = {"vw": "VW text", "svmlight": "svmlight", "table": "tables", "json": "JSON Lines"}


class Stream:
    """Rows of some files, a message system or a query, in order.

    `problems` decides whether bad rows are errors or skipped.
    """

    def __init__(
        self,
        paths: Sequence[str],
        format: str | None = None,
        *,
        skip_bad: bool = False,
        delimiter: str | None = None,
        header: bool | None = None,
        decimal: str | None = None,
        query: Query | None = None,
        rows: int | None = None,
    ) -> None:
        """Open files; a format, delimiter, header or decimal mark that is None is found in them.

        query: of the rows, if the path is the address of a database.
        rows: number of rows to read; a message system is waited for until it has them.
        """
        self.sources, live = find_inputs(paths, query, wait=rows is not None)
        if live is not None and format is not None:
            raise StreamError(f"{self.sources[0].name}: --format is only for files")
        self.formats = [format or live or format_of(source) for source in self.sources]
        forms = FORMS | _LIVE_FORMS
        self.form = forms[self.formats[0]]
        self.limit = rows
        self.resumed = False  # whether reading begins after positions, not at the first row
        for source, other in zip(self.sources, self.formats, strict=True):
            if forms[other] != self.form:
                raise StreamError(
                    f"{source.name}: cannot read {other} and {self.formats[0]} files together"
                )
        self.problems = Problems(skip_bad)
        self._rows = self._position = 0  # rows read so far, ahead of their use; see position_after
        self.delimiter, self.header, self.decimal = delimiter, header, decimal

    @property
    def size(self) -> int | None:
        """Size of all files in bytes, as stored; None if unknown."""
        sizes = [source.size for source in self.sources]
        return None if None in sizes else sum(size or 0 for size in sizes)

    def position_after(self, rows: int) -> int:
        """Return about how many stored bytes the first rows take, never fewer than before.

        Files are read ahead, so the position in the files says little about small ones.
        """
        position = sum(source.position for source in self.sources)
        estimate = position * min(rows, self._rows) // max(self._rows, 1)
        self._position = max(self._position, estimate)
        return self._position

    @property
    def has_positions(self) -> bool:
        """Whether reading can begin after the positions of rows that were read before."""
        return has_positions(self.sources[0])

    @property
    def has_start(self) -> bool:
        """Whether the address of a topic or a stream says where to begin."""
        return getattr(self.sources[0], "has_start", False)

    def begin_after(self, positions: Mapping[str, Any]) -> None:
        """Read only the rows after some positions, from batches of an earlier run."""
        if self.has_positions:
            self.resumed = self.sources[0].begin_after(positions)

    def fingerprint(self) -> list[Any]:
        """Return sizes and checksums that tell these files from others."""
        return [source.fingerprint() for source in self.sources]

    def batches(
        self,
        schema: Schema,
        *,
        labelled: bool,
        learn: bool = True,
        skip: int = 0,
        keep: Sequence[str] = (),
        filter_rows: Callable[[Batch], Batch] = lambda batch: batch,
    ) -> Generator[Batch, None, None]:
        """Yield all rows after the first `skip`, or after positions; at most as many as the limit.

        Args:
            schema: How to read the rows. A new schema is completed from the first rows.
            labelled: Whether to read labels and weights.
            learn: Whether to add new categories to the schema.
            skip: Number of rows of an earlier run, which are skipped unless it left positions.
            keep: Columns to pass on as they are, in `Batch.kept`.
            filter_rows: Reports and removes the rows of a batch that a model cannot read.
        """
        if {schema.form, self.form} not in ({schema.form}, {"table", "json"}):
            raise StreamError(
                f"{self.sources[0].name}: the model reads {_TITLES[schema.form]}, "
                f"not {_TITLES[self.form]}"
            )
        if keep and self.form in ("vw", "svmlight"):
            raise StreamError(f"--keep requires named columns; {self.formats[0]} files have none")
        reader = partial(self._reader, schema=schema, labelled=labelled, learn=learn, keep=keep)
        batches = _skip_rows(self._read(reader, filter_rows), 0 if self.resumed else skip)
        if self.limit is not None:
            batches = _limit_rows(batches, self.limit - skip)
        return prefetch(batches, 16)

    def _read(
        self, reader: Callable[[str], Any], filter_rows: Callable[[Batch], Batch]
    ) -> Generator[Batch, None, None]:
        for source, format in zip(self.sources, self.formats, strict=True):
            with closing(reader(format).batches(source)) as batches:
                for batch in map(filter_rows, batches):
                    if self._rows == 0 and batch.rows:
                        self._check_later_files(source, reader)
                    self._rows += batch.rows
                    if batch.rows:
                        yield batch
        for note in self.problems.unknown.notes():
            self.problems.note(note)

    def _check_later_files(self, first: Any, reader: Callable[[str], Any]) -> None:
        """Raise a StreamError if a file after the first one lacks a column, before any is learned.

        Pipes and files at addresses are not opened ahead. With a limit, they may never be read.
        """
        later = self.sources[self.sources.index(first) + 1 :]
        formats = self.formats[-len(later) :] if later else []
        for source, format in zip(later, formats, strict=True):
            check = getattr(reader(format), "check_columns", None)
            if check is not None and source.is_on_disk and self.limit is None:
                check(source)
                source.position = 0

    def _reader(
        self, format: str, *, schema: Schema, labelled: bool, learn: bool, keep: Sequence[str]
    ) -> Any:
        # the libraries of a format are imported only when it is used
        if format == "vw":
            from spanboost.data.formats.vw import VwReader

            return VwReader(schema, self.problems, labelled=labelled)
        if format == "svmlight":
            from spanboost.data.formats.svmlight import SvmlightReader

            return SvmlightReader(schema, self.problems, labelled=labelled)
        if format in ("jsonl", MESSAGES):
            if schema.form == "table":
                from spanboost.data.formats.cross_forms import TableFromJson

                return TableFromJson(
                    schema, self.problems, labelled=labelled, learn=learn, keep=keep
                )
            from spanboost.data.formats.jsonl import JsonReader

            return JsonReader(schema, self.problems, labelled=labelled, keep=keep)
        reader = partial(self._table_reader, format, labelled=labelled, learn=learn, keep=keep)
        if schema.form == "json":
            from spanboost.data.formats.cross_forms import JsonFromTable

            return JsonFromTable(schema, labelled, reader)
        return reader(schema)

    def _table_reader(
        self, format: str, schema: Schema, *, labelled: bool, learn: bool, keep: Sequence[str]
    ) -> Any:
        if format == SQL:
            from spanboost.data.formats.sql import SqlReader

            return SqlReader(schema, self.problems, labelled=labelled, learn=learn, keep=keep)
        if format in ("csv", "tsv"):
            from spanboost.data.formats.csv import CsvReader

            delimiter = self.delimiter or ("\t" if format == "tsv" else None)
            return CsvReader(
                schema,
                self.problems,
                labelled=labelled,
                learn=learn,
                delimiter=delimiter,
                header=self.header,
                decimal=self.decimal,
                keep=keep,
            )
        from spanboost.data.formats.arrow import TableReader

        return TableReader(schema, self.problems, labelled=labelled, learn=learn, keep=keep)


def format_of(source: Any) -> str:
    """Return the format of a file, according to its name or else to its first line."""
    format = SUFFIXES.get(suffix(source.name))
    line = b"" if format is not None else source.first_line(LIMIT)
    if format is None and not line:
        raise StreamError(f"{source.name}: the input is empty; expected rows of data")
    if is_json_array(line):
        raise StreamError(
            f"{source.name}: the file is a JSON array; convert it to JSON Lines, one object on "
            "each line, with jq -c '.[]'"
        )
    if is_json_over_lines(line):
        raise StreamError(
            f"{source.name}: the JSON objects have several lines; convert them to JSON Lines, one "
            "object on each line, with jq -c ."
        )
    if is_comment(line):
        raise StreamError(
            f"{source.name}: the first line is a comment, which only svmlight files may have; use "
            "--format svmlight, or delete the line"
        )
    format = format or format_of_line(line)
    if format is None:
        raise StreamError(
            f"{source.name}: cannot tell the format from the name or the first line; use --format "
            f"{'|'.join(FORMS)}"
        )
    return format


def _limit_rows(batches: Generator[Batch, None, None], rows: int) -> Generator[Batch, None, None]:
    with closing(batches):
        while rows > 0 and (batch := next(batches, None)) is not None:
            yield batch.part(0, rows) if batch.rows > rows else batch
            rows -= batch.rows


def _skip_rows(batches: Generator[Batch, None, None], skip: int) -> Generator[Batch, None, None]:
    with closing(batches):
        for batch in batches:
            if skip >= batch.rows:
                skip -= batch.rows
                continue
            yield batch.part(skip, batch.rows) if skip else batch
            skip = 0
