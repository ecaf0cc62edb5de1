"""The metrics of the service: in the snapshot, in /metrics and on the dashboard."""

import json
import random
from itertools import pairwise

import numpy as np
import pytest
from forged import changed
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as exact
from state_folders import commit_and_learn, new_model

from spanboost import Metrics
from spanboost.data.target import BinaryTarget
from spanboost.losses import Logistic, Softmax, Squared
from spanboost.models.model_spec import ModelSpec
from spanboost.service.http.metrics import RequestCounters, collect_metrics, prometheus_text
from spanboost.service.http.model_metrics import confusion_series
from spanboost.service.http.startup import StartProgress
from spanboost.service.learning.engine import Engine
from spanboost.service.limits import RequestLimits
from spanboost.service.storage.running_metrics import WINDOW, RunningMetrics
from spanboost.service.storage.state import State

SPEC = ModelSpec(learner="linear", n=2, loss=Logistic(), label_range=(-1, 1))
STRANGE = 'no "\\'  # a label with characters that Prometheus must escape
ROWS = 1300


def outcomes(loss, rows=ROWS):
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 4, rows) / 3
    if isinstance(loss, Softmax):
        return rng.integers(0, loss.d, rows), weights, rng.normal(size=(rows, loss.d))
    y = rng.choice([-1.0, 1.0], rows)
    return y, weights, y + rng.normal(0, 2, rows)


@pytest.mark.parametrize("loss", [Squared(), Logistic(), Softmax(3)])
@given(st.lists(st.integers(0, ROWS), max_size=6), st.booleans())
@settings(max_examples=10, deadline=None)
def test_requests_and_restarts_do_not_change_the_metrics(loss, cuts, restart):
    whole, parts = RunningMetrics(loss), RunningMetrics(loss)
    given_rows = outcomes(loss)
    whole.add(*given_rows)
    ends = [0, *sorted({*cuts, ROWS} - {0})]
    for first, last in pairwise(ends):
        if restart:
            parts = RunningMetrics(loss, json.loads(json.dumps(parts.state(), allow_nan=False)))
        parts.add(*(one[first:last] for one in given_rows))
    assert parts.state() == whole.state()


@pytest.mark.parametrize("loss", [Squared(), Logistic(), Softmax(3)])
@pytest.mark.parametrize("rows", [30, WINDOW - 1, WINDOW, WINDOW + 1, ROWS])
def test_all_and_recent_rows(loss, rows):
    y, weights, predictions = outcomes(loss, rows)
    found = RunningMetrics(loss)
    found.add(y, weights, predictions)
    recent = rows if rows < WINDOW else WINDOW + rows % WINDOW
    for metrics, last in ((found.all_rows(), rows), (found.recent_rows(), recent)):
        expected = Metrics(loss)
        expected.add(y[-last:], predictions[-last:], weights[-last:])
        assert metrics.rows == last
        assert metrics.results() == pytest.approx(expected.results(), rel=1e-9)


def test_the_size_of_the_state_is_bounded():
    found, sizes = RunningMetrics(Logistic()), []
    y, weights, predictions = outcomes(Logistic(), 10 * WINDOW - 1)
    for _ in range(4):
        found.add(y, weights, 10 * predictions)
        sizes.append(len(json.dumps(found.state())))
    assert sizes[-1] < 1.5 * sizes[1]
    assert max(sizes) < 400_000


def test_infinite_errors_can_be_saved():
    found = RunningMetrics(Squared())
    found.add(np.array([1e300, 1.0]), np.ones(2), np.array([-1e300, 0.0]))
    again = RunningMetrics(Squared(), json.loads(json.dumps(found.state(), allow_nan=False)))
    assert again.state() == found.state()
    assert again.all_rows().results()["rmse"] is None


def labelled_rows(n=700):
    rng = random.Random(0)
    rows = [{"size": rng.random(), "city": rng.choice("abc")} for _ in range(n)]
    labels = ["yes" if row["size"] + rng.gauss(0, 0.3) > 0.5 else STRANGE for row in rows]
    return rows, labels


DATA = labelled_rows()


def open_folder(folder):
    return State(folder, lambda: new_model(SPEC, BinaryTarget()))


def test_a_restart_keeps_the_metrics(tmp_path):
    state = open_folder(tmp_path / "state")
    commit_and_learn(state, 0, 300, DATA)
    state.save()
    commit_and_learn(state, 300, 700, DATA)
    expected = state.metrics.state()
    state.close()
    state = open_folder(tmp_path / "state")  # from the snapshot and the journal
    assert state.metrics.state() == expected
    state.save()
    state.close()
    state = open_folder(tmp_path / "state")  # from the snapshot alone
    assert state.metrics.state() == expected
    state.close()


def test_a_snapshot_of_an_earlier_version_starts_the_metrics_anew(tmp_path):
    state = open_folder(tmp_path / "state")
    commit_and_learn(state, 0, 300, DATA)
    state.save()
    state.close()
    changed(state.snapshot_path, lambda header: header["run"].pop("metrics"))
    state = open_folder(tmp_path / "state")
    commit_and_learn(state, 300, 700, DATA)
    assert (state.progress.rows, state.metrics.all_rows().rows) == (700, 400)
    state.close()


def test_prometheus_and_the_dashboard_have_the_metrics(tmp_path):
    state = open_folder(tmp_path / "state")
    for first in range(0, 700, 50):
        commit_and_learn(state, first, first + 50, DATA)
    engine = Engine(state, RequestLimits())
    shown = collect_metrics(engine, RequestCounters())["metrics"]
    json.dumps(shown, allow_nan=False)
    assert (shown["rows"], shown["recent_rows"]) == (700, 700)
    values = {one["name"]: (one["all"], one["recent"]) for one in shown["values"]}
    assert set(values) == {"accuracy", "log_loss", "roc_auc", "f1", "kappa", "calibration_error"}
    text = prometheus_text(engine, RequestCounters(), StartProgress(), True)
    for name, (every, recent) in values.items():
        assert f'spanboost_{name}{{rows="all"}} {every!r}\n' in text
        assert f'spanboost_{name}{{rows="recent"}} {recent!r}\n' in text
        assert f"# TYPE spanboost_{name} gauge" in text
    counts = np.array(shown["confusion"])
    assert counts.sum() == 700
    assert values["accuracy"][0] == pytest.approx(np.trace(counts) / 700)
    assert values["log_loss"][0] == pytest.approx(state.progress.loss)
    assert 'spanboost_confusion{label="no \\"\\\\",prediction="yes"} ' in text
    engine.close()


def test_confusion_counts_by_label_and_prediction():
    assert confusion_series([[1.0, 2.0], [3.0, 4.0]], ["a", 'b"']) == {
        'label="a",prediction="a"': 1.0,
        'label="a",prediction="b\\""': 2.0,
        'label="b\\"",prediction="a"': 3.0,
        'label="b\\"",prediction="b\\""': 4.0,
    }


def test_the_accuracy_is_that_of_scikit_learn():
    y, weights, scores = outcomes(Logistic())
    found = RunningMetrics(Logistic())
    found.add(y, weights, scores)
    results = found.all_rows().results()
    predicted = np.where(scores > 0, 1, -1)
    expected = exact.accuracy_score(y, predicted, sample_weight=weights)
    assert results["accuracy"] == pytest.approx(expected)
    area = exact.roc_auc_score(y, scores, sample_weight=weights)
    assert abs(results["roc_auc"] - area) <= results["roc_auc_error"]
