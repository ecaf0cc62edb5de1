"""A client of `spanboost serve`, for threads and for asyncio.

A request that fails on the way is sent again. No label is learned twice by that: every row has an
id before it is first sent, and the service learns one id once.

    with Client("http://127.0.0.1:8000") as client:
        answer = client.predict({"size": 3, "city": "Ulm"})
        ...
        client.label(answer.id, 12.5)
"""

import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import uuid4

from spanboost.errors import UserError

Row = Mapping[str, Any]  # numbers, strings and None by name
AGAIN = (429, 503)  # answers that say: later
RETRIES = 6
LONGEST = 10.0  # seconds between two attempts


class Prediction(NamedTuple):
    """An answer: `id` is what its label is sent under."""

    id: str | None
    value: float | str  # a number, or the likeliest class
    columns: dict[str, Any]  # all that was answered: probabilities, too


class Problem(NamedTuple):
    """Why a row was not taken."""

    row: int
    field: str | None
    reason: str


class Outcome(NamedTuple):
    """What became of labels; those learned before, by an attempt whose answer was lost, too."""

    learned: int
    duplicates: int
    problems: list[Problem]


class ServiceError(UserError):
    """The service refused, or cannot be reached (status 0)."""

    def __init__(self, status: int, message: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self.status, self.problems = status, list(problems)


class _Request(NamedTuple):
    method: str
    path: str
    token: str | None
    query: Mapping[str, str] | None = None
    body: Any = None


class _Base:
    """What both clients know of the service."""

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
    ) -> None:
        """id, label: what they are called in the service's rows."""
        self._http = self._connections(base_url=address, timeout=timeout, trust_env=False)
        self._predict, self._learn, self._admin = predict_token, learn_token, admin_token
        self._retries, self._id, self._label = retries, id, label

    def _connections(self, **options: Any) -> Any:
        raise NotImplementedError

    def _predicting(self, rows: Sequence[Row], keep: bool) -> _Request:
        query = {} if keep else {"keep": "false"}
        return _Request("POST", "/predict", self._predict, query, [dict(row) for row in rows])

    def _learning(self, rows: Iterable[Row], skip: bool) -> _Request:
        named = [self._named(row) for row in rows]
        query = {"on_error": "skip"} if skip else {}
        return _Request("POST", "/learn", self._learn, query, named)

    def _named(self, row: Row) -> dict[str, Any]:
        """A row with an id: a new one, if it has none of its own."""
        named = dict(row)
        if named.get(self._id) is None:
            named[self._id] = uuid4().hex
        return named

    def _labelling(self, labels: Mapping[str, Any], skip: bool) -> _Request:
        return self._learning(
            [{self._id: id, self._label: label} for id, label in labels.items()], skip
        )

    def _get(self, path: str) -> _Request:
        return _Request("GET", path, self._admin)

    def _pauses(self) -> Iterator[float | None]:
        """Seconds after each attempt, drawn at random so that clients do not come all at once."""
        for attempt in range(self._retries):
            yield min(LONGEST, 0.1 * 2**attempt) * random.uniform(0.5, 1.5)
        yield None


class Client(_Base):
    """A client for threads; close it, or use it in a `with`."""

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    def predict(self, row: Row, *, keep: bool = True) -> Prediction:
        """The prediction for a row; `keep` it for its label."""
        return self.predict_many([row], keep=keep)[0]

    def predict_many(self, rows: Sequence[Row], *, keep: bool = True) -> list[Prediction]:
        """Predictions for rows, all by the same state of the model."""
        return _predictions(self._send(self._predicting(rows, keep)).json())

    def label(self, id: str, label: Any) -> Outcome:
        """The label of a row that was predicted."""
        return self.label_many({id: label})

    def label_many(self, labels: Mapping[str, Any], *, skip: bool = False) -> Outcome:
        """Labels by the ids of rows that were predicted; `skip` those that are bad."""
        return _outcome(self._send(self._labelling(labels, skip)).json())

    def learn(self, rows: Iterable[Row], *, skip: bool = False) -> Outcome:
        """Learn rows with their labels, in order; `skip` those that are bad."""
        return _outcome(self._send(self._learning(rows, skip)).json())

    def model(self) -> bytes:
        """The model as it is, as a .sb file."""
        return self._send(self._get("/model")).content

    def metrics(self) -> dict[str, float]:
        """The service's figures, by their names and labels."""
        return _metrics(self._send(self._get("/metrics")).text)

    def _connections(self, **options: Any) -> Any:
        return _httpx().Client(**options)

    def _send(self, request: _Request) -> Any:
        for pause in self._pauses():
            answer = self._attempt(request)
            delay = _delay(answer, pause)
            if delay is None:
                return _checked(answer)
            time.sleep(delay)
        raise AssertionError

    def _attempt(self, request: _Request) -> Any:
        try:
            return self._http.request(**_arguments(request))
        except _httpx().TransportError as error:
            return error


