"""Model files from strangers: a header claims no more than the file holds, and no index is wild."""

import json
import os
import subprocess
import sys
from pathlib import Path

import frozen_models
import numpy as np
import pytest
from forged import changed, file_arrays
from safetensors.numpy import save_file

from spanboost import (
    AutoBoost,
    FiniteClass,
    HullBoost,
    LinearBall,
    LinearSGD,
    ModelFileError,
    Network,
    Ridge,
    SpanBoost,
    Stumps,
    Symmetrised,
    Trees,
    load,
    save,
)
from spanboost.compiling.kernels import plain
from spanboost.compiling.random_numbers import are_streams, streams, uniform
from spanboost.losses import Softmax
from spanboost.models import claims
from spanboost.models.files import FORMAT, to_bytes

CASES = int(os.environ.get("SPANBOOST_CASES", "300"))
SUPPORT = Path(__file__).parents[1] / "support"


def rows(T=40):
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.9, 0.9, (T, 4))
    return X, np.tanh(X[:, 0] - X[:, 1]) / 2


@pytest.fixture
def file_of(tmp_path):
    """A function that writes the file of a model after some rows, and returns its path."""

    def write(model, T=40):
        with plain():
            if T:
                model.learn_many(*rows(T))
        save(model, tmp_path / "model.sb")
        return tmp_path / "model.sb"

    return write


