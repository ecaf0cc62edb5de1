"""The `warmup` command: compile the code of models before they need it."""

import os
import sys
import time
from argparse import Namespace
from typing import cast

import numpy as np

from spanboost.analysis.progressive import LossTape, progressive
from spanboost.compiling.helpers import compile_jobs
from spanboost.compiling.jobs import Job
from spanboost.compiling.rehearsal import recorded_jobs
from spanboost.data.batch import as_batch
from spanboost.errors import UsageError
from spanboost.models.auto import AutoBoost
from spanboost.models.model import Model
from spanboost.models.model_spec import AUTO, ModelSpec


def warmup(args: Namespace) -> int:
    """Compile what is missing for the chosen kinds of models, and print where the code is."""
    jobs = list(dict.fromkeys(job for spec in _specs(args) for job in needed_jobs(spec)))
    if not jobs:
        raise UsageError("there is no folder for compiled code; set NUMBA_CACHE_DIR to a folder")
    missing = [job for job in jobs if not job.is_done]
    began = time.perf_counter()
    _compile(missing)
    took = f"compiled {len(missing)} functions in {time.perf_counter() - began:.1f} seconds"
    folder = os.path.commonpath([job.file.parent for job in jobs])
    print(f"{took if missing else 'everything is compiled'}; the code is in {folder}")
    return 0


def needed_jobs(spec: ModelSpec) -> list[Job]:
    """Return the code that a model needs to learn, to predict and to be scored."""
    jobs: list[Job] = []
    model = _new_model(spec)
    rows = as_batch(np.ones((1, 2)), np.ones(1))
    tape = LossTape(2)
    with recorded_jobs(jobs), np.errstate(all="ignore"):
        for step in progressive({"model": model}, [rows], tape):
            model.predict_many(step.batch.X)
        model.predict_one([1.0, 1.0])  # AutoBoost has more code for single rows
    tape.close()
    return jobs


def _new_model(spec: ModelSpec) -> Model:
    """Return a new model; AutoBoost has the stages that it has by default in Python."""
    if spec.learner == AUTO:
        return AutoBoost(loss=spec.booster_loss(), budget=spec.budget)
    return cast("Model", spec.build())


def _specs(args: Namespace) -> list[ModelSpec]:
    """Return the kinds of models: every learner with every loss."""
    return [
        ModelSpec(learner=learner, loss=loss, budget=budget)
        for learner in args.learner
        for loss in args.loss
        for budget in (args.budget if learner == AUTO else ["default"])
    ]


def _compile(missing: list[Job]) -> None:
    from tqdm import tqdm

    shown = sys.stderr.isatty()
    with tqdm(total=len(missing), unit="function", leave=False, disable=not shown) as bar:
        for job in compile_jobs(missing):
            bar.set_postfix_str(job.name, refresh=False)
            bar.update()
