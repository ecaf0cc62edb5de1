"""A model trained from one form of named rows reads the others: tables, JSON Lines, Python."""

import json

import numpy as np
import pandas as pd
import pytest

import spanboost

ROWS = [
    {
        "size": 40.0 + k % 9,
        "city": ["Ulm", "Bonn", "Köln"][k % 3],
        "when": f"2024-01-{k % 28 + 1:02} 10:30",
        "rent": 300.0 + 7 * (k % 9) + 20 * (k % 3),
    }
    for k in range(120)
]
FIRST, REST = ROWS[:60], [*ROWS[60:], ROWS[0] | {"city": "Trier"}]
OPTIONS = ("--label", "rent", "--quiet")
LEARNERS = {
    "linear": ("--learner", "linear", "-n", "4"),
    "trees": ("--learner", "trees", "-n", "4"),
    "auto": ("--budget", "fast"),
}


def write(folder, name, rows):
    path = folder / name
    frame = pd.DataFrame(rows)
    if name.endswith(".csv"):
        frame.to_csv(path, index=False)
    elif name.endswith(".parquet"):
        frame.to_parquet(path, index=False)
    else:
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return path


def numbers(out):
    return [float(line) for line in out.splitlines()[1:]]


@pytest.mark.parametrize("learner", ["linear", "trees"])
@pytest.mark.parametrize("first", ["a.csv", "a.jsonl"])
def test_other_forms_continue_alike(first, learner, shell, tmp_path):
    """The same later rows in three forms give the same predictions and the same model."""
    model = tmp_path / "m.sb"
    path = write(tmp_path, first, FIRST)
    shell("train", path, "-o", model, *OPTIONS, *LEARNERS[learner])
    found = []
    for name in ("b.csv", "b.parquet", "b.jsonl"):
        rest = write(tmp_path, name, REST)
        predicted = numbers(shell("predict", rest, "-m", model).out)
        shell("train", rest, "-i", model, "-o", tmp_path / "next.sb", "--quiet")
        again = numbers(shell("predict", rest, "-m", tmp_path / "next.sb").out)
        found.append((predicted, again))
    assert found[0] == found[1] == found[2]
    assert len({*found[0][0]}) > 2


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("first", ["a.csv", "a.jsonl"])
def test_dictionaries_and_frames_in_python(first, learner, shell, tmp_path):
    path = write(tmp_path, first, FIRST)
    shell("train", path, "-o", tmp_path / "m.sb", *OPTIONS, *LEARNERS[learner])
    rest = write(tmp_path, "b.csv", REST)
    expected = numbers(shell("predict", rest, "-m", tmp_path / "m.sb").out)
    model = spanboost.load(tmp_path / "m.sb")
    np.testing.assert_allclose(model.predict_many(REST), expected, rtol=1e-12)
    np.testing.assert_allclose(model.predict_many(pd.DataFrame(REST)), expected, rtol=1e-12)
    assert [model.predict_one(row) for row in REST] == pytest.approx(expected)
    for row in REST:
        model.learn_one(row, row["rent"])
    shell("train", rest, "-i", tmp_path / "m.sb", "-o", tmp_path / "next.sb", "--quiet")
    same = spanboost.load(tmp_path / "next.sb")
    probe = ROWS[3] | {"city": "Trier"}
    assert model.predict_one(probe) == pytest.approx(same.predict_one(probe))
    spanboost.save(model, tmp_path / "python.sb")
    again = numbers(shell("predict", rest, "-m", tmp_path / "python.sb").out)
    assert again == pytest.approx(model.predict_many(REST).tolist())


