"""The paths of the challenger: begin, look, promote and withdraw."""

from collections.abc import Awaitable, Callable

import orjson
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from spanboost.errors import UserError, did_you_mean
from spanboost.models.files import from_bytes
from spanboost.models.model import Model
from spanboost.service.http.controls import ControlHandler
from spanboost.service.http.middleware import error_response
from spanboost.service.http.request_bodies import JSON, content_type, describe_content_type
from spanboost.service.http.routes import ApiRoute
from spanboost.service.learning.engine import Engine
from spanboost.service.learning.warm_up import warm_up_challenger
from spanboost.service.storage.challenger import (
    BY_HAND,
    RULES,
    challenge_with,
    model_from_options,
)
from spanboost.service.storage.control import PROMOTE, WITHDRAW, Control

CHALLENGER_PATH = "/challenger"
PROMOTE_PATH = f"{CHALLENGER_PATH}/promote"
MODEL_FILE = "application/octet-stream"


class ChallengerPaths:
    """The request handlers of the challenger."""

    def __init__(
        self,
        engine: Engine,
        controls: ControlHandler,
        read_body: Callable[[Request], Awaitable[bytes]],
    ) -> None:
        self._engine, self._controls, self._read_body = engine, controls, read_body

    def routes(self) -> list[ApiRoute]:
        """Return the routes."""
        return [
            ApiRoute(CHALLENGER_PATH, self.show),
            ApiRoute(CHALLENGER_PATH, self.begin, ["POST"], parameters=["promote"]),
            ApiRoute(CHALLENGER_PATH, self.withdraw, ["DELETE"]),
            ApiRoute(PROMOTE_PATH, self.promote, ["POST"]),
        ]

    async def show(self, request: Request) -> Response:
        """Return the losses of both models and the interval of their difference."""
        challenger = self._engine.state.challenger
        return JSONResponse({"challenger": challenger and challenger.describe()})

    async def begin(self, request: Request) -> Response:
        """Begin a challenge with a model file, or with a new model of some options."""
        rule = request.query_params.get("promote", BY_HAND)
        if rule not in RULES:
            hint = did_you_mean(rule[:40], RULES)
            return error_response(400, f"promote must be one of {', '.join(RULES)}{hint}")
        kind = content_type(request)
        if kind not in (JSON, MODEL_FILE):
            return error_response(415, describe_content_type(request, (JSON, MODEL_FILE)))
        data = await self._read_body(request)
        return await self._controls.run(request, lambda: self._prepare(kind, data, rule), {})

    async def promote(self, request: Request) -> Response:
        """Replace the model by the challenger."""
        return await self._controls.run(request, lambda: Control(PROMOTE, {"rule": BY_HAND}), {})

    async def withdraw(self, request: Request) -> Response:
        """End the challenge; the model stays as it is."""
        return await self._controls.run(request, lambda: Control(WITHDRAW, {}), {})

    def _prepare(self, kind: str, data: bytes, rule: str) -> Control:
        champion = self._engine.state.model
        model = (
            self._read_model(champion, data) if kind == JSON else from_bytes(data, trusted=False)
        )
        self._engine.check_memory(model)
        control = challenge_with(champion, model, rule)
        warm_up_challenger(from_bytes(control.data))  # otherwise rows would wait for the compiler
        return control

    def _read_model(self, champion: Model, data: bytes) -> Model:
        try:
            options = orjson.loads(data)
        except ValueError:
            raise UserError("the body is not valid JSON") from None
        if not isinstance(options, dict):
            raise UserError("the body must be a JSON object with the options of a model")
        return model_from_options(champion, options)
