"""Whether the last writes to one part of the state folder succeeded."""

import time

from spanboost.service.log import log_disk_error

RECENT_SECONDS = 10.0  # then the service is ready again: only a new write shows if the disk works


class DiskStatus:
    """Counts and logs failed writes. One thread changes it; all threads may read it."""

    def __init__(self, what: str) -> None:
        self.failures = 0
        self.problem: str | None = None  # why the last write failed; None if it succeeded
        self._what, self._failed_at = what, 0.0

    def note_success(self) -> None:
        """Note that a write succeeded."""
        self.problem = None

    def note_failure(self, error: OSError) -> None:
        """Note that a write failed."""
        log_disk_error(self._what, error)
        self.failures += 1
        self._failed_at = time.monotonic()
        self.problem = error.strerror or str(error)

    @property
    def recent_problem(self) -> str | None:
        """Why the last write failed, if that was in the last seconds."""
        return self.problem if time.monotonic() - self._failed_at < RECENT_SECONDS else None
