"""AutoBoost: the aggregator follows its definition, and AutoBoost is a model like any other."""

import json
from itertools import pairwise

import numpy as np
import pytest
from forged import changed, read_file
from naive_aggregation import aggregate_plainly
from scipy_free import Csr

from spanboost import (
    AutoBoost,
    DataError,
    LabelWarning,
    LinearSGD,
    ModelFileError,
    Rows,
    Trees,
    feature_importances,
    load,
    save,
)
from spanboost.core.second_order import second_order_regret
from spanboost.losses import Absolute, Huber, Quantile, Softmax, resolve
from spanboost.models import auto
from spanboost.models.aggregation import new_aggregator
from spanboost.models.budgets import EXPERTS, NEAR_ABSOLUTE, Expert
from spanboost.models.mixture import REGRESSION
from spanboost.rows import block

ROWS = 600


def stream(rows=ROWS, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, 4)).astype(np.float32)
    return X, 100 + 20 * X[:, 0] + 10 * np.sign(X[:, 1] * X[:, 2]) + rng.normal(size=rows)


def fast(**parameters):
    return AutoBoost(budget="fast", **parameters)


def learn_in_parts(model, X, y, cuts=()):
    """Learn the rows in parts; return the predictions."""
    parts = zip((0, *cuts), (*cuts, len(y)), strict=True)
    return np.concatenate([model.learn_many(X[a:b], y[a:b]) for a, b in parts])


def save_and_read(model, path):
    save(model, path)
    return path.read_bytes()


@pytest.mark.slow
def test_experts_are_combined_as_defined():
    X, y = stream()
    model = fast()
    answers = model.learn_many(X, y)
    forecasts = [expert.learn_many(X, y) for expert in fast().experts.values()]
    expected, weights = aggregate_plainly(np.array(forecasts).T, y)
    np.testing.assert_allclose(answers, expected, rtol=1e-6)
    np.testing.assert_allclose(list(model.weights_.values())[:-1], weights[: model.n], rtol=1e-5)
    assert model.weights_[REGRESSION] == pytest.approx(sum(weights[model.n :]))


def test_regret_against_every_expert():
    X, y = stream(3000)
    answers = fast().learn_many(X, y)
    errors = [expert.learn_many(X, y) - y for expert in fast().experts.values()]
    assert ((answers - y)[1000:] ** 2).mean() < 1.02 * min(
        (error[1000:] ** 2).mean() for error in errors
    )


@pytest.mark.parametrize("loss", ["squared", "absolute", Huber(0.5), Quantile(0.3)], ids=str)
def test_regret_of_the_aggregator_under_every_loss(loss):
    rng = np.random.default_rng(0)
    labels = rng.uniform(-1, 1, 2000)
    forecasts = labels[:, None] * [0.9, 0.0, -1.0, 0.5] + 0.1 * rng.normal(size=(2000, 4))
    weights = rng.lognormal(0, 1, 2000)
    aggregator, one = new_aggregator(resolve(loss), 4), np.zeros(1)
    ours, theirs, scale, most = 0.0, np.zeros(4), [], 0.0
    value = resolve(loss).value
    for f, y, weight in zip(forecasts, labels, weights, strict=True):
        aggregator.mix(f[None], one)
        ours += weight * value(y, one[0])
        theirs += [weight * value(y, each) for each in f]
        aggregator.learn_label(f[None], np.array([y]), weight)
        scale.append(aggregator.second_order.scale[0])
        most += max(aggregator.scratch.regret[0], 0) ** 2
    K = len(aggregator.second_order.scale)
    surprise = max(scale)  # generous: the whole regret of one row
    assert ours <= theirs[0] + second_order_regret(K, 2000, max(scale), most, surprise)
    assert ours < 0.8 * theirs[1:].min()


@pytest.fixture
def replaying(monkeypatch):
    """A budget of small experts, two of which replay rows."""
    small = {"depth": 3, "candidates": 8, "evidence": 1.0, "grace": 8, "delay": 2}
    experts = (
        Expert("trees", Trees, small, 4, 0.5, replay=2),
        Expert("others", Trees, small, 3, 0.4, replay=1),
        Expert("linear", LinearSGD, {}),
    )
    monkeypatch.setitem(EXPERTS, "default", experts)
    return lambda: AutoBoost(seed=3)


