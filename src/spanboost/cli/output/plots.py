"""The plots of a pass over a stream; the memory for them does not grow with the stream."""

from argparse import Namespace
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from spanboost.analysis import pictures
from spanboost.analysis.figures import check_plot_path
from spanboost.analysis.partial_sums import moves_and_losses
from spanboost.analysis.progressive import Step
from spanboost.analysis.sampling import RowSample
from spanboost.cli.commands.inspect import report
from spanboost.compiling.arrays import Array
from spanboost.data.batch import Batch
from spanboost.errors import UsageError
from spanboost.losses import Logistic, Softmax, predicts_scores
from spanboost.models.model import Model
from spanboost.models.predictions import class_names

KINDS = ("predictions", "residuals", "stages", "sigma", "importance")
MODEL_KINDS = ("stages", "sigma", "importance")  # these show the inside of the model
KEPT = 20_000  # rows whose predictions are kept, a random sample
ASKED = 32  # rows of a piece at which stages are evaluated
PIECE = 1024  # most rows between two looks at a model
LOOKS = 512  # most values of sigma that are kept
BARS = 20  # features in the plot of importances


def plot_paths(args: Namespace) -> dict[str, str]:
    """Return the file of each requested plot, by kind."""
    given = {kind: getattr(args, f"plot_{kind}", None) for kind in KINDS}
    return {kind: path for kind, path in given.items() if path is not None}


def check_plot_paths(args: Namespace) -> None:
    """Check that the options allow the requested plots."""
    for kind, path in plot_paths(args).items():
        if getattr(args, "compare", None) is not None:
            raise UsageError(f"--plot-{kind} cannot be combined with --compare")
        if getattr(args, "ray", None) is not None and kind in MODEL_KINDS:
            raise UsageError(
                f"--plot-{kind} cannot be combined with --ray, which trains several models"
            )
        if getattr(args, "resume", False) and kind != "importance":
            raise UsageError(
                f"--plot-{kind} cannot be combined with --resume: rows before the checkpoint "
                "would be missing"
            )
        check_plot_path(path)


def check_model(args: Namespace, model: Model) -> None:
    """Check that the model has what the requested plots show."""
    requested = plot_paths(args)
    if "stages" in requested and model.parts:
        raise UsageError("--plot-stages needs a single booster; choose a --learner other than auto")
    for kind in {"stages", "sigma"} & set(requested):
        if not model.parts:
            model.as_booster().check_fixed(f"--plot-{kind}")
    if "sigma" in requested and model.sigma_ is None:
        raise UsageError("--plot-sigma requires --booster span; other models have no sigma")
    classes = predicts_scores(model.loss_) and not isinstance(model.loss_, Logistic | Softmax)
    for kind in ("predictions", "residuals"):
        if kind in requested and classes:
            raise UsageError(f"--plot-{kind} needs probabilities; use --loss logistic")


