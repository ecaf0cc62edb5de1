"""Limits on what the header of a model file may claim, checked before anything is built.

The number of copies, outputs and hidden units determines the sizes of arrays that every file of a
model that has learned contains. So a file can claim no more of them than it holds numbers. Tables
are different: a file lists only their entries that were touched. Most tables are all zeros at
first, so they take memory only where they are written. Those that start with other numbers, such as
the weights of networks, are limited here. A file that you trust may claim any table.
"""

from typing import Any

from spanboost.checks import MOST_CLASSES, is_integer
from spanboost.compiling.arrays import Array
from spanboost.errors import ModelFileError
from spanboost.learners.protocol import BankSize
from spanboost.losses import adds_classes
from spanboost.models.header import from_json
from spanboost.models.spec import COPIES

LARGEST = 2**31 - 1  # integer parameter of a learner; products of larger ones overflow
FRESH = 100_000  # copies and hidden units of a model that has learned nothing
FREE = 2**29  # numbers in tables that any file may claim: 2 GiB in float32
RATIO = 64  # or this many times the numbers in the file, if that is more


def check_claims(header: dict[str, Any], tensors: dict[str, Array], trusted: bool) -> None:
    """Raise a ModelFileError if the header claims more than the file can hold."""
    held = sum(array.size for array in tensors.values())
    boosters = []
    for model in header.get("models", [header]):
        for one in _boosters(model):
            _check_outputs(one, one)
            _check_outputs(model, one)
            boosters.append(one)
    sizes = [_size(one) for one in boosters]
    stored, filled = (sum(column) for column in zip(*sizes, strict=True))
    if stored > max(held, FRESH):
        raise ModelFileError(
            f"the header claims {stored:,} copies or hidden units, but the file contains "
            f"{held:,} numbers"
        )
    if filled > max(FREE, RATIO * held) and not trusted:
        raise ModelFileError(
            f"the header claims tables of {filled:,} numbers, but the file contains {held:,} "
            "numbers; if you trust the file, use load(path, trusted=True)"
        )


def _boosters(header: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the headers of the boosters in a model."""
    boosters: list[dict[str, Any]] = header.get("experts", header.get("members", [header]))
    if not boosters:
        raise ModelFileError("the file contains no boosters")
    return boosters


def _check_outputs(header: dict[str, Any], booster: dict[str, Any]) -> None:
    """Raise a ModelFileError if a loss and the label range have different numbers of outputs."""
    loss, centre = header["parameters"].get("loss"), booster["labels"]["centre"]
    if adds_classes(loss):
        if not 2 <= len(centre) <= MOST_CLASSES:
            raise ModelFileError(f"the label range is invalid: it has {len(centre)} classes")
        return
    d = loss["fields"].get("d", 1) if isinstance(loss, dict) else 1
    if d != len(centre):
        raise ModelFileError(
            f"the label range is invalid: it has {len(centre)} outputs, but the loss has {d!r:.40}"
        )


def _size(booster: dict[str, Any]) -> BankSize:
    """Return the numbers in the arrays of a booster, as far as they are limited."""
    parameters, rows = booster["parameters"], booster["rows"]
    lanes = booster.get("lanes", {"n": 0, "eta": []})  # of a booster that chooses n or eta
    n = max(_count(parameters.get("n", COPIES)), _count(lanes["n"]) * len(lanes["eta"]))
    learner = from_json(parameters["learner"])
    _check_integers("learner", parameters["learner"])
    bits = min(_count(getattr(learner, "bits", None)), 64)
    hashed = 2**bits if bits else 0  # features after the first row
    features = hashed if rows is None else _count(rows["features"])
    size_of = getattr(learner, "bank_size", None)
    outputs = len(booster["labels"]["centre"])
    return BankSize(n) if size_of is None else size_of(n, outputs, features)


def _check_integers(name: str, value: Any) -> None:
    """Raise a ModelFileError if a parameter is too large for the size of an array."""
    if isinstance(value, dict):  # a learner, which may contain another one
        for field, part in value["fields"].items():
            _check_integers(field, part)
    elif is_integer(value) and abs(value) > LARGEST:
        raise ModelFileError(f"{name} is {value!r:.40}; expected at most {LARGEST:,}")


def _count(value: Any) -> int:
    """Return a count; 0 for any other value, which is refused when the model is built."""
    return max(value, 0) if is_integer(value) else 0
