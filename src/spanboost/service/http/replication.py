"""The paths that followers read: the journal and the last snapshot of this server."""

import asyncio
import re
from collections.abc import Callable

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from spanboost.service.http.middleware import error_response
from spanboost.service.http.routes import ApiRoute
from spanboost.service.learning.engine import Engine
from spanboost.service.learning.leaders import (
    LAST_HEADER,
    MARK_HEADER,
    VERSION_HEADER,
    WAIT_SECONDS,
)
from spanboost.service.storage.journal_tail import (
    Cursor,
    DivergedError,
    JournalTail,
    Shipment,
    encode_records,
)
from spanboost.service.storage.record_files import StateError

JOURNAL_PATH, SNAPSHOT_PATH = "/journal", "/snapshot"
RECORDS = "application/octet-stream"
POLL_SECONDS = 0.02  # time between two looks for the next record
_NUMBER, _MARK = re.compile(r"[0-9]{1,18}"), re.compile("[0-9a-f]{16}")


class Replication:
    """The request handlers for followers."""

    def __init__(self, engine: Engine, stopping: asyncio.Event) -> None:
        self._state, self._stopping = engine.state, stopping
        self._tail = JournalTail(engine.state.journal.folder)

    def routes(self) -> list[ApiRoute]:
        """Return the routes of the handlers."""
        return [
            ApiRoute(JOURNAL_PATH, self.journal, parameters=["from", "mark", "check"]),
            ApiRoute(SNAPSHOT_PATH, self.snapshot),
        ]

    async def journal(self, request: Request) -> Response:
        """Return the records from a number on; without new ones, wait some seconds for the next."""
        cursor = _parse_cursor(request)
        try:
            shipment = await self._read(cursor)
            if cursor is not None and not shipment.records:
                await self._wait_for_record(cursor.record + 1)
                shipment = await self._read(cursor)
        except DivergedError as error:
            return error_response(409, str(error))
        except (StateError, OSError) as error:
            why = f"the journal cannot be read now ({error}); retry later"
            return error_response(503, why, {"Retry-After": "1"})
        headers = {
            LAST_HEADER: str(shipment.last),
            MARK_HEADER: shipment.mark,
            VERSION_HEADER: shipment.version,
        }
        return Response(encode_records(shipment.records), media_type=RECORDS, headers=headers)

    async def snapshot(self, request: Request) -> Response:
        """Return the file of the last snapshot."""
        try:
            data = await run_in_threadpool(self._state.snapshot_path.read_bytes)
        except OSError as error:  # replaced by a newer one in the meantime, for example
            why = f"the snapshot cannot be read now ({error.strerror}); retry later"
            return error_response(503, why, {"Retry-After": "1"})
        return Response(data, media_type=RECORDS)

    async def _read(self, cursor: Cursor | None) -> Shipment:
        # only records that are on the disk, so that a follower is never ahead of its leader
        last = self._state.journal.last
        return await run_in_threadpool(self._tail.read, cursor, last)

    async def _wait_for_record(self, number: int) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + WAIT_SECONDS
        while self._state.journal.last < number and loop.time() < end:
            if self._stopping.is_set():
                return
            await asyncio.sleep(POLL_SECONDS)


def _parse_cursor(request: Request) -> Cursor | None:
    """Return the position that a request names; None if it asks for all records."""
    query = request.query_params
    if "from" not in query:
        return None
    first = int(_value(request, "from", _NUMBER.fullmatch, "a number from 1 on"))
    if first < 1:
        raise HTTPException(422, "the query parameter 'from' must be a number from 1 on")
    mark = _value(request, "mark", _MARK.fullmatch, "the mark of a journal file")
    check = None
    if "check" in query:
        check = int(_value(request, "check", _NUMBER.fullmatch, "the checksum of a record"))
    return Cursor(first - 1, mark, check)


def _value(request: Request, name: str, matches: Callable[[str], object], expected: str) -> str:
    value = request.query_params.get(name, "")
    if not matches(value):
        raise HTTPException(422, f"the query parameter {name!r} must be {expected}")
    return value
