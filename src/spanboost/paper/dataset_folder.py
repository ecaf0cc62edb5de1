"""A folder of data sets, one NAME.parquet each; missing data sets can be downloaded into it.

The published files of a downloaded data set are kept under `downloads`, with their checksums in
`downloads/checksums.json`. A file must match its publicly recorded checksum; without one, the
checksum of the first download is recorded, and later downloads must match it. For 11 of the 14 data
sets, the table built from the files must also have a known content digest (table_content.py).
"""

import hashlib
import json
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spanboost.atomic_files import atomic_write
from spanboost.errors import UserError
from spanboost.paper.datasets import DataSet
from spanboost.paper.raw_files import table_of
from spanboost.paper.table_content import digest

TIMEOUT = 60  # seconds without a response
PIECE = 1 << 20  # bytes read at a time


def default_folder() -> Path:
    """Return the folder of the data sets that is used if none is named."""
    named = os.environ.get("SPANBOOST_DATA")
    if named:
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "spanboost" / "data"


def table_path(one: DataSet, folder: Path) -> Path:
    """Return the path of the table of a data set."""
    return folder / f"{one.name}.parquet"


def read(one: DataSet, folder: Path) -> Any:
    """Read the table of a data set."""
    import pyarrow as pa
    from pyarrow import parquet

    file = table_path(one, folder)
    try:
        table = parquet.read_table(file)
    except pa.ArrowException as error:
        raise UserError(f"{file} is not a Parquet file: {error}") from None
    if table.num_rows < 2 or table.column_names[-1:] != ["label"]:
        raise UserError(
            f"{file}: the last column must be `label`, and at least two rows are needed"
        )
    return table


def download(one: DataSet, folder: Path, report: Callable[[int, int | None], None]) -> Path:
    """Download the published files of a data set, write its table, and return the table's path.

    report: called with the number of bytes so far and in total.

    Raises a UserError if a file is not available or differs from the published one.
    """
    from pyarrow import parquet

    downloads = folder / "downloads"
    downloads.mkdir(parents=True, exist_ok=True)
    files = [_published_file(one, k, downloads, report) for k in range(len(one.raw.addresses))]
    try:
        table = table_of(one.raw, files)
    except (ValueError, OSError) as error:  # Arrow raises these
        raise UserError(f"{one.name}: cannot read the downloaded files: {error}") from None
    if one.content is not None and digest(table) != one.content:
        raise UserError(f"{one.name}: the downloaded values differ from those published in 2015")
    with atomic_write(table_path(one, folder)) as file:
        parquet.write_table(table, file, compression="zstd")
    return table_path(one, folder)


def _published_file(
    one: DataSet, k: int, downloads: Path, report: Callable[[int, int | None], None]
) -> bytes:
    """Return a published file, downloaded if missing; check or record its checksum."""
    address = one.raw.addresses[k]
    file = downloads / f"{one.name}.{k}.{address.rpartition('/')[2]}"
    data = file.read_bytes() if file.is_file() else _download_file(address, report)
    record = downloads / "checksums.json"
    known = json.loads(record.read_text()) if record.is_file() else {}
    checksum = one.raw.checksums[k] if one.raw.checksums else known.get(file.name)
    if checksum is None:
        known[file.name] = f"sha256:{hashlib.sha256(data).hexdigest()}"
        with atomic_write(record) as out:
            out.write(json.dumps(known, indent=2).encode())
    elif hashlib.new(checksum.partition(":")[0], data).hexdigest() != checksum.partition(":")[2]:
        file.unlink(missing_ok=True)
        raise UserError(f"{one.name}: {address} does not match the checksum {checksum}")
    if not file.is_file():
        with atomic_write(file) as out:
            out.write(data)
    return data


def _download_file(address: str, report: Callable[[int, int | None], None]) -> bytes:
    data = bytearray()
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT) as answer:
            size = answer.headers.get("Content-Length")
            while piece := answer.read(PIECE):
                data += piece
                report(len(data), int(size) if size else None)
    except (OSError, urllib.error.URLError) as error:
        reason = getattr(error, "reason", None) or error
        raise UserError(f"{address} is not available: {reason}") from None
    if size and len(data) != int(size):
        raise UserError(f"{address}: the download ended after {len(data):,} of {int(size):,} bytes")
    return bytes(data)
