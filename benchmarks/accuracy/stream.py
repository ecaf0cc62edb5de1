"""What a run gives, and the clock that only runs while rows are predicted and learned."""

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

BLOCK = 500  # rows between looks at the clock: runs that hit the limit end at a multiple of it


class Run(NamedTuple):
    """Predictions of the first rows, each made before its label was seen, and the time it took."""

    predictions: np.ndarray
    seconds: float
    rows: int  # rows that were learned or predicted in that time
    threads: int = 1
    cpu: float | None = None  # of these seconds, those the processor gave to the thread


class Clock:
    """Adds up the time of the parts that count."""

    def __init__(self) -> None:
        self.seconds = self.cpu = 0.0

    def __enter__(self) -> "Clock":
        self.start = time.perf_counter(), time.thread_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds += time.perf_counter() - self.start[0]
        self.cpu += time.thread_time() - self.start[1]


def blocks(rows: int, size: int = BLOCK) -> Iterator[slice]:
    """The rows in blocks."""
    return (slice(first, min(first + size, rows)) for first in range(0, rows, size))


def one_by_one(
    rows: int,
    make: Callable[[slice], list[Any]],
    step: Callable[[Any], float | None],
    limit: float,
) -> Run:
    """Go through a stream row by row, for as long as the limit allows.

    The limit is on the time of the processor, so that other work on the machine cuts nobody short.

    make: a block of examples as the library has them, outside the clock.
    step: predict an example, then learn it; None is no opinion, which is 0.
    """
    predictions: list[float] = []
    clock = Clock()
    for part in blocks(rows):
        examples = make(part)
        with clock:
            answers = [step(example) for example in examples]
        if clock.cpu > limit and predictions:
            break
        predictions += [0.0 if answer is None else float(answer) for answer in answers]
    return Run(np.array(predictions), clock.seconds, len(predictions), cpu=clock.cpu)
