"""Later files without a column are refused before the first row is learned."""

import os
import threading
from contextlib import closing

import pytest
from streams import HOUSES, as_arrow_file, as_csv, as_parquet, put

from spanboost.data.problems import StreamError
from spanboost.data.schema import Schema
from spanboost.data.stream import Stream
from spanboost.data.target import NumberTarget

WRITERS = {"csv": as_csv, "parquet": as_parquet, "arrow": as_arrow_file}
QUIETLY = ("--learner", "linear", "--quiet")


def renamed(rows, name, other):
    """Return rows with another name for a column."""
    return [{other if key == name else key: value for key, value in row.items()} for row in rows]


def first_batch(paths, **options):
    """Return the first batch of some files."""
    stream = Stream([str(path) for path in paths], **options)
    with closing(stream.batches(Schema("table", NumberTarget()), labelled=True)) as batches:
        return next(batches)


@pytest.mark.parametrize("kind", WRITERS)
def test_a_column_that_a_later_file_lacks_is_named_before_the_first_rows(kind, tmp_path):
    good = put(tmp_path, "a.csv", as_csv(HOUSES))
    bad = put(tmp_path, f"c.{kind}", WRITERS[kind](renamed(HOUSES, "rooms", "romos")))
    for paths in ([good, bad], [good, good, bad]):
        with pytest.raises(StreamError) as raised:
            first_batch(paths)
        assert str(raised.value) == f"{bad}: column 'rooms' not found; did you mean 'romos'?"
    assert first_batch([good, bad], rows=5).rows == 5  # the second file is not needed


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_column_with_another_type_is_named_before_the_first_rows(kind, tmp_path):
    good = put(tmp_path, "a.csv", as_csv(HOUSES))
    texts = [row | {"rooms": "many"} for row in HOUSES]
    bad = put(tmp_path, f"b.{kind}", WRITERS[kind](texts))
    with pytest.raises(StreamError, match=r"b\..*: column 'rooms' must be numeric"):
        first_batch([good, bad])


@pytest.mark.parametrize("command", ["train", "predict"])
def test_commands_print_one_line_and_write_nothing(command, shell, tmp_path):
    good = put(tmp_path, "a.csv", as_csv(HOUSES))
    bad = put(tmp_path, "b.csv", as_csv(renamed(HOUSES, "rooms", "romos")))
    model, output = tmp_path / "m.sb", tmp_path / "output"
    words = ("train", good, bad, "-o", output, *QUIETLY)
    if command == "predict":
        shell("train", good, "-o", model, *QUIETLY)
        words = ("predict", good, bad, "-m", model)
    printed = shell(*words, status=2)
    assert printed.err == f"spanboost: {bad}: column 'rooms' not found; did you mean 'romos'?\n"
    assert printed.out == ""
    assert not output.exists()


def test_files_that_differ_only_in_the_order_of_columns_are_read(shell, tmp_path):
    turned = [dict(reversed(row.items())) for row in HOUSES]
    good = put(tmp_path, "a.csv", as_csv(HOUSES))
    more = [put(tmp_path, f"b.{kind}", WRITERS[kind](turned)) for kind in WRITERS]
    printed = shell("evaluate", good, *more, "--label", "label", *QUIETLY)
    assert f"number of examples = {4 * len(HOUSES)}\n" in printed.out


def test_a_later_pipe_is_not_opened_ahead(tmp_path):
    good = put(tmp_path, "a.csv", as_csv(HOUSES))
    pipe = tmp_path / "b.csv"
    os.mkfifo(pipe)
    bad = as_csv(renamed(HOUSES, "rooms", "romos"))
    writer = threading.Thread(target=lambda: pipe.write_bytes(bad), daemon=True)
    writer.start()
    stream = Stream([str(good), str(pipe)])
    batches = stream.batches(Schema("table", NumberTarget()), labelled=True)
    with closing(batches):
        assert next(batches).rows > 0
        with pytest.raises(StreamError, match="column 'rooms' not found"):
            list(batches)
    writer.join(timeout=30)
    assert not writer.is_alive()
