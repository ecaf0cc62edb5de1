"""The options of the commands that run the service or work on its state folder."""

from typing import Any

from spanboost.cli.arguments import (
    add_certificate,
    add_columns,
    add_model,
    add_query,
    at_least,
    between,
    days,
    share,
)
from spanboost.cli.interval_options import add_calibrate
from spanboost.service.limits import RequestLimits, StateLimits, limit_options


def add_serve_options(serve: Any) -> None:
    """Add the options of `spanboost serve`."""
    place = serve.add_mutually_exclusive_group(required=True)
    place.add_argument("--dir", metavar="STATE", help="State folder")
    place.add_argument(
        "--config",
        metavar="FILE",
        help="TOML file with several models, each with its own folder, options and tokens; they "
        "are served at /m/NAME/",
    )
    serve.add_argument(
        "--follow",
        metavar="LEADER",
        help="Copy another server, given by its URL or its state folder, and answer predictions "
        "from the copy in --dir (needs the leader's admin token in SPANBOOST_LEADER_TOKEN)",
    )
    serve.add_argument(
        "--workers",
        type=at_least(1),
        default=1,
        metavar="N",
        help="Number of processes that answer POST /predict?keep=false; one of them, the leader, "
        "also answers all other requests. The others are at most a second behind it (default: 1)",
    )
    _add_server(serve)
    serve.add_argument(
        "--intervals",
        action="store_true",
        help="Also learn prediction intervals, for POST /predict?interval=0.9; for numeric labels "
        "(docs/intervals.md)",
    )
    add_calibrate(serve)


def add_work_options(work: Any) -> None:
    """Add the options of `spanboost work`."""
    work.add_argument("--dir", metavar="STATE", required=True, help="State folder")
    streams = work.add_argument_group("streams (docs/streams.md explains the addresses)")
    streams.add_argument(
        "--from",
        dest="rows",
        metavar="URL",
        required=True,
        help="Rows to predict and to learn: kafka://HOST:PORT/TOPIC, redis://HOST:PORT/STREAM, or "
        "the address of a database with --query and --resume-column",
    )
    streams.add_argument(
        "--labels",
        metavar="URL",
        help="Labels with the ids of rows, from another topic or stream (default: they are among "
        "the rows)",
    )
    streams.add_argument(
        "--to", dest="predictions", metavar="URL", help="Topic or stream for the predictions"
    )
    streams.add_argument(
        "--dead-letters",
        metavar="URL",
        help="Topic or stream for messages that cannot be used, with the reason",
    )
    streams.add_argument(
        "--on-error",
        choices=("stop", "skip"),
        default="stop",
        help="What to do with such messages without --dead-letters: `stop` ends the worker "
        "(default); `skip` skips and counts them",
    )
    streams.add_argument(
        "--group",
        default="spanboost",
        metavar="NAME",
        help="Group of workers that share the messages. One worker learns each row exactly once, "
        "also if it is killed. With several workers of Kafka, each row is learned at least once: "
        "if one of them is killed, another one learns the rows since its last commit again "
        "(default: spanboost)",
    )
    streams.add_argument(
        "--drain",
        action="store_true",
        help="End when all messages were processed (default: wait for more)",
    )
    add_query(streams)
    streams.add_argument(
        "--interval",
        type=share,
        metavar="COVERAGE",
        help="Also learn prediction intervals, and add the ends `low` and `high` of those with "
        "this coverage to the predictions; for numeric labels",
    )
    add_calibrate(work)
    _add_server(work)


def _add_server(serve: Any) -> None:
    """Add the options of a process that has a model, a state folder and an HTTP server."""
    serve.add_argument(
        "--host", default="127.0.0.1", help="Address to listen on (default: 127.0.0.1)"
    )
    serve.add_argument(
        "--port",
        type=between(0, 65535),
        default=8000,
        help="Port to listen on; 0 chooses a free one (default: 8000)",
    )
    serve.add_argument(
        "--quiet", action="store_true", help="Show no progress bar while the journal is replayed"
    )
    serve.add_argument(
        "--log",
        choices=("text", "json"),
        default="text",
        help="Format of the lines on standard error (default: text)",
    )
    serve.add_argument(
        "--accept-upgrade",
        action="store_true",
        help="Learn labels that another version of spanboost left in the journal, even if the "
        "model will differ from the one of that version",
    )
    tls = serve.add_argument_group("TLS")
    tls.add_argument(
        "--tls-cert",
        metavar="FILE",
        help="Certificate in PEM format, followed by the intermediate ones; turns on HTTPS",
    )
    tls.add_argument(
        "--tls-key", metavar="FILE", help="Private key of the certificate, without a password"
    )
    columns = serve.add_argument_group("rows")
    columns.add_argument(
        "--id", default="id", metavar="NAME", help="Key of the id in a row (default: id)"
    )
    add_columns(columns, "`label`")
    add_model(serve, ("-m", "-i", "--model"))
    _add_limits(serve.add_argument_group("state folder"), StateLimits)
    _add_limits(serve.add_argument_group("request limits"), RequestLimits)


