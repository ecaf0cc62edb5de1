"""The rows of a query give the model of the same rows in a Parquet file."""

import contextlib
import datetime
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from decimal import Decimal

import pyarrow as pa
import pytest
from databases import postgres_server
from pyarrow import parquet
from serving import wait_until

from spanboost.cli.main import main
from spanboost.data.messages.table_source import TableSource
from spanboost.data.problems import StreamError
from spanboost.data.query_table import Query, QueryTable, decode_position, encode_position
from spanboost.models.files import load, read_run, to_bytes

sqlalchemy = pytest.importorskip("sqlalchemy", reason="needs sqlalchemy")
pytestmark = pytest.mark.process
OPTIONS = ("--learner", "stumps", "-n", "4", "--quiet")
QUERY = "SELECT id, size, city, rooms, built, price FROM houses"
UUIDS = "00000000-0000-0000-0000-10000000000{:x}".format
COLUMNS = "id INTEGER PRIMARY KEY, size DOUBLE PRECISION, city VARCHAR(20), rooms INTEGER, " + (
    "built TIMESTAMP, price DECIMAL(10, 2)"
)


@pytest.fixture(scope="module")
def postgres():
    with postgres_server() as address:
        yield address


@pytest.fixture(params=["sqlite", "duckdb", "postgresql"])
def database(request, tmp_path):
    """The address of a database without tables."""
    if request.param == "postgresql":
        address = request.getfixturevalue("postgres")
        execute(address, "DROP TABLE IF EXISTS houses")
        return address
    if request.param == "duckdb":
        pytest.importorskip("duckdb_engine", reason="needs duckdb-engine")
    address = f"{request.param}:///{tmp_path / 'houses.db'}"
    execute(address, "SELECT 1")  # creates the file
    return address


def execute(address, statement, rows=()):
    engine = sqlalchemy.create_engine(
        address.replace("postgresql:", "postgresql+psycopg:"), poolclass=sqlalchemy.pool.NullPool
    )
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text(statement), *([[*rows]] if rows else []))
    engine.dispose()


def draw_rows(first, last):
    """Return rows with missing values."""
    rng = random.Random(first)
    rows = []
    for k in range(first, last):
        size, city = rng.random() if k % 7 else None, rng.choice(["Ulm", "Bonn", None])
        moment = datetime.datetime(2020, 1, 1) + datetime.timedelta(hours=13 * k)
        rows.append(
            {
                "id": 10 * k,
                "size": size,
                "city": city,
                "rooms": rng.randrange(5) if k % 5 else None,
                "built": moment,
                "price": Decimal(f"{100 * (size or 0.5) + 7 * (city == 'Ulm'):.2f}"),
            }
        )
    return rows


def fill(address, rows, create=True):
    if create:
        execute(address, f"CREATE TABLE houses ({COLUMNS})")
    values = [
        row | {"built": row["built"].isoformat(" "), "price": str(row["price"])} for row in rows
    ]
    execute(
        address,
        "INSERT INTO houses VALUES (:id, :size, :city, :rooms, :built, :price)",
        values,
    )


def model_of(rows, folder, *options):
    """Return the bytes of the model that learns rows from a Parquet file."""
    path = folder / "rows.parquet"
    table = pa.Table.from_pylist([row | {"price": float(row["price"])} for row in rows])
    parquet.write_table(table, path)
    words = [str(path), "-o", str(folder / "file.sb"), "--ignore", "id", *OPTIONS, *options]
    assert main(["train", *words]) == 0
    return to_bytes(load(folder / "file.sb"))


def train(address, output, *options, query=QUERY, column="id"):
    words = ["--query", query, *(["--resume-column", column] if column else []), *options]
    return main(["train", address, "-o", str(output), *OPTIONS, *words])


def test_a_query_gives_the_model_of_its_rows(database, tmp_path):
    rows = draw_rows(1, 200)
    fill(database, rows)
    assert train(database, tmp_path / "m.sb") == 0
    assert to_bytes(load(tmp_path / "m.sb")) == model_of(rows, tmp_path)
    (position,) = read_run(tmp_path / "m.sb")["positions"].values()
    assert position == 1990
    assert train(database, tmp_path / "n.sb", "--ignore", "id", column=None) == 0
    assert to_bytes(load(tmp_path / "n.sb")) == model_of(rows, tmp_path)
    assert read_run(tmp_path / "n.sb") is None


