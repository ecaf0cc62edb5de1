"""The memory of the process: how much there is, and what it is for."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from spanboost.errors import UsageError

MIB = 1 << 20
BASE_BYTES = 256 * MIB  # the interpreter, compiled code, ids and the index of pending rows
LEAST_BYTES = 256 * MIB  # for requests and the growth of the model
CGROUP_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")  # of versions 2 and 1


class MemoryPlan(NamedTuple):
    """The shares of the memory. They leave room for the copies that a snapshot makes."""

    total: int
    base: int = BASE_BYTES  # memory that is always needed

    @property
    def model_bytes(self) -> int:
        """Memory for the names and the weights of features."""
        return self._share(0.15)

    @property
    def replay_bytes(self) -> int:
        """Memory for the rows that the model keeps for replay."""
        return self._share(0.1)

    @property
    def work_bytes(self) -> int:
        """Memory for the rows of requests, from parsing to learning."""
        return self._share(0.2)

    @property
    def body_bytes(self) -> int:
        """Memory for request bodies that arrive or wait to be parsed."""
        return self._share(1 / 16)

    def _share(self, part: float) -> int:
        return int(part * (self.total - self.base))


def plan_memory(limit: int | None = None, fixed: int = 0, share: float = 1.0) -> MemoryPlan:
    """Return the plan for a limit in bytes; None: half of the memory of the machine.

    fixed: memory that the model always needs.
    share: part of this half for one of several models. Raises UsageError if the limit is too small.
    """
    base = BASE_BYTES + fixed
    least = base + LEAST_BYTES
    if limit is None:
        return MemoryPlan(max(int(share * (available_memory() // 2)), least), base)
    if limit < least:
        raise UsageError(
            f"--max-memory must be at least {-(-least // MIB):,} for this model (got "
            f"{limit // MIB:,})"
        )
    return MemoryPlan(limit, base)


def available_memory(
    groups: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")
) -> int:
    """Return the memory of the machine, or the limit of this process if that is less.

    groups: the folder of control groups. own: the file that names the groups of this process.
    """
    return min([*_cgroup_limits(groups, own), *_process_limits(), _machine_memory()])


def _machine_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _cgroup_limits(groups: Path, own: Path) -> Iterator[int]:
    folders = [groups, *_cgroup_folders(groups, own)]
    for path in (folder / name for folder in folders for name in CGROUP_LIMITS):
        with suppress(OSError):
            text = path.read_text().strip()
            if text.isdigit():  # otherwise "max"
                yield int(text)


def _cgroup_folders(groups: Path, own: Path) -> Iterator[Path]:
    """Yield the folder of this process's group (version 2), and those of the groups around it."""
    with suppress(OSError):
        for line in own.read_text().splitlines():
            if line.startswith("0::"):
                folder = groups / line.removeprefix("0::").strip("/")
                yield from (folder, *folder.parents)


def _process_limits() -> Iterator[int]:
    import resource

    for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        soft, _ = resource.getrlimit(kind)
        if soft != resource.RLIM_INFINITY:
            yield soft


def resident_memory() -> int:
    """Return the memory that the process takes; 0 if the system does not tell."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else 0


def release_unused() -> None:
    """Return memory that is no longer used to the operating system, where that is possible."""
    with suppress(OSError, AttributeError):  # only the C library of GNU has this function
        ctypes.CDLL(None).malloc_trim(0)
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
