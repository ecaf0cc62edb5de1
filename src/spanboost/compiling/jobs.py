"""Jobs: descriptions of code to compile, which another process can do."""

import gc
import inspect
import pickle
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from spanboost.compiling import numba_internals
from spanboost.compiling.dispatchers import get_dispatcher, has_disk_cache
from spanboost.compiling.registration import add_kernels

_lock = threading.Lock()
_pauses = 0


@dataclass(frozen=True)
class Job:
    """A function of this package, and the types of its arguments.

    file: where the code goes.
    signature: the types; pickles of equal types can differ.
    """

    file: Path
    module: str
    name: str
    counted: bool
    signature: bytes = field(compare=False, repr=False)

    @property
    def is_done(self) -> bool:
        """Whether the code is on disk."""
        return self.file.exists()


def new_job(dispatcher: Any, args: tuple[Any, ...]) -> Job | None:
    """Return the job to compile a function for such arguments.

    None if its code cannot be kept on disk: then other processes are of no use.
    """
    if not has_disk_cache(dispatcher):
        return None
    function, signature = dispatcher.py_func, numba_internals.signature_of(args)
    return Job(
        numba_internals.code_file(dispatcher, signature),
        function.__module__,
        function.__name__,
        numba_internals.counts_references(dispatcher),
        pickle.dumps(signature),
    )


def run_job(job: Job) -> None:
    """Compile the code of a job, and keep it on disk."""
    signature = pickle.loads(job.signature)
    add_kernels(numba_internals.classes_in(signature))
    function = inspect.unwrap(getattr(import_module(job.module), job.name))  # of `jit`
    dispatcher = get_dispatcher(function, keep=True, counted=job.counted)
    with paused_collection():
        dispatcher.compile(signature)


@contextmanager
def paused_collection() -> Iterator[None]:
    """Pause the garbage collector; it takes a seventh of the compile time and finds little.

    Afterwards, all objects belong to the oldest generation. As young ones, the first collection
    would look at each of them, which takes half as long as the collections in between.
    """
    global _pauses  # noqa: PLW0603
    with _lock:
        if gc.isenabled() or _pauses:
            _pauses += 1
            gc.disable()
            paused = True
        else:
            paused = False  # the program itself has turned it off
    try:
        yield
    finally:
        with _lock:
            _pauses -= paused
            if paused and not _pauses:
                if not gc.get_freeze_count():  # else the program has frozen objects, to stay so
                    gc.freeze()
                    gc.unfreeze()  # into the oldest generation
                gc.enable()