def test_a_later_run_learns_only_new_rows(database, tmp_path, capsys):
    rows, path = draw_rows(1, 120), tmp_path / "m.sb"
    fill(database, rows[:80])
    assert train(database, path) == 0
    fill(database, rows[80:], create=False)
    more = ["train", database, "-i", str(path), "-o", str(path), "--resume-column", "id"]
    assert main([*more, "--query", f" {QUERY} ;\n"]) == 0
    assert to_bytes(load(path)) == model_of(rows, tmp_path)
    capsys.readouterr()
    assert main([*more, "--query", QUERY]) == 0
    output = capsys.readouterr().err
    assert "there are no new rows" in output
    assert "s3cret" not in output
    assert main([*more, "--query", f"{QUERY} WHERE id > 5"]) == 2
    assert "belongs to another query" in capsys.readouterr().err


@pytest.mark.parametrize("column", ["built", "code"])
def test_other_columns_to_resume_from(database, tmp_path, column):
    """Times and texts; SQLite has no type of times, so there they are texts."""
    rows, path = draw_rows(1, 60), tmp_path / "m.sb"
    fill(database, rows)
    code = "'c' || CAST(1000 + id AS VARCHAR(9))"
    query = f"SELECT size, rooms, built, {code} AS code, price FROM houses"
    assert train(database, path, "--rows", "25", query=query, column=column) == 0
    words = ["train", database, "-i", str(path), "-o", str(path), "--resume-column", column]
    assert main([*words, "--query", query, "--quiet"]) == 0
    whole = tmp_path / "whole.sb"
    assert train(database, whole, query=query, column=column) == 0
    assert to_bytes(load(path)) == to_bytes(load(whole))


def test_an_interrupted_run_resumes(database, tmp_path, monkeypatch, capsys):
    rows, path = draw_rows(1, 150), tmp_path / "m.sb"
    fill(database, rows)
    from spanboost.cli.checkpoints import Checkpoints

    save, saved = Checkpoints.save, []

    def interrupt(self, *arguments):
        save(self, *arguments)
        saved.append(self)
        if len(saved) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoints, "save", interrupt)
    assert train(database, path, "--checkpoint-every", "40") == 130
    monkeypatch.setattr(Checkpoints, "save", save)
    assert train(database, path, "--checkpoint-every", "40", "--resume") == 0
    assert to_bytes(load(path)) == model_of(rows, tmp_path)
    capsys.readouterr()
    assert train(database, path, "--checkpoint-every", "40", column=None) == 2
    assert "--checkpoint-every requires --resume-column" in capsys.readouterr().err


def test_rows_are_read_in_the_order_of_the_column(database, tmp_path):
    rows = draw_rows(1, 50)
    fill(database, random.Random(1).sample(rows, len(rows)))
    assert train(database, tmp_path / "m.sb", query=f"{QUERY} -- unordered") == 0
    assert to_bytes(load(tmp_path / "m.sb")) == model_of(rows, tmp_path)


@pytest.mark.parametrize(
    ("query", "column", "message"),
    [
        (QUERY, "idd", "the query has no column 'idd'; did you mean 'id'?"),
        (
            "SELECT NULLIF(id, 10) AS id, price FROM houses",
            "id",
            "is empty; --resume-column needs a column with a different value",
        ),
        ("SELECT id / 20 * 20 AS k, size, price FROM houses", "k", "in more than one row"),
        ("SELECT nothing FROM houses", "id", "nothing"),
        ("SELECT * FROM nowhere", "id", "nowhere"),
        ("SELECT id, price FROM houses WHERE id < 0", "id", "there are no rows"),
    ],
)
def test_queries_that_cannot_be_read(database, tmp_path, capsys, query, column, message):
    fill(database, draw_rows(1, 20))
    query = query.replace("/ 20 *", "// 20 *") if database.startswith("duckdb") else query
    assert train(database, tmp_path / "m.sb", query=query, column=column) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert "s3cret" not in error
    assert not (tmp_path / "m.sb").exists()


