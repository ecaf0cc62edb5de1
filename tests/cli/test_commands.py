"""The commands from end to end: what they print, write and refuse."""

import json
import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from golden import lines_match, printed_lines
from pyarrow import parquet
from streams import EVERY, FEATURES, FLATS, HOUSES, LINEAR, as_csv, as_jsonl, as_vw, put

from spanboost import LinearSGD, SpanBoost, load, save

GOLDEN = Path(__file__).parents[1] / "golden"


def numbers(text):
    """Parse a column of predictions below its name."""
    name, *values = text.split()
    assert name == "prediction"
    return np.array(values, dtype=float)


def evaluate(shell, path, *options):
    """Run `evaluate`; return the result and the predictions as CSV.

    The learner is linear and has 4 copies, unless the options say otherwise.
    """
    output = path.with_suffix(".predictions")
    learner = () if "--learner" in options else ("--learner", "linear")
    copies = () if {"-n", "--n-estimators"} & {*options} else ("-n", "4")
    model = (*learner, *copies)
    out = shell("evaluate", path, "--json", "-p", output, "--quiet", *model, *options).out
    assert out.startswith("{")
    return json.loads(out), output.read_text()


# --- input ---


@pytest.mark.parametrize(
    ("header", "options", "label", "features"),
    [
        ("a,b,c", (), "c", ["a", "b"]),
        ("a,label,c", (), "label", ["a", "c"]),
        ("a,label,c", ("--label", "a"), "a", ["label", "c"]),
        ("a,label,c", ("--ignore", "label"), "c", ["a"]),
        ("a,b,c", ("--ignore", "c"), "b", ["a"]),
        ("a,b,c", ("--weight", "c"), "b", ["a"]),
        ("a,Label, b ", (), "b", ["a", "Label"]),
        ("1,2,3", ("--no-header",), "3", ["1", "2"]),
        ("1,2,3", ("--no-header", "--label", "2"), "2", ["1", "3"]),
    ],
)
def test_which_column_is_the_label(header, options, label, features, shell, tmp_path):
    path = put(tmp_path, "x.csv", f"{header}\n1,2,3\n4,5,6\n".encode())
    output = tmp_path / "m.sb"
    err = shell("train", path, "-o", output, *LINEAR, *options).err
    assert f"the label is {label!r}" in err
    found = json.loads(shell("inspect", output, "--json").out)
    assert found["schema"]["label"] == label
    assert found["schema"]["numbers"] == features
    assert found["examples"] == 2 + ("--no-header" in options)


def test_the_label_of_json_lines(shell, tmp_path):
    path = put(tmp_path, "x.jsonl", as_jsonl(HOUSES))
    assert "the label is 'label'" in shell("evaluate", path, *LINEAR).err
    assert "the label is 'age'" in shell("evaluate", path, *LINEAR, "--label", "age").err


def test_an_ignored_column_equals_a_missing_one(data, shell, tmp_path):
    without = [{k: v for k, v in row.items() if k not in ("age", "rooms")} for row in HOUSES]
    other = put(tmp_path, "without.csv", as_csv(without))
    ignored = evaluate(shell, data, "--ignore", "age,rooms")[1]
    assert ignored == evaluate(shell, other)[1] != evaluate(shell, data)[1]
    assert ignored == evaluate(shell, data, "--ignore", "age", "--ignore", "rooms")[1]


def test_an_option_may_repeat_its_value(data, shell):
    once, twice = (evaluate(shell, data, *["--seed", "1"] * times) for times in (1, 2))
    assert once[1] == twice[1]


def test_the_names_of_other_libraries_are_options(data, shell):
    ours = ("--learner", "linear", "-n", "3", "--step", "0.5")
    theirs = ("--learner", "linear", "--n-estimators", "3", "--learning-rate", "0.5")
    assert evaluate(shell, data, *ours)[1] == evaluate(shell, data, *theirs)[1]
    entry = "linear:n=3:step=0.5,linear:n_estimators=3:learning_rate=0.5"
    assert "duplicate model" in shell("evaluate", data, "--compare", entry, status=2).err


