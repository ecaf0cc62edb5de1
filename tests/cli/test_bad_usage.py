"""What the command line refuses: one line that says why, exit status 2, and nothing written."""

import json

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file
from streams import EVERY, HOUSES, as_csv, as_jsonl, as_vw, put


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--step", "0.1"], "--step must be between 1/n = 0.25 and 1 (got 0.1)"),
        (["--step", "1.5"], "--step must be between 1/n = 0.25 and 1 (got 1.5)"),
        (["--step", "nan"], "--step must be between 1/n = 0.25 and 1 (got nan)"),
        (["--step", "0.5", "--booster", "hull"], "--step is for --booster span"),
        (["--loss", "softmax"], "--classes K"),
        (["--loss", "huber"], "'huber' is not known"),
        (["--loss", "quantile:2"], "TAU between 0 and 1"),
        (["--classes", "3"], "--classes is for --loss softmax"),
        (["--loss", "logistic", "--label-range", "0,1"], "--label-range is for numbers"),
        (["--label-range", "1,0"], "'1,0' is no range"),
        (["--label-range", "-5,5"], ":2: the label "),
        (["--learner", "linear", "--rate", "0"], "rate=0.0 is not allowed"),
        (["--rate", "fast"], "invalid float"),
        (["-n", "0"], "0 is below 1"),
        (["-b", "99"], "99 is above 30"),
        (["--learner", "tree"], "invalid choice: 'tree'"),
        (["--learner", "auto"], "--learner auto chooses for itself: no -n with it"),
        (["--budget", "fast"], "--budget is for --learner auto"),
        (["--budget", "huge"], "invalid choice: 'huge'"),
        (["--rate", "0.1"], "trees have no learning rate"),
        (["--label", "prize"], "column 'prize' not found"),
        (["--label", "sise"], "did you mean 'size'?"),
        (["--label", "size", "--ignore", "size"], "the label column 'size' is also in --ignore"),
        (["--weight", "none"], "column 'none' not found"),
        (["--ignore", "size,rooms,age"], "there are no feature columns besides the label"),
        (["--categorical", "none"], "column 'none' not found"),
        (["--delimiter", "ab"], "'ab' is no character"),
        (["--delimiter", '"'], "is no character"),
        (["--delimiter", ";"], "there are no feature columns besides the label"),
        (["--json", "-p", "-"], "--json has standard output for itself"),
        (["--nonsense"], "--nonsense"),
        (["-i", "none.sb"], "none.sb: No such file"),
        (["-i", "houses.sb", "-n", "8"], "no -n with it"),
        (["-i", "houses.sb", "--label", "size"], "no --label with it"),
        (["-i", "houses.sb", "--seed", "1"], "no --seed with it"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
@pytest.mark.parametrize("command", ["train", "evaluate"])
def test_bad_usage(command, words, what, data, model, shell, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out.sb").write_bytes(b"as it was")
    output = ["-o", "out.sb"] if command == "train" else []
    options = [] if "-i" in words or "-n" in words else ["-n", "4"]
    said = shell(command, data, *output, *options, *words, status=2)
    assert what in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""
    assert (tmp_path / "out.sb").read_bytes() == b"as it was"
    assert {path.name for path in tmp_path.iterdir()} == {"houses.csv", "houses.sb", "out.sb"}


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["evaluate", "houses.csv", "-t"], "-t tests a model as it is: name it with -i"),
        (["evaluate", "houses.csv", "-i", "houses.sb", "--baseline"], "no --baseline with it"),
        (["evaluate", "houses.csv", "-i", "houses.sb", "--compare", "linear"], "no --compare"),
        (["evaluate", "houses.csv", "--compare", "tree"], "'tree' is not known"),
        (["evaluate", "houses.csv", "--compare", "linear", "--learner", "linear"], "no --learner"),
        (["evaluate", "x.vw", "-i", "houses.sb", "-t"], "the model reads tables, not VW text"),
        (["evaluate", "x.vw", "--label", "a"], "--label is for columns with names"),
        (["evaluate", "x.vw", "houses.csv"], "houses.csv: cannot read csv and vw files together"),
        (["train", "houses.csv"], "-o/-f/--output"),
        (["train", "houses.csv", "-o", "none/m.sb"], "none/m.sb: the folder does not exist"),
        (["train", "houses.csv", "-o", "."], ". is a folder, not a file"),
        (["train", "houses.csv", "-o", "./houses.csv"], "this command reads it"),
        (["train", "houses.csv", "-o", "m.sb", "-p", "./m.sb"], "writes something else there"),
        (["evaluate", "houses.*v", "-p", "houses.csv"], "houses.csv: this command reads it"),
        (["predict", "houses.csv", "-m", "houses.sb", "-o", "houses.csv"], "this command reads it"),
        (["predict", "houses.csv", "-m", "houses.sb", "-o", "houses.sb"], "this command reads it"),
        (["train", "houses.csv", "-o", "m.sb", "--checkpoint-every", "0"], "0 is below 1"),
        (["predict", "houses.csv"], "-m/-i/--model"),
        (["predict", "x.vw", "-m", "houses.sb"], "the model reads tables, not VW text"),
        (["predict", "-m", "houses.sb"], "no data"),
        (["predict", "houses.csv", "-m", "houses.sb", "-o", "none/p.csv"], "the folder does not"),
        (["predict", "none.csv", "-m", "houses.sb"], "none.csv"),
        (["inspect"], "MODEL"),
        (["inspect", "houses.sb", "--top", "-1"], "-1 is below 0"),
        ([], "COMMAND"),
        (["learn"], "invalid choice: 'learn'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_more_bad_usage(words, what, data, model, shell, tmp_path, monkeypatch):
    put(tmp_path, "x.vw", as_vw(HOUSES[:3]))
    monkeypatch.chdir(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    said = shell(*words, status=2)
    assert what in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_texts_as_labels_are_never_guessed_at(form, shell, tmp_path):
    rows = [row | {"label": "cheap" if row["size"] < 99 else "dear"} for row in HOUSES]
    path = put(tmp_path, f"x.{form}", as_csv(rows) if form == "csv" else as_jsonl(rows))
    line = 2 if form == "csv" else 1
    err = shell("evaluate", path, *EVERY, status=2).err
    assert err.startswith(f"spanboost: {path}:{line}: the label ")
    for word in ("--loss logistic", "--positive VALUE", "--loss softmax"):
        assert word in err
    whole = [row | {"label": int(row["size"] < 99)} for row in HOUSES]
    path = put(tmp_path, "y.csv", as_csv(whole))
    result = json.loads(shell("evaluate", path, "--json", *EVERY).out)
    share = np.mean([row["label"] for row in whole])
    assert result["best_constant_loss"] == pytest.approx(share * (1 - share))  # of squares


def damaged(model, how):
    """A file that is no model, in one way or another."""
    path, data = model.with_name("bad.sb"), model.read_bytes()
    if how == "another format":
        with safe_open(model, framework="numpy") as file:
            header = json.loads(file.metadata()["spanboost"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        header |= {"format": 99, "library": "9.9"}
        save_file(tensors, path, metadata={"spanboost": json.dumps(header)})
    elif how == "somebody else's":
        save_file({"weights": np.ones(3)}, path, metadata={"format": "pt"})
    elif how == "a folder":
        path.mkdir()
    elif how != "missing":
        path.write_bytes(
            {
                "truncated": data[:-1],
                "half": data[: len(data) // 2],
                "eight bytes": data[:8],
                "empty": b"",
                "text": b"a,b,label\n1,2,3\n" * 9,
                "a pickle": b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x8c\x07builtins",
                "too long": data + b"x",
            }[how]
        )
    return path


@pytest.mark.parametrize(
    "how",
    [
        *("another format", "somebody else's", "a folder", "missing", "truncated", "half"),
        *("eight bytes", "empty", "text", "a pickle", "too long"),
    ],
)
def test_what_is_no_model(how, data, model, shell, tmp_path):
    bad, output = damaged(model, how), tmp_path / "out"
    for words in (
        ["inspect", bad],
        ["predict", data, "-m", bad, "-o", output],
        ["train", data, "-i", bad, "-o", output],
        ["evaluate", data, "-i", bad, "-t"],
    ):
        said = shell(*words, status=2)
        assert said.err.startswith(f"spanboost: {bad}: ")
        assert said.err.count("\n") == 1
        assert said.out == ""
    assert not output.exists()
    if how == "another format":
        assert "written by spanboost 9.9" in said.err
