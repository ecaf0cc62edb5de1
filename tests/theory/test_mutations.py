"""Mutation tests: each wrong constant must make a test of the theory fail.

Each case changes one line in a copy of the package and runs one test on the copy: the quickest of
those that fail.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import spanboost
from spanboost.compiling.source_stamp import kernel_files

pytestmark = [pytest.mark.slow, pytest.mark.process]
TESTS = Path(__file__).parents[1]

# file of tests, changed file, test that fails: what is right, and what is wrong
MUTANTS = {
    "theory/test_theorems.py": {
        "core/algorithms.py": {
            "test_algorithm_1_is_tight_for_linear_losses": [
                ("keep = one - self.sigma[i] * self.eta[i]", "keep = one"),
                ("keep = one - self.sigma[i]", "keep = one + self.sigma[i]"),
                ("keep = one - self.sigma[i] * self.eta[i]", "keep = one - self.sigma[i]"),
                ("trace.slope[k, i] /= self.L_B", "trace.slope[k, i] /= self.L_B * 2"),
            ],
            "test_sigma_by_hand": [
                ("np.sqrt(self.eta.dtype.type(self.t[0]))", "self.t[0]"),
                ("(self.L_B * self.B * np.sqrt", "(self.L_B * np.sqrt"),
                ("(self.L_B * self.B * np.sqrt", "(self.B * np.sqrt"),
                ("self.sigma[i] + alpha_t * along", "self.sigma[i] - alpha_t * along"),
                ("dot(trace.slope[:, i], trace.before[:, i])", "dot(trace.slope[:, i], trace.y)"),
            ],
            "test_sigma_follows_an_adversary_that_reverses": [
                (
                    "max(min(self.sigma[i] + alpha_t * along, one), zero)",
                    "self.sigma[i] + alpha_t * along",
                ),
            ],
            "test_projection_costs_at_most_eta_eps_D": [
                ("            trace.output.project(y, self.B)\n", ""),
            ],
            "test_scaled_algorithms_stage_by_stage": [
                (
                    "(self.scale * trace.h[k, i])\n            trace.output.project",
                    "trace.h[k, i]\n            trace.output.project",
                ),
            ],
            "test_greedy_losses_by_hand": [
                ("keep = one - self.eta[i]\n", "keep = one\n"),
            ],
            "test_algorithm_2_is_tight_where_the_proof_is": [
                ("slope[i] /= self.L_D", "slope[i] *= self.L_D"),
            ],
        },
        "core/trace.py": {
            "test_algorithm_2_is_tight_where_the_proof_is": [
                ("    at = trace.before\n", "    at = trace.kept\n"),
            ],
            "test_corollary_1_stage_by_stage": [
                ("    if at_final:\n", "    if False:\n"),
                ("            slope[i] *= weight\n", "            slope[i] *= 1\n"),
            ],
        },
        "models/booster.py": {
            "test_algorithm_1_stage_by_stage": [
                ('constant(self.loss_, "L", self.B_)', 'constant(self.loss_, "L", self.D)'),
            ],
            "test_corollary_1_stage_by_stage": [
                ("return self.eta_ * self.n * reach  # Corollary 1", "return reach"),
            ],
            "test_greedy_losses_by_hand": [
                ("self.steps_ = 2 / (np.arange", "self.steps_ = 1 / (np.arange"),
                ("(np.arange(1, self.n + 1) + 1.0)", "(np.arange(1, self.n + 1) + 2.0)"),
            ],
            "test_scaled_algorithms_stage_by_stage": [
                ('constant(self.loss_, "L", self.reach_)', 'constant(self.loss_, "L", self.D)'),
            ],
        },
        "models/task.py": {
            "test_greedy_losses_by_hand": [
                ("alpha = booster.scale * step", "alpha = step"),
            ],
        },
        "core/feedback.py": {
            "test_greedy_losses_by_hand": [
                ("slope[i] *= self.weight * self.alpha[i]", "slope[i] *= self.weight"),
                ("trace.kept if self.shrunk", "trace.before if self.shrunk"),
            ],
        },
    },
    "losses/test_losses.py": {
        "losses/constants.py": {
            "test_radius_where_beta_overflows": [
                ("eta * beta * b * b >= eps * D", "beta * b * b >= eps * D"),
                ("eta * beta * b * b >= eps * D", "eta * beta * b >= eps * D"),
            ],
        },
    },
    "theory/test_bounds.py": {
        "theory/bounds.py": {
            "test_theorem_1_total_adds_all_four_terms": [
                ("smoothness=3 * eta", "smoothness=2 * eta"),
                ("sigma=2 * L_B", "sigma=1.5 * L_B"),
                ("initial=(1 - eta / f_norm) ** N", "initial=(1 - eta) ** N"),
            ],
            "test_theorem_2_term_by_term": [
                ("smoothness=8 * beta_D", "smoothness=4 * beta_D"),
            ],
        },
    },
    "theory/test_hindsight.py": {
        "theory/hindsight.py": {
            "test_the_gap_is_not_too_small": [
                ("_square(residuals), 2 * float", "_square(residuals), float"),
            ],
            "test_the_best_in_a_ball_satisfies_its_conditions": [
                ("np.sqrt(weights)[:, None] * A", "weights[:, None] * A"),
            ],
            "test_rows_of_weight_0_do_not_count": [
                ("np.abs(A[weights > 0])", "np.abs(A)"),
            ],
            "test_the_weights_are_those_of_the_best_function": [
                ("- (centre - self.shift)", "+ (centre - self.shift)"),
            ],
            "test_the_triangle_has_the_losses_of_all_rows": [
                ("2 + 2 * (codes[code_row, j] * C + j)", "2 + 2 * (codes[code_row, j] + j)"),
            ],
        },
    },
    "theory/test_recursion.py": {
        "theory/recursion.py": {
            "test_linear_losses_have_no_slack": [
                ("g[k, i] *= w\n", "g[k, i] *= 1\n"),
                ("sums.along_copies[i] += g", "sums.along_copies[i] += 0.99 * g"),
                ("sums.along_shrunk[i] += g", "sums.along_shrunk[i] += 0.99 * g"),
                ("sums.along_sums[i] += g", "sums.along_sums[i] += 0.99 * g"),
                ("now.at_before[i]) - rise", "now.at_before[i])"),
                ("(sums.along_copies - offset / f_norm)", "(sums.along_copies - offset)"),
                ("(sums.along_sums / f_norm - sums", "(sums.along_sums - sums"),
            ],
            "test_a_bound_does_not_depend_on_the_units": [
                ("sums.along_centre[i] += g", "sums.along_centre[i] += 0.99 * g"),
                ("now.shrunk[k, i] = units.half * (y - kept)", "now.shrunk[k, i] = (y - kept)"),
                ("along - sums.along_centre", "along"),
            ],
            "test_a_large_norm_leaves_no_slack": [
                ("sums.loss[i] += w * now.at_before", "sums.loss[i] += now.at_before"),
                ("sums.projection[i] += w", "sums.projection[i] += 0 * w"),
            ],
            "test_every_term_is_that_of_the_proof": [
                ("units.half * (units.scale * h)", "units.half * h"),
                ("left[1:] * sums.curvature", "left[:-1] * sums.curvature"),
                ("if self.at_final:  # the tangents", "if False:  # the tangents"),
            ],
        },
        "theory/measured_pass.py": {
            "test_a_model_of_several_boosters_is_measured_through_one_of_them": [
                ("self.aggregation += [float(", "self.aggregation += [0.99 * float("),
            ],
        },
        "models/booster_core.py": {
            "test_a_measured_booster_predicts_the_same": [
                ("StageRecord(out.copy(), ", "StageRecord(out, "),
            ],
        },
    },
    "theory/test_certificate.py": {
        "theory/certificate.py": {
            "test_theorem_2_by_hand": [
                ("(half**2 * term for", "(half * term for"),
                ("reach / x_norm", "reach"),
            ],
            "test_theorem_1_by_hand": [
                ("linear_norm(best.W / half", "linear_norm(best.W"),
                ("- best.loss) / half**2", "- best.loss)"),
            ],
            "test_a_scaled_class_is_larger": [
                ("reach = half * booster.scale * booster.D", "reach = half * booster.D"),
            ],
            "test_stumps_are_compared_with_convex_combinations": [
                ("in_hull(centre, reach)", "in_hull(centre, 2 * reach)"),
            ],
        },
        "theory/conditions.py": {
            "test_a_bound_applies_where_a_theorem_covers_the_pass": [
                ("if heaviest > 1", "if heaviest > 2"),
            ],
        },
        "theory/regret.py": {
            "test_a_scaled_class_has_shorter_functions": [
                ("f_norm / booster.scale", "f_norm"),
            ],
            "test_theorem_1_by_hand": [
                ("linear_regret(booster, T) / booster.L_B_", "linear_regret(booster, T)"),
            ],
            "test_theorem_2_by_hand": [
                ("D=booster.reach_", "D=2 * booster.reach_"),
            ],
        },
    },
    "analysis/test_confidence_sequence.py": {
        "analysis/confidence_sequence.py": {
            "test_widths_are_those_of_the_plain_transcription": [
                ("math.log(2 / level)", "math.log(1 / level)"),
            ],
            "test_charges_are_never_lower_than_those_of_the_plain_transcription": [
                ("-np.log1p(-_EXPONENTS) - _EXPONENTS", "_EXPONENTS**2 / 2"),
                ("sums[2] + np.log((j + 1) * (j + 2))", "sums[2]"),
                ("WIDE = 9 / 8", "WIDE = 1"),
                ("sums[2] /= 4", "sums[2] /= 8"),
            ],
            "test_a_small_difference_is_found_and_the_interval_contains_it": [
                ("np.log((j + 1) * (j + 2)))", "np.zeros(SLOTS))"),
                ("limit = sums[0]", "limit = max(sums[0], abs(value))"),
            ],
            "test_one_absurd_value_does_not_hide_a_difference": [
                ("min(max(value, -limit), limit)", "value"),
            ],
        },
    },
    "core/test_experts.py": {
        "core/experts.py": {
            "test_the_bounds_by_hand": [
                ("return math.log(K) / rate", "return math.log(K) / (2 * rate)"),
                ("(switches + 1) * math.log(K * T)", "(switches + 1) * math.log(K)"),
                ("return (switches + 1) *", "return (switches + 0.5) *"),
                ("K * label**2 * math.log1p", "K * label**2 / 2 * math.log1p"),
            ],
            "test_fixed_share_is_a_mixture_of_all_sequences_of_experts": [
                ("share = 1 / (self.rounds[0] + 1)", "share = 0.5 / (self.rounds[0] + 1)"),
            ],
            "test_the_bound_of_ridge_regression_is_tight": [
                ("answer / (1 + weight * size)", "answer"),
                ("part = weight / (1 + weight * size)", "part = weight"),
            ],
        },
    },
    "learners/test_learners.py": {
        "core/experts.py": {
            "test_regret_bounds_by_hand": [
                ("2 * math.sqrt(T / 2", "math.sqrt(T / 2"),
                ("math.sqrt(math.log(M) / 8)", "0"),
            ],
            "test_draws_over_time_follow_the_weights_of_hedge": [
                ("8 * math.log(M)", "2 * math.log(M)"),
            ],
        },
        "learners/ball.py": {
            "test_regret_bounds_by_hand": [
                ("return 2 * math.sqrt(2 * T) * D", "return math.sqrt(2 * T) * D"),
            ],
        },
        "learners/symmetric.py": {
            "test_the_negated_copy_learns_which_function_to_negate": [
                ("slope[k, 2 * i + 1] = s, -s", "slope[k, 2 * i + 1] = s, s"),
            ],
        },
    },
}


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A copy of the package, which stays in one place so that its compiled code is found again."""
    folder = tmp_path_factory.mktemp("mutants")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(spanboost.__file__).parent, folder / "spanboost", ignore=ignored)
    return folder


