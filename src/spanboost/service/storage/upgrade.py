"""The upgrade contract: a new version learns the records of an old one only in the same way.

Another version of spanboost may learn the same rows with slightly different results. Then a replay
would silently replace a model whose predictions clients have already seen. So the first start of
another version replays the journal from the snapshot before the last one, and continues only if
it reproduces the last one, bit for bit. Records that a snapshot includes are not replayed, so a
folder that was closed by a last snapshot needs no check.
"""

from pathlib import Path
from typing import Any, NamedTuple

from spanboost import __version__
from spanboost.models.files import to_bytes
from spanboost.models.model import Model
from spanboost.service.storage.journal_chain import read_chain
from spanboost.service.storage.record_files import StateError

WITHOUT_HEADER = "0.1.0 or earlier"  # wrote journal files that do not name their version


class Checkpoint(NamedTuple):
    """The content of a snapshot: a model and the run that was saved with it."""

    model: Model
    run: Any

    @property
    def record(self) -> int:
        """The number of the last record that the model has learned."""
        record: int = self.run["record"]
        return record


def other_versions(journal: Path, record: int) -> list[str]:
    """Return the other versions that wrote records after this one, as text."""
    versions = read_chain(journal).versions_after(record)
    return sorted({one or WITHOUT_HEADER for one in versions if one != __version__})


def check_reproduced(folder: Path, model: Model, expected: Checkpoint) -> None:
    """Raise StateError if a replay has not given the model of a snapshot, bit for bit."""
    if to_bytes(model) != to_bytes(expected.model):
        raise refuse_upgrade(
            folder,
            expected.record,
            f"a replay by version {__version__} does not reproduce the last snapshot",
        )


def refuse_upgrade(folder: Path, record: int, why: str) -> StateError:
    """Return the error for a folder whose records this version must not learn."""
    versions = " and ".join(other_versions(folder / "journal", record))
    return StateError(
        f"{folder}: version {versions} of spanboost wrote records that are not in a snapshot, and "
        f"{why}. Start version {versions} once and stop it, so that it writes a snapshot; or add "
        f"--accept-upgrade to learn these records with version {__version__}"
    )
