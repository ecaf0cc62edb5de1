"""`python -m benchmarks.budgets`: memory and file sizes of AutoBoost's budgets."""

import argparse
import tempfile
from pathlib import Path

from benchmarks import common
from spanboost import AutoBoost, save
from spanboost.models.budgets import EXPERTS

ABOUT = """\
Learn a generated stream (ten dense features) with every budget of AutoBoost. After each number of
rows, print the memory of the model's arrays and the size of its file, in MB.
"""
ENDS = """\
examples:
  python -m benchmarks.budgets
  python -m benchmarks.budgets --budget default
"""
MARKS = (100, 5_000, 50_000)


def sizes(budget: str, marks: tuple[int, ...]) -> list[tuple[float, float]]:
    """Return the memory and the file size in MB after each number of rows."""
    model, found = AutoBoost(budget=budget), []
    X, y = common.generated(max(marks))
    for first, last in zip((0, *marks), marks, strict=False):  # from each mark to the next
        model.learn_many(X[first:last], y[first:last])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.sb"
            save(model, path)
            arrays = sum(array.nbytes for _, array in model.tensors())
            found.append((arrays / 1e6, path.stat().st_size / 1e6))
    return found


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    made = common.parser("budgets", ABOUT, ENDS)
    common.add_choice(made, "--budget", EXPERTS, "Budgets")
    return made


def main() -> None:
    """Measure, and print the table."""
    args = parser().parse_args()
    marks = (50, 100) if args.quick else MARKS
    rows = []
    for budget in args.budget:
        found = sizes(budget, marks)
        for mark, (memory, file) in zip(marks, found, strict=True):
            rows.append((budget, f"{mark:,}", f"{memory:.2g}", f"{file:.2g}"))
    common.show(("budget", "rows", "memory, MB", "file, MB"), rows)
    common.save(args.json, [list(row) for row in rows], marks=list(marks))


if __name__ == "__main__":
    main()
