"""The paths that list, pin and roll back versions of the model."""

from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from spanboost.checks import finite_or_none
from spanboost.service.http.controls import ControlHandler
from spanboost.service.http.middleware import error_response
from spanboost.service.http.routes import ApiRoute
from spanboost.service.learning.engine import Engine
from spanboost.service.storage.versions import (
    UnknownVersionError,
    Version,
    list_versions,
    pin_version,
    roll_back_to,
    unpin_version,
)

VERSIONS_PATH = "/versions"
_MAX_DIGITS = 20


class VersionPaths:
    """The request handlers of versions."""

    def __init__(self, engine: Engine, controls: ControlHandler) -> None:
        self._engine, self._controls = engine, controls

    def routes(self) -> list[ApiRoute]:
        """Return the routes."""
        one = f"{VERSIONS_PATH}/{{number}}"
        return [
            ApiRoute(VERSIONS_PATH, self.versions),
            ApiRoute(f"{one}/pin", self.pin, ["POST"]),
            ApiRoute(f"{one}/unpin", self.unpin, ["POST"]),
            ApiRoute(f"{one}/rollback", self.roll_back, ["POST"]),
        ]

    async def versions(self, request: Request) -> Response:
        """Return all versions, the oldest first."""
        versions = await run_in_threadpool(list_versions, self._folder)
        return JSONResponse({"versions": [describe_version(one) for one in versions]})

    async def pin(self, request: Request) -> Response:
        """Keep a version until it is unpinned."""
        return await self._change(request, pin_version)

    async def unpin(self, request: Request) -> Response:
        """Let a version be deleted when it is old enough."""
        return await self._change(request, unpin_version)

    async def roll_back(self, request: Request) -> Response:
        """Replace the model by the one of a version; respond when that is in the journal."""
        try:
            number = _parse_number(request)
        except UnknownVersionError as error:
            return error_response(404, str(error))
        return await self._controls.run(
            request, lambda: roll_back_to(self._folder, number), {"version": number}
        )

    async def _change(self, request: Request, change: Any) -> Response:
        try:
            await run_in_threadpool(change, self._folder, _parse_number(request))
        except UnknownVersionError as error:
            return error_response(404, str(error))
        return await self.versions(request)

    @property
    def _folder(self) -> Path:
        return self._engine.state.snapshots


def describe_version(version: Version) -> dict[str, Any]:
    """Return a version as JSON values."""
    losses = {name: finite_or_none(getattr(version, name)) for name in ("loss", "recent_loss")}
    return version._asdict() | losses


def _parse_number(request: Request) -> int:
    text = request.path_params["number"]
    if not (text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS):
        raise UnknownVersionError("the number of a version must be an integer, such as 12")
    return int(text)
