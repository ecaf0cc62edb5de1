"""Certificates of a pass: values computed by hand, agreement with audits, and refusals."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanboost import FiniteClass, HullBoost, LinearBall, LinearSGD, SpanBoost, Stumps
from spanboost.cli.main import main
from spanboost.cli.output.certificate import as_json, describe, pictured
from spanboost.theory.certificate import Witness
from spanboost.theory.measured_pass import audit
from spanboost.theory.regret import audit_span, best_linear, linear_norm


def certify(booster, X, y, weights=None, block=7, **options):
    """Run a pass in blocks, compute the loss of its predictions, and return the certificate."""
    witness, loss = Witness(booster, **options), 0.0
    for first in range(0, len(y), block):
        rows = slice(first, first + block)
        w = None if weights is None else weights[rows]
        answers = booster.learn_many(X[rows], y[rows], w)
        loss += float(((1.0 if w is None else w) * (answers - y[rows]) ** 2).sum())
        witness.add(X[rows], y[rows], w)
    return witness.certificate(loss)


def ball(booster=SpanBoost, x_norm=1.0, **options):
    options = {"n": 4, "feedback": "linear", "label_range": (0, 10)} | options
    return booster(LinearBall(x_norm), **options)


def test_theorem_1_by_hand():
    """Rows 0.5, label always 8 in a range of 0 to 10: the best is 5 + 6 x; in model units 1.2 x."""
    X, y = np.full((9, 1), 0.5), np.full(9, 8.0)
    certificate = certify(ball(x_norm=2.0, eta=0.5), X, y)
    one = certificate.comparisons[0]
    assert one.comparator_loss == pytest.approx(0, abs=1e-20)
    assert one.regret == one.loss > 0
    # ||f||_1 = 1.2 * 2 / 1; zero loses 0.36 a row; B = 1, L_B = 4, beta = 2; 25 is half^2
    f_norm, units = 2.4, 25
    assert one.promise.theorem == "Theorem 1"
    assert one.promise.terms.initial == pytest.approx(units * (1 - 0.5 / f_norm) ** 4 * 0.36 * 9)
    assert one.promise.terms.smoothness == pytest.approx(units * 3 * 0.5 * 2 * f_norm * 9)
    assert one.promise.terms.learner == pytest.approx(units * 4 * f_norm * 2 * math.sqrt(2 * 9))
    assert one.promise.terms.sigma == pytest.approx(units * 2 * 4 * f_norm * math.sqrt(9))
    assert one.promise.bound == pytest.approx(sum(one.promise.terms))
    assert one.slack == pytest.approx(sum(one.promise.terms) - one.loss)
    assert one.promise.middle_regret == pytest.approx(9 * 9)
    assert certificate.comparisons[1].promise is None  # no theorem covers a constant
    assert certificate.unproved is None


def test_a_loss_that_overflowed_is_not_compared():
    X, y = np.linspace(-1, 1, 20)[:, None], np.linspace(-1, 1, 20)
    y[5] = 1e300
    with np.errstate(over="ignore", invalid="ignore"):
        booster = SpanBoost(LinearSGD(), n=2, label_range="growing")
        words = list(describe(certify(booster, X, y)))
    assert words[1:] == ["no comparison: the loss of the model overflowed; check the labels"]


def test_theorem_2_by_hand():
    """The best within the ball of radius 1/2: |5 W| <= 2.5, and label 8 is 3 away at x = 1."""
    X, y = np.ones((9, 1)), np.full(9, 8.0)
    one = certify(ball(HullBoost, x_norm=2.0), X, y).comparisons[0]
    assert one.comparator_loss == pytest.approx(9 * 0.5**2)
    # beta = 2, L_D = 4, D = 1
    assert one.promise.theorem == "Theorem 2"
    assert one.promise.terms.smoothness == pytest.approx(25 * 8 * 2 * 9 / 4)
    assert one.promise.terms.learner == pytest.approx(25 * 4 * 2 * math.sqrt(2 * 9))
    assert one.promise.middle_regret == pytest.approx(9 * (9 - 0.25))
    assert one.slack > 0


def test_a_scaled_class_has_shorter_functions():
    X, y = np.full((9, 1), 0.5), np.full(9, 8.0)
    one = certify(ball(x_norm=2.0, eta=0.5, scale=2.0), X, y).comparisons[0]
    assert one.promise.terms.initial == pytest.approx(25 * (1 - 0.5 / 1.2) ** 4 * 0.36 * 9)


def test_a_scaled_class_is_larger():
    X, y = np.ones((9, 1)), np.full(9, 8.0)
    one = certify(ball(HullBoost, x_norm=2.0, scale=1.1), X, y).comparisons[0]
    assert one.comparator_loss == pytest.approx(9 * (3 - 1.1 * 2.5) ** 2)
    # L at 1.1 is 4.2
    assert one.promise.terms.learner == pytest.approx(25 * 4.2 * 1.1 * 2 * math.sqrt(2 * 9))


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.booleans(), st.sampled_from(["linear", "greedy"]))
def test_a_certificate_is_an_audit_in_other_units(seed, weighted, feedback):
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(-0.5, 0.5, (60, 3)), rng.uniform(-30, 50, 60)
    X[rng.random(X.shape) < 0.1] = np.nan
    weights = rng.uniform(0, 1, 60) if weighted else None
    options = {"feedback": feedback, "label_range": (-30, 50), "scale": 1.5}
    one = certify(ball(**options), X, y, weights).comparisons[0]
    present = np.nan_to_num(X)
    W = best_linear(present, (y - 10) / 40, weights)
    booster = ball(**options)
    audit = audit_span(booster, X, y, present @ W.T, linear_norm(W, D=1, x_norm=1), weights)
    assert one.loss == pytest.approx(1600 * audit.loss)
    assert one.comparator_loss == pytest.approx(1600 * audit.comparator)
    assert one.promise.terms == pytest.approx(tuple(1600 * term for term in audit.bound))
    assert one.slack == pytest.approx(1600 * audit.slack)
    assert one.slack > 0
    expected = {cause: 1600 * value for cause, value in audit.measured.terms.items()}
    assert one.measured.terms == pytest.approx(expected, abs=1e-6)
    assert one.measured.recursion.f_norm == pytest.approx(audit.measured.f_norm)
    assert one.measured_slack >= 0


def test_stumps_are_compared_with_convex_combinations():
    """Rows of one feature each, 5 + 5 x_1 and 5 - 2.5 x_2; combinations 5 + 5 sum_f w_f x_f."""
    X = np.array([[1.0, 0.0], [0.0, 1.0]] * 10)
    booster = SpanBoost(Stumps(), n=4, label_range=(0, 10))
    linear, hull, _ = certify(booster, X, 5 + 5 * (X @ [1.0, -0.5])).comparisons
    assert linear.comparator_loss == pytest.approx(0, abs=1e-18)
    # 1 and -0.5 add up to 1.5, so both shrink by 0.25
    assert hull.comparator_loss == pytest.approx(20 * 25 * 0.25**2)
    assert hull.gap <= 1e-8 * hull.comparator_loss
    assert hull.promise is None


def test_the_range_of_a_growing_model_is_the_last_one():
    """The range is centred at the first label, 2, and reaches 6: 2 + 4 w, and w = 1 fits."""
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array([2.0, 4.0, 6.0])
    booster = SpanBoost(Stumps(), n=2, label_range="auto")
    _, hull, _ = certify(booster, X, y, block=1).comparisons
    assert hull.comparator_loss == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize(
    ("booster", "weights", "options", "reason"),
    [
        (SpanBoost(LinearSGD(), n=2), None, {}, "LinearSGD states no regret bound"),
        (SpanBoost(Stumps(), n=2), None, {}, "Stumps states no regret bound"),
        (ball(HullBoost, feedback="greedy"), None, {}, "offset='printed'"),
        (ball(B=10.0), None, {}, None),
        (ball(loss="squared", eta=1.0, n=1), None, {}, None),
        (ball(label_range="auto"), None, {}, "a theorem holds only between two changes"),
        (ball(), 2.0, {}, "weights of at most 1"),
        (ball(), 0.5, {}, None),
        (ball(), None, {"learn": False}, "nothing was learned"),
        (
            HullBoost(FiniteClass([lambda x: 1.0]), n=2, feedback="linear"),
            None,
            {},
            "cannot be computed",
        ),
    ],
)
def test_a_bound_applies_where_a_theorem_covers_the_pass(booster, weights, options, reason):
    X, y = np.full((6, 1), 0.5), np.full(6, 0.5)
    weights = None if weights is None else np.full(6, weights)
    certificate = certify(booster, X, y, weights, **options)
    promises = [one.promise for one in certificate.comparisons]
    if reason is None:
        assert certificate.unproved is None
        assert promises[0] is not None
    else:
        assert reason in certificate.unproved
        assert promises == [None] * len(promises)
        assert any(
            f"no bound for every stream: {certificate.unproved}" == w for w in describe(certificate)
        )


def test_a_used_model_has_no_bound_but_a_regret():
    booster = ball()
    X, y = np.full((6, 1), 0.5), np.full(6, 8.0)
    booster.learn_many(X, y)
    certificate = certify(booster, X, y)
    assert "used" in certificate.unproved
    assert certificate.comparisons[0].regret > 0


@pytest.mark.parametrize("kind", [SpanBoost, HullBoost])
@pytest.mark.parametrize("learner", [LinearSGD(), Stumps()], ids=str)
@pytest.mark.parametrize("label_range", ["auto", (-40, 60)])
def test_every_comparison_is_an_audit(kind, learner, label_range):
    """The products of features and slopes, against an audit that is given the function."""
    rng = np.random.default_rng(3)
    X, y = rng.uniform(-2, 2, (90, 3)), rng.uniform(-30, 50, 90)
    X[rng.random(X.shape) < 0.2] = 0
    weights = rng.uniform(0, 2, 90)

    def booster():
        return kind(learner, n=3, label_range=label_range)

    watched = booster()
    certificate = certify(watched, X, y, weights)
    linear, *others, constant = certificate.comparisons
    A = np.column_stack([np.ones(90), X])
    root = np.sqrt(weights)
    w = np.linalg.lstsq(root[:, None] * A, root * y, rcond=None)[0]
    for one, f in ((linear, A @ w), (constant, np.full(90, np.average(y, weights=weights)))):
        expected = audit(booster(), X, y, f, 1.0, weights)
        assert one.comparator_loss == pytest.approx(expected.comparator)
        assert one.measured.total == pytest.approx(expected.bound.total, rel=1e-6)
    for one in certificate.comparisons:
        assert one.measured_slack >= -1e-9 * one.loss
    assert len(others) == isinstance(learner, Stumps)
    assert watched.core.records is None  # the pass is over


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("label_range", [(-1, 1), (0, 1)])
def test_classes_are_compared_with_a_constant(loss, label_range):
    rng = np.random.default_rng(0)
    X, truth = rng.uniform(-1, 1, (200, 2)), rng.random(200) < 0.7
    y = np.where(truth, label_range[1], label_range[0])
    booster = SpanBoost(LinearSGD(), n=4, loss=loss, label_range=label_range)
    witness = Witness(booster)
    scores = booster.learn_many(X, y)
    witness.add(X, y)
    sign = np.where(truth, 1.0, -1.0)
    value = (
        (lambda s: np.log1p(np.exp(-sign * s)))
        if loss == "logistic"
        else (lambda s: np.maximum(1 - sign * s, 0))
    )
    certificate = witness.certificate(float(value(scores).sum()))
    (one,) = certificate.comparisons
    p = truth.mean()
    best = math.log(p / (1 - p)) if loss == "logistic" else 1.0
    assert one.comparator_loss == pytest.approx(value(best).sum())
    assert one.measured_slack >= -1e-9


def test_other_losses_have_no_certificate():
    with pytest.raises(ValueError, match="squared loss"):
        Witness(SpanBoost(LinearSGD(), n=2, loss="absolute"))


def test_the_text_for_too_many_features():
    rows = [{f"f{k}": 1.0 for k in range(1100)}]
    witness = Witness(SpanBoost(LinearSGD(), n=2))
    witness.add(rows, np.zeros(1))
    certificate = witness.certificate(1.0)
    assert "more than 1,024 features" in list(describe(certificate))[1]
    assert certificate.unmeasured == "some rows were added that the model had not just learned"
    shown = as_json(certificate)
    assert shown["bound"] is shown["measured"] is None
    assert shown["comparator"] == "the best constant"
    assert set(shown) >= set(as_json(certify(ball(), np.zeros((2, 1)), np.ones(2))))


def test_the_text_for_a_model_that_follows_a_change():
    """The rule reverses: no fixed function can follow it, and the regret is negative."""
    x = np.tile([0.5, -0.5], 600)
    y = np.where(np.arange(1200) < 600, 1.0, -1.0) * x
    certificate = certify(SpanBoost(LinearSGD(), n=4), x[:, None], y)
    assert certificate.comparisons[0].regret < 0
    assert "no such function" in "\n".join(describe(certificate))


# --------------------------------------------------------------------------------------------
# The command


@pytest.fixture
def table(tmp_path):
    pytest.importorskip("spanboost.data.formats.csv")
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (300, 3)).astype(np.float32)
    y = 50 + 40 * np.clip(X @ [1.5, -0.8, 0.3], -1, 1)
    path = tmp_path / "rows.csv"
    body = np.column_stack([X, y])
    np.savetxt(path, body, delimiter=",", header="a,b,c,y", comments="", fmt="%.9g")
    return path, X, y


UNBOUNDED = ["--learner", "ball", "--label-range", "10,90", "-n", "8"]
BALL = [*UNBOUNDED, "--x-norm", "1"]


def test_evaluate_prints_a_certificate(table, capsys):
    path, X, y = table
    assert main(["evaluate", str(path), *BALL, "--certificate", "--json"]) == 0
    out, err = capsys.readouterr()
    shown = json.loads(out)["certificate"]
    W = best_linear(X, (y - 50) / 40)
    booster = SpanBoost(LinearBall(1.0), n=8, label_range=(10, 90))
    audit = audit_span(booster, X, y, X @ W.T, linear_norm(W, D=1, x_norm=1))
    assert shown["regret"] == pytest.approx(1600 * audit.regret, rel=1e-5)
    assert shown["regret_per_row"] == pytest.approx(shown["regret"] / 300)
    assert shown["bound"] == pytest.approx(1600 * audit.bound.total, rel=1e-5)
    assert shown["slack"] == pytest.approx(shown["bound"] - shown["regret"])
    assert shown["loss_per_row"] == pytest.approx(json.loads(out)["loss"])
    assert "\n".join(shown["words"]) in err
    assert err.index("finished run") < err.index("certificate")


def test_the_causes_of_the_regret_are_drawn(table, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    path, plot, report = str(table[0]), tmp_path / "causes.svg", tmp_path / "report.html"
    drawn = ["--certificate", "--plot-certificate", str(plot), "--report", str(report), "--json"]
    assert main(["evaluate", path, *BALL, *drawn]) == 0
    shown = json.loads(capsys.readouterr().out)["certificate"]
    causes = shown["measured"]["terms"]
    assert sum(causes.values()) == pytest.approx(shown["measured_bound"])
    assert len(shown["measured"]["stages"]) == 8
    assert shown["measured_bound"] == pytest.approx(
        causes["initial"] + sum(shown["measured"]["stages"])
    )
    assert plot.read_bytes().startswith(b"<?xml")
    page = report.read_text()
    assert "<h2>Certificate</h2>" in page
    assert page.count("<svg ") == 2
    assert f"{shown['measured_bound']:.6g}" in page
    assert main(["evaluate", path, *BALL, "--quiet", "--report", str(report)]) == 0
    assert "<h2>Certificate</h2>" not in report.read_text()


def test_a_baseline_changes_nothing(table, capsys):
    path, _, _ = table
    shown = []
    for more in ([], ["--baseline"]):
        assert main(["evaluate", str(path), *BALL, "--certificate", "--json", *more]) == 0
        shown.append(json.loads(capsys.readouterr().out)["certificate"])
    assert shown[0] == shown[1]


def test_a_model_from_a_file_has_no_bound(table, tmp_path, capsys):
    path, model = str(table[0]), str(tmp_path / "model.sb")
    assert main(["train", path, "-o", model, *BALL, "--quiet"]) == 0
    assert main(["evaluate", path, "-i", model, "-t", "--certificate", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["certificate"]
    assert shown["bound"] is None
    assert "used" in shown["unproved"]
    assert main(["predict", path, "-m", model, "-o", str(tmp_path / "p.csv")]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--loss", "absolute", "--certificate"], "--certificate requires --loss squared"),
        (
            ["--compare", "linear,stumps", "--certificate"],
            "--certificate cannot be combined with --compare",
        ),
        (
            ["--learner", "ball", "--label-range", "0,1"],
            "--x-norm is required by the learner 'ball'",
        ),
        (["--learner", "ball", "--x-norm", "1"], "--label-range must be (low, high)"),
        (["--x-norm", "1"], "--x-norm does not apply to learner 'auto'"),
        ([*BALL, "--plot-certificate", "x.png"], "--plot-certificate needs --certificate"),
        ([*BALL, "-l", "0.1"], "--rate is not a parameter of the learner"),
        ([*BALL, "-b", "10"], "--bits is not a parameter of the learner"),
        ([*UNBOUNDED, "--x-norm", "-1"], "--x-norm must be a number above 0 (got -1.0)"),
        ([*UNBOUNDED, "--x-norm", "0.1"], "rows.csv:2: the row's norm is"),
        ([*BALL, "--categorical", "a"], "--learner ball needs numeric features"),
    ],
)
def test_bad_usage_is_one_line_and_status_2(table, arguments, message, capsys):
    assert main(["evaluate", str(table[0]), *arguments]) == 2
    err = capsys.readouterr().err
    assert message in err.splitlines()[-1]


def test_a_ball_reads_tables(tmp_path, capsys):
    path = tmp_path / "rows.svmlight"
    path.write_text("1 1:1\n")
    assert main(["evaluate", str(path), *BALL]) == 2
    assert "requires a table of numbers" in capsys.readouterr().err


def test_rows_that_are_too_long_can_be_skipped(table, tmp_path, capsys):
    path, X, _ = table
    short = int((np.linalg.norm(X.astype(np.float64), axis=1) <= 0.5).sum())
    limit = ["--x-norm", "0.5", "--on-error", "skip", "--json"]
    assert main(["evaluate", str(path), *UNBOUNDED, *limit, "--certificate"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["examples"], result["skipped"]) == (short, 300 - short)
    assert result["certificate"]["slack"] > 0


def test_a_sparse_stream_has_a_certificate_too(tmp_path, capsys):
    path = tmp_path / "rows.svmlight"
    path.write_text("3 1:1\n5 1:2\n7 1:3\n9.5 1:4 7:0\n")
    arguments = ["--learner", "stumps", "--certificate", "--json", "--quiet"]
    assert main(["evaluate", str(path), *arguments]) == 0
    shown = json.loads(capsys.readouterr().out)["certificate"]
    # the residuals of 3, 5, 7, 9.5 from their line have a squared sum of 0.075
    assert shown["comparator_loss"] == pytest.approx(0.075)
    assert shown["features"] == 1
    assert len(shown["others"]) == 2


@pytest.mark.parametrize(("booster", "learned"), [(SpanBoost, True), (HullBoost, False)])
def test_only_algorithm_1_has_a_regret_of_sigma(booster, learned):
    X = np.random.default_rng(0).uniform(-1, 1, (50, 2))
    certificate = certify(booster(LinearBall(2.0), n=4, feedback="linear"), X, X @ [0.3, -0.2])
    words = "\n".join(describe(certificate))
    assert ("learned shrinkage sigma" in words) == learned
    first = certificate.comparisons[0]
    shown = pictured(certificate)
    assert sum(shown.terms.values()) == pytest.approx(first.measured.total)
    assert ("sigma" in shown.terms) == learned
    assert ("sigma" in shown.stages) == learned


def test_a_shrinkage_that_is_not_learned_is_named_so():
    X = np.random.default_rng(0).uniform(-1, 1, (50, 2))
    certificate = certify(HullBoost(Stumps(), n=4), X, X @ [0.5, -0.5])
    shown = {line for line in describe(certificate) if "shrinkage" in line}
    assert shown
    assert all("always 1 in Algorithm 2" in line for line in shown)
