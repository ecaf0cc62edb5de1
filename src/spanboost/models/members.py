"""The boosters of a composite model in its file: the experts of AutoBoost, members of a committee.

The header holds one entry for each. The names of their arrays begin with their number.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from spanboost.compiling.arrays import Array
from spanboost.errors import ModelFileError
from spanboost.models.booster import Booster, HullBoost, SpanBoost

BOOSTERS: dict[str, type[Booster]] = {cls.__name__: cls for cls in (SpanBoost, HullBoost)}


def members_header(members: Iterable[Booster]) -> list[dict[str, Any]]:
    """Return the headers of all members."""
    return [member.header() for member in members]


def members_tensors(members: Iterable[Booster]) -> Iterator[tuple[str, Array]]:
    """Yield the arrays of all members."""
    for k, member in enumerate(members):
        for name, value in member.tensors():
            yield f"{k}.{name}", value


def restore_members(headers: list[Any], tensors: dict[str, Array]) -> list[Booster]:
    """Return the members of a file."""
    parts: list[dict[str, Array]] = [{} for _ in headers]
    for name, value in tensors.items():
        number, _, rest = name.partition(".")
        parts[int(number)][rest] = value
    for header in headers:
        if header["booster"] not in BOOSTERS:
            raise ModelFileError(f"the member {header['booster']!r} is not a booster")
    pairs = zip(headers, parts, strict=True)
    return [BOOSTERS[header["booster"]].restore(header, part) for header, part in pairs]
