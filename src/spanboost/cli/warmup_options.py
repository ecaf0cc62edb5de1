"""The options of `spanboost warmup`."""

from typing import Any

from spanboost.cli.arguments import loss_name
from spanboost.cli.command_options import TUNABLE
from spanboost.models.model_spec import AUTO
from spanboost.models.spec import BUDGETS


def add_warmup_options(warmup: Any) -> None:
    """Add the options of `spanboost warmup`."""
    warmup.add_argument(
        "--loss",
        nargs="+",
        type=loss_name,
        default=["squared", "logistic", "softmax"],
        metavar="LOSS",
        help="Losses (default: squared logistic softmax)",
    )
    warmup.add_argument(
        "--learner",
        nargs="+",
        choices=(AUTO, *TUNABLE),
        default=[AUTO],
        metavar="NAME",
        help=f"Learners: {', '.join((AUTO, *TUNABLE))} (default: {AUTO})",
    )
    warmup.add_argument(
        "--budget",
        nargs="+",
        choices=BUDGETS,
        default=[*BUDGETS],
        metavar="NAME",
        help=f"Sizes of the learner {AUTO}: {', '.join(BUDGETS)} (default: all)",
    )
