"""The requests that only read the model: predictions, by the server and by worker processes."""

import asyncio
import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from spanboost.errors import DataError, ParameterError
from spanboost.models.intervals import Intervals
from spanboost.models.model import Model
from spanboost.models.quantiles.asked_levels import EVERY_LEVEL, KINDS, End, ends_of
from spanboost.service.column_parser import parse_features
from spanboost.service.http.metrics import RequestCounters
from spanboost.service.http.request_bodies import (
    ARROW,
    MEDIA_TYPES,
    content_type,
    describe_content_type,
    estimate_memory,
    parse_body,
)
from spanboost.service.http.responses import ParsedRequest, describe_problem, format_predictions
from spanboost.service.http.routes import ApiRoute
from spanboost.service.http.unknown_texts import (
    NOTE_HEADER,
    describe_unknown_texts,
    find_unknown_texts,
)
from spanboost.service.learning.jobs import Predictions, PredictJob, RowConflictError
from spanboost.service.learning.memory_pool import MemoryPool, Reservation
from spanboost.service.learning.worker import Worker
from spanboost.service.limits import RequestLimits
from spanboost.service.memory import MemoryPlan
from spanboost.service.request_rows import (
    CONFLICT,
    UNPROCESSABLE,
    FeatureRows,
    RejectedRow,
    RowParser,
)
from spanboost.service.storage.model_state import ModelState

PREDICT_PATH = "/predict"
SMALL_BODY = 1 << 14  # bytes; smaller bodies are parsed without a thread
MEDIUM_BODY = 1 << 19  # bytes; the memory for smaller bodies is estimated without a thread
PARSERS = 2  # bodies parsed at a time: parsing may briefly take fifty times the size of a body


class Predicting(Protocol):
    """What predictions need of the engine of a server or of a worker process."""

    memory: MemoryPlan
    work_memory: MemoryPool
    predictor: Worker

    @property
    def state(self) -> ModelState:
        """The model that predicts."""


