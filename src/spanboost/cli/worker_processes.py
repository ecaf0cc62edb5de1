"""The part of `serve --workers` that prepares the worker processes."""

import socket
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Any

from spanboost.errors import UsageError
from spanboost.service.limits import RequestLimits


def check_worker_options(args: Namespace) -> None:
    """Raise UsageError for options that cannot be combined with --workers."""
    if args.workers > 1 and args.follow is not None:
        raise UsageError("--workers cannot be used with --follow")


def share_memory(limits: RequestLimits, workers: int) -> RequestLimits:
    """Return limits whose default memory is divided among the processes."""
    return limits._replace(memory_share=1 / workers)


@contextmanager
def add_workers(
    server: Any, app: Any, args: Namespace, tokens: dict[str, str], sock: Any, tls: Any
) -> Iterator[None]:
    """Give the server a pool of worker processes, if the options ask for more than one process.

    The workers reach the server through a Unix socket in a folder of this user.
    """
    if args.workers == 1:
        yield
        return
    from spanboost.service.http.worker_pool import WorkerPool
    from spanboost.service.http.worker_process import WorkerSettings

    with TemporaryDirectory(prefix="spanboost-") as folder, socket.socket(socket.AF_UNIX) as own:
        path, secret = str(Path(folder) / "leader"), token_hex(32)
        own.bind(path)
        own.listen(512)
        settings = WorkerSettings(
            folder=str(Path(args.dir).resolve()),
            id=args.id,
            log=args.log,
            limits=app.limits._asdict(),
            tokens=tokens,
            tls=tls and [str(tls.certificate.resolve()), str(tls.key.resolve())],
            listener=sock.fileno(),
            leader=path,
            secret=secret,
        )
        app.health.workers = WorkerPool(args.workers - 1, settings.encode(), sock, secret)
        server.workers_socket = own
        yield
