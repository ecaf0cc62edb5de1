"""Routes of the service: a request with an unknown or repeated query parameter is refused."""

from collections.abc import Callable, Sequence
from typing import Any

from starlette.datastructures import QueryParams
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from spanboost.errors import did_you_mean
from spanboost.service.http.middleware import error_response


class ApiRoute(Route):  # type: ignore[misc]
    """A route with the names of its query parameters.

    A misspelt parameter would otherwise be ignored, and its default would be used. Of a repeated
    one, only the last value would count.
    """

    def __init__(
        self,
        path: str,
        endpoint: Callable[..., Any],
        methods: list[str] | None = None,
        parameters: Sequence[str] = (),
    ) -> None:
        super().__init__(path, endpoint, methods=methods)
        self.parameters = parameters

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request to the path of this route."""
        if scope["method"] in self.methods:  # otherwise the method is the problem
            why = self._refusal(_names(scope))
            if why is not None:
                await error_response(400, why)(scope, receive, send)
                return
        await super().handle(scope, receive, send)

    def _refusal(self, names: Sequence[str]) -> str | None:
        """Return why a request with these query parameters is refused; None if it is not."""
        for k, name in enumerate(names):
            if name not in self.parameters:
                return _describe_unknown(name, self.parameters)
            if name in names[:k]:
                return f"duplicate query parameter {name!r}"
        return None


def _names(scope: Scope) -> list[str]:
    """Return the names of the query parameters, with those that are repeated."""
    return [name for name, _ in QueryParams(scope["query_string"]).multi_items()]


def _describe_unknown(name: str, known: Sequence[str]) -> str:
    unknown = f"unknown query parameter {name!r:.40}"
    if not known:
        return f"{unknown}; this path has no query parameters"
    hint = did_you_mean(name[:40], known)
    *others, last = map(repr, known)
    names = f"{', '.join(others)} or {last}" if others else last
    return unknown + (hint or f"; expected {names}")
