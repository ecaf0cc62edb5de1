"""The service without HTTP: a writer thread and a predictor thread share the model.

A label is acknowledged when it is in the journal. It is learned directly after that, in blocks
small enough for predictions to be made in between. Every prediction uses the state of the model
between two blocks.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from logging import INFO, WARNING
from secrets import token_hex
from typing import Any

from spanboost.compiling.arrays import Array
from spanboost.errors import DataError
from spanboost.models.files import to_bytes
from spanboost.models.memory import fixed_bytes
from spanboost.models.model import Model
from spanboost.rows.column_rows import join_rows, take_rows
from spanboost.service.histogram import Histogram
from spanboost.service.learning.class_limit import limit_classes
from spanboost.service.learning.example_rows import label_marks, validate_job
from spanboost.service.learning.jobs import (
    ControlJob,
    CopyJob,
    LearnJob,
    Outcome,
    Predictions,
    PredictJob,
    ShipmentJob,
    StateJob,
    StorageError,
    group_alike,
)
from spanboost.service.learning.memory_pool import IdleTrimmer, MemoryPool
from spanboost.service.learning.model_budget import Growth, ModelBudget
from spanboost.service.learning.row_conflicts import refuse_conflicts
from spanboost.service.learning.row_predictions import NoIntervalsError
from spanboost.service.learning.shared_model import SharedModel
from spanboost.service.learning.worker import Job, Worker
from spanboost.service.limits import RequestLimits
from spanboost.service.log import write_log
from spanboost.service.memory import plan_memory
from spanboost.service.request_rows import Examples, Row
from spanboost.service.storage.challenger import WHEN_BETTER
from spanboost.service.storage.control import (
    PROMOTE,
    WITHDRAW,
    Control,
    ControlError,
    decode_control,
    is_control,
)
from spanboost.service.storage.disk_status import DiskStatus
from spanboost.service.storage.entry import Entry, decode_entry
from spanboost.service.storage.pending_rows import PendingFullError
from spanboost.service.storage.row_past import RowPast, collect_past, uses_past
from spanboost.service.storage.state import State

PENDING_FACTOR = 24  # memory for a pending row and its copies, compared with its size on disk
ID_BYTES = 12  # random bytes in an id that the service makes
DEFAULT_LIMITS = RequestLimits()


class Engine:
    """The threads that predict and learn with the model of a state folder."""

    def __init__(
        self,
        state: State,
        limits: RequestLimits = DEFAULT_LIMITS,
        on_failure: Callable[[str], None] = lambda why: None,
    ) -> None:
        """Start the threads; UsageError if --max-memory is too small for the model.

        on_failure: receives the reason when the service can no longer predict or learn. The
            process must end then, so that a supervisor starts it again.
        """
        self.state, self._limits, self._on_failure = state, limits, on_failure
        models = [state.model, *([] if state.challenger is None else [state.challenger.model])]
        self.memory = plan_memory(
            limits.memory_bytes, sum(map(fixed_bytes, models)), limits.memory_share
        )
        self.work_memory = MemoryPool(self.memory.work_bytes)
        self._trimmer = IdleTrimmer(self.work_memory)
        self._budget = self._new_budget()
        self.journal_writes = DiskStatus("a write to the journal")
        self.pending_writes = DiskStatus("a write of pending rows")
        self.snapshot_writes = DiskStatus("writing a snapshot")
        self.snapshot_seconds = Histogram()
        self.duplicates = self.predicted = 0  # rows since the start
        self._shared = SharedModel(state)
        self.writer = Worker("writer", self._write, limits.waiting_rows, on_failure=on_failure)
        self.predictor = Worker(
            "predictor", self._predict, limits.waiting_rows, on_failure=on_failure
        )

    def close(self) -> None:
        """Learn what is in the journal, write a snapshot and close the state folder."""
        self.predictor.close()
        self.writer.close()
        self._trimmer.close()
        if self.failure is None:
            self._save()
            if self.snapshot_writes.problem is not None:
                self._on_failure(
                    f"the last snapshot could not be written ({self.snapshot_writes.problem}); the "
                    "next start replays the journal instead"
                )
        self.state.close()

    def check_memory(self, challenger: Model) -> None:
        """Raise UsageError if --max-memory is too small for the model and a challenger."""
        fixed = fixed_bytes(self.state.model) + fixed_bytes(challenger)
        plan_memory(self._limits.memory_bytes, fixed, self._limits.memory_share)

    def pending_memory(self, ids: Iterable[str]) -> int:
        """Return an estimate of the memory for the pending rows with these ids."""
        return PENDING_FACTOR * sum(map(self.state.pending.row_bytes, ids))

    @property
    def failure(self) -> str | None:
        """Why the service can no longer predict or learn; None if it can."""
        return (
            self.writer.failure
            or self.predictor.failure
            or self.state.journal.failure
            or self.state.pending.failure
        )

    @property
    def failed_writes(self) -> int:
        """Number of failed writes to the disk."""
        parts = self.journal_writes, self.pending_writes, self.snapshot_writes
        return sum(part.failures for part in parts)

    def checks(self) -> dict[str, str | None]:
        """Return what is wrong with each part that requests depend on; None if nothing is."""
        state = self.state
        return {
            "writer": self.writer.failure,
            "predictor": self.predictor.failure,
            "journal": state.journal.failure or self.journal_writes.recent_problem,
            "pending": state.pending.failure or self.pending_writes.recent_problem,
        }

    def _predict(self, jobs: Sequence[PredictJob]) -> None:
        for group in group_alike(jobs):
            self._predict_group(group)

    def _predict_group(self, jobs: Sequence[PredictJob]) -> None:
        self._shared.note_prediction()
        jobs = refuse_conflicts(jobs, self.state.pending)
        if not jobs:
            return
        rows = join_rows([job.features for job in jobs])
        try:
            columns, past = self._shared.predict(rows, jobs[0].ends)
            ids = self._fill_ids([id for job in jobs for id in job.ids])
            self._keep_rows(jobs, ids, rows, past)
        except NoIntervalsError as error:
            _fail(jobs, error)
            return
        except (DataError, PendingFullError) as error:
            self._predict_separately(jobs, error)
            return
        except OSError as error:
            self.pending_writes.note_failure(error)
            _fail(jobs, StorageError(error.strerror))
            self._report_failure(self.state.pending.failure)
            return
        self.pending_writes.note_success()
        self.predicted += len(rows)
        first = 0
        for job in jobs:
            part = slice(first, first := first + job.rows)
            own = {name: values[part] for name, values in columns.items()}
            job.set_result(Predictions(ids[part] if job.keep else None, own))

    def _keep_rows(
        self,
        jobs: Sequence[PredictJob],
        ids: Sequence[str],
        rows: Sequence[Row],
        past: Array | None,
    ) -> None:
        """Store the rows of jobs, with their past, until their labels arrive."""
        learned = self.state.ids  # their labels would be duplicates
        if not all(job.keep for job in jobs) or not learned.isdisjoint(ids):
            keep = [job.keep for job in jobs for _ in range(job.rows)]
            kept = [t for t, id in enumerate(ids) if keep[t] and id not in learned]
            ids, rows = [ids[t] for t in kept], take_rows(rows, kept)
            past = None if past is None else past[kept]
        self.state.pending.add(ids, rows, jobs[0].record, past)

    def _predict_separately(self, jobs: Sequence[PredictJob], error: Exception) -> None:
        """Predict job by job, so that only the jobs at fault are refused."""
        if len(jobs) == 1:
            jobs[0].set_exception(error)
            return
        for job in jobs:
            self._predict([job])

    def _fill_ids(self, ids: list[str | None]) -> list[str]:
        """Replace missing ids by new ones that other clients cannot guess."""
        digits, length = token_hex(ID_BYTES * ids.count(None)), 2 * ID_BYTES
        new = [digits[k : k + length] for k in range(0, len(digits), length)]
        if len(new) == len(ids):
            return new
        made = iter(new)
        return [next(made) if id is None else id for id in ids]

    def _write(self, jobs: Sequence[Job]) -> None:
        entry, waiting = self._commit([job for job in jobs if isinstance(job, LearnJob)])
        if entry is not None:
            self._shared.learn(entry)
        for waiter, outcome in waiting:
            waiter.set_result(outcome)
        if entry is not None:
            self._decide()
        if entry is not None and self.state.snapshot_due:
            self._save()
        for job in jobs:
            if isinstance(job, ControlJob):
                self._control(job)
            if isinstance(job, StateJob):
                self._call(job)
            if isinstance(job, ShipmentJob):
                self._follow(job)
        copies = [job for job in jobs if isinstance(job, CopyJob)]
        if copies:
            data = to_bytes(self.state.model)
            for job in copies:
                job.set_result(data)

    def _control(self, job: ControlJob) -> None:
        try:
            self._commit_control(job.control)
        except (ControlError, StorageError) as error:
            job.set_exception(error)
        else:
            job.set_result(self.state.learned_record)

    def _commit_control(self, control: Control) -> None:
        """Write a control to the journal, obey it, and write a snapshot.

        Predictions need no lock: they use the old model or the new one, which replaces it whole.
        Raises ControlError or StorageError if nothing was done.
        """
        try:
            self.state.commit_control(control)
        except OSError as error:
            self.journal_writes.note_failure(error)
            self._report_failure(self.state.journal.failure)
            raise StorageError(error.strerror) from None
        self.journal_writes.note_success()
        self._obey(control)
        self._save()

    def _new_budget(self) -> ModelBudget:
        challenger = self.state.challenger
        other = None if challenger is None else challenger.model
        return ModelBudget(self.state.model, self.memory, self._limits, other)

    def _decide(self) -> None:
        """Promote a challenger by its rule, or withdraw a broken one; the journal says so.

        Followers do not decide: they obey the journal of their leader.
        """
        challenger = self.state.challenger
        if challenger is None:
            return
        with suppress(StorageError):  # the next rows decide again
            if challenger.rule == WHEN_BETTER and challenger.better:
                self._commit_control(Control(PROMOTE, {"rule": WHEN_BETTER}))
                write_log(INFO, "the challenger was better, and was promoted")
            elif self.state.snapshot_due and self.state.challenger_nans:
                self._commit_control(Control(WITHDRAW, {"why": "NaN"}))
                write_log(WARNING, "the challenger contains NaN, and was withdrawn")

    def _obey(self, control: Control) -> None:
        self.state.obey(control)
        self._budget = self._new_budget()

    def _call(self, job: StateJob) -> None:
        try:
            job.set_result(job.action(self.state))
        except OSError as error:
            job.set_exception(StorageError(error.strerror))

    def _commit(
        self, jobs: Sequence[LearnJob]
    ) -> tuple[Entry | None, list[tuple[LearnJob, Outcome]]]:
        """Write the valid rows of all jobs to the journal as one entry, then acknowledge them.

        Returns the entry to learn, and the jobs to acknowledge after that with their outcomes.
        """
        accepted, growth, positions = list[Examples](), Growth(), dict[str, Any]()
        taken_ids, outcomes = dict[str, int](), list[Outcome]()
        target = limit_classes(self.state.model.schema.target, *self._budget.most_classes())
        for job in jobs:
            examples, outcome, target = validate_job(
                self.state, self._budget, job, taken_ids, target, growth
            )
            if examples.numbers:
                accepted.append(examples)
                taken_ids |= label_marks(examples)
            outcomes.append(outcome)
            if job.skip or not outcome.rejected:
                positions |= job.positions
        entry = self._build_entry(accepted)._replace(positions=positions)
        if accepted or positions:
            try:
                self.state.commit(entry)
            except OSError as error:
                self.journal_writes.note_failure(error)
                _fail(jobs, StorageError(error.strerror))
                self._report_failure(self.state.journal.failure)
                return None, []
            self.journal_writes.note_success()
            self._budget.accept(growth)
        waiting = list[tuple[LearnJob, Outcome]]()
        for job, outcome in zip(jobs, outcomes, strict=True):
            self.duplicates += outcome.duplicates
            if job.wait:
                waiting.append((job, outcome))
            else:
                job.set_result(outcome)
        return entry if accepted or positions else None, waiting

    def _build_entry(self, accepted: Sequence[Examples]) -> Entry:
        weighted = self.state.model.schema.weight is not None
        ids = [id for examples in accepted for id in examples.ids]
        return Entry(
            ids,
            join_rows([examples.rows for examples in accepted]) if accepted else [],
            [label for examples in accepted for label in examples.labels],
            [one for examples in accepted for one in examples.weights] if weighted else None,
            past=self._find_past(ids),
        )

    def _find_past(self, ids: Sequence[str | None]) -> RowPast | None:
        """Return what was known about past labels when pending rows were predicted."""
        if not uses_past(self.state.model):
            return None
        pending = self.state.pending
        return collect_past([None if id is None else pending.get_past(id) for id in ids])

    def _follow(self, job: ShipmentJob) -> None:
        """Store and learn the records of a leader."""
        for record in job.records:
            try:
                self.state.receive(record)
            except OSError as error:
                self.journal_writes.note_failure(error)
                job.set_exception(StorageError(error.strerror))
                self._report_failure(self.state.journal.failure)
                return
            self.journal_writes.note_success()
            self._learn_payload(memoryview(record.payload))
            if self.state.snapshot_due:
                self._save()
        job.set_result(None)

    def _learn_payload(self, payload: memoryview) -> None:
        if is_control(payload):
            self._obey(decode_control(payload))
            return
        self._shared.learn(decode_entry(payload))

    def _save(self) -> None:
        """Write a snapshot, without the lock: only this thread changes the model."""
        try:
            with self.snapshot_seconds.measure():
                self.state.save()
        except OSError as error:
            self.snapshot_writes.note_failure(error)
        else:
            self.snapshot_writes.note_success()

    def _report_failure(self, failure: str | None) -> None:
        if failure is not None:
            self._on_failure(failure)


def _fail(jobs: Iterable[Job], error: Exception) -> None:
    for job in jobs:
        job.set_exception(error)
