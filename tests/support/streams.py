"""Sample rows, and functions that write them in every supported format."""

import bz2
import csv
import gzip
import io
import json
import lzma
import random

import pyarrow as pa
from pyarrow import feather, ipc, parquet

FEATURES = ("size", "rooms", "age")


def houses(count, seed=0):
    """Yield rows whose label is a linear function. No number is 0: some formats omit zeros."""
    rng = random.Random(seed)
    for _ in range(count):
        row = {"size": rng.randrange(30, 200), "rooms": rng.randrange(1, 6), "age": rng.random()}
        yield row | {"label": 2.0 * row["size"] + 10.0 * row["rooms"] - 50.0 * row["age"]}


def flats(count, seed=0):
    """Yield rows with categories, missing values, counts and unusual strings."""
    rng = random.Random(seed)
    for row in houses(count, seed):
        row["city"] = rng.choice(["Ulm", "Bonn, am Rhein", 'the "Hague"', "Åbo", None])
        row["age"] = rng.choice([None, row["age"]])
        row["count"] = rng.choice([0, 1, 2, 3])
        yield row


def arrow(rows):
    return pa.table({name: [row[name] for row in rows] for name in rows[0]})


def as_csv(rows, delimiter=",", header=True, newline="\n"):
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator=newline)
    if header:
        writer.writerow(rows[0])
    writer.writerows(row.values() for row in rows)
    return out.getvalue().encode()


def as_parquet(rows, **options):
    out = io.BytesIO()
    parquet.write_table(arrow(rows), out, **options)
    return out.getvalue()


def as_arrow_file(rows):
    table, out = arrow(rows), io.BytesIO()
    with ipc.new_file(out, table.schema) as writer:
        writer.write_table(table, max_chunksize=37)
    return out.getvalue()


def as_arrow_stream(rows):
    table, out = arrow(rows), io.BytesIO()
    with ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


def as_feather(rows):
    out = io.BytesIO()
    feather.write_feather(arrow(rows), out, compression="lz4")
    return out.getvalue()


def as_jsonl(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def as_vw(rows):
    return "".join(
        f"{row['label']!r} |" + "".join(f" {name}:{row[name]!r}" for name in FEATURES) + "\n"
        for row in rows
    ).encode()


def as_svmlight(rows):
    return "".join(
        f"{row['label']!r}"
        + "".join(f" {index}:{row[name]!r}" for index, name in enumerate(FEATURES))
        + "\n"
        for row in rows
    ).encode()


def zstd(data):
    return pa.compress(data, "zstd", asbytes=True)


def put(folder, name, data):
    """Write a file, compressed according to its name; return its path."""
    path = folder / name
    pack = {"gz": gzip.compress, "zst": zstd, "bz2": bz2.compress, "xz": lzma.compress}.get(
        name.rpartition(".")[2], bytes
    )
    path.write_bytes(pack(data))
    return path


HOUSES, FLATS = list(houses(200)), list(flats(200))
LINEAR = ("--learner", "linear", "-n", "4")
EVERY = (*LINEAR, "--quiet")
