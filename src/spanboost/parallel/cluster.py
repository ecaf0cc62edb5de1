"""An executor on a Ray cluster (extra `ray`), either a new local one or an existing one.

Ray repeats a task if its worker was killed or its machine was lost. The arguments of the task,
which include the last snapshot, are sent again. After a few attempts, or if no machine is left, the
run ends with a `ClusterError`.
"""

import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from spanboost.errors import ClusterError, UserError, install_hint
from spanboost.parallel.executor import WorkerLostError
from spanboost.parallel.private_cluster import (
    check_loopback,
    check_version,
    listen_on_loopback,
    require_token,
)

LOCAL = "local"
RETRIES = 3  # of a task whose worker was lost
PATIENCE = 60.0  # seconds to wait for a cluster without processors
POLL_INTERVAL = 1.0  # seconds between two checks of the cluster
CONNECT_TIMEOUT = 20.0  # seconds to wait for a connection to an address


class Cluster:
    """Runs tasks on many machines, or on the processors of this one.

    address: HOST:PORT, ray://HOST:PORT or "auto" for an existing cluster; "local" starts a cluster
        on this machine, which stops on `close`. Only this machine can reach it, with a token. All
        machines need this version of the package.
    processors: number of processors of a local cluster; None is all.

    If this process is already connected to Ray, that connection is used and stays open.
    """

    def __init__(self, address: str = LOCAL, processors: int | None = None) -> None:
        self._ray = _ray()
        self._own = not self._ray.is_initialized()
        self._remote: dict[Any, Any] = {}
        self._homes: dict[Any, str | None] = {}  # the machines of the objects
        if self._own:
            self._connect(address, processors)

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Disconnect from the cluster; a local one stops."""
        if self._own:
            self._ray.shutdown()

    @property
    def processors(self) -> int:
        """Number of processors of the cluster."""
        return int(self._ray.cluster_resources().get("CPU", 0))

    def put(self, value: Any) -> Any:
        """Return a handle for an argument of many tasks; each machine receives it once."""
        with translate_ray_errors():
            return self._ray.put(value)

    def call(self, task: Callable[..., Any], *args: Any, answers: int = 1) -> Any:
        """Start a task; return the handle of its result, or of each of several `answers`."""
        key = task, answers
        if key not in self._remote:
            options = {"num_returns": answers, "max_retries": RETRIES, "num_cpus": 1}
            self._remote[key] = self._ray.remote(task).options(**options)
        with translate_ray_errors():
            return self._remote[key].remote(*args)

    def results(self, handles: Sequence[Any]) -> list[Any]:
        """Wait for the results of these handles; return them in the same order.

        Raises `ClusterError` if a task fails, or if the cluster has no processors for a minute, and
        `WorkerLostError` if an object was lost.
        """
        waiting, last = list(handles), time.monotonic()
        with translate_ray_errors():
            while waiting:
                done, waiting = self._ray.wait(waiting, timeout=POLL_INTERVAL)
                self._ray.get(done)  # raise errors at once
                if done or self.processors > 0:
                    last = time.monotonic()
                elif time.monotonic() - last > PATIENCE:
                    raise ClusterError(
                        f"the cluster has had no processors for {PATIENCE:.0f} seconds; check "
                        "that its machines are running"
                    )
            return list(self._ray.get(list(handles)))

    def start(self, kind: Callable[..., Any], *args: Any) -> Any:
        """Create an object in a process of its own, on the machine with the fewest per processor.

        Ray needs a processor to place it, but lets any number of objects share processors: those of
        a lost machine always find room on the others. Ray would place all on the same machine.
        """
        options: dict[str, Any] = {"max_restarts": 0}
        with translate_ray_errors():
            if node := self._emptiest_node():
                from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

                options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(node, soft=True)
            resident = self._ray.remote(kind).options(**options).remote(*args)
        self._homes[resident] = node
        return resident

    def _emptiest_node(self) -> str | None:
        """Return the machine with the fewest objects per processor; None if there is no machine."""
        nodes = [one for one in self._ray.nodes() if one["Alive"]]
        room = {one["NodeID"]: one["Resources"].get("CPU", 0) for one in nodes}
        homes = list(self._homes.values())
        usable = [node for node, processors in room.items() if processors >= 1]
        return min(usable, key=lambda node: (1 + homes.count(node)) / room[node], default=None)

    def ask(self, resident: Any, method: str, *args: Any) -> Any:
        """Start a method of an object; return the handle of its result."""
        with translate_ray_errors():
            return getattr(resident, method).remote(*args)

    def stop(self, resident: Any) -> None:
        """End the process of an object."""
        with translate_ray_errors():
            self._ray.kill(resident)
        self._homes.pop(resident, None)

    def _connect(self, address: str, processors: int | None) -> None:
        quiet = {"log_to_driver": False, "logging_level": "ERROR"}
        _hush()
        try:
            if address == LOCAL:
                self._start(processors, quiet)
            else:
                _check_address(address)
                self._ray.init(address, **quiet)
        except ClusterError:
            raise
        except Exception as error:  # Ray raises this class itself if a cluster does not start
            first = getattr(error, "strerror", None) or str(error).strip().partition("\n")[0]
            local = "start a Ray cluster on this machine"
            what = local if address == LOCAL else f"connect to a Ray cluster at {address}"
            raise ClusterError(f"cannot {what}: {first}") from None

    def _start(self, processors: int | None, quiet: dict[str, Any]) -> None:
        """Start a cluster on this machine."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        require_token()
        with listen_on_loopback() as options:
            self._ray.init(LOCAL, include_dashboard=False, num_cpus=processors, **quiet, **options)
        check_loopback(self._ray)