def add_check_options(check: Any) -> None:
    """Add the options of `spanboost check`."""
    _add_folder(check)


def add_repair_options(repair: Any) -> None:
    """Add the options of `spanboost repair`."""
    _add_folder(repair)
    repair.add_argument(
        "--quarantine",
        type=at_least(1),
        action="append",
        metavar="RECORD",
        help="Number of a record that the model must not learn; its rows are written to a file "
        "(repeat the option for several records)",
    )
    repair.add_argument(
        "--yes", action="store_true", help="Repair the folder (default: print what would be lost)"
    )


def add_erase_options(erase: Any) -> None:
    """Add the options of `spanboost erase`."""
    _add_folder(erase)
    erase.add_argument("ids", nargs="+", metavar="ID", help="Ids of the rows to erase")
    erase.add_argument(
        "--yes", action="store_true", help="Erase the rows (default: print what would remain)"
    )


def add_backup_options(backup: Any) -> None:
    """Add the options of `spanboost backup`."""
    backup.add_argument(
        "source", metavar="SOURCE", help="Address of a running service, or state folder"
    )
    backup.add_argument("file", metavar="FILE", help="Backup file to write (a tar archive)")
    add_certificate(backup)
    backup.add_argument("--quiet", action="store_true", help="Show no progress bar")


def add_restore_options(restore: Any) -> None:
    """Add the options of `spanboost restore`."""
    restore.add_argument("source", metavar="SOURCE", help="Backup file, or state folder")
    restore.add_argument(
        "--to",
        metavar="POINT",
        help="Number of the last record to restore, or a time (ISO 8601; local time unless it has "
        "an offset); by default, everything",
    )
    restore.add_argument("--dir", required=True, metavar="NEW", help="New state folder to write")


def add_versions_options(versions: Any) -> None:
    """Add the options of `spanboost versions`."""
    _add_target(versions)
    versions.add_argument(
        "action",
        nargs="?",
        choices=("pin", "unpin", "rollback"),
        help="What to do with version N (default: list all versions)",
    )
    versions.add_argument(
        "number", nargs="?", type=at_least(0), metavar="N", help="Number of a version"
    )


def add_challenge_options(challenge: Any) -> None:
    """Add the options of `spanboost challenge`."""
    _add_target(challenge)
    challenge.add_argument(
        "action",
        nargs="?",
        default="show",
        choices=("show", "begin", "promote", "withdraw"),
        help="What to do (default: show the comparison)",
    )
    challenge.add_argument(
        "--promote",
        choices=("by-hand", "when-better"),
        default="by-hand",
        help="When the challenger replaces the model: by-hand waits for the action promote; "
        "when-better replaces it as soon as the challenger is better (default: by-hand)",
    )
    challenge.add_argument(
        "--classes",
        type=at_least(2),
        metavar="K",
        help="Number of classes for --loss softmax (default: classes are added as they appear)",
    )
    add_model(challenge, ("-m", "-i", "--model"))
    challenge.set_defaults(positive=None)


def _add_target(command: Any) -> None:
    command.add_argument(
        "target", metavar="STATE_OR_URL", help="State folder, or address of a running service"
    )
    add_certificate(command)


def _add_folder(command: Any) -> None:
    command.add_argument("folder", metavar="STATE", help="State folder")


def _add_limits(group: Any, limits: type) -> None:
    """Add the options that set the limits of the service."""
    for option in limit_options(limits):
        default = "" if option.default is None else f" (default: {option.default:,.0f})"
        group.add_argument(
            option.flag,
            type=days if isinstance(option.default, float) else at_least(1),
            default=option.default,
            metavar="N",
            help=f"{option.help}{default}",
        )
