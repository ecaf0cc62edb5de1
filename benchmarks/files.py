"""`python -m benchmarks.files`: how fast, and in how much memory, files are read and learned."""

from collections.abc import Callable, Iterator

from benchmarks import measure, reading, training
from benchmarks.measure import Row, Setting

ABOUT = """\
Trains from files and reads files, and prints one line for each demand: what was measured, our
figure, the figure it is held against, their ratio, what is demanded of it and whether it is met.

Both sides of a ratio run in turn, and the best of several repeats counts; each runs once before,
uncounted, so that files are in memory and our compiled code is on disk. Commands are measured with
the start of their process; the notes say how long they take with 20 rows. Files lie in a temporary
folder, 900 MB of them at most at a time.
"""
ENDS = """\
examples:
  python -m benchmarks.files --data DIR                     everything, some minutes
  python -m benchmarks.files --data DIR --only parquet csv  reading tables alone
"""
SECTIONS: dict[str, Callable[[Setting], Iterator[Row]]] = {
    "boosting": training.boosting,
    "single": training.single,
    "svmlight": reading.svmlight,
    "parquet": reading.parquet,
    "csv": reading.csv,
    "memory": training.memory,
}


if __name__ == "__main__":
    measure.main("files", ABOUT, ENDS, SECTIONS, repeats=3)
