"""A Ray cluster as a place to work (extra `ray`): a local one, or one that is there already.

Ray does a task again whose worker was killed or whose machine was lost, from what the task was
given: the last snapshot. It does so a few times; what fails then, and what no machine is left for,
ends the run with a sentence.
"""

import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from spanboost.errors import ClusterError, UserError

LOCAL = "local"
RETRIES = 3  # of a task whose worker was lost
PATIENCE = 60.0  # seconds without any processor in the cluster
GLANCE = 1.0  # seconds between two looks at the cluster
KNOCK = 20.0  # seconds until somebody answers at an address


class Cluster:
    """A place to work on many machines, or on the processors of this one.

    address: of a cluster, HOST:PORT or ray://HOST:PORT or "auto"; "local" starts one here, which
        ends when this is closed. All machines need this version of the package.
    processors: of a local one; None for all there are.

    Where Ray is connected already its connection is used, and stays.
    """

    def __init__(self, address: str = LOCAL, processors: int | None = None) -> None:
        self._ray = _ray()
        self._own = not self._ray.is_initialized()
        self._remote: dict[Any, Any] = {}
        if self._own:
            self._connect(address, processors)

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave the cluster; a local one ends."""
        if self._own:
            self._ray.shutdown()

    @property
    def processors(self) -> int:
        """How many it has."""
        return int(self._ray.cluster_resources().get("CPU", 0))

    def put(self, value: Any) -> Any:
        """A handle of something that many tasks will be given: sent to a machine once."""
        with translate_ray_errors():
            return self._ray.put(value)

    def call(self, task: Callable[..., Any], *given: Any, answers: int = 1) -> Any:
        """The handle of what a task answers, or so many of them; those given are looked up."""
        key = task, answers
        if key not in self._remote:
            options = {"num_returns": answers, "max_retries": RETRIES, "num_cpus": 1}
            self._remote[key] = self._ray.remote(task).options(**options)
        with translate_ray_errors():
            return self._remote[key].remote(*given)

    def results(self, handles: Sequence[Any]) -> list[Any]:
        """What became of them, in this order; waits for all of it, but not for what cannot be."""
        waiting, last = list(handles), time.monotonic()
        with translate_ray_errors():
            while waiting:
                done, waiting = self._ray.wait(waiting, timeout=GLANCE)
                self._ray.get(done)  # what went wrong is said at once
                if done or self.processors > 0:
                    last = time.monotonic()
                elif time.monotonic() - last > PATIENCE:
                    raise ClusterError(
                        f"the cluster has had no processor for {PATIENCE:.0f} seconds: its "
                        "machines are lost"
                    )
            return list(self._ray.get(list(handles)))

    def _connect(self, address: str, processors: int | None) -> None:
        quiet = {"log_to_driver": False, "logging_level": "ERROR"}
        if address == LOCAL:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            quiet |= {"include_dashboard": False, "num_cpus": processors}
        _hush()
        try:
            _knock(address)
            self._ray.init(address, **quiet)
        except (OSError, ValueError, RuntimeError) as error:
            first = getattr(error, "strerror", None) or str(error).strip().partition("\n")[0]
            raise ClusterError(f"no Ray cluster at {address}: {first}") from None


def _hush() -> None:
    """Keep messages about lost workers off standard output, which is for results.

    Ray has no public setting for that. Where the private one is missing, the messages appear
    among the results, and nothing else changes.
    """
    with suppress(ImportError):
        from ray._private import worker

        if hasattr(worker, "_worker_logs_enabled"):
            worker._worker_logs_enabled = False


def _knock(address: str) -> None:
    """An OSError if nobody is there: Ray would wait for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), KNOCK).close()


def _ray() -> Any:
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # no advice about graphics
    os.environ.setdefault("RAY_task_oom_retries", str(RETRIES))  # else for ever
    try:
        import ray
    except ImportError:
        raise UserError("a cluster takes Ray: pip install 'spanboost[ray]'") from None
    return ray


@contextmanager
def translate_ray_errors() -> Iterator[None]:
    """Ray's errors: those of our own tasks as they were, all others as a sentence."""
    from ray import exceptions as of_ray

    try:
        yield
    except of_ray.RayTaskError as error:
        cause = getattr(error, "cause", None)
        if isinstance(cause, of_ray.RayError):
            raise ClusterError(describe_ray_error(cause)) from None
        if isinstance(cause, ValueError | OSError | MemoryError):
            raise cause from None
        last = str(error).strip().rpartition("\n")[2]
        raise ClusterError(f"a task failed on the cluster: {last}") from None
    except of_ray.RayError as error:
        raise ClusterError(describe_ray_error(error)) from None


def describe_ray_error(error: Exception) -> str:
    """What an error of Ray's own means."""
    again = f"and again when it was repeated {RETRIES} times"
    means = {
        "OutOfDiskError": "a disk of the cluster is full: Ray has no room for what it works on",
        "ObjectStoreFullError": "the cluster has no memory left for what it works on",
        "OutOfMemoryError": "a machine of the cluster has too little memory for a task",
        "WorkerCrashedError": f"a worker was killed or crashed, {again}",
        "NodeDiedError": f"a machine of the cluster was lost, {again}",
        "LocalRayletDiedError": "the cluster has ended on this machine",
    }
    first = str(error).strip().partition("\n")[0]
    for kind in type(error).__mro__:
        if kind.__name__ in means:
            return means[kind.__name__]
    return f"the cluster failed: {type(error).__name__}: {first}"
