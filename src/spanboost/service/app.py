"""The service over HTTP: an ASGI application."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from spanboost.errors import DataError
from spanboost.service.engine import (
    Answers,
    Copying,
    Engine,
    Learning,
    Predicting,
    StorageError,
)
from spanboost.service.metrics import RequestCounters, prometheus_text, service_figures
from spanboost.service.middleware import LIMITS, Limits, Middleware, problem_response
from spanboost.service.openapi import description
from spanboost.service.request_bodies import ARROW, KINDS, LINES, BodyError, body_of
from spanboost.service.request_rows import GONE, UNPROCESSABLE, Problem, RowReader, each
from spanboost.service.worker import BusyError, ClosedError, Job, Worker

PAGE = Path(__file__).parent / "page"
FILES = {
    "/": "text/html",
    "/page.css": "text/css",
    "/page.js": "text/javascript",
    "/icon.svg": "image/svg+xml",
}
EVENTS = "text/event-stream"
QUICK = 1 << 14  # bytes of a body that is not worth a thread
READERS = 2  # threads that read bodies: what is read may take fifty times its bytes for a moment


class Asked(NamedTuple):
    """What a request holds: rows by their numbers, what is wrong with others, its form."""

    rows: dict[int, Any]
    problems: list[Problem]
    kind: str
    single: bool  # one row, to be answered by one


class Service:
    """The handlers of one engine's requests."""

    def __init__(self, engine: Engine, id: str, limits: Limits) -> None:
        self.engine, self.limits, self.meter = engine, limits, RequestCounters()
        self.reader = RowReader(engine.state.model.schema, id, limits.width)
        self.stopping = asyncio.Event()
        self.reading = asyncio.Semaphore(READERS)
        self.pages = 0

    async def predict(self, request: Request) -> Response:
        """Predictions, each with an id under which its label may come later."""
        keep, skip = _flag(request, "keep", True), _skip(request)
        asked = await self._asked(request, self.reader.to_predict)
        if asked.problems and not skip:
            return self._unfit(asked.problems)
        self.meter.refused += len(asked.problems)
        numbers, answers = list(asked.rows), Answers([] if keep else None, {"prediction": []})
        if numbers:
            ids, rows = zip(*asked.rows.values(), strict=True)
            try:
                answers = await self._done(self.engine.predictor, Predicting(rows, ids, keep))
            except DataError as error:
                return self._unfit([Problem(numbers[error.row], None, error.what)])
        columns: dict[str, list[Any]] = {} if answers.ids is None else {"id": answers.ids}
        columns |= answers.columns
        if skip:
            columns = {"row": numbers, **columns}
        return _answered(asked.kind, asked.single, columns, asked.problems if skip else None)

    async def learn(self, request: Request) -> Response:
        """Labels; acknowledged when they are in the journal."""
        skip = _skip(request)
        asked = await self._asked(request, self.reader.to_learn)
        problems = asked.problems
        if problems and not skip:
            return self._unfit(problems)
        learned = duplicates = 0
        if asked.rows:
            job = Learning(asked.rows, skip)
            learned, duplicates, more = await self._done(self.engine.writer, job)
            problems = sorted([*problems, *more])
            if problems and not skip:
                return self._unfit(problems)
        self.meter.refused += len(problems)
        told = [_told(problem) for problem in problems]
        return JSONResponse({"learned": learned, "duplicates": duplicates, "problems": told})

    async def model(self, request: Request) -> Response:
        """The model as it is, as a file."""
        data = await self._done(self.engine.writer, Copying())
        name = {"Content-Disposition": 'attachment; filename="model.sb"'}
        return Response(data, media_type="application/octet-stream", headers=name)

    async def healthz(self, request: Request) -> Response:
        """Whether the process answers."""
        return JSONResponse({"status": "alive"})

    async def readyz(self, request: Request) -> Response:
        """Whether it predicts and learns."""
        trouble = self.engine.trouble or ("stopping" if self.stopping.is_set() else None)
        if trouble is None:
            return JSONResponse({"status": "ready"})
        return problem_response(503, trouble, {"Retry-After": "5"})

    async def metrics(self, request: Request) -> Response:
        """For Prometheus."""
        text = prometheus_text(self.engine, self.meter)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    async def openapi(self, request: Request) -> Response:
        """What can be asked for."""
        return JSONResponse(description(self.reader, self.limits))

    async def page(self, request: Request) -> Response:
        """The live page, and what belongs to it."""
        path = request.url.path
        data = (PAGE / (path[1:] or "page.html")).read_bytes()
        return Response(data, media_type=FILES[path])

    async def events(self, request: Request) -> Response:
        """Figures for the live page, every second."""
        if request.method == "HEAD":
            return Response(media_type=EVENTS)
        if self.pages >= self.limits.pages:
            return problem_response(503, "too many live pages are open", {"Retry-After": "10"})

        async def stream() -> AsyncIterator[bytes]:
            self.pages += 1
            try:
                while not self.stopping.is_set():
                    yield b"data: %b\n\n" % orjson.dumps(service_figures(self.engine, self.meter))
                    try:
                        await asyncio.wait_for(self.stopping.wait(), 1)
                    except TimeoutError:
                        continue
            finally:
                self.pages -= 1

        return StreamingResponse(stream(), media_type=EVENTS)

    async def _asked(self, request: Request, take: Callable[[Any], Any]) -> Asked:
        """The rows of a body, each as it is taken."""
        kind = KINDS.get(request.headers.get("content-type", "").partition(";")[0].strip().lower())
        if kind is None:
            raise HTTPException(415, f"send {', '.join(KINDS)}")
        data = await self._read(request)

        def read() -> Asked:
            body = body_of(kind, data, self.limits, self.reader.exact)
            return Asked(*each(take, body.rows), kind, body.single)

        if len(data) <= QUICK:
            return read()
        async with self.reading:
            return await run_in_threadpool(read)

    async def _read(self, request: Request) -> bytes:
        """All of a body, unless it is too long or takes too long."""
        most, said = self.limits.body, request.headers.get("content-length", "")
        too_long = HTTPException(413, f"a body may have {most:,} bytes", {"Connection": "close"})
        too_many = HTTPException(503, "too many long bodies: try again", {"Retry-After": "1"})
        if said.isdigit() and int(said) > most:
            raise too_long
        data = bytearray()
        try:
            async with asyncio.timeout(self.limits.seconds):
                async for chunk in request.stream():
                    data += chunk
                    if len(data) > most:
                        raise too_long
                    if self.meter.bodies > self.limits.bodies:
                        raise too_many
        except TimeoutError:
            raise HTTPException(408, "the body did not arrive in time") from None
        return bytes(data)

    async def _done(self, worker: Worker, job: Job) -> Any:
        worker.submit(job)
        return await asyncio.wrap_future(job)

    def _unfit(self, problems: list[Problem]) -> Response:
        """Nothing of the request was done: here is why."""
        self.meter.refused += len(problems)
        gone = all(problem.status == GONE for problem in problems)
        told = [_told(problem) for problem in sorted(problems)[:100]]
        text = f"row {told[0]['row']}: {told[0]['reason']}"
        return JSONResponse({"error": text, "problems": told}, GONE if gone else UNPROCESSABLE)


