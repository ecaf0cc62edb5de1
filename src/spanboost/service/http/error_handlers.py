"""The responses to requests that raise an error."""

from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from spanboost.service.http.middleware import error_response
from spanboost.service.http.request_bodies import BodyError
from spanboost.service.learning.jobs import StorageError
from spanboost.service.learning.memory_pool import TooLargeError
from spanboost.service.learning.row_predictions import NoIntervalsError
from spanboost.service.learning.worker import BusyError, ClosedError
from spanboost.service.storage.pending_rows import PendingFullError


async def _on_http_error(request: Request, error: Any) -> Response:
    return error_response(error.status_code, error.detail, error.headers)


async def _on_unknown_path(request: Request, error: Any) -> Response:
    return error_response(404, "this path does not exist; /openapi.json lists all paths")


async def _on_wrong_method(request: Request, error: Any) -> Response:
    allowed = sorted((error.headers or {}).get("Allow", "").split(", "))
    why = f"this path does not accept {request.method!r:.20}; use {' or '.join(allowed)}"
    return error_response(405, why, error.headers)


async def _on_busy(request: Request, error: Exception) -> Response:
    return error_response(429, "too many rows are waiting; retry later", {"Retry-After": "1"})


async def _on_pending_full(request: Request, error: Exception) -> Response:
    return error_response(429, str(error), {"Retry-After": "10"})


async def _on_too_large(request: Request, error: Exception) -> Response:
    return error_response(413, str(error))


async def _on_closed(request: Request, error: Exception) -> Response:
    return error_response(503, str(error), {"Retry-After": "5"})


async def _on_storage_error(request: Request, error: Exception) -> Response:
    why = f"a write to the disk failed ({error}), so nothing was done; retry later"
    return error_response(503, why, {"Retry-After": "5"})


async def _on_no_intervals(request: Request, error: Exception) -> Response:
    why = (
        "the model has no intervals; serve a new folder with --intervals, or leave out `interval`, "
        "`lower` and `upper`"
    )
    return error_response(422, why)


async def _on_body_error(request: Request, error: Exception) -> Response:
    return error_response(400, str(error))


async def _on_error(request: Request, error: Exception) -> Response:
    return error_response(500, "internal error; the log of the server has the details")


async def _on_disconnect(request: Request, error: Exception) -> Response:
    return error_response(400, "the client disconnected before the end of the request")


HANDLERS: dict[Any, Any] = {
    404: _on_unknown_path,
    405: _on_wrong_method,
    HTTPException: _on_http_error,
    BusyError: _on_busy,
    PendingFullError: _on_pending_full,
    TooLargeError: _on_too_large,
    ClosedError: _on_closed,
    StorageError: _on_storage_error,
    NoIntervalsError: _on_no_intervals,
    BodyError: _on_body_error,
    ClientDisconnect: _on_disconnect,
    Exception: _on_error,
}
