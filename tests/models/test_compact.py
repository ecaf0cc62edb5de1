"""Compact models predict the same bits as the full ones, cannot learn and contain no rows."""

import pickle

import numpy as np
import pytest
from forged import changed
from hypothesis import given, settings
from hypothesis import strategies as st
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

from spanboost import (
    AutoBoost,
    Calibrated,
    Intervals,
    ModelFileError,
    PredictionSets,
    SpanBoost,
    Trees,
    explain,
    load,
    save,
)
from spanboost.compiling.kernels import plain
from spanboost.errors import UserError
from spanboost.models import files
from spanboost.models.compact import compact_model, is_compact

REFUSED = "a compact model predicts but cannot learn"


def check_compact(model, rows, path):
    """Check a compact file of a model on some rows, and return the loaded model."""
    save(model, path, compact=True)
    small = load(path)
    assert type(small) is type(model)
    assert is_compact(small)
    assert not is_compact(model)
    expected = model.predict_many(rows)
    np.testing.assert_array_equal(small.predict_many(rows), expected)
    np.testing.assert_array_equal(compact_model(model).predict_many(rows), expected)
    for again in (small, compact_model(small), pickle.loads(pickle.dumps(small))):
        save(again, path.with_suffix(".again"))
        assert path.with_suffix(".again").read_bytes() == path.read_bytes()
    return small


def refuses_to_learn(small, rows, labels):
    for learn in (small.learn_many, small.learn_again, small.check):
        with pytest.raises(UserError, match=REFUSED):
            learn(rows, labels)
    if isinstance(rows, np.ndarray):
        with pytest.raises(UserError, match=REFUSED):
            small.learn_one(rows[0], 1.0)


@pytest.mark.parametrize("case", MODELS)
def test_the_same_bits_and_no_learning(case, tmp_path):
    rows = rows_of("dense", seed=1)
    with plain():
        model = trained(MODELS[case](), "dense", "squared")
        small = check_compact(model, rows, tmp_path / "small.sb")
        refuses_to_learn(small, rows, labels_of("squared"))
        np.testing.assert_array_equal(small.predict_many(rows), model.predict_many(rows))
        assert small.parameters() == model.parameters()
        assert small.labels.rows == model.labels.rows
        assert small.health.labels == model.health.labels
        assert small.weights_ == model.weights_


@pytest.mark.slow
@pytest.mark.parametrize("case", COMPILED)
def test_ensembles_predict_the_same_bits(case, tmp_path):
    loss = LOSS_OF.get(case, "squared")
    model = trained(COMPILED[case](), "codes", loss, T=400)
    rows = rows_of("codes", seed=1)
    small = check_compact(model, rows, tmp_path / "small.sb")
    refuses_to_learn(small, rows, labels_of(loss))
    if case == "intervals":
        each = [one.predict_interval(rows) for one in (small, model)]
        np.testing.assert_array_equal(*each)
    if case == "sets":
        np.testing.assert_array_equal(small.predict_set(rows), model.predict_set(rows))


@settings(max_examples=25)
@given(
    learner=st.sampled_from(sorted(LEARNERS)),
    loss=st.sampled_from(LOSSES),
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 1000),
)
def test_random_models_predict_the_same_bits(tmp_path_factory, learner, loss, kind, seed):
    path = tmp_path_factory.mktemp("random") / "small.sb"
    with plain():
        model = trained(span(learner, loss), kind, loss, T=40, seed=seed)
        check_compact(model, rows_of(kind, seed=seed + 1), path)


def everything_in(path):
    """Return all arrays and the header of a file as bytes."""
    header, arrays = files.read(path)
    return [repr(header).encode(), *(array.tobytes() for array in arrays.values())]


def holds_rows(parts, rows):
    """Return whether three values that follow each other in a row do so in a file.

    Two may: the largest values of two columns can be in the same row.
    """
    runs = [row[k : k + 3] for row in rows for k in range(2)]
    runs = [run for run in runs if np.isfinite(run).all() and run.all()]
    forms = [run.astype(dtype).tobytes() for run in runs for dtype in (np.float32, np.float64)]
    return any(form in part for form in forms for part in parts)


