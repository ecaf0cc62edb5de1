"""A stream: the rows of one file or many, in any format, read ahead by a thread of its own."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Any

from spanboost.data.batch import Batch
from spanboost.data.prefetch import prefetch
from spanboost.data.problems import Problems, StreamError
from spanboost.data.schema import Schema
from spanboost.data.source import Source, sources, suffix

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
_MEANT = {"vw": "VW text", "svmlight": "svmlight", "table": "tables", "json": "JSON lines"}


class Stream:
    """Rows in order, in batches; bad ones end it or are left out and counted (`problems`)."""

    def __init__(
        self,
        paths: Sequence[str],
        format: str | None = None,
        *,
        skip_bad: bool = False,
        delimiter: str | None = None,
        header: bool = True,
    ) -> None:
        self.sources = sources(paths)
        self.formats = [format or format_of(source) for source in self.sources]
        self.form = FORMS[self.formats[0]]
        for source, other in zip(self.sources, self.formats, strict=True):
            if FORMS[other] != self.form:
                raise StreamError(f"{source.name}: {other} does not go with {self.formats[0]}")
        self.problems = Problems(skip_bad)
        self.delimiter, self.header = delimiter, header

    @property
    def size(self) -> int | None:
        """Bytes of all files as they are stored; None where that is not known."""
        sizes = [source.size for source in self.sources]
        return None if None in sizes else sum(size or 0 for size in sizes)

    @property
    def position(self) -> int:
        """Bytes read so far."""
        return sum(source.position for source in self.sources)

    def fingerprint(self) -> list[Any]:
        """What tells these files from others: sizes and first bytes."""
        return [source.fingerprint() for source in self.sources]

    def batches(
        self,
        schema: Schema,
        *,
        labelled: bool,
        learn: bool = True,
        skip: int = 0,
        fit: Callable[[Batch], Batch] = lambda batch: batch,
    ) -> Generator[Batch, None, None]:
        """All rows but the first `skip`; read as the schema says, which may learn new categories.

        `fit` leaves out the rows that a model cannot read, once it has complained.
        """
        if schema.form != self.form:
            raise StreamError(
                f"{self.sources[0].name}: the model reads {_MEANT[schema.form]}, "
                f"not {_MEANT[self.form]}"
            )
        reader = partial(self._reader, schema=schema, labelled=labelled, learn=learn)
        return prefetch(_after(self._all(reader, fit), skip), 16)

    def _all(
        self, reader: Callable[[str], Any], fit: Callable[[Batch], Batch]
    ) -> Generator[Batch, None, None]:
        for source, format in zip(self.sources, self.formats, strict=True):
            with closing(reader(format).batches(source)) as batches:
                yield from (batch for batch in map(fit, batches) if batch.rows)

    def _reader(self, format: str, *, schema: Schema, labelled: bool, learn: bool) -> Any:
        # each format's own libraries are imported when it is met
        if format == "vw":
            from spanboost.data.formats.vw import VwReader

            return VwReader(schema, self.problems, labelled=labelled)
        if format == "svmlight":
            from spanboost.data.formats.svmlight import SvmlightReader

            return SvmlightReader(schema, self.problems, labelled=labelled)
        if format == "jsonl":
            from spanboost.data.formats.jsonl import JsonReader

            return JsonReader(schema, self.problems, labelled=labelled)
        if format in ("csv", "tsv"):
            from spanboost.data.formats.csv import CsvReader

            delimiter = self.delimiter or ("\t" if format == "tsv" else ",")
            return CsvReader(
                schema,
                self.problems,
                labelled=labelled,
                learn=learn,
                delimiter=delimiter,
                header=self.header,
            )
        from spanboost.data.formats.arrow import TableReader

        return TableReader(schema, self.problems, labelled=labelled, learn=learn)


def format_of(source: Source) -> str:
    """The format of a file, by its name."""
    found = SUFFIXES.get(suffix(source.name))
    if found is None:
        raise StreamError(
            f"{source.name}: its name does not say what it holds; give --format {'|'.join(FORMS)}"
        )
    return found


def _after(batches: Generator[Batch, None, None], skip: int) -> Iterator[Batch]:
    with closing(batches):
        for batch in batches:
            if skip >= batch.rows:
                skip -= batch.rows
                continue
            yield batch.part(skip, batch.rows) if skip else batch
            skip = 0
