"""Write the readable records of a journal to a new one, which can replace it."""

from collections.abc import Callable
from pathlib import Path

from spanboost import __version__
from spanboost.service.storage.folder_check import Report
from spanboost.service.storage.journal import Journal
from spanboost.service.storage.journal_files import MAX_REPLACED, open_file
from spanboost.service.storage.record_files import StateError
from spanboost.service.storage.salvage import read_payload
from spanboost.service.storage.upgrade import WITHOUT_HEADER


def write_journal(
    report: Report,
    folder: Path,
    last: int,
    change: Callable[[int, bytes], bytes] = lambda number, payload: payload,
) -> None:
    """Write the readable records up to `last` to a new journal; the others become empty ones.

    change: returns the new payload for the number and the payload of a record.
    """
    records, first = report.salvage.records, report.first
    usable = [one for one in report.snapshots if one.error is None and one.record <= last]
    marks = [one.mark for one in usable if one.mark is not None]
    version = _other_version(report, report.learned + 1, last)
    journal = Journal(folder, first=first, replaces=marks[:MAX_REPLACED], version=version)
    list(journal.read())
    when = 0.0  # a record without a time gets the one before, so that times stay in order
    try:
        for number in range(first, last + 1):
            place = records.get(number)
            payload = b"" if place is None else change(number, read_payload(place))
            when = (place and place.time) or when
            journal.append(payload, when, sync=False)
        journal.sync()
    finally:
        journal.close()


def _other_version(report: Report, first: int, last: int) -> str | None:
    """Return another version that wrote some of these records; None if this one wrote all.

    The next start learns these records, so it must know who wrote them (upgrade.py). If records are
    lost, no version could reproduce the snapshots after them, so there is nothing to compare.
    """
    if report.lost:
        return None
    places = report.salvage.records.items()
    paths = {place.path for number, place in places if first <= number <= last}
    return min(filter(None, map(_written_by, paths)), default=None)


def _written_by(path: Path) -> str | None:
    """Return the version that wrote a journal file; None if it is this one or unknown."""
    try:
        header = open_file(path).header
    except StateError:  # the header is damaged
        return None
    version = WITHOUT_HEADER if header is None else header.version
    return None if version == __version__ else version