def test_equal_values_are_noticed_where_a_run_continues(database, tmp_path, capsys):
    rows, path = draw_rows(1, 30), tmp_path / "m.sb"
    fill(database, rows[:20])
    query = "SELECT CASE WHEN id > 200 THEN 200 ELSE id END AS k, size, price FROM houses"
    assert train(database, path, query=query, column="k") == 0
    fill(database, rows[20:21], create=False)
    words = ["train", database, "-i", str(path), "-o", str(path), "--resume-column", "k"]
    assert main([*words, "--query", query]) == 2
    assert "'k' is 200 in more than one row" in capsys.readouterr().err


def test_mixed_types_are_refused(tmp_path, capsys):
    address = f"sqlite:///{tmp_path / 'x.db'}"
    execute(address, "CREATE TABLE t (id INTEGER, a, b)")
    execute(address, "INSERT INTO t VALUES (1, 1, 1), (2, 'x', 2), (3, 2.5, 3)")
    words = ["evaluate", address, "--resume-column", "id", *OPTIONS, "--query"]
    assert main([*words, "SELECT * FROM t"]) == 2
    error = capsys.readouterr().err
    assert "column 'a' has values of different types" in error
    assert "CAST" in error
    assert main([*words, "SELECT id, CAST(a AS TEXT) AS a, b FROM t"]) == 0


