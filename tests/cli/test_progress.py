"""The progress of a pass: names of classes, a misspelt --positive, and the time of compiling."""

import json

import pytest
from streams import EVERY, LINEAR, put

from spanboost.cli.output.summary import Speed, describe_speed


def write(folder, labels):
    path = folder / "x.csv"
    rows = "".join(f"{k % 7},{labels[k % len(labels)]}\n" for k in range(40))
    path.write_text(f"size,kind\n{rows}")
    return path


def table_of(err):
    """Return the number, the label and the prediction in each line of the progress table."""
    lines = err.partition("current  current\n")[2].partition("\n\n")[0].splitlines()[1:]
    return [(int(line.split()[2]), line[-38:-24].strip(), line[-23:-9].strip()) for line in lines]


@pytest.mark.parametrize(
    ("labels", "options"),
    [
        (("oak", "elm", "ash"), ("--loss", "softmax")),
        (("oak", "elm"), ("--loss", "logistic")),
        (("oak", "elm"), ("--loss", "hinge", "--positive", "oak")),
        (("0", "1"), ("--loss", "logistic")),
    ],
)
def test_classes_have_their_names(labels, options, shell, tmp_path):
    rows = table_of(shell("evaluate", write(tmp_path, labels), *options, *LINEAR).err)
    assert len(rows) == 6
    for counter, label, answer in rows:
        assert label == labels[(counter - 1) % len(labels)]
        assert answer in labels or answer.startswith("unseen")
    assert any(answer in labels for _, _, answer in rows)


def test_a_long_name_is_cut(shell, tmp_path):
    labels = ("a very long name of a class", "b")
    err = shell("evaluate", write(tmp_path, labels), "--loss", "logistic", *LINEAR).err
    assert ("a very long na",) in {row[1:2] for row in table_of(err)}


def test_a_misspelt_positive_label_is_named_early(shell, tmp_path):
    path = write(tmp_path, ("high", "low"))
    words = ("evaluate", path, "--loss", "logistic", "--positive", "hihg", *LINEAR)
    before, _, after = shell(*words, status=2).err.partition(
        "warning: in the first 40 rows, no label equals 'hihg' (--positive); did you mean 'high'?\n"
    )
    assert "average" in before
    assert after == "spanboost: no label equals 'hihg' (--positive); did you mean 'high'?\n"
    assert "warning" not in after


def test_a_misspelt_positive_label_writes_no_model(shell, tmp_path):
    path, model = write(tmp_path, ("high", "low")), tmp_path / "m.sb"
    words = ("train", path, "-o", model, "--loss", "logistic", *LINEAR)
    shell(*words, "--positive", "hihg", status=2)
    assert not model.exists()
    shell(*words, "--positive", "high")
    negative = tmp_path / "negative.csv"
    negative.write_text("".join(path.read_text().splitlines(keepends=True)[::2]))
    assert {line.rpartition(",")[2] for line in negative.read_text().split()} == {"kind", "low"}
    shell("train", negative, "-i", model, "-o", tmp_path / "more.sb")  # a day without the class
    assert (tmp_path / "more.sb").exists()


@pytest.mark.parametrize("labels", [("high", "low"), ("low",)])
def test_other_positive_labels_get_no_warning(labels, shell, tmp_path):
    status = 0 if "high" in labels else 2
    words = ("evaluate", write(tmp_path, labels), "--loss", "logistic", "--positive", "high")
    assert "warning" not in shell(*words, *LINEAR, status=status).err


@pytest.mark.parametrize(
    ("labels", "options", "expected"),
    [
        (("oak",), ("--loss", "logistic"), "'oak'"),
        (("1",), ("--loss", "hinge"), "'1'"),
        (("True",), ("--loss", "logistic"), "'True'"),
        (("no",), ("--loss", "logistic"), "'no'"),
        (("oak",), ("--loss", "softmax"), "'oak'"),
        (("oak",), ("--loss", "logistic", "--positive", "oak"), "'oak'"),
        (("oak", "elm"), ("--loss", "logistic", "--positive", "oak"), None),
        (("oak", "elm"), ("--loss", "logistic"), None),
        (("7",), (), None),
    ],
)
def test_a_single_class_is_worth_a_warning(labels, options, expected, shell, tmp_path):
    err = shell("evaluate", write(tmp_path, labels), *options, *LINEAR).err
    warned = f"warning: all labels are {expected}; the model has learned a single class\n"
    assert (warned in err) == (expected is not None)
    assert ("warning" in err) == (expected is not None)


def test_the_speed_does_not_count_compiling():
    speed = Speed(rows=600, seconds=33.0, compiling=30.0)
    result = {"seconds": 33.0, "compile_seconds": 30.0}
    text = describe_speed(result | {"examples_per_second": speed.rows_per_second})
    assert text == (
        "33.00 seconds, including 30.00 for compiling; without these, 200 examples a second"
    )
    quick = {"seconds": 3.0, "compile_seconds": 0.1, "examples_per_second": 200.0}
    assert describe_speed(quick) == "3.00 seconds, 200 examples a second"
    assert describe_speed(quick | {"examples_per_second": 0.9}).endswith(" 1 example a second")


def test_the_time_of_compiling_is_in_the_result(shell, tmp_path):
    path = write(tmp_path, ("1", "2", "3"))
    result = json.loads(shell("evaluate", path, "--json", *EVERY).out)
    assert 0 <= result["compile_seconds"] < result["seconds"]