def run(package, compiled, tests):
    environment = os.environ | {
        "PYTHONPATH": str(package),
        "NUMBA_CACHE_DIR": str(compiled),
        "PYTHONDONTWRITEBYTECODE": "1",  # a change that keeps the size of a file would be missed
        "CI": "true",
    }
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", "-n0", "-p", "no:cacheprovider",
         *(str(TESTS / test) for test in tests)],
        env=environment, cwd=TESTS.parent, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("tests", MUTANTS)
def test_the_unchanged_copy_passes(package, tests):
    names = {f"{tests}::{name}" for file in MUTANTS[tests].values() for name in file}
    result = run(package, package / "compiled", sorted(names))
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("test", "file", "right", "wrong"),
    [
        (f"{tests}::{name}", file, right, wrong)
        for tests, files in MUTANTS.items()
        for file, names in files.items()
        for name, changes in names.items()
        for right, wrong in changes
    ],
)
def test_a_wrong_constant_is_noticed(package, tmp_path, test, file, right, wrong):
    path = package / "spanboost" / file
    text = path.read_text()
    assert right in text, "the list of mutants no longer fits the source"
    has_kernels = str(path) in dict(kernel_files(package / "spanboost"))
    compiled = tmp_path if has_kernels else package / "compiled"
    path.write_text(text.replace(right, wrong, 1))
    try:
        result = run(package, compiled, [test])
    finally:
        path.write_text(text)
    assert result.returncode == 1, result.stdout
    assert "failed" in result.stdout
