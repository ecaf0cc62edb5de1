"""Which boosters choose the number of copies and the step online if these are not given."""

from typing import Any

from spanboost.learners.objects import is_foreign
from spanboost.losses import adds_classes


def chooses_by_default(
    learner: Any, loss: Any = "squared", feedback: str = "greedy", **_: Any
) -> bool:
    """Return whether a booster of this learner chooses n online if n is None.

    It does for learners of other libraries and of your own. Nothing is known about them: some are
    strong, and boosting with a fixed number of copies would make them worse. The learner alone is
    one of the candidates. Linear feedback is for the theorems, which need a fixed number. A model
    whose classes appear in the stream cannot choose.
    """
    greedy = feedback == "greedy"
    return learner is not None and greedy and is_foreign(learner) and not adds_classes(loss)