@pytest.mark.parametrize("column", ["id", None])
def test_text_in_columns_of_numbers_is_skipped(tmp_path, monkeypatch, capsys, column):
    monkeypatch.setattr("spanboost.data.query_table.ROWS", 4)
    address = f"sqlite:///{tmp_path / 'x.db'}"
    execute(address, "CREATE TABLE t (id INTEGER, a, y)")
    values = ", ".join(f"({10 * k}, {k}, {2 * k})" for k in range(1, 10))
    execute(address, f"INSERT INTO t VALUES {values}")
    execute(address, "UPDATE t SET a = 'n/a' WHERE id IN (20, 70)")
    execute(address, "UPDATE t SET y = 'none' WHERE id = 90")
    words = ["evaluate", address, *OPTIONS[:-1], "--query", "SELECT * FROM t", "--label", "y"]
    words += ["--resume-column", column] if column else ["--ignore", "id"]
    assert main([*words, "--on-error", "skip", "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["examples"] == 6
    for k, name, value in ((2, "a", "n/a"), (7, "a", "n/a"), (9, "y", "none")):
        where = f"row where 'id' is {10 * k}: " if column else ""
        line = f"x.db:{k}: {where}column '{name}' is '{value}'; expected a number"
        assert line in printed.err
    execute(address, "DELETE FROM t WHERE a = 'n/a' OR y = 'none'")
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["examples"] == 6


def test_a_missing_label_is_reported_with_the_column_to_resume_from(tmp_path, capsys):
    address = f"sqlite:///{tmp_path / 'x.db'}"
    execute(address, "CREATE TABLE t (id INTEGER, a, y)")
    execute(address, "INSERT INTO t VALUES (70, 1, 1), (80, 2, 2), (90, 3, NULL)")
    words = ["evaluate", address, *OPTIONS[:-1], "--query", "SELECT * FROM t", "--label", "y"]
    assert main([*words, "--resume-column", "id"]) == 2
    expected = "x.db:3: row where 'id' is 90: column 'y': the label is missing"
    assert expected in capsys.readouterr().err


def test_types_that_change_between_parts(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("spanboost.data.query_table.ROWS", 2)
    address = f"sqlite:///{tmp_path / 'x.db'}"
    execute(address, "CREATE TABLE t (id INTEGER, a, t, b)")
    execute(
        address,
        "INSERT INTO t VALUES (1, 1, 'p', 1), (2, 2, 'q', 2), (3, 2.5, NULL, 3), (4, NULL, 'p', 4)",
    )
    words = ["evaluate", address, "--resume-column", "id", *OPTIONS, "--query", "SELECT * FROM t"]
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["examples"] == 4
    execute(address, "INSERT INTO t VALUES (5, 'z', 'p', 5)")
    assert main(words) == 2
    assert "column 'a' has values of different types" in capsys.readouterr().err


def duck(tmp_path, values):
    duckdb = pytest.importorskip("duckdb", reason="needs duckdb")
    with duckdb.connect(str(tmp_path / "x.db")) as database:
        database.execute("CREATE OR REPLACE TABLE t AS " + values)
    return f"duckdb:///{tmp_path / 'x.db'}"


@pytest.mark.parametrize("value", ["(k / 10)::DECIMAL(18, 1)", "9007199254740992::DECIMAL(20) + k"])
def test_decimals_are_not_learned_twice(tmp_path, capsys, value):
    pytest.importorskip("duckdb_engine", reason="needs duckdb-engine")
    table = "SELECT {} AS id, k * 1.0 AS x, k * 2.0 AS y FROM range(1, {}) r(k)"
    words = ["--query", "SELECT * FROM t", "--resume-column", "id"]
    model = str(tmp_path / "m.sb")
    first, later = ["-o", model, "--learner", "linear"], ["-i", model, "-o", model]
    for last, more in ((8, first), (8, later), (10, later)):
        address = duck(tmp_path, table.format(value, last))
        assert main(["train", address, *words, *more]) == 0, capsys.readouterr().err
    printed = capsys.readouterr()
    assert "there are no new rows" in printed.err
    assert "number of examples = 2\n" in printed.out
    address = duck(tmp_path, table.format(value, 10))
    source = TableSource(address, Query("SELECT * FROM t", "id"))
    source.start({})
    last = source.poll(0, {})[-1]
    source.start({last.place: last.position})
    assert source.poll(0, {}) == []
    assert source.has_read(source.ends())


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("uuid()", "is a UUID; --resume-column needs numbers, text or dates: use CAST"),
        ("TIME '01:00' + to_seconds(k)", "is a time; --resume-column needs"),
        ("k::VARCHAR::BLOB", "is a bytes; --resume-column needs"),
        ("18446744073709551610::HUGEINT + k", "is an integer of more than 64 bits; --resume-"),
        ("k::VARCHAR", "has numbers as text, 12 before 2; use CAST in the query"),
    ],
)
def test_columns_that_a_run_cannot_resume_from(tmp_path, capsys, value, message):
    pytest.importorskip("duckdb_engine", reason="needs duckdb-engine")
    address = duck(tmp_path, f"SELECT {value} AS id, 1.0 AS x, 2.0 AS y FROM range(1, 13) r(k)")
    words = ["--query", "SELECT * FROM t", "--resume-column", "id", "--label", "y"]
    assert main(["train", address, *words, "-o", str(tmp_path / "m.sb")]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("k::HUGEINT * 18446744073709551617", lambda k: k * 18446744073709551617.0),
        ("9223372036854775800::UBIGINT + k::UBIGINT", lambda k: float(9223372036854775800 + k)),
        ("to_minutes(k)", lambda k: 60.0 * k),
        ("TIME '01:30' + to_minutes(k)", lambda k: 1.5 + k / 60),
        ("'id ' || k::VARCHAR", lambda k: f"id {k}"),
        ("('00000000-0000-0000-0000-10000000000' || to_hex(k))::UUID", UUIDS),
    ],
)
def test_a_worker_reads_the_values_that_train_reads(tmp_path, value, expected):
    pytest.importorskip("duckdb_engine", reason="needs duckdb-engine")
    address = duck(tmp_path, f"SELECT k AS id, {value} AS x, 2.0 * k AS y FROM range(1, 13) r(k)")
    query = Query("SELECT * FROM t", "id")
    source = TableSource(address, query)
    source.start({})
    found = [json.loads(message.payload)["x"] for message in source.poll(0.0, {})]
    words = ["--query", query.text, "--resume-column", "id", "--label", "y", *OPTIONS]
    assert main(["train", address, *words, "-o", str(tmp_path / "m.sb")]) == 0
    (column,) = load(tmp_path / "m.sb").schema.columns
    assert column.category == isinstance(found[0], str)
    wanted = [expected(k) for k in range(1, 13)]
    assert found == (wanted if column.category else pytest.approx(wanted, rel=1e-15))


