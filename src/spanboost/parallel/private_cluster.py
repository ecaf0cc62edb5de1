"""A Ray cluster that only this user can reach: a token, and no address but the loopback one.

Anyone who can connect to a Ray cluster can run code on it. By default, a cluster listens on all
addresses of the machine.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from secrets import token_hex
from typing import Any

from spanboost.errors import ClusterError, UserError, install_hint

# From this version on, Ray turns on tokens for the clusters that it starts with `ray.init`.
MIN_VERSION = (2, 59)
LOOPBACK = "127.0.0.1"
_MODE, _TOKEN, _TOKEN_PATH = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"


def check_version(version: str) -> None:
    """Refuse versions of Ray that start clusters without a token."""
    found = tuple(int(part) for part in version.split(".")[:2])
    if found < MIN_VERSION:
        least = ".".join(map(str, MIN_VERSION))
        raise UserError(
            f"clusters need Ray {least} or later, which protects them by a token (found "
            f"{version}): {install_hint('ray')}"
        )


def require_token() -> None:
    """Let Ray protect new clusters by the token of this user, or by a new one for this process."""
    if os.environ.get(_MODE, "").lower() != "token":
        os.environ.pop(_MODE, None)  # Ray turns tokens on if nothing is set
    saved = Path.home() / ".ray" / "auth_token"
    if not (os.environ.get(_TOKEN) or os.environ.get(_TOKEN_PATH) or saved.exists()):
        os.environ[_TOKEN] = token_hex(32)


@contextmanager
def listen_on_loopback() -> Iterator[dict[str, Any]]:
    """Yield the options of `ray.init` for a cluster that listens on the loopback address.

    Ray replaces a loopback address by another one, unless it assumes that clusters of several
    machines are impossible, as on macOS. It has no public setting for that on Linux.
    """
    from ray._private import ray_constants

    before = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield {"_node_ip_address": LOOPBACK}
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before


def check_loopback(ray: Any) -> None:
    """Stop a new cluster that other machines could reach."""
    address = ray.get_runtime_context().gcs_address
    if not ip_address(address.rpartition(":")[0].strip("[]")).is_loopback:
        ray.shutdown()
        raise ClusterError(
            f"Ray {ray.__version__} started a cluster that other machines can reach ({address}), "
            "so it was stopped; start one yourself with `ray start`, and give its address"
        )
