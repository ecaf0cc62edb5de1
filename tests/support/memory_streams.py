"""Sources and sinks in memory, and a worker on a state folder that can crash at chosen moments."""

import threading

from brokers import as_bytes
from state_folders import new_model

from spanboost.data.messages.message import Message, UnavailableError
from spanboost.service.learning.engine import Engine
from spanboost.service.limits import StateLimits
from spanboost.service.request_rows import RowParser
from spanboost.service.storage.state import State
from spanboost.service.streaming.open_streams import Streams
from spanboost.service.streaming.stream_worker import Behaviour, StreamWorker


class MemorySource:
    """Messages in a list; positions are their indices. `sizes` has the sizes of batches."""

    def __init__(self, values, sizes=(1000,), place="memory:rows"):
        self.values, self.sizes, self.place = values, [*sizes], place
        self.name, self.epoch = place, 0
        self.problem, self.chosen, self.warnings = None, {}, []
        self.next, self.committed, self.failures = 0, None, 0
        self.kept_alive = 0

    def idle_reason(self):
        return None

    def start(self, positions):
        self.next = positions.get(self.place, -1) + 1
        self.epoch += 1

    def poll(self, seconds, positions):
        if self.failures:
            self.failures -= 1
            raise UnavailableError("the source is away")
        size = self.sizes[self.next % len(self.sizes)]
        first, self.next = self.next, min(self.next + size, len(self.values))
        return [Message(self.place, k, as_bytes(self.values[k])) for k in range(first, self.next)]

    def keep_alive(self, positions):
        self.kept_alive += 1

    def commit(self, positions):
        self.committed = positions.get(self.place)

    def ends(self):
        return {self.place: len(self.values) - 1}

    def has_read(self, ends):
        return self.next > ends[self.place]

    def lag(self):
        return {self.place: len(self.values) - self.next}

    def close(self, positions):
        self.commit(positions)


class MemorySink:
    """Messages that were delivered; `before` is called before each delivery, `after` after it."""

    def __init__(self, before=lambda: None, after=lambda: None):
        self.name, self.delivered = "memory", []
        self.before, self.after = before, after

    def deliver(self, messages):
        self.before()
        self.delivered += messages
        self.after()

    def close(self):
        pass


DRAIN = Behaviour(drain=True)


class CrashError(Exception):
    """The end of a process, as far as a test can have it."""


class CrashingState(State):
    """A state folder whose journal may be the last thing that a process writes."""

    def __init__(self, *arguments, reach=lambda point: None):
        self.reach = reach
        super().__init__(*arguments)

    def commit(self, entry):
        self.reach("before commit")
        super().commit(entry)
        self.reach("after commit")


class Run:
    """A worker that runs until it has processed everything, is stopped, or crashes."""

    def __init__(self, folder, streams, behaviour=DRAIN, limits=None, reach=None):
        state = CrashingState(
            folder, new_model, limits or StateLimits(snapshot_rows=25), reach=reach or (lambda _: 0)
        )
        self.failures, self.ended = [], threading.Event()
        self.engine = Engine(state, on_failure=self._fail)
        parser = RowParser(state.model.schema, "id", 100)
        self.worker = StreamWorker(
            self.engine, parser, streams, behaviour, self._fail, self.ended.set
        )

    def _fail(self, why):
        self.failures.append(why)
        self.ended.set()

    def wait(self):
        """Start the worker, and wait for its end; return the reasons of a failure."""
        self.worker.start()
        assert self.ended.wait(20)
        self.worker.close()
        return self.failures

    def close(self, crashed=False):
        """Close the folder; after a crash without a snapshot, as the process would leave it."""
        self.worker.close()
        if not crashed:
            self.engine.close()
            return
        self.engine.predictor.close()
        self.engine.writer.close()
        self.engine.state.close()


def streams_of(rows, labels=None, predictions=None, dead_letters=None):
    return Streams(
        lambda worker: rows,
        None if labels is None else lambda worker: labels,
        None if predictions is None else lambda: predictions,
        None if dead_letters is None else lambda: dead_letters,
    )
