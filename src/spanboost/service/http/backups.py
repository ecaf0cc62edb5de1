"""Backups over HTTP: the state folder at one moment, sent while the service continues."""

import asyncio

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from spanboost.service.http.middleware import error_response
from spanboost.service.learning.jobs import StateJob
from spanboost.service.learning.worker import Worker
from spanboost.service.storage.backup import Backup
from spanboost.service.storage.state import State

MEDIA_TYPE = "application/x-tar"
PATIENCE = 2.0  # seconds that a request waits for the end of another backup


class BackupHandler:
    """Sends one backup at a time: each holds all files of the folder open."""

    def __init__(self, writer: Worker) -> None:
        self._writer, self._sending = writer, asyncio.Lock()

    async def backup(self, request: Request) -> Response:
        """Return a backup of the state folder."""
        if request.method == "HEAD":
            return Response(media_type=MEDIA_TYPE)
        try:  # the client of the other backup may have all bytes before the server notices
            await asyncio.wait_for(self._sending.acquire(), PATIENCE)
        except TimeoutError:
            why = "another backup is being sent; retry later"
            return error_response(503, why, {"Retry-After": "10"})
        try:
            backup = await self._writer.run(StateJob(State.open_backup))
        except BaseException:
            self._sending.release()
            raise
        return _BackupResponse(backup, self._sending)


class _BackupResponse(StreamingResponse):  # type: ignore[misc]
    """The archive; its length is known, so clients notice if it is cut off."""

    def __init__(self, backup: Backup, sending: asyncio.Lock) -> None:
        headers = {
            "Content-Length": str(backup.size),
            "Content-Disposition": 'attachment; filename="backup.tar"',
        }
        super().__init__(backup.chunks(), media_type=MEDIA_TYPE, headers=headers)
        self._backup, self._sending = backup, sending

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._backup.close()
            self._sending.release()
