"""Data-parallel training on files that the workers read themselves.

Worker f mod W gets file f. In a round, every worker learns the next K rows of its files; then the
models are averaged, as in a `Team`. The result depends only on the files and their order, on W and
on K. The driver deals out the names of files and sees no rows, only counts, losses and the names of
new categories.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from spanboost.data.schema import Schema
from spanboost.errors import ParameterError
from spanboost.models.model import Model
from spanboost.parallel.executor import Executor
from spanboost.parallel.shards import (
    PieceResult,
    Renumbering,
    ShardFacts,
    ShardFile,
    add_new_names,
    learn_piece,
    read_shard,
)
from spanboost.parallel.team import EVERY, Team, TeamState


class RoundResult(NamedTuple):
    """The sums of one round."""

    rows: int
    weight: float
    loss: float  # weighted
    skipped: int  # bad rows that were left out
    warnings: list[str]


class ShardTeam(Team):
    """Workers that learn one model together, each from its own files.

    model: as for `Team`; its schema must have its columns.
    files: the shards, in order.
    rows, cursors: to resume a run, the rows learned so far and, for each worker, the number of its
        file and the row in it.
    """

    def __init__(
        self,
        model: Model,
        workers: int,
        files: Sequence[ShardFile],
        average_every: int = EVERY,
        executor: Executor | None = None,
        rows: int = 0,
        cursors: Sequence[Sequence[int]] | None = None,
    ) -> None:
        if len(files) < workers:
            raise ParameterError(
                "workers", f"must be at most the number of files, {len(files)} (got {workers})"
            )
        super().__init__(model, workers, average_every, executor, rows)
        starts = cursors or [(w, 0) for w in range(workers)]
        self._queues = [
            ShardQueue(self.executor, self.schema, files, workers, *start) for start in starts
        ]

    @property
    def cursors(self) -> list[list[int]]:
        """For each worker, the number of its file and the row in it that it learns next."""
        return [[queue.file, queue.row] for queue in self._queues]

    def rounds(self) -> Iterator[RoundResult]:
        """Learn all rows of all files; yield the sums of each round."""
        while any(queue.has_rows() for queue in self._queues):
            yield self._learn_files()

    def _learn_files(self) -> RoundResult:
        each = self.round // self.workers
        queues = {w: each for w, queue in enumerate(self._queues) if queue.has_rows()}
        if self.averages and not self._learned:
            # the first learned row sets the centre of the label range, which all workers must share
            w = min(queues, key=lambda w: self._queues[w].file)
            queues = {w: self._queues[w].rows_to_first_learned()}
        states, answers = list(self._now.states), []
        before = {w: self._queues[w].skipped for w in queues}
        pieces = [(w, piece) for w, rows in queues.items() for piece in self._queues[w].take(rows)]
        end = self._earlier + self.rows + sum(last - first for _, (_, first, last, _) in pieces)
        for w, piece in pieces:
            states[w], answer = self.executor.call(learn_piece, states[w], end, *piece, answers=2)
            answers.append(answer)
        results: list[PieceResult] = self.executor.results(answers)
        weight = sum(one.weight for one in results)
        rows = sum(one.rows for one in results)
        self._now = TeamState(self.rows + rows, self._now.start, tuple(states), frozenset(queues))
        self._end_round()
        self._learned = self._learned or weight > 0
        skipped = sum(self._queues[w].skipped - before[w] for w in queues)
        warnings = [text for one in results for text in one.warnings]
        return RoundResult(rows, weight, sum(one.loss for one in results), skipped, warnings)


class ShardQueue:
    """The files of one worker, of which it reads one ahead.

    file, row: the number of the file and the row in it that are learned next.
    """

    def __init__(
        self,
        executor: Executor,
        schema: Schema,
        files: Sequence[ShardFile],
        workers: int,
        file: int,
        row: int,
    ) -> None:
        self._executor, self._schema, self._files = executor, schema, files
        self._workers, self.file, self.row = workers, file, row
        self.skipped = 0
        self._open: tuple[Any, ShardFacts, Renumbering] | None = None
        # handles of a file that is being read, and the numbers of categories before
        self._next = self._read(file) if file < len(files) else None

    def has_rows(self) -> bool:
        """Return whether there are rows left; wait for the file that is read."""
        while self.file < len(self._files):
            if self._open is None:
                self._open = self._wait_for_file()
            if self.row < self._open[1].rows:
                return True
            self._open, self.file, self.row = None, self.file + self._workers, 0
        return False

    def rows_to_first_learned(self) -> int:
        """Return how many rows to take up to the first one with a weight, or to the file's end."""
        assert self._open is not None, "has_rows opens the file"
        facts = self._open[1]
        return max(1, min(facts.first_learned + 1, facts.rows) - self.row)

    def take(self, rows: int) -> Iterator[tuple[Any, int, int, Renumbering]]:
        """Yield the arguments of `learn_piece` for the next rows."""
        while rows and self.has_rows():
            assert self._open is not None
            batch, facts, numbers = self._open
            last = min(self.row + rows, facts.rows)
            yield batch, self.row, last, numbers
            rows, self.row = rows - (last - self.row), last

    def _wait_for_file(self) -> tuple[Any, ShardFacts, Renumbering]:
        """Return the current file once it is read, and let the worker read the one after it."""
        assert self._next is not None, "there is a file left"
        batch, facts, sent = self._next
        after = self.file + self._workers
        self._next = self._read(after) if after < len(self._files) else None
        (facts,) = self._executor.results([facts])
        if self.row == 0:
            self.skipped += facts.skipped
        name = self._files[self.file].name
        return batch, facts, add_new_names(self._schema, sent, facts, name)

    def _read(self, file: int) -> tuple[Any, Any, list[int]]:
        sent = [len(column.codes) for column in self._schema.categories]
        schema = copy.deepcopy(self._schema)
        return *self._executor.call(read_shard, self._files[file], schema, answers=2), sent
