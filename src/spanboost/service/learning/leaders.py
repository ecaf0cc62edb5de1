"""The leaders that a follower can copy: a server, through HTTP, or the folder of a server."""

import time
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import OpenerDirector, ProxyHandler, Request, build_opener

import orjson

from spanboost.errors import UsageError, describe_connection_error
from spanboost.service.storage.journal_tail import (
    Cursor,
    DivergedError,
    JournalTail,
    Shipment,
    decode_records,
)
from spanboost.service.storage.leader_copy import Leader, LeaderError
from spanboost.service.storage.record_files import StateError, file_number

LAST_HEADER, MARK_HEADER = "X-Spanboost-Last-Record", "X-Spanboost-Journal"
VERSION_HEADER = "X-Spanboost-Version"
WAIT_SECONDS = 10.0  # time that the leader waits for the next record before it responds
TIMEOUT_SECONDS = 30.0  # time without a byte from the leader
POLL_SECONDS = 0.05  # time between two looks into a folder
_CONFLICT = 409
_REFUSED = (401, 403)
_TRANSIENT = (408, 429)  # client errors that a later attempt can change
_TRUST = "set the environment variable SSL_CERT_FILE to a file that contains it"
_URL_ADVICE = "check the URL; that of one of several models ends with /m/NAME"


class ServerLeader:
    """A server, reached by its URL."""

    def __init__(self, url: str, token: str | None) -> None:
        self.address, self._token = url.rstrip("/"), token
        self._opener: OpenerDirector = build_opener(ProxyHandler({}))

    def snapshot(self) -> bytes:
        """Return the file of the last snapshot."""
        return self._get("/snapshot", {})[0]

    def read(self, cursor: Cursor | None) -> Shipment:
        """Return records after the cursor; without new ones, the leader waits some seconds."""
        query: dict[str, Any] = {}
        if cursor is not None:
            query = {"from": cursor.record + 1, "mark": cursor.mark}
            query |= {} if cursor.check is None else {"check": cursor.check}
        data, headers = self._get("/journal", query)
        try:
            records = decode_records(data)
            last, mark = int(headers[LAST_HEADER]), headers[MARK_HEADER]
            return Shipment(records, last, mark, headers[VERSION_HEADER])
        except (ValueError, TypeError):
            raise LeaderError("it does not send journal records; check the URL") from None

    def _get(self, path: str, query: dict[str, Any]) -> tuple[bytes, Any]:
        request = Request(f"{self.address}{path}?{urlencode(query)}")
        if self._token is not None:
            request.add_header("Authorization", f"Bearer {self._token}")
        try:
            with self._opener.open(request, timeout=TIMEOUT_SECONDS) as response:
                return response.read(), response.headers
        except HTTPError as error:
            raise self._describe(error) from None
        except (OSError, HTTPException) as error:
            reason = describe_connection_error(error, _TRUST)
            raise LeaderError(f"it cannot be reached ({reason})") from None

    def _describe(self, error: HTTPError) -> Exception:
        """Return the error to raise for the status of a response."""
        try:
            why = str(orjson.loads(error.read())["error"])
        except (OSError, ValueError, TypeError, KeyError, HTTPException):
            why = "the response is not one of spanboost"
        if error.code == _CONFLICT:
            return DivergedError(why)
        if error.code >= 500 or error.code in _TRANSIENT:
            return LeaderError(f"status {error.code}: {why}")
        advice = _URL_ADVICE
        if error.code in _REFUSED:
            advice = "set SPANBOOST_LEADER_TOKEN to the admin token of the leader"
        return UsageError(f"--follow {self.address}: status {error.code}: {why}; {advice}")


class FolderLeader:
    """The state folder of a server, on a disk that both can read."""

    def __init__(self, folder: Path) -> None:
        self.address = str(folder)
        self._folder, self._tail = folder, JournalTail(folder / "journal")

    def snapshot(self) -> bytes:
        """Return the file of the last snapshot."""
        try:
            path = max((self._folder / "snapshots").glob("*.sb"), key=file_number)
            return path.read_bytes()
        except (ValueError, OSError) as error:
            raise LeaderError(f"there is no snapshot that can be read ({error})") from None

    def read(self, cursor: Cursor | None) -> Shipment:
        """Return records after the cursor, or wait for some."""
        end = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                shipment = self._tail.read(cursor)
            except (StateError, OSError) as error:
                raise LeaderError(str(error)) from None
            if shipment.records or cursor is None or time.monotonic() > end:
                return shipment
            time.sleep(POLL_SECONDS)


def find_leader(follow: str, folder: Path, token: str | None) -> Leader:
    """Return the leader that `--follow` names; UsageError if there cannot be one.

    folder: of the follower.
    """
    if follow.startswith(("http://", "https://")):
        return ServerLeader(follow, token)
    leader = Path(follow)
    if not leader.is_dir():
        raise UsageError(
            f"--follow {follow}: expected the URL of a server (http://...) or its state folder"
        )
    if leader.resolve() == folder.resolve():
        raise UsageError("--follow and --dir name the same folder; give another --dir")
    return FolderLeader(leader)