def refuse(path, message, edit=lambda header: None, tensors=lambda arrays: arrays):
    changed(path, edit, tensors)
    with pytest.raises(ModelFileError, match=message) as caught:
        load(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("T", [0, 40])
@pytest.mark.parametrize("claim", [2**30, 2**63, 10**400], ids=["2^30", "2^63", "10^400"])
def test_copies_that_the_file_does_not_hold(file_of, T, claim):
    path = file_of(SpanBoost(LinearSGD(), 2), T)
    refuse(path, "the header claims [1-9]", lambda h: h["parameters"].update(n=claim))


@pytest.mark.parametrize("T", [0, 40])
def test_hidden_units_that_the_file_does_not_hold(file_of, T):
    def claim(header):
        header["parameters"]["learner"]["fields"]["hidden"] = 10**9

    refuse(file_of(SpanBoost(Network(), 2), T), "claims 2,000,000,000 copies or hidden", claim)


@pytest.mark.parametrize("T", [0, 40])
def test_outputs_that_the_file_does_not_hold(file_of, T):
    def claim(header):
        header["parameters"]["loss"] = {"class": "Softmax", "fields": {"d": 10**9}}

    path = file_of(SpanBoost(LinearSGD(), 2), T)
    refuse(path, "the label range is invalid: it has 1 outputs, but the loss has 1000000000", claim)
    save(AutoBoost(Softmax(3), budget="fast"), path)
    refuse(path, "it has 3 outputs, but the loss has 1000000000", claim)


def test_many_members_cannot_claim_what_one_cannot(file_of):
    def claim(header):
        header["experts"] *= 4
        for expert in header["experts"]:
            expert["parameters"]["n"] = claims.FRESH // 10

    refuse(file_of(AutoBoost(budget="fast"), 0), "header claims .* copies", claim)


@pytest.mark.parametrize(
    ("learner", "edit"),
    [
        (Network(bits=4), lambda h: h["rows"].update(features=2**35)),
        (Stumps(intercept=True), lambda h: h["rows"].update(features=2**35)),
        (Trees(depth=3), lambda h: h["parameters"]["learner"]["fields"].update(depth=20)),
    ],
)
def test_tables_that_do_not_start_as_zeros_are_limited(file_of, learner, edit, monkeypatch):
    path = file_of(SpanBoost(learner, 2))
    if isinstance(learner, Trees):  # the real limit allows 2 deep trees
        monkeypatch.setattr(claims, "FREE", 2**10)
        monkeypatch.setattr(claims, "RATIO", 1)
    refuse(path, r"claims tables of .* numbers.*; if you trust the file, use load", edit)


def test_a_model_that_has_learned_nothing_claims_its_hashed_tables(file_of):
    def claim(header):
        header["parameters"]["learner"]["fields"]["bits"] = 30

    refuse(file_of(SpanBoost(Network(bits=4), 2), 0), "claims tables of 21,474,836,480", claim)


@pytest.mark.parametrize(
    "claim", [2**31, 2**63, -(2**64), 10**400], ids=["2^31", "2^63", "-2^64", "10^400"]
)
def test_a_new_model_claims_no_integers_that_overflow(file_of, claim):
    def change(header):
        header["parameters"]["learner"]["fields"]["candidates"] = claim

    path = file_of(SpanBoost(Trees(depth=3, candidates=4), 2), 0)
    refuse(path, "candidates is .*; expected at most 2,147,483,647", change)


def test_a_trusted_file_may_claim_tables(file_of, monkeypatch):
    path = file_of(SpanBoost(Trees(depth=3), 2))
    monkeypatch.setattr(claims, "FREE", 0)
    monkeypatch.setattr(claims, "RATIO", 0)
    with pytest.raises(ModelFileError, match="claims tables"):
        load(path)
    assert load(path, trusted=True).labels.rows == 40


LEARNERS = [
    LinearSGD(),
    Stumps(intercept=True),
    Network(hidden=3),
    Trees(depth=3),
    Ridge(columns=4),
    LinearBall(4.0),
    Symmetrised(Network(hidden=2)),
    FiniteClass(randomised=True),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda one: type(one).__name__)
def test_learners_state_the_sizes_of_their_banks(learner, file_of):
    """Every file holds what `stored` says; arrays that start as something else are in `filled`."""
    feedback = "linear" if isinstance(learner, Symmetrised) else "greedy"
    model = HullBoost(learner, 3, feedback=feedback)
    path = file_of(model)
    core, header = model.core, json.loads(json.dumps(model.header()))
    size = claims._size(header)
    held = [array.size for _, array in model.tensors()]
    assert 3 <= size.stored <= sum(held)
    grown = claims._size(header | {"rows": header["rows"] | {"features": 100}})
    fresh = core.fresh_bank()
    if hasattr(fresh, "grown"):
        few, many = (touched_numbers(fresh.grown(features, 1)) for features in (50, 100))
        assert many - few <= grown.filled
    changed(path)
    assert load(path).labels.rows == 40


def touched_numbers(bank):
    """The number of values other than 0 in all arrays of a bank."""
    if hasattr(bank, "_fields"):
        return sum(map(touched_numbers, bank))
    return np.count_nonzero(bank) if isinstance(bank, np.ndarray) else 0


def drawn():
    return SpanBoost(FiniteClass(randomised=True), 2)


@pytest.mark.parametrize(
    "damage",
    [
        lambda t: t | {"bank.best": t["bank.best"] - 1e9},
        lambda t: t | {"bank.sums": t["bank.sums"] + 1e9},
        lambda t: t | {"bank.rng": np.zeros_like(t["bank.rng"])},
        lambda t: t | {"bank.rng": t["bank.rng"] - 2**62},
        lambda t: t | {"bank.t": t["bank.t"] - 2**40},
        lambda t: t | {"bank.t": np.full(1, 2**63 - 1)},
    ],
)
def test_sums_of_a_finite_class_that_no_draw_could_accept(file_of, damage):
    refuse(file_of(drawn()), "invalid number or index", tensors=damage)


@pytest.mark.parametrize("t", [0, -1, 2**62, 2**63 - 1])
def test_rounds_of_a_symmetrised_learner_without_a_learning_rate(file_of, t):
    path = file_of(HullBoost(Symmetrised(LinearBall(4.0)), 2, feedback="linear"))
    refuse(path, "invalid number or index", tensors=lambda a: a | {"bank.t": np.full(1, t)})


@pytest.mark.parametrize("t", [-1, -(2**63), 2**62])
@pytest.mark.parametrize(
    ("name", "learner"), [("bank.t", LinearBall(4.0)), ("algorithm.t", LinearSGD())]
)
def test_rounds_without_a_step(file_of, name, learner, t):
    """The step is proportional to one over the square root of the number of rounds."""
    path = file_of(SpanBoost(learner, 2))
    assert name in file_arrays(path)
    refuse(path, "invalid number or index", tensors=lambda a: a | {name: np.full(1, t)})


def test_streams_stay_streams():
    state = streams(3, 2)
    assert are_streams(state)
    for _ in range(1000):
        uniform(state[0])
        assert are_streams(state)
    assert not are_streams(np.zeros((1, 6), np.int64))


def test_columns_of_a_regression_that_are_taken_twice(file_of):
    """With all columns taken but not by features, the next feature would be out of bounds."""
    path = file_of(SpanBoost(Ridge(columns=64), 1))

    def take_all(arrays):
        assert arrays["bank.columns.used"] < len(arrays["bank.columns.prior"])
        return arrays | {"bank.columns.used": np.full(1, len(arrays["bank.columns.prior"]))}

    refuse(path, "invalid number or index", tensors=take_all)
    same = file_of(SpanBoost(Ridge(columns=64), 1))
    refuse(
        same,
        "invalid number or index",
        tensors=lambda t: t | {"bank.columns.place": np.ones_like(t["bank.columns.place"])},
    )


def test_trees_whose_random_numbers_never_change(file_of):
    path = file_of(SpanBoost(Trees(depth=2), 2))
    name = "bank.candidates.state"
    refuse(path, "invalid number", tensors=lambda t: t | {name: np.zeros_like(t[name])})


def test_shrinkage_outside_of_its_range(file_of):
    path = file_of(SpanBoost(LinearSGD(), 2))
    name = "algorithm.sigma"
    refuse(path, "invalid number", tensors=lambda t: t | {name: np.full_like(t[name], np.inf)})


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, "[" * 500 + "]" * 500, "3", "null"]
)
def test_headers_that_are_not_objects_or_too_deep(tmp_path, text):
    path = tmp_path / "deep.sb"
    save_file({"a": np.zeros(3)}, path, metadata={"spanboost": text})
    with pytest.raises(ModelFileError, match=r"deep\.sb: ") as caught:
        load(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["x" * 9999, "a\nb", "\x1b[2J\r"])
