"""The service without its HTTP: one thread learns, one predicts, and they take turns at the model.

A label is acknowledged when it is in the journal; it is learned right after, in blocks small enough
for predictions to be made in between. Every prediction is of the state between two blocks.
"""

import time
from collections.abc import Iterable, Sequence
from copy import deepcopy
from secrets import token_hex
from typing import Any, NamedTuple

import numpy as np

from spanboost.checks import finite_or_none
from spanboost.compiling.arrays import Array
from spanboost.data.target import Target
from spanboost.errors import DataError
from spanboost.losses import predicts_scores
from spanboost.models.files import to_bytes
from spanboost.models.model import Model
from spanboost.models.predictions import prediction_table
from spanboost.service.fair_lock import FairLock
from spanboost.service.request_rows import GONE, Example, Problem, Row, problem_of, to_predict
from spanboost.service.state import Entry, State
from spanboost.service.worker import Job, Worker

SHORT, LONG = 0.003, 0.05  # seconds that learning holds the model: if answers are asked for, if not
FEWEST = 64  # rows of a block: fewer at a time would take most models much longer
FEW = 6  # rows that are predicted sooner one by one


class Answers(NamedTuple):
    """Predictions, column by column; ids where the rows wait for their labels."""

    ids: list[str] | None
    columns: dict[str, list[Any]]


class Outcome(NamedTuple):
    """What became of labels."""

    learned: int
    duplicates: int
    problems: list[Problem]


class StorageError(Exception):
    """The disk did not take it, so nothing was learned: try again later."""


class Predicting(Job):
    """Rows to be predicted; kept for their labels under their ids, if asked."""

    def __init__(self, rows: Sequence[Row], ids: Sequence[str | None], keep: bool) -> None:
        super().__init__(len(rows))
        self.given, self.ids, self.keep = rows, ids, keep


class Learning(Job):
    """Labelled rows, by their numbers in the request; `skip` those that are bad."""

    def __init__(self, examples: dict[int, Example], skip: bool) -> None:
        super().__init__(len(examples))
        self.examples, self.skip = examples, skip


class Copying(Job):
    """The bytes of the model's file."""

    def __init__(self) -> None:
        super().__init__(0)


