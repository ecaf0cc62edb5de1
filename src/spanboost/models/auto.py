"""AutoBoost: boosters side by side in one pass, and an aggregator that combines them."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import Caller
from spanboost.compiling.threads import cpu_count, run_in_threads
from spanboost.learners.linear import LinearSGD
from spanboost.learners.network import Network
from spanboost.learners.trees import Trees
from spanboost.losses import Logistic, Softmax, predicts_scores, resolve
from spanboost.models.aggregation import (
    LogisticAggregator,
    SquaredAggregator,
    combine_rows,
    mix_rows,
    new_aggregator,
)
from spanboost.models.booster import Booster, CheckedBlock, HullBoost, SpanBoost, single_answer
from spanboost.models.committee import Committee
from spanboost.rows.validation import to_numbers

COMBINATION = "regression over all"  # the candidate that is no expert
_FEW = 64  # rows that are not worth a second thread


class Expert(NamedTuple):
    """One of those who are asked."""

    name: str
    learner: Any
    parameters: dict[str, Any]
    n: int = 1
    eta: float | None = None  # None: one copy, and no boosting
    replay: int = 0


# The trees differ in what they are good for; those that take long come first. Of linear functions
# and networks one copy costs next to nothing.
_SIMPLE = (
    Expert("linear", LinearSGD, {"rate": 0.5}),
    Expert("linear quick", LinearSGD, {"rate": 2.0}),
    Expert("network", Network, {"rate": 0.5, "hidden": 20}),
)
BUDGETS: dict[str, tuple[Expert, ...]] = {
    "fast": (Expert("trees", Trees, {"delay": 8}, 64, 0.15), *_SIMPLE),
    "default": (
        Expert("trees replayed", Trees, {"depth": 10}, 100, 0.1, replay=2),
        Expert("trees eager", Trees, {"depth": 10, "evidence": 5.0}, 100, 0.1),
        Expert("trees slow", Trees, {"delay": 3}, 200, 0.05),
        Expert("trees recent", Trees, {"depth": 10, "evidence": 5.0, "recency": 2}, 100, 0.1),
        *_SIMPLE,
    ),
    "thorough": (
        Expert("trees replayed slow", Trees, {"delay": 3, "depth": 10}, 200, 0.05, replay=3),
        Expert("trees replayed eager", Trees, {"depth": 10, "evidence": 5.0}, 100, 0.1, replay=3),
        Expert("trees slow", Trees, {"delay": 3}, 200, 0.05),
        Expert("trees slow eager", Trees, {"delay": 3, "depth": 10, "evidence": 5.0}, 200, 0.05),
        Expert("trees deep recent", Trees, {"depth": 12, "recency": 2}, 100, 0.1),
        Expert("trees recent", Trees, {"recency": 2}, 100, 0.1),
        *_SIMPLE,
    ),
}


class AutoBoost:
    """A fixed list of boosters learns every row; what they forecast is combined. No tuning.

    Nothing is chosen in advance: how the experts are weighed is learned from the same stream; under
    squared loss with a regret against the best of them that grows like the logarithm of its length
    (docs/auto.md).

    loss: a name or a loss object, as for `SpanBoost`.
    budget: "fast", "default" or "thorough": more experts, less error, more time.
    label_range: as for `SpanBoost`; losses that predict scores take (-1, 1) for "auto".
    seed: of the trees and the network.
    bits: None to tell all columns of sparse rows apart; else they are hashed into 2^bits.

    >>> import numpy as np
    >>> from spanboost import AutoBoost
    >>> X = np.random.default_rng(0).uniform(-1, 1, (3000, 3))
    >>> y = 1000 + 500 * np.sign(X[:, 0] * X[:, 1])
    >>> model = AutoBoost(budget="fast")
    >>> predictions = model.learn_many(X, y)
    >>> bool(np.mean((predictions - y)[2000:] ** 2) < 0.2 * np.var(y))
    True
    >>> sum(model.weights_.values())
    1.0...
    """

    def __init__(
        self,
        loss: Any = "squared",
        budget: str = "default",
        label_range: tuple[float, float] | str = "auto",
        seed: int = 0,
        bits: int | None = None,
    ) -> None:
        self.loss, self.budget, self.label_range = loss, budget, label_range
        self.seed, self.bits = seed, bits
        if budget not in BUDGETS:
            raise ValueError(f"budget={budget!r} is not known: {', '.join(map(repr, BUDGETS))}")
        self.assemble(dict(self._experts()))
        self.schema: Any = None  # how files were read for it (data/schema.py), if they were
        self._call = Caller()

    def assemble(self, experts: dict[str, Booster]) -> None:
        """Take these experts, which have learned the same rows, and know nothing of them."""
        first = next(iter(experts.values()))
        self.experts, self.n = experts, len(experts)
        self.loss_, self._labels = first.loss_, first._labels
        self.combination = new_aggregator(self.loss_, self.n)

    def predict_one(self, x: Any) -> Any:
        """The prediction for one row: a number, or a vector of R^d."""
        return self._mixed([expert.predict_one(x) for expert in self.experts.values()])

    def learn_one(self, x: Any, y: Any, weight: float = 1.0) -> Any:
        """Learn one row; returns the prediction made before the label was seen."""
        first = next(iter(self.experts.values()))
        plain = weight == 1 and first._labels.single(y) is not None
        if not plain or first._reader.single(x) is None:
            return single_answer(self.learn_many([x], [y], [weight]))
        answers = [expert.learn_one(x, y) for expert in self.experts.values()]
        return self._mixed(answers, np.full((1, 1), float(y)), np.ones(1))

    def predict_many(self, X: Any) -> Array:
        """Predictions for a block of rows; learns nothing."""
        experts = list(self.experts.values())
        block = experts[0]._reader.numbered(X)  # they all know the same names
        answers = _together(lambda expert: expert.predict_many(block), experts, block.rows)
        return self._combined(answers)

    def learn_many(self, X: Any, y: Any, weights: Any = None) -> Array:
        """Learn a block of rows, in order; returns the predictions, each made before its label.

        As for `SpanBoost`: the whole block is checked first.
        """
        experts = list(self.experts.values())
        X = experts[0]._reader.numbered(X)
        block = experts[0].checked(X, y, weights)
        rest = [block._replace(reading=expert._reader.read(X)) for expert in experts[1:]]
        given = list(zip(experts, [block, *rest], strict=True))
        for expert, part in given:  # if there is no room for it, none has learned any of it
            expert._start(part.reading, part.reading.features)
        answers = _together(_learn, given, len(block.weights))
        labels = block.labels if self._labels.scores else to_numbers(y)
        labels = np.array(labels, np.float64).reshape(block.labels.shape)
        return self._combined(answers, labels, block.weights.astype(np.float64))

    @property
    def started(self) -> bool:
        """Whether it has seen a row."""
        return all(expert.started for expert in self.experts.values())

    @property
    def weights_(self) -> dict[str, float]:
        """How much the answer relies on each expert, and on the regression over all of them."""
        names = list(self.experts)
        if isinstance(self.combination, SquaredAggregator | LogisticAggregator):
            names.append(COMBINATION)
        return dict(zip(names, self.combination.share.weights.tolist(), strict=True))

    def __repr__(self) -> str:
        state = "started" if self.started else "fresh"
        return f"<AutoBoost: {self.n} experts, budget {self.budget!r}, {state}>"

    def _experts(self) -> Iterator[tuple[str, Booster]]:
        loss = resolve(self.loss)
        scores = predicts_scores(loss)
        label_range = (-1, 1) if scores and self.label_range == "auto" else self.label_range
        for i, (name, learner, parameters, n, eta, replay) in enumerate(BUDGETS[self.budget]):
            made = learner(bits=self.bits, **parameters)
            shared: dict[str, Any] = {
                "loss": self.loss,
                "label_range": label_range,
                "replay": replay,
                "seed": self.seed + i,
            }
            if eta is None:
                yield name, HullBoost(made, n=n, **shared, **_room(loss, boosted=False))
            else:
                yield name, SpanBoost(made, n=n, eta=eta, **shared, **_room(loss, boosted=True))

    def _combined(
        self, answers: list[Array], labels: Array | None = None, weights: Array | None = None
    ) -> Array:
        """One forecast of those of all experts; with labels, the weights learn too."""
        rows = len(answers[0])
        forecasts = np.stack([answer.reshape(rows, -1) for answer in answers], axis=2)
        out: Array = np.empty((rows, forecasts.shape[1]))
        if labels is None:
            self._call(mix_rows, self.combination, forecasts, out)
        else:
            self._call(combine_rows, self.combination, forecasts, labels, weights, out)
        return out[:, 0] if forecasts.shape[1] == 1 else out

    def _mixed(self, answers: list[Any], *labels: Array) -> Any:
        return single_answer(self._combined([np.array([answer]) for answer in answers], *labels))


AnyModel = Booster | AutoBoost | Committee


def _room(loss: Any, *, boosted: bool) -> dict[str, Any]:
    """Bounds wide enough for scores: the paper's would keep probabilities far from 0 and 1."""
    if isinstance(loss, Logistic):
        return {"D": 3.0, "B": 6.0} if boosted else {"D": 6.0}
    if isinstance(loss, Softmax):
        return {"D": 10.0, "B": 20.0, "alpha": 0.1} if boosted else {"D": 10.0}
    return {}


def _learn(given: tuple[Booster, CheckedBlock]) -> Array:
    expert, block = given
    return expert.learn_checked(block)


def _together(task: Callable[[Any], Array], items: Iterable[Any], rows: int) -> list[Array]:
    """The task of every item; no two of them share anything, so that threads do not matter."""
    if rows < _FEW or cpu_count() == 1:
        return list(map(task, items))
    return run_in_threads(task, items, cpu_count())
