"""Pickle models as the bytes of their files, which are smaller than their arrays."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spanboost.models.model import Model


def reduce_model(model: "Model") -> Any:
    """Return what `__reduce__` needs to pickle a model as its file; None if a file lacks something.

    A part of the model or its class may be code, which no file holds. A booster in an ensemble
    keeps no sample of rows, and one that is plotted or audited keeps its stages; their files do not
    say so.
    """
    from spanboost.models.files import to_bytes

    cores = [booster.core for booster in model.stored_boosters()]
    samples, stages = [core.sample for core in cores], [core.records for core in cores]
    is_ours = type(model).__module__.startswith("spanboost.")
    if not is_ours or all(one is None for one in samples) or any(one is not None for one in stages):
        return None
    try:
        return restore_pickle, (to_bytes(model), model.threads)
    except ValueError:  # a part is code
        return None


def restore_pickle(data: bytes, threads: int | None) -> "Model":
    """Return the model of a pickle."""
    from spanboost.models.files import from_bytes

    model = from_bytes(data)
    model.threads = threads
    return model
