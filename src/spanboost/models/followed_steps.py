"""Learn a block in steps, while another thread follows: learns from the predictions of a step.

Intervals learn from the residuals of their model. Around a single booster, that takes about as long
as the booster itself. So the booster learns the next step at the same time.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.step_schedule import StepSchedule
from spanboost.learners.protocol import ReadsFeatures
from spanboost.models.booster import HullBoost, SpanBoost
from spanboost.models.expert_steps import learn_in_steps
from spanboost.models.model import Model

STEP = 4096  # rows; a thread that waits for another one loses the time of about 100 rows


def learn_followed(
    model: Model, block: Any, rows: int, follow: Callable[[int, Array], None], threads: int
) -> Array:
    """Learn a checked block of rows, and return its predictions.

    follow: gets the first row of a step and the predictions of its rows, step after step. It may
        use nothing that the model changes. Its result must not depend on the sizes of the steps.
    """
    if (
        not isinstance(model, SpanBoost | HullBoost)
        or not isinstance(model.learner, ReadsFeatures)  # learners of users stay in their thread
        or rows <= STEP
        or threads == 1
    ):
        answers = model.learn_checked(block)
        follow(0, answers)
        return answers
    edges = [*range(STEP, rows, STEP), rows]

    def join(step: int, found: list[Array]) -> Array:
        follow(edges[step - 1] if step else 0, found[0])
        return found[0]

    return np.concatenate(
        StepSchedule([learn_in_steps(model, block, edges)], join, len(edges)).run(2)
    )
