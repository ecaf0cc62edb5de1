"""The lower bound's stream, its exact values, and the experiment."""

import json
import math
import subprocess
import sys
import tracemalloc
from itertools import product

import numpy as np
import pytest

from spanboost.theory import lower_bound as lb
from spanboost.theory.lower_bound import Construction


def whole(stream, rows=None):
    blocks = list(stream.blocks(rows))
    return np.concatenate([b.values for b in blocks]), np.concatenate([b.labels for b in blocks])


@pytest.fixture(scope="module")
def sample():
    """A stream, and its values standardised given the labels."""
    X, y = whole(Construction(N=4, M=60, T=20_000, seed=5))
    return X, y, (X - y[:, None]) / np.sqrt(y * (1 - y))[:, None]


def test_labels_are_two_fair_coins(sample):
    _, y, _ = sample
    assert set(y) == {0.55, 0.45}
    coins = np.sign(y - 0.5)
    for pairs in (coins, coins[1:] * coins[:-1], coins[2:] * coins[:-2]):
        assert abs(pairs.mean()) < 5 / math.sqrt(len(pairs))


def test_values_are_ones_as_often_as_the_label_says(sample):
    X, y, _ = sample
    assert set(np.unique(X)) == {0.0, 1.0}
    for p in (0.55, 0.45):
        ones = X[y == p]
        assert abs(ones.mean() - p) < 5 * math.sqrt(p * (1 - p) / ones.size)
        assert np.all(abs(ones.mean(axis=0) - p) < 5 * math.sqrt(p * (1 - p) / len(ones)))


def test_values_are_independent(sample):
    _, _, Z = sample
    T, M = Z.shape
    functions = Z.T @ Z / T - np.eye(M)
    assert abs(functions - np.diag(np.diag(functions))).max() < 5.5 / math.sqrt(T)
    for lag in (1, 2, 3):
        rounds = (Z[lag:] * Z[:-lag]).mean()
        neighbours = (Z[:, lag:] * Z[:, :-lag]).mean()
        assert max(abs(rounds), abs(neighbours)) < 5 / math.sqrt(T * (M - lag))
    # if the values of a round were dependent, their sum would have another variance
    assert abs(Z.sum(axis=1).var() / M - 1) < 5 * math.sqrt(2 / T)


def test_probabilities_are_not_rounded_coarsely():
    p = 0.5 + lb.eps(3)

    class Bits:
        def random_raw(self, n):
            return np.array([p * 2**32 - 1, p * 2**32 + 1]).astype(np.uint32).view(np.uint64)

    np.testing.assert_array_equal(lb._bernoulli(np.array([p]), 2, Bits()), [[True, False]])


@pytest.mark.parametrize("M", [6, 7])
def test_the_stream_does_not_depend_on_the_block_size(M):
    stream = Construction(N=3, M=M, T=50, seed=1)
    X, y = whole(stream)
    assert X.shape == (50, M)
    for rows in (1, 7, 50, 64):
        for one, other in zip(whole(stream, rows), (X, y), strict=True):
            np.testing.assert_array_equal(one, other)
    assert [len(b.labels) for b in stream.blocks(7)] == [7] * 7 + [1]
    other_X, other_y = whole(Construction(N=3, M=M, T=50, seed=2))
    assert (other_X != X).any()
    assert (other_y != y).any()


def test_the_whole_stream_is_never_in_memory():
    stream = Construction(N=1, M=4000, T=2000)  # 64 MB
    lb.run(Construction(N=1, M=2, T=1))  # compiling takes memory, too
    tracemalloc.start()
    try:
        for _ in Construction(N=1, M=16_000, T=2000).blocks():
            pass
        assert tracemalloc.get_traced_memory()[1] < 6e6
        tracemalloc.reset_peak()
        lb.run(stream)
        assert tracemalloc.get_traced_memory()[1] < 8e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("wrong", [{"N": 0}, {"M": 2}, {"T": 0}, {"beta": 0.0}, {"D": -1.0}])
