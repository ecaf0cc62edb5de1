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

from spanboost import LinearBall, LinearSGD, SpanBoost, Trees, export, load
from spanboost.compiling.kernels import plain
from spanboost.errors import UserError
from spanboost.models.exporting import onnx_model
from spanboost.models.predictions import probabilities

RELATIVE = 1e-5


def known(kind, seed=0, T=60):
    """Return rows whose features are all known: ONNX has no inputs for unknown ones."""
    return rows_of(kind, T, seed if kind == "names" else seed + 1)


def check(model, rows, folder):
    expected = model.predict_many(rows)
    found = OnnxModel(model, folder).predict_many(rows)
    assert found.shape == expected.shape
    # relative to the width of the labels, where predictions are close to 0
    np.testing.assert_allclose(found, expected, rtol=RELATIVE, atol=1e-6 * model.labels.half)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", MODELS)
def test_every_model_on_every_kind_of_rows(case, kind, tmp_path):
    if case == "committee" and kind != "dense":
        pytest.skip("the members have learned dense rows")
    with plain():
        model = trained(MODELS[case](), kind, "squared")
        check(model, known(kind), tmp_path)


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
        check(model, known(kind, seed, T=40), tmp_path_factory.mktemp("random"))


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
