"""The limits of the service: their meanings, their defaults and the options that set them.

The command line derives its options from this module, so it imports nothing heavy.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, NamedTuple, get_type_hints

DAY = 24 * 3600.0
MIB = 1 << 20


def describe_duration(seconds: float) -> str:
    """Return a duration in the largest unit that divides it, such as "7 days" or "36 hours"."""
    units = ((DAY, "day"), (3600.0, "hour"), (60.0, "minute"), (1.0, "second"))
    size, unit = next((one for one in units if seconds % one[0] == 0), units[-1])
    number = f"{seconds / size:,.15g}"
    return f"{number} {unit}" if number == "1" else f"{number} {unit}s"


class Limit(NamedTuple):
    """The meaning of a limit, and the option of `spanboost serve` that sets it, if there is one."""

    help: str
    flag: str | None = None
    unit: float = 1  # of the option's value, measured in the unit of the field


class StateLimits(NamedTuple):
    """How much the state folder keeps."""

    pending_rows: Annotated[
        int, Limit("Maximum number of predicted rows that wait for their labels", "--pending")
    ] = 100_000
    pending_bytes: Annotated[
        int, Limit("Maximum size of these rows on disk, in MiB", "--pending-bytes", MIB)
    ] = 1024 * MIB
    pending_seconds: Annotated[
        float, Limit("Days that a predicted row waits for its label", "--pending-days", DAY)
    ] = 7 * DAY
    remembered_ids: Annotated[
        int, Limit("Minimum number of recent rows whose ids are remembered", "--ids")
    ] = 500_000
    snapshot_rows: Annotated[
        int, Limit("Number of rows to learn between two snapshots", "--snapshot-every")
    ] = 100_000
    keep_seconds: Annotated[
        float,
        Limit(
            "Minimum number of days that can be restored; the last two snapshots always can",
            "--keep-days",
            DAY,
        ),
    ] = 0.0
    keep_rows: Annotated[
        int, Limit("Minimum number of recent rows that can be restored", "--keep-rows")
    ] = 0


class RequestLimits(NamedTuple):
    """How much clients may send."""

    body_bytes: Annotated[
        int, Limit("Maximum size of a request body in MiB", "--max-body", MIB)
    ] = 16 * MIB
    rows: Annotated[int, Limit("Maximum number of rows in a request", "--max-rows")] = 10_000
    row_keys: Annotated[int, Limit("Maximum number of keys in a row", "--max-width")] = 10_000
    open_requests: Annotated[
        int, Limit("Maximum number of requests that are open at a time", "--max-open")
    ] = 256
    waiting_rows: Annotated[
        int, Limit("Maximum number of rows that wait to be learned", "--max-waiting")
    ] = 50_000
    memory_bytes: Annotated[
        int | None,
        Limit(
            "Maximum memory of the process in MiB (default: half of the memory of the machine or "
            "the container)",
            "--max-memory",
            MIB,
        ),
    ] = None
    features: Annotated[
        int,
        Limit(
            "Maximum number of features that the model may learn; with --bits, the table has a "
            "fixed size",
            "--max-features",
        ),
    ] = 1_000_000
    classes: Annotated[
        int,
        Limit(
            "Maximum number of classes that the model may learn with --loss softmax; --classes "
            "fixes their number",
            "--max-classes",
        ),
    ] = 100
    body_seconds: Annotated[float, Limit("Time for a request body to arrive")] = 30.0
    request_seconds: Annotated[
        float, Limit("Time from the first byte of a request to the last byte of its response")
    ] = 120.0
    memory_share: Annotated[
        float, Limit("Part of the default memory for this model, if the process has several")
    ] = 1.0
    dashboards: Annotated[int, Limit("Maximum number of dashboards that are open at a time")] = 16


class Option(NamedTuple):
    """An option of `spanboost serve` that sets a limit."""

    flag: str
    default: float | None  # in the unit of the option; None if the help describes it
    help: str


def limit_options(limits: type) -> Iterator[Option]:
    """Yield the options that set the limits of a class."""
    defaults = limits()
    for field, limit in _limits(limits):
        if limit.flag is not None:
            default = getattr(defaults, field)
            yield Option(limit.flag, default and default // limit.unit, limit.help)


def limit_values(limits: type, args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a class of limits that parsed options set."""
    values = {
        field: (args[limit.flag.lstrip("-").replace("-", "_")], limit.unit)
        for field, limit in _limits(limits)
        if limit.flag is not None
    }
    return {field: value and value * unit for field, (value, unit) in values.items()}


def _limits(limits: type) -> Iterator[tuple[str, Limit]]:
    for field, hint in get_type_hints(limits, include_extras=True).items():
        yield field, hint.__metadata__[0]
