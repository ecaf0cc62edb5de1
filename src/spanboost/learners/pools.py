"""Pools: tables with room for many entries, of which only the first ones are in use."""

from typing import Any

from spanboost.compiling.arrays import Array
from spanboost.rows.room import new_room


def take_entries(pool: Any, entries: Array, room: int) -> dict[str, Any]:
    """Return the tables of a pool with these entries only, in this order, and with new room.

    pool: a NamedTuple whose property `tables` names the fields with an entry per element.
    """
    new = {}
    for name in pool.tables:
        table = getattr(pool, name)
        new[name] = new_room((room, *table.shape[1:]), table.dtype)
        new[name][: len(entries)] = table[entries]
    return new
