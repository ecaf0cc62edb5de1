"""Model files: a loaded model continues identically, and invalid files are refused."""

import os
import pickle

import frozen_models
import numpy as np
import pytest
from forged import changed, file_arrays
from safetensors.numpy import save_file
from scipy_free import Csr

from spanboost import (
    FiniteClass,
    HullBoost,
    LinearBall,
    LinearSGD,
    ModelFileError,
    Network,
    Ridge,
    Rows,
    SpanBoost,
    Stumps,
    Symmetrised,
    Trees,
    load,
    save,
)
from spanboost.compiling.kernels import plain
from spanboost.losses import Huber, PNorm, Softmax, SquaredEuclidean
from spanboost.models.files import FORMAT

F64 = np.float64
LEARNERS = {
    "linear": LinearSGD(0.3),
    "rates": LinearSGD((0.1, 0.2, 0.4), decay=0.5, dtype=F64),
    "hashed": LinearSGD(bits=3),
    "stumps": Stumps(),
    "intercepts": Stumps(intercept=True, dtype=F64),
    "network": Network(hidden=3),
    "trees": Trees(depth=3, candidates=8, evidence=0.5, grace=5, delay=2),
    "ridge": Ridge(columns=4),
    "ball": LinearBall(20.0),
}
CASES = {
    **{f"{name}, span": lambda L=L: SpanBoost(L, 3, seed=5) for name, L in LEARNERS.items()},
    **{f"{name}, hull": lambda L=L: HullBoost(L, 3, seed=6) for name, L in LEARNERS.items()},
    "fixed range": lambda: HullBoost(LinearSGD(), 3, label_range=(-2, 2)),
    "linear feedback": lambda: SpanBoost(LinearSGD(), 3, 0.5, feedback="linear", D=0.7, B=1.5),
    "symmetrised": lambda: HullBoost(Symmetrised(Stumps()), 3, feedback="linear"),
    "randomised": lambda: SpanBoost(FiniteClass(randomised=True), 3, D=9.0, scale=0.1),
    "changing range": lambda: SpanBoost(Stumps(), 3, label_range="auto"),
    "growing range": lambda: SpanBoost(Stumps(), 3, label_range="growing"),
    "own steps": lambda: SpanBoost(LinearSGD(), 3, alpha=0.5, offset="shrunk", loss=Huber(0.2)),
    "kink": lambda: HullBoost(Ridge(), 3, loss="absolute", label_range="auto"),
    "p-norm": lambda: HullBoost(Network(hidden=2), 3, loss=PNorm(3.0)),
}  # fmt: skip
EVERY = pytest.mark.parametrize("case", CASES)


def stream(T=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(T, 4)).clip(-3, 3)
    X[rng.random((T, 4)) < 0.2] = 0
    return X, np.tanh(X[:, 0] - X[:, 1]) / 2


def save_and_read(model, path):
    save(model, path)
    return path.read_bytes()


@EVERY
def test_a_loaded_model_continues_identically(case, tmp_path):
    X, y = stream()
    path = tmp_path / "model.sb"
    with plain():
        model = CASES[case]()
        model.learn_many(X[:25], y[:25])
        save(model, path)
        again = load(path)
        assert type(again) is type(model)
        np.testing.assert_array_equal(again.predict_many(X), model.predict_many(X))
        np.testing.assert_array_equal(
            again.learn_many(X[25:], y[25:]), model.learn_many(X[25:], y[25:])
        )
        assert save_and_read(again, tmp_path / "a") == save_and_read(model, tmp_path / "b")
        assert again.learner == model.learner


@EVERY
def test_the_same_rows_give_the_same_bytes_in_blocks_of_any_size(case, tmp_path):
    X, y = stream()
    with plain():
        whole, parts = CASES[case](), CASES[case]()
        whole.learn_many(X, y)
        for a, b in ((0, 1), (1, 18), (18, 40)):
            parts.predict_many(X[:7])
            parts.learn_many(X[a:b], y[a:b])
            save(parts, tmp_path / "parts")
            parts = load(tmp_path / "parts")
        assert save_and_read(whole, tmp_path / "whole") == save_and_read(parts, tmp_path / "parts")


