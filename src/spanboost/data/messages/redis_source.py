"""Read a Redis stream as a consumer of a group, for a worker.

A worker continues after the position in its own journal. Entries are acknowledged after they are
in the journal. Entries that were delivered and are not in the journal are read again first.
"""

from collections import deque
from typing import Any

from spanboost.data.messages.addresses import EARLIEST, LATEST, Address
from spanboost.data.messages.message import Message, Positions
from spanboost.data.messages.redis_client import (
    FIELD,
    FIRST,
    RedisClient,
    as_text,
    check_id,
    id_key,
)
from spanboost.data.problems import StreamError

OPTIONS = ("start", "field")
BATCH = 1000  # entries that are returned at a time
SILENT_SECONDS = 10  # without a request, before a worker counts as stopped
MOST_NAMED = 5  # entries that a warning names
MOST_DELIVERED = 1_000_000  # entries that a crash can leave unacknowledged; it is far fewer


class RedisSource:
    """The entries of a stream that the group gives to this worker."""

    def __init__(self, address: Address, group: str, worker: str, id: str = "id") -> None:
        """Check the address.

        worker: a name that no other worker has.
        id: the key of ids, which are text: 12e4 is an id, not a number.
        """
        address.check_options(OPTIONS)
        self._client, self._group, self._worker = RedisClient(address), group, worker
        self._field, self._id = address.options.get("field", FIELD), id
        self._start = address.options.get("start", EARLIEST)
        if self._start not in (EARLIEST, LATEST):
            check_id(address, self._start)
        self.name, self.epoch = address.name, 0
        self.problem: str | None = None
        self.chosen: dict[str, Any] = {}
        self.warnings: list[str] = []
        self._again: str | None = None  # id after which entries are read again; None: none are left
        self._last = FIRST  # id of the last entry that was read
        self._unacknowledged: deque[str] = deque()

    def idle_reason(self) -> str | None:
        """Return which other workers of the group have entries and do not read, if there are any.

        Only they can process these entries, because their journals may contain them.
        """
        found = self._client.call("xinfo_consumers", self._group)
        silent = {
            as_text(one["name"]): one["pending"]
            for one in found
            if one["pending"] and one["idle"] > SILENT_SECONDS * 1000
        }
        silent.pop(self._worker, None)
        if not silent:
            return None
        named = ", ".join(f"{name} ({pending:,})" for name, pending in silent.items())
        return (
            f"{self.name} has entries that were delivered to workers which do not read now: "
            f"{named}; to process them, start these workers again with their state folders"
        )

    def start(self, positions: Positions) -> None:
        """Join the group, or create it; acknowledge what was processed before a crash."""
        last = positions.get(self._client.place)
        self._client.check_stream()
        self._client.check_position(last)
        self._again, self._last = last or FIRST, last or FIRST
        self._unacknowledged.clear()
        self.epoch += 1
        group = self._find_group()
        if group is None:
            self._create_group(last or self._first())
        elif last is not None:
            self._acknowledge(self._delivered("-", last))
            self._rewind(last, as_text(group["last-delivered-id"]))

    def poll(self, seconds: float, positions: Positions) -> list[Message]:
        """Return the entries that have arrived; first those that a crash has interrupted."""
        own = (self._group, self._worker)
        while self._again is not None:
            entries = self._client.read(self._again, BATCH, 0, own)
            self._again = as_text(entries[-1][0]) if entries else None
            messages = self._accept(self._existing(entries))
            if messages:
                return messages
        return self._accept(self._client.read(">", BATCH, seconds, own))

    def keep_alive(self, positions: Positions) -> None:
        """Do nothing: a group of Redis does not expect signs of life."""

    def commit(self, positions: Positions) -> None:
        """Acknowledge the entries that were processed."""
        last, done = positions.get(self._client.place), list[str]()
        waiting = self._unacknowledged
        while last is not None and waiting and id_key(waiting[0]) <= id_key(last):
            done.append(waiting.popleft())
        self._acknowledge(done)

    def ends(self) -> Positions | None:
        """Return the id of the newest entry."""
        return {self._client.place: self._client.last_id()}

    def has_read(self, ends: Positions) -> bool:
        """Return whether everything up to an entry was read, here or by others of the group."""
        end = ends[self._client.place]
        if self._again is not None or id_key(self._last) >= id_key(end):
            return self._again is None
        group = self._find_group()
        return group is not None and not self._has_more(group, end)

    def lag(self) -> dict[str, int | None]:
        """Return the number of entries that were not read, if the server knows it."""
        group = self._find_group()
        if group is None:
            return {self._client.place: None}
        # the server also counts entries that were deleted
        return {self._client.place: group.get("lag") if self._has_more(group, "+") else 0}

    def close(self, positions: Positions) -> None:
        """Acknowledge what was processed, and disconnect."""
        try:
            self.commit(positions)
        finally:
            self._client.close()

    def _create_group(self, begin: str) -> None:
        try:
            self._client.call("xgroup_create", self._group, begin)
        except StreamError as error:
            if "BUSYGROUP" not in str(error):  # another worker may have been faster
                raise

    def _first(self) -> str:
        """Return the id after which a new group begins."""
        if self._start == EARLIEST:
            return FIRST
        if self._start != LATEST:
            return self._start
        last = self._client.last_id()
        self.chosen[self._client.place] = last  # a restart must not begin at a later end
        return last

    def _rewind(self, last: str, delivered: str) -> None:
        """Let the group read entries again that only a lost copy of the journal contained.

        A folder that was restored from a backup has an earlier position. If there are other workers
        in the group, they may have processed the entries since then.
        """
        found = self._client.call("xinfo_consumers", self._group)
        others = {as_text(one["name"]) for one in found} - {self._worker}
        if others or id_key(delivered) <= id_key(last):
            return
        own = self._delivered(f"({last}", delivered)
        found = self._client.call("xrange", f"({last}", delivered, len(own) + 1)
        if not {as_text(id) for id, _ in found} <= {*own}:
            self._acknowledge(own)
            self._client.call("xgroup_setid", self._group, last)

    def _delivered(self, first: str, last: str) -> list[str]:
        """Return the ids of entries that were delivered to this worker and not acknowledged."""
        found = self._client.call(
            "xpending_range", self._group, first, last, MOST_DELIVERED, self._worker
        )
        return [as_text(one["message_id"]) for one in found]

    def _existing(self, entries: list[Any]) -> list[Any]:
        """Acknowledge and report the entries that were deleted after they were delivered."""
        deleted = [as_text(id) for id, fields in entries if not fields]
        if deleted:
            self._acknowledge(deleted)
            named = ", ".join(deleted[:MOST_NAMED])
            more = f" and {len(deleted) - MOST_NAMED:,} more" if len(deleted) > MOST_NAMED else ""
            self.warnings.append(
                f"{self.name}: skipped {len(deleted):,} of the entries delivered to this worker, "
                f"because they were deleted before it processed them: {named}{more}"
            )
        return [entry for entry in entries if entry[1]]

    def _accept(self, entries: list[Any]) -> list[Message]:
        messages = [self._client.message(entry, self._field, self._id) for entry in entries]
        for message in messages:
            self._last = message.position
            self._unacknowledged.append(message.position)
        return messages

    def _acknowledge(self, ids: list[str]) -> None:
        for first in range(0, len(ids), BATCH):
            self._client.call("xack", self._group, *ids[first : first + BATCH])

    def _has_more(self, group: dict[str, Any], end: str) -> bool:
        """Return whether there are entries up to an id that the group did not deliver."""
        delivered = as_text(group["last-delivered-id"])
        if end != "+" and id_key(delivered) >= id_key(end):
            return False
        return bool(self._client.call("xrange", f"({delivered}", end, 1))

    def _find_group(self) -> dict[str, Any] | None:
        """Return what the server knows of the group; None if there is no such group."""
        groups = self._client.call("xinfo_groups")
        return next((one for one in groups if as_text(one["name"]) == self._group), None)
