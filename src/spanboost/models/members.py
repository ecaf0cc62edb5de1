"""Save and restore the boosters inside AutoBoost and committees.

The header has one entry for each booster. The names of its arrays start with its number.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from spanboost.compiling.arrays import Array
from spanboost.errors import ModelFileError
from spanboost.models.booster import Booster, HullBoost, SpanBoost
from spanboost.models.refitted import Refitted

BOOSTERS: dict[str, type[Booster]] = {cls.__name__: cls for cls in (SpanBoost, HullBoost, Refitted)}


def members_header(members: Iterable[Booster]) -> list[dict[str, Any]]:
    """Return the headers of all members."""
    return [member.header() for member in members]


def members_tensors(members: Iterable[Booster]) -> Iterator[tuple[str, Array]]:
    """Yield the arrays of all members."""
    for k, member in enumerate(members):
        for name, value in member.tensors():
            yield f"{k}.{name}", value


def restore_members(headers: list[Any], tensors: dict[str, Array]) -> list[Booster]:
    """Build the members from their headers and arrays."""
    parts: list[dict[str, Array]] = [{} for _ in headers]
    for name, value in tensors.items():
        number, _, rest = name.partition(".")
        parts[int(number)][rest] = value
    for header in headers:
        if header["booster"] not in BOOSTERS:
            raise ModelFileError(f"the member {header['booster']!r} is not a booster")
    pairs = zip(headers, parts, strict=True)
    return [BOOSTERS[header["booster"]].restore(header, part) for header, part in pairs]
