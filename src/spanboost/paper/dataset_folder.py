"""Data sets in a folder, NAME.parquet each; those that are not there can be downloaded into it.

A downloaded set is kept as a table of the same form. Its published files lie under `downloads`,
with their checksums in `downloads/checksums.json`: where one was publicly recorded it must be met;
else that of the first download is kept, and later ones must be the same. The table made of them
must have the content (content.py) that is known of 11 of the 14.
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

TIMEOUT = 60  # seconds without an answer
PIECE = 1 << 20


def usual_folder() -> Path:
    """Where data sets lie unless a folder is named."""
    named = os.environ.get("SPANBOOST_DATA")
    if named:
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "spanboost" / "data"


def file_of(one: DataSet, folder: Path) -> Path:
    """Where its table is, or would be."""
    return folder / f"{one.name}.parquet"


def read(one: DataSet, folder: Path) -> Any:
    """Its table."""
    import pyarrow as pa
    from pyarrow import parquet

    file = file_of(one, folder)
    try:
        table = parquet.read_table(file)
    except pa.ArrowException as error:
        raise UserError(f"{file}: it is no Parquet file: {error}") from None
    if table.num_rows < 2 or table.column_names[-1:] != ["label"]:
        raise UserError(f"{file}: its last column must be `label`, and it must have two rows")
    return table


def download(one: DataSet, folder: Path, tell: Callable[[int, int | None], None]) -> Path:
    """Fetch its published files and keep its table; `tell` hears of the bytes, so far and in all.

    What cannot be had, or is not what was published, is a UserError.
    """
    from pyarrow import parquet

    place = folder / "downloads"
    place.mkdir(parents=True, exist_ok=True)
    files = [_published(one, k, place, tell) for k in range(len(one.raw.addresses))]
    try:
        table = table_of(one.raw, files)
    except (ValueError, OSError) as error:  # Arrow's errors are of these kinds
        raise UserError(f"{one.name}: its files cannot be read: {error}") from None
    if one.content is not None and digest(table) != one.content:
        raise UserError(
            f"{one.name}: what was downloaded is not what was published in 2015: its values differ"
        )
    with atomic_write(file_of(one, folder)) as file:
        parquet.write_table(table, file, compression="zstd")
    return file_of(one, folder)


def _published(one: DataSet, k: int, place: Path, tell: Callable[[int, int | None], None]) -> bytes:
    """A published file, fetched once; its checksum is met, or noted if none is known."""
    address = one.raw.addresses[k]
    file = place / f"{one.name}.{k}.{address.rpartition('/')[2]}"
    data = file.read_bytes() if file.is_file() else _fetched(address, tell)
    notes = place / "checksums.json"
    known = json.loads(notes.read_text()) if notes.is_file() else {}
    checksum = one.raw.checksums[k] if one.raw.checksums else known.get(file.name)
    if checksum is None:
        known[file.name] = f"sha256:{hashlib.sha256(data).hexdigest()}"
        with atomic_write(notes) as out:
            out.write(json.dumps(known, indent=2).encode())
    elif hashlib.new(checksum.partition(":")[0], data).hexdigest() != checksum.partition(":")[2]:
        file.unlink(missing_ok=True)
        raise UserError(f"{one.name}: {address} has another checksum than {checksum}")
    if not file.is_file():
        with atomic_write(file) as out:
            out.write(data)
    return data


def _fetched(address: str, tell: Callable[[int, int | None], None]) -> bytes:
    data = bytearray()
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT) as answer:
            size = answer.headers.get("Content-Length")
            while piece := answer.read(PIECE):
                data += piece
                tell(len(data), int(size) if size else None)
    except (OSError, urllib.error.URLError) as error:
        reason = getattr(error, "reason", None) or error
        raise UserError(f"{address} cannot be had: {reason}") from None
    if size and len(data) != int(size):
        raise UserError(f"{address} broke off after {len(data):,} of {int(size):,} bytes")
    return bytes(data)
