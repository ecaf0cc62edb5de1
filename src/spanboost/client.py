"""Clients of `spanboost serve`: `Client` for threads, `AsyncClient` for asyncio.

A client retries requests that fail on the way, and requests that the service cannot answer now
(status 429 or 5xx). Every row gets an id before it is first sent, and the service learns each id
once, so a retry does not make it learn a label twice.

    with Client("http://127.0.0.1:8000") as client:
        prediction = client.predict({"size": 3, "city": "Ulm"})
        ...
        client.label(prediction.id, 12.5)
"""

import os
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypedDict, Unpack
from uuid import uuid4

from spanboost.atomic_files import atomic_write
from spanboost.checks import label_pairs, plain_row, trust
from spanboost.errors import UserError, connection_advice, describe_connection_error, install_hint

__all__ = ["AsyncClient", "Client", "Outcome", "Prediction", "Problem", "ServiceError"]
Row = Mapping[str, Any]  # numbers, strings, times and None by name
OK, CONFLICT, TOO_MANY_REQUESTS, FIRST_SERVER_ERROR = 200, 409, 429, 500
RETRIES = 10  # enough for a restart of the service
MAX_DELAY = 10.0  # seconds between two attempts, unless the service asks for more
MAX_RETRY_AFTER = 60.0  # longest time that the service can ask for
TRUST = "pass its file as certificate (in commands: --certificate FILE)"


class Asked(TypedDict, total=False):
    """Coverages of intervals; None asks for nothing."""

    interval: float | None
    lower: float | None
    upper: float | None


class Prediction(NamedTuple):
    """A prediction; send the label with its `id`."""

    id: str | None
    value: float | str  # a number, or the most probable class
    columns: dict[str, Any]  # the whole response, including probabilities


class Problem(NamedTuple):
    """A row that the service rejected, and why."""

    row: int
    field: str | None
    reason: str


class Outcome(NamedTuple):
    """The result of sending labels; `duplicates` had been learned before, with the same label."""

    learned: int
    duplicates: int
    problems: list[Problem]


