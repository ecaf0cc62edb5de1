"""Boosters that choose the number of copies, the step or both while they learn.

One booster with N copies is a lane. Its partial sums y^n are the predictions of boosters with fewer
copies, because a copy never depends on later ones. They cost nothing. Candidates are the smallest n
that Algorithm 1 allows, 1/eta, then 2/eta, 4/eta and so on, and N. Each step in `STEPS` has a lane
of its own; all lanes share one bank (core/stacked.py). The prediction is a mixture of all
candidates, whose weights are learned as those of AutoBoost's experts are (mixture.py). The regret
of the mixture against each candidate is bounded (theory/choice.py).
"""

import math
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np

from spanboost import losses
from spanboost.checks import STEP_TOLERANCE
from spanboost.compiling.arrays import Array
from spanboost.compiling.interrupts import finishes
from spanboost.core.coefficients import coefficients
from spanboost.core.stacked import learn_partial_sums, predict_partial_sums
from spanboost.errors import ModelFileError, ParameterError, UserError
from spanboost.learners.contributions import shrinkage
from spanboost.learners.objects import ObjectLearner, as_learner
from spanboost.learners.text import call_text
from spanboost.models.booster import Booster, HullBoost, SpanBoost
from spanboost.models.booster_core import CheckedBlock
from spanboost.models.caution import Caution
from spanboost.models.mixture import Mixture, Units
from spanboost.models.model import Model, single_answer
from spanboost.models.spec import CHOOSE, default_copies
from spanboost.models.stacking import renew_trace, stack_cores
from spanboost.models.state import core_header, core_tensors, restore_core
from spanboost.rows.encoder import EncodedBlock
from spanboost.rows.user_types import RowLike, RowsLike

# The step 1 is first: its candidate with one copy is the learner alone.
STEPS = (1.0, 1 / 3, 1 / 9, 1 / 27)
COPIES_OF_OBJECTS = 8  # objects run as plain Python, so every copy counts
MOST_LANES = 64  # that a file may have


class Candidate(NamedTuple):
    """A booster that can be chosen."""

    lane: int
    n: int  # number of copies
    eta: float | None  # None for Algorithm 2


