"""What the commands on state folders that no server uses have in common."""

from pathlib import Path

from spanboost.errors import UsageError


def existing_folder(name: str, advice: str = "") -> Path:
    """Return a state folder; UsageError, with some advice, if it is not one."""
    folder = Path(name)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; expected a state folder{advice}")
    if not folder.exists():
        raise UsageError(f"{folder} does not exist; expected a state folder{advice}")
    if not (folder / "snapshots").is_dir():
        raise UsageError(f"{folder} is not a state folder: it has no folder of snapshots{advice}")
    return folder