def test_a_categorical_number_equals_a_text(data, shell, tmp_path):
    texts = [row | {"rooms": f"r{row['rooms']}"} for row in HOUSES]
    other = put(tmp_path, "texts.csv", as_csv(texts))
    chosen = evaluate(shell, data, "--categorical", "rooms")[1]
    assert chosen == evaluate(shell, other)[1] != evaluate(shell, data)[1]


def test_delimiters_and_missing_headers_change_nothing(data, shell, tmp_path):
    expected = evaluate(shell, data)[1]
    for delimiter, spelt in ((";", ";"), ("\t", r"\t"), ("|", "|"), (" ", " ")):
        path = put(tmp_path, "x.csv", as_csv(HOUSES, delimiter=delimiter))
        assert evaluate(shell, path, "--delimiter", spelt)[1] == expected
        assert evaluate(shell, path)[1] == expected
    path = put(tmp_path, "x.csv", as_csv(HOUSES, header=False))
    assert evaluate(shell, path, "--no-header")[1] == expected
    assert evaluate(shell, path)[1] == expected
    path = put(tmp_path, "x.txt", as_csv(HOUSES, delimiter=";", header=False))
    assert evaluate(shell, path)[1] == expected


def test_weights_are_the_same_in_every_format(shell, tmp_path):
    rng = np.random.default_rng(0)
    weights = rng.choice([0, 0.5, 1, 3], len(HOUSES)).tolist()
    rows = [{"w": w, **row} for w, row in zip(weights, HOUSES, strict=True)]
    lines = as_vw(HOUSES).decode().splitlines()
    weighted = [line.replace(" |", f" {w} |") for w, line in zip(weights, lines, strict=True)]
    text = put(tmp_path, "x.vw", "\n".join(weighted).encode())
    tables = put(tmp_path, "x.csv", as_csv(rows)), put(tmp_path, "x.jsonl", as_jsonl(rows))
    results = [evaluate(shell, path, "--weight", "w") for path in tables]
    results.append(evaluate(shell, text))
    for result, predictions in results:
        assert result["weight"] == sum(weights)
        y = np.array([row["label"] for row in rows])
        assert result["best_constant"] == pytest.approx(np.average(y, weights=weights))
        losses = (numbers(predictions) - y) ** 2
        assert result["loss"] == pytest.approx(np.average(losses, weights=weights))
        half = slice(len(y) // 2)
        first = np.average(losses[half], weights=weights[half])
        assert result["loss_first_half"] == pytest.approx(first)
        assert result["loss"] == pytest.approx(results[0][0]["loss"], rel=1e-3)


# --- output ---


@pytest.mark.parametrize("count", [1, 2, 3, 64, 101])
def test_losses_agree_with_the_predictions(count, shell, tmp_path):
    rows = [row | {"label": 500_000 + 1000 * row["label"]} for row in HOUSES[:count]]
    result, predictions = evaluate(shell, put(tmp_path, "x.csv", as_csv(rows)))
    y = np.array([row["label"] for row in rows])
    losses = (numbers(predictions) - y) ** 2
    assert result["examples"] == len(losses) == count
    assert result["loss"] == pytest.approx(losses.mean())
    assert result["loss_second_half"] == pytest.approx(losses[count // 2 :].mean())
    if count == 1:
        assert result["loss_first_half"] is None
    else:
        assert result["loss_first_half"] == pytest.approx(losses[: count // 2].mean())
    assert result["best_constant"] == pytest.approx(y.mean())
    assert result["best_constant_loss"] == pytest.approx(y.var(), rel=1e-9, abs=1e-6)
    assert result["seconds"] > 0
    learning = result["seconds"] - result["compile_seconds"]
    assert result["examples_per_second"] == pytest.approx(count / learning, rel=0.01)


def test_a_row_that_is_too_long_for_a_learner_is_a_bad_row(shell, tmp_path):
    path, output = put(tmp_path, "x.csv", b"a,label\n1,2\n30,3\n2,4\n"), tmp_path / "m.sb"
    options = ("--quiet", "-n", "4", "--learner", "ball", "--x-norm", "5", "--label-range", "0,10")
    assert f"{path}:3: " in shell("train", path, "-o", output, *options, status=2).err
    shell("train", path, "-o", output, *options, "--on-error", "skip")
    assert f"{path}:3: " in shell("predict", path, "-m", output, status=2).err
    printed = shell("predict", path, "-m", output, "--on-error", "skip")
    lines = [line.split(",") for line in printed.out.splitlines()]
    assert [line[0] for line in lines] == ["line", "2", "4"]  # of each prediction
    assert f"left out: {path}:3: " in printed.err


@pytest.mark.parametrize("factor", [1e160, 1e300])
def test_labels_whose_squares_overflow(factor, shell, tmp_path):
    rows = [row | {"label": factor * (-1) ** k} for k, row in enumerate(HOUSES)]
    path = put(tmp_path, "x.csv", as_csv(rows))
    printed = shell(
        "train", path, "-o", tmp_path / "m.sb", "--json", "--checkpoint-every", 50, *EVERY
    )
    result = json.loads(printed.out)
    assert result["loss"] is None
    assert result["best_constant_loss"] is None
    assert "overflow" not in printed.err
    certificate = json.loads(shell("evaluate", path, "--certificate", "--json", *EVERY).out)
    assert certificate["certificate"]["regret"] is None


def test_a_baseline_is_the_learner_alone(data, shell):
    one = evaluate(shell, data)[0]
    alone = evaluate(shell, data, "--booster", "hull", "-n", "1")[0]
    result = evaluate(shell, data, "--baseline")[0]
    baseline = result["baseline"]
    for key in ("loss", "loss_first_half", "loss_second_half", "best_constant_loss", "examples"):
        assert result[key] == one[key]
        assert baseline[key] == alone[key]
    assert {"seconds", "examples_per_second"} <= set(baseline)
    gain = 1 - result["loss_second_half"] / baseline["loss_second_half"]
    assert result["relative_improvement"] == gain
    assert "baseline" not in one
    itself = evaluate(shell, data, "--booster", "hull", "-n", "1", "--baseline")[0]
    assert itself["baseline"]["loss"] == itself["loss"] == alone["loss"]
    assert itself["relative_improvement"] == 0


def test_compared_models_equal_models_evaluated_alone(data, shell):
    words = ("evaluate", data, "--json", "--quiet", "-n", "4", "--compare", "linear:hull,linear")
    result = json.loads(shell(*words).out)
    assert list(result["compared"]) == ["linear:hull", "linear:span"]
    for booster in ("hull", "span"):
        alone = evaluate(shell, data, "--booster", booster)[0]
        both = result["compared"][f"linear:{booster}"]
        assert both.items() <= alone.items()
        assert set(both) >= {"loss", "loss_first_half", "loss_second_half"}
    assert result["loss"] == result["compared"]["linear:hull"]["loss"]


@pytest.mark.parametrize("command", ["train", "evaluate"])
def test_the_table_of_vowpal_wabbit(command, shell, tmp_path):
    path = put(tmp_path, "houses.vw", as_vw(HOUSES))
    output = ("-f", tmp_path / "m.sb") if command == "train" else ()
    printed = shell(command, "-d", path, *LINEAR, *output)
    both = (printed.err + printed.out).replace(f"{tmp_path}/", "")  # as a terminal shows it
    shown = (GOLDEN / "progress.txt").read_text()
    assert lines_match(printed_lines(shown), printed_lines(both)), both
    assert printed.out.startswith("finished run\n")
    table = [line.split() for line in printed.err.splitlines() if line and line[0].isdigit()]
    assert [row[2] for row in table] == [str(2**k) for k in range(8)]


def test_the_table_of_several_models(data, shell, tmp_path):
    options = ("-n", "4", "--compare", "linear,linear:hull", "--baseline")
    printed = shell("evaluate", data, *options)
    both = (printed.err + printed.out).replace(f"{tmp_path}/", "")
    shown = (GOLDEN / "compared.txt").read_text()
    assert lines_match(printed_lines(shown), printed_lines(both)), both
    assert printed.out.startswith("finished run\n")


def test_standard_output_is_for_results(data, shell, tmp_path):
    output = tmp_path / "m.sb"
    assert shell("train", data, "-o", output, *EVERY) == ("", "")
    for words in (("train", data, "-o", output), ("evaluate", data)):
        printed = shell(*words, *LINEAR)
        assert "average loss = " in printed.out
        assert "average loss = " not in printed.err
    quiet = shell("evaluate", data, *EVERY)
    assert quiet.out.startswith("finished run\n")
    assert quiet.err == ""


def test_other_results_on_standard_output_make_the_summary_a_message(data, shell, tmp_path):
    printed = shell("train", data, "-o", tmp_path / "m.sb", *LINEAR, "--json")
    assert json.loads(printed.out)
    assert "average loss = " in printed.err
    printed = shell("evaluate", data, "-p", "-", *EVERY)
    assert len(numbers(printed.out)) == len(HOUSES)
    assert "average loss = " in printed.err


@pytest.mark.process
def test_the_bar_is_for_terminals_only(data):
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (40, 100))
    command = [sys.executable, "-m", "spanboost", "evaluate", data, *LINEAR, "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, check=True)
    os.close(theirs)
    assert json.loads(done.stdout)["examples"] == len(HOUSES)
    shown = b""
    try:
        while part := os.read(ours, 1 << 16):
            shown += part
    except OSError:  # a terminal signals its end this way
        pass
    finally:
        os.close(ours)
    assert b"\r" in shown.replace(b"\r\n", b"")
    assert b"average loss" in shown
    done = subprocess.run(command, capture_output=True, check=True)
    assert b"\r" not in done.stderr


@pytest.mark.process
def test_nothing_heavy_is_imported_for_help():
    code = (
        "import sys; from spanboost.cli.main import main\n"
        "for words in ([], ['train'], ['evaluate'], ['predict'], ['inspect'], ['demo']):\n"
        "    try: main([*words, '--help'])\n"
        "    except SystemExit as stop: assert stop.code == 0\n"
        "print(sorted({'numba', 'numpy', 'pyarrow', 'fsspec', 'tqdm'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    for word in ("train", "evaluate", "predict", "inspect", "demo", "--checkpoint-every", "-f"):
        assert word in done.stdout


# --- models ---


def test_the_library_predicts_the_same(data, model, shell):
    X = np.array([[row[name] for name in FEATURES] for row in HOUSES], dtype=np.float32)
    y = np.array([row["label"] for row in HOUSES])
    ours = SpanBoost(LinearSGD(), n=4, label_range="auto")
    np.testing.assert_array_equal(numbers(evaluate(shell, data)[1]), ours.learn_many(X, y))
    predicted = numbers(shell("predict", data, "-m", model).out)
    np.testing.assert_array_equal(predicted, ours.predict_many(X))
    np.testing.assert_array_equal(predicted, load(model).predict_many(X))


def test_predict_finds_columns_by_their_names(model, shell, tmp_path):
    def predicted(rows):
        return shell("predict", put(tmp_path, "new.csv", as_csv(rows)), "-m", model).out

    expected = predicted(HOUSES)
    assert predicted([row | {"label": "anything"} for row in HOUSES]) == expected
    assert predicted([{name: row[name] for name in FEATURES} for row in HOUSES]) == expected
    turned = [{"more": "x", **dict(reversed(row.items())), "other": ""} for row in HOUSES]
    assert predicted(turned) == expected
    without = put(tmp_path, "without.csv", as_csv([{"size": 1, "rooms": 2, "label": 3}]))
    printed = shell("predict", without, "-m", model, "-o", tmp_path / "p.csv", status=2)
    assert f"spanboost: {without}: column 'age' not found; the model needs" in printed.err
    assert not (tmp_path / "p.csv").exists()


def test_destinations_of_predictions(data, model, shell, tmp_path):
    out = shell("predict", data, "-m", model, "-o", "-").out
    assert shell("predict", data, "-m", model).out == out
    assert shell("predict", "-d", data, "-t", "-i", model, "-p", "-").out == out
    for name in ("p.csv", "p.txt", "p.parquet"):
        assert shell("predict", data, "-m", model, "-o", tmp_path / name) == ("", "")
    assert (tmp_path / "p.csv").read_text() == (tmp_path / "p.txt").read_text() == out
    table = parquet.read_table(tmp_path / "p.parquet")
    np.testing.assert_array_equal(table["prediction"].to_numpy(), numbers(out))
    if Path("/dev/full").exists():  # a full disk is not a usage error
        assert "space" in shell("predict", data, "-m", model, "-o", "/dev/full", status=1).err
        assert "/dev/full: No space" in shell("demo", "--save", "/dev/full", status=1).err
        words = [sys.executable, "-m", "spanboost", "predict", str(data), "-m", str(model)]
        with open("/dev/full", "w") as full:
            run = subprocess.run(words, check=False, stdout=full, stderr=subprocess.PIPE, text=True)
        assert run.stderr == "spanboost: standard output: No space left on device\n"
        assert run.returncode == 1


@pytest.mark.process
def test_a_reader_that_closes_the_pipe(data, model):
    command = f"{sys.executable} -m spanboost predict {data} -m {model} | head -n 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "prediction\n", "")


def test_rows_that_cannot_be_predicted(data, model, shell, tmp_path):
    path = put(tmp_path, "new.csv", b"size,rooms,age\n50,2,0.5\n50,two,0.5\n60,3,0.1\n")
    printed = shell("predict", path, "-m", model, status=2)
    assert printed.err == f"spanboost: {path}:3: column 'rooms': 'two' is not a number\n"
    printed = shell("predict", path, "-m", model, "--on-error", "skip")
    lines = [line.split(",") for line in printed.out.splitlines()]
    assert [line[0] for line in lines] == ["line", "2", "4"]  # of each prediction
    assert f"left out: {path}:3: " in printed.err
    assert "bad rows left out = 1" in printed.err
    assert shell("predict", put(tmp_path, "none.csv", b"size,rooms,age\n"), "-m", model) == (
        "prediction\n",
        "",
    )


def test_an_unknown_category_counts_as_missing(shell, tmp_path):
    path, output = put(tmp_path, "flats.csv", as_csv(FLATS)), tmp_path / "m.sb"
    shell("train", path, "-o", output, "--label", "label", *EVERY)
    texts = []
    for city in ("Atlantis", None, "Ulm"):
        rows = [row | {"city": city} for row in FLATS]
        new = put(tmp_path, "new.csv", as_csv(rows))
        texts.append(shell("predict", new, "-m", output).out)
        # evaluate -t predicts the same and does not change the model
        before = output.read_bytes()
        tested = tmp_path / "tested.csv"
        shell("evaluate", new, "-t", "-i", output, "-p", tested, "--quiet")
        assert tested.read_text() == texts[-1]
        assert output.read_bytes() == before
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.parametrize("trained", ["csv", "jsonl"])
@pytest.mark.parametrize("predicted", ["csv", "jsonl"])
def test_predict_notes_a_column_without_known_categories(trained, predicted, shell, tmp_path):
    write = {"csv": as_csv, "jsonl": as_jsonl}
    path = put(tmp_path, f"flats.{trained}", write[trained](FLATS))
    model = tmp_path / "m.sb"
    shell("train", path, "-o", model, "--label", "label", *EVERY)
    known = {row["city"] for row in FLATS} - {None}
    for cities, noted in (([city.upper() for city in known], True), ([*known, "ULM"], False)):
        rows = [row | {"city": cities[k % len(cities)]} for k, row in enumerate(FLATS)]
        new = put(tmp_path, f"new.{predicted}", write[predicted](rows))
        err = shell("predict", new, "-m", model).err
        note = "note: no value of column 'city' is known to the model; all of them count as missing"
        assert err.count(note) == noted
        assert ("; did you mean" in err) == noted
    with pytest.warns(UserWarning, match="no value of column 'city' is known"):
        load(model).predict_many(pd.DataFrame(FLATS).drop(columns="label").assign(city="Rome"))
    single = put(tmp_path, f"one.{predicted}", write[predicted]([FLATS[0] | {"city": "Rome"}]))
    assert "no value" not in shell("predict", single, "-m", model).err


@pytest.mark.parametrize(
    "learner", [("linear",), ("linear", "--booster", "hull"), ("stumps",), ("network",)], ids=str
)
def test_training_in_two_halves_gives_the_same_model(learner, shell, tmp_path):
    whole, first, second = (
        put(tmp_path, f"{name}.csv", as_csv(rows))
        for name, rows in (("whole", FLATS), ("first", FLATS[:90]), ("second", FLATS[90:]))
    )
    one, half, two = (tmp_path / name for name in ("one.sb", "half.sb", "two.sb"))
    options = ("-n", "4", "--quiet", "--label", "label", "--learner", *learner)
    shell("train", whole, "-o", one, *options)
    shell("train", first, "-o", half, *options)
    shell("train", second, "-i", half, "-f", two, "--quiet")
    assert two.read_bytes() == one.read_bytes() != half.read_bytes()
    shell("train", second, "-i", half, "-o", half, "--quiet")  # onto itself
    assert half.read_bytes() == one.read_bytes()


# --- classes ---


def write_labelled(folder, name, values):
    """Write the houses with two labels, the first one for large houses; return path and labels."""
    y = [values[row["size"] + 5 * row["rooms"] < 130] for row in HOUSES]
    rows = [row | {"label": label} for row, label in zip(HOUSES, y, strict=True)]
    return put(folder, name, as_csv(rows)), y


def test_two_labels(shell, tmp_path):
    probabilities = []
    for values, options in [
        (("0", "1"), ()),
        (("-1", "1"), ()),
        (("0.0", "1.0"), ()),
        (("elm", "oak"), ()),  # the first label seen is negative
        (("oak", "elm"), ()),
        (("no", "yes"), ()),
        (("low", "high"), ("--positive", "high")),
        (("3", "7"), ("--positive", "7")),
    ]:
        path, y = write_labelled(tmp_path, "x.csv", values)
        result, predictions = evaluate(shell, path, "--loss", "logistic", *options)
        header, *rows = [line.replace('"', "").split(",") for line in predictions.splitlines()]
        shorter = [value.removesuffix(".0") for value in values]
        assert header == ["prediction", *(f"p_{value}" for value in shorter)]
        p = np.array([float(row[2]) for row in rows])
        np.testing.assert_allclose([float(row[1]) for row in rows], 1 - p, rtol=1e-9)
        assert [row[0] for row in rows] == [shorter[int(one > 0.5)] for one in p]
        right = np.where(np.array(y) == values[1], p, 1 - p)
        assert result["loss"] == pytest.approx(-np.log(right).mean())
        share = np.mean(np.array(y) == values[1])
        entropy = -share * np.log(share) - (1 - share) * np.log(1 - share)
        assert result["best_constant_loss"] == pytest.approx(entropy)
        assert result["best_constant"] == pytest.approx(np.log(share / (1 - share)))
        probabilities.append(p)
        predicted = {row[0] for row in rows}
        assert values[1] in predicted or values[1].removesuffix(".0") in predicted
        assert len(predicted) == 2
    for other in probabilities[1:]:
        np.testing.assert_allclose(other, probabilities[0], rtol=1e-12)


def test_predict_writes_the_probability_of_each_class(shell, tmp_path):
    path, _ = write_labelled(tmp_path, "x.csv", ("low", "high"))
    for options in ((), ("--positive", "high")):
        shell("train", path, "-o", tmp_path / "m.sb", "--loss", "logistic", *options, *EVERY)
        shell("predict", path, "-m", tmp_path / "m.sb", "-o", tmp_path / "p.parquet")
        table = parquet.read_table(tmp_path / "p.parquet")
        assert sorted(table.column_names) == ["p_high", "p_low", "prediction"]
        low, high = (table[f"p_{name}"].to_numpy() for name in ("low", "high"))
        np.testing.assert_allclose(low + high, 1)
        want = np.where(high > low, "high", "low").tolist()
        assert table["prediction"].to_pylist() == want
    err = shell("evaluate", path, "--loss", "logistic", "--positive", "hihg", *EVERY, status=2).err
    assert "no label equals 'hihg' (--positive)" in err


@pytest.mark.parametrize(("two", "third"), [("01", "2"), ("01", "-1"), ("ab", "c"), ("ab", "1")])
def test_a_third_label_is_a_bad_row(two, third, shell, tmp_path):
    path, y = write_labelled(tmp_path, "x.csv", two)
    path.write_bytes(path.read_bytes() + f"1,2,3,{third}\n".encode())
    err = shell("evaluate", path, "--loss", "logistic", *EVERY, status=2).err
    place = f"{path}:{len(y) + 2}"
    assert err.startswith(
        f"spanboost: {place}: column 'label': the label {third!r} cannot be used "
    )
    assert err.endswith(
        "; name the positive label with --positive VALUE, or use --loss softmax for classes; "
        "to leave out such rows, use --on-error skip\n"
    )
    shell("evaluate", path, "--loss", "logistic", "--positive", two[1], *EVERY)
    shell("evaluate", path, "--loss", "softmax", *EVERY)


def test_hinge_loss(shell, tmp_path):
    path, y = write_labelled(tmp_path, "x.csv", ("0", "1"))
    result, predictions = evaluate(shell, path, "--loss", "hinge")
    rows = [line.split(",") for line in predictions.replace('"', "").splitlines()]
    assert rows.pop(0) == ["prediction", "score"]
    scores, signs = (np.array(column, float) for column in ([r[1] for r in rows], y))
    losses = np.maximum(0, 1 - (2 * signs - 1) * scores)
    assert result["loss"] == pytest.approx(losses.mean())
    assert result["best_constant"] == np.sign(signs.mean() - 0.5)
    assert result["best_constant_loss"] == pytest.approx(2 * min(signs.mean(), 1 - signs.mean()))


def test_classes(shell, tmp_path):
    values = ("small", "middling", "large, very")
    rows = [row | {"label": values[k % 3]} for k, row in enumerate(HOUSES)]
    path = put(tmp_path, "x.csv", as_csv(rows))
    output, results = tmp_path / "m.sb", []
    for options in (("--loss", "softmax", "--classes", "3"), ("--loss", "softmax")):
        out = shell("train", path, "-o", output, *options, "--json", *EVERY).out
        results.append(json.loads(out))
    result = results[1]  # classes are added as they appear
    assert result["best_constant_loss"] == results[0]["best_constant_loss"]
    assert result["loss"] == pytest.approx(results[0]["loss"], rel=0.1)
    shares = np.array([67, 67, 66]) / 200
    assert result["best_constant_loss"] == pytest.approx(-(shares * np.log(shares)).sum())
    shell("predict", path, "-m", output, "-o", tmp_path / "p.parquet")
    table = parquet.read_table(tmp_path / "p.parquet")
    assert table.column_names == ["prediction", *(f"p_{value}" for value in values)]
    each = np.array([table[name].to_numpy() for name in table.column_names[1:]])
    np.testing.assert_allclose(each.sum(axis=0), 1)
    assert table["prediction"].to_pylist() == [values[k] for k in each.argmax(axis=0)]
    err = shell("evaluate", path, "--loss", "softmax", "--classes", "2", *EVERY, status=2).err
    assert f"{path}:4: column 'label': the label 'large, very' is not one of the 2 classes" in err


# --- inspect ---


def test_inspect_shows_what_was_learned(shell, tmp_path):
    rng = np.random.default_rng(0)
    a, b, c = rng.uniform(-1, 1, (3, 3000))
    y = 500_000 + 10_000 * a - 300 * (100 * b)
    rows = [dict(zip("abcy", row, strict=True)) for row in zip(a, 100 * b, c, y, strict=True)]
    path, output = put(tmp_path, "x.csv", as_csv(rows)), tmp_path / "m.sb"
    shell(
        "train",
        path,
        "-o",
        output,
        "--quiet",
        "--learner",
        "linear",
        "-n",
        "1",
        "--booster",
        "hull",
    )
    found = json.loads(shell("inspect", output, "--json", "--top", "9").out)
    effects = found["largest_effects"]
    assert [name for name in effects if len(name) == 1] == ["b", "a", "c"]
    assert effects["b"] == pytest.approx(30_000, rel=0.01)
    assert effects["a"] == pytest.approx(10_000, rel=0.01)
    assert effects["c"] < 100
    assert "sigma" not in found

    shell("train", path, "-o", output, *EVERY)
    found = json.loads(shell("inspect", output, "--json", "--top", "2").out)
    assert len(found["largest_effects"]) == 2
    assert next(iter(found["largest_effects"])) == "b"
    assert found["bytes"] == output.stat().st_size
    assert found["examples"] == 3000
    assert found["parameters"]["n"] == 4
    assert found["schema"]["numbers"] == ["a", "b", "c"]
    assert found["stage_contributions"][0] > 0
    assert sum(found["stage_contributions"]) == pytest.approx(1)
    assert len(found["sigma"]) == len(found["stage_contributions"]) == 4
    assert all(0 <= sigma <= 1 for sigma in found["sigma"])
    out = shell("inspect", output, "--all").out
    assert out.startswith(shell("inspect", output).out.rstrip("\n"))
    assert lines_match(printed_lines((GOLDEN / "inspect.txt").read_text()), printed_lines(out)), out


@pytest.mark.filterwarnings("default::spanboost.LabelWarning")
def test_warnings_name_options(shell, tmp_path):
    path = tmp_path / "wild.csv"
    labels = [1e9 if t == 500 else t % 7 for t in range(600)]
    path.write_text("x,label\n" + "".join(f"{t % 5},{y:g}\n" for t, y in enumerate(labels)))
    err = shell("train", path, "--learner", "linear", "-o", tmp_path / "m.sb").err
    assert "If such labels are correct, use --label-range growing or --label-range LOW,HIGH" in err


@pytest.mark.filterwarnings("ignore::spanboost.LabelWarning")
def test_inspect_shows_the_health(shell, tmp_path):
    rng, output = np.random.default_rng(0), tmp_path / "m.sb"
    X = rng.uniform(-1, 1, (3000, 2))
    y = X[:, 0].copy()
    y[500] = 1e9
    model = SpanBoost(LinearSGD(), n=2, label_range="auto")
    model.learn_many(X, y)
    save(model, output)
    shown = shell("inspect", output).out
    assert "  health         1 of 3,000 labels clipped\n" in shown
    assert "  label range    follows the labels; last widened at row" in shown
    found = json.loads(shell("inspect", output, "--json").out)["health"]
    assert found == model.health.to_json()
    assert not found["good"]

    y[1000:] *= 0.1  # the range shrinks
    y[2500:] = 1e6 * (1 + X[2500:, 0])
    model = SpanBoost(LinearSGD(), n=2, label_range="auto")
    model.learn_many(X, y)
    save(model, output)
    labels = model.labels.health
    assert (
        f"  health         {labels.clipped} of 3,000 labels clipped, new units of the labels at "
        f"row {labels.new_units:,}\n  label range    follows the labels; last widened at row "
        f"{labels.widened:,}, shrunk at row {labels.shrunk:,}, moved to new units at row "
        f"{labels.new_units:,}\n"
    ) in shell("inspect", output).out

    fixed = SpanBoost(LinearSGD(), n=2, label_range=(-1, 1))
    fixed.learn_many(X, X[:, 0])
    save(fixed, output)
    shown = shell("inspect", output).out
    assert "  health         good\n" in shown
    assert "label range last" not in shown


def test_inspect_names_categories(shell, tmp_path):
    rows = [{"city": "ABC"[k % 3], "label": 10.0 * (k % 3 == 1)} for k in range(300)]
    path, output = put(tmp_path, "x.csv", as_csv(rows)), tmp_path / "m.sb"
    shell("train", path, "-o", output, *EVERY)
    found = json.loads(shell("inspect", output, "--json").out)
    assert set(found["largest_effects"]) == {"(constant)", "city=A", "city=B", "city=C"}
    assert found["schema"]["categories"] == {"city": 3}