@pytest.mark.parametrize("kind", ["sparse", "codes", "names"])
@pytest.mark.parametrize("learner", ["linear", "stumps", "network", "hashed", "ridge"])
def test_rows_of_every_kind(kind, learner, tmp_path):
    X, y = stream()
    codes = (np.abs(X[:, :2]) * 2).astype(int) - 1

    def block(a, b):
        if kind == "sparse":
            return Csr(X[a:b])
        if kind == "codes":
            return Rows(X[a:b, 2:], codes[a:b])
        return [{f"f{j}": v, "kind": str(j % 2)} for j, v in enumerate(X[a:b, 0].tolist())]

    with plain():
        model = SpanBoost(LEARNERS[learner], 3)
        model.learn_many(block(0, 20), y[:20])
        save(model, tmp_path / "model.sb")
        again = load(tmp_path / "model.sb")
        for each in (model, again):
            each.learn_many(block(20, 40), y[20:])
        np.testing.assert_array_equal(
            again.predict_many(block(0, 40)), model.predict_many(block(0, 40))
        )
        assert save_and_read(again, tmp_path / "a") == save_and_read(model, tmp_path / "b")


@pytest.mark.parametrize(
    ("loss", "labels"), [(SquaredEuclidean(2), "pairs"), (Softmax(3), "classes")]
)
def test_vectors(loss, labels, tmp_path):
    X, y = stream()
    y = np.stack([y, -y], axis=1) if labels == "pairs" else np.arange(40) % 3
    with plain():
        model = HullBoost(Stumps(), 2, loss=loss)
        model.learn_many(X, y)
        save(model, tmp_path / "model.sb")
        np.testing.assert_array_equal(
            load(tmp_path / "model.sb").predict_many(X), model.predict_many(X)
        )


def test_a_model_that_has_learned_nothing(tmp_path):
    X, y = stream()
    save(SpanBoost(Stumps(), 3), tmp_path / "model.sb")
    model = load(tmp_path / "model.sb")
    assert not model.started
    with plain():
        np.testing.assert_array_equal(
            model.learn_many(X, y), SpanBoost(Stumps(), 3).learn_many(X, y)
        )


def test_the_first_files_of_format_2_load():
    """They lack the count of labels that differ from the one before."""
    X, y = stream()
    model = SpanBoost(Stumps(), 3, label_range="auto")
    with plain():
        model.learn_many(X, y)
        tensors = dict(model.tensors())
        tensors["labels.counts"] = tensors["labels.counts"][:8]
        old = SpanBoost.restore(model.header(), tensors)
        np.testing.assert_array_equal(old.learn_many(X, y), model.learn_many(X, y))
    counts = old.labels.history.counts
    np.testing.assert_array_equal(counts[:8], model.labels.history.counts[:8])
    assert counts[8] >= 40  # so that no label is forgotten


def test_tables_hold_the_features_that_were_seen(tmp_path):
    model = SpanBoost(LinearSGD(), 2)
    with plain():
        model.learn_many(Rows(None, np.array([[1], [100_000]])), [0.1, 0.2])
    assert len(save_and_read(model, tmp_path / "model.sb")) < 5000
    assert (
        len(file_arrays(tmp_path / "model.sb")["bank.inputs.W"]) == 3
    )  # the constant, and two codes


@pytest.fixture
def model_file(tmp_path):
    X, y = stream()
    model = SpanBoost(Stumps(), 2, label_range="auto")
    with plain():
        model.learn_many(X, y)
    save(model, tmp_path / "model.sb")
    return tmp_path / "model.sb"


def test_every_truncation_is_refused(model_file):
    data = model_file.read_bytes()
    for length in sorted({*range(0, 40), *range(40, len(data), 97), len(data) - 1}):
        model_file.write_bytes(data[:length])
        with pytest.raises(ModelFileError, match=r"model\.sb: "):
            load(model_file)