def test_messages_quote_little_of_the_file(file_of, name):
    path = file_of(SpanBoost(LinearSGD(), 2))
    for edit in (
        lambda h: h.update(booster=name),
        lambda h: h.update(format=FORMAT + 1, library=name),
        lambda h: h["parameters"].update({name: 1}),
    ):
        data = path.read_bytes()
        refuse(path, r"model\.sb: ", edit)
        with pytest.raises(ModelFileError) as caught:
            load(path)
        message = str(caught.value).removeprefix(str(path))
        assert message.isprintable()
        assert len(message) < 500
        path.write_bytes(data)


def test_a_value_that_is_nested_deeply(file_of):
    def nest(header):
        deep = []
        for _ in range(900):
            deep = [deep]
        header["parameters"]["label_range"] = deep

    refuse(file_of(SpanBoost(LinearSGD(), 2)), r"model\.sb: ", nest)


@pytest.mark.parametrize(
    "shape", [[], [4], [4, 0, 0], 4, None, "ab", [4, -1], [4, [4]], [2**63, 0]]
)
def test_shapes_of_rows_that_are_refused(file_of, shape):
    path = file_of(SpanBoost(LinearSGD(), 2))
    refuse(path, "rows is invalid|do not match each other", lambda h: h["rows"].update(shape=shape))


@pytest.mark.parametrize(
    "change",
    [
        {"rows": -1},
        {"rows": 39},
        {"seen": 2**60, "rows": 2**60},
        {"seen": 1.5},
        {"half": 0.25},
        {"half": -1},
        {"centre": [0.5]},
    ],
)
def test_label_ranges_that_are_refused(file_of, change):
    path = file_of(SpanBoost(LinearSGD(), 2))
    refuse(path, "the label range is invalid", lambda h: h["labels"].update(change))


@pytest.mark.parametrize("half", [-1, 1e-310, 1e302])
def test_widths_of_growing_ranges_that_are_refused(file_of, half):
    path = file_of(SpanBoost(LinearSGD(), 2, label_range="growing"))
    refuse(path, "the label range is invalid", lambda h: h["labels"].update(half=half))


def test_experts_without_trees(file_of):
    path = file_of(AutoBoost(budget="fast"), 0)
    refuse(path, "no experts that boost trees", lambda h: h.update(experts=h["experts"][1:]))


def test_experts_with_infinite_weights(tmp_path):
    path, name = tmp_path / "auto.sb", "combination.share.weights"
    path.write_bytes((frozen_models.FOLDER / "auto-fast.sb").read_bytes())
    infinite = np.full(5, np.inf)
    refuse(path, "weights .* not finite", tensors=lambda t: t | {name: infinite})


def test_a_long_memory_takes_no_room_before_it_is_used(file_of):
    """A list of all slots would take 16 GB."""
    model = SpanBoost(LinearSGD(), 1, replay=1, memory=2**31 - 1, label_range="growing")
    with plain():
        model.learn_many([{"a": 1.0}, {"a": 2.0}], [1.0, 5.0])
    assert len(model.core.memory.rows.entries) == 3  # one row is predicted in the old range first
    assert to_bytes(model)


@pytest.mark.process
@pytest.mark.parametrize("mode", ["plain", pytest.param("compiled", marks=pytest.mark.slow)])
def test_random_changes_are_refused_or_harmless(mode):
    folders = [*sys.path, str(SUPPORT)]
    command = [sys.executable, SUPPORT / "fuzzed_files.py", "0", str(CASES), mode]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(folders)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert f"{CASES} cases" in done.stdout