@pytest.mark.parametrize(
    "words",
    [
        ("evaluate", "--compare", "linear,linear:hull"),
        ("tune", "--learner", "linear", "-n", "2"),
    ],
)
def test_a_bar_shows_the_rows_so_far(words, shell, tmp_path, monkeypatch):
    monkeypatch.setattr("spanboost.cli.output.pacing.SHORT", 0.0)  # a few rows at a time
    monkeypatch.setattr("tqdm.std.tqdm.monitor_interval", 0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    shown = []
    monkeypatch.setattr("tqdm.std.tqdm.update", lambda bar, n=1: shown.append(n))
    path = write(tmp_path, [str(k) for k in range(1, 40)])
    path.write_text(path.read_text() + "3,1\n" * 160)
    shell(words[0], path, *words[1:])
    assert len(shown) > 200 // 32
    assert min(shown[-6:]) > 0


def write_wild(tmp_path, name="wild.csv", wild=97):
    rows = [f"{t % 7},{1e9 if t == wild else t % 5}" for t in range(300)]
    path = tmp_path / name
    path.write_text("\n".join(["a,label", *rows, ""]))
    return path


@pytest.mark.filterwarnings("default::spanboost.LabelWarning")
@pytest.mark.parametrize("options", [(), ("--checkpoint-every", "30")])
def test_a_warning_about_a_label_names_its_line(options, shell, tmp_path):
    path, model = write_wild(tmp_path), tmp_path / "m.sb"
    err = shell("train", path, "-o", model, *LINEAR, *options).err
    assert f"spanboost: warning: {path}:99: the label 1000000000 is far outside" in err
    other = write_wild(tmp_path, "other.csv", 120)
    err = shell("train", write_wild(tmp_path, "tame.csv", None), other, "-o", model, *LINEAR).err
    assert f"spanboost: warning: {other}:122: the label 1000000000 is far outside" in err
    shell("train", write_wild(tmp_path, "tame.csv", None), "-o", model, *LINEAR)
    err = shell("train", other, "-i", model, "-o", tmp_path / "n.sb").err
    assert f"spanboost: warning: {other}:122: the label 1000000000 is far outside" in err


@pytest.mark.filterwarnings("default::spanboost.WeightWarning")
@pytest.mark.parametrize("options", [(), ("--checkpoint-every", "30")])
def test_large_weights_get_one_warning(options, shell, tmp_path):
    path = tmp_path / "weighted.csv"
    path.write_text("\n".join(["a,w,label", *(f"{t % 7},500,{t % 5}" for t in range(150)), ""]))
    err = shell("train", path, "-o", tmp_path / "m.sb", "--weight", "w", *LINEAR, *options).err
    assert (
        f"spanboost: warning: {path}:101: the mean of the weights so far is 500, and models learn "
        "poorly if it is far above 1; divide all weights by their mean\n"
    ) in err
    assert err.count("the weights so far") == 1


@pytest.mark.filterwarnings("default::spanboost.LabelWarning")
def test_tune_names_the_line_of_a_label_too(shell, tmp_path):
    path = write_wild(tmp_path)
    err = shell("tune", path, "--learner", "linear", "-n", "2", "--quiet").err
    assert f"spanboost: warning: {path}:99: the label 1000000000 is far outside" in err


def test_paragraphs_of_a_help_text_stay_apart(shell):
    text = shell("explain", "--help").out
    assert "experts.\n\nThe rows add up" in text
    assert ".  The" not in text


@pytest.mark.parametrize("command", ["train", "evaluate", "tune"])
@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_quiet_keeps_the_notes_on_how_data_are_read(command, quiet, shell, tmp_path):
    rows = "".join(f"id{t:05},{t % 7},{t % 3}\n" for t in range(300))
    data = put(tmp_path, "sales.csv", f"id,size,sold\n{rows}".encode())
    output = ["-o", tmp_path / "sales.sb"] if command == "train" else []
    printed = shell(command, data, "--learner", "linear", "-n", "2", *output, *quiet).err
    notes = [line for line in printed.splitlines() if line.startswith("note: ")]
    assert len(notes) == 1
    assert "'id'" in notes[0]
    if quiet:
        assert printed.splitlines() == notes
    elif command != "tune":
        assert printed.splitlines()[0].startswith("reading ")


@pytest.mark.parametrize(
    ("positive", "labels", "stops"),
    [
        ("Yes", ["no", "yes"], True),
        ("> 50K", [">50K", "<=50K"], True),
        ("postive", ["negative", "positive"], True),
        ("fruad", ["fraud", "fine"], True),
        ("class2", ["class1", "class3"], False),
        (">50K", ["<=50K", "?"], False),
        ("typical", ["atypical"], False),
        ("male", ["female"], False),
        ("b", ["a"], False),
    ],
)
@pytest.mark.parametrize("command", ["evaluate", "train"])
def test_a_misspelt_positive_label_ends_a_run_early(
    command, positive, labels, stops, shell, tmp_path
):
    """The last row has the positive label, as a table sorted by its labels."""
    rows = [f"{t % 5},{labels[t % len(labels)]}\n" for t in range(9000)]
    path = put(tmp_path, "x.csv", "".join(["size,kind\n", *rows, f"1,{positive}\n"]).encode())
    output = ("-o", tmp_path / "m.sb") if command == "train" else ()
    words = (command, path, *output, "--loss", "logistic", "--positive", positive, *LINEAR)
    err = shell(*words, status=2 if stops else 0).err
    assert ("rows, no label equals" in err.splitlines()[-1]) == stops
    if stops:
        assert err.splitlines()[-1].startswith("spanboost: in the first ")
        assert not (tmp_path / "m.sb").exists()
