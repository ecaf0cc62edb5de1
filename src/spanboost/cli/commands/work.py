"""`spanboost work`: a service that reads rows and labels from streams, and writes predictions."""

from argparse import Namespace
from functools import partial

from spanboost.cli.commands.serve import (
    check_packages,
    describe_address,
    read_tls,
    read_tokens,
    request_limits,
    start_model,
)
from spanboost.cli.from_args import query_from_args, usage_errors
from spanboost.data.messages.addresses import parse_address
from spanboost.data.messages.message import MessageSource
from spanboost.data.messages.opening import open_sink, open_source
from spanboost.data.query_table import Query
from spanboost.errors import UsageError
from spanboost.models.quantiles.asked_levels import ends_of
from spanboost.models.quantiles.curves import LEVELS
from spanboost.service.log import log_to_stderr
from spanboost.service.request_rows import RowParser
from spanboost.service.streaming.open_streams import Streams
from spanboost.service.streaming.stream_worker import Behaviour, StreamWorker


def work(args: Namespace) -> int:
    """Process messages until the process is stopped, or all of them were processed."""
    check_packages("work")
    from spanboost.service.http.app import build_app
    from spanboost.service.http.server import bind_socket, build_server, check_exposure, run

    streams, tokens = _streams(args), read_tokens()
    with usage_errors({"coverage": "--interval"}):
        ends = () if args.interval is None else ends_of("interval", args.interval, LEVELS)
    behaviour = Behaviour(args.on_error == "skip", args.drain, ends)
    args.config = args.follow = None  # options of `serve` that a worker does not have
    args.intervals = args.interval is not None
    check_exposure(args.host, tokens)
    with bind_socket(args.host, args.port) as sock, log_to_stderr(args.log):
        tls, limits = read_tls(args), request_limits(args)
        app = build_app(None, tokens, args.id, limits)
        server = build_server(app, tls)

        def start() -> None:
            engine = start_model(app, args, server.fail, describe_address(sock, tls))
            parser = RowParser(engine.state.model.schema, args.id, limits.row_keys)
            worker = StreamWorker(engine, parser, streams, behaviour, server.fail, server.stop)
            app.attach(worker)
            worker.start()

        return run(server, sock, start)


def _streams(args: Namespace) -> Streams:
    """Return how to open the streams.

    Everything that does not need a connection is checked here, before the folder is created.
    """
    query = query_from_args(args)
    if query is not None and query.column is None:
        raise UsageError("--query requires --resume-column: a worker must know where to continue")
    if args.labels == args.rows:
        raise UsageError("--labels and --from are the same; leave out --labels")
    rows = partial(_open_source, args.rows, args.group, query, args.id)
    # a group of its own: members of one group must read the same topics to share partitions well
    group = f"{args.group}-labels"
    labels = (
        None if args.labels is None else partial(_open_source, args.labels, group, None, args.id)
    )
    for check in (rows, labels):
        if check is not None:
            check("")
    read = {"--from": None if query is not None else args.rows, "--labels": args.labels}
    written = {"--to": args.predictions, "--dead-letters": args.dead_letters}
    for option, address in written.items():
        if address is not None:
            _check_not_read(option, address, read)
    return Streams(
        rows,
        labels,
        None if args.predictions is None else partial(open_sink, args.predictions),
        None if args.dead_letters is None else partial(open_sink, args.dead_letters),
    )


def _check_not_read(option: str, address: str, read: dict[str, str | None]) -> None:
    """Raise UsageError if a stream that the worker writes is one that it reads."""
    stream = parse_address(address).stream
    for other, text in read.items():
        if text is not None and parse_address(text).stream == stream:
            raise UsageError(
                f"{option} and {other} are the same stream; the worker would read what it writes"
            )


def _open_source(
    address: str, group: str, query: Query | None, id: str, worker: str
) -> MessageSource:
    return open_source(address, group, worker, query, id)
