"""Names of columns, categories and classes in exported C files."""

import csv
import ctypes

import numpy as np
import pytest
from compiled_c import CompiledModel, needs_compiler

from spanboost import AutoBoost, LinearSGD, SpanBoost, export, load
from spanboost.compiling.kernels import plain
from spanboost.errors import UserError

HOSTILE = (
    "*/ int a; /*",
    "/*/",
    "b\\",
    "c??/",
    "*\\\n/ int d; /*",
    "*??/\n/ e",
    '"?',
    "\r\n*/",
    "{0}%s",
)
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-trigraphs")


@needs_compiler
def test_names_cannot_add_code(shell, tmp_path):
    """Names of columns, categories and classes are data, whatever they contain."""
    count = len(HOSTILE)
    names = [*HOSTILE, "/* a city */", "label"]
    rows = [[*((k * j) % 7 for j in range(count)), HOSTILE[k % count]] for k in range(90)]
    path = tmp_path / "data.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows([*row, HOSTILE[(k * k) % count]] for k, row in enumerate(rows))
    options = ("--learner", "linear", "-n", "2", "--loss", "softmax", "--quiet")
    shell("train", path, "-o", tmp_path / "model.sb", *options)
    model = load(tmp_path / "model.sb")
    compiled = CompiledModel(model, tmp_path, options=STRICT)
    for row in rows:
        codes = [compiled.code(0, row[-1])]
        assert codes == [rows.index(row) % count]
        expected = model.predict_one(dict(zip(names, row, strict=False)))
        np.testing.assert_array_equal(compiled._dense(row[:-1], codes), expected)
    classes = ctypes.POINTER(ctypes.c_char_p * len(model.schema.target.values))
    found = ctypes.cast(compiled.library.model_classes, classes).contents
    assert [one.decode() for one in found] == model.schema.target.values


@needs_compiler
@pytest.mark.filterwarnings("ignore:.* are not exported")
def test_names_in_parameters_cannot_add_code(tmp_path):
    name = "".join(HOSTILE)
    rows = [{name: "x", "a": float(k)} for k in range(5)]
    with plain():
        model = AutoBoost(budget="fast", key=name)
        model.learn_many(rows, np.arange(5.0))
        compiled = CompiledModel(model, tmp_path, options=STRICT)
        expected = model.without_corrections().predict_many(rows)
        np.testing.assert_array_equal(compiled.predict_many(rows), expected)


def test_texts_that_c_cannot_hold_are_refused(shell, tmp_path):
    lines = [
        "size,city,label",
        *(f"{k},{'a b' if k % 2 else 'c'},{'d e' if k % 3 else 'f'}" for k in range(60)),
    ]
    for old, problem in (
        ("a b", r"category 'a\\x00b' to C, where the character NUL"),
        ("d e", "class 'd"),
    ):
        (tmp_path / "data.csv").write_text(
            "\n".join(lines).replace(old, old.replace(" ", "\0")) + "\n"
        )
        options = ("--learner", "linear", "-n", "1", "--loss", "softmax", "--quiet")
        shell("train", tmp_path / "data.csv", "-o", tmp_path / "model.sb", *options)
        with pytest.raises(UserError, match=problem):
            export(load(tmp_path / "model.sb"), tmp_path / "model.c")
    with plain():
        model = SpanBoost(LinearSGD(), 1, label_range="auto")
        model.learn_many([{"a\0b": 1.0}], [1.0])
        with pytest.raises(UserError, match="cannot export the feature 'a"):
            export(model, tmp_path / "model.c")
