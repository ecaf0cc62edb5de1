"""Read published files as tables: features in file order, `label` last, strings as categories."""

import bz2
import gzip
import io
import tarfile
import zipfile
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spanboost.errors import UserError
from spanboost.paper import lzw


class Raw(NamedTuple):
    """Where a data set is published, and how to read its files."""

    addresses: tuple[str, ...]  # in the order of rows: training before test
    checksums: tuple[str, ...] = ()  # "sha256:..." or "md5:...", as publicly recorded
    member: str | None = None  # the file to read from an archive
    delimiter: str = ","
    header: bool = False
    decimal: str = "."
    comment: str = ""  # lines that begin with this are not data
    broken: str = ""  # lines that contain this are left out
    label: int = -1  # column of the label
    ignored: tuple[int, ...] = ()  # columns to leave out
    missing: tuple[str, ...] = ()  # numbers that mean a missing value
    ending: str = ""  # a suffix of some labels, to be removed
    rows: int | None = None  # number of rows to read from the start; None for all
    svmlight: int = 0  # number of feature columns of a svmlight file; 0 for CSV


def table_of(raw: Raw, files: Sequence[bytes]) -> Any:
    """Return the table of a data set from the bytes of its files."""
    import pyarrow as pa

    read = _svmlight if raw.svmlight else _csv
    tables = [read(raw, unpack_file(data, raw.member)) for data in files]
    table = pa.concat_tables(tables, promote_options="permissive")
    return table.slice(0, raw.rows).unify_dictionaries().combine_chunks()


def unpack_file(data: bytes, member: str | None) -> bytes:
    """Return the decompressed content of a file, or of one member of an archive."""
    if data[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return archive.read(_find_member(archive.namelist(), member))
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    elif data[:3] == b"BZh":
        data = bz2.decompress(data)
    elif data[:2] == lzw.MAGIC:
        data = lzw.unpack(data)
    if member is None:
        return data
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        file = archive.extractfile(_find_member(archive.getnames(), member))
        if file is None:
            raise UserError(f"{member} is not a file in the archive")
        return file.read()


def _find_member(names: Sequence[str], member: str | None) -> str:
    """Return the name that ends in the member's name: some archives add a folder."""
    for name in names:
        if member is not None and f"/{name}".endswith(f"/{member}"):
            return name
    raise UserError(f"the archive does not contain {member}")


def _csv(raw: Raw, data: bytes) -> Any:
    from pyarrow import compute, csv

    lines = data.splitlines(keepends=True)
    if raw.comment or raw.broken:
        comment, broken = raw.comment.encode(), raw.broken.encode()
        data_lines = (line for line in lines if not (comment and line.startswith(comment)))
        data = b"".join(line for line in data_lines if not (broken and broken in line))
    table = csv.read_csv(
        io.BytesIO(data),
        csv.ReadOptions(autogenerate_column_names=True, skip_rows=int(raw.header)),
        csv.ParseOptions(delimiter=raw.delimiter),
        csv.ConvertOptions(decimal_point=raw.decimal, null_values=list(raw.missing)),
    )
    names = table.column_names
    label = names[raw.label]
    order = [n for j, n in enumerate(names) if n != label and j not in raw.ignored]
    columns = []
    for name in (*order, label):
        column = table.column(name)
        if str(column.type) == "string":
            column = compute.utf8_trim_whitespace(column)
            if name == label and raw.ending:
                column = compute.utf8_rtrim(column, raw.ending)
            column = compute.dictionary_encode(column)
        columns.append(column)
    return _table(columns)


def _svmlight(raw: Raw, data: bytes) -> Any:
    lines = data.decode("ascii").splitlines()
    X = np.zeros((len(lines), raw.svmlight + 1), np.float32)
    for row, line in zip(X, lines, strict=True):
        label, *entries = line.split()
        row[-1] = float(label)
        for entry in entries:
            column, value = entry.split(":")
            row[int(column) - 1] = float(value)
    return _table(list(X.T))


def _table(columns: Sequence[Any]) -> Any:
    import pyarrow as pa

    names = [f"f{j}" for j in range(1, len(columns))]
    return pa.table(dict(zip([*names, "label"], columns, strict=True)))