@pytest.mark.parametrize("value", ["k::VARCHAR::BLOB", "{'a': k}", "[k, k]"])
def test_types_that_are_not_supported(tmp_path, capsys, value):
    """`train` refuses the column; each row of it is a bad message for a worker."""
    pytest.importorskip("duckdb_engine", reason="needs duckdb-engine")
    address = duck(tmp_path, f"SELECT k AS id, {value} AS x, 2.0 * k AS y FROM range(1, 13) r(k)")
    words = ["--query", "SELECT * FROM t", "--resume-column", "id", "--label", "y"]
    assert main(["train", address, *words, "-o", str(tmp_path / "m.sb")]) == 2
    assert "column 'x' has the unsupported type" in capsys.readouterr().err
    source = TableSource(address, Query("SELECT * FROM t", "id"))
    source.start({})
    for message in source.poll(0.0, {}):
        assert isinstance(json.loads(message.payload)["x"], dict | list)


def test_a_row_with_an_empty_value_that_comes_later_is_an_error(database, tmp_path, capsys):
    execute(database, "DROP TABLE IF EXISTS houses")
    execute(database, "CREATE TABLE houses (id INTEGER, size DOUBLE PRECISION, price REAL)")
    insert = "INSERT INTO houses VALUES (:id, :size, :price)"
    execute(database, insert, [{"id": k, "size": k / 3, "price": k} for k in range(1, 31)])
    query, path = "SELECT id, size, price FROM houses", tmp_path / "m.sb"
    assert train(database, path, query=query) == 0
    source = TableSource(database, Query(query, "id"))
    source.start({})
    assert len(source.poll(0.0, {})) == 30
    execute(database, insert, [{"id": None, "size": 1.0, "price": 3.0}])
    words = ["train", database, "-i", str(path), "-o", str(path), "--query", query]
    assert main([*words, "--resume-column", "id"]) == 2
    assert "column 'id' is empty; --resume-column needs" in capsys.readouterr().err
    with pytest.raises(StreamError, match="column 'id' is empty"):
        source.poll(0.0, {})


def test_a_column_of_numbers_and_text_is_refused(tmp_path, capsys):
    pytest.importorskip("sqlalchemy", reason="needs sqlalchemy")
    with sqlite3.connect(tmp_path / "x.db") as database:
        database.execute("CREATE TABLE t AS SELECT 1 AS id, 1.0 AS y UNION ALL SELECT 'x', 2.0")
    words = ["--query", "SELECT * FROM t", "--resume-column", "id", "-o", str(tmp_path / "m.sb")]
    assert main(["train", f"sqlite:///{tmp_path / 'x.db'}", *words]) == 2
    assert "column 'id' has values of different types; convert" in capsys.readouterr().err


def test_colons_and_percent_signs_in_a_query(database, tmp_path):
    fill(database, draw_rows(1, 30))
    query = f"{QUERY} WHERE city NOT LIKE '%:x y' OR city = ':name' OR city IS NULL"
    assert train(database, tmp_path / "m.sb", query=query) == 0
    assert train(database, tmp_path / "n.sb", query=query, column=None) == 0


