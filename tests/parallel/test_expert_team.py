"""AutoBoost with its experts on workers that may be lost: the bits of AutoBoost on one machine."""

import random
from contextlib import nullcontext

import numpy as np
import pytest
from weighted_streams import stream

from spanboost import (
    AutoBoost,
    DataError,
    ExpertTeam,
    LabelWarning,
    Rows,
    SpanBoost,
    Stumps,
    losses,
    save,
)
from spanboost.errors import ClusterError, ParameterError
from spanboost.parallel.executor import LocalExecutor, WorkerLostError
from spanboost.parallel.expert_team import deal_experts

pytestmark = pytest.mark.slow


class UnreliableExecutor(LocalExecutor):
    """Loses objects at random moments: before a call, and after it but before the answer."""

    def __init__(self, seed, share=0.3):
        self.random, self.share = random.Random(seed), share
        self.lost, self.gone = 0, set()

    def start(self, kind, *args):
        return [kind(*args)]

    def ask(self, resident, method, *args):
        if self.random.random() < self.share:
            resident.clear()
        answer = getattr(resident[0], method)(*args) if resident else None
        if resident and self.random.random() < self.share:
            resident.clear()
        return resident, answer

    def results(self, handles):
        found = []
        for handle in handles:
            if not isinstance(handle, tuple):
                found.append(handle)
            elif not handle[0]:
                self.lost += 1
                raise WorkerLostError("a worker was lost")
            else:
                found.append(handle[1])
        return found


def saved_bytes(model, path):
    save(model, path)
    return path.read_bytes()


def blocks(*columns, size=70):
    rows = len(columns[1])
    for first in range(0, rows, size):
        yield tuple(
            None if column is None else _part(column, first, first + size) for column in columns
        )


def _part(column, first, last):
    return column.take(slice(first, last)) if isinstance(column, Rows) else column[first:last]


def matrix():
    return stream()


def categories():
    X, y, weights = stream()
    codes = np.random.default_rng(0).integers(-1, 5, (len(y), 2))
    return Rows(X, codes), y + codes[:, 0], weights