def application(
    engine: Engine, tokens: dict[str, str] | None = None, id: str = "id", limits: Limits = LIMITS
) -> Middleware:
    """The ASGI application of an engine; it closes the engine when it ends."""
    service = Service(engine, id, limits)

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(engine.close)

    routes = [
        Route("/predict", service.predict, methods=["POST"]),
        Route("/learn", service.learn, methods=["POST"]),
        Route("/model", service.model),
        Route("/healthz", service.healthz),
        Route("/readyz", service.readyz),
        Route("/metrics", service.metrics),
        Route("/openapi.json", service.openapi),
        Route("/events", service.events),
        *(Route(path, service.page) for path in FILES),
    ]
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers=_HANDLERS)
    app.router.redirect_slashes = False
    paths = {route.path for route in routes}
    return Middleware(app, tokens or {}, limits, service.meter, paths, service.stopping.set)


async def _http(request: Request, error: Any) -> Response:
    return problem_response(error.status_code, error.detail, error.headers)


async def _busy(request: Request, error: Exception) -> Response:
    return problem_response(429, "too many rows are waiting: try again", {"Retry-After": "1"})


async def _closed(request: Request, error: Exception) -> Response:
    return problem_response(503, str(error), {"Retry-After": "5"})


async def _storage(request: Request, error: Exception) -> Response:
    why = f"the disk does not take it ({error}), so nothing was done: try again later"
    return problem_response(503, why, {"Retry-After": "5"})


async def _body(request: Request, error: Exception) -> Response:
    return problem_response(400, str(error))


async def _gone_away(request: Request, error: Exception) -> Response:
    return problem_response(400, "the request ended early")


_HANDLERS: dict[Any, Any] = {
    HTTPException: _http,
    BusyError: _busy,
    ClosedError: _closed,
    StorageError: _storage,
    BodyError: _body,
    ClientDisconnect: _gone_away,
}


def _told(problem: Problem) -> dict[str, Any]:
    return {"row": problem.row, "field": problem.field, "reason": problem.reason}


def _flag(request: Request, name: str, usual: bool) -> bool:
    value = request.query_params.get(name)
    if value not in (None, "true", "false"):
        raise HTTPException(422, f"?{name}= is true or false")
    return usual if value is None else value == "true"


def _skip(request: Request) -> bool:
    value = request.query_params.get("on_error", "stop")
    if value not in ("stop", "skip"):
        raise HTTPException(422, "?on_error= is stop or skip")
    return value == "skip"


def _answered(
    kind: str, single: bool, columns: dict[str, list[Any]], problems: list[Problem] | None
) -> Response:
    """Predictions in the form in which rows were sent; those left out, if any were to be."""
    told = None if problems is None else [_told(problem) for problem in problems]
    if kind == ARROW:
        return Response(_as_arrow(columns, told), media_type=ARROW)
    if kind == LINES:
        names = list(columns)
        rows = [
            dict(zip(names, values, strict=True)) for values in zip(*columns.values(), strict=True)
        ]
        lines = [
            orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in [*rows, *(told or [])]
        ]
        return Response(b"".join(lines), media_type=LINES)
    result: dict[str, Any] = dict(columns)
    if single and columns["prediction"]:
        result = {name: values[0] for name, values in columns.items()}
    if told is not None:
        result |= {"problems": told}
    return Response(orjson.dumps(result), media_type="application/json")


def _as_arrow(columns: dict[str, list[Any]], told: list[Any] | None) -> bytes:
    import pyarrow as pa

    table = pa.table(columns)
    if told is not None:
        table = table.replace_schema_metadata({"problems": orjson.dumps(told)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()
