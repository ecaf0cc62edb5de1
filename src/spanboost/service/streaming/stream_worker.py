"""A thread that reads messages, lets the engine predict and learn, and writes predictions.

For each batch of messages it does the following, in this order:

1. predict the rows without labels; they are stored until their labels arrive
2. deliver the predictions, and the messages that cannot be used
3. write the labelled rows and the positions of all messages as one record of the journal
4. learn the record

After a crash before step 3, the messages are read again: predictions may be delivered twice, but
nothing was learned. After a crash behind it, the record is replayed and the messages are not read
again. So each row is learned exactly once.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from logging import ERROR, INFO, WARNING
from secrets import token_hex
from typing import Any, NamedTuple

import orjson

from spanboost.data.messages.message import Message, Outgoing, Positions
from spanboost.data.problems import StreamError
from spanboost.errors import DataError, UserError
from spanboost.models.quantiles.asked_levels import End
from spanboost.service.learning.engine import Engine
from spanboost.service.learning.example_rows import describe_missing
from spanboost.service.learning.jobs import LearnJob, Outcome, PredictJob, RowConflictError
from spanboost.service.learning.worker import ClosedError, Job, Worker
from spanboost.service.log import LimitedLog, write_log
from spanboost.service.request_rows import RowParser, collect_examples
from spanboost.service.storage.pending_rows import PendingFullError
from spanboost.service.streaming.idle_log import IdleLog, log_end
from spanboost.service.streaming.message_batch import (
    BadRow,
    MessageBatch,
    RowToPredict,
    summarise_field,
)
from spanboost.service.streaming.open_streams import (
    DEAD_LETTERS,
    LABELS,
    PREDICTIONS,
    ROWS,
    OpenStreams,
    Streams,
)
from spanboost.service.streaming.retries import StoppedError

WORKER = "worker"  # key of the worker's name among the positions
POLL_SECONDS = 0.1  # time to wait for messages
COMMIT_SECONDS = 0.1  # time between two commits to the message systems
REPORT_SECONDS = 1.0  # time between two measurements
END_SECONDS = 20.0  # time for the last batch when the worker is stopped


class Behaviour(NamedTuple):
    """How a worker treats its messages."""

    skip_bad: bool = False  # whether to skip messages that cannot be used, without dead letters
    drain: bool = False  # whether to end when all messages were processed
    ends: tuple[End, ...] = ()  # of intervals that are predicted


class StreamCounts:
    """Numbers since the start, for metrics."""

    def __init__(self) -> None:
        self.messages = {ROWS: 0, LABELS: 0}
        self.predictions = self.bad_rows = 0
        self.paused = False  # whether rows wait because too many predicted rows have no label
        self.lags: dict[str, int | None] = {}  # messages that were not read, by place


class StreamWorker:
    """The thread, and what is known about its streams."""

    def __init__(
        self,
        engine: Engine,
        parser: RowParser,
        streams: Streams,
        behaviour: Behaviour,
        on_failure: Callable[[str], None] = lambda why: None,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        """Prepare a worker.

        on_failure: receives the reason if the worker cannot continue.
        on_end: called when all messages were processed, if the worker drains its streams.
        """
        self._engine, self._parser, self._behaviour = engine, parser, behaviour
        self._streams, self._on_failure, self._on_end = streams, on_failure, on_end
        self.counts = StreamCounts()
        self._stop = threading.Event()
        self._open = OpenStreams(lambda: engine.state.positions, self._stop)
        self._thread: threading.Thread | None = None
        self._ends: Positions | None = None  # of the rows that must be read before held labels
        self._skipped = LimitedLog()
        self._idle, self._drained = IdleLog(), False
        self._committed = self._reported = 0.0  # when the message systems were last told or asked

    def start(self) -> None:
        """Connect, and start the thread.

        Raises StreamError if a topic is missing, for example. Waits for systems that cannot be
        reached, until `stop` is called.
        """
        name = self._engine.state.positions.get(WORKER)
        try:
            if name is None:
                name = f"spanboost-{token_hex(8)}"
                self._learn({}, {WORKER: name})
            self._open.connect(self._streams, name)
        except (StoppedError, ClosedError):  # the engine reports why it is closed
            return
        write_log(INFO, f"the worker {name} {self._open}")
        self._thread = threading.Thread(target=self._run, name="spanboost-stream", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End soon; any thread may call this."""
        self._stop.set()

    def close(self) -> None:
        """Finish the current batch, tell the message systems, and disconnect."""
        self.stop()
        if self._thread is not None:
            self._thread.join(END_SECONDS)

    def problems(self) -> dict[str, str | None]:
        """Return what is wrong with each stream; None if nothing is."""
        return self._open.problems()

    def _run(self) -> None:
        try:
            with suppress(StoppedError, ClosedError):
                while not self._stop.is_set():
                    self._step()
            log_end(self._drained, self.problems(), len(self._engine.state.pending))
        except UserError as error:
            self._on_failure(str(error))
        except BaseException as error:  # otherwise the streams would silently be left alone
            write_log(ERROR, "the stream worker failed", traceback=True)
            self._on_failure(f"the stream worker failed ({type(error).__name__})")
        self._open.close()

    def _step(self) -> None:
        """Read messages once, and process those that need not wait."""
        found, held = self._read(ROWS, POLL_SECONDS), self._open.held
        held[ROWS] = self._process(ROWS, held[ROWS])
        self.counts.paused = bool(held[ROWS])
        if LABELS in self._open.sources:
            found += self._step_labels()
        if found:
            self._idle.note_messages()
        if any(held.values()) and not found:
            self._stop.wait(POLL_SECONDS)
        if time.monotonic() - self._committed > COMMIT_SECONDS:
            self._commit()
        if time.monotonic() - self._reported > REPORT_SECONDS:
            self._report()
        if self._behaviour.drain and not found and not any(held.values()):
            self._end_if_drained()

    def _step_labels(self) -> int:
        """Read labels, and process them after all rows that were written before them.

        Their own order is kept, so the model does not depend on how fast the rows were read.
        Returns the number of labels that were read.
        """
        found, held, rows = self._read(LABELS, 0.0), self._open.held, self._open.sources[ROWS]
        if found:
            self._ends = None
        if not held[LABELS]:
            return found
        if self._ends is None:
            self._ends = self._open.ask(ROWS, rows.ends)
        if held[ROWS]:  # the rows wait for space, which labels make
            held[LABELS] = self._process_known(held[LABELS])
        elif self._ends and self._open.ask(ROWS, partial(rows.has_read, self._ends)):
            held[LABELS] = self._process(LABELS, held[LABELS])
        return found

    def _read(self, part: str, seconds: float) -> int:
        """Read messages of a source, unless some are held; return their number."""
        found = self._open.poll(part, seconds)
        self.counts.messages[part] += found
        chosen = self._open.sources[part].chosen
        if chosen:
            self._learn({}, dict(chosen))
            chosen.clear()
        return found

    def _process(self, part: str, messages: list[Message]) -> list[Message]:
        """Process messages; return those that must wait until there is space for more rows."""
        size = len(messages)
        while messages and size:
            try:
                self._handle(self._parse(part, messages[:size]))
            except PendingFullError as error:
                size //= 2
                if not size and not self.counts.paused:
                    write_log(WARNING, f"{error}; the rows are paused until then")
                continue
            messages = messages[size:]
            size = min(size, len(messages))
        return messages

    def _process_known(self, messages: list[Message]) -> list[Message]:
        """Process the labels up to the first one whose row was not read yet."""
        batch = self._parse(LABELS, messages)
        known = min(map(batch.message_of, batch.unknown), default=len(messages))
        return [*self._process(LABELS, messages[:known]), *messages[known:]]

    def _parse(self, part: str, messages: Sequence[Message]) -> MessageBatch:
        state = self._engine.state

        def waits(id: str) -> bool:
            return id in state.ids or state.pending.row_bytes(id) > 0

        explain = partial(describe_missing, state)
        return MessageBatch(messages, self._parser, waits, explain, labels_only=part == LABELS)

    def _handle(self, batch: MessageBatch) -> None:
        """Predict, deliver, and learn a batch; PendingFullError if there is no space for it."""
        predictions, bad = self._predict(batch.to_predict)
        self._set_aside(batch, [*batch.bad, *bad])
        self._open.deliver(PREDICTIONS, predictions)
        self.counts.predictions += len(predictions)
        examples = dict(batch.examples)
        while True:
            outcome = self._learn(examples, batch.positions)
            if not outcome.rejected:
                return
            # nothing was learned: the positions may only be written after the dead letters
            rejected = outcome.rejected
            self._set_aside(
                batch,
                [BadRow(one.row, one.reason, summarise_field(one.field)) for one in rejected],
            )
            for one in rejected:
                del examples[one.row]

    def _predict(self, rows: Sequence[RowToPredict]) -> tuple[list[Outgoing], list[BadRow]]:
        """Predict rows and store them; return the messages to deliver, and the bad rows."""
        rows, bad, ends = [*rows], list[BadRow](), self._behaviour.ends
        record = self._engine.state.journal.last + 1  # the one with the position after these rows
        while rows:
            features, ids = [one.row for one in rows], [one.id for one in rows]
            job = partial(PredictJob, features, ids, keep=True, ends=ends, record=record)
            try:
                found = self._submit(self._engine.predictor, job)
            except DataError as error:
                reasons = {error.row: error.what}
            except RowConflictError as error:
                reasons = error.reasons
            else:
                return _prediction_messages(rows, found.columns), bad
            bad += [BadRow(rows[t].number, reason) for t, reason in reasons.items()]
            rows = [one for t, one in enumerate(rows) if t not in reasons]
        return [], bad

    def _set_aside(self, batch: MessageBatch, bad: Sequence[BadRow]) -> None:
        """Deliver the messages of bad rows as dead letters, skip them, or end the worker."""
        if not bad:
            return
        if DEAD_LETTERS not in self._open.sinks and not self._behaviour.skip_bad:
            raise StreamError(
                f"{batch.describe(min(bad))}; add --dead-letters URL to set such messages aside "
                "with the reason, or --on-error skip to skip them"
            )
        if DEAD_LETTERS not in self._open.sinks:
            for one in bad:
                self._skipped.write("skipped", WARNING, f"skipped: {batch.describe(one)}")
        self._open.deliver(DEAD_LETTERS, batch.dead_letters(bad))
        self.counts.bad_rows += len(bad)

    def _learn(self, examples: dict[int, Any], positions: Mapping[str, Any]) -> Outcome:
        job = partial(
            LearnJob, collect_examples(examples), skip=False, wait=True, positions=positions
        )
        outcome: Outcome = self._submit(self._engine.writer, job)
        return outcome

    def _submit(self, worker: Worker, new_job: Callable[[], Job]) -> Any:
        """Return the result of a job, which is tried again while the disk or the queue is full."""

        def run() -> Any:
            job = new_job()
            worker.submit(job)
            return job.result()

        return self._open.retries.call("journal", run)

    def _commit(self) -> None:
        """Tell the message systems what was processed."""
        self._committed = time.monotonic()
        for part, source in self._open.sources.items():
            self._open.ask(part, partial(source.commit, self._engine.state.positions))

    def _report(self) -> None:
        """Measure how far the message systems are ahead, and say why the worker waits."""
        self._reported, lags = time.monotonic(), dict[str, int | None]()
        for part, source in self._open.sources.items():
            lags |= self._open.ask(part, source.lag) or {}
        self.counts.lags = lags
        self._idle.report(self._idle_reasons, len(self._engine.state.pending))

    def _idle_reasons(self) -> dict[str, str | None]:
        """Return what keeps messages from each stream; None if there are no new ones."""
        reasons = self._open.idle_reasons()
        if self.counts.paused and reasons[ROWS] is None:
            reasons[ROWS] = "too many predicted rows have no label (--pending, --pending-bytes)"
        return reasons

    def _end_if_drained(self) -> None:
        """End the worker if everything that exists now was read."""
        for part, source in self._open.sources.items():
            ends = self._open.ask(part, source.ends)
            if ends is None or not self._open.ask(part, partial(source.has_read, ends)):
                return
        self._drained = True
        self._stop.set()
        self._on_end()


def _prediction_messages(
    rows: Sequence[RowToPredict], columns: Mapping[str, Sequence[Any]]
) -> list[Outgoing]:
    """Return predictions as messages: JSON objects with the id and the columns of `predict`."""
    values = zip(*columns.values(), strict=True)
    return [
        Outgoing(one.id, orjson.dumps({"id": one.id} | dict(zip(columns, each, strict=True))))
        for one, each in zip(rows, values, strict=True)
    ]
