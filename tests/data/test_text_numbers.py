"""Numbers that are written as text, in data frames and in JSON Lines."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from spanboost import DataError, load, save
from spanboost.cli.main import main
from spanboost.data.frames import frame_reader
from spanboost.sklearn import BoostingRegressor

NOTE = "numbers as text, such as '0.25', which are read as numbers"


def frame(rows=200, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"a": rng.integers(0, 9, rows) / 4, "b": rng.choice(["x", "y"], rows)})


def as_text(numbers):
    return numbers.assign(a=numbers["a"].map(str))


def labels(X):
    return X["a"].astype(float) + 3 * (X["b"] == "x")


def trees():
    return BoostingRegressor("trees", n_estimators=10, random_state=0)


@pytest.mark.parametrize("convert", [lambda X: X, pl.from_pandas, pa.Table.from_pandas])
def test_a_column_of_texts_that_are_all_numbers_is_read_as_numbers(convert, tmp_path):
    X = frame()
    X.loc[0, "a"] = 0.25
    y = labels(X)
    expected = trees().fit(X, y)
    with pytest.warns(UserWarning, match=f"column 'a' contains {NOTE}; if they are categories"):
        model = trees().fit(convert(as_text(X)), y)
    new = frame(50, seed=1)
    assert (model.predict(convert(as_text(new))) == expected.predict(new)).all()
    assert (model.predict(convert(new)) == expected.predict(new)).all()  # and real numbers
    save(model, tmp_path / "model.sb")
    again = load(tmp_path / "model.sb")
    assert (again.predict(convert(as_text(new))) == expected.predict(new)).all()


def test_one_warning_names_all_columns_of_numbers():
    X = pd.DataFrame({"a": ["0.25", "7"], "b": ["1", "2"], "c": ["x", "y"]})
    with pytest.warns(UserWarning, match=f"columns 'a', 'b' contain {NOTE}"):
        reader = frame_reader(X)
    assert reader.numerals == {0, 1}
    assert list(reader.codes) == [2]


def test_missing_values_of_files_are_missing():
    X = pd.DataFrame({"a": ["0.25", "NA", "", None, " 7 ", "-", "?"]})
    with pytest.warns(UserWarning, match=NOTE):
        reader = frame_reader(X)
    numbers = reader.read(reader.table(X), learn=True)
    np.testing.assert_array_equal(numbers.ravel(), [0.25, *[np.nan] * 3, 7, np.nan, np.nan])


def test_a_later_text_that_is_not_a_number_is_an_error_with_column_and_row():
    X = as_text(frame())
    X.loc[0, "a"] = "0.25"
    with pytest.warns(UserWarning, match=NOTE):
        model = trees().fit(X, labels(X))
    before = model.predict(X)
    X.loc[3, "a"] = "many"
    for use in (model.predict, lambda rows: model.partial_fit(rows, np.zeros(200))):
        with pytest.raises(DataError, match="row 3: column 'a': 'many' is not a number, as in"):
            use(X)
    assert (model.predict(X.drop(index=3)) == np.delete(before, 3)).all()


@pytest.mark.parametrize("texts", [["89073", "53111", "00100"], ["x", "0.5", "y"], ["", None]])
def test_codes_and_other_texts_are_categories_without_a_warning(texts):
    reader = frame_reader(pd.DataFrame({"a": texts * 10}))
    assert not reader.numerals
    assert list(reader.codes) == [0]


def test_texts_besides_numbers_make_categories_with_a_warning():
    X = pd.DataFrame({"a": ["0.5", "0.7", "0.8", "many"]})
    with pytest.warns(UserWarning, match="'a' is read as categories, because it contains texts li"):
        reader = frame_reader(X)
    assert list(reader.codes) == [0]


def test_categories_of_numbers_as_text_stay_categories():
    X = as_text(frame()).astype({"a": "category"})
    reader = frame_reader(X)
    assert list(reader.codes) == [0, 1]


@pytest.mark.parametrize(
    ("fitted", "other", "message"),
    [
        (["89073", "00100"], [89073, 100], "'zip' has type int64, but contained text when the mod"),
        (["89073", "00100"], [89073.0, 100.0], "'zip' has type double, but contained text"),
        (
            pd.Categorical([89073, 100]),
            ["89073", "100"],
            "contained numbers as categories when the model was fitted; convert it to numbers",
        ),
        (
            pd.Categorical(["89073", "100"]),
            pd.Categorical([89073, 100]),
            "contained text when the model was fitted; convert it to text",
        ),
    ],
)
def test_categories_that_change_between_text_and_numbers_are_refused_by_name(
    fitted, other, message
):
    X, wrong = (pd.DataFrame({"a": [1.0, 2.0], "zip": values}) for values in (fitted, other))
    model = trees().fit(X, [1.0, 2.0])
    for use in (model.predict, lambda rows: model.partial_fit(rows, [1.0, 2.0])):
        with pytest.raises(ValueError, match=message):
            use(wrong)
    assert model.predict(X).shape == (2,)


def test_identifiers_that_become_numbers_are_refused():
    X = pd.DataFrame({"id": [f"0{k}" for k in range(200)], "a": np.arange(200.0)})
    with pytest.warns(UserWarning, match="'id' has a different value in most rows"):
        model = trees().fit(X, np.arange(200.0))
    with pytest.raises(ValueError, match="'id' has type int64, but contained text"):
        model.predict(X.assign(id=np.arange(200)))


def test_numbers_and_categories_of_numbers_are_the_same_categories():
    X = pd.DataFrame({"zip": pd.Categorical([1, 2, 3] * 20)})
    model = trees().fit(X, np.tile([1.0, 5.0, 9.0], 20))
    assert (model.predict(X) == model.predict(pd.DataFrame({"zip": [1, 2, 3] * 20}))).all()
    missing = pd.DataFrame({"zip": [1.0, None]})
    assert model.predict(missing)[0] == model.predict(X)[0]


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_json_lines_with_numbers_as_text_get_a_note(tmp_path, capsys):
    rows = [{"a": f"{k / 8}", "store": str(k % 3), "label": k} for k in range(40)]
    file = write_lines(tmp_path / "rows.jsonl", rows)
    assert main(["evaluate", file, "--learner", "linear"]) == 0
    text = capsys.readouterr().err
    assert "texts like '0.0' of 'a' are numbers, but each of them is a category of its own" in text
    assert "write them without quotes" in text
    assert "'store'" not in text


@pytest.mark.parametrize("command", ["train", "evaluate", "predict"])
def test_a_text_under_a_key_of_numbers_is_a_bad_row(command, tmp_path, capsys):
    rows = [{"a": k / 8, "label": k} for k in range(40)]
    model = str(tmp_path / "model.sb")
    good = write_lines(tmp_path / "good.jsonl", rows)
    assert main(["train", good, "-o", model, "--learner", "linear", "--quiet"]) == 0
    rows[30]["a"] = "3.75"
    bad = write_lines(tmp_path / "bad.jsonl", rows)
    options = {
        "train": ["-o", str(tmp_path / "new.sb"), "--learner", "linear"],
        "evaluate": ["--learner", "linear"],
        "predict": ["-m", model],
    }[command]
    assert main([command, bad, *options]) == 2
    assert "bad.jsonl:31: 'a' is the text '3.75', but was a number" in capsys.readouterr().err
    assert main([command, bad, *options, "--on-error", "skip"]) == 0
    streams = capsys.readouterr()
    assert "left out: " in streams.err or command == "predict"
    if command == "predict":
        assert len(streams.out.splitlines()) == 40  # with the names of the columns
