"""`python -m spanboost.compiling.helper_process`: compile jobs for the process that started this.

It reads pickled jobs from the standard input, and answers each with a byte when the code is on
disk, or when it cannot be compiled; then the other process compiles it and reports the error.
"""

import pickle
import signal
import sys
from contextlib import suppress
from typing import BinaryIO

from spanboost.compiling.jobs import run_job


def serve(jobs: BinaryIO, answers: BinaryIO) -> None:
    """Compile one job after the other, until the input ends."""
    while True:
        try:
            job = pickle.load(jobs)
        except EOFError:
            return
        with suppress(Exception):
            run_job(job)
        answers.write(b".")
        answers.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other process is interrupted, and ends this
    serve(sys.stdin.buffer, sys.stdout.buffer)
