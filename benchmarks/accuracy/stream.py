"""The result of a run, and a clock that runs only while rows are predicted and learned."""

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

BLOCK = 500  # rows between checks of the clock; a run that hits the limit ends at a multiple


class Run(NamedTuple):
    """Predictions, each made before its label was seen, and the time they took."""

    predictions: np.ndarray
    seconds: float
    rows: int  # rows learned or predicted in that time
    threads: int = 1
    cpu: float | None = None  # processor time of the thread, in seconds


class Clock:
    """Adds up the time of the timed sections."""

    def __init__(self) -> None:
        self.seconds = self.cpu = 0.0

    def __enter__(self) -> "Clock":
        self.start = time.perf_counter(), time.thread_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds += time.perf_counter() - self.start[0]
        self.cpu += time.thread_time() - self.start[1]


def blocks(rows: int, size: int = BLOCK) -> Iterator[slice]:
    """Yield the rows in blocks."""
    return (slice(first, min(first + size, rows)) for first in range(0, rows, size))


def one_by_one(
    rows: int,
    make: Callable[[slice], list[Any]],
    step: Callable[[Any], float | None],
    limit: float,
) -> Run:
    """Process a stream row by row until the limit is reached.

    The limit is on processor time, so other work on the machine does not end a run early.

    make: converts a block of examples for the library, outside the timed section.
    step: predicts an example, then learns it; None counts as 0.
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
