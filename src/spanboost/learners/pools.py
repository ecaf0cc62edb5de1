"""Pools: tables with room for many entries, of which only the first ones are in use.

NumPy takes zeros from the operating system, which gives memory to a page when it is first written.
So room that is never written costs no memory.
"""

from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array


def reduce_pool(pool: Any, used: int) -> Any:
    """Return what `__reduce__` of a NamedTuple needs to copy and pickle used entries only.

    Its property `tables` names the fields with an entry per element of the pool.
    """
    kept, room = pool._asdict(), len(getattr(pool, pool.tables[0]))
    kept |= {name: kept[name][:used] for name in pool.tables}
    return _with_room, (type(pool), room, pool.tables, kept)


def _with_room(kind: Any, room: int, tables: tuple[str, ...], kept: dict[str, Any]) -> Any:
    return kind(**kept | {name: extended(kept[name], room) for name in tables})


def extended(table: Array, room: int) -> Array:
    """Return the table with zeros after its last entry, `room` entries in all."""
    whole = np.zeros((room, *table.shape[1:]), table.dtype)
    whole[: len(table)] = table
    return whole