def dictionaries():
    X, y, weights = stream()
    rows = [
        {f"x{j}": float(value) for j, value in enumerate(row)} | {"city": "abc"[t // 40 % 3]}
        for t, row in enumerate(X)
    ]
    return rows, y, weights


def wild_labels():
    X, y, weights = stream()
    y[[40, 90, 130]] = 1e6, -3e4, 50.0
    weights[[40, 90, 130]] = 1.0
    return X, y, weights


def binary():
    X, y, weights = stream()
    return X, np.where(y > 50, 1.0, -1.0), weights


def classes():
    X, y, weights = stream()
    return X, np.digitize(y, [49.5, 50.5]), weights


DATA = [
    (matrix, "squared"),
    (categories, "squared"),
    (dictionaries, "squared"),
    (wild_labels, "squared"),
    (matrix, "absolute"),
    (binary, "logistic"),
    (classes, losses.Softmax(3)),
]


@pytest.mark.filterwarnings("ignore:.*label:spanboost.LabelWarning")
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize(("data", "loss"), DATA)
def test_a_team_of_experts_equals_the_model_alone(data, loss, workers, tmp_path):
    alone, team = AutoBoost(loss), ExpertTeam(AutoBoost(loss), workers)
    for X, y, weights in blocks(*data()):
        expected = alone.learn_many(X, y, weights)
        np.testing.assert_array_equal(team.learn_many(X, y, weights), expected)
        np.testing.assert_array_equal(team.predict_many(X), alone.predict_many(X))
        assert team.weights_ == alone.weights_
    assert saved_bytes(team.model(), tmp_path / "a") == saved_bytes(alone, tmp_path / "b")


@pytest.mark.parametrize("seed", range(3))
def test_lost_workers_do_not_change_the_result(seed, tmp_path, monkeypatch):
    monkeypatch.setattr("spanboost.parallel.expert_team.SNAPSHOT_EVERY", 50)
    monkeypatch.setattr("spanboost.parallel.residents.RETRIES", 100)
    executor, (X, y, weights) = UnreliableExecutor(seed), stream()
    alone, team = AutoBoost(), ExpertTeam(AutoBoost(), 3, executor)
    for part in blocks(X, y, weights, size=20):
        np.testing.assert_array_equal(team.learn_many(*part), alone.learn_many(*part))
    np.testing.assert_array_equal(team.predict_many(X), alone.predict_many(X))
    assert executor.lost > 10
    assert saved_bytes(team.model(), tmp_path / "a") == saved_bytes(alone, tmp_path / "b")


def test_workers_that_are_always_lost_raise_an_error():
    X, y, _ = stream()
    team = ExpertTeam(AutoBoost(budget="fast"), 2, UnreliableExecutor(0, share=1.0))
    with pytest.raises(ClusterError, match="a worker was lost, and its work failed after 3 ret"):
        team.learn_many(X, y)


def test_an_interrupted_block_changes_nothing(tmp_path):
    X, y, _ = stream()
    executor = LocalExecutor()
    alone, team = (AutoBoost(budget="fast") for _ in range(2))
    team = ExpertTeam(team, 2, executor)
    for model in (alone, team):
        model.learn_many(X[:50], y[:50])
    answers = executor.results
    executor.results = lambda handles: _interrupt()
    with pytest.raises(KeyboardInterrupt):
        team.learn_many(X[50:], y[50:])
    executor.results = answers
    expected = alone.learn_many(X[50:], y[50:])
    np.testing.assert_array_equal(team.learn_many(X[50:], y[50:]), expected)
    assert saved_bytes(team.model(), tmp_path / "a") == saved_bytes(alone, tmp_path / "b")


def _interrupt():
    raise KeyboardInterrupt


def test_a_trained_model_continues(tmp_path):
    X, y, weights = stream()
    alone, before = AutoBoost(), AutoBoost()
    for model in (alone, before):
        model.learn_many(X[:90], y[:90], weights[:90])
    unchanged = saved_bytes(before, tmp_path / "before")
    team = ExpertTeam(before, 2)
    rest = X[90:], y[90:], weights[90:]
    np.testing.assert_array_equal(team.learn_many(*rest), alone.learn_many(*rest))
    assert saved_bytes(before, tmp_path / "before") == unchanged
    model = team.model()
    assert saved_bytes(model, tmp_path / "a") == saved_bytes(alone, tmp_path / "b")
    np.testing.assert_array_equal(model.learn_many(X, y), alone.learn_many(X, y))
    again = team.model()
    np.testing.assert_array_equal(team.learn_again(*rest), again.learn_again(*rest))
    assert team.weights_ == again.weights_


def test_a_bad_row_is_reported_and_nothing_is_learned(tmp_path):
    X, y, _ = stream()
    team = ExpertTeam(AutoBoost(budget="fast"), 2)
    team.learn_many(X, y)
    before = saved_bytes(team.model(), tmp_path / "m")
    X[31, 2] = np.inf
    with pytest.raises(DataError, match="row 31: column 2 is infinite"):
        team.learn_many(X, y)
    assert saved_bytes(team.model(), tmp_path / "m") == before


def test_warnings_are_issued_once():
    X, y, _ = stream()
    y[90] = 1e6
    with pytest.warns(LabelWarning, match="row 90") as caught:
        ExpertTeam(AutoBoost(budget="fast"), 3).learn_many(X, y)
    assert len(caught) == 1


def test_experts_are_dealt_out_by_their_work():
    experts = AutoBoost().experts
    for workers in (1, 2, 3, 8, 20):
        groups = deal_experts(experts, workers)
        assert sorted(name for group in groups for name in group) == sorted(experts)
        assert len(groups) == min(workers, len(experts))
    slow = [name for name in experts if name.startswith("trees")]
    assert all(len(set(group) & set(slow)) == 1 for group in deal_experts(experts, len(slow)))


def test_other_models_and_numbers_of_workers_are_refused():
    with pytest.raises(ValueError, match="only AutoBoost has experts to distribute"):
        ExpertTeam(SpanBoost(Stumps()), 2)
    with pytest.raises(ParameterError, match="must be a positive integer"):
        ExpertTeam(AutoBoost(), 0)


def test_commands_need_options_that_fit(data, shell, tmp_path):
    output = tmp_path / "m.sb"
    for words, message in (
        (("train", "-o", output, "--average-every", "5", "--ray"), "--average-every cannot be"),
        (("train", "-o", output, "--workers", "2"), "--workers requires --ray"),
        (("train", "-o", output, "--intervals", "--ray"), "--ray cannot be combined with --int"),
        (("train", "-o", output, "--calibrate", "--loss", "logistic", "--ray"), "with --calibrate"),
        (("evaluate", "--workers", "2"), "--workers requires --ray"),
        (("evaluate", "--certificate", "--ray"), "--ray cannot be combined with --certificate"),
        (("evaluate", "--learner", "trees", "--ray"), "--ray needs a model with experts"),
        (("tune", "--workers", "2"), "--workers requires --ray"),
    ):
        assert message in shell(*words[:1], data, *words[1:], status=2).err


def test_models_with_intervals_do_not_continue_on_a_cluster(data, shell, tmp_path):
    path = tmp_path / "m.sb"
    shell("train", data, "-o", path, "--learner", "linear", "-n", "2", "--intervals", "--quiet")
    again = shell("train", data, "-i", path, "-o", path, "--ray", status=2).err
    assert f"--ray cannot train Intervals ({path}); leave out --ray" in again


class LocalCluster(LocalExecutor):
    """The interface of a cluster, in this process."""

    processors = 3


@pytest.fixture
def cluster(monkeypatch):
    for name in ("train", "tune"):
        monkeypatch.setattr(
            f"spanboost.cli.commands.{name}.cluster_of",
            lambda args: nullcontext(None if args.ray is None else LocalCluster()),
        )


@pytest.mark.usefixtures("cluster")
def test_commands_give_the_same_results_with_a_cluster(data, shell, tmp_path):
    for words in (
        ("train", data, "-o", "MODEL", "--json", "--quiet", "--checkpoint-every", "70"),
        ("train", data, "-o", "MODEL", "--json", "--quiet", "--budget", "fast", "--key", "rooms"),
        ("evaluate", data, "--compare", "auto,linear", "--quiet"),
        ("evaluate", data, "-i", "MODEL", "-t", "--quiet"),
        ("tune", data, "-n", "4", "--step", "0.25,1", "-o", "MODEL"),
    ):
        printed = []
        for name, more in (("here.sb", ()), ("there.sb", ("--ray",))):
            given = [tmp_path / name if word == "MODEL" else word for word in words]
            printed.append(shell(*given, *more).out)
        lines = [[line for line in out.splitlines() if "second" not in line] for out in printed]
        assert lines[0] == lines[1]
        assert len(lines[0]) > 1
        assert (tmp_path / "here.sb").read_bytes() == (tmp_path / "there.sb").read_bytes()