@pytest.fixture
def table_model(shell, tmp_path):
    path = write(tmp_path, "a.csv", FIRST)
    shell("train", path, "-o", tmp_path / "m.sb", *OPTIONS, *LEARNERS["linear"])
    return tmp_path / "m.sb"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"size": "big", "city": "Ulm"}, "'size' is 'big'; expected a number"),
        (
            {"size": 1, "when": "soon"},
            "'when' is 'soon'; expected a date or time, such as",
        ),
        ({"sise": 40}, "none of the model's columns (size, city, when); did you mean 'size'?"),
    ],
)
def test_rows_that_do_not_fit(row, message, table_model, shell, tmp_path):
    model = spanboost.load(table_model)
    with pytest.raises(spanboost.DataError) as caught:
        model.predict_many([FIRST[0], row])
    assert message in str(caught.value)
    assert caught.value.row == 1
    path = write(tmp_path, "bad.jsonl", [FIRST[0], row, FIRST[1]])
    err = shell("predict", path, "-m", table_model, status=2).err
    assert err.startswith(f"spanboost: {path}:2: ")
    assert message in err
    skipped = shell("predict", path, "-m", table_model, "--on-error", "skip").out
    assert [line.split(",")[0] for line in skipped.splitlines()[1:]] == ["1", "3"]


def test_bad_rows_teach_no_categories(table_model):
    model = spanboost.load(table_model)
    with pytest.raises(spanboost.DataError):
        model.learn_many([FIRST[0] | {"city": "Trier"}, {"size": "x"}], [1.0, 2.0])
    model.predict_many([FIRST[0] | {"city": "Trier"}])
    assert [*model.schema.categories[0].codes] == ["Ulm", "Bonn", "Köln"]


@pytest.mark.parametrize(
    ("row", "note"),
    [
        ({"sise": 40, "city": "Ulm", "when": None}, "no key 'size' in the first rows; its values"),
        ({"sise": 40, "city": "Ulm"}, "no keys 'size', 'when' in the first rows; their values"),
    ],
)
def test_keys_that_never_occur_get_one_note(row, note, table_model, shell, tmp_path):
    path = write(tmp_path, "b.jsonl", [row] * 3)
    err = shell("predict", path, "-m", table_model).err
    assert err == f"note: {path}: {note} are missing; did you mean 'sise'?\n"


@pytest.mark.parametrize("name", ["b.jsonl", "b.csv"])
def test_learned_keys_that_never_occur_get_one_note(name, shell, tmp_path):
    model, rows = tmp_path / "m.sb", write(tmp_path, "a.jsonl", FIRST)
    shell("train", rows, "-o", model, *OPTIONS, *LEARNERS["linear"])
    assert "no key" not in shell("predict", rows, "-m", model).err
    path = write(tmp_path, name, [{"sise": 40.0, "when": "2024-01-01", "rent": 300.0}] * 3)
    expected = f"{path}: no keys 'city', 'size' in the first rows, which the model has learned"
    err = shell("predict", path, "-m", model).err
    assert [line for line in err.splitlines() if "no key" in line] == [f"note: {expected}"]
    assert expected in shell("evaluate", path, "-i", model, "-t").err
    assert "no key" not in shell("evaluate", path, "-i", model).err  # these rows are learned
    path = write(tmp_path, name, [{key: row[key] for key in ("city", "when")} for row in FIRST])
    assert "no key 'size' in the first rows" in shell("predict", path, "-m", model).err


def test_sparse_rows_may_leave_out_keys(shell, tmp_path):
    model, words = tmp_path / "m.sb", [{f"word {k}": 1.0, "label": k % 2} for k in range(40)]
    rows = write(tmp_path, "a.jsonl", words)
    shell("train", rows, "-o", model, "--quiet", *LEARNERS["linear"])
    assert not shell("predict", write(tmp_path, "b.jsonl", words[:9]), "-m", model).err


def test_a_frame_without_a_learned_column_gets_a_warning(table_model):
    model, frame = spanboost.load(table_model), pd.DataFrame(REST)
    with pytest.warns(UserWarning, match="no columns 'size', 'when', which the model has learned"):
        model.predict_many(frame[["city"]])


def test_the_label_must_be_there_to_learn(table_model, shell, tmp_path):
    path = write(tmp_path, "b.jsonl", [{"size": 40, "rnt": 3}])
    err = shell("evaluate", path, "-i", table_model, "--quiet", status=2).err
    assert "the label is missing: no key 'rent'; did you mean 'rnt'?" in err
    first = write(tmp_path, "a.jsonl", FIRST)
    shell("train", first, "-o", tmp_path / "j.sb", *OPTIONS, *LEARNERS["linear"])
    table = write(tmp_path, "b.csv", [{"size": 40, "rnt": 3}])
    err = shell("evaluate", table, "-i", tmp_path / "j.sb", "--quiet", status=2).err
    assert "b.csv: column 'rent' not found; did you mean 'rnt'?" in err
    assert len(numbers(shell("predict", table, "-m", tmp_path / "j.sb").out)) == 1