def test_sizes_are_checked(wrong):
    with pytest.raises(ValueError, match=r"must be positive, and M at least N \(got Construction"):
        Construction(**{"N": 3, "M": 30, "T": 10, **wrong})


def test_everything_scales_with_D():
    X, y = whole(Construction(N=3, M=30, T=40))
    scaled_X, scaled_y = whole(Construction(N=3, M=30, T=40, beta=5.0, D=3.0))
    np.testing.assert_array_equal(scaled_X, 3 * X)
    np.testing.assert_array_equal(scaled_y, 3 * y)


@pytest.mark.parametrize(
    ("beta", "D", "rounding"), [(4.0, 2.0, 0), (0.25, 0.5, 0), (0.7, 3.0, 1e-9)]
)
@pytest.mark.parametrize("randomised", [True, False])
def test_regret_scales_with_beta_and_D_squared(beta, D, rounding, randomised):
    one = lb.run(Construction(N=3, M=30, T=400), randomised)
    scaled = lb.run(Construction(N=3, M=30, T=400, beta=beta, D=D), randomised)
    for name in ("algorithm_2", "bayes", "bayes_exact"):
        assert getattr(scaled, name) == pytest.approx(getattr(one, name), rel=rounding, abs=0)


def test_units():
    stream = Construction(N=3, M=30, T=400, beta=5.0, D=2.0)
    assert stream.in_units(5 * 4 * 400 / 3) == pytest.approx(1)
    assert stream.loss(np.array([1.0]), np.array([3.0])) == 5 / 2 * 4


def test_the_booster_predicts_in_the_units_of_the_stream():
    stream = Construction(N=3, M=30, T=400, D=8.0)
    X, y = whole(stream)
    answers = lb.booster(stream).learn_many(X, y)
    grid = answers / 8 * 6  # the weights of three copies are 1/6, 2/6, 3/6, their values 0 or D
    np.testing.assert_allclose(grid, np.round(grid), atol=1e-9)
    assert 3 < answers.mean() < 5


def test_the_loss_has_the_constants_it_claims():
    loss = lb.HalfSquared(3.0)
    assert loss.value(0.5, 2.5) == 3 / 2 * 4
    assert (loss.value(0.5, 2.5 + 1e-6) - loss.value(0.5, 2.5)) / 1e-6 == pytest.approx(
        loss.gradient(0.5, 2.5), rel=1e-5
    )
    assert loss.L(2.0) == abs(loss.gradient(-1.0, 2.0))
    assert loss.beta(2.0) == loss.gradient(0.0, 2.0) - loss.gradient(0.0, 1.0)
    assert loss.eps(0.25) == abs(loss.gradient(1.0, 0.25))
    assert loss.eps(1.5) == 0


@pytest.mark.parametrize("N", range(1, 9))
def test_bayes_against_all_bit_strings(N):
    """E_0 of the proof: I uniform on {1, 2}, then s from D_I."""
    labels = (0.5 + lb.eps(N), 0.5 - lb.eps(N))
    expected = 0.0
    for s in product((0, 1), repeat=N):
        joint = [math.prod(p if bit else 1 - p for bit in s) / 2 for p in labels]
        mean = sum(w * p for w, p in zip(joint, labels, strict=True)) / sum(joint)
        assert lb.posterior_mean(sum(s), N) == pytest.approx(mean, rel=1e-13)
        expected += sum(w * (mean - p) ** 2 / 2 for w, p in zip(joint, labels, strict=True))
    assert lb.bayes_loss(N) == pytest.approx(expected, rel=1e-12)


def test_bayes_alone_proves_the_bound():
    """With the proof's own M the least possible regret is well above c, for every N."""
    regrets = np.array([lb.bayes_regret(N, 4000 * N) for N in (1, 2, 3, 10, 100, 1000, 3000)])
    assert np.all(regrets > 18 * lb.C)
    assert np.all(regrets < 0.005)  # half the prior variance, the loss without any call


