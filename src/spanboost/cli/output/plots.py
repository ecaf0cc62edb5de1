"""The pictures that a pass was asked for, and what it keeps for them: the same for any length."""

from argparse import Namespace
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from spanboost.analysis import loss_curves, pictures
from spanboost.analysis.partial_sums import moves_and_losses
from spanboost.analysis.progressive import Step
from spanboost.analysis.sampling import RowSample
from spanboost.cli.commands.inspect import report
from spanboost.compiling.arrays import Array
from spanboost.data.batch import Batch
from spanboost.errors import UsageError
from spanboost.learners.ball import LinearBall
from spanboost.losses import Logistic, Softmax, predicts_scores
from spanboost.models.model import Model
from spanboost.models.predictions import class_names

KINDS = ("predictions", "residuals", "stages", "sigma", "importance")
OF_MODELS = ("stages", "sigma", "importance")  # which look into the model
KEPT = 20_000  # rows whose predictions are kept
ASKED = 32  # rows of a piece whose stages are looked at
PIECE = 1024  # rows between two looks at a model, at most
LOOKS = 512  # at sigma, at most
BARS = 20


def plot_paths(args: Namespace) -> dict[str, str]:
    """The files of pictures, by their kinds, as far as they were asked for."""
    given = {kind: getattr(args, f"plot_{kind}", None) for kind in KINDS}
    return {kind: path for kind, path in given.items() if path is not None}


def check_plot_paths(args: Namespace) -> None:
    """Whether the pictures can be drawn, as far as options tell."""
    for kind, path in plot_paths(args).items():
        if getattr(args, "compare", None) is not None:
            raise UsageError(f"--plot-{kind} is of one model: no --compare with it")
        if getattr(args, "ray", None) is not None and kind in OF_MODELS:
            raise UsageError(f"--plot-{kind} is of one model: not with --ray, which has many")
        if getattr(args, "resume", False) and kind != "importance":
            raise UsageError(f"--plot-{kind} is of a whole run: not with --resume")
        loss_curves.check_plot_path(path)


def check_model(args: Namespace, model: Model) -> None:
    """Whether the pictures are of anything that the model has."""
    asked = plot_paths(args)
    if "stages" in asked and model.parts:
        raise UsageError("--plot-stages is of one booster, and auto has many: give --learner")
    if "sigma" in asked and model.sigma_ is None:
        raise UsageError("--plot-sigma is of --booster span: nothing else has a sigma")
    if "importance" in asked and isinstance(getattr(model, "learner", None), LinearBall):
        raise UsageError("--plot-importance: --learner ball does not say what it goes by")
    classes = predicts_scores(model.loss_) and not isinstance(model.loss_, Logistic | Softmax)
    for kind in ("predictions", "residuals"):
        if kind in asked and classes:
            raise UsageError(f"--plot-{kind} needs probabilities, which --loss logistic has")


class PlotCollector:
    """Watches the first model of a pass."""

    def __init__(self, args: Namespace, model: Model) -> None:
        self.places, self.model = plot_paths(args), model
        self.sample = RowSample(KEPT)
        self.rows, self.looks, self.every = 0, 0, 1  # every so many looks at sigma are kept
        self.times: list[int] = []
        self.sigma: list[Array] = []
        self.moved, self.lost = np.zeros((2, 1))
        self.looked = 0

    def pieces(self, batches: Iterator[Batch], rows: int) -> Iterator[Batch]:
        """The same rows, and stages looked at before each piece is learned.

        They are short at first, when things change fast; none changes what is learned.
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
                    self._look(piece)
                yield piece
                first, rows = first + piece.rows, rows + piece.rows

    def watch(self, step: Step, answers: Array) -> None:
        """A piece that was answered, then learned."""
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

    def _look(self, piece: Batch) -> None:
        """Stages, at some rows of a piece that are not learned yet."""
        asked = piece.take(np.unique(np.linspace(0, piece.rows - 1, ASKED).astype(np.int64)))
        if not self.model.started or asked.y is None:
            return
        moves, losses = moves_and_losses(self.model, asked.X, asked.y)
        self.moved = self.moved + piece.rows * moves
        self.lost = self.lost + piece.rows * losses
        self.looked += piece.rows

    def save(self) -> None:
        """Draw all that was asked for."""
        for kind, path in self.places.items():
            getattr(self, f"_draw_{kind}")(path)

    def _draw_predictions(self, path: str) -> None:
        _, truth, answers = self._seen
        if not predicts_scores(self.model.loss_):
            pictures.save_predictions(path, truth, answers, self.sample.of)
            return
        names = class_names(self.model)
        pictures.save_classes(path, truth, answers, names, self.sample.of)

    def _draw_residuals(self, path: str) -> None:
        rows, truth, answers = self._seen
        if not predicts_scores(self.model.loss_):
            pictures.save_residuals(path, truth - answers, rows, self.sample.of)
            return
        wrong = 1 - answers[np.arange(len(truth)), truth.astype(np.int64)]
        name = "1 - probability of the label"
        pictures.save_residuals(path, wrong, rows, self.sample.of, name)

    def _draw_stages(self, path: str) -> None:
        rows = max(self.looked, 1)
        pictures.save_stages(path, self.moved / rows, self.lost / rows)

    def _draw_sigma(self, path: str) -> None:
        sigma = [*self.sigma, self.model.sigma_]
        pictures.save_sigma(path, [*self.times, self.rows], sigma)

    def _draw_importance(self, path: str) -> None:
        pictures.save_importances(path, *importances(self.model))

    @property
    def _seen(self) -> tuple[Array, Array, Array]:
        """Numbers of rows; labels; predictions. Of classes: their numbers, and probabilities."""
        rows, truth, answers = np.split(self.sample.rows, [1, 2], axis=1)
        if isinstance(self.model.loss_, Logistic):
            chance = 1 / (1 + np.exp(-np.clip(answers, -700, 700)))
            return rows[:, 0], truth[:, 0] > 0, np.hstack([1 - chance, chance])
        if isinstance(self.model.loss_, Softmax):
            chances = np.exp(answers - answers.max(axis=1, keepdims=True))
            return rows[:, 0], truth[:, 0], chances / chances.sum(axis=1, keepdims=True)
        return rows[:, 0], truth[:, 0], answers[:, 0]


def importances(model: Model) -> tuple[Mapping[str, float], str]:
    """Of the most important features, and what it is."""
    found: dict[str, Any] = report(model, BARS)
    if "largest_gains" in found:
        return found["largest_gains"], "share of what all splits have gained"
    effects = {name: size for name, size in found["largest_effects"].items() if size > 0}
    return effects, "how far it can move the prediction"
