"""`python -m benchmarks.files`: measure speed and memory of reading and learning files."""

from collections.abc import Callable, Iterator

from benchmarks import measure, reading, training
from benchmarks.measure import Row, Setting

ABOUT = """\
Read files and train from files. The table has one line for each measurement: our figure, the
figure it is compared with, their ratio, the target for the ratio and whether it is met.

Both sides of a ratio alternate, and the best of several repeats counts. Each side runs once
before, untimed, so that files are in memory and compiled code is on disk. The time of a command
includes the start of its process; the notes show how long it takes with 20 rows. Files are written
to a temporary folder and take up to 900 MB at a time.
"""
ENDS = """\
examples:
  python -m benchmarks.files --data DIR                     all parts, some minutes
  python -m benchmarks.files --data DIR --only parquet csv  reading tables only
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
