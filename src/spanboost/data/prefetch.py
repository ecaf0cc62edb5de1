"""Work done in threads while what they made before is used."""

import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

S = TypeVar("S")
T = TypeVar("T")


def prefetch(items: Iterator[T], depth: int) -> Generator[T, None, None]:
    """The same items, made by a thread that is up to `depth` of them ahead."""
    waiting: queue.Queue[Any] = queue.Queue(depth)
    stop, end = threading.Event(), object()

    def put(item: Any) -> bool:
        while not stop.is_set():
            try:
                waiting.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def work() -> None:
        try:
            for item in items:
                if not put((item, None)):
                    return
            put((end, None))
        except BaseException as error:  # whatever it is, it belongs to the reader's reader
            put((end, error))

    thread = threading.Thread(target=work, name="spanboost-reader", daemon=True)
    thread.start()
    try:
        while True:
            item, error = waiting.get()
            if error is not None:
                raise error
            if item is end:
                return
            yield item
    finally:
        stop.set()
        thread.join(1)  # not for ever: it may be waiting for a pipe, and dies with the process


def prefetch_map(
    function: Callable[[S], T], items: Iterable[S], workers: int, idle: Callable[[], bool]
) -> Iterator[T]:
    """As map, in so many threads; what is ready is handed on when there is nothing else to do."""
    waiting = deque[Future[T]]()
    with ThreadPoolExecutor(workers) as pool:
        for item in items:
            waiting.append(pool.submit(function, item))
            while waiting and (len(waiting) > workers or idle()):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
