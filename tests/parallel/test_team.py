"""Teams of workers in this process, compared with the same rounds row by row."""

import copy
import json
from contextlib import nullcontext

import numpy as np
import pytest
from streams import FLATS, HOUSES, as_csv, as_jsonl, put
from test_averaging import rows

from spanboost import (
    AutoBoost,
    DataError,
    LabelWarning,
    LinearSGD,
    Network,
    SpanBoost,
    Stumps,
    Trees,
    feature_importances,
    load,
    save,
)
from spanboost.cli.checkpoints import Checkpoints
from spanboost.models.committee import Committee
from spanboost.parallel.averaging import average
from spanboost.parallel.executor import LocalExecutor
from spanboost.parallel.team import Team
from spanboost.theory.certificate import Witness

LEARNERS = [LinearSGD(), Stumps(), Network(hidden=3)]
TREES = Trees(grace=4, candidates=8)


def booster(learner, **parameters):
    return SpanBoost(learner, **{"n": 4, "label_range": "auto"} | parameters)


def saved_bytes(model, path):
    save(model, path)
    return path.read_bytes()


def reference_team(model, X, y, workers, every):
    """Learn row by row what a team learns; return the model and the predictions."""
    answers = [model.learn_one(X[0], y[0])]
    before, each, busy = model, [copy.deepcopy(model) for _ in range(workers)], set()
    for t in range(1, len(y)):
        worker = each[t % workers]
        worker.labels.rows = t
        answers.append(worker.learn_one(X[t], y[t]))
        busy.add(t % workers)
        if (t + 1) % (workers * every) == 0 or t + 1 == len(y):
            before = average(before, [each[w] for w in sorted(busy)])
            each, busy = [copy.deepcopy(before) for _ in each], set()
    return before, np.array(answers)


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
@pytest.mark.parametrize(("workers", "every", "blocks"), [(2, 7, 1), (3, 10, 4), (4, 30, 9)])
def test_a_team_equals_the_reference(learner, workers, every, blocks, tmp_path):
    X, y = rows(150, 0)
    expected, predictions = reference_team(booster(learner), X, y, workers, every)
    team = Team(booster(learner), workers, every)
    answers = [
        team.learn_many(*part)
        for part in zip(np.array_split(X, blocks), np.array_split(y, blocks), strict=True)
    ]
    np.testing.assert_array_equal(np.concatenate(answers), predictions)
    assert team.rows == 150
    assert saved_bytes(team.model(), tmp_path / "a") == saved_bytes(expected, tmp_path / "b")


@pytest.mark.parametrize("learner", [*LEARNERS, TREES], ids=str)
def test_one_worker_equals_the_model_alone(learner, tmp_path):
    X, y = rows(150, 0)
    alone, team = booster(learner), Team(booster(learner), 1, 20)
    weights = np.resize([1.0, 0.0, 2.0], 150)
    np.testing.assert_array_equal(team.learn_many(X, y, weights), alone.learn_many(X, y, weights))
    assert saved_bytes(team.model(), tmp_path / "a") == saved_bytes(alone, tmp_path / "b")


def test_a_team_is_about_as_accurate_as_one_model():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (8000, 4))
    y = X @ [3.0, -2.0, 1.0, 0.0] + 7
    one = booster(LinearSGD()).learn_many(X, y)
    for workers in (2, 4):
        answers = Team(booster(LinearSGD()), workers, 100).learn_many(X, y)
        ours, alone = (np.mean((a - y)[4000:] ** 2) for a in (answers, one))
        assert ours < max(3 * alone, 0.01 * np.var(y))


def test_rows_of_weight_0_before_the_first_learned_row():
    """The first label with a positive weight is the centre of every worker's label range."""
    X, y = rows(60, 0)
    weights = np.ones(60)
    weights[:5] = 0
    team = Team(booster(LinearSGD()), 3, 10)
    team.learn_many(X[:2], y[:2], weights[:2])
    answers = team.learn_many(X[2:], y[2:], weights[2:])
    assert answers[:3].tolist() == [0, 0, 0]
    model = team.model()
    assert model.labels.centre == [y[5]]
    assert (model.labels.rows, model.labels.seen) == (60, 55)


def as_named_rows(X):
    return [{f"x{j}": value for j, value in enumerate(row) if value} for row in X.tolist()]


