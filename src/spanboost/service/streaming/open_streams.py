"""The streams of a worker: connecting, reading and writing, with retries."""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from logging import WARNING
from typing import NamedTuple, TypeVar

from spanboost.data.messages.message import (
    Message,
    MessageSink,
    MessageSource,
    Outgoing,
    Positions,
    UnavailableError,
)
from spanboost.errors import UserError
from spanboost.service.log import write_log
from spanboost.service.streaming.retries import Retries

ROWS, LABELS, PREDICTIONS, DEAD_LETTERS = "rows", "labels", "predictions", "dead letters"
Answer = TypeVar("Answer")


class Streams(NamedTuple):
    """What a worker reads and writes, as functions that open it."""

    rows: Callable[[str], MessageSource]  # from the name of the worker
    labels: Callable[[str], MessageSource] | None = None  # None: they are among the rows
    predictions: Callable[[], MessageSink] | None = None
    dead_letters: Callable[[], MessageSink] | None = None


class OpenStreams:
    """The sources and sinks of a worker. A source that fails is started again."""

    def __init__(self, positions: Callable[[], Positions], stop: threading.Event) -> None:
        """Begin without streams; `positions` returns those in the journal."""
        self.sources: dict[str, MessageSource] = {}
        self.sinks: dict[str, MessageSink] = {}
        self.held: dict[str, list[Message]] = {}  # messages that were read and not processed
        self.retries = Retries(stop)
        self._positions = positions
        self._epochs: dict[str, int] = {}

    def connect(self, streams: Streams, worker: str) -> None:
        """Connect to all streams; StreamError if one of them cannot be used.

        Systems that cannot be reached are waited for, until StoppedError.
        """
        sinks = {PREDICTIONS: streams.predictions, DEAD_LETTERS: streams.dead_letters}
        for part, open_sink in sinks.items():
            if open_sink is not None:
                self.sinks[part] = self.retries.call(part, open_sink)
        for part, open_source in {ROWS: streams.rows, LABELS: streams.labels}.items():
            if open_source is not None:
                source = open_source(worker)
                self.retries.call(part, lambda one=source: one.start(self._positions()))  # type: ignore[misc]
                self.sources[part], self.held[part] = source, []
                self._epochs[part] = source.epoch

    def __str__(self) -> str:
        parts = [f"reads {part} from {one.name}" for part, one in self.sources.items()]
        return ", ".join([*parts, *(f"writes {p} to {one.name}" for p, one in self.sinks.items())])

    def poll(self, part: str, seconds: float) -> int:
        """Read messages of a source, unless some are held; return their number."""
        source = self.sources[part]
        if self.held[part]:
            self.ask(part, partial(source.keep_alive, self._positions()))
            return 0
        messages = self.ask(part, partial(source.poll, seconds, self._positions())) or []
        _log_warnings(source)
        self.held[part] += messages
        return len(messages)

    def ask(self, part: str, action: Callable[[], Answer]) -> Answer | None:
        """Return the answer of a source; None if it failed, and was started again."""
        source = self.sources[part]
        try:
            answer = action()
        except UnavailableError as error:
            self.retries.note_problem(part, error)
            self._close(source)
            self.retries.call(part, lambda: source.start(self._positions()))
            answer = None
        if source.epoch != self._epochs[part]:  # messages that were read will be read again
            self.held[part], self._epochs[part] = [], source.epoch
        return answer

    def deliver(self, part: str, messages: Sequence[Outgoing]) -> None:
        """Write messages to a sink, if there is one; StoppedError if that does not succeed."""
        if part in self.sinks and messages:
            sink = self.sinks[part]
            self.retries.call(part, lambda: sink.deliver(messages))

    def problems(self) -> dict[str, str | None]:
        """Return what is wrong with each stream; None if nothing is."""
        failing = self.retries.problems
        own = {part: source.problem for part, source in [*self.sources.items()]}
        sinks = dict.fromkeys([*self.sinks])
        return {part: failing.get(part) or why for part, why in {**own, **sinks}.items()}

    def idle_reasons(self) -> dict[str, str | None]:
        """Return what keeps messages from each source; None if there are no new ones."""
        return {
            part: source.problem or self.ask(part, source.idle_reason)
            for part, source in self.sources.items()
        }

    def close(self) -> None:
        """Tell the message systems what was processed, and disconnect."""
        for source in self.sources.values():
            self._close(source)
        for sink in self.sinks.values():
            sink.close()

    def _close(self, source: MessageSource) -> None:
        try:
            source.close(self._positions())
        except (UnavailableError, UserError) as error:  # the journal has the positions
            write_log(WARNING, str(error))
        _log_warnings(source)


def _log_warnings(source: MessageSource) -> None:
    for warning in source.warnings:
        write_log(WARNING, warning)
    source.warnings.clear()