def test_the_comparator_has_the_loss_of_the_proof():
    stream = Construction(N=4, M=50, T=40_000)
    losses = np.concatenate([stream.loss(y, X.mean(axis=1)) for X, y in stream.blocks()])
    error = losses.std() / math.sqrt(len(losses))
    assert abs(losses.mean() - lb.comparator_loss(4, 50)) < 5 * error
    assert lb.comparator_loss(4, 50) == pytest.approx(0.55 * 0.45 / 100)


@pytest.mark.parametrize("N", [1, 2, 6])
def test_algorithm_2_has_the_loss_that_its_weights_imply(N):
    """Its prediction averages N values with weights 2i / (N (N + 1)): the variance is known."""
    M, T = 3000, 6000  # with this many functions, two copies rarely draw the same one
    squares = sum((2 * i / (N * (N + 1))) ** 2 for i in range(1, N + 1))
    p = 0.5 + lb.eps(N)
    expected = N * (squares * p * (1 - p) / 2 - lb.comparator_loss(N, M))
    assert lb.run(Construction(N, M, T)).algorithm_2 == pytest.approx(expected, rel=0.08)


def test_the_experiment_has_the_sizes_of_the_proof():
    streams = [job.stream for job in lb.jobs(seed=3)]
    assert [s.N for s in streams] == [1, 2, 4, 8, 16, 32, 64, 8]
    assert all(s.M == 4000 * s.N and s.T == 12 * s.M for s in streams[:3])
    assert all(s.M >= 100 * s.N for s in streams)
    assert all(s.T == 200_000 for s in streams[3:7])
    assert {s.seed for s in streams} == {3}
    assert [job.randomised for job in lb.jobs()] == [True] * 7 + [False]


@pytest.mark.process
def test_the_quick_experiment(tmp_path):
    file = tmp_path / "results.json"
    command = [sys.executable, "-m", "spanboost.theory.lower_bound", "--quick", "--seed=7"]
    done = subprocess.run([*command, f"--json={file}"], capture_output=True, text=True, check=True)
    report = json.loads(file.read_text())
    assert (report["c"], report["seed"]) == (lb.C, 7)
    results = [lb.Result(**fields) for fields in report["results"]]
    assert done.stdout.startswith(lb.table(results))
    assert "compilation included" in done.stdout
    assert "%" not in done.stderr  # progress is for terminals

    *one_value, mixture = results
    for r in one_value:
        assert r.algorithm_2 > 20 * r.bayes
        assert r.bayes == pytest.approx(r.bayes_exact, rel=0.1)
        assert r.bayes > 10 * lb.C
    assert not mixture.randomised
    assert abs(mixture.algorithm_2) < lb.C / 20

    again = lb.run(lb.jobs(seed=7, quick=True)[0].stream)
    assert again._replace(seconds=0) == results[0]._replace(seconds=0)


def test_the_table():
    results = [lb.Result(64, 6400, 200_000, True, 0.1657, 0.00357, 0.003558, 34.5)]
    results.append(lb.Result(8, 800, 100_000, False, 2.76e-7, 0.00357, 0.003558, 4.3))
    head, line, first, second = lb.table(results).splitlines()
    assert len({len(head), len(line), len(first), len(second)}) == 1
    cells = [cell.strip() for cell in first.strip("|").split("|")]
    assert cells[3:] == ["one value", "0.166", "0.00357", "0.00356", "0.000250", "34.5"]
    assert "a mixture of 800" in second
    assert "2.76e-07" in second


def test_progress_is_for_terminals(capsys, monkeypatch):
    lb._show(0.5)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    lb._show(0.5)
    lb._show(1.0)
    assert capsys.readouterr().err == "\r 50%\r100%\n"


def test_bad_usage_is_reported_before_the_runs(tmp_path, capsys):
    with pytest.raises(SystemExit):
        lb.main(["--seed=-1"])
    assert "--seed must be at least 0 (got -1)" in capsys.readouterr().err
    with pytest.raises(FileNotFoundError):
        lb.main(["--json", str(tmp_path / "missing" / "file.json")])