def _hush() -> None:
    """Keep messages about lost workers off standard output, which is for results.

    Ray has no public setting for that. Where the private one is missing, the messages appear
    among the results, and nothing else changes.
    """
    with suppress(ImportError):
        from ray._private import worker

        if hasattr(worker, "_worker_logs_enabled"):
            worker._worker_logs_enabled = False


def _check_address(address: str) -> None:
    """Raise OSError if the address does not answer; Ray itself would wait for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_TIMEOUT).close()


def _ray() -> Any:
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # no warning about GPUs
    os.environ.setdefault("RAY_task_oom_retries", str(RETRIES))  # the default is without end
    try:
        import ray
    except ImportError:
        raise UserError(f"clusters need Ray: {install_hint('ray')}") from None
    check_version(ray.__version__)
    return ray


@contextmanager
def translate_ray_errors() -> Iterator[None]:
    """Raise an error of a task as it was, and any other error of Ray as a `ClusterError`.

    The loss of an object that lives on a worker is a `WorkerLostError`.
    """
    from ray import exceptions

    try:
        yield
    except exceptions.RayTaskError as error:
        cause = getattr(error, "cause", None)
        if isinstance(cause, exceptions.RayError):
            raise ClusterError(describe_ray_error(cause)) from None
        if isinstance(cause, ValueError | OSError | MemoryError):
            raise cause from None
        last = str(error).strip().rpartition("\n")[2]
        raise ClusterError(f"a task failed on the cluster: {last}") from None
    except exceptions.RayActorError as error:
        raise WorkerLostError(describe_ray_error(error)) from None
    except exceptions.RayError as error:
        raise ClusterError(describe_ray_error(error)) from None


def describe_ray_error(error: Exception) -> str:
    """Return a message for an error of Ray."""
    retried = f"and its task failed after {RETRIES} retries"
    messages = {
        "OutOfDiskError": "a disk of the cluster is full; free some space for Ray",
        "ObjectStoreFullError": "the cluster's object store is full; give Ray more memory",
        "OutOfMemoryError": "a machine of the cluster has too little memory for a task",
        "WorkerCrashedError": f"a worker was killed or crashed, {retried}",
        "NodeDiedError": f"a machine of the cluster was lost, {retried}",
        "RayActorError": "a worker was killed or crashed, or its machine was lost",
        "LocalRayletDiedError": "Ray has stopped on this machine",
    }
    first = str(error).strip().partition("\n")[0]
    for kind in type(error).__mro__:
        if kind.__name__ in messages:
            return messages[kind.__name__]
    return f"the cluster failed: {type(error).__name__}: {first}"
