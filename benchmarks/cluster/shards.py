"""Measure workers that read their own files: processor time for reading, learning and averaging."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from benchmarks import common
from benchmarks.cluster.clock import Clocked
from benchmarks.common import Stream
from spanboost import LinearSGD, SpanBoost
from spanboost.data.schema import Schema
from spanboost.data.target import NumberTarget
from spanboost.parallel.executor import pickle_model
from spanboost.parallel.shard_team import ShardTeam
from spanboost.parallel.shards import ShardFile, complete_schema, read_shard
from spanboost.parallel.team import EVERY

FORMATS = ("parquet", "csv")
WORKERS = (1, 2, 4, 8)
FILES = 16


class Row(NamedTuple):
    """A line of the table; times are of a processor, in nanoseconds per row."""

    set: str
    format: str
    workers: int
    bytes: float  # of a row in its file
    reading: float
    working: float  # reading and learning, of all workers
    driving: float  # of the command: dealing out files, and averaging
    snapshot: int  # bytes of a model
    estimated: float  # rows per second


def measure(name: str, format: str, stream: Stream) -> Iterator[Row]:
    """Measure teams on equal files; each worker is assumed to have its own processor."""
    rows = len(stream.y)
    with tempfile.TemporaryDirectory() as folder:
        files = write_files(stream, format, Path(folder))
        size = sum(Path(file.path).stat().st_size for file in files) / rows
        schema = Schema("table", NumberTarget(None), "label")
        complete_schema(files[0], schema)
        began = time.process_time()
        for file in files:
            read_shard(file, schema)
        reading = (time.process_time() - began) / rows
        list(new_team(files, 2, Clocked()).rounds())  # compiles the code
        for workers in WORKERS:
            clocked = Clocked()
            team = new_team(files, workers, clocked)
            list(team.rounds())
            working, driving = clocked.task_seconds() / rows, clocked.own_seconds() / rows
            estimated = 1 / (working / workers + driving)
            sizes = size, 1e9 * reading, 1e9 * working, 1e9 * driving
            snapshot = len(pickle_model(team.model()))
            yield Row(name, format, workers, *sizes, snapshot, estimated)


def write_files(stream: Stream, format: str, folder: Path) -> list[ShardFile]:
    """Write the rows to files of equal size."""
    files, writer = [], {"parquet": parquet.write_table, "csv": csv.write_csv}[format]
    for number, rows in enumerate(np.array_split(np.arange(len(stream.y)), FILES)):
        columns: dict[str, Any] = {f"x{j}": stream.X[rows, j] for j in range(stream.X.shape[1])}
        path = folder / f"{number}.{format}"
        writer(pa.table(columns | {"label": stream.y[rows]}), path)
        files.append(ShardFile(str(path), path.name, format, {}))
    return files


def new_team(files: list[ShardFile], workers: int, executor: Clocked) -> ShardTeam:
    """Return a team of 32 linear functions."""
    model = SpanBoost(LinearSGD(), n=32, label_range="auto")
    model.schema = Schema("table", NumberTarget(None), "label")
    complete_schema(files[0], model.schema)
    return ShardTeam(model, workers, files, EVERY, executor)


def show(rows: list[Row]) -> None:
    """Print the times, and the speed of each team."""
    head = ["data", "files", "workers", "bytes/row", "reading, ns/row", "workers, ns/row"]
    head += ["command, ns/row", "snapshot, bytes", "estimated rows/s"]
    lines = [(*row[:2], str(row.workers), *(f"{value:,.0f}" for value in row[3:])) for row in rows]
    common.show(head, lines)