def test_a_flipped_bit_is_refused(model_file):
    data, rng = model_file.read_bytes(), np.random.default_rng(0)
    header = int.from_bytes(data[:8], "little") + 8
    for place in [*rng.integers(header, size=150), *rng.integers(header, len(data), 150)]:
        damaged = bytearray(data)
        damaged[place] ^= 1 << rng.integers(8)
        model_file.write_bytes(damaged)
        with pytest.raises(ModelFileError, match=r"model\.sb: "):
            load(model_file)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda h: h.update(format=FORMAT + 1), "in a format that this version does not know"),
        (lambda h: h.update(booster="Evil"), "this version does not know 'Evil'"),
        (
            lambda h: h["parameters"].update(n=3),
            r"must be .* of shape \(3,\) \(got .* of shape \(2,\)\)",
        ),
        (
            lambda h: h["parameters"].update(n=-1),
            r"n must be a positive integer or 'auto' \(got -1\)",
        ),
        (lambda h: h["parameters"].update(extra=1), "do not match each other: .*'extra'"),
        (
            lambda h: h["parameters"]["learner"].update({"class": "os.system"}),
            "this version does not know 'os.system'",
        ),
        (lambda h: h["rows"].update(features=2), "not a sorted list of table indices"),
        (lambda h: h["rows"].update(features=-1), "the description of the rows is invalid"),
        (
            lambda h: h["labels"].update(half=None),
            "do not match each other|the label range is invalid",
        ),
        (lambda h: h["labels"].update(centre=[1, 2]), "the label range is invalid"),
        (lambda h: h.pop("labels"), "do not match each other: 'labels'"),
    ],
)
def test_invalid_headers_are_refused(model_file, edit, message):
    changed(model_file, edit)
    with pytest.raises(ModelFileError, match=message):
        load(model_file)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda t: {k: v for k, v in t.items() if k != "bank.U"}, "missing or unexpected arrays"),
        (lambda t: t | {"more": np.zeros(1)}, "missing or unexpected arrays"),
        (
            lambda t: t | {"bank.U": t["bank.U"].astype(F64)},
            r"bank.U must be float32 .*got float64",
        ),
        (
            lambda t: t | {"bank.score": t["bank.score"][1:]},
            r"bank.score must be .* of shape .*\(got",
        ),
        (
            lambda t: t | {"bank.S.touched": t["bank.S.touched"][::-1].copy()},
            "not a sorted list of",
        ),
        (
            lambda t: t | {"bank.S.touched": t["bank.S.touched"] + 10**6},
            "not a sorted list of table indices",
        ),
        (
            lambda t: t | {"labels.counts": t["labels.counts"] + 64},
            "an array holds an invalid number or index",
        ),
        (
            lambda t: t | {"labels.chunk": np.full(64, np.nan)},
            "labels.chunk contains NaN; the file is damaged",
        ),
    ],
)
def test_invalid_arrays_are_refused(model_file, edit, message):
    changed(model_file, lambda header: None, edit)
    with pytest.raises(ModelFileError, match=message):
        load(model_file)


@EVERY
def test_numbers_that_are_nan_are_refused(case, tmp_path):
    X, y = stream()
    path = tmp_path / "model.sb"
    with plain():
        model = CASES[case]()
        model.learn_many(X, y)
    save(model, path)
    refuse_nan_in_any_array(path)


@pytest.mark.parametrize("name", frozen_models.MODELS)
def test_files_of_version_0_1_with_nan_are_refused(name, tmp_path):
    path = tmp_path / "model.sb"
    path.write_bytes((frozen_models.FOLDER / f"{name}.sb").read_bytes())
    refuse_nan_in_any_array(path)


def refuse_nan_in_any_array(path):
    data, arrays = path.read_bytes(), file_arrays(path)
    rows = ("memory.", "sample.")  # they may have missing values
    read = [name for name in arrays if not any(kind in name for kind in rows)]
    checked = [name for name in read if arrays[name].dtype.kind == "f" and arrays[name].size]
    assert checked
    for name in checked:
        path.write_bytes(data)
        damaged = arrays[name].copy()
        damaged.flat[damaged.size // 2] = np.nan
        changed(path, tensors=lambda t, name=name, damaged=damaged: t | {name: damaged})
        with pytest.raises(ModelFileError, match=rf"{name.split('.')[-1]} .*NaN"):
            load(path)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "other"
    save_file({"a": np.zeros(3)}, path)
    with pytest.raises(ModelFileError, match="a safetensors file, but not a spanboost model"):
        load(path)
    path.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(ModelFileError, match="not a model file, or a damaged one"):
        load(path)
    with pytest.raises(FileNotFoundError) as caught:
        load(tmp_path / "nowhere")
    assert str(caught.value) == f"{tmp_path / 'nowhere'}: file not found"


class Mean:
    def predict(self, x):
        return 0.0

    def update(self, x, loss):
        pass


def test_code_is_never_saved(tmp_path):
    for model in (
        SpanBoost(Mean(), 2),
        SpanBoost(FiniteClass([lambda x: 0.5]), 2),
        SpanBoost(LinearSGD(), 2, loss=type("Own", (type(PNorm()),), {})()),
    ):
        with pytest.raises(ValueError, match="is code, not data"):
            save(model, tmp_path / "model.sb")
    assert not any(tmp_path.iterdir())


def test_a_failed_write_keeps_the_old_file(model_file, monkeypatch):
    before = model_file.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        save(SpanBoost(Stumps(), 2), model_file)
    assert model_file.read_bytes() == before
    assert [path.name for path in model_file.parent.iterdir()] == ["model.sb"]


def test_folders_in_the_place_of_files_are_one_sentence(tmp_path):
    model = SpanBoost(LinearSGD(), n=2)
    missing = tmp_path / "missing" / "model.sb"
    with pytest.raises(ValueError, match=r"model\.sb: the folder does not exist$"):
        save(model, missing)
    with pytest.raises(ValueError, match=r"is a folder, not a file$"):
        load(tmp_path)
