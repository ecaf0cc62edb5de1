"""Exported ONNX models predict the numbers of the model, with the rounding errors of float32."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx_session import OnnxModel
from predicting import (
    COMPILED,
    KINDS,
    LEARNERS,
    LOSS_OF,
    LOSSES,
    MODELS,
    SMALL_TREES,
    labels_of,
    rows_of,
    span,
    trained,
)
from scipy_free import Csr
from test_compact import holds_rows

from spanboost import LinearBall, LinearSGD, Rows, SpanBoost, Stumps, Trees, export, load
from spanboost.compiling.kernels import plain
from spanboost.errors import UserError
from spanboost.models.exporting import onnx_graph, onnx_model
from spanboost.models.predictions import probabilities

RELATIVE = 1e-5


def check(model, rows, folder):
    expected = model.predict_many(rows)
    exported = OnnxModel(model, folder)
    found = exported.predict_many(rows)
    assert found.shape == expected.shape
    # relative to the width of the labels, where predictions are close to 0
    np.testing.assert_allclose(found, expected, rtol=RELATIVE, atol=1e-6 * model.labels.half)
    check_no_rows(exported, rows)


def check_no_rows(exported, rows):
    """The outputs for a batch without rows are empty, and have the shapes of other batches."""
    many = exported.inputs_of(rows)
    none = {name: values[:0] for name, values in many.items()}
    outputs = [one.name for one in exported.session.get_outputs()]
    each = zip(
        exported.session.run(outputs, none), exported.session.run(outputs, many), strict=True
    )
    assert all(len(empty) == 0 and empty.shape[1:] == found.shape[1:] for empty, found in each)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", MODELS)
def test_every_model_on_every_kind_of_rows(case, kind, tmp_path):
    if case == "committee" and kind != "dense":
        pytest.skip("the members have learned dense rows")
    with plain():
        model = trained(MODELS[case](), kind, "squared")
        check(model, rows_of(kind, seed=1), tmp_path)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* are not exported")
@pytest.mark.parametrize("case", COMPILED)
def test_ensembles(case, tmp_path):
    loss = LOSS_OF.get(case, "squared")
    model = trained(COMPILED[case](), "codes", loss, T=400)
    check(model, rows_of("codes", T=200, seed=1), tmp_path)


@settings(max_examples=20)
@given(
    learner=st.sampled_from(sorted(LEARNERS)),
    loss=st.sampled_from(LOSSES),
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 1000),
)
def test_random_models(tmp_path_factory, learner, loss, kind, seed):
    with plain():
        model = trained(span(learner, loss), kind, loss, T=40, seed=seed)
        check(model, rows_of(kind, T=40, seed=seed + 1), tmp_path_factory.mktemp("random"))


@pytest.mark.parametrize("ranking", ["advantage", "loss"])
def test_unknown_features_of_stumps(ranking, tmp_path):
    """In Python, an unknown feature has score 0 and predicts 0."""
    labels = np.where(np.arange(40) % 2, 1.0, -1.0)  # predicting 0 is better than any stump
    learned = [{"a": float(k % 7), "city": f"c{k % 3}"} for k in range(40)]
    rows = [{"a": 3.0, "city": city} for city in ("c1", "new")]
    rows += [{"a": 3.0, "b": b} for b in (2.0, 0.0, None)]
    with plain():
        model = SpanBoost(Stumps(ranking=ranking), 3, label_range=(-1, 1))
        model.learn_many(learned, labels)
        expected = model.predict_many(rows)
        assert expected[0] != 0
        np.testing.assert_array_equal(expected == 0, [False, True, True, False, False])
        check(model, rows, tmp_path)


def test_equal_scores_of_stumps(tmp_path):
    """The score of a feature is 0 after its first row; Python takes the first key of a row."""
    with plain():
        model = SpanBoost(Stumps(), 2, label_range=(-9, 9))
        model.learn_many([{"z": 1.0}, {"b": "x"}, {"a": 1.0}], [5.0, -3.0, 1.0])
        check(model, [{"a": 1.0, "b": "x", "z": 1.0}, {"b": "x", "z": 1.0}], tmp_path)


def test_partial_sums_are_projected_if_they_must_be(tmp_path, monkeypatch):
    """The operator Scan and the matrix of coefficients give the same sums."""
    with plain():
        model = trained(span("trees", n=6), "dense", "squared")
        check(model, rows_of("dense"), tmp_path)
        assert b"Scan" not in (tmp_path / "model.onnx").read_bytes()
        monkeypatch.setattr(onnx_model, "_stays_inside", lambda lane, bounds: False)
        check(model, rows_of("dense"), tmp_path)
        assert b"Scan" in (tmp_path / "model.onnx").read_bytes()
        narrow = trained(MODELS["small ball"](), "dense", "squared")
        monkeypatch.undo()
        check(narrow, rows_of("dense"), tmp_path)
        assert b"Scan" in (tmp_path / "model.onnx").read_bytes()


@pytest.mark.parametrize("loss", ["logistic", "softmax"])
def test_classes(loss, tmp_path):
    rows = rows_of("dense", seed=1)
    with plain():
        model = trained(span("trees", loss), "dense", loss)
        expected = probabilities(model.predict_many(rows))
        exported = OnnxModel(model, tmp_path)
    check_no_rows(exported, rows)
    found = exported.run(rows)
    np.testing.assert_allclose(found["probabilities"], expected, rtol=RELATIVE)
    classes = exported.names["classes"]
    assert classes == (["-1", "1"] if loss == "logistic" else ["0", "1", "2"])
    assert found["label"].tolist() == [classes[k] for k in expected.argmax(axis=1)]


def test_a_table_with_categories_as_texts(shell, tmp_path):
    rng = np.random.default_rng(0)
    cities = ["Ulm", "Bonn", "Åbo", ""]
    lines = [f"{rng.random():.4f},{cities[k % 4]},{k % 4 + rng.random():.3f}" for k in range(200)]
    (tmp_path / "data.csv").write_text("\n".join(["size,city,price", *lines]) + "\n")
    path = tmp_path / "trees.sb"
    options = ("--learner", "trees", "-n", "4", "--quiet")
    shell("train", tmp_path / "data.csv", "-o", path, *options)
    shell("export", path, "--to", "onnx", "-o", tmp_path / "houses.onnx")
    model = load(path)
    exported = OnnxModel(model, tmp_path)
    assert (tmp_path / "houses.onnx").read_bytes() == exported.path.read_bytes()
    assert exported.names == {"numbers": ["size"], "categories": ["city"]}
    given = ["Ulm", "Åbo", "", "Rome"]
    inputs = {
        "numbers": np.full((4, 1), 0.5, np.float32),
        "categories": np.array(given, object)[:, None],
    }
    (found,) = exported.session.run(["prediction"], inputs)
    expected = model.predict_many([{"size": 0.5, "city": city or None} for city in given])
    np.testing.assert_allclose(found, expected, rtol=RELATIVE)


def test_no_training_rows(tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed")
    with plain():
        export(trained(MODELS["replay"](), "dense", "squared"), tmp_path / "model.onnx")
    assert not holds_rows([(tmp_path / "model.onnx").read_bytes()], rows_of("dense"))


def test_models_that_cannot_be_exported(tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed")
    X, y = np.nan_to_num(rows_of("dense")), labels_of("squared")
    cases = (
        (SpanBoost(LinearSGD(bits=3), 2, label_range="auto"), X, "hashed features"),
        (SpanBoost(Trees(**SMALL_TREES), 2, label_range="auto"), Csr(X), "sparse rows to ONNX"),
        (SpanBoost(LinearBall(1e40), 2, label_range=(-1e4, 1e4)), X, "only models of linear"),
    )
    with plain():
        for model, rows, problem in cases:
            model.learn_many(rows, y)
            with pytest.raises(UserError, match=problem):
                export(model, tmp_path / "model.onnx")
    assert not any(tmp_path.iterdir())


def test_onnx_is_an_extra(monkeypatch, tmp_path):
    with plain():
        model = trained(span("linear"), "dense", "squared")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(UserError, match=r"needs the package onnx; run pip install '\.\[onnx\]'"):
        export(model, tmp_path / "model.onnx")


@pytest.mark.parametrize("learner", ["trees", "trees64", "stumps", "ridge"])
def test_rows_that_python_refuses_have_no_prediction(learner, tmp_path):
    X, codes = np.zeros((5, 3)), np.zeros((5, 2), np.int64)
    X[1, 1], X[2, 2], X[4, 0], codes[3, 1] = np.inf, -np.inf, np.nan, 2**40
    with plain():
        model = trained(span(learner, "logistic"), "codes", "logistic")
        exported = OnnxModel(model, tmp_path)
    found = exported.run(Rows(X, codes))
    refused = [False, True, True, True, False]
    np.testing.assert_array_equal(np.isnan(found["prediction"]), refused)
    np.testing.assert_array_equal(np.isnan(found["probabilities"]).all(axis=1), refused)
    assert [label == "" for label in found["label"]] == refused
    for row, refuses in enumerate(refused):
        one = Rows(X[[row]], codes[[row]])
        if refuses:
            with pytest.raises(ValueError, match=r"infinite|too large"):
                model.predict_many(one)
        else:
            np.testing.assert_allclose(found["prediction"][row], model.predict_many(one)[0])


@pytest.mark.parametrize("learner", LEARNERS)
def test_codes_beyond_the_precision_of_float32(learner, tmp_path):
    """The trees of Python read codes modulo 2^24; other learners do not know these codes."""
    rows = rows_of("codes")
    codes = np.where(rows.codes > 0, rows.codes + 2**24 * (1 + rows.codes), rows.codes)
    with plain():
        check(trained(span(learner), "codes", "squared"), Rows(rows.numbers, codes), tmp_path)


def test_tables_that_do_not_fit_into_a_file_are_refused(tmp_path, monkeypatch):
    pytest.importorskip("onnx", reason="onnx is not installed")
    monkeypatch.setattr(onnx_graph, "MOST_BYTES", 10_000)
    with plain():
        model = trained(span("linear"), "codes", "squared")
        export(model, tmp_path / "model.onnx")
        model.learn_many(Rows(np.zeros((1, 3)), np.array([[5000, 0]])), [100.0])
        with pytest.raises(UserError, match="tables of more than 2 GB to ONNX"):
            export(model, tmp_path / "model.onnx")


def test_texts_with_the_character_nul(shell, tmp_path):
    lines = [
        "size,city,label",
        *(f"{k % 7},{'a!b' if k % 2 else 'a'},{'d!e' if k % 2 else 'd'}" for k in range(60)),
    ]
    (tmp_path / "data.csv").write_text("\n".join(lines).replace("!", "\0") + "\n")
    options = ("--learner", "linear", "-n", "2", "--loss", "softmax", "--quiet")
    shell("train", tmp_path / "data.csv", "-o", tmp_path / "model.sb", *options)
    model = load(tmp_path / "model.sb")
    exported = OnnxModel(model, tmp_path)
    given = ["a\0b", "a", "a\0"]
    inputs = {
        "numbers": np.ones((3, 1), np.float32),
        "categories": np.array(given, object)[:, None],
    }
    found, labels = exported.session.run(["prediction", "label"], inputs)
    expected = model.predict_many([{"size": 1.0, "city": city} for city in given])
    np.testing.assert_allclose(found, expected, rtol=RELATIVE)
    assert len(set(found[:, 0])) > 1
    assert labels.tolist() == [model.schema.target.values[k] for k in expected.argmax(axis=1)]