class PredictionHandler:
    """The handler of predictions."""

    def __init__(
        self, engine: Predicting, id: str, limits: RequestLimits, counters: RequestCounters
    ) -> None:
        self.limits, self.counters = limits, counters
        self.parser = RowParser(engine.state.model.schema, id, limits.row_keys)
        self._predicting = engine
        self._parsers = asyncio.Semaphore(PARSERS)

    def route(self) -> ApiRoute:
        """Return the route of predictions."""
        return ApiRoute(
            PREDICT_PATH, self.predict, ["POST"], parameters=[*KINDS, "keep", "on_error"]
        )

    async def predict(self, request: Request) -> Response:
        """Return predictions, each with an id to send the label with."""
        keep, skip = parse_flag(request, "keep", True), skips_bad_rows(request)
        ends = parse_ends(request, self._predicting.state.model)
        with Reservation(self._predicting.work_memory) as memory:
            parsed = await self.parse(request, parse_features, memory)
            return await self._predict(parsed, keep, skip, ends, memory)

    async def _predict(
        self,
        parsed: ParsedRequest,
        keep: bool,
        skip: bool,
        ends: tuple[End, ...],
        memory: Reservation,
    ) -> Response:
        if parsed.rejected and not skip:
            return self.reject(parsed.rejected)
        predictions = Predictions([] if keep else None, {"prediction": []})
        rows: FeatureRows = parsed.rows
        while rows.numbers:
            try:
                job = PredictJob(rows.rows, rows.ids, keep, memory, ends)
                predictions = await self._predicting.predictor.run(job)
                break
            except DataError as error:
                number = rows.numbers[error.row]
                return self.reject([RejectedRow(number, error.field, error.what)])
            except RowConflictError as error:
                for t, what in error.reasons.items():
                    number = rows.numbers[t]
                    parsed.rejected.append(RejectedRow(number, self.parser.id, what, CONFLICT))
                rows = rows.without(error.reasons)
                if not skip:
                    return self.reject(parsed.rejected)
        self.counters.refused_rows += len(parsed.rejected)
        columns: dict[str, list[Any]] = {} if predictions.ids is None else {"id": predictions.ids}
        columns |= predictions.columns
        if skip:
            columns = {"row": [*rows.numbers], **columns}
        response = format_predictions(parsed, columns, with_problems=skip)
        if unknown := find_unknown_texts(self._predicting.state.model, rows.rows):
            self.counters.unknown_texts += len(unknown)
            response.headers[NOTE_HEADER] = describe_unknown_texts(unknown)
        return response

    async def parse(
        self,
        request: Request,
        parse: Callable[[RowParser, Sequence[Any]], tuple[Any, list[RejectedRow]]],
        memory: Reservation,
    ) -> ParsedRequest:
        """Read the body of a request, reserve memory, and apply `parse` to its rows."""
        media_type = MEDIA_TYPES.get(content_type(request))
        if media_type is None:
            raise HTTPException(415, describe_content_type(request, MEDIA_TYPES))
        coding = request.headers.get("content-encoding", "identity").strip().lower()
        if coding != "identity":  # a few bytes could expand to more than the memory holds
            why = f"unsupported content encoding {coding!r:.40}; send the body uncompressed"
            raise HTTPException(415, why, {"Accept-Encoding": "identity"})
        data = await self.read_body(request)

        def parse_all() -> ParsedRequest:
            body = parse_body(media_type, data, self.limits, self.parser.exact)
            return ParsedRequest(*parse(self.parser, body.rows), media_type, body.single)

        if len(data) <= SMALL_BODY:
            await memory.grow(estimate_memory(media_type, data))
            return parse_all()
        if len(data) <= MEDIUM_BODY and media_type != ARROW:
            await memory.grow(estimate_memory(media_type, data))
        else:
            await memory.grow(await run_in_threadpool(estimate_memory, media_type, data))
        async with self._parsers:
            return await run_in_threadpool(parse_all)

    async def read_body(self, request: Request) -> bytes:
        """Return the whole body, unless it is too large or too slow."""
        length, share = (
            request.headers.get("content-length", ""),
            self._predicting.memory.body_bytes,
        )
        limit, open_limit = (min(n * self.limits.body_bytes, share) for n in (1, 16))
        too_large = HTTPException(
            413, f"the body is too large (maximum: {limit:,} bytes)", {"Connection": "close"}
        )
        too_many = HTTPException(
            503, "too many large requests are open; retry later", {"Retry-After": "1"}
        )
        if length.isdigit() and int(length) > limit:
            raise too_large
        data = bytearray()
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                async for chunk in request.stream():
                    data += chunk
                    if len(data) > limit:
                        raise too_large
                    if len(data) > SMALL_BODY and self.counters.open_body_bytes > open_limit:
                        raise too_many
        except TimeoutError:
            raise HTTPException(408, "the body did not arrive in time") from None
        return bytes(data)

    def reject(self, rejected: list[RejectedRow]) -> Response:
        """Return the response to a request that was refused because of bad rows."""
        self.counters.refused_rows += len(rejected)
        statuses = {row.status for row in rejected}
        problems = [describe_problem(row) for row in sorted(rejected)[:100]]
        text = f"row {problems[0]['row']}: {problems[0]['reason']}"
        status = statuses.pop() if len(statuses) == 1 else UNPROCESSABLE
        return JSONResponse({"error": text, "problems": problems}, status)


def parse_flag(request: Request, name: str, default: bool) -> bool:
    """Return a query parameter that must be true or false."""
    value = request.query_params.get(name)
    if value not in (None, "true", "false"):
        raise HTTPException(422, f"the query parameter {name!r} must be true or false")
    return default if value is None else value == "true"


def parse_ends(request: Request, model: Model) -> tuple[End, ...]:
    """Return the ends of the intervals that the query asks for."""
    levels = model.levels if isinstance(model, Intervals) else EVERY_LEVEL
    ends: list[End] = []
    for kind in KINDS:
        if kind in request.query_params:
            coverage = _parse_coverage(request, kind)
            try:
                ends += ends_of(kind, coverage, levels)
            except ParameterError as error:
                why = f"the query parameter {kind!r} {error.problem}"
                raise HTTPException(422, why) from None
    return tuple(ends)


def _parse_coverage(request: Request, name: str) -> float:
    text = request.query_params[name]
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < 1:
        why = f"the query parameter {name!r} must be between 0 and 1 (got {text!r:.40})"
        raise HTTPException(422, why)
    return value


def skips_bad_rows(request: Request) -> bool:
    """Return whether bad rows are skipped, so that the others are answered."""
    value = request.query_params.get("on_error", "stop")
    if value not in ("stop", "skip"):
        raise HTTPException(422, "the query parameter 'on_error' must be stop or skip")
    return value == "skip"