@pytest.mark.parametrize("kind", ["dense", "names", "codes"])
def test_experts_that_replay_in_blocks_threads_and_files(kind, replaying, monkeypatch, tmp_path):
    X, y = stream(400)
    weights = np.where(np.arange(400) % 7 == 3, 0.0, 1.0)
    codes = np.random.default_rng(1).integers(-1, 5, (400, 2))
    rows = {
        "dense": lambda a, b: X[a:b],
        "names": lambda a, b: [{f"x{j}": v for j, v in enumerate(x) if v > 0} for x in X[a:b]],
        "codes": lambda a, b: Rows(X[a:b], codes[a:b]),
    }[kind]
    whole = replaying()
    expected = whole.learn_many(rows(0, 400), y, weights)
    assert ((expected - y)[200:] ** 2).mean() < np.var(y)
    for threads, edges in ((1, (0, 3, 90, 400)), (2, (0, 200, 400)), (3, (0, 1, 2, 399, 400))):
        monkeypatch.setattr(auto, "cpu_count", lambda n=threads: n)
        model, answers = replaying(), []
        for a, b in pairwise(edges):
            answers.append(model.learn_many(rows(a, b), y[a:b], weights[a:b]))
            save(model, tmp_path / "part.sb")
            model = load(tmp_path / "part.sb")
        np.testing.assert_array_equal(np.concatenate(answers), expected)
        assert save_and_read(model, tmp_path / "part.sb") == save_and_read(
            whole, tmp_path / "whole.sb"
        )


@pytest.mark.parametrize("loss", ["squared", "logistic", "absolute"])
@pytest.mark.slow
def test_blocks_and_threads_do_not_matter(loss, tmp_path, monkeypatch):
    X, y = stream(300)
    if loss == "logistic":
        y = np.sign(y - 100)
    whole = fast(loss=loss)
    expected = learn_in_parts(whole, X, y)
    expected_bytes = save_and_read(whole, tmp_path / "whole.sb")
    for threads, cuts in ((1, ()), (3, (1, 100, 280)), (2, tuple(range(1, 300, 70)))):
        monkeypatch.setattr(auto, "cpu_count", lambda n=threads: n)
        model = fast(loss=loss)
        np.testing.assert_array_equal(learn_in_parts(model, X, y, cuts), expected)
        assert save_and_read(model, tmp_path / "parts.sb") == expected_bytes
    one = fast(loss=loss)
    for x, label, answer in zip(X.tolist(), y.tolist(), expected, strict=True):
        asked = one.predict_one(x)
        assert one.learn_one(x, label) == answer == asked
    assert save_and_read(one, tmp_path / "one.sb") == expected_bytes
    np.testing.assert_array_equal(one.predict_many(X), whole.predict_many(X))


@pytest.mark.parametrize("loss", ["squared", "logistic", "absolute", Softmax(3)], ids=str)
def test_a_loaded_model_continues_identically(loss, tmp_path):
    X, y = stream(200)
    if not isinstance(loss, str):
        y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
    elif loss == "logistic":
        y = np.sign(y - 100)
    model = fast(loss=loss, seed=3)
    fresh = load_saved(model, tmp_path)
    np.testing.assert_array_equal(
        learn_in_parts(fresh, X[:90], y[:90]), learn_in_parts(model, X[:90], y[:90])
    )
    again = load_saved(model, tmp_path)
    assert again.weights_ == model.weights_
    np.testing.assert_array_equal(
        again.learn_many(X[90:], y[90:]), model.learn_many(X[90:], y[90:])
    )
    assert save_and_read(again, tmp_path / "a.sb") == save_and_read(model, tmp_path / "b.sb")
    assert again.parameters() == model.parameters()


def load_saved(model, folder):
    save(model, folder / "model.sb")
    return load(folder / "model.sb")


