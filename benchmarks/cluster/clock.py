"""Clocks of executors, and simulated machines."""

import os
import time
from collections.abc import Sequence
from typing import Any

from spanboost.parallel.cluster import Cluster
from spanboost.parallel.executor import LocalExecutor


class Clocked(LocalExecutor):
    """Runs tasks one after another, timed as if those of a round ran in parallel."""

    def __init__(self) -> None:
        self._began, self._tasks = time.process_time(), 0.0
        self._round: list[float] = []
        self._longest = 0.0

    def call(self, task: Any, *given: Any, answers: int = 1) -> Any:
        """Run a task and record its processor time."""
        began = time.process_time()
        found = super().call(task, *given, answers=answers)
        self._round.append(time.process_time() - began)
        return found

    def ask(self, resident: Any, method: str, *given: Any) -> Any:
        """Run a method of an object and record its processor time."""
        began = time.process_time()
        found = super().ask(resident, method, *given)
        self._round.append(time.process_time() - began)
        return found

    def results(self, handles: Sequence[Any]) -> list[Any]:
        """End a round, in which all workers wait for the slowest."""
        self._tasks += sum(self._round)
        self._longest += max(self._round, default=0.0)
        self._round = []
        return super().results(handles)

    def seconds(self) -> float:
        """Return the time of this process plus the longest task of each round."""
        return self.own_seconds() + self._longest

    def own_seconds(self) -> float:
        """Return the time of this process without the tasks."""
        return time.process_time() - self._began - self._tasks

    def task_seconds(self) -> float:
        """Return the time of all tasks."""
        return self._tasks


class Machines:
    """Simulated machines with one processor each; the head node runs no tasks."""

    def __init__(self, number: int) -> None:
        from ray.cluster_utils import Cluster as Simulated

        self._machines = Simulated(initialize_head=True, head_node_args={"num_cpus": 0})
        for _ in range(number):
            self._machines.add_node(num_cpus=1)
        self._machines.wait_for_nodes()

    def __enter__(self) -> Cluster:
        self._place = Cluster(self._machines.address)
        return self._place

    def __exit__(self, *_: object) -> None:
        self._place.close()
        self._machines.shutdown()


class PinnedCluster(Cluster):
    """A cluster on this machine whose objects run on one processor each, in turn."""

    def __init__(self, processors: int) -> None:
        super().__init__(processors=processors)
        self._cores = sorted(os.sched_getaffinity(0))[:processors]
        self._started = 0

    def start(self, kind: Any, *args: Any) -> Any:
        """Create an object on the next processor."""
        core = self._cores[self._started % len(self._cores)]
        self._started += 1

        class Pinned(kind):  # type: ignore[misc]
            def __init__(self, *given: Any) -> None:
                os.sched_setaffinity(0, {core})
                super().__init__(*given)

        return super().start(Pinned, *args)