class Engine:
    """A state folder at work."""

    def __init__(self, state: State, room: int = 50_000) -> None:
        self.state = state
        self.unwritten = self.unkept = 0  # times the disk took no labels or snapshot; no prediction
        self.duplicates = 0
        self.predicted = 0
        self._turns = FairLock()
        self._boot, self._count = token_hex(4), 0
        self._pace = 1e-4  # seconds to learn a row, about
        self._answering = 0.0  # seconds to predict the rows of a group, about
        self.writer = Worker("writer", self._write, room)
        self.predictor = Worker("predictor", self._predict, room)

    def close(self) -> None:
        """Learn what has been journaled, and leave a snapshot."""
        self.predictor.close()
        self.writer.close()
        if self.writer.failure is None:
            self._save()
        self.state.close()

    @property
    def trouble(self) -> str | None:
        """Why nothing can be learned, if so."""
        return self.writer.failure or self.predictor.failure or self.state.journal.broken

    def _predict(self, jobs: Sequence[Predicting]) -> None:
        self._turns.note()
        rows = [row for job in jobs for row in job.given]
        try:
            columns = self._columns(rows)
        except DataError as error:
            self._predict_around(jobs, error)
            return
        ids = self._named([id for job in jobs for id in job.ids])
        kept = [job.keep for job in jobs for _ in job.given]
        waiting = {id: row for id, row, keep in zip(ids, rows, kept, strict=True) if keep}
        try:
            self.state.pending.put(waiting)
        except OSError as error:
            self.unkept += 1
            _fail(jobs, StorageError(error.strerror))
            return
        self.predicted += len(rows)
        first = 0
        for job in jobs:
            part = slice(first, first := first + job.rows)
            own = {name: values[part] for name, values in columns.items()}
            job.set_result(Answers(ids[part] if job.keep else None, own))

    def _predict_around(self, jobs: Sequence[Predicting], error: DataError) -> None:
        """One request has a row that the model cannot read."""
        if len(jobs) == 1:
            jobs[0].set_exception(error)
            return
        for job in jobs:
            self._predict([job])

    def _columns(self, rows: list[Row]) -> dict[str, list[Any]]:
        model = self.state.model
        with self._turns:
            began = time.perf_counter()
            columns = columns_of(model, answers_of(model, rows))
            self._answering += 0.2 * (time.perf_counter() - began - self._answering)
        return columns

    def _named(self, ids: list[str | None]) -> list[str]:
        """Ids, new ones where there are none: of a moment, of this server, and a number."""
        first, self._count = self._count, self._count + len(ids)
        prefix = f"{time.time_ns() // 1_000_000:x}-{self._boot}-"
        return [f"{prefix}{k:x}" if id is None else id for k, id in enumerate(ids, first)]

    def _write(self, jobs: Sequence[Learning | Copying]) -> None:
        learning = [job for job in jobs if isinstance(job, Learning)]
        entry = self._commit(learning)
        if entry is not None:
            self._learn(entry)
            if self.state.due:
                self._save()
        copies = [job for job in jobs if isinstance(job, Copying)]
        if copies:
            data = to_bytes(self.state.model)
            for job in copies:
                job.set_result(data)

    def _commit(self, jobs: Sequence[Learning]) -> Entry | None:
        """Put what is good of these into the journal, all at once; then say so."""
        accepted = list[Example]()
        taken, outcomes = set[str](), list[Outcome]()
        target = deepcopy(self.state.model.schema.target)
        for job in jobs:
            examples, outcome, target = self._admitted(job, taken, target)
            accepted += examples
            taken.update(example.id for example in examples if example.id is not None)
            outcomes.append(outcome)
        entry = self._entry(accepted)
        if accepted:
            try:
                self.state.commit(entry)
            except OSError as error:
                self.unwritten += 1
                _fail(jobs, StorageError(error.strerror))
                return None
        for job, outcome in zip(jobs, outcomes, strict=True):
            self.duplicates += outcome.duplicates
            job.set_result(outcome)
        return entry if accepted else None

    def _admitted(
        self, job: Learning, taken: set[str], target: Target
    ) -> tuple[list[Example], Outcome, Target]:
        """The rows of a request to be learned; how it is answered; the target as it is then."""
        problems, examples = list[Problem](), job.examples
        while True:
            good, duplicates, gone = self._sorted(examples, taken)
            after = deepcopy(target) if target.as_text else target
            numbers, labels = list(good), [example.label for example in good.values()]
            wrong = {numbers[t]: what for t, what in problem_of(after, labels).items()}
            problems += [Problem(number, self._label, what) for number, what in wrong.items()]
            if (problems or gone) and not job.skip:
                return [], Outcome(0, 0, problems + gone), target
            if not wrong:
                return list(good.values()), Outcome(len(good), duplicates, problems + gone), after
            # without them: whoever comes second under the same id is no duplicate
            examples = {number: one for number, one in examples.items() if number not in wrong}

    def _sorted(
        self, examples: dict[int, Example], taken: set[str]
    ) -> tuple[dict[int, Example], int, list[Problem]]:
        """Those that can be learned, how many were before, and those whose rows are gone."""
        good, duplicates, gone, own = dict[int, Example](), 0, list[Problem](), set[str]()
        for number, example in examples.items():
            id = example.id
            if id is not None and (id in own or id in taken or id in self.state.ids):
                duplicates += 1
                continue
            found = self._found(example)
            if found is None:
                gone.append(Problem(number, None, self._gone(id or ""), GONE))
                continue
            if id is not None:
                own.add(id)
            good[number] = found
        return good, duplicates, gone

    def _found(self, example: Example) -> Example | None:
        """The example with its row, if that is still there."""
        if example.row is not None:
            return example
        row = self.state.pending.get(example.id or "")
        return None if row is None else example._replace(row=row)

    def _gone(self, id: str) -> str:
        bounds = self.state.bounds
        return (
            f"no row waits under the id {id!r}: it is unknown, or expired (the last "
            f"{bounds.pending:,} are kept, for {bounds.pending_seconds:,.0f} seconds)"
        )

    def _entry(self, examples: Iterable[Example]) -> Entry:
        some = [*examples]
        weighted = self.state.model.schema.weight is not None
        return Entry(
            [example.id for example in some],
            [example.row or {} for example in some],
            [example.label for example in some],
            [example.weight for example in some] if weighted else None,
        )

    def _learn(self, entry: Entry) -> None:
        """In blocks that take a moment each, or as long as an answer, at the pace of the last."""
        first, rows = 0, len(entry.rows)
        while first < rows:
            seconds = LONG if self._turns.quiet else max(SHORT, self._answering)
            last = min(first + max(int(seconds / self._pace), FEWEST), rows)
            began = time.perf_counter()
            with self._turns:
                self.state.learn(entry, first, last)
            pace = (time.perf_counter() - began) / (last - first)
            self._pace += 0.2 * (pace - self._pace)
            first = last

    def _save(self) -> None:
        """A snapshot; nobody but this thread changes the model, so predictions go on."""
        try:
            self.state.save()
        except OSError:
            self.unwritten += 1

    @property
    def _label(self) -> str:
        return self.state.model.schema.label or "label"


def answers_of(model: Model, rows: list[Row]) -> Array:
    """What the model predicts; a DataError names the first row that it cannot read."""
    if model.schema.columns is None and len(rows) <= FEW:
        return np.array([_answer(model, t, row) for t, row in enumerate(rows)])
    batches = to_predict(model.schema, rows)
    return np.concatenate([model.predict_many(batch.X) for batch in batches])


def _answer(model: Model, t: int, row: Row) -> Any:
    try:
        return model.predict_one(row)
    except DataError as error:
        raise DataError(t, error.what) from None


def columns_of(model: Model, answers: Any) -> dict[str, list[Any]]:
    """Predictions as `spanboost predict` has them."""
    if not predicts_scores(model.loss_):
        return {"prediction": list(map(finite_or_none, answers.tolist()))}
    return prediction_table(model, answers).to_pydict()


def _fail(jobs: Iterable[Job], error: Exception) -> None:
    for job in jobs:
        job.set_exception(error)
