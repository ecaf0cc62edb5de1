"""`python -m benchmarks.first_call`: measure the first call without compiled code, and with it."""

import tempfile

from benchmarks import common
from benchmarks.environments import add_old, measure, pythons

ABOUT = """\
Start a process, import spanboost and learn 100 rows: first in an empty NUMBA_CACHE_DIR, then again
with the compiled code on disk. With --old, the same runs alternate with those of another
environment. Each figure is the best of --repeats runs; CPU time includes helper processes that have
ended.
"""
ENDS = """\
examples:
  python -m benchmarks.first_call
  python -m benchmarks.first_call --old ../old/.venv/bin/python --repeats 3
"""
KINDS = {  # learner, loss and target in seconds
    "linear": ("linear", "squared", 2.0),
    "auto squared": ("auto", "squared", 6.0),
    "auto logistic": ("auto", "logistic", 8.0),
    "auto softmax": ("auto", "softmax", 8.0),
}
WARM = 0.35  # target in seconds with the code on disk


def main() -> None:
    """Measure the chosen kinds of models and print the table."""
    parser = common.parser("first_call", ABOUT, ENDS)
    common.add_choice(parser, "--kind", KINDS, "Kinds of models")
    parser.add_argument("--repeats", type=common.at_least_one, default=1, metavar="N")
    add_old(parser)
    args = parser.parse_args()
    rows = []
    for name in args.kind:
        learner, loss, target = KINDS[name]
        best: dict[str, float] = {}
        for _ in range(args.repeats):
            for version, python in pythons(args.old).items():
                common.say(f"{name}: {version}")
                with tempfile.TemporaryDirectory() as folder:
                    for state in ("cold", "warm"):
                        words = ("first_call", learner, loss)
                        found = measure(python, *words, NUMBA_CACHE_DIR=folder)
                        for what, seconds in found.items():
                            key = f"{version} {state} {what}"
                            best[key] = min(best.get(key, seconds), seconds)
        rows.append({"kind": name, "target": target} | best)
    common.show(
        ["first call", "", "old wall s", "new wall s", "old CPU s", "new CPU s", "target", "met"],
        (_line(row, state) for row in rows for state in ("cold", "warm")),
    )
    common.save(args.json, rows, repeats=args.repeats)


def _line(row: dict, state: str) -> tuple[str, ...]:
    times = [f"{version} {state} {what}" for what in ("wall", "cpu") for version in ("old", "new")]
    target = row["target"] if state == "cold" else WARM
    met = row[f"new {state} wall"] <= target
    numbers = [f"{row[key]:.2f}" if key in row else "-" for key in times]
    return row["kind"], state, *numbers, f"<= {target}", common.yes_no(met)


if __name__ == "__main__":
    main()
