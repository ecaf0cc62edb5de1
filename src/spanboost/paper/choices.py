"""The choices of the reproduction that the paper leaves open, in one table."""

from typing import NamedTuple

from spanboost.paper.cells import ADVANTAGE, FEEDBACKS
from spanboost.paper.datasets import SETS
from spanboost.paper.protocol import FEWEST, LEARNERS, Grid
from spanboost.paper.row_order import LIMIT


class OpenChoice(NamedTuple):
    """A choice, the reason for it, and whether the paper's figures were known and decided it."""

    what: str
    chosen: str
    reason: str
    fitted: bool


def choices(grid: Grid) -> list[OpenChoice]:
    """Return all choices."""
    guessed = " and ".join(name for name, one in SETS.items() if not one.coding_fits)
    return [
        OpenChoice(
            "ranking of stumps",
            f'"{LEARNERS["stumps"].ranking}": least summed squared loss',
            "of the two rankings tried, the one whose stumps alone have the paper's losses",
            True,
        ),
        OpenChoice(
            "feedback",
            f"{' and '.join(FEEDBACKS)}, side by side",
            "the paper prints the first one, and describes the second as more common in practice",
            False,
        ),
        OpenChoice(
            "ranking in boosted stumps",
            f"the same; the column {ADVANTAGE} ranks by advantage over predicting 0",
            "summed losses of a partial sum favour rare features in every copy, so that greedy "
            "copies hardly differ",
            True,
        ),
        OpenChoice("lambda", "1", "the paper's experiments mention no scaling", False),
        OpenChoice(
            "fallback to the learner alone",
            f"none: at least {FEWEST['hull']} copies",
            "the paper reports losses of boosting above those of the learner; a second column "
            "shows the fallback",
            True,
        ),
        OpenChoice(
            "order of the rows",
            f"file order; shuffled if the halves' average labels differ by more than {LIMIT:g} "
            "standard errors",
            "computed from the labels; the limit lies between 3.6 and 46.6. We knew that "
            "some sets fit the paper better when shuffled",
            True,
        ),
        OpenChoice(
            "rates",
            ", ".join(f"{rate:g}" for rate in grid.rates),
            "powers of two around the default, 0.5. We knew the effect of larger ones on shuttle",
            True,
        ),
        OpenChoice("number of copies", f"up to {grid.copies}", "cost", False),
        OpenChoice(
            "step of Algorithm 1", ", ".join(f"{eta:g}" for eta in grid.etas), "cost", False
        ),
        OpenChoice(
            "sigma of Algorithm 1", "learned as printed, from 0", "the printed algorithm", False
        ),
        OpenChoice(
            "greedy step alpha and offset",
            "the algorithm's own step; the shrunken partial sum",
            "the copy then sees the loss of the sum that its prediction leads to",
            False,
        ),
        OpenChoice(
            "range of predictions",
            "labels are scaled and not shifted; copies are clipped to the largest absolute label",
            "Vowpal Wabbit does not shift labels; the theorems need bounded functions",
            False,
        ),
        OpenChoice(
            "intercepts of stumps",
            "none; the constant is one more feature",
            "the paper names none, and its counts of features include a constant",
            False,
        ),
        OpenChoice(
            f"label coding of {guessed}",
            "sitting against the rest; A to M against N to Z",
            "not stated in the paper. For activity, the coding that a linear function fits best",
            True,
        ),
        OpenChoice(
            "label coding of shuttle and covtype",
            "class 1 against the rest; class 2 against the rest",
            "the largest class of shuttle; the coding of covtype that LIBSVM publishes",
            False,
        ),
        OpenChoice(
            "labels of cal_housing",
            "shifted and scaled to [0, 1]",
            "the paper says [0, 1], which could also mean price / 500001",
            False,
        ),
        OpenChoice(
            "categories",
            "one-hot; `?` is an absent feature",
            "gives the paper's counts of features for adult and census",
            False,
        ),
        OpenChoice(
            "data sets",
            "those in the folder",
            "we have no copies of kddcup04 (phy), slice and year",
            False,
        ),
    ]
