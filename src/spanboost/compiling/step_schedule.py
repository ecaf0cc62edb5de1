"""Threads for chains of steps, whose results are joined step by step.

Every chain is an iterator. When all chains have done step s, their results are joined, while the
chains go on with later steps. The joins happen one after the other, in order. So results do not
depend on the number of threads.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from spanboost.compiling.threads import run_in_threads

Join = Callable[[int, list[Any]], Any]


class StepSchedule:
    """Hands out steps to threads: a join if there is one to do, or else the chain that is behind.

    chains: the slowest ones first, so that threads finish at about the same time.
    join: takes the number of a step and the results of all chains.
    """

    def __init__(self, chains: Sequence[Iterator[Any]], join: Join, steps: int) -> None:
        self._chains, self._join, self._steps = chains, join, steps
        self._done = [0] * len(chains)  # steps
        self._busy: set[int] = set()  # chains in a thread; JOIN for a join
        self._results: list[list[Any]] = [[] for _ in chains]
        self._joined: list[Any] = []
        self._failed = False
        self._changed = threading.Condition()

    def run(self, threads: int) -> list[Any]:
        """Do all steps; return the results of the joins. The first error ends the other threads."""
        run_in_threads(lambda _: self._work(), range(threads), threads)
        return self._joined

    def _work(self) -> None:
        """Do steps until all are taken."""
        try:
            while (chain := self._take()) is not None:
                if chain == _JOIN:
                    step = len(self._joined)
                    self._joined.append(self._join(step, [found[step] for found in self._results]))
                else:
                    self._results[chain].append(next(self._chains[chain]))
                self._finish(chain)
        except BaseException:
            with self._changed:
                self._failed = True
                self._changed.notify_all()
            raise

    def _take(self) -> int | None:
        """Return the next chain to advance, or _JOIN, after waiting; None if nothing is left."""
        with self._changed:
            while not self._failed and len(self._joined) + (_JOIN in self._busy) < self._steps:
                chain = self._next()
                if chain is not None:
                    self._busy.add(chain)
                    return chain
                self._changed.wait()
            return None

    def _next(self) -> int | None:
        if _JOIN not in self._busy and len(self._joined) < min(self._done):
            return _JOIN
        free = [i for i in range(len(self._chains)) if i not in self._busy]
        free = [i for i in free if self._done[i] < self._steps]
        return min(free, key=self._done.__getitem__, default=None)

    def _finish(self, chain: int) -> None:
        with self._changed:
            self._busy.discard(chain)
            if chain != _JOIN:
                self._done[chain] += 1
            self._changed.notify_all()


_JOIN = -1