class Choosing(Booster):
    """A booster that chooses n or eta online. `SpanBoost` and `HullBoost` create it.

    lanes: boosters that never learn; they hold the parameters of each lane.
    candidates: the boosters that can be chosen.
    mixture: the weights of the candidates.
    caution: whether the mixture may predict; None if it always does.
    """

    caution: Caution | None = None
    fixed: ClassVar[type[Booster]]  # the class of the lanes
    default_n = CHOOSE

    def predict_one(self, x: RowLike) -> float | Array:
        """Return the prediction for one row: a number, or a vector of R^d."""
        rows = self.encoder.single(x)
        if rows is None:
            return Model.predict_one(self, x)
        return single_answer(self.predict_encoded(rows, 0, 1))

    @finishes
    def learn_one(self, x: RowLike, y: Any, weight: float = 1.0) -> float | Array:
        """Learn one row; return the prediction made before the label was seen."""
        core, mixture = self.core, self.mixture
        label = core.labels.single(y) if weight == 1 else None
        rows = None if label is None else core.encoder.single(x)
        if label is None or rows is None:
            return Model.learn_one(self, x, y, weight)
        known = np.full((1, 1), label, core.dtype)
        units, sums = mixture.units(core.labels), np.empty((1, len(self.places)), core.dtype)
        core.accept(rows)
        core.learn_span(rows, known, np.ones(1, core.dtype), sums, self._run, 0, 1)
        core.count_single(rows, y, label)
        in_units = core.labels.scores or mixture.aggregator.relative
        scored = known if in_units else np.full((1, 1), y)
        out = np.empty((1, 1))
        forecasts, weights = self._forecasts(sums), np.ones(1)
        mixture.learn_span(units, forecasts, scored.astype(np.float64), weights, out)
        answer = out[:, 0]
        if self.caution is not None:
            learned = known if core.labels.scores else np.full((1, 1), float(y))
            answer = self.caution.learn(self.loss_, learned, weights, forecasts, answer)
        return single_answer(answer)

    def predict_many(self, X: RowsLike) -> Array:
        """Return predictions for a block of rows; learn nothing."""
        rows = self.core.encoder.read(X)
        return self.predict_encoded(rows, 0, rows.number)

    def predict_encoded(self, rows: EncodedBlock, first: int, last: int) -> Array:
        """Return predictions for the rows first <= t < last of an encoded block."""
        forecasts = self._encoded_forecasts(rows, first, last)
        answers = self.mixture.combine(self.mixture.units(self.labels), forecasts)
        return answers if self.caution is None else self.caution.predict(forecasts, answers)

    def forecasts(self, X: Any) -> Array:
        """Return the predictions of all candidates, [rows, d, K]; learn nothing."""
        rows = self.core.encoder.read(X)
        return self._encoded_forecasts(rows, 0, rows.number)

    def learn_checked(self, block: CheckedBlock) -> Array:
        """Learn a block that was checked; nothing else may have been learned since."""
        return self._learn(block, block.weights)

    def learn_again(self, X: Any, y: Any, weights: Any = None) -> Array:
        """Learn a block of rows that were learned before; the weights of candidates stay."""
        block = self.check(X, y, weights)
        answers = self._learn(block, 0 * block.weights)
        self.mixture.restart_shift()
        return answers

    @property
    def needs_new_rows(self) -> bool:
        """Whether rows that were not learned before must come last."""
        return isinstance(self.loss_, losses.Quantile)

    @finishes
    def _learn(self, block: CheckedBlock, weights: Array) -> Array:
        """Learn a block; `weights` are those of its rows for the mixture."""
        core, parts, done = self.core, list[Array](), 0
        units = self.mixture.units(self.labels)
        out = np.empty((len(block.labels), core.d * len(self.places)), core.dtype)

        def finish(row: int) -> None:
            nonlocal done
            parts.append(self._forecasts(out[done : row + 1]))
            done = row + 1

        try:
            core.learn(block, out, self._run, finish)
        finally:  # the rows before an error were learned
            finish(core.learned - 1)
            answers = self._mix(block, units, np.concatenate(parts), weights.astype(np.float64))
        return answers

    def _mix(self, block: CheckedBlock, units: Units, forecasts: Array, weights: Array) -> Array:
        """Return predictions for the rows of a block that the core has learned, and learn them."""
        rows = slice(0, self.core.learned)
        forecasts, weights = forecasts[rows], weights[rows]
        in_units = self.labels.scores or self.mixture.aggregator.relative
        labels = np.array((block.labels if in_units else block.learned)[rows], np.float64)
        changes = [one for one in block.changes if one.row < len(weights)]
        answers = self.mixture.learn(units, forecasts, labels, weights, changes)
        if self.caution is None:
            return answers
        scored = (block.labels if self.labels.scores else block.learned)[rows]
        return self.caution.learn(self.loss_, scored, weights, forecasts, answers)

    def check_fixed(self, use: str) -> NoReturn:
        """Raise a UserError: n or eta is chosen online."""
        raise UserError(
            f"{use} needs a booster with a fixed n and eta, but this one chooses them online: give "
            "numbers instead of 'auto'"
        )

    def row_weights(self) -> tuple[Array, float]:
        """Return the weight of each copy in the row that was predicted last, and a constant."""
        trace, N = self.core.state.trace, self.lanes[0].n
        mixed, constant = self.mixture.aggregator.expert_weights()
        weights = np.zeros(len(self.steps_))
        for weight, (c, n, _) in zip(mixed, self.candidates, strict=True):
            part = slice(c * N, c * N + n)
            steps, lane = self.steps_[part], self.lanes[c]
            sums = trace.kept[:, part] + steps * lane.scale * trace.h[:, part]
            sigma = None if self.sigma_ is None else self.sigma_[part]
            shrink = shrinkage(sums, lane.reach_)
            weights[part] += weight * lane.scale * coefficients(steps, sigma, shrink)
        return weights, constant

    @property
    def weights_(self) -> dict[str, float]:
        """The weight of each candidate, and of the regressions over all of them."""
        return self.mixture.named_weights([self._name(one) for one in self.candidates])

    def details(self) -> dict[str, Any]:
        """Return what `inspect` shows besides parameters, as JSON."""
        return {"most_copies": self.lanes[0].n, "weights": self.weights_}

    def parameters(self) -> dict[str, Any]:
        """Return the class ("booster") and the parameters of the model, as JSON."""
        return super().parameters() | {"booster": self.fixed.__name__}

    def header(self) -> dict[str, Any]:
        """Return everything except the arrays, as JSON.

        The lanes are included: a later version may have other ones.
        """
        lanes = {"n": self.lanes[0].n, "eta": [getattr(one, "eta", None) for one in self.lanes]}
        own = core_header(self.core) | self.encoder.header()
        return self.parameters() | own | {"lanes": lanes}

    def tensors(self) -> Iterator[tuple[str, Array]]:
        """Yield the arrays of a booster that has started, by name."""
        yield from core_tensors(self.core)
        yield from self.mixture.tensors()

    def restore_state(self, header: dict[str, Any], tensors: dict[str, Array]) -> None:
        """Set the state to that of a header and arrays; a `ModelFileError` if they do not match."""
        N, steps = header["lanes"]["n"], header["lanes"]["eta"]
        if CHOOSE in (N, *steps):
            raise ModelFileError("lanes have numbers of copies and steps, not 'auto'")
        if not 1 <= len(steps) <= MOST_LANES:
            raise ModelFileError(f"a booster has 1 to {MOST_LANES} lanes (got {len(steps)})")
        self._assemble(N, steps)
        if header["rows"] is not None:
            self.mixture.restore(tensors)
        restore_core(self.core, header, tensors)
        self.encoder.restore_keys(header)

    def call_text(self) -> str:
        """Return the call that creates such a model, as Python source."""
        return call_text(self, self.fixed.__name__)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        renew_trace(self.core, self.lanes[0].n)

    def _build(self) -> None:
        losses.require_fixed_classes(self.loss, "n or eta = 'auto'")
        learner = as_learner(self.learner)
        objects = isinstance(learner, ObjectLearner)
        most = COPIES_OF_OBJECTS if objects else default_copies(self.learner)
        N = most if self.n == CHOOSE else self.n
        eta = getattr(self, "eta", None)
        allowed: list[float | None] = [step for step in STEPS if N * step >= 1 - STEP_TOLERANCE]
        self._assemble(N, allowed if eta == CHOOSE else [eta])

    def _assemble(self, N: int, steps: list[float | None]) -> None:
        """Set the lanes, which have N copies and these steps, before their first round."""
        given = {one.name: getattr(self, one.name) for one in fields(self)} | {"n": N}
        each: list[dict[str, Any]] = [{"eta": step} for step in steps]
        self.lanes = [self.fixed(**given | (one if "eta" in given else {})) for one in each]
        first = self.lanes[0]
        self.loss_ = losses.resolve(self.loss)
        self.offset_, self.smooth_ = first.offset_, first.smooth_
        if self.n == CHOOSE and first.core.state.algorithm.at_final:
            raise ParameterError(
                "n",
                "must be a number for a loss with a kink under linear feedback: there every copy "
                "depends on all the others; use greedy feedback",
            )
        self.steps_ = np.concatenate([lane.steps_ for lane in self.lanes])
        self.core = stack_cores(self.lanes)
        self.candidates = [one for c in range(len(self.lanes)) for one in self._candidates(c)]
        self.places = np.array([one.lane * N + one.n - 1 for one in self.candidates])
        self.mixture = Mixture(self.loss_, len(self.candidates))
        first_is_alone = self.candidates[0].n == 1
        foreign = isinstance(as_learner(self.learner), ObjectLearner)
        self.caution = Caution() if foreign and first_is_alone else None

    def _candidates(self, c: int) -> Iterator[Candidate]:
        """Yield the boosters that the partial sums of a lane stand for."""
        lane = self.lanes[c]
        eta = getattr(lane, "eta_", None)
        least = 1 if eta is None else math.ceil((1 - STEP_TOLERANCE) / eta)
        doubled = (least * 2**k for k in range(lane.n.bit_length()))
        smaller = [n for n in doubled if n < lane.n] if self.n == CHOOSE else []
        for n in (*smaller, lane.n):
            yield Candidate(c, n, eta)

    def _name(self, one: Candidate) -> str:
        chosen = [f"n={one.n}"] if self.n == CHOOSE else []
        if getattr(self, "eta", None) == CHOOSE:
            chosen.append(f"eta={one.eta:.3g}")
        return ", ".join(chosen)

    def _encoded_forecasts(self, rows: EncodedBlock, first: int, last: int) -> Array:
        core = self.core
        out = np.empty((last, core.d * len(self.places)), core.dtype)
        state = core.prepare(rows, 0)
        core.call(predict_partial_sums, state, self.places, rows.rows, out, first, last)
        return self._forecasts(out[first:])

    def _forecasts(self, sums: Array) -> Array:
        """Return partial sums in the units of the labels, [rows, d, K]."""
        values = sums.reshape(len(sums), self.core.d, len(self.places)).astype(np.float64)
        return self.labels.to_units(values.swapaxes(1, 2)).swapaxes(1, 2)

    def _run(
        self, rows: Any, labels: Array, weights: Array, out: Array, first: int, last: int
    ) -> None:
        state, places = self.core.state, self.places
        self.core.call(learn_partial_sums, state, places, rows, labels, weights, out, first, last)


class ChoosingSpan(Choosing, SpanBoost):
    """Algorithm 1 with n or eta chosen online."""

    fixed = SpanBoost

    @property
    def sigma_(self) -> Array:
        """The current shrinkage of every copy, lane by lane."""
        if not self.started:
            return np.zeros(len(self.steps_))
        sigma: Array = self.core.state.algorithm.each.sigma.copy()
        return sigma


class ChoosingHull(Choosing, HullBoost):
    """Algorithm 2 with n chosen online."""

    fixed = HullBoost


CLASSES: dict[type[Booster], type[Choosing]] = {SpanBoost: ChoosingSpan, HullBoost: ChoosingHull}