@pytest.mark.parametrize("case", ["replay", "online choice", "committee", "ridge"])
def test_no_training_rows(case, tmp_path):
    rows = rows_of("dense")
    with plain():
        model = trained(MODELS[case](), "dense", "squared")
        save(model, tmp_path / "full.sb")
        save(model, tmp_path / "small.sb", compact=True)
    assert holds_rows(everything_in(tmp_path / "full.sb"), rows)
    assert not holds_rows(everything_in(tmp_path / "small.sb"), rows)
    names = files.read(tmp_path / "small.sb")[1]
    assert not [name for name in names if "memory" in name or "sample" in name]
    assert not [name for name in names if "candidates" in name or ".G" in name]


def test_the_first_labels_of_a_mean_are_not_kept(tmp_path):
    with plain():
        model = trained(span("trees", "poisson"), "dense", "poisson")
        save(model, tmp_path / "small.sb", compact=True)
    assert "first" not in files.read(tmp_path / "small.sb")[0]["labels"]


def test_the_largest_labels_are_not_kept(tmp_path):
    """Predictions do not depend on them; files of earlier versions contain them."""
    rows, labels = rows_of("dense"), labels_of("squared")
    labels[[7, 8]] = [labels.min() - 1.2345, labels.max() + 1.2345]
    with plain():
        model = span("linear")
        model.learn_many(rows, labels)
        small = compact_model(model)
        save(small, tmp_path / "small.sb")
        assert model.label_ends == (labels.min(), labels.max())
        assert small.label_ends is None
        written = (tmp_path / "small.sb").read_bytes()
        assert not any(repr(float(end)).encode() in written for end in model.label_ends)
        small.labels.restore(small.labels.to_json() | {"ends": [*model.label_ends]})
        save(small, tmp_path / "again.sb")
    assert (tmp_path / "again.sb").read_bytes() == written


def test_a_model_without_rows_is_refused(tmp_path):
    with pytest.raises(UserError, match="has not learned any rows"):
        save(span("trees"), tmp_path / "small.sb", compact=True)
    assert not (tmp_path / "small.sb").exists()


@pytest.mark.parametrize("stage", ["past", "recent"])
@pytest.mark.parametrize("wrapper", [Intervals, PredictionSets, Calibrated])
def test_calibration_with_corrections_is_refused(wrapper, stage, tmp_path):
    """A compact model has no such stage, so it predicts something else than was calibrated."""
    loss = "squared" if wrapper is Intervals else "logistic"
    model = wrapper(AutoBoost(loss, budget="fast", **{stage: True}))
    message = f"{wrapper.__name__} was calibrated with recent rows or past labels, which a compact"
    with pytest.raises(UserError, match=message):
        save(model, tmp_path / "small.sb", compact=True)
    with pytest.raises(UserError, match="has not learned any rows"):
        save(wrapper(AutoBoost(loss, budget="fast")), tmp_path / "small.sb", compact=True)


@pytest.mark.parametrize("options", [("--recent", "on"), ("--past", "on")])
def test_the_command_refuses_calibration_with_corrections(options, shell, data, tmp_path):
    """It refuses before it trains."""
    words = ("train", data, "-o", tmp_path / "small.sb", "--compact", "--intervals", *options)
    result = shell(*words, status=2)
    assert "train it without --recent, --past and --key" in result.err
    assert not (tmp_path / "small.sb").exists()


def test_learners_that_are_code_are_refused(tmp_path):
    class Own:
        def predict_one(self, x):
            return 0.0

        def learn_one(self, x, y):
            return self

    model = SpanBoost(Own(), 2)
    model.learn_many([[1.0], [2.0]], [0.0, 1.0])
    with pytest.raises(ValueError, match="is code, not data"):
        save(model, tmp_path / "small.sb", compact=True)


def more_places(arrays):
    arrays["bank.nodes.place"][:] = 1000
    return arrays