@pytest.mark.parametrize("what", ["label", "feature", "width", "weight"])
def test_a_bad_row_changes_nothing(what, tmp_path):
    X, y = stream(100)
    model = fast()
    learn_in_parts(model, X, y)
    before = save_and_read(model, tmp_path / "before.sb")
    bad, labels, weights = X.copy(), y.copy(), np.ones(100)
    if what == "label":
        labels[-1] = np.nan
    elif what == "feature":
        bad[-1, 2] = np.inf
    elif what == "weight":
        weights[-1] = -1
    else:
        bad = bad[:, :3]
    with pytest.raises(DataError):
        model.learn_many(bad, labels, weights)
    assert save_and_read(model, tmp_path / "after.sb") == before


@pytest.mark.parametrize("kind", ["codes", "names", "missing", "sparse"])
def test_rows_of_every_kind(kind, tmp_path):
    X, y = stream(120)

    def rows(a, b):
        if kind == "codes":
            return Rows(X[a:b, 1:], (X[a:b, :1] > 0).astype(int))
        if kind == "names":
            return [{"a": float(x[0]), "b": "high" if x[1] > 0 else "low"} for x in X[a:b]]
        if kind == "sparse":
            return Csr(np.where(np.abs(X[a:b]) < 0.2, 0, X[a:b]))
        return np.where(np.abs(X[a:b]) < 0.2, np.nan, X[a:b])

    model = fast()
    model.learn_many(rows(0, 60), y[:60])
    again = load_saved(model, tmp_path)
    for each in (model, again):
        assert np.isfinite(each.learn_many(rows(60, 120), y[60:])).all()
    assert save_and_read(model, tmp_path / "a.sb") == save_and_read(again, tmp_path / "b.sb")
    many = model.predict_many(rows(0, 120))  # in threads
    np.testing.assert_array_equal(many[:10], model.predict_many(rows(0, 10)))
    for wrong in (None, 3.0, np.array(3.0), {}):
        with pytest.raises(ValueError, match="expected several rows"):
            model.predict_many(wrong)


def test_probabilities_are_as_good_as_the_best_expert_and_calibrated():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (6000, 3))
    p = 1 / (1 + np.exp(-3 * X[:, 0] - np.sign(X[:, 1])))
    y = np.where(rng.random(6000) < p, 1, -1)
    odds = fast(loss="logistic").learn_many(X, y)
    losses = np.logaddexp(0, -y * odds)
    experts = fast(loss="logistic").experts.values()
    theirs = [np.logaddexp(0, -y * expert.learn_many(X, y)).sum() for expert in experts]
    assert losses.sum() <= min(theirs) + np.log((len(theirs) + 1) * 6000)
    late, shares = slice(3000, None), 1 / (1 + np.exp(-odds[3000:]))
    for low in (0.0, 0.25, 0.5, 0.75):
        among = (shares >= low) & (shares < low + 0.25)
        assert abs(shares[among].mean() - (y[late] > 0)[among].mean()) < 0.05


def test_classes():
    X, _ = stream(1500)
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
    model = fast(loss=Softmax(3))
    scores = model.learn_many(X, y)
    np.testing.assert_allclose(np.exp(scores).sum(axis=1), 1)
    assert (scores.argmax(axis=1) == y)[1000:].mean() > 0.85
    assert len(model.weights_) == model.n


def test_weights_of_rows():
    X, y = stream(200)
    heavy, wild = fast(), y.copy()
    wild[50:100] = 1e6
    weights = np.where(wild == y, 1.0, 0.0)
    predictions = heavy.learn_many(X, wild, weights)
    assert np.isfinite(predictions).all()
    assert abs(predictions[100:] - y[100:]).max() < 60


