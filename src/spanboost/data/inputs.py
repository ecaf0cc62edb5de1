"""Find what the rows of a command are read from: files, a message system or a database."""

from collections.abc import Sequence
from typing import Any

from spanboost.data.messages.addresses import DATABASES, SCHEMES, hide_password, scheme_of
from spanboost.data.messages.message_rows import MessageRows
from spanboost.data.messages.opening import open_log
from spanboost.data.problems import StreamError
from spanboost.data.query_table import Query, QueryTable
from spanboost.data.source import find_sources

MESSAGES, SQL = "messages", "sql"  # formats of inputs that are not files


def find_inputs(
    paths: Sequence[str], query: Query | None, *, wait: bool
) -> tuple[list[Any], str | None]:
    """Return what is read, and its format if it is not a file.

    query: of the rows, if the path is the address of a database.
    wait: whether to wait for messages that arrive later.
    """
    live = [path for path in paths if scheme_of(path) in (*SCHEMES, *DATABASES)]
    if not live and query is None:
        return [*find_sources(paths)], None
    if len(paths) > 1:
        raise StreamError("a topic, a stream or a database cannot be read together with other data")
    (path,) = paths
    shown, scheme = hide_password(path), scheme_of(path)
    if query is None:
        if scheme in DATABASES:
            raise StreamError(f"{shown}: name the rows with --query 'SELECT ...'")
        return [MessageRows(open_log(path), wait=wait)], MESSAGES
    if scheme in SCHEMES or not scheme:
        raise StreamError(
            f"--query needs the address of a database, such as sqlite:///FILE (got {shown})"
        )
    return [QueryTable(path, query)], SQL


def has_positions(source: Any) -> bool:
    """Return whether reading can begin after a position."""
    if isinstance(source, QueryTable):
        return source.query.column is not None
    return isinstance(source, MessageRows)
