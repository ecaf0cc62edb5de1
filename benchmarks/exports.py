"""`python -m benchmarks.exports`: check exports on every data set, and report size and speed."""

import argparse
import ctypes
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import common, results_files
from benchmarks.accuracy import datasets
from benchmarks.accuracy.markdown import markdown

ABOUT = """\
Train AutoBoost on the first rows of every data set, with every budget. Save it compact, export it
to C and to ONNX, and compare the predictions for the rows that follow with those of the model.

Loss: squared for numbers, logistic for two classes, softmax for "NAME classes". Speeds are rows a
second on one thread. LightGBM (31 leaves, step 0.1) gets as many trees as it needs to reach the
loss of the model on the same rows, at most 1,000; its file is the text that it writes.
"""
ENDS = """\
examples:
  python -m benchmarks.exports                            all data sets and budgets
  python -m benchmarks.exports --sets casp --budget fast  one run
  python -m benchmarks.exports --table                    print the table only
"""
FILE = results_files.FOLDER / "exports.jsonl"
CLASSES = " classes"  # ends the name of a data set whose labels are more than two classes
SETS = (
    *datasets.TASKS,
    *(f"{name}{CLASSES}" for name in ("letter", "shuttle", "covtype")),
)
BUDGETS = ("fast", "default", "thorough")
ROWS = 5_000
TREES = (10, 20, 50, 100, 200, 500, 1000)
DRIVER = """
#include <stdint.h>
int model_predict(const double *numbers, const int64_t *codes, double *prediction);
void predict_rows(int64_t rows, const double *numbers, int64_t columns, const int64_t *codes,
                  int64_t categories, double *out, int64_t outputs)
{
    for (int64_t t = 0; t < rows; t++)
        model_predict(numbers + t * columns, codes + t * categories, out + t * outputs);
}
"""


class Key(NamedTuple):
    """The identity of a run."""

    data: str
    budget: str


class Rows(NamedTuple):
    """The rows of a block as the exports take them."""

    numbers: np.ndarray  # [rows, columns]
    codes: np.ndarray  # [rows, categories]

    def given(self) -> Any:
        """Return the block as spanboost takes it."""
        from spanboost import Rows as Both

        return Both(self.numbers, self.codes) if self.codes.shape[1] else self.numbers


class Stream(NamedTuple):
    """The rows to learn and those to predict."""

    loss: str
    first: Rows
    y: np.ndarray
    rest: Rows
    rest_y: np.ndarray


