"""Past labels in the service: a row is learned with what was known when it was predicted."""

import shutil

import numpy as np
import pytest
from serving import wait_until
from state_folders import new_model

from spanboost.errors import UserError
from spanboost.models.files import to_bytes
from spanboost.models.model_spec import ModelSpec
from spanboost.service.learning.engine import Engine
from spanboost.service.learning.jobs import LearnJob, PredictJob, ShipmentJob
from spanboost.service.learning.replica import Replica
from spanboost.service.limits import RequestLimits, StateLimits
from spanboost.service.request_rows import Example, collect_examples
from spanboost.service.storage.challenger import BY_HAND, challenge_with
from spanboost.service.storage.entry import Entry, decode_entry
from spanboost.service.storage.pending_erase import erase_pending
from spanboost.service.storage.pending_rows import PendingRows
from spanboost.service.storage.replica import ReplicaState
from spanboost.service.storage.row_past import RowPast, collect_past
from spanboost.service.storage.state import State

SPEC = ModelSpec(budget="fast", past="on")
KEYED = SPEC.replace(key="shop")
WAIT = 600  # seconds, because the first row may compile


def late_model(spec):
    return lambda: new_model(spec)


def random_walk(rows, seed=0):
    """Return rows, and labels that only their past predicts."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, rows).tolist()
    shops = rng.integers(0, 3, rows).tolist()
    features = [{"x": x, "shop": f"s{shop}"} for x, shop in zip(X, shops, strict=True)]
    return features, np.cumsum(rng.normal(size=rows)).tolist()


def predict(engine, row, id, keep=True):
    job = PredictJob([row], [id], keep)
    engine.predictor.submit(job)
    return job.result(WAIT).columns["prediction"][0]


def learn(engine, *examples):
    job = LearnJob(collect_examples(dict(enumerate(examples))), False, wait=True)
    engine.writer.submit(job)
    assert job.result(WAIT).learned == len(examples)


def run(engine, rows, labels, delay, first, last):
    """Predict rows; the label of each arrives after `delay` of them. Return the predictions."""
    answers = []
    for t in range(first, last):
        answers.append(predict(engine, rows[t], f"row {t}"))
        if t >= delay:
            learn(engine, Example(f"row {t - delay}", None, labels[t - delay], 1.0))
    return answers


def run_library(model, rows, labels, delay):
    """Do the same with the model alone."""
    answers, waiting = [], []
    for t, row in enumerate(rows):
        waiting.append(model.with_past([row]))
        answers.append(model.predict_many(waiting[t])[0])
        if t >= delay:
            model.learn_many(waiting[t - delay], [labels[t - delay]])
    return answers


@pytest.mark.parametrize(("spec", "delay"), [(SPEC, 0), (SPEC, 5), (KEYED, 3)])
def test_late_labels_are_learned_with_the_past_of_their_rows(tmp_path, spec, delay):
    rows, labels = random_walk(40)
    engine = Engine(State(tmp_path, late_model(spec)))
    answers = run(engine, rows, labels, delay, 0, 40)
    model, _ = new_model(spec)
    assert answers == run_library(model, rows, labels, delay)
    assert to_bytes(engine.state.model) == to_bytes(model)
    engine.close()


@pytest.mark.parametrize("delay", [1, 4])
def test_a_prediction_knows_the_labels_that_have_arrived_and_no_others(tmp_path, delay):
    rows, labels = random_walk(20)
    engine = Engine(State(tmp_path, late_model(SPEC)))
    for t in range(20):
        predict(engine, rows[t], f"row {t}")
        past = engine.state.pending.get_past(f"row {t}")
        arrived = labels[: max(t - delay + 1, 0)]
        expected = [*reversed(arrived)][:3] + [np.nan] * max(3 - len(arrived), 0)
        np.testing.assert_array_equal(past[:3], expected)
        if t + 1 >= delay:
            learn(engine, Example(f"row {t + 1 - delay}", None, labels[t + 1 - delay], 1.0))
    engine.close()


def test_a_row_that_is_sent_again_with_its_label_keeps_its_past(tmp_path):
    rows, labels = random_walk(20)
    models = []
    for again in (False, True):
        engine = Engine(State(tmp_path / str(again), late_model(SPEC)))
        run(engine, rows, labels, 5, 0, 15)
        learn(engine, Example("row 12", rows[12] if again else None, labels[12], 1.0))
        models.append(to_bytes(engine.state.model))
        engine.close()
    assert models[0] == models[1]


def test_a_restart_between_prediction_and_label_changes_nothing(tmp_path):
    rows, labels = random_walk(30)
    whole = Engine(State(tmp_path / "whole", late_model(KEYED)))
    answers = run(whole, rows, labels, 7, 0, 30)
    parts, cut = [], Engine(State(tmp_path / "cut", late_model(KEYED)))
    parts += run(cut, rows, labels, 7, 0, 11)
    cut.close()
    cut = Engine(State(tmp_path / "cut", late_model(KEYED)))
    parts += run(cut, rows, labels, 7, 11, 22)
    shutil.copytree(tmp_path / "cut", tmp_path / "crashed")  # its journal has the last records
    cut.close()
    crashed = Engine(State(tmp_path / "crashed", late_model(KEYED)))
    parts += run(crashed, rows, labels, 7, 22, 30)
    assert parts == answers
    assert to_bytes(crashed.state.model) == to_bytes(whole.state.model)
    crashed.close()
    whole.close()


def test_worker_processes_have_the_same_model(tmp_path):
    rows, labels = random_walk(30)
    engine, failures = Engine(State(tmp_path, late_model(SPEC))), []
    replica = Replica(ReplicaState(tmp_path), RequestLimits(), failures.append)
    run(engine, rows, labels, 4, 0, 29)
    learned = engine.state.learned_record
    wait_until(lambda: replica.state.learned_record == learned or failures)
    assert failures == []
    assert to_bytes(replica.state.model) == to_bytes(engine.state.model)
    assert predict(replica, rows[29], None, keep=False) == predict(engine, rows[29], "row 29")
    replica.close()
    engine.close()


def test_a_follower_has_the_same_model(tmp_path):
    rows, labels = random_walk(30)
    leader = Engine(State(tmp_path / "leader", late_model(KEYED)))
    run(leader, rows, labels, 4, 0, 30)
    follower = Engine(State(tmp_path / "follower", late_model(KEYED)))
    job = ShipmentJob(ReplicaState(tmp_path / "leader").read().records)
    follower.writer.submit(job)
    job.result(WAIT)
    assert follower.state.learned_record == leader.state.learned_record == 26
    assert to_bytes(follower.state.model) == to_bytes(leader.state.model)
    follower.close()
    leader.close()


def test_rows_with_and_without_a_past_are_learned_in_one_entry_in_blocks_of_any_size(tmp_path):
    rows, labels = random_walk(16)
    rng, models = np.random.default_rng(0), []
    model, _ = new_model(SPEC)
    columns = model.with_past([rows[0]]).past.shape[1]
    past = [rng.normal(size=columns) if t % 3 else None for t in range(16)]
    entry = Entry([None] * 16, rows, labels, None, past=collect_past(past))
    for cuts in ([0, 16], [0, 5, 16], range(17)):
        state = State(tmp_path / str(len(models)), late_model(SPEC))
        state.commit(entry)
        for first, last in zip(cuts, [*cuts][1:], strict=False):
            state.learn(decode_entry(memoryview(entry.encode())), first, last)
        models.append(to_bytes(state.model))
        state.close()
        again = State(tmp_path / str(len(models) - 1), late_model(SPEC))
        assert to_bytes(again.model) == models[-1]
        again.close()
    assert len(set(models)) == 1


def test_entries_with_a_past_survive_encoding_and_parts_of_them_too():
    values = np.array([[1.5, np.nan], [np.nan, np.nan], [-0.0, 1e300]])
    past = RowPast(values, np.array([True, False, True]))
    entry = Entry(["a", "b", "c"], [{"x": 1.0}] * 3, [1.0, 2.0, 3.0], None, past=past)
    decoded = decode_entry(memoryview(entry.encode()))
    np.testing.assert_array_equal(decoded.past.values, values)
    np.testing.assert_array_equal(decoded.past.given, past.given)
    part = decode_entry(memoryview(decoded.without(["a"]).encode()))
    np.testing.assert_array_equal(part.past.values, values[1:])
    np.testing.assert_array_equal(part.past.given, past.given[1:])
    assert decoded.without_rows().encode() == b""


def test_pending_rows_keep_their_past_when_they_are_moved_or_others_erased(tmp_path):
    limits = StateLimits(pending_rows=80)
    pending = PendingRows(tmp_path, limits)
    past = np.arange(20.0).reshape(10, 2)
    rows = [{"k": float(k), "name": "ü" * k} for k in range(10)]
    pending.add([f"late {k}" for k in range(10)], rows, None, past)
    for k in range(200):  # until the first file is written again
        pending.add([f"{k}"], [{"k": 1.0}])
        pending.remove([f"{k}"])
    pending.close()
    for path in tmp_path.glob("*.log"):
        erase_pending(path, ["late 3"])
    again = PendingRows(tmp_path, limits)
    again.open(lambda id: False)
    for k in range(10):
        if k == 3:
            assert again.get("late 3") is None
            assert again.get_past("late 3") is None
            continue
        assert again.get(f"late {k}") == rows[k]
        np.testing.assert_array_equal(again.get_past(f"late {k}"), past[k])
    again.add(["plain"], [{"k": 1.0}])
    assert again.get_past("plain") is None
    again.close()


def test_a_challenge_is_refused():
    champion, _ = new_model(SPEC)
    challenger, _ = new_model(ModelSpec(budget="fast"))
    with pytest.raises(UserError, match="uses past labels"):
        challenge_with(champion, challenger, BY_HAND)
