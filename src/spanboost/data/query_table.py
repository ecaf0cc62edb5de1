"""The rows of a query to a database, through SQLAlchemy.

With a column to resume from, the rows come in the order of this column, and reading can continue
after any of its values. The values must increase from row to row. Otherwise a row could be skipped
or read twice, so equal values are an error.
"""

import os
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit
from uuid import UUID

from spanboost.data.messages.addresses import hide_password, scheme_of
from spanboost.data.messages.message import Positions
from spanboost.data.problems import StreamError
from spanboost.errors import did_you_mean, install_hint

ROWS = 1 << 14  # rows that are fetched at a time
SCHEME = "sql"  # of the places of queries
SQLITE, DUCKDB = IN_FILES = ("sqlite", "duckdb")  # databases that are files
IN_EXTRA = (*IN_FILES, "postgresql", "postgres")  # databases whose drivers are in the extra
_READ_ONLY = "attempt to write a readonly database"
_WAL = (
    ": SQLite writes next to a file with the journal mode WAL even to read it; copy the file to a "
    "folder that can be written, or change its journal mode with PRAGMA journal_mode=DELETE"
)


class QueryError(StreamError):
    """A query that the database refuses, perhaps only for now."""


class NoConnectionError(QueryError):
    """A database that cannot be reached."""


class Query(NamedTuple):
    """A query, and the column to resume from, if there is one."""

    text: str
    column: str | None


class Fetched(NamedTuple):
    """Some rows of a query."""

    names: list[str]
    rows: Sequence[Sequence[Any]]