class ServiceError(UserError):
    """The service rejected a request, or cannot be reached (status 0)."""

    def __init__(self, status: int, message: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self.status, self.problems = status, list(problems)


class _Request(NamedTuple):
    method: str
    path: str
    token: str | None
    query: Mapping[str, str] | None = None
    body: Any = None
    key: str | None = None  # the service executes requests with the same key once


class _Base:
    """The requests that both clients send."""

    def __init__(
        self,
        address: str = "http://127.0.0.1:8000",
        *,
        predict_token: str | None = None,
        learn_token: str | None = None,
        admin_token: str | None = None,
        timeout: float = 30.0,
        retries: int = RETRIES,
        id: str = "id",
        label: str = "label",
        certificate: str | None = None,
    ) -> None:
        """Create a client.

        id, label: the keys of ids and labels in rows, as in `serve --id` and `serve --label`.
        certificate: file with the certificate that an https:// address must have; by default, any
            certificate that the system trusts.
        """
        self._http = self._open_connections(
            base_url=address, timeout=timeout, trust_env=False, verify=trust(certificate)
        )
        self._predict_token, self._learn_token = predict_token, learn_token
        self._admin_token = admin_token
        self._retries, self._id, self._label = retries, id, label

    def _open_connections(self, **options: Any) -> Any:
        raise NotImplementedError

    def _predict_request(self, rows: Sequence[Row], keep: bool, asked: Asked) -> _Request:
        query, body = {} if keep else {"keep": "false"}, list(map(plain_row, rows))
        query |= {name: str(one) for name, one in asked.items() if one is not None}
        return _Request("POST", "/predict", self._predict_token, query, body)

    def _learn_request(self, rows: Iterable[Row], skip: bool, wait: bool) -> _Request:
        query = {"on_error": "skip"} if skip else {}
        query |= {"wait": "true"} if wait else {}
        body = [self._with_id(row) for row in rows]
        return _Request("POST", "/learn", self._learn_token, query, body)

    def _with_id(self, row: Row) -> dict[str, Any]:
        """Return a copy of the row with an id; a new one if the row has none."""
        copy = plain_row(row)
        if copy.get(self._id) is None:
            copy[self._id] = uuid4().hex
        return copy

    def _label_request(self, labels: Mapping[str, Any], skip: bool, wait: bool) -> _Request:
        rows = [{self._id: id, self._label: label} for id, label in label_pairs(labels)]
        return self._learn_request(rows, skip, wait)

    def _get_request(self, path: str) -> _Request:
        return _Request("GET", path, self._admin_token)

    def _pauses(self) -> Iterator[float | None]:
        """Yield the seconds to wait after each attempt; None after the last one.

        They are random, so that clients do not retry at the same time.
        """
        for attempt in range(self._retries):
            yield min(MAX_DELAY, 0.1 * 2**attempt) * random.uniform(0.5, 1.5)
        yield None


class Client(_Base):
    """A client for threads. Close it after use, or use it in a `with` statement."""

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def predict(self, row: Row, *, keep: bool = True, **asked: Unpack[Asked]) -> Prediction:
        """Return the prediction for one row.

        keep: whether the service stores the row for its label.
        interval: the coverage of an interval, in the columns `low` and `high` of the prediction.
        lower, upper: the coverage of an interval with one end, in a column of the same name.
        """
        return self.predict_many([row], keep=keep, **asked)[0]

    def predict_many(
        self, rows: Sequence[Row], *, keep: bool = True, **asked: Unpack[Asked]
    ) -> list[Prediction]:
        """Return the predictions for rows, all made by the same state of the model."""
        return _parse_predictions(self._send(self._predict_request(rows, keep, asked)).json())

    def label(self, id: str, label: float | str, *, wait: bool = False) -> Outcome:
        """Send the label of a predicted row; with `wait`, return when the row is learned."""
        return self.label_many({id: label}, wait=wait)

    def label_many(
        self, labels: Mapping[str, float | str], *, skip: bool = False, wait: bool = False
    ) -> Outcome:
        """Send labels by the ids of predicted rows.

        skip: skip bad labels instead of refusing all of them.
        wait: return when the rows are learned, so that the next prediction uses them. Otherwise it
            returns when the service has stored them.
        """
        return _parse_outcome(self._send(self._label_request(labels, skip, wait)).json())

    def learn(self, rows: Iterable[Row], *, skip: bool = False, wait: bool = False) -> Outcome:
        """Send labelled rows to learn, in order; `skip` and `wait` as in `label_many`."""
        return _parse_outcome(self._send(self._learn_request(rows, skip, wait)).json())

    def model(self) -> bytes:
        """Return the current model as the bytes of a .sb file."""
        return self._send(self._get_request("/model")).content

    def administer(
        self, method: str, path: str, body: Any = None, query: Mapping[str, str] | None = None
    ) -> Any:
        """Send a request to a path that needs the admin token; return the JSON of the response.

        body: JSON values, or the bytes of a file.
        """
        key = None if method == "GET" else uuid4().hex
        return self._send(_Request(method, path, self._admin_token, query, body, key)).json()

    def metrics(self) -> dict[str, float]:
        """Return the metrics of the service by name, with the labels of each."""
        return _parse_metrics(self._send(self._get_request("/metrics")).text)

    def backup(
        self,
        path: str | os.PathLike[str],
        on_progress: Callable[[int, int], None] = lambda done, size: None,
    ) -> None:
        """Write a backup of the service to a file, which only the owner may read.

        on_progress: receives the number of bytes received so far, and the size of the backup.
        """
        request = _httpx_arguments(self._get_request("/backup"))
        try:
            with self._http.stream(**request) as response, atomic_write(path, private=True) as file:
                if response.status_code != OK:
                    response.read()
                _check(response)
                size, done = int(response.headers.get("content-length", 0)), 0
                for chunk in response.iter_bytes():
                    file.write(chunk)
                    done += len(chunk)
                    on_progress(done, size)
        except _httpx().TransportError as error:
            _check(error)

    def _open_connections(self, **options: Any) -> Any:
        return _httpx().Client(**options)

    def _send(self, request: _Request) -> Any:
        lost = False  # whether an attempt may have succeeded without an answer
        for pause in self._pauses():
            result = self._attempt(request)
            delay = _retry_delay(result, pause)
            if delay is None:
                return _check(result, lost and request.key is not None)
            lost = lost or not isinstance(result, _httpx().ConnectError)
            time.sleep(delay)
        raise AssertionError

    def _attempt(self, request: _Request) -> Any:
        try:
            return self._http.request(**_httpx_arguments(request))
        except _httpx().TransportError as error:
            return error


class AsyncClient(_Base):
    """A client for asyncio. Close it after use, or use it in an `async with` statement."""

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def predict(self, row: Row, *, keep: bool = True, **asked: Unpack[Asked]) -> Prediction:
        """Return the prediction for one row; the parameters are those of `Client.predict`."""
        return (await self.predict_many([row], keep=keep, **asked))[0]

    async def predict_many(
        self, rows: Sequence[Row], *, keep: bool = True, **asked: Unpack[Asked]
    ) -> list[Prediction]:
        """Return the predictions for rows, all made by the same state of the model."""
        request = self._predict_request(rows, keep, asked)
        return _parse_predictions((await self._send(request)).json())

    async def label(self, id: str, label: float | str, *, wait: bool = False) -> Outcome:
        """Send the label of a predicted row; with `wait`, return when the row is learned."""
        return await self.label_many({id: label}, wait=wait)

    async def label_many(
        self, labels: Mapping[str, float | str], *, skip: bool = False, wait: bool = False
    ) -> Outcome:
        """Send labels by the ids of predicted rows.

        skip: skip bad labels instead of refusing all of them.
        wait: return when the rows are learned, so that the next prediction uses them. Otherwise it
            returns when the service has stored them.
        """
        return _parse_outcome((await self._send(self._label_request(labels, skip, wait))).json())

    async def learn(
        self, rows: Iterable[Row], *, skip: bool = False, wait: bool = False
    ) -> Outcome:
        """Send labelled rows to learn, in order; `skip` and `wait` as in `label_many`."""
        return _parse_outcome((await self._send(self._learn_request(rows, skip, wait))).json())

    async def model(self) -> bytes:
        """Return the current model as the bytes of a .sb file."""
        return (await self._send(self._get_request("/model"))).content

    async def metrics(self) -> dict[str, float]:
        """Return the metrics of the service by name, with the labels of each."""
        return _parse_metrics((await self._send(self._get_request("/metrics"))).text)

    def _open_connections(self, **options: Any) -> Any:
        return _httpx().AsyncClient(**options)

    async def _send(self, request: _Request) -> Any:
        import asyncio

        for pause in self._pauses():
            result = await self._attempt(request)
            delay = _retry_delay(result, pause)
            if delay is None:
                return _check(result)
            await asyncio.sleep(delay)
        raise AssertionError

    async def _attempt(self, request: _Request) -> Any:
        try:
            return await self._http.request(**_httpx_arguments(request))
        except _httpx().TransportError as error:
            return error


def _httpx() -> Any:
    try:
        import httpx
    except ImportError:
        raise UserError(f"the client needs the package httpx: {install_hint('client')}") from None
    return httpx


def _httpx_arguments(request: _Request) -> dict[str, Any]:
    headers = {} if request.token is None else {"Authorization": f"Bearer {request.token}".encode()}
    headers |= {} if request.key is None else {"Idempotency-Key": request.key.encode()}
    body: dict[str, Any] = {"json": request.body}
    if isinstance(request.body, bytes):
        headers["Content-Type"], body = b"application/octet-stream", {"content": request.body}
    target = {"method": request.method, "url": request.path, "params": request.query or {}}
    return target | {"headers": headers} | body


def _retry_delay(result: Any, pause: float | None) -> float | None:
    """Return the seconds to wait before the next attempt; None if this was the last attempt.

    result: a response, or the exception that was raised instead.
    """
    if pause is None or isinstance(result, _httpx().UnsupportedProtocol):
        return None
    if isinstance(result, Exception):
        return pause if connection_advice(result, TRUST) is None else None
    if result.status_code != TOO_MANY_REQUESTS and result.status_code < FIRST_SERVER_ERROR:
        return None
    retry_after = result.headers.get("retry-after", "")
    return max(pause, min(float(retry_after), MAX_RETRY_AFTER)) if retry_after.isdigit() else pause


def _check(result: Any, lost: bool = False) -> Any:
    """Return a successful response; raise ServiceError for any other result.

    lost: whether an earlier attempt may have succeeded, so that this one was refused.
    """
    if isinstance(result, Exception):
        why = describe_connection_error(result, TRUST)
        address = result.request.url.join("/")  # type: ignore[attr-defined]
        raise ServiceError(0, f"cannot reach the service at {str(address)[:-1]}: {why}")
    if result.status_code == OK:
        return result
    try:
        content = result.json()
        problems = [Problem(**problem) for problem in content.get("problems", [])]
        message = str(content["error"])
    except (ValueError, TypeError, KeyError, AttributeError):  # the sender is a proxy, for example
        message = f"unexpected response with status {result.status_code}; check the address"
        problems = []
    if lost and result.status_code == CONFLICT:
        message += "; an earlier attempt, whose answer was lost, may have succeeded"
    raise ServiceError(result.status_code, message, problems)


def _parse_predictions(content: dict[str, list[Any]]) -> list[Prediction]:
    each = (dict(zip(content, row, strict=True)) for row in zip(*content.values(), strict=True))
    return [Prediction(row.get("id"), row["prediction"], row) for row in each]


def _parse_outcome(content: dict[str, Any]) -> Outcome:
    problems = [Problem(**one) for one in content["problems"]]
    return Outcome(content["learned"], content["duplicates"], problems)


def _parse_metrics(text: str) -> dict[str, float]:
    lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}
