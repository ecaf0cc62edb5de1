"""Produce items in background threads while earlier items are consumed."""

import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

S = TypeVar("S")
T = TypeVar("T")


def prefetch(items: Iterator[T], depth: int) -> Generator[T, None, None]:
    """Yield the items in order; a thread produces up to `depth` of them in advance."""
    ready: queue.Queue[Any] = queue.Queue(depth)
    stop, end = threading.Event(), object()

    def put(item: Any) -> bool:
        while not stop.is_set():
            try:
                ready.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def produce() -> None:
        try:
            for item in items:
                if not put((item, None)):
                    return
            put((end, None))
        except BaseException as error:  # the consumer raises it
            put((end, error))

    thread = threading.Thread(target=produce, name="spanboost-reader", daemon=True)
    thread.start()
    try:
        while True:
            item, error = ready.get()
            if error is not None:
                try:
                    raise error
                finally:
                    del error  # its traceback refers to this frame: the cycle would keep files open
            if item is end:
                return
            yield item
    finally:
        stop.set()
        thread.join(1)  # with a limit: it may wait for a pipe; as a daemon it ends with us


def prefetch_map(
    function: Callable[[S], T], items: Iterable[S], workers: int, idle: Callable[[], bool]
) -> Iterator[T]:
    """Yield function(item) for every item in order, computed by `workers` threads.

    While `idle()` is true, because reading the next item would block, finished results are
    yielded at once instead of after more work is queued.
    """
    pending = deque[Future[T]]()
    with ThreadPoolExecutor(workers) as pool:
        for item in items:
            pending.append(pool.submit(function, item))
            while pending and (len(pending) > workers or idle()):
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
