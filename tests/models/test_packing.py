"""Packed arrays: unpacked exactly, bounded, and refused if a file is forged."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from spanboost import AutoBoost, LinearSGD, SpanBoost, Trees
from spanboost.errors import ModelFileError
from spanboost.models import packing
from spanboost.models.files import from_bytes, to_bytes
from spanboost.models.packing import FREE, RATIO, pack_arrays, unpack_arrays

rng = np.random.default_rng(0)
X = rng.normal(size=(600, 3))
Y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
TYPES = ["f4", "f8", "i1", "i4", "i8", "u1", "u2"]


def same(one, other):
    return (
        one.keys() == other.keys()
        and all(one[name].dtype == other[name].dtype for name in one)
        and all(np.array_equal(one[name], other[name], equal_nan=True) for name in one)
    )


@given(
    st.dictionaries(
        st.sampled_from("abcd"),
        st.sampled_from(TYPES).flatmap(
            lambda dtype: arrays.arrays(dtype, arrays.array_shapes(max_dims=4, max_side=12))
        ),
    )
)
def test_any_arrays_are_unpacked_exactly(given_arrays):
    stored, description = pack_arrays(given_arrays)
    assert same(unpack_arrays(stored, description), given_arrays)


@given(st.integers(1, 40), st.integers(1, 5), st.integers(1, 32), st.randoms(use_true_random=False))
def test_candidates_of_trees_are_unpacked_exactly(records, planes, groups, random):
    draw = np.random.default_rng(random.getrandbits(32))
    given_arrays = {
        "0.bank.candidates.table": draw.normal(size=(records, planes, 2 * groups)).astype("f4"),
        "0.bank.candidates.phases": draw.integers(1, 1 + groups, records),
    }
    stored, description = pack_arrays(given_arrays)
    assert same(unpack_arrays(stored, description), given_arrays)


def test_the_thresholds_of_a_row_are_next_to_each_other():
    """A plain oracle: which row of a leaf set which threshold."""
    phases, groups = np.array([1, 3, 4]), 8
    order = packing._row_order(
        "candidates.table", (3, 3, 2 * groups), {"candidates.phases": phases}
    )
    for s, phase in enumerate(phases):
        set_by = {}
        for n in range(2 * phase):
            for g in range(n % phase, groups, phase):
                set_by[2 * g + n // phase] = n
        rows = [set_by[c] for c in order[s].tolist()]
        assert rows == sorted(rows)
        assert sorted(order[s].tolist()) == list(range(2 * groups))


def test_empty_arrays_cannot_make_a_file_expand_without_bound():
    given_arrays = {f"{k}": np.zeros(FREE // 8) for k in range(4)} | {"x": rng.normal(size=99)}
    stored, packed = pack_arrays(given_arrays)
    assert len(packed) < 4
    size = sum(stored[name].nbytes for name in packed)
    assert sum(given_arrays[name].nbytes for name in packed) <= FREE + RATIO * size
    assert same(unpack_arrays(stored, packed), given_arrays)


GOOD = {"a": np.arange(1000), "b": np.ones((9, 9, 9), np.float32)}


def forge(**changes):
    stored, packed = pack_arrays(GOOD)
    packed["a"] = [changes.get(key, value) for key, value in zip("dso", packed["a"], strict=True)]
    return stored, packed


@pytest.mark.parametrize(
    "changes",
    [
        {"d": "object"},
        {"d": "O"},
        {"d": "S8"},
        {"d": "nothing"},
        {"d": None},
        {"d": "float16"},
        {"s": [999]},
        {"s": [1001]},
        {"s": [-1000]},
        {"s": [0]},
        {"s": [1000.0]},
        {"s": ["1000"]},
        {"s": 1000},
        {"s": [2**62, 2**62]},
        {"s": [True, 1000]},
        {"o": "planes"},
        {"o": "rows"},
        {"o": "other"},
        {"o": ["plain"]},
    ],
)
def test_forged_descriptions_are_refused_or_change_nothing(changes):
    try:
        arrays_ = unpack_arrays(*forge(**changes))
    except ModelFileError:
        return
    assert arrays_["a"].nbytes == GOOD["a"].nbytes  # then the checksum of the file decides


@pytest.mark.parametrize(
    "given_", [None, [], 1, {"a": 1}, {"a": []}, {"z": ["f4", [9], "plain"]}, {"a": {}}]
)
def test_other_descriptions_are_refused(given_):
    with pytest.raises(ModelFileError, match="packed arrays are damaged"):
        unpack_arrays(pack_arrays(GOOD)[0], given_)


def test_a_claim_beyond_the_bound_is_refused_before_anything_is_unpacked(monkeypatch):
    monkeypatch.setattr(packing, "_decompress", None)
    with pytest.raises(ModelFileError, match="far more memory"):
        unpack_arrays(*forge(s=[2**40]))


@pytest.mark.parametrize("damage", [b"", b"x", b"x" * 100])
def test_damaged_bytes_are_refused(damage):
    stored, description = pack_arrays(GOOD)
    stored["a"] = np.frombuffer(damage, np.uint8)
    with pytest.raises(ModelFileError):
        unpack_arrays(stored, description)


def test_a_packed_array_must_be_bytes():
    stored, description = pack_arrays(GOOD)
    stored["a"] = stored["a"].astype(np.float64)
    with pytest.raises(ModelFileError):
        unpack_arrays(stored, description)


def learned(model):
    model.learn_many(X[:500], Y[:500])
    return model


MODELS = {
    "linear": lambda: SpanBoost(LinearSGD(), n=4, label_range="auto"),
    "replay": lambda: SpanBoost(Trees(), n=4, label_range="auto", replay=2),
    "choice": lambda: SpanBoost(LinearSGD(), n="auto", label_range="auto"),
    "auto": lambda: AutoBoost(budget="fast"),
}


@pytest.mark.parametrize("kind", MODELS)
def test_pickles_are_the_bytes_of_files_and_continue_as_the_model(kind):
    model = learned(MODELS[kind]())
    model.threads = 1
    data = pickle.dumps(model)
    assert len(data) < len(to_bytes(model)) + 500
    again = pickle.loads(data)
    assert again.threads == 1
    assert to_bytes(again) == to_bytes(model)
    np.testing.assert_array_equal(
        again.learn_many(X[500:], Y[500:]), model.learn_many(X[500:], Y[500:])
    )
    assert to_bytes(again) == to_bytes(model)


def test_an_expert_alone_is_pickled_with_all_of_its_state():
    model = learned(AutoBoost(budget="fast"))
    expert = pickle.loads(pickle.dumps(model.experts["linear quick"]))
    assert expert.core.sample is None


def test_files_of_trees_are_smaller_than_their_arrays():
    model = learned(AutoBoost(budget="fast"))
    assert len(to_bytes(model)) < 0.5 * sum(array.nbytes for _, array in model.tensors())
    assert to_bytes(from_bytes(to_bytes(model))) == to_bytes(model)