class PlotCollector:
    """Collects the data for the plots of the first model of a pass."""

    def __init__(self, args: Namespace, model: Model) -> None:
        self.places, self.model = plot_paths(args), model
        self.sample = RowSample(KEPT)
        self.rows, self.looks, self.every = 0, 0, 1  # sigma is kept at every `every`th look
        self.times: list[int] = []
        self.sigma: list[Array] = []
        self.moved, self.lost = np.zeros((2, 1))
        self.looked = 0

    def pieces(self, batches: Iterator[Batch], rows: int) -> Iterator[Batch]:
        """Split batches into pieces, and evaluate the stages before each piece is learned.

        Pieces are short at first, while the model changes fast. Splitting does not change what is
        learned.
        """
        if not {"stages", "sigma"} & set(self.places):
            yield from batches
            return
        for batch in batches:
            first = 0
            while first < batch.rows:
                length = min(max(1, rows // 16), PIECE)
                piece = batch.part(first, min(first + length, batch.rows))
                if "stages" in self.places:
                    self._evaluate_stages(piece)
                yield piece
                first, rows = first + piece.rows, rows + piece.rows

    def watch(self, step: Step, answers: Array) -> None:
        """Record a piece that was predicted and then learned."""
        self.rows = step.first + len(answers)
        if {"predictions", "residuals"} & set(self.places):
            rows = np.arange(step.first, self.rows) + 1.0
            assert step.batch.y is not None
            self.sample.add(np.column_stack([rows, step.batch.y, answers]))
        if "sigma" in self.places and self.model.sigma_ is not None:
            self.looks += 1
            if self.looks % self.every == 0:
                self.times.append(self.rows)
                self.sigma.append(self.model.sigma_)
            if len(self.times) == LOOKS:
                self.times, self.sigma, self.every = (
                    self.times[1::2],
                    self.sigma[1::2],
                    2 * self.every,
                )

    def _evaluate_stages(self, piece: Batch) -> None:
        """Evaluate the stages at some rows of a piece that is not learned yet."""
        rows = piece.take(np.unique(np.linspace(0, piece.rows - 1, ASKED).astype(np.int64)))
        if not self.model.started or rows.y is None:
            return
        moves, losses = moves_and_losses(self.model, rows.X, rows.y)
        self.moved = self.moved + piece.rows * moves
        self.lost = self.lost + piece.rows * losses
        self.looked += piece.rows

    def draw(self) -> dict[str, Any]:
        """Write all requested plots; return their figures, by kind."""
        return {kind: getattr(self, f"_draw_{kind}")(path) for kind, path in self.places.items()}

    def _draw_predictions(self, path: str) -> Any:
        _, truth, answers = self._seen
        if not predicts_scores(self.model.loss_):
            return pictures.plot_predictions(truth, answers, self.sample.of, path=path).figure
        names = class_names(self.model)
        matrix, _ = pictures.plot_classes(truth, answers, names, self.sample.of, path=path)
        return matrix.figure

    def _draw_residuals(self, path: str) -> Any:
        rows, truth, answers = self._seen
        name = "label - prediction"
        if predicts_scores(self.model.loss_):
            answers = answers[np.arange(len(truth)), truth.astype(np.int64)]
            truth, name = np.ones(len(answers)), "1 - probability of the label"
        return pictures.plot_residuals(
            truth, answers, self.sample.of, rows=rows, name=name, path=path
        ).figure

    def _draw_stages(self, path: str) -> Any:
        rows = max(self.looked, 1)
        moves, _ = pictures.plot_stages(self.moved / rows, self.lost / rows, path=path)
        return moves.figure

    def _draw_sigma(self, path: str) -> Any:
        sigma = np.array([*self.sigma, self.model.sigma_])
        return pictures.plot_sigma([*self.times, self.rows], sigma, path=path).figure

    def _draw_importance(self, path: str) -> Any:
        return pictures.plot_importances(*importances(self.model), path=path).figure

    @property
    def _seen(self) -> tuple[Array, Array, Array]:
        """Row numbers, labels and predictions; for classes, their numbers and probabilities."""
        rows, truth, answers = np.split(self.sample.rows, [1, 2], axis=1)
        if isinstance(self.model.loss_, Logistic):
            chance = 1 / (1 + np.exp(-np.clip(answers, -700, 700)))
            return rows[:, 0], truth[:, 0] > 0, np.hstack([1 - chance, chance])
        if isinstance(self.model.loss_, Softmax):
            chances = np.exp(answers - answers.max(axis=1, keepdims=True))
            return rows[:, 0], truth[:, 0], chances / chances.sum(axis=1, keepdims=True)
        return rows[:, 0], truth[:, 0], answers[:, 0]


def importances(model: Model) -> tuple[Mapping[str, float], str]:
    """Return the importance of the most important features, and what the numbers mean."""
    shares: Mapping[str, float] = report(model, BARS).get("importances", {})
    return shares, "share of the increase in loss if the feature is shuffled"
