"""The engine of a worker process: it predicts with a model that follows the folder of the leader.

A thread reads the journal many times a second and learns new records; another one predicts. Unlike
`Engine`, it writes nothing and keeps no rows.
"""

import threading
import time
from collections.abc import Callable, Sequence

from spanboost.errors import DataError
from spanboost.models.memory import fixed_bytes
from spanboost.rows.column_rows import join_rows
from spanboost.service.learning.jobs import Predictions, PredictJob, group_alike
from spanboost.service.learning.memory_pool import IdleTrimmer, MemoryPool
from spanboost.service.learning.row_predictions import NoIntervalsError
from spanboost.service.learning.shared_model import SharedModel
from spanboost.service.learning.worker import Worker
from spanboost.service.limits import RequestLimits
from spanboost.service.memory import plan_memory
from spanboost.service.storage.control import decode_control, is_control
from spanboost.service.storage.entry import decode_entry
from spanboost.service.storage.journal_tail import DivergedError, ShippedRecord
from spanboost.service.storage.record_files import StateError
from spanboost.service.storage.replica import ReplicaState, reaches_end

POLL_SECONDS = 0.05  # time between two looks into the journal
MAX_LAG_SECONDS = 1.0  # the leader answers instead of a model that is further behind


class Replica:
    """The threads that follow the leader and predict."""

    def __init__(
        self,
        state: ReplicaState,
        limits: RequestLimits,
        on_failure: Callable[[str], None] = lambda why: None,
    ) -> None:
        """Start the threads; UsageError if --max-memory is too small for the model.

        on_failure: receives the reason when the model can no longer follow or predict. The process
            must end then, so that the leader starts it again.
        """
        self.state, self._on_failure = state, on_failure
        models = [state.model, *([] if state.challenger is None else [state.challenger.model])]
        fixed = sum(map(fixed_bytes, models))
        self.memory = plan_memory(limits.memory_bytes, fixed, limits.memory_share)
        self.work_memory = MemoryPool(self.memory.work_bytes)
        self._trimmer = IdleTrimmer(self.work_memory)
        self.predicted = 0  # rows since the start
        self._shared = SharedModel(state)
        self.predictor = Worker(
            "predictor", self._predict, limits.waiting_rows, on_failure=on_failure
        )
        self._equal_at = -float("inf")  # the model has all records that the journal had then
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="spanboost-replica", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End all threads."""
        self._stop.set()
        self._thread.join()
        self.predictor.close()
        self._trimmer.close()

    @property
    def lag_seconds(self) -> float:
        """Time since the model had all records of the journal; infinite before the first time."""
        return time.monotonic() - self._equal_at

    @property
    def fresh(self) -> bool:
        """Whether the model is new enough to predict."""
        return self.lag_seconds <= MAX_LAG_SECONDS

    def _predict(self, jobs: Sequence[PredictJob]) -> None:
        for group in group_alike(jobs):
            self._predict_group(group)

    def _predict_group(self, jobs: Sequence[PredictJob]) -> None:
        self._shared.note_prediction()
        rows = join_rows([job.features for job in jobs])
        try:
            columns, _ = self._shared.predict(rows, jobs[0].ends)
        except NoIntervalsError as error:
            for job in jobs:
                job.set_exception(error)
            return
        except DataError as error:
            if len(jobs) == 1:
                jobs[0].set_exception(error)
                return
            for job in jobs:  # so that only the jobs at fault are refused
                self._predict([job])
            return
        first = 0
        for job in jobs:
            part = slice(first, first := first + job.rows)
            self.predicted += job.rows
            own = {name: values[part] for name, values in columns.items()}
            job.set_result(Predictions(None, own))

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                if self._step():
                    self._stop.wait(POLL_SECONDS)
        except DivergedError as error:
            self._on_failure(f"the journal does not continue the model: {error}")
        except BaseException as error:  # otherwise the model would silently stay behind
            self._on_failure(f"following the leader failed: {type(error).__name__}: {error}")

    def _step(self) -> bool:
        """Learn the next records; return whether the model has all records now."""
        looked = time.monotonic()
        try:
            shipment = self.state.read()
        except (StateError, OSError):  # the leader writes it at the moment; the lag tells if not
            return True
        for record in shipment.records:
            if self._stop.is_set():
                return False
            self._learn(record)
        if not reaches_end(shipment):
            return False
        self._equal_at = looked
        return True

    def _learn(self, record: ShippedRecord) -> None:
        payload = memoryview(record.payload)
        if is_control(payload):
            self.state.obey(decode_control(payload))
        else:
            entry = decode_entry(payload)
            self._shared.learn(entry)
            if not entry.rows:  # a repair has emptied the record
                self.state.learn(entry, 0, 0)
        self.state.note_learned(record)
