"""Mutation tests: each wrong constant must make a test of the theory fail.

Each case changes one line in a copy of the package and runs the tests of that line on the copy.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import spanboost

pytestmark = [pytest.mark.slow, pytest.mark.process]
TESTS = Path(__file__).parents[1]
THEOREMS = "theory/test_theorems.py"
BY_STAGES = "stage_by_stage or tight or sigma or projection or by_hand or weighs"

MUTANTS = {
    THEOREMS: {
        "core/algorithms.py": [
            # Algorithm 1
            ("keep = one - self.sigma[i] * self.eta[i]", "keep = one"),
            ("keep = one - self.sigma[i]", "keep = one + self.sigma[i]"),
            ("keep = one - self.sigma[i] * self.eta[i]", "keep = one - self.sigma[i]"),
            ("np.sqrt(self.eta.dtype.type(self.t[0]))", "self.t[0]"),
            ("(self.L_B * self.B * np.sqrt", "(self.L_B * np.sqrt"),
            ("(self.L_B * self.B * np.sqrt", "(self.B * np.sqrt"),
            ("self.sigma[i] + alpha_t * along", "self.sigma[i] - alpha_t * along"),
            (
                "max(min(self.sigma[i] + alpha_t * along, one), zero)",
                "self.sigma[i] + alpha_t * along",
            ),
            ("dot(trace.slope[:, i], trace.before[:, i])", "dot(trace.slope[:, i], trace.y)"),
            ("trace.slope[k, i] /= self.L_B", "trace.slope[k, i] /= self.L_B * 2"),
            ("            trace.output.project(y, self.B)\n", ""),
            (
                "(self.scale * trace.h[k, i])\n            trace.output.project",
                "trace.h[k, i]\n            trace.output.project",
            ),
            # Algorithm 2
            ("keep = one - self.eta[i]\n", "keep = one\n"),
            ("slope[i] /= self.L_D", "slope[i] *= self.L_D"),
        ],
        "core/trace.py": [
            ("    at = trace.before\n", "    at = trace.kept\n"),
            ("    if at_final:\n", "    if False:\n"),
            ("            slope[i] *= weight\n", "            slope[i] *= 1\n"),
        ],
        "models/booster.py": [
            ('constant(self.loss_, "L", self.B_)', 'constant(self.loss_, "L", self.D)'),
            ("return self.eta_ * self.n * reach  # Corollary 1", "return reach"),
            ("self.steps_ = 2 / (np.arange", "self.steps_ = 1 / (np.arange"),
            ("(np.arange(1, self.n + 1) + 1.0)", "(np.arange(1, self.n + 1) + 2.0)"),
            ('constant(self.loss_, "L", self.reach_)', 'constant(self.loss_, "L", self.D)'),
        ],
        "models/task.py": [("alpha = booster.scale * step", "alpha = step")],
        "core/feedback.py": [
            ("slope[i] *= self.weight * self.alpha[i]", "slope[i] *= self.weight"),
            ("trace.kept if self.shrunk", "trace.before if self.shrunk"),
        ],
    },
    "losses/test_losses.py": {
        "losses/constants.py": [
            ("eta * beta * b * b >= eps * D", "beta * b * b >= eps * D"),
            ("eta * beta * b * b >= eps * D", "eta * beta * b >= eps * D"),
        ],
    },
    "theory/test_bounds.py": {
        "theory/bounds.py": [
            ("smoothness=3 * eta", "smoothness=2 * eta"),
            ("sigma=2 * L_B", "sigma=1.5 * L_B"),
            ("smoothness=8 * beta_D", "smoothness=4 * beta_D"),
            ("initial=(1 - eta / f_norm) ** N", "initial=(1 - eta) ** N"),
        ],
    },
    "theory/test_hindsight.py": {
        "theory/hindsight.py": [
            ("_square(residuals), 2 * float", "_square(residuals), float"),
            ("np.sqrt(weights)[:, None] * A", "weights[:, None] * A"),
            ("np.abs(A[weights > 0])", "np.abs(A)"),
            ("- (centre - self.shift)", "+ (centre - self.shift)"),
            ("2 + 2 * (codes[code_row, j] * C + j)", "2 + 2 * (codes[code_row, j] + j)"),
        ],
    },
    "theory/test_recursion.py": {
        "theory/recursion.py": [
            ("g[k, i] *= w\n", "g[k, i] *= 1\n"),
            ("sums.along_copies[i] += g", "sums.along_copies[i] += 0.99 * g"),
            ("sums.along_shrunk[i] += g", "sums.along_shrunk[i] += 0.99 * g"),
            ("sums.along_sums[i] += g", "sums.along_sums[i] += 0.99 * g"),
            ("sums.along_centre[i] += g", "sums.along_centre[i] += 0.99 * g"),
            ("sums.loss[i] += w * now.at_before", "sums.loss[i] += now.at_before"),
            ("now.at_before[i]) - rise", "now.at_before[i])"),
            ("sums.projection[i] += w", "sums.projection[i] += 0 * w"),
            ("now.shrunk[k, i] = units.half * (y - kept)", "now.shrunk[k, i] = (y - kept)"),
            ("units.half * (units.scale * h)", "units.half * h"),
            ("along - sums.along_centre", "along"),
            ("(sums.along_copies - offset / f_norm)", "(sums.along_copies - offset)"),
            ("(sums.along_sums / f_norm - sums", "(sums.along_sums - sums"),
            ("left[1:] * sums.curvature", "left[:-1] * sums.curvature"),
            ("if self.at_final:  # the tangents", "if False:  # the tangents"),
        ],
        "theory/measured_pass.py": [
            ("self.aggregation += [float(", "self.aggregation += [0.99 * float("),
        ],
        "models/booster_core.py": [
            ("StageRecord(out.copy(), ", "StageRecord(out, "),
        ],
    },
    "theory/test_certificate.py": {
        "theory/certificate.py": [
            ("(half**2 * term for", "(half * term for"),
            ("linear_norm(best.W / half", "linear_norm(best.W"),
            ("- best.loss) / half**2", "- best.loss)"),
            ("reach / x_norm", "reach"),
            ("reach = half * booster.scale * booster.D", "reach = half * booster.D"),
            ("in_hull(centre, reach)", "in_hull(centre, 2 * reach)"),
        ],
        "theory/conditions.py": [
            ("if heaviest > 1", "if heaviest > 2"),
        ],
        "theory/regret.py": [
            ("f_norm / booster.scale", "f_norm"),
            ("linear_regret(booster, T) / booster.L_B_", "linear_regret(booster, T)"),
            ("D=booster.reach_", "D=2 * booster.reach_"),
        ],
    },
    "analysis/test_confidence_sequence.py": {
        "analysis/confidence_sequence.py": [
            ("math.log(2 / level)", "math.log(1 / level)"),
            ("-np.log1p(-_EXPONENTS) - _EXPONENTS", "_EXPONENTS**2 / 2"),
            ("np.log((j + 1) * (j + 2)))", "np.zeros(SLOTS))"),
            ("sums[2] + np.log((j + 1) * (j + 2))", "sums[2]"),
            ("WIDE = 9 / 8", "WIDE = 1"),
            ("min(max(value, -limit), limit)", "value"),
            ("limit = sums[0]", "limit = max(sums[0], abs(value))"),
            ("sums[2] /= 4", "sums[2] /= 8"),
        ],
    },
    "core/test_experts.py": {
        "core/experts.py": [
            ("return math.log(K) / rate", "return math.log(K) / (2 * rate)"),
            ("(switches + 1) * math.log(K * T)", "(switches + 1) * math.log(K)"),
            ("return (switches + 1) *", "return (switches + 0.5) *"),
            ("share = 1 / (self.rounds[0] + 1)", "share = 0.5 / (self.rounds[0] + 1)"),
            ("K * label**2 * math.log1p", "K * label**2 / 2 * math.log1p"),
            ("answer / (1 + weight * size)", "answer"),
            ("part = weight / (1 + weight * size)", "part = weight"),
        ],
    },
    "learners/test_learners.py": {
        "core/experts.py": [
            ("2 * math.sqrt(T / 2", "math.sqrt(T / 2"),
            ("math.sqrt(math.log(M) / 8)", "0"),
            ("8 * math.log(M)", "2 * math.log(M)"),
        ],
        "learners/ball.py": [("return 2 * math.sqrt(2 * T) * D", "return math.sqrt(2 * T) * D")],
        "learners/symmetric.py": [("slope[k, 2 * i + 1] = s, -s", "slope[k, 2 * i + 1] = s, s")],
    },
}


def run(folder, tests):
    only = ["-k", BY_STAGES] if tests == THEOREMS else []
    environment = {**os.environ, "PYTHONPATH": str(folder), "CI": "true"}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", "-n0", "-p", "no:cacheprovider", *only,
         str(TESTS / tests)],
        env=environment, cwd=TESTS.parent, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture
def package(tmp_path):
    source = Path(spanboost.__file__).parent
    shutil.copytree(source, tmp_path / "spanboost", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


@pytest.mark.parametrize("tests", MUTANTS)
def test_the_unchanged_copy_passes(package, tests):
    result = run(package, tests)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("tests", "file", "right", "wrong"),
    [
        (tests, file, right, wrong)
        for tests, files in MUTANTS.items()
        for file, changes in files.items()
        for right, wrong in changes
    ],
)
def test_a_wrong_constant_is_noticed(package, tests, file, right, wrong):
    path = package / "spanboost" / file
    text = path.read_text()
    assert right in text, "the list of mutants no longer fits the source"
    path.write_text(text.replace(right, wrong, 1))
    result = run(package, tests)
    assert result.returncode == 1, result.stdout
    assert "failed" in result.stdout
