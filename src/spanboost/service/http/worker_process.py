"""The program of a worker process: `python -m spanboost.service.http.worker_process`.

Only the leader starts it (worker_pool.py). The first line of standard input has the settings. The
process ends when standard input ends, which also happens if the leader is killed. It writes its
state to standard output, as lines of JSON.
"""

import os
import socket
import sys
import threading
from collections.abc import Callable
from logging import CRITICAL, INFO
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import orjson

from spanboost.errors import ModelFileError, UserError
from spanboost.models.files import from_bytes, to_bytes
from spanboost.service.http.forwarding import LeaderLink
from spanboost.service.http.server import FAILED, Tls, build_server, run
from spanboost.service.http.worker_app import WorkerApplication
from spanboost.service.learning.replica import Replica
from spanboost.service.learning.warm_up import warm_up, warm_up_challenger
from spanboost.service.limits import RequestLimits
from spanboost.service.log import log_to_stderr, write_log
from spanboost.service.storage.journal_tail import DivergedError
from spanboost.service.storage.replica import ReplicaState

REPORT_SECONDS = 0.25  # time between two lines about the state


class WorkerSettings(NamedTuple):
    """What a worker must know."""

    folder: str
    id: str  # key of the id in a row
    log: str  # format of the log
    limits: dict[str, Any]
    tokens: dict[str, str]
    tls: list[str] | None  # paths of the certificate and the key
    listener: int  # file descriptor of the socket that all processes share
    leader: str  # path of the Unix socket of the leader
    secret: str  # proves to the leader that a request comes from a worker

    def encode(self) -> bytes:
        """Return the settings as a line."""
        return orjson.dumps(self._asdict()) + b"\n"


def main() -> int:
    """Follow the folder of the leader and answer requests until standard input ends."""
    settings = WorkerSettings(**orjson.loads(sys.stdin.buffer.readline()))
    # the pipe is for reports only, whatever other code prints
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0) as reports:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        with log_to_stderr(settings.log):
            try:
                return _serve(settings, reports)
            except (UserError, ModelFileError, DivergedError, OSError) as error:
                write_log(CRITICAL, f"a worker process cannot start: {error}")
                return FAILED


def _serve(settings: WorkerSettings, reports: BinaryIO) -> int:
    limits = RequestLimits(**settings.limits)
    state = ReplicaState(Path(settings.folder))
    warm_up(from_bytes(to_bytes(state.model)))
    if state.challenger is not None:
        warm_up_challenger(from_bytes(to_bytes(state.challenger.model)))
    failures = list[str]()  # before there is a server to tell
    replica = Replica(state, limits, failures.append)
    link = LeaderLink(settings.leader, settings.secret)
    app = WorkerApplication(replica, link, settings.tokens, settings.id, limits)
    tls = settings.tls and Tls(*map(Path, settings.tls))
    server = build_server(app, tls or None)

    def start() -> None:
        _in_thread(lambda: _wait_for_end(server.stop))
        _in_thread(lambda: _report(replica, failures, server.fail, reports))
        write_log(INFO, f"worker process {os.getpid()} is ready")

    with socket.socket(fileno=settings.listener) as sock:
        return run(server, sock, start)


def _in_thread(target: Callable[[], None]) -> None:
    threading.Thread(target=target, daemon=True).start()


def _wait_for_end(stop: Callable[[], None]) -> None:
    while os.read(sys.stdin.fileno(), 1):  # a buffered read would block the end of the process
        pass
    stop()


def _report(
    replica: Replica, failures: list[str], fail: Callable[[str], None], reports: BinaryIO
) -> None:
    """Tell the leader how the worker is, until it fails or the leader has ended."""
    pause = threading.Event()
    while not failures:
        line = {
            "ready": replica.fresh,
            "record": replica.state.learned_record,
            "lag_seconds": replica.lag_seconds,
            "predicted": replica.predicted,
        }
        try:
            reports.write(orjson.dumps(line) + b"\n")
        except (OSError, ValueError):  # the leader has ended, or this process ends
            return
        pause.wait(REPORT_SECONDS)
    fail(failures[0])


if __name__ == "__main__":
    sys.exit(main())