def test_only_relative_weights_of_rows_matter_to_the_aggregator():
    rng = np.random.default_rng(0)
    forecasts, labels, weights = rng.normal(size=(300, 4)), rng.normal(size=300), rng.random(300)
    answers = []
    for factor in (1.0, 1e-6, 1e6):
        aggregator, out = new_aggregator(resolve("squared"), 4), np.zeros((300, 1))
        for t in range(300):
            aggregator.mix(forecasts[t][None], out[t])
            aggregator.learn_label(forecasts[t][None], labels[t : t + 1], factor * weights[t])
        answers.append(out)
    np.testing.assert_allclose(answers[1], answers[0], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(answers[2], answers[0], rtol=1e-6, atol=1e-9)


def test_an_extreme_label_gives_one_warning_and_finite_predictions():
    X, y = stream(400)
    y[200] = 1e12
    model = fast()
    with pytest.warns(LabelWarning) as warned:
        predictions = model.learn_many(X, y)
    assert len(warned) == 1
    assert np.isfinite(predictions).all()
    assert sum(model.weights_.values()) == pytest.approx(1)


def test_constant_labels_and_predictions_before_the_first_label():
    X, _ = stream(50)
    model = fast()
    assert model.predict_one(X[0]) == 0
    assert not model.learn_many(X, np.full(50, 7.0))[1:].std()
    assert model.predict_one(X[0]) == 7


@pytest.mark.parametrize("noise", ["laplace", "exponential"])
def test_smooth_experts_learn_absolute_loss_better(noise, monkeypatch):
    """Signs of errors say little, so trees of a booster learn absolute loss slowly."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (4000, 3))
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + getattr(rng, noise)(scale=0.4, size=4000)
    errors = []
    for smooth in (True, False):
        if not smooth:
            monkeypatch.setattr(auto, "expert_loss", lambda loss, _: loss)
        model = AutoBoost(budget="fast", loss="absolute")
        assert model.loss_ == Absolute()
        losses = {one.loss for one in model.experts.values()}
        assert losses == ({"absolute", NEAR_ABSOLUTE} if smooth else {"absolute"})
        errors.append(np.abs(model.learn_many(X, y) - y)[2000:].mean())
    assert errors[0] < 0.95 * errors[1]


def test_budgets_list_the_experts():
    for budget, experts in EXPERTS.items():
        model = AutoBoost(budget=budget, refit=False)
        assert list(model.experts) == [name for name, *_ in experts]
        assert model.n == len(experts)
        assert not model.started
        assert model.weights_[experts[0][0]] == pytest.approx(1 / (len(experts) + 3))
    assert repr(model) == "AutoBoost(budget='exhaustive', refit=False)"
    X, y = stream(800)
    model = fast()
    model.learn_many(X, y)
    assert "800 rows learned" in repr(model)
    assert set(feature_importances(model)) <= {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"budget": "huge"},
            "budget must be 'fast', 'default', 'thorough' or 'exhaustive' .got 'huge'",
        ),
        ({"loss": "nothing"}, "loss"),
        ({"label_range": (1, 0)}, "label_range"),
        ({"seed": -1}, "seed"),
        ({"bits": 99}, "bits"),
    ],
    ids=str,
)
def test_invalid_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        AutoBoost(**parameters)


CHANGES = {
    "one expert less": lambda header, arrays: header["experts"].pop(),
    "an expert twice": lambda header, arrays: header["experts"][1].update(name="trees"),
    "an expert with another loss": lambda header, arrays: header["experts"][0]["parameters"].update(
        loss="logistic", label_range=[-1, 1]
    ),
    "an expert with another dtype": lambda header, arrays: header["experts"][1]["parameters"][
        "learner"
    ]["fields"].update(dtype="float64"),
    "an expert with another range": lambda header, arrays: header["experts"][1]["labels"].update(
        half=1.0
    ),
    "an expert that learned other rows": lambda header, arrays: header["experts"][1][
        "labels"
    ].update(seen=1),
    "no experts": lambda header, arrays: header.update(experts=[]),
    "not a list": lambda header, arrays: header.update(experts=None),
    "an unknown budget": lambda header, arrays: header["parameters"].update(budget="huge"),
    "no weights": lambda header, arrays: arrays.pop("combination.second_order.wealth"),
    "NaN weights": lambda header, arrays: arrays["combination.second_order.wealth"].fill(np.nan),
    "weights of 0.1": lambda header, arrays: arrays.update(
        {"combination.share.weights": np.full(5, 0.2)}
    ),
    "a factor of 0": lambda header, arrays: arrays["combination.regressions.factor"][0].fill(0),
    "too few weights": lambda header, arrays: arrays.update(
        {"combination.second_order.wealth": np.ones(2)}
    ),
    "an unexpected array": lambda header, arrays: arrays.update({"combination.more": np.ones(2)}),
    "an array of an unknown expert": lambda header, arrays: arrays.update({"9.bank": np.ones(2)}),
    "an array without an expert": lambda header, arrays: arrays.update({"bank": np.ones(2)}),
    "an expert that is not a booster": lambda header, arrays: header["experts"][0].update(
        booster="AutoBoost", experts=[]
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_invalid_files_are_refused(change, tmp_path):
    X, y = stream(40)
    model = fast()
    model.learn_many(X, y)
    path = tmp_path / "model.sb"
    save(model, path)
    header, arrays = read_file(path)
    CHANGES[change](header, arrays)
    changed(path, lambda old: old.update(header), lambda _: arrays)
    with pytest.raises(ModelFileError):
        load(path)


@pytest.fixture
def table(tmp_path):
    X, y = stream(2000)
    path = tmp_path / "rows.csv"
    np.savetxt(path, np.column_stack([X, y]), "%.7g", ",", header="a,b,c,d,label", comments="")
    return path


def test_auto_is_the_default_on_the_command_line(table, shell, tmp_path):
    one, two = tmp_path / "one.sb", tmp_path / "two.sb"
    said = shell("train", table, "-o", one, "--budget", "fast")
    assert "learning with auto\n" in said.err
    every = ("--budget", "fast", "--learner", "auto", "--quiet")
    shell("train", table, "-o", two, "--checkpoint-every", 700, *every)
    assert one.read_bytes() == two.read_bytes()
    predictions = shell("predict", table, "-m", one).out.split()[1:]
    X = np.loadtxt(table, delimiter=",", skiprows=1, dtype=np.float32)[:, :4]
    np.testing.assert_array_equal(np.array(predictions, float), load(one).predict_many(X))
    shown = shell("inspect", one).out
    for part in (
        "AutoBoost, 5 experts",
        "regression over all",
        "64 copies of Trees",
        "most important features",
    ):
        assert part in shown
    found = json.loads(shell("inspect", one, "--json").out)
    assert sum(found["weights"].values()) == pytest.approx(1)
    assert found["best_trees"] == "trees"


def test_auto_in_comparisons(table, shell):
    every = ("evaluate", table, "--budget", "fast", "--quiet", "--json")
    result = json.loads(shell(*every, "--baseline", "--certificate").out)
    assert result["model"] == "auto"
    assert result["relative_improvement"] > 0
    assert result["certificate"]["theorem"] is None
    assert result["certificate"]["measured_bound"] >= result["certificate"]["regret"]
    assert "aggregation" in result["certificate"]["measured"]["terms"]
    linear = json.loads(
        shell("evaluate", table, "--learner", "linear", "-n", 1, "--booster", "hull", "--json").out
    )
    assert result["baseline"]["loss"] == linear["loss"]
    compared = json.loads(shell(*every, "--compare", "linear,auto", "-n", 4).out)["compared"]
    assert compared["auto"]["loss"] == result["loss"]
    assert set(compared) == {"linear:span", "auto"}


def test_an_interrupted_run_can_be_resumed(table, shell, tmp_path, monkeypatch):
    from spanboost.cli.checkpoints import Checkpoints

    every = ("train", table, "--budget", "fast", "--quiet", "-o")
    shell(*every, tmp_path / "straight.sb")
    keep = Checkpoints.save

    def cut_off(self, model, tape, *more):
        keep(self, model, tape, *more)
        if tape.rows == 1000:
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoints, "save", cut_off)
    output = tmp_path / "cut.sb"
    shell(*every, output, "--checkpoint-every", 500, status=130)
    monkeypatch.setattr(Checkpoints, "save", keep)
    shell(*every, output, "--checkpoint-every", 500, "--resume")
    assert output.read_bytes() == (tmp_path / "straight.sb").read_bytes()


def test_a_block_is_encoded_once_for_all_experts(monkeypatch):
    X, y = stream(100)
    warm = fast()  # if code is missing, a copy of the model reads the first row as well
    warm.learn_many(X, y)
    warm.predict_many(X)
    parsed, parse_rows = [], block.parse_rows
    monkeypatch.setattr(block, "parse_rows", lambda X: parsed.append(1) or parse_rows(X))
    model = fast()
    model.learn_many(X, y)
    assert len(parsed) == 1
    model.predict_many(X)
    assert len(parsed) == 2