class AsyncClient(_Base):
    """The same for asyncio; close it, or use it in an `async with`."""

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close its connections."""
        await self._http.aclose()

    async def predict(self, row: Row, *, keep: bool = True) -> Prediction:
        """The prediction for a row; `keep` it for its label."""
        return (await self.predict_many([row], keep=keep))[0]

    async def predict_many(self, rows: Sequence[Row], *, keep: bool = True) -> list[Prediction]:
        """Predictions for rows, all by the same state of the model."""
        return _predictions((await self._send(self._predicting(rows, keep))).json())

    async def label(self, id: str, label: Any) -> Outcome:
        """The label of a row that was predicted."""
        return await self.label_many({id: label})

    async def label_many(self, labels: Mapping[str, Any], *, skip: bool = False) -> Outcome:
        """Labels by the ids of rows that were predicted; `skip` those that are bad."""
        return _outcome((await self._send(self._labelling(labels, skip))).json())

    async def learn(self, rows: Iterable[Row], *, skip: bool = False) -> Outcome:
        """Learn rows with their labels, in order; `skip` those that are bad."""
        return _outcome((await self._send(self._learning(rows, skip))).json())

    async def model(self) -> bytes:
        """The model as it is, as a .sb file."""
        return (await self._send(self._get("/model"))).content

    async def metrics(self) -> dict[str, float]:
        """The service's figures, by their names and labels."""
        return _metrics((await self._send(self._get("/metrics"))).text)

    def _connections(self, **options: Any) -> Any:
        return _httpx().AsyncClient(**options)

    async def _send(self, request: _Request) -> Any:
        import asyncio

        for pause in self._pauses():
            answer = await self._attempt(request)
            delay = _delay(answer, pause)
            if delay is None:
                return _checked(answer)
            await asyncio.sleep(delay)
        raise AssertionError

    async def _attempt(self, request: _Request) -> Any:
        try:
            return await self._http.request(**_arguments(request))
        except _httpx().TransportError as error:
            return error


def _httpx() -> Any:
    try:
        import httpx
    except ImportError:
        raise UserError(
            "the client needs another package: pip install 'spanboost[client]'"
        ) from None
    return httpx


def _arguments(request: _Request) -> dict[str, Any]:
    headers = {} if request.token is None else {"Authorization": f"Bearer {request.token}".encode()}
    return {
        "method": request.method,
        "url": request.path,
        "params": request.query or {},
        "headers": headers,
        "json": request.body,
    }


def _delay(answer: Any, pause: float | None) -> float | None:
    """How long to wait for another attempt; None where this answer is the last."""
    if pause is None or isinstance(answer, _httpx().UnsupportedProtocol):
        return None
    if isinstance(answer, Exception):
        return pause
    if answer.status_code not in AGAIN:
        return None
    asked = answer.headers.get("retry-after", "")
    return max(pause, min(float(asked), LONGEST)) if asked.isdigit() else pause


def _checked(answer: Any) -> Any:
    """A good answer; a ServiceError for any other."""
    if isinstance(answer, Exception):
        raise ServiceError(0, f"the service cannot be reached: {answer or type(answer).__name__}")
    if answer.status_code == 200:
        return answer
    try:
        told = answer.json()
        problems = [Problem(**problem) for problem in told.get("problems", [])]
        message = str(told["error"])
    except (ValueError, TypeError, KeyError, AttributeError):  # not by the service itself
        message, problems = f"status {answer.status_code}", []
    raise ServiceError(answer.status_code, message, problems)


def _predictions(told: dict[str, list[Any]]) -> list[Prediction]:
    names = list(told)
    rows = [dict(zip(names, values, strict=True)) for values in zip(*told.values(), strict=True)]
    return [Prediction(row.get("id"), row["prediction"], row) for row in rows]


def _outcome(told: dict[str, Any]) -> Outcome:
    problems = [Problem(**problem) for problem in told["problems"]]
    return Outcome(told["learned"], told["duplicates"], problems)


def _metrics(text: str) -> dict[str, float]:
    lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}
