"""Classes that clients add while the service learns: the same bits everywhere, within limits."""

import pytest
from serving import wait_until
from state_folders import new_model

from spanboost.data.target import ClassTarget
from spanboost.errors import UsageError
from spanboost.models.files import to_bytes
from spanboost.models.memory import class_bytes, fixed_bytes
from spanboost.models.model_spec import ModelSpec
from spanboost.service.learning.class_limit import LONGEST_NAME
from spanboost.service.learning.engine import Engine
from spanboost.service.learning.jobs import LearnJob, PredictJob
from spanboost.service.learning.model_budget import Growth, ModelBudget
from spanboost.service.learning.replica import Replica
from spanboost.service.limits import RequestLimits, StateLimits
from spanboost.service.memory import MIB, MemoryPlan, plan_memory
from spanboost.service.request_rows import Example, collect_examples
from spanboost.service.storage.challenger import BY_HAND, challenge_with, model_from_options
from spanboost.service.storage.replica import ReplicaState
from spanboost.service.storage.state import State

SPEC = ModelSpec(learner="linear", n=2, loss="softmax")
NAMES = ("red", "green", "blue", "white", "black")


def new_classes():
    return new_model(SPEC, ClassTarget(None))


def examples(first, last):
    """Return rows; a new class appears every ten rows."""
    return [
        Example(f"row {k}", {"x": k % 7 / 7, "y": "abc"[k % 3]}, NAMES[k % (1 + k // 10)], 1.0)
        for k in range(first, last)
    ]


DEFAULT = RequestLimits()


def open_engine(folder, limits=DEFAULT):
    return Engine(State(folder, new_classes, StateLimits(snapshot_rows=25)), limits)


def learn(engine, rows, skip=False):
    job = LearnJob(collect_examples(dict(enumerate(rows))), skip, wait=True)
    engine.writer.submit(job)
    return job.result(60)


def columns(engine):
    job = PredictJob([{"x": 0.5}], [None], keep=False)
    engine.predictor.submit(job)
    return set(job.result(60).columns)


def test_classes_are_added_as_clients_send_them(tmp_path):
    engine = open_engine(tmp_path)
    assert learn(engine, examples(0, 15)).learned == 15
    assert columns(engine) == {"prediction", "p_red", "p_green"}
    assert learn(engine, examples(15, 50)).learned == 35
    assert columns(engine) == {"prediction", *(f"p_{name}" for name in NAMES)}
    assert engine.state.model.loss_.d == 5
    engine.close()


def test_restarts_and_workers_have_the_same_bits(tmp_path):
    whole, parts = open_engine(tmp_path / "whole"), open_engine(tmp_path / "parts")
    learn(whole, examples(0, 50))
    for first in range(0, 24, 4):
        learn(parts, examples(first, first + 4))
    failures = []
    replica = Replica(ReplicaState(tmp_path / "parts"), RequestLimits(), failures.append)
    parts.close()
    parts = open_engine(tmp_path / "parts")
    for first in range(24, 50, 13):
        learn(parts, examples(first, min(first + 13, 50)))
    last = parts.state.learned_record
    wait_until(lambda: replica.state.learned_record == last or failures)
    assert failures == []
    assert to_bytes(replica.state.model) == to_bytes(parts.state.model)
    assert parts.state.model.schema.target.values == list(NAMES)
    tensors = [dict(one.state.model.tensors()) for one in (whole, parts)]
    assert tensors[0].keys() == tensors[1].keys()
    assert all((tensors[0][name] == tensors[1][name]).all() for name in tensors[0])
    replica.close()
    for engine in (whole, parts):
        engine.close()


def test_the_number_of_classes_is_limited(tmp_path):
    engine = open_engine(tmp_path, RequestLimits(classes=3))
    learn(engine, examples(0, 25))
    outcome = learn(engine, examples(25, 50))
    assert outcome.learned == 0
    assert outcome.rejected[0].reason == (
        "the label 'white' would be class number 4, and the model may have at most 3 classes "
        "(--max-classes)"
    )
    assert engine.state.model.loss_.d == 3
    outcome = learn(engine, examples(25, 50), skip=True)
    assert outcome.learned + len(outcome.rejected) == 25
    assert {one.reason.split("'")[1] for one in outcome.rejected} == {"white", "black"}
    engine.close()
    again = open_engine(tmp_path, RequestLimits(classes=2))  # a smaller limit keeps what is known
    assert learn(again, [Example(None, {"x": 1.0}, "blue", 1.0)]).learned == 1
    again.close()


def test_long_names_are_refused(tmp_path):
    engine = open_engine(tmp_path)
    (problem,) = learn(engine, [Example(None, {"x": 1.0}, "n" * 1000, 1.0)]).rejected
    assert "has 1,000 characters; the name of a class may have 256" in problem.reason
    assert learn(engine, [Example(None, {"x": 1.0}, "n" * LONGEST_NAME, 1.0)]).learned == 1
    engine.close()


@pytest.mark.parametrize(
    "spec",
    [SPEC, ModelSpec(learner="trees", n=2, loss="softmax", replay=1, memory=100)],
    ids=["linear", "trees"],
)
def test_the_estimate_is_what_a_class_takes(spec):
    model, _ = new_model(spec, ClassTarget(None))
    estimate, _ = class_bytes(model)
    before = fixed_bytes(model)
    model.add_classes(7)  # rows for replay have class numbers, which take no more for more classes
    assert fixed_bytes(model) - before == pytest.approx(5 * estimate, abs=5)


def test_memory_limits_classes_before_their_number_does():
    spec = ModelSpec(learner="trees", n=20, loss="softmax")
    model, _ = new_model(spec, ClassTarget(None))
    fixed = fixed_bytes(model)
    plan = plan_memory(600 * MIB, fixed)
    budget = ModelBudget(model, plan, RequestLimits(classes=1000))
    most, reason = budget.most_classes()
    assert "(a share of --max-memory)" in reason
    extra, _ = class_bytes(model)
    assert 2 < most < 1000
    assert (most - 2) * extra <= plan.model_bytes < (most - 1) * extra
    plan_memory(600 * MIB, fixed + (most - 2) * extra)  # the service can start again
    grown = ModelBudget(model, plan, RequestLimits(classes=1000))
    model.add_classes(most)
    later, _ = ModelBudget(model, plan, RequestLimits(classes=1000)).most_classes()
    assert later == most  # classes that were added after the plan count
    few = {0: {f"name {k}": 1.0 for k in range(10)}}
    assert grown.check(few, Growth(), classes=2)[0] == {}
    assert "--max-memory" in grown.check(few, Growth(), classes=2 * most)[0][0].reason


def test_classes_can_never_take_the_memory_that_a_start_needs():
    spec = ModelSpec(learner="trees", n=20, loss="softmax")
    model, _ = new_model(spec, ClassTarget(None))
    fixed = fixed_bytes(model)
    for limit in range(512 + fixed // MIB + 1, 900, 40):
        plan = plan_memory(limit * MIB, fixed)
        most, _ = ModelBudget(model, plan, RequestLimits(classes=10_000)).most_classes()
        plan_memory(limit * MIB, fixed + (most - 2) * class_bytes(model)[0])
    with pytest.raises(UsageError, match="--max-memory"):
        plan_memory(limit * MIB, fixed + 10 * limit * MIB)


def test_a_challenger_that_adds_classes_too(tmp_path):
    engine = open_engine(tmp_path)
    learn(engine, examples(0, 35))
    rival = model_from_options(engine.state.model, {"learner": "linear", "n": 1, "loss": "softmax"})
    control = challenge_with(engine.state.model, rival, BY_HAND)
    engine.state.commit_control(control)
    engine.state.obey(control)
    assert learn(engine, examples(35, 50)).learned == 15
    challenger = engine.state.challenger
    assert (challenger.comparison.rows, challenger.left_out) == (15, 0)
    assert challenger.model.loss_.d == 5
    engine.close()


def test_numbers_of_plans_without_classes_stay():
    model, _ = new_model()
    budget = ModelBudget(model, MemoryPlan(1024 * MIB), RequestLimits())
    assert budget.most_classes()[0] == 100