def fewer_leaves(arrays):
    arrays["bank.nodes.value"] = arrays["bank.nodes.value"][1:]
    return arrays


def no_leaf(arrays):
    arrays["bank.nodes.inner"][-1] = 1
    return arrays


def wrong_type(arrays):
    arrays["bank.nodes.place"] = arrays["bank.nodes.place"].astype(np.int64)
    return arrays


def loops(arrays):
    inner = arrays["bank.nodes.inner"]
    inner[...] = np.sort(inner)  # the roots are leaves, so their children have no parents
    return arrays


@pytest.mark.parametrize("edit", [more_places, fewer_leaves, no_leaf, wrong_type, loops])
def test_forged_trees_are_refused(edit, tmp_path):
    path = tmp_path / "small.sb"
    with plain():
        model = trained(SpanBoost(Trees(**SMALL_TREES), 3, label_range="auto"), "dense", "squared")
        save(model, path, compact=True)
    changed(path, tensors=edit)
    with pytest.raises(ModelFileError):
        load(path)


def more_columns(arrays):
    arrays["bank.columns.used"][:] = 1000
    return arrays


def fewer_columns(arrays):
    arrays["bank.columns.used"][:] = 1
    return arrays


@pytest.mark.parametrize("edit", [more_columns, fewer_columns])
def test_forged_regressions_are_refused(edit, tmp_path):
    path = tmp_path / "small.sb"
    with plain():
        save(trained(span("ridge"), "dense", "squared"), path, compact=True)
    changed(path, tensors=edit)
    with pytest.raises(ModelFileError, match="do not match its number of columns"):
        load(path)


def test_a_regression_takes_the_columns_in_use_only(tmp_path):
    with plain():
        model = trained(span("ridge"), "codes", "squared")
        save(model, tmp_path / "small.sb", compact=True)
    used = int(model.core.state.bank.columns.used[0])
    _, arrays = files.read(tmp_path / "small.sb")
    assert arrays["bank.fits.R"].shape == (1, used * (used + 1) // 2)


def test_explanations_of_trees_are_refused():
    with plain():
        small = compact_model(trained(span("trees"), "dense", "squared"))
        with pytest.raises(ValueError, match="cannot explain a compact model of trees"):
            explain(small, [1.0, 2.0, 3.0, 4.0])


def test_estimators(tmp_path):
    from spanboost.sklearn import BoostingRegressor

    X, y = np.nan_to_num(rows_of("dense")), labels_of("squared")
    model = BoostingRegressor(learner="linear", n_estimators=4).fit(X, y)
    save(model, tmp_path / "small.sb", compact=True)
    small = load(tmp_path / "small.sb")
    np.testing.assert_array_equal(small.predict(X), model.predict(X))
    with pytest.raises(UserError, match=REFUSED):
        small.partial_fit(X, y)


def test_commands(shell, data, model, tmp_path):
    small = tmp_path / "small.sb"
    printed = shell("export", model, "--to", "compact", "-o", small)
    assert printed.out == f"wrote {small}: {small.stat().st_size:,} bytes, for prediction only\n"
    expected = shell("predict", data, "-m", model).out
    assert shell("predict", data, "-m", small).out == expected
    assert "200" in shell("inspect", small).out
    at_once = tmp_path / "at-once.sb"
    arguments = ("train", data, "-o", at_once, "--learner", "linear", "-n", "4", "--quiet")
    shell(*arguments, "--compact")
    assert at_once.read_bytes() == small.read_bytes()
    shell(*arguments, "--compact", "--resume")
    assert "different run" in shell(*arguments, "--resume", status=2).err
    for refused in (
        ("train", data, "-i", small, "-o", tmp_path / "more.sb"),
        ("serve", "-m", small, "--dir", tmp_path / "state"),
    ):
        assert "a compact model cannot learn" in shell(*refused, status=2).err
    same = shell("export", model, "--to", "compact", "-o", model, status=2)
    assert "the command also reads this file" in same.err