class QueryTable:
    """The rows of a query."""

    def __init__(self, address: str, query: Query) -> None:
        """Check the address; StreamError if it is invalid or a package is missing."""
        self.query = query._replace(text=query.text.strip().rstrip("; \n\t"))
        self.name = hide_password(address).partition("?")[0]
        # the text of a query may be long, and a changed query has other rows
        self.place = f"{SCHEME}:{self.query.column}@{zlib.crc32(self.query.text.encode()):08x}"
        self.size, self.position = None, 0  # in bytes, which are not known
        self.after: Any = None  # value of the column after which to begin; None: at the first row
        try:
            import sqlalchemy
        except ImportError:
            raise self._missing() from None
        self._library: Any = sqlalchemy
        if not self.query.text:
            raise StreamError("--query is empty; expected a SELECT")
        with self._errors():
            url = self._address(address)
            # DuckDB would lock the file against other readers, and need the right to write
            read_only = url.get_backend_name() == DUCKDB and _file_of(url) is not None
            self._engine = sqlalchemy.create_engine(
                url,
                poolclass=sqlalchemy.pool.NullPool,
                connect_args={"read_only": True} if read_only else {},
            )

    def fingerprint(self) -> list[Any]:
        """Return what tells these rows from others."""
        return [*self.query]

    def begin_after(self, positions: Positions) -> bool:
        """Read only the rows after a position, and return whether there is one.

        Raises StreamError if it is a position in another query.
        """
        self.after = decode_position(positions.get(self.place))
        other = [place for place in positions if place.startswith(f"{SCHEME}:")]
        if other and self.after is None:
            raise StreamError(
                f"{self.name}: the position at which to continue belongs to another query; give "
                "the same --query and --resume-column, or leave out --resume-column to read all "
                "rows"
            )
        return self.after is not None

    def check(self) -> None:
        """Raise StreamError if the query cannot be read."""
        with self._connection() as connection:
            self._check_column(connection)

    def fetch(self, after: Any = None, limit: int | None = None) -> Generator[Fetched, None, None]:
        """Yield the rows after a value of the column, some at a time; all without one."""
        after = self.after if after is None else after
        with self._connection() as connection, ExitStack() as opened:
            self._check_column(connection)
            if after is not None:  # the comparison with a value leaves empty ones out
                self._check_filled(connection)
            options = {"stream_results": True, "yield_per": ROWS}
            result = connection.execute(self._statement(after, limit), execution_options=options)
            opened.callback(result.close)
            names, previous, first = [*result.keys()], after, True
            for rows in result.partitions(ROWS):  # of text, it is 1 otherwise
                kept = rows
                if self.query.column is not None:
                    column = names.index(self.query.column)
                    kept, previous = self._new_rows(rows, column, previous, first)
                first = False
                if kept:
                    yield Fetched(names, kept)

    def last(self) -> Any:
        """Return the largest value of the column; None if there are no rows."""
        sql = self._library
        highest = sql.func.max(sql.column(self.query.column))
        with self._connection() as connection:
            return connection.execute(sql.select(highest).select_from(self._rows())).scalar()

    def _statement(self, after: Any, limit: int | None) -> Any:
        sql = self._library
        if self.query.column is None:
            return sql.text(_escape(self.query.text))
        column = sql.column(self.query.column)
        statement = sql.select(sql.text("*")).select_from(self._rows()).order_by(column)
        if after is not None:  # including its own row, to notice others with the same value
            statement = statement.where(column >= after)
        return statement if limit is None else statement.limit(limit + 1)

    def _rows(self) -> Any:
        return self._library.text(f"({_escape(self.query.text)}\n) AS spanboost_rows")

    def _check_column(self, connection: Any) -> None:
        """Raise StreamError if the query does not have the column to resume from."""
        column, sql = self.query.column, self._library
        if column is not None:
            statement = sql.select(sql.text("*")).select_from(self._rows()).limit(0)
            names = [*connection.execute(statement).keys()]
            if column not in names:
                near = did_you_mean(column, names)
                raise StreamError(f"{self.name}: the query has no column {column!r:.40}{near}")

    def _check_filled(self, connection: Any) -> None:
        """Raise StreamError if the column to resume from is empty in a row."""
        column, sql = self.query.column, self._library
        statement = sql.select(sql.text("1")).select_from(self._rows()).limit(1)
        if connection.execute(statement.where(sql.column(column).is_(None))).first() is not None:
            raise self._bad_column(_problem(None, None))

    def _bad_column(self, problem: str | None) -> StreamError:
        return StreamError(f"{self.name}: column {self.query.column!r:.40} {problem}")

    def _new_rows(
        self, rows: Sequence[Any], column: int, previous: Any, first: bool
    ) -> tuple[Sequence[Any], Any]:
        """Return the rows after a value, and the value of the last one; they must increase."""
        if first and previous is not None and exact_value(rows[0][column]) == previous:
            rows = rows[1:]  # the row at which the last pass ended
        kept = list[Sequence[Any]]()
        for row in rows:
            value = exact_value(row[column])
            problem = _problem(value, previous)
            if problem:
                raise self._bad_column(problem)
            previous = value
            kept.append(row if value is row[column] else _replaced(row, column, value))
        return kept, previous

    def _address(self, address: str) -> Any:
        """Return an address with a driver that is in the extra, after a check of its file."""
        try:
            url = self._library.make_url(address)
        except ValueError:
            raise StreamError(f"{self.name}: the port is not a number") from None
        file = _file_of(url)
        if file is not None and not os.path.exists(file):  # it would be created
            raise StreamError(f"{self.name}: file not found")
        drivers = {"postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}
        return url.set(drivername=drivers.get(url.drivername, url.drivername))

    def _missing(self, package: str | None = None) -> StreamError:
        """Return the error about a package that is not installed."""
        if package is not None and scheme_of(self.name) not in IN_EXTRA:
            return StreamError(f"{self.name}: the driver {package!r:.40} is not installed")
        return StreamError(
            f"{self.name}: databases need packages that are not installed: {install_hint('sql')}"
        )

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        with self._errors(NoConnectionError):
            connection = self._engine.connect()
        with self._errors(), connection:
            yield connection

    @contextmanager
    def _errors(self, kind: type[QueryError] = QueryError) -> Iterator[None]:
        """Turn errors of the database into sentences."""
        try:
            yield
        except ImportError as error:
            raise self._missing(error.name) from None
        except self._library.exc.ResourceClosedError:
            raise StreamError(
                f"{self.name}: the query returns no rows; expected a SELECT"
            ) from None
        except self._library.exc.NoSuchModuleError:
            raise StreamError(
                f"{self.name}: there is no driver for databases of the kind "
                f"{scheme_of(self.name)!r:.40}"
            ) from None
        except self._library.exc.SQLAlchemyError as error:
            reason = str(getattr(error, "orig", None) or error)
            what = hide_password(" ".join(reason.split()))[:300]
            if what == _READ_ONLY:
                what += _WAL
            raise kind(f"{self.name}: {what}") from None


def _file_of(url: Any) -> str | None:
    """Return the path of the file that a database is; None for servers and memory."""
    if url.get_backend_name() not in IN_FILES or url.database in (None, "", ":memory:"):
        return None
    name = str(url.database)
    return unquote(urlsplit(name).path) if name.startswith("file:") else name


def _escape(query: str) -> str:
    """Return a query in which no colon begins the name of a parameter."""
    return query.replace(":", r"\:")


def _replaced(row: Sequence[Any], column: int, value: Any) -> Sequence[Any]:
    return (*row[:column], value, *row[column + 1 :])


def _problem(value: Any, previous: Any) -> str | None:
    """Return why reading could not continue after a value that follows another one."""
    different = "--resume-column needs a column with a different value in each row"
    if value is None:
        return f"is empty; {different}"
    if not isinstance(value, int | float | str | date) or is_large(value):
        what = "an integer of more than 64 bits" if is_large(value) else f"a {type(value).__name__}"
        return f"is {what}; --resume-column needs numbers, text or dates: use CAST"
    try:
        increases = previous is None or value > previous
    except TypeError:
        return "has values of different types; convert them in the query with CAST"
    if not increases:
        again = f"is {value!s:.40} in more than one row; {different}"
        order = "is ordered differently by the database; use another column for --resume-column"
        return again if value == previous else order
    before, after = _digits(previous), _digits(value)
    if before is None or after is None or after > before:
        return None
    return f"has numbers as text, {before} before {after}; use CAST in the query"


def _digits(value: Any) -> int | None:
    """Return the number that a text of at most 40 digits stands for; None for other values."""
    plain = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 40
    return int(value) if plain else None


def exact_value(value: Any) -> Any:
    """Return a value of the column to resume from as its position is stored: no Decimal."""
    if not isinstance(value, Decimal):
        return value
    return int(value) if value == value.to_integral_value() else float(value)


def plain_value(value: Any) -> Any:
    """Return a value of a database as a number, a text, a date or None; others unchanged.

    A duration is a number of seconds, and a time of day a number of hours.
    """
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, time):
        since = datetime.combine(date.min, value.replace(tzinfo=None)) - datetime.min
        return since / timedelta(microseconds=1) / 3.6e9
    return str(value) if isinstance(value, UUID) else value


def is_large(value: Any) -> bool:
    """Return whether a value is an integer of more than 64 bits."""
    return isinstance(value, int) and not -(1 << 63) <= value < 1 << 64


def encode_position(value: Any) -> Any:
    """Return a value of the column to resume from as a JSON value."""
    value = exact_value(value)
    if isinstance(value, datetime):
        return {"datetime": value.isoformat()}
    if isinstance(value, date):
        return {"date": value.isoformat()}
    return value if value is None or isinstance(value, int | float | str) else str(value)


def decode_position(value: Any) -> Any:
    """Return the value of the column that `encode_position` encoded."""
    if not isinstance(value, dict):
        return value
    ((kind, text),) = value.items()
    return datetime.fromisoformat(text) if kind == "datetime" else date.fromisoformat(text)