def test_other_forms_are_refused(table_model, shell, tmp_path):
    path = tmp_path / "x.vw"
    path.write_text("1 |a x:1\n")
    err = shell("predict", path, "-m", table_model, status=2).err
    assert "the model reads tables, not VW text" in err


def test_a_long_list_of_columns_is_not_cut_within_a_name(shell, tmp_path):
    names = [f"column_{k}" for k in range(8)]
    rows = [dict.fromkeys(names, t) | {"label": t} for t in range(5)]
    path = write(tmp_path, "wide.csv", rows)
    shell("train", path, "-o", tmp_path / "wide.sb", *LEARNERS["linear"], "--quiet")
    other = write(tmp_path, "other.jsonl", [{"x": 1}])
    err = shell("predict", other, "-m", tmp_path / "wide.sb", status=2).err
    assert f"none of the model's columns ({', '.join(names[:6])} and 2 more)" in err


def flags(rows, write_flag=bool):
    """Return rows whose labels depend on a boolean."""
    return [
        {"size": float(k % 7), "new": write_flag(k % 3 == 0), "rent": k % 7 + 50.0 * (k % 3 == 0)}
        for k in range(rows)
    ]


@pytest.mark.parametrize(
    "spelling", [str, lambda one: str(one).lower(), lambda one: str(one).upper()]
)
def test_booleans_are_the_same_in_every_form_and_spelling(spelling, shell, tmp_path):
    path = write(tmp_path, "a.csv", flags(200, spelling))
    shell("train", path, "-o", tmp_path / "m.sb", *OPTIONS, *LEARNERS["linear"])
    expected = numbers(shell("predict", path, "-m", tmp_path / "m.sb").out)
    assert max(expected) > min(expected) + 20
    for name, write_flag in [
        ("b.parquet", bool),
        ("b.jsonl", bool),
        ("c.csv", str),
        ("d.csv", lambda one: str(one).lower()),
        ("e.parquet", str),
        ("f.jsonl", lambda one: str(one).upper()),
        ("g.csv", int),
    ]:
        run = shell(
            "predict", write(tmp_path, name, flags(200, write_flag)), "-m", tmp_path / "m.sb"
        )
        assert numbers(run.out) == expected
        assert "known" not in run.err
        again = write(tmp_path, name, flags(40, write_flag))
        shell("train", again, "-i", tmp_path / "m.sb", "-o", tmp_path / "next.sb", "--quiet")
        model = spanboost.load(tmp_path / "next.sb")
        (column,) = model.schema.categories
        assert {*column.codes} == {spelling(True), spelling(False)}
        assert model.predict_one({"size": 1.0, "new": True}) == model.predict_one(
            {"size": 1.0, "new": "true"}
        )
        assert model.predict_many(pd.DataFrame(flags(3)))[0] == model.predict_one(flags(1)[0])


def test_columns_with_other_values_and_earlier_models_keep_spellings_apart(shell, tmp_path):
    rows = [{"flag": ["True", "true", "maybe"][k % 3], "rent": k % 3} for k in range(60)]
    shell(
        "train",
        write(tmp_path, "a.csv", rows),
        "-o",
        tmp_path / "m.sb",
        *OPTIONS,
        *LEARNERS["linear"],
    )
    schema = spanboost.load(tmp_path / "m.sb").schema
    (column,) = schema.categories
    assert [*column.codes] == ["True", "true", "maybe"]
    assert column.booleans is None
    assert "booleans" not in column.state()


def test_booleans_of_mixed_spelling_have_two_codes(shell, tmp_path):
    rows = [{"flag": ["True", "FALSE", "true", "False"][k % 4], "rent": k % 2} for k in range(60)]
    shell(
        "train",
        write(tmp_path, "a.csv", rows),
        "-o",
        tmp_path / "m.sb",
        *OPTIONS,
        *LEARNERS["linear"],
    )
    (column,) = spanboost.load(tmp_path / "m.sb").schema.categories
    assert [*column.codes] == ["True", "False"]