@pytest.mark.parametrize("learner", [*LEARNERS[:2], TREES], ids=str)
def test_all_workers_use_the_same_feature_names(learner, tmp_path):
    X, y = rows(90, 0)
    team = Team(booster(learner), 3, 10)
    answers = [team.learn_many(as_named_rows(X[k : k + 30]), y[k : k + 30]) for k in (0, 30, 60)]
    model = team.model()
    one = model.members[0] if isinstance(model, Committee) else model
    order = [int(name[1:]) for name in one.encoder.names.columns]
    assert sorted(order) == [0, 1, 2, 3]
    sparse = [{f"{order.index(int(k[1:]))}": v for k, v in row.items()} for row in as_named_rows(X)]
    other = Team(booster(learner), 3, 10)
    again = other.learn_many(sparse, y)
    # not equal: the features of a row are summed in another order
    np.testing.assert_allclose(np.concatenate(answers), again, rtol=1e-5)
    save(model, tmp_path / "named.sb")
    loaded = load(tmp_path / "named.sb")
    np.testing.assert_array_equal(
        loaded.predict_many(as_named_rows(X)), model.predict_many(as_named_rows(X))
    )
    with pytest.raises(DataError, match="a sequence of numbers"):
        team.learn_many(X, y)
    assert team.rows == 90


@pytest.mark.parametrize("learner", [LinearSGD(), TREES], ids=str)
def test_the_first_bad_row_is_reported_and_nothing_is_learned(learner, tmp_path):
    X, y = rows(90, 0)
    bad = X.copy()
    bad[[61, 52, 53], 1] = np.inf
    team = Team(booster(learner), 3, 10)
    team.learn_many(X[:20], y[:20])
    before = saved_bytes(team.model(), tmp_path / "a")
    with pytest.raises(DataError, match=r"row 32: column \d is infinite"):
        team.learn_many(bad[20:], y[20:])
    assert team.rows == 20
    assert saved_bytes(team.model(), tmp_path / "b") == before
    undisturbed = Team(booster(learner), 3, 10)
    for one in (team, undisturbed):
        one.learn_many(X[one.rows :], y[one.rows :])
    assert saved_bytes(team.model(), tmp_path / "a") == saved_bytes(
        undisturbed.model(), tmp_path / "b"
    )


def test_warnings_have_the_row_number_in_the_stream():
    X, y = rows(150, 0)
    y[133] = 1e6
    with pytest.warns(LabelWarning, match="row 133: the label 1000000"):
        Team(booster(LinearSGD()), 2, 20).learn_many(X, y)


@pytest.mark.parametrize("learner", [LinearSGD(), TREES], ids=str)
def test_a_team_can_continue_the_model_of_another(learner, tmp_path):
    X, y = rows(150, 0)
    whole, first = (Team(booster(learner), 3, 10) for _ in range(2))
    whole.learn_many(X, y)
    first.learn_many(X[:60], y[:60])
    save(first.model(), tmp_path / "first.sb")
    second = Team(load(tmp_path / "first.sb"), 3, 10, rows=60)
    second.learn_many(X[60:], y[60:])
    assert saved_bytes(second.model(), tmp_path / "a") == saved_bytes(whole.model(), tmp_path / "b")


def test_trees_form_a_committee(tmp_path):
    X, y = rows(300, 0)
    team = Team(booster(TREES), 3)
    answers = team.learn_many(X, y)
    committee = team.model()
    each = [booster(TREES) for _ in range(3)]
    for w, one in enumerate(each):
        np.testing.assert_array_equal(one.learn_many(X[w::3], y[w::3]), answers[w::3])
    expected = np.mean([one.predict_many(X) for one in each], axis=0)
    np.testing.assert_array_equal(committee.predict_many(X), expected)
    assert committee.predict_one(X[0]) == expected[0]
    save(committee, tmp_path / "committee.sb")
    loaded = load(tmp_path / "committee.sb")
    np.testing.assert_array_equal(loaded.predict_many(X), expected)
    shares = [feature_importances(one) for one in each]
    found = feature_importances(loaded)
    assert found[1] == pytest.approx(np.mean([one.get(1, 0) for one in shares]))
    assert sum(found.values()) == pytest.approx(1)
    assert "Committee of 3" in repr(loaded)
    witness = Witness(loaded)
    witness.add(X, y)
    assert "the theorems are about one" in witness.certificate(1.0).unproved
    # it continues to learn: every member learns every row
    assert loaded.learn_many(X[:5], y[:5])[0] == expected[0]
    each[0].learn_many(X[:5], y[:5])
    np.testing.assert_array_equal(loaded.members[0].predict_many(X), each[0].predict_many(X))
    assert loaded.learn_one(X[5], y[5]) != expected[5]
    with pytest.raises(DataError):
        loaded.learn_many([[np.inf] * 4], [1.0])


