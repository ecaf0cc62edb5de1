"""AutoBoost: several boosters learn the same rows, and an aggregator combines them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self, cast

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.interrupts import finishes
from spanboost.compiling.kernels import runs_plainly
from spanboost.compiling.step_schedule import StepSchedule
from spanboost.compiling.threads import cpu_count, run_in_threads
from spanboost.errors import ModelFileError
from spanboost.learners.constructors import own_constructor
from spanboost.learners.trees import Trees
from spanboost.losses import Softmax, predicts_scores, resolve
from spanboost.models.booster import Booster, HullBoost, SpanBoost
from spanboost.models.budgets import EXPERTS, FOR_CLASSES, expert_loss
from spanboost.models.expert_row import ExpertRow, new_expert_row
from spanboost.models.expert_steps import learn_in_steps, step_edges
from spanboost.models.header import parameters_from_json, parameters_to_json
from spanboost.models.loss_record import LOSSES, LossRecord
from spanboost.models.members import members_header, members_tensors, restore_members
from spanboost.models.mixture import AGGREGATOR, Mixture, stack
from spanboost.models.model import Composition, single_answer
from spanboost.models.new_past_stage import new_past_stage
from spanboost.models.past_model import AutoBlock, PastModel
from spanboost.models.past_stage import take_prefixed
from spanboost.models.recent_stage import new_recent_stage
from spanboost.models.refit_experts import new_refits
from spanboost.models.refitted import Refitted
from spanboost.models.spec import AutoSpec, score_bounds
from spanboost.rows.encoder import RowEncoder
from spanboost.rows.labels import Labels
from spanboost.rows.past_keys import NO_KEY
from spanboost.rows.past_rows import split_past
from spanboost.rows.row_sample import RowSample
from spanboost.rows.user_types import LabelLike, RowLike, RowsLike

_FEW = 64  # blocks with fewer rows run in one thread


@own_constructor({"step": "eta"})
class AutoBoost(AutoSpec, PastModel):
    """An ensemble of boosters that needs no tuning.

    Every expert in a fixed list learns every row. The weights of the experts are learned from the
    same stream. Under squared loss, the regret against the best expert grows like the logarithm of
    the number of rows (docs/auto.md).

    loss: a name or a loss object, as for `SpanBoost`.
    budget: "fast", "default", "thorough" or "exhaustive": more experts, lower error, more time.
    label_range: as for `SpanBoost`. For losses that predict scores, "auto" is (-1, 1).
    seed: random seed of the trees and the network.
    bits: hash the columns of sparse rows into 2^bits slots; None gives each column its own.
    recent: whether the last 1,000 rows correct the predictions, to follow drift (docs/drift.md).
        None: for all budgets except "fast", and losses for which that is possible.
    past: whether past labels correct the predictions (docs/time.md). None: as for recent.
    key: a column such as "store", or a tuple of columns; every value has past labels of its own.
    refit: whether two experts are LightGBM, refitted as the rows grow (docs/refitted.md). None:
        for the budgets "thorough" and "exhaustive", if LightGBM is installed. Such a model keeps
        rows, and cannot be exported.
    experts: `Refitted` models to add to the experts; they get the loss of this model.

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

    has_experts = True
    why_not_covered = "AutoBoost is bounded relative to its experts, not to a class of functions"

    _row: ExpertRow | None = None  # the row that was predicted or learned last, if it was alone

    __repr__ = PastModel.__repr__
    __eq__ = object.__eq__  # models with equal parameters are still different models
    __hash__ = object.__hash__

    experts: dict[str, Booster]  # an argument, and then all experts

    def __post_init__(self, experts: Iterable[Refitted]) -> None:
        super().__post_init__(experts)
        own = list(self._new_experts())
        added = new_refits(self, experts, own[0][1].label_range)
        self._assemble(dict([own[0], *added.items(), *own[1:]]))
        self.recent_stage, self.past_stage = new_recent_stage(self), new_past_stage(self)

    @property
    def parts(self) -> Mapping[str, Booster]:
        """The experts."""
        return self.experts

    @property
    def labels(self) -> Labels:
        """The label range so far, and how many rows were seen."""
        return self._first.labels

    @property
    def loss_(self) -> Any:
        """The loss, with the number of classes so far."""
        loss = resolve(self.loss)
        return self._first.loss_ if isinstance(loss, Softmax) else loss

    @property
    def encoder(self) -> RowEncoder:
        """The encoder of rows, with the feature names that all experts share."""
        return self._first.encoder

    @property
    def started(self) -> bool:
        """Whether the model has seen a row."""
        return all(expert.started for expert in self.experts.values())

    @property
    def weights_(self) -> dict[str, float]:
        """The weight of each expert, and of the regressions over all of them."""
        return self.mixture.named_weights(self.experts)

    def predict_one(self, x: RowLike) -> float | Array:
        """Return the prediction for one row: a number, or a vector of R^d."""
        row = self._single_row(x)
        if row is not None:
            return row.predict(self.labels, self._key(x))
        if self.stages:
            return super().predict_one(x)
        answers = [np.array([expert.predict_one(x)]) for expert in self.experts.values()]
        return single_answer(self._combine(answers))

    @finishes
    def learn_one(self, x: RowLike, y: LabelLike, weight: float = 1.0) -> float | Array:
        """Learn one row; return the prediction made before the label was seen."""
        label = self.labels.single(y) if weight == 1 else None
        row = None if label is None else self._single_row(x)
        if row is None or label is None:
            return super().learn_one(x, y, weight)
        return row.learn(self.labels, self._key(x), float(cast("float", y)), label)

    def _single_row(self, x: RowLike) -> ExpertRow | None:
        """Encode one row for all experts; None if it must be a block."""
        rows, row = self.encoder.single(x), self._row
        given = self.recent_stage, self.past_stage, runs_plainly()
        if row is None or row.rows is not rows or (row.recent, row.stage, row.plain) != given:
            self._row = row = new_expert_row(self, rows)
        return row

    def _key(self, x: RowLike) -> int:
        """Return the number of the key of a row."""
        stage = self.past_stage
        if stage is None or stage.key is None:
            return NO_KEY
        return int(stage.known_past([x], self.schema).keys[0])

    def predict_many(self, X: RowsLike) -> Array:
        """Return predictions for a block of rows; learn nothing."""
        block = self.encoder.encode(split_past(X)[0])
        return self.combine_predicted(X, block.X, self.forecasts(block))

    def forecasts(self, X: Any) -> Array:
        """Return the predictions of all experts, [rows, d, K]; learn nothing."""
        block, experts = self.encoder.encode(split_past(X)[0]), self.experts.values()
        return stack(self._for_each(lambda one: one.predict_many(block), experts, block.rows))

    def check(self, X: Any, y: Any, weights: Any = None) -> AutoBlock:
        """Return the block in the experts' terms; a `DataError` names the first bad row."""
        known = self.known_past(X)
        encoded = self.encoder.encode(split_past(X)[0], learn=True)
        first, *others = self.experts.values()
        block = first.check(encoded, y, weights)
        blocks = [block, *(block._replace(rows=one.encoder.read(encoded)) for one in others)]
        in_units = self.labels.scores or self.mixture.aggregator.relative
        labels = np.array(block.labels if in_units else block.learned, np.float64)
        units = self.mixture.units(self.labels)
        return AutoBlock(blocks, labels, block.weights.astype(np.float64), units, known)

    @finishes
    def learn_checked(self, block: AutoBlock) -> Array:
        """Learn a block that was checked; nothing else may have been learned since."""
        pairs = list(zip(self.experts.values(), block.experts, strict=True))
        for expert, part in pairs:  # reserve memory: if it runs out, no expert has learned a row
            expert.core.prepare(part.rows, part.rows.features)
        rows, threads = len(block.weights), self.threads or cpu_count()
        if rows < _FEW or threads == 1:
            return self.combine_learned(block, [one.learn_checked(part) for one, part in pairs])
        edges = step_edges(rows)
        chains = [learn_in_steps(expert, part, edges) for expert, part in pairs]

        def combine(step: int, answers: list[Array]) -> Array:
            first = edges[step - 1] if step else 0
            return self.combine_learned(block, answers, first)

        return np.concatenate(StepSchedule(chains, combine, len(edges)).run(threads))

    def learn_again(self, X: Any, y: Any, weights: Any = None) -> Array:
        """Learn a block of rows that the experts have learned before; their weights stay.

        Losses of rows that were seen favour the experts that remember them best.
        """
        block = self.check(X, y, weights)
        answers = self.learn_checked(block._replace(weights=0 * block.weights))
        self.restart_shifts()
        return answers

    def compose(self, predictions: Sequence[Array]) -> Composition:
        """Return how the predictions of the experts compose the prediction for one row."""
        answer = self._combine(list(predictions))
        # of the row that was mixed last
        weights, constant = self.mixture.aggregator.expert_weights()
        unit = self.mixture.units(self.labels).half
        return Composition(answer.reshape(-1), weights, unit * constant)

    @property
    def row_sample(self) -> RowSample | None:
        """Some of the rows that the model has learned."""
        return self._first.row_sample

    @property
    def best_trees(self) -> str:
        """The expert with the largest weight among those that boost trees."""
        weights = self.weights_
        trees = [name for name, one in self.experts.items() if isinstance(one.learner, Trees)]
        return max(trees, key=lambda name: weights[name])

    def parameters(self) -> dict[str, Any]:
        """Return the class ("booster") and the parameters of the model, as JSON."""
        return parameters_to_json(self)

    def details(self) -> dict[str, Any]:
        """Return what `inspect` shows besides parameters, as JSON."""
        experts = {name: one.parameters()["parameters"] for name, one in self.experts.items()}
        best = {"best_trees": self.best_trees} if self.started else {}
        stages = {f"{name}_weights": stage.weights for name, stage in self.stages.items()}
        return {"experts": experts, "weights": self.weights_} | self.loss_facts() | stages | best

    def header(self) -> dict[str, Any]:
        """Return everything except the arrays, as JSON.

        The experts are included: a later version may assign other experts to a budget.
        """
        names = [{"name": name} for name in self.experts]
        experts = members_header(self.experts.values())
        each = [name | expert for name, expert in zip(names, experts, strict=True)]
        headers = {name: stage.header() for name, stage in self.stages.items()}
        return self.parameters() | {"experts": each} | headers

    def tensors(self) -> Iterator[tuple[str, Array]]:
        """Yield the arrays of a model that has started, by name."""
        yield from self.mixture.tensors()
        yield f"{LOSSES}sums", self.loss_record.sums
        yield from members_tensors(self.experts.values())
        for prefix, stage in self.stages.items():
            for name, value in stage.tensors():
                yield f"{prefix}.{name}", value

    @classmethod
    def restore(cls, header: dict[str, Any], tensors: dict[str, Array]) -> Self:
        """Build the model from a header and arrays; a `ModelFileError` if they do not match."""
        given = parameters_from_json(header)
        # the file has all experts, and models of earlier versions continue as they began
        model = cls(**given | {"refit": False, "recent": "recent" in header})
        for name in ("refit", "recent"):
            object.__setattr__(model, name, given.get(name))
        if "past" not in header:
            model = model.without_past()
        losses = take_prefixed(tensors, LOSSES)
        stages = {name: take_prefixed(tensors, f"{name}.") for name in ("recent", "past")}
        weights = {name: tensors.pop(name) for name in list(tensors) if name.startswith(AGGREGATOR)}
        names = [str(expert["name"]) for expert in header["experts"]]
        boosters = restore_members(header["experts"], tensors)
        experts = dict(zip(names, boosters, strict=True))
        losses_of_experts = [resolve(expert_loss(model.loss, smooth)) for smooth in (False, True)]
        if any(resolve(one.loss) not in losses_of_experts for one in boosters):
            raise ModelFileError("the file contains no experts for its loss")
        if not any(isinstance(one.learner, Trees) for one in boosters):
            raise ModelFileError("the file contains no experts that boost trees")
        if len(experts) != len(names) or len(set(map(_stream_key, boosters))) != 1:
            raise ModelFileError("the experts have not learned the same rows")
        model._assemble(experts)
        model.loss_record.restore(losses)
        if weights or model.started:
            model.mixture.restore(weights)
        for name, stage in model.stages.items():
            stage.restore(header[name], stages[name])
        return model

    def replace_experts(self, experts: Mapping[str, Booster]) -> None:
        """Set the experts, which have learned the rows that the weights were learned from."""
        self.experts, self.n, self._row = dict(experts), len(experts), None
        self._first, *others = self.experts.values()
        for expert in others:
            expert.core.sample = None  # one sample of the rows is enough

    def _assemble(self, experts: dict[str, Booster]) -> None:
        """Set the experts, which have learned the same rows, with equal weights."""
        self.replace_experts(experts)
        self.mixture = Mixture(self.loss_, self.n)
        self.loss_record = LossRecord(self.n)

    def _new_experts(self) -> Iterator[tuple[str, Booster]]:
        loss = resolve(self.loss)
        scores = predicts_scores(loss)
        either = self.label_range in ("auto", "growing")  # scores have a range of their own
        label_range = (-1, 1) if scores and either else self.label_range
        for i, one in enumerate(EXPERTS[self.budget]):
            more = FOR_CLASSES if one.learner is Trees and isinstance(loss, Softmax) else {}
            single = one.learner(bits=self.bits, **(one.parameters | more))
            shared: dict[str, Any] = {
                "n": one.n,
                "loss": expert_loss(self.loss, one.smooth),
                "label_range": label_range,
                "replay": one.replay,
                "seed": self.seed + i,
            }
            if one.eta is None:
                yield one.name, HullBoost(single, **shared, **score_bounds(loss, "single"))
            else:
                bounds = score_bounds(loss, "boosted")
                yield one.name, SpanBoost(single, eta=one.eta, **shared, **bounds)

    def _for_each(
        self, task: Callable[[Any], Array], items: Iterable[Any], rows: int
    ) -> list[Array]:
        """Run the task for every item, in threads; the items share nothing."""
        threads = self.threads or cpu_count()
        if rows < _FEW or threads == 1:
            return list(map(task, items))
        return run_in_threads(task, items, threads)

    def _combine(self, answers: list[Array]) -> Array:
        """Combine the predictions of all experts."""
        return self.mixture.combine(self.mixture.units(self.labels), stack(answers))


def _stream_key(expert: Booster) -> tuple[Any, ...]:
    """Return the properties that all experts of a model share."""
    labels = expert.labels
    seen = labels.half, labels.rows, labels.seen, *labels.centre.tolist()
    return expert.started, expert.core.dtype, expert.label_range, expert.encoder.kind, *seen