def test_addresses_of_databases(tmp_path, capsys, monkeypatch):
    missing = tmp_path / "missing.db"
    for address, message in (
        (f"sqlite:///{missing}", "missing.db: file not found"),
        ("nosuch://me:s3cret@host/db", "there is no driver for databases of the kind 'nosuch'"),
        ("postgresql://me:s3cret@127.0.0.1:1/db", "refused"),
        ("postgresql://me:s3cret@127.0.0.1:many/db", "the port is not a number"),
        ("mssql://me:s3cret@127.0.0.1/db", "the driver 'pyodbc' is not installed"),
        ("sqlite://", "no such table"),
    ):
        assert main(["evaluate", address, "--query", "SELECT * FROM t", *OPTIONS]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert "s3cret" not in error
        assert error.count("\n") == 1
    assert not missing.exists()
    for query, message in (
        (" ; ", "--query is empty; expected a SELECT"),
        ("PRAGMA unknown", "the query returns no rows; expected a SELECT"),
    ):
        assert main(["evaluate", "sqlite://", "--query", query, *OPTIONS]) == 2
        assert message in capsys.readouterr().err
    assert main(["evaluate", str(missing), "--resume-column", "id", *OPTIONS]) == 2
    assert "--resume-column requires --query" in capsys.readouterr().err
    monkeypatch.setitem(__import__("sys").modules, "sqlalchemy", None)
    with pytest.raises(StreamError, match=r"pip install '\.\[sql\]'"):
        QueryTable("sqlite://", Query("SELECT 1", None))


def without_write_access(folder, *words):
    """Run the command line in a read-only folder, also as root without its special rights."""
    command = [sys.executable, "-m", "spanboost", *words]
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root without setpriv can write everywhere")
        rights = ["--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all"]
        command = ["setpriv", *rights, *command]
    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        folder.chmod(0o755)


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_databases_are_opened_for_reading(tmp_path, kind):
    if kind == "duckdb":
        pytest.importorskip("duckdb_engine", reason="needs duckdb-engine")
    folder = tmp_path / "archive"
    folder.mkdir()
    address = f"{kind}:///{folder / 'houses.db'}"
    fill(address, draw_rows(1, 40))
    words = ["evaluate", address, "--query", QUERY, "--resume-column", "id", *OPTIONS, "--json"]
    done = without_write_access(folder, *words)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["examples"] == 39


def test_a_write_ahead_log_in_a_read_only_folder_is_explained(tmp_path):
    folder = tmp_path / "archive"
    folder.mkdir()
    address = f"sqlite:///{folder / 'houses.db'}"
    fill(address, draw_rows(1, 40))
    with contextlib.closing(sqlite3.connect(folder / "houses.db")) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    words = ["evaluate", address, "--query", QUERY, "--resume-column", "id", *OPTIONS]
    done = without_write_access(folder, *words)
    assert done.returncode == 2
    assert "copy the file to a folder that can be written" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_file_of_sqlite_can_be_a_uri(tmp_path, capsys):
    fill(f"sqlite:///{tmp_path / 'a b.db'}", draw_rows(1, 40))
    words = ["--query", QUERY, "--resume-column", "id", *OPTIONS]
    uri = f"sqlite:///file:{tmp_path}/a%20b.db?mode=ro&uri=true"
    assert main(["evaluate", uri, *words]) == 0
    assert main(["evaluate", uri.replace("a%20b", "c"), *words]) == 2
    assert "c.db: file not found" in capsys.readouterr().err


@pytest.mark.parametrize(
    "value",
    [7, 2.5, "text", Decimal(12), datetime.date(2026, 1, 31), datetime.datetime(2026, 1, 31, 12)],
)
def test_positions_are_json_values(value):
    encoded = json.loads(json.dumps(encode_position(value)))
    assert decode_position(encoded) == value


def test_a_table_as_a_source_of_a_worker(database):
    rows = draw_rows(1, 2500)
    fill(database, rows)
    source = TableSource(database, Query(QUERY, "id"))
    source.start({})
    found = []
    while not source.has_read(source.ends()):
        found += source.poll(0.0, {})
    assert [message.position for message in found] == [row["id"] for row in rows]
    first = json.loads(found[0].payload)
    assert (first["id"], first["price"]) == (10, float(rows[0]["price"]))
    assert source.poll(0.0, {}) == []
    fill(database, draw_rows(2500, 2502), create=False)
    later = []
    wait_until(lambda: later.extend(source.poll(0.1, {})) or len(later) == 2)
    again = TableSource(database, Query(QUERY, "id"))
    again.start({found[-2].place: found[-2].position})
    assert [message.position for message in again.poll(0.0, {})] == [24990, 25000, 25010]
