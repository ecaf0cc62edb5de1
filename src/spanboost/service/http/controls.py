"""Requests that write a control to the journal: rollbacks and challenges.

A client that did not get an answer sends such a request again, with the same idempotency key. The
second request gets the answer of the first one, and nothing is done twice.
"""

import asyncio
import re
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from spanboost.errors import UserError
from spanboost.service.http.middleware import error_response
from spanboost.service.learning.engine import Engine
from spanboost.service.learning.jobs import ControlJob
from spanboost.service.request_rows import CONFLICT, UNPROCESSABLE
from spanboost.service.storage.control import Control, ControlError
from spanboost.service.storage.versions import UnknownVersionError

KEY_HEADER = "Idempotency-Key"
MAX_KEYS = 1000  # keys to remember
_KEY = re.compile(r"[\w.:/+=-]{1,64}", re.ASCII)


class ControlHandler:
    """Answers requests that write controls, each idempotency key once."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._answers: OrderedDict[tuple[str, ...], asyncio.Task[Response]] = OrderedDict()

    async def run(
        self, request: Request, prepare: Callable[[], Control], content: dict[str, Any]
    ) -> Response:
        """Write a control to the journal; the answer has the number of its record.

        prepare: returns the control, or raises UserError; it runs in a thread.
        content: other keys of the answer.
        """
        key = request.headers.get(KEY_HEADER)
        if key is None:
            return await self._answer(prepare, content)
        if not _KEY.fullmatch(key):
            why = f"{KEY_HEADER} must be 1 to 64 letters, digits and ._:/+=-"
            return error_response(400, why)
        name = (request.method, request.url.path, key)
        task = self._answers.get(name)
        if task is None:  # a task, because a request may end before its answer
            task = asyncio.create_task(self._answer(prepare, content))
            self._remember(name, task)
        return await asyncio.shield(task)

    async def _answer(self, prepare: Callable[[], Control], content: dict[str, Any]) -> Response:
        try:
            control = await run_in_threadpool(prepare)
            record = await self._engine.writer.run(ControlJob(control))
        except UnknownVersionError as error:
            return error_response(404, str(error))
        except ControlError as error:
            return error_response(CONFLICT, str(error))
        except UserError as error:
            return error_response(UNPROCESSABLE, str(error))
        return JSONResponse(content | {"record": record})

    def _remember(self, name: tuple[str, ...], task: "asyncio.Task[Response]") -> None:
        self._answers[name] = task
        if len(self._answers) > MAX_KEYS:
            self._answers.popitem(last=False)
        task.add_done_callback(lambda done: self._forget_failure(name, done))

    def _forget_failure(self, name: tuple[str, ...], done: "asyncio.Task[Response]") -> None:
        """Let a retry try again after an error of the server, which has changed nothing."""
        if done.cancelled() or done.exception() is not None:
            self._answers.pop(name, None)
