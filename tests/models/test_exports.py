"""Which models can be exported, and what their exports leave out."""

import numpy as np
import pandas as pd
import pytest
from predicting import labels_of, rows_of, span, trained

from spanboost import AutoBoost, Intervals, PredictionSets, export, load, river, save, sklearn
from spanboost.compiling.kernels import plain
from spanboost.errors import UserError

ROWS, LABELS = rows_of("dense"), labels_of("squared")
CORRECTIONS = "recent rows and past labels are not exported: the export predicts with the experts"


@pytest.mark.parametrize("stage", ["recent", "past"])
def test_a_warning_names_the_corrections_that_are_missing(stage, tmp_path):
    with plain():
        model = AutoBoost(budget="fast", **{stage: True})
        model.learn_many(ROWS[:9], LABELS[:9])
        with pytest.warns(UserWarning, match=CORRECTIONS):
            export(model, tmp_path / "model.c")
        with pytest.warns(UserWarning, match=CORRECTIONS):
            save(model, tmp_path / "small.sb", compact=True)
        export(model.without_corrections(), tmp_path / "same.c")
        expected = model.without_corrections().predict_many(ROWS)
        found = load(tmp_path / "small.sb").predict_many(ROWS)
    np.testing.assert_array_equal(found, expected)
    source, same = ((tmp_path / f"{name}.c").read_text() for name in ("model", "same"))
    assert source.partition("*/")[2] == same.partition("*/")[2]


@pytest.mark.parametrize(
    ("wrapper", "loss", "left_out"),
    [(Intervals, "squared", "intervals"), (PredictionSets, "logistic", "prediction sets")],
)
def test_a_warning_names_intervals_and_sets(wrapper, loss, left_out, tmp_path):
    with plain():
        model = wrapper(span("linear", loss))
        model.learn_many(ROWS, labels_of(loss))
        with pytest.warns(UserWarning, match=f"^{left_out} are not exported, only predictions"):
            export(model, tmp_path / "model.c")


def test_an_export_without_a_difference_has_no_warning(tmp_path):
    with plain():
        export(trained(AutoBoost(budget="fast"), "dense", "squared", T=9), tmp_path / "model.c")


@pytest.mark.parametrize("loss", ["logistic", "softmax"])
def test_a_single_class_is_refused(loss, shell, tmp_path):
    """Its table of predictions has one class, and an export would have two."""
    (tmp_path / "data.csv").write_text("a,label\n" + "1,only\n" * 30)
    options = ("--learner", "linear", "-n", "1", "--loss", loss, "--quiet")
    shell("train", tmp_path / "data.csv", "-o", tmp_path / "model.sb", *options)
    with pytest.raises(UserError, match="has seen fewer than two classes"):
        export(load(tmp_path / "model.sb"), tmp_path / "model.c")


def test_a_model_that_has_not_learned_is_refused(tmp_path):
    with pytest.raises(UserError, match="the model has not learned any rows yet; train it before"):
        export(AutoBoost(), tmp_path / "model.c")


def test_estimators_are_exported_as_their_models(tmp_path):
    names = np.array(["b", "c", "a"])[np.arange(len(ROWS)) % 3]
    parameters = {"learner": "linear", "n_estimators": 2}
    with plain():
        numbers = sklearn.BoostingRegressor(**parameters).fit(ROWS, LABELS)
        classes = sklearn.BoostingClassifier(**parameters).partial_fit(ROWS, names)
        emerging = river.BoostingClassifier("linear", n_models=2)
        for row, name in zip(ROWS, names, strict=True):
            emerging.learn_one({"x": row[0]}, name)
        for k, one in enumerate((numbers, numbers.model_, classes, emerging)):
            export(one, tmp_path / f"{k}.c")
    sources = [(tmp_path / f"{k}.c").read_text() for k in range(4)]
    assert sources[0] == sources[1]
    for source in sources[2:]:
        assert 'model_classes[3] = {"b", "c", "a"}' in source


def test_names_of_an_estimator_with_numbers_only(tmp_path):
    """Its model knows only the numbers of the columns."""
    frame = pd.DataFrame(np.nan_to_num(ROWS), columns=["size", "rooms", "year", "floor"])
    with plain():
        estimator = sklearn.BoostingRegressor(learner="linear", n_estimators=2).fit(frame, LABELS)
        export(estimator, tmp_path / "model.c")
    source = (tmp_path / "model.c").read_text()
    assert all(f'numbers[{j}]: "{name}"' in source for j, name in enumerate(frame))


def test_estimators_without_one_model_or_two_classes_are_refused(tmp_path):
    with plain():
        several = river.BoostingMultiTargetRegressor("linear", n_models=2)
        several.learn_one({"x": 1.0}, {"a": 1.0, "b": 2.0})
        with pytest.raises(UserError, match="cannot export an estimator with 2 targets"):
            export(several, tmp_path / "model.c")
        single = river.BoostingClassifier("linear", n_models=2)
        single.learn_one({"x": 1.0}, "only")
        with pytest.raises(UserError, match="has seen fewer than two classes"):
            export(single, tmp_path / "model.c")