@pytest.mark.parametrize(
    ("model", "given", "message"),
    [
        (booster(LinearSGD()), {"workers": 0}, r"workers must be a positive integer \(got 0\)"),
        (
            booster(LinearSGD()),
            {"workers": 2, "average_every": 0.5},
            r"average_every must be a positive integer \(got 0.5\)",
        ),
        (AutoBoost(), {"workers": 2}, "a team can only train a booster, not AutoBoost"),
        (booster(LinearSGD(), replay=1), {"workers": 2}, "models with replay cannot be averaged"),
        (
            Committee([booster(TREES)] * 3),
            {"workers": 2},
            r"workers must equal the committee's 3 members \(got 2\)",
        ),
    ],
    ids=str,
)
def test_bad_parameters_are_refused(model, given, message):
    with pytest.raises(ValueError, match=message):
        Team(model, **given)


def test_a_committee_needs_members():
    with pytest.raises(ValueError, match="a committee needs at least one member"):
        Committee([])


# on the command line


class FakeCluster(LocalExecutor):
    processors = 3


@pytest.fixture
def cluster(monkeypatch):
    """Replace the cluster of --ray with an executor in this process."""
    monkeypatch.setattr(
        "spanboost.cli.commands.train.cluster_of",
        lambda args: nullcontext(None if args.ray is None else FakeCluster()),
    )


SMALL = ("-n", "4", "--average-every", "10", "--ray")


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("learner", ["linear", "trees"])
def test_train_with_a_team(learner, shell, tmp_path):
    file = put(tmp_path, "flats.csv", as_csv(FLATS))
    out = tmp_path / "model.sb"
    options = ("--learner", learner, *SMALL)
    output = shell("train", file, "-o", out, *options, "--json", "--report", tmp_path / "page.html")
    result = json.loads(output.out)
    assert result["examples"] == 200
    assert "number of examples = 200" in output.err
    again = shell("evaluate", file, "-i", out, "-t", "--json", "--quiet")
    assert json.loads(again.out)["loss"] < result["loss"]
    assert isinstance(load(out), Committee) == (learner == "trees")
    assert "rows learned   200\n" in shell("inspect", out).out
    shell("train", file, "-i", out, "-o", tmp_path / "more.sb", *SMALL[2:], "--quiet")
    shell("train", file, "-i", out, "-o", tmp_path / "alone.sb", "--quiet")
    assert load(tmp_path / "more.sb").labels.rows == 400
    assert load(tmp_path / "alone.sb").labels.rows == 400


@pytest.mark.usefixtures("cluster")
def test_a_team_does_not_depend_on_batches_and_files(shell, tmp_path, monkeypatch):
    whole = put(tmp_path, "houses.jsonl", as_jsonl(HOUSES))
    halves = [put(tmp_path, f"{k}.jsonl", as_jsonl(HOUSES[k : k + 100])) for k in (0, 100)]
    options = ("--learner", "linear", *SMALL, "--quiet")
    shell("train", whole, "-o", tmp_path / "a.sb", *options)
    shell("train", *halves, "-o", tmp_path / "b.sb", *options)
    monkeypatch.setattr("spanboost.cli.run.MOST", 16)
    shell("train", whole, "-o", tmp_path / "c.sb", *options)
    a, b, c = ((tmp_path / name).read_bytes() for name in ("a.sb", "b.sb", "c.sb"))
    assert a == b == c


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("learner", ["linear", "trees"])
def test_a_team_resumes_from_a_checkpoint(learner, data, shell, tmp_path, monkeypatch):
    options = ("--learner", learner, *SMALL, "--workers", "2", "--json", "--quiet")
    undisturbed = json.loads(shell("train", data, "-o", tmp_path / "a.sb", *options).out)
    saves, save_one = [], Checkpoints.save

    def save_and_interrupt(self, *args):
        save_one(self, *args)
        saves.append(args)
        if len(saves) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoints, "save", save_and_interrupt)
    more = ("-o", tmp_path / "b.sb", *options, "--checkpoint-every", "40")
    shell("train", data, *more, status=130)
    output = shell("train", data, *more, "--resume")
    assert len(saves) > 4
    assert (tmp_path / "a.sb").read_bytes() == (tmp_path / "b.sb").read_bytes()
    assert json.loads(output.out)["loss"] == undisturbed["loss"]
    assert json.loads(shell("train", data, *more, "--resume").out) == {"finished": True}


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--workers", "2"], "--workers requires --ray"),
        (["--average-every", "2"], "--average-every requires --ray"),
        (
            ["--ray", "--average-every", "5"],
            "--average-every cannot be combined with --learner auto",
        ),
        (
            ["--ray", "--learner", "linear", "--replay", "2"],
            "models with replay cannot be averaged",
        ),
        (
            ["--ray", "--learner", "linear", "--checkpoint-every", "100"],
            "--checkpoint-every must be a multiple of 30000",
        ),
    ],
)
def test_bad_options_are_refused(words, message, data, shell, tmp_path):
    output = shell("train", data, "-o", tmp_path / "m.sb", *words, status=2)
    assert message in output.err
    assert output.err.count("\n") == 1
