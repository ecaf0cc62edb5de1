"""Models and training runs in a real MLflow with a local database."""

import sys
import types

import numpy as np
import pandas as pd
import pytest
from predicting import labels_of, rows_of, span, trained
from streams import FLATS, HOUSES, as_csv, put

import spanboost
from spanboost import load, save
from spanboost.analysis.mlflow import (
    PyfuncModel,
    TrainingRun,
    load_model,
    log_model,
    parameters_of,
    save_model,
)
from spanboost.compiling.kernels import plain
from spanboost.errors import UserError

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # of MLflow itself


@pytest.fixture(scope="module")
def tracking(tmp_path_factory):
    """MLflow with an empty database."""
    mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed")
    pytest.importorskip("alembic", reason="databases of MLflow need the package alembic")
    folder = tmp_path_factory.mktemp("mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    mlflow.create_experiment("tests", (folder / "artifacts").as_uri())
    mlflow.set_experiment("tests")
    yield mlflow
    mlflow.set_tracking_uri(None)


@pytest.fixture
def model():
    with plain():
        return trained(span("linear"), "dense", "squared")


def test_the_public_module():
    from spanboost import mlflow as public

    assert spanboost.mlflow.log_model is public.log_model is log_model
    assert "mlflow" in spanboost.__all__


@pytest.mark.parametrize("compact", [False, True])
def test_a_logged_model_is_loaded_as_it_was(tracking, model, compact):
    rows = rows_of("dense", seed=1)
    with tracking.start_run():
        info = log_model(model, compact=compact, metadata={"team": "a"}, input_example=rows[:3])
    again = load_model(info.model_uri)
    with plain():
        expected = model.predict_many(rows)
        np.testing.assert_array_equal(again.predict_many(rows), expected)
        served = tracking.pyfunc.load_model(info.model_uri)
        np.testing.assert_array_equal(served.predict(rows), expected)
        if compact:
            with pytest.raises(UserError, match="cannot learn"):
                again.learn_many(rows, labels_of("squared"))
        else:
            again.learn_many(rows, labels_of("squared"))
    assert info.metadata == {"team": "a"}
    assert info.signature is not None
    assert info.flavors["spanboost"]["compact"] is compact


def test_registered_versions(tracking, model):
    with tracking.start_run():
        log_model(model, registered_model_name="numbers")
        log_model(model, registered_model_name="numbers")
    again = load_model("models:/numbers/2")
    assert again.parameters() == model.parameters()


def test_folders(tracking, model, tmp_path):
    save_model(model, tmp_path / "saved", pip_requirements=["spanboost"])
    assert sorted(path.name for path in (tmp_path / "saved").iterdir()) == [
        "MLmodel",
        "model.sb",
        "python_env.yaml",
        "requirements.txt",
    ]
    assert (tmp_path / "saved" / "requirements.txt").read_text() == "spanboost\n"
    assert load_model(str(tmp_path / "saved")).parameters() == model.parameters()
    with pytest.raises(UserError, match="exists and is not empty"):
        save_model(model, tmp_path / "saved")


def test_models_of_other_flavours_are_refused(tracking, tmp_path):
    tracking.models.Model().save(str(tmp_path / "MLmodel"))
    with pytest.raises(UserError, match="is not a model of spanboost"):
        load_model(str(tmp_path))


def test_classes_are_frames_with_probabilities(tracking, shell, tmp_path):
    rows = [row | {"label": "large" if row["size"] > 100 else "small"} for row in HOUSES]
    path = put(tmp_path, "sizes.csv", as_csv(rows))
    options = ("--loss", "logistic", "--learner", "linear", "-n", "4", "--quiet")
    shell("train", path, "-o", tmp_path / "sizes.sb", *options)
    with tracking.start_run():
        info = log_model(load(tmp_path / "sizes.sb"))
    frame = pytest.importorskip("pandas").DataFrame(rows).drop(columns="label")
    found = tracking.pyfunc.load_model(info.model_uri).predict(frame)
    assert {"prediction", "p_large", "p_small"} == {*found.columns}
    assert set(found["prediction"]) == {"large", "small"}


def test_probabilities_without_names(tracking, tmp_path):
    with plain():
        model = trained(span("linear", "softmax"), "dense", "softmax")
        save_model(model, tmp_path / "saved")
        found = tracking.pyfunc.load_model(str(tmp_path / "saved")).predict(rows_of("dense"))
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_estimators(tracking):
    from spanboost.sklearn import BoostingRegressor

    X, y = np.nan_to_num(rows_of("dense")), labels_of("squared")
    model = BoostingRegressor(learner="linear", n_estimators=4).fit(X, y)
    with tracking.start_run():
        info = log_model(model)
    served = tracking.pyfunc.load_model(info.model_uri)
    np.testing.assert_array_equal(served.predict(X), model.predict(X))


def test_estimators_return_what_they_predict():
    from spanboost import river, sklearn

    X = np.nan_to_num(rows_of("dense"))
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    y = np.array(["no", "yes"])[np.arange(len(X)) % 2]
    classifier = sklearn.BoostingClassifier(learner="linear", n_estimators=2).fit(X, y)
    assert {*PyfuncModel(classifier).predict(X)} <= {"no", "yes"}
    stream = river.BoostingClassifier("linear", n_models=2)
    stream.learn_many(frame, pd.Series(y))
    assert {*PyfuncModel(stream).predict(frame)} <= {"no", "yes"}


@pytest.fixture
def houses(shell, tmp_path):
    """A model of a file with numbers and categories, for classes or for numbers."""

    def train(*options):
        rows = [row | {"label": "large" if row["size"] > 100 else "small"} for row in HOUSES]
        label = {} if options else {"label": 1.0}
        path = put(tmp_path, "houses.csv", as_csv([row | label for row in rows]))
        model = tmp_path / "houses.sb"
        shell("train", path, "-o", model, "--learner", "linear", "-n", "4", "--quiet", *options)
        return PyfuncModel(load(model)), pd.DataFrame(rows).drop(columns="label")

    return train


def test_a_frame_without_a_column_is_refused(houses):
    served, frame = houses()
    name = frame.columns[0]
    for rows in (frame, frame[:0]):
        with pytest.raises(UserError, match=f"column '{name}' not found in the frame; the model"):
            served.predict(rows.drop(columns=name))
    with pytest.raises(UserError, match=f"not found in the frame; did you mean '{name}_'"):
        served.predict(frame.rename(columns={name: f"{name}_"}))
    rows = [{key: row[key] for key in row if key != name} for row in frame.to_dict("records")]
    empty = served.predict(frame.assign(**{name: None}))
    np.testing.assert_array_equal(served.predict(rows), empty)


@pytest.mark.parametrize("options", [(), ("--loss", "logistic"), ("--loss", "softmax")])
def test_frames_without_rows(houses, options):
    served, frame = houses(*options)
    none, one = served.predict(frame[:0]), served.predict(frame[:1])
    assert len(none) == 0
    assert none.shape[1:] == one.shape[1:]
    if options:
        assert [*none.columns] == [*one.columns]
        assert (none.dtypes == one.dtypes).all()


def test_estimators_have_no_predictions_for_no_rows():
    from spanboost import river, sklearn

    X, y = np.nan_to_num(rows_of("dense")), labels_of("squared")
    classes = np.where(y > 100, "large", "small")
    frame = pd.DataFrame(X, columns=[*"abcd"])
    linear = {"learner": "linear", "n_estimators": 2}
    stream = river.BoostingRegressor("linear", n_models=2)
    with plain():
        stream.learn_many(frame, pd.Series(y))
        fitted = [
            (sklearn.BoostingRegressor(**linear).fit(X, y), X),
            (sklearn.BoostingRegressor(**linear).fit(X, np.column_stack([y, -y])), X),
            (sklearn.BoostingClassifier(**linear).fit(X, classes), X),
            (stream, frame),
        ]
        for estimator, rows in fitted:
            none, one = (PyfuncModel(estimator).predict(rows[:k]) for k in (0, 1))
            assert len(none) == 0
            assert (none.shape[1:], none.dtype) == (one.shape[1:], one.dtype)


def history(tracking, run, name):
    found = tracking.MlflowClient().get_metric_history(run.info.run_id, name)
    return {one.step: one.value for one in found}


def test_progressive_losses_of_a_run(tracking):
    X, y = rows_of("dense", T=50), labels_of("squared", T=50)
    with plain():
        model = span("linear")
        squares = []
        with TrainingRun(model) as run:
            active = tracking.active_run()
            for t in range(0, 50, 5):
                predictions = model.learn_many(X[t : t + 5], y[t : t + 5])
                run.add(y[t : t + 5], predictions)
                squares += [*(predictions - y[t : t + 5]) ** 2]
            log_model(model)
    finished = tracking.get_run(active.info.run_id)
    assert finished.info.status == "FINISHED"
    assert finished.data.params == parameters_of(model)
    assert finished.data.params["model"] == "SpanBoost"
    losses, recent = (history(tracking, active, name) for name in ("loss", "recent_loss"))
    assert losses.keys() == recent.keys() == {*range(5, 51, 5)}
    assert losses[50] == pytest.approx(np.mean(squares))
    assert recent[20] == pytest.approx(np.mean(squares[15:20]))


def test_a_huge_loss_does_not_change_later_entries(tracking):
    with TrainingRun(span("linear")) as run:
        active = tracking.active_run()
        for loss in (2.0, 1e300, 3.0):
            run.add_losses(np.full(10, loss))
    recent = history(tracking, active, "recent_loss")
    assert recent == pytest.approx({10: 2.0, 20: 1e300, 30: 3.0})


def test_entries_become_rare(tracking):
    model = span("linear")
    with TrainingRun(model) as run:
        active = tracking.active_run()
        for _ in range(1000):
            run.add_losses(np.ones(1), np.full(1, 2.0))
    losses = history(tracking, active, "loss")
    assert 40 < len(losses) < 60
    assert max(losses) == 1000
    assert set(losses.values()) == {1.0}


def fail(model):
    with TrainingRun(model):
        raise RuntimeError("no more rows")


def test_a_run_that_fails(tracking, model):
    with pytest.raises(RuntimeError):
        fail(model)
    last = tracking.last_active_run()
    assert last.info.status == "FAILED"


def test_train_logs_parameters_losses_and_the_model(tracking, shell, tmp_path):
    path = put(tmp_path, "flats.csv", as_csv(FLATS))
    small, full = tmp_path / "small.sb", tmp_path / "full.sb"
    options = ("--learner", "linear", "-n", "4", "--label", "label", "--quiet")
    shell("train", path, "-o", full, *options)
    shell("train", path, "-o", small, *options, "--compact", "--mlflow", "tests")
    run = tracking.last_active_run()
    assert run.data.params["n"] == "4"
    metrics = run.data.metrics
    assert metrics["examples"] == 200
    assert metrics["loss"] == pytest.approx(
        metrics["loss_first_half"] / 2 + metrics["loss_second_half"] / 2
    )
    assert max(history(tracking, run, "loss")) == 200
    (logged,) = tracking.search_logged_models(
        filter_string=f"source_run_id='{run.info.run_id}'", output_format="list"
    )
    again = load_model(logged.model_uri)
    save(again, tmp_path / "again.sb")
    assert (tmp_path / "again.sb").read_bytes() == small.read_bytes()
    assert small.stat().st_size < full.stat().st_size


def test_mlflow_is_an_extra(monkeypatch, model, shell, data, tmp_path):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(
        UserError, match=r"needs the package mlflow; run pip install '\.\[mlflow\]'"
    ):
        save_model(model, tmp_path / "saved")
    refused = shell("train", data, "-o", tmp_path / "m.sb", "--mlflow", "--quiet", status=2)
    assert "needs the package mlflow" in refused.err
    assert not any(tmp_path.glob("*.sb"))


class FailingMlflow(types.ModuleType):
    """MLflow as far as a run needs it, with a server that fails."""

    def __init__(self, monkeypatch, failure):
        super().__init__("mlflow")
        self.__path__ = []
        self.exceptions = types.ModuleType("mlflow.exceptions")
        self.exceptions.MlflowException = FailedError
        self.failure = failure
        monkeypatch.setitem(sys.modules, "mlflow", self)
        for part in ("models", "pyfunc"):
            monkeypatch.setitem(sys.modules, f"mlflow.{part}", types.ModuleType(f"mlflow.{part}"))

    def get_tracking_uri(self):
        return "http://me:s3cret@127.0.0.1:9"

    def set_experiment(self, name):
        raise self.failure


class FailedError(Exception):
    """What MLflow raises."""


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (
            FailedError(
                "API request to http://x/api failed with exception HTTPConnectionPool(host='x', "
                "port=9): Max retries exceeded with url: /api (Caused by NewConnectionError("
                "\"HTTPConnection(host='x', port=9): Failed to establish a new connection: "
                '[Errno 111] Connection refused"))'
            ),
            "Failed to establish a new connection: [Errno 111] Connection refused",
        ),
        (FailedError("PERMISSION_DENIED: no right to write\nsecond line"), "PERMISSION_DENIED: no"),
        (PermissionError(13, "Permission denied"), "Permission denied"),
        (ModuleNotFoundError("No module named 'alembic'"), "No module named 'alembic'"),
    ],
)
def test_errors_of_mlflow_are_sentences(monkeypatch, shell, data, tmp_path, failure, message):
    FailingMlflow(monkeypatch, failure)
    words = ("train", data, "-o", tmp_path / "m.sb", "--mlflow", "prices", "--quiet")
    (line,) = shell(*words, "--learner", "linear", status=2).err.splitlines()
    assert line.startswith("spanboost: MLflow at http://***@127.0.0.1:9: ")
    assert message in line