def load(name: str, folder: Path | None, rows: int) -> Stream:
    """Return the first rows of a data set, in the shuffled order, in two parts."""
    plain = name.removesuffix(CLASSES)
    data = datasets.load(plain, "shuffled", folder, 2 * rows)
    given, y = data.rows(), data.y
    loss = "logistic" if set(np.unique(y)) <= {-1.0, 1.0} else "squared"
    if name != plain:
        labels = common.table_of(folder, plain).column("label").to_pylist()
        kept = datasets.positions(len(labels), "shuffled")[: 2 * rows]
        loss, y = "softmax", np.unique(labels, return_inverse=True)[1][kept]
    numbers, codes = getattr(given, "numbers", given), getattr(given, "codes", None)
    count = len(y)
    block = Rows(
        np.zeros((count, 0)) if numbers is None else np.asarray(numbers, np.float64),
        np.zeros((count, 0), np.int64) if codes is None else np.asarray(codes, np.int64),
    )
    half = min(rows, count // 2)
    parts = [Rows(*(one[part] for one in block)) for part in (slice(half), slice(half, None))]
    return Stream(loss, parts[0], y[:half], parts[1], y[half:])


def rows_a_second(job: Callable[[], Any], rows: int) -> float:
    """Return the speed of the best of three runs, in processor time."""
    best = np.inf
    for _ in range(3):
        start = time.process_time()
        job()
        best = min(best, time.process_time() - start)
    return rows / best


def run(key: Key, folder: Path | None, rows: int) -> dict[str, Any]:
    """Train and export one model, and compare all of its forms."""
    from spanboost import AutoBoost, save
    from spanboost import load as load_model

    stream = load(key.data, folder, rows)
    # exports see no labels, and refitted estimators cannot be exported
    alone = {"past": False, "recent": False, "refit": False}
    model = AutoBoost(loss=stream.loss, budget=key.budget, **alone)
    model.learn_many(stream.first.given(), stream.y)
    model.threads = 1
    rest = stream.rest.given()
    expected = model.predict_many(rest)
    speed = rows_a_second(lambda: model.predict_many(rest), len(stream.rest_y))
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        save(model, place / "full.sb")
        save(model, place / "small.sb", compact=True)
        small = load_model(place / "small.sb")
        same = bool((small.predict_many(rest) == expected).all())
        sizes = {one: (place / f"{one}.sb").stat().st_size for one in ("full", "small")}
        found = {
            "rows": len(stream.y),
            "loss": stream.loss,
            "predict": {"full": speed},
            "bytes": sizes,
            "small_same_bits": same,
        }
        _add_c(found, model, stream, expected, place)
        _add_onnx(found, model, stream, expected, place)
    loss = mean_loss(stream.loss, expected, stream.rest_y)
    return found | {"mean_loss": loss, "lightgbm": lightgbm_size(stream, loss)}


def difference(found: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest difference, relative to the prediction or to the mean size of all."""
    size = np.maximum(np.abs(expected), np.abs(expected).mean())
    return float((np.abs(found - expected) / size).max())


def _add_c(
    found: dict[str, Any], model: Any, stream: Stream, expected: np.ndarray, place: Path
) -> None:
    from spanboost import export

    compiler = shutil.which("cc")
    export(model, place / "model.c")
    found["bytes"]["c"] = (place / "model.c").stat().st_size
    if compiler is None:
        return
    (place / "driver.c").write_text(DRIVER)
    library = place / "model.so"
    flags = ("-std=c99", "-O2", "-shared", "-fPIC", "-s")
    sources = (place / "model.c", place / "driver.c")
    subprocess.run([compiler, *flags, "-o", library, *sources, "-lm"], check=True)
    found["bytes"]["compiled"] = library.stat().st_size
    predict = ctypes.CDLL(str(library)).predict_rows
    numbers, codes = (np.ascontiguousarray(one) for one in stream.rest)
    out = np.empty((len(numbers), 1 if expected.ndim == 1 else expected.shape[1]))

    def pointer(array: np.ndarray) -> Any:
        return ctypes.c_void_p(array.ctypes.data)

    def predict_all() -> None:
        sizes = [ctypes.c_int64(k) for k in (len(out), numbers.shape[1], codes.shape[1])]
        outputs = ctypes.c_int64(out.shape[1])
        given = pointer(numbers), sizes[1], pointer(codes), sizes[2], pointer(out), outputs
        predict(sizes[0], *given)

    found["predict"]["c"] = rows_a_second(predict_all, len(out))
    found["c_same_bits"] = bool((out.reshape(expected.shape) == expected).all())
    found["c_difference"] = difference(out.reshape(expected.shape), expected)


def _add_onnx(
    found: dict[str, Any], model: Any, stream: Stream, expected: np.ndarray, place: Path
) -> None:
    import onnxruntime

    from spanboost import export

    file = place / "model.onnx"
    export(model, file)
    found["bytes"]["onnx"] = file.stat().st_size
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(file, options)
    numbers, codes = stream.rest
    inputs = {"numbers": numbers.astype(np.float32)} if numbers.shape[1] else {}
    inputs |= {"codes": codes} if codes.shape[1] else {}
    (answers,) = session.run(["prediction"], inputs)
    found["onnx_difference"] = difference(answers, expected)
    job = lambda: session.run(["prediction"], inputs)  # noqa: E731
    found["predict"]["onnx"] = rows_a_second(job, len(answers))


def mean_loss(loss: str, answers: np.ndarray, y: np.ndarray) -> float:
    """Return the mean loss of predictions: squared, or the logarithmic loss of classes."""
    if loss == "squared":
        return float(np.mean((answers - y) ** 2))
    if loss == "logistic":
        return float(np.mean(np.logaddexp(0, -y * answers)))
    total = np.logaddexp.reduce(answers, axis=1)
    inside = np.minimum(y, answers.shape[1] - 1)
    known = np.where(y < answers.shape[1], answers[np.arange(len(y)), inside], -30.0)
    return float(np.mean(total - known))


def lightgbm_size(stream: Stream, target: float) -> dict[str, Any] | None:
    """Return the smallest file of LightGBM that reaches a loss; None without LightGBM."""
    try:
        import lightgbm
    except ImportError:
        return None
    objective = {"squared": "regression", "logistic": "binary", "softmax": "multiclass"}
    codes, columns = stream.first.codes.shape[1], stream.first.numbers.shape[1]
    settings = {"objective": objective[stream.loss], "verbose": -1, "num_threads": 1}
    settings |= {"num_class": int(stream.y.max()) + 1} if stream.loss == "softmax" else {}
    label = (stream.y > 0) * 1.0 if stream.loss == "logistic" else stream.y
    X, rest = (np.column_stack([part.numbers, part.codes]) for part in (stream.first, stream.rest))
    kinds = [*range(columns, columns + codes)]
    data = lightgbm.Dataset(X, label, categorical_feature=kinds, free_raw_data=False)
    most = TREES[-1] if stream.loss != "softmax" else 200
    booster = lightgbm.train(settings, data, most)
    for trees in TREES:
        if trees > most:
            break
        answers = booster.predict(rest, num_iteration=trees, raw_score=True)
        loss = mean_loss(stream.loss, answers, stream.rest_y)
        size = len(booster.model_to_string(num_iteration=trees))
        if loss <= target:
            return {"bytes": size, "trees": trees, "reached": True}
    return {"bytes": size, "trees": most, "reached": False}


def cells(key: Key, row: dict[str, Any]) -> list[str]:
    """Return a run as a line of the table."""
    size, speed, peer = row["bytes"], row["predict"], row["lightgbm"]
    shown = [f"{size[name] / 1e3:,.0f}" for name in ("full", "small", "c", "compiled", "onnx")]
    other = "-" if peer is None else f"{peer['bytes'] / 1e3:,.0f}{'' if peer['reached'] else ' *'}"
    same = "same bits" if row["c_same_bits"] else f"{row['c_difference']:.0e}"
    fast = [f"{speed[name]:,.0f}" for name in ("full", "c", "onnx")]
    head = [key.data, key.budget, row["loss"], f"{row['rows']:,}"]
    return [*head, *shown, other, same, f"{row['onnx_difference']:.0e}", *fast]


def table(runs: dict[Key, dict[str, Any]]) -> Iterable[str]:
    """Yield the table and a summary."""
    head = ["data", "budget", "loss", "rows", "full kB", "compact kB", "C kB", "compiled kB"]
    head += ["ONNX kB", "LightGBM kB", "C", "ONNX", "Python rows/s", "C rows/s", "ONNX rows/s"]
    shown = sorted(runs, key=lambda key: (SETS.index(key.data), BUDGETS.index(key.budget)))
    yield markdown(head, [cells(key, runs[key]) for key in shown])
    yield "* LightGBM does not reach the loss of the model with 1,000 trees (200 for classes)."
    rows = list(runs.values())
    close = sum(row["onnx_difference"] <= 1e-5 for row in rows)
    squared = [row for row in rows if row["loss"] == "squared"]
    same = sum(row["c_same_bits"] for row in squared)
    others = [row["c_difference"] for row in rows if row["loss"] != "squared"]
    yield f"compact: the same bits in {sum(row['small_same_bits'] for row in rows)} of {len(rows)}"
    yield f"C: the same bits in {same} of {len(squared)} runs of numbers"
    yield f"C: largest relative difference in runs of classes {max(others, default=0.0):.1e}"
    yield f"ONNX: within 1e-5 in {close} of {len(rows)}"
    peers = [row for row in rows if row["lightgbm"]]
    limit = [row["bytes"]["small"] <= 10 * row["lightgbm"]["bytes"] for row in peers]
    yield f"compact file at most 10 times that of LightGBM: {sum(limit)} of {len(limit)}"


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    made = common.resumable_parser("exports", ABOUT, ENDS, FILE)
    common.add_choice(made, "--sets", SETS, "Data sets")
    common.add_choice(made, "--budget", BUDGETS, "Budgets")
    common.add_rows(made, ROWS, "Learn the first N rows of a set, and predict N others")
    return made


def main() -> None:
    """Run what is missing, and print the table."""
    args = parser().parse_args()
    known = results_files.read(args.results, Key)
    for key in [Key(*one) for one in ((b, a) for a in args.budget for b in args.sets)]:
        if key not in known and not args.table:
            common.say(f"{key.data}, {key.budget}")
            results_files.record(args.results, key, run(key, args.data, args.rows))
    for line in table(results_files.read(args.results, Key)):
        print(line)


if __name__ == "__main__":
    main()
