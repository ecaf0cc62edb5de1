"""The client of the commands that administer a running service."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from spanboost.client import Client, ServiceError
from spanboost.errors import UsageError
from spanboost.service.storage.folder_lock import FolderInUseError

ADMIN_TOKEN = "SPANBOOST_ADMIN_TOKEN"  # environment variable
_UNAUTHORIZED = 401


def is_address(target: str) -> bool:
    """Return whether a target is the address of a service, not a folder."""
    return "://" in target


@contextmanager
def open_admin_client(address: str, certificate: str | None) -> Iterator[Client]:
    """Yield a client of the service at an address, with the admin token."""
    token = os.environ.get(ADMIN_TOKEN, "").strip() or None
    with Client(address, admin_token=token, certificate=certificate) as client:
        try:
            yield client
        except ServiceError as error:
            if error.status == _UNAUTHORIZED:
                raise UsageError(f"{error}; set {ADMIN_TOKEN}") from None
            raise


@contextmanager
def suggest_address(folder: str) -> Iterator[None]:
    """Suggest the address of the server that uses a state folder; commands accept either."""
    try:
        yield
    except FolderInUseError:
        raise UsageError(
            f"{folder} is in use by a server; give the address of the server instead of the "
            "folder, such as http://127.0.0.1:8000, or stop it"
        ) from None
