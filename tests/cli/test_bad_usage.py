"""Bad usage: one line with the reason, exit status 2, and no file written."""

import io
import json
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file
from streams import EVERY, HOUSES, as_csv, as_jsonl, as_vw, put

from spanboost.cli.run import check_first_key
from spanboost.errors import UserError


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--step", "0.1"], "--step must be between 1/n = 0.25 and 1 (got 0.1)"),
        (["--step", "1.5"], "--step must be between 1/n = 0.25 and 1 (got 1.5)"),
        (["--step", "nan"], "--step must be between 1/n = 0.25 and 1 (got nan)"),
        (["--step", "0.5", "--booster", "hull"], "--step is for Algorithm 1 only"),
        (["--loss", "huber"], "unknown loss 'huber'"),
        (["--loss", "quantile:2"], "TAU between 0 and 1"),
        (["--classes", "3"], "--classes requires --loss softmax"),
        (["--loss", "logistic", "--label-range", "0,1"], "--label-range requires numeric labels"),
        (["--label-range", "1,0"], "'1,0' is not a range; give LO,HI with LO < HI"),
        (["--label-range", "grow"], "or one of auto, auto-zero, growing, growing-zero"),
        (["--label-range", "-5,5"], ":2: column 'label': the label "),
        (["--learner", "linear", "--rate", "0"], "--rate must be a number between 1e-30 and 1e30"),
        (["--rate", "fast"], "invalid float"),
        (["-n", "0"], "must be at least 1 (got 0)"),
        (["-b", "99"], "must be at most 30 (got 99)"),
        (["--learner", "tree"], "invalid choice: 'tree'"),
        (["--learner", "auto"], "-n cannot be combined with --learner auto"),
        (["--learner", "trees", "--budget", "fast"], "--budget requires --learner auto (got "),
        (
            ["--budget", "fast"],
            "--budget applies to --learner auto, but -n selects a single booster; leave one of",
        ),
        (["--budget", "huge"], "invalid choice: 'huge'"),
        (["--rate", "0.1"], "--rate does not apply to trees"),
        (["--label", "prize"], "column 'prize' not found"),
        (["--label", "y"], "column 'y' not found; the columns are 'size', "),
        (["--label", "sise"], "did you mean 'size'?"),
        (["--label", "size", "--ignore", "size"], "the label column 'size' is also in --ignore"),
        (["--label", "a", "--label=b"], "--label: given twice, as 'a' and 'b'; give one of them"),
        (["--rate", "1", "--rate", "2"], "--rate: given twice, as '1.0' and '2.0'"),
        (
            ["--label-range", "0,1", "--label-range", "auto"],
            "given twice, as '0.0,1.0' and 'auto'",
        ),
        (["-n", "2", "--n-estimators", "3"], "given twice, as '2' and '3'"),
        (["--weight", "none"], "column 'none' not found"),
        (["--ignore", "size,rooms,age"], "there are no feature columns besides the label"),
        (["--categorical", "none"], "column 'none' not found"),
        (["--delimiter", "ab"], "'ab' is not a single ASCII character"),
        (["--delimiter", '"'], "is not a single ASCII character"),
        (["--delimiter", ";"], "there are no feature columns besides the label"),
        (["--json", "-p", "-"], "--json and --predictions - both write to standard output"),
        (["--nonsense"], "unknown option --nonsense (see"),
        (["--lable", "price"], "unknown option --lable; did you mean --label"),
        (["--n", "10"], "unknown option --n; did you mean -n"),
        (["--target", "price"], "unknown option --target; did you mean --label?"),
        (["--loss_function=squared"], "unknown option --loss_function; did you mean --loss?"),
        (["--passes", "3"], "unknown option --passes; DATA is read once; --replay R learns again"),
        (["--epochs", "3"], "unknown option --epochs; DATA is read once; --replay R learns again"),
        (["--max-depth", "3"], "the depth of trees is set in Python, with Trees(depth=...)"),
        (["--depth=3"], "unknown option --depth; the depth of trees is set in Python, with Trees("),
        (["-ignore", "age"], "unknown option -ignore; did you mean --ignore?"),
        (["-label=age"], "unknown option -label; did you mean --label?"),
        (["--sep", ";"], "unknown option --sep; did you mean --delimiter?"),
        (["--ignore", "a", "b"], "unexpected argument b; write data files next to each other"),
        (
            ["--ray", "foo"],
            "foo is not the address of a Ray cluster; --ray takes HOST:PORT, ray://",
        ),
        (["--ray", "head:port"], "head:port is not the address of a Ray cluster"),
        (["--n_estimators=10"], "unknown option --n_estimators; did you mean --n-estimators?"),
        (["--learner", "liner"], "'linear'?"),
        (["--label", "SIZE"], "column 'SIZE' not found; did you mean 'size'?"),
        (["-i", "none.sb"], "none.sb: file not found"),
        (["-i", "houses.sb", "-n", "8"], "-n cannot be combined with -i"),
        (["-i", "houses.sb", "--label", "size"], "--label cannot be combined with -i"),
        (
            ["-i", "houses.sb", "--label", "size"],
            "which loads a complete model: it has 'label' (got 'size')",
        ),
        (["-i", "houses.sb", "--seed", "1"], "--seed cannot be combined with -i"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
@pytest.mark.parametrize("command", ["train", "evaluate"])
def test_bad_usage(command, words, message, data, model, shell, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = model.read_bytes()
    (tmp_path / "out.sb").write_bytes(before)
    output = ["-o", "out.sb"] if command == "train" else []
    options = [] if "-i" in words or "-n" in words else ["-n", "4"]
    printed = shell(command, data, *output, *options, *words, status=2)
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""
    assert (tmp_path / "out.sb").read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"houses.csv", "houses.sb", "out.sb"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--key", "rums"], "the key 'rums' is not a column of the rows; did you mean 'rooms'?"),
        (["--key", "shop"], "the key 'shop' is not a column of the rows; the columns are 'size'"),
        (["--key", "0"], "the key '0' is not a column of the rows; the columns are 'size'"),
        (["--key", "size", "--label", "size"], "the key 'size' is the label; choose another"),
        (["--key", "size", "--ignore", "size"], "the key 'size' is a column that is left out"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
@pytest.mark.parametrize("command", ["train", "evaluate"])
def test_a_key_that_is_not_a_feature(command, words, message, data, shell, tmp_path):
    output = ["-o", tmp_path / "out.sb"] if command == "train" else []
    printed = shell(command, data, *output, "--budget", "fast", "--quiet", *words, status=2)
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert not (tmp_path / "out.sb").exists()


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--label", "size", "--ignore", "size"], "the label column 'size' is also in --ignore"),
        (["--label", "size", "--weight", "size"], "the label column 'size' is also in --weight"),
        (["--label", "size", "--ignore", "age,size"], "remove it there, or name another label"),
    ],
)
def test_a_label_that_is_left_out(words, message, form, shell, tmp_path):
    path = put(tmp_path, f"x.{form}", as_csv(HOUSES) if form == "csv" else as_jsonl(HOUSES))
    printed = shell("evaluate", path, "--quiet", *words, status=2)
    assert message in printed.err
    assert printed.err.count("\n") == 1


def test_the_default_label_of_json_lines_that_is_ignored(shell, tmp_path):
    path = put(tmp_path, "x.jsonl", as_jsonl(HOUSES))
    err = shell("train", path, "-o", tmp_path / "m.sb", "--ignore", "label", status=2).err
    assert "the label column 'label' is also in --ignore" in err


def test_hints_name_only_options_that_the_command_takes(data, model, shell, tmp_path):
    text = put(tmp_path, "t.csv", as_csv([row | {"label": "cheap"} for row in HOUSES]))
    hint = "; for two classes use --loss logistic, for more --loss softmax\n"
    assert shell("evaluate", text, *EVERY, status=2).err.endswith(hint)
    err = shell("evaluate", text, "-i", model, "--quiet", status=2).err
    assert err.endswith("the label 'cheap' is not a number\n")
    words = put(tmp_path, "w.csv", as_csv([row | {"size": "big"} for row in HOUSES]))
    assert "--categorical" not in shell("predict", words, "-m", model, status=2).err


@pytest.mark.parametrize("words", [["--key", "size"], ["--past", "on"]])
def test_past_labels_and_a_loss_that_does_not_take_them(words, data, shell):
    err = shell("evaluate", data, "--loss", "poisson", "--quiet", *words, status=2).err
    message = (
        "needs squared, absolute, Huber, quantile, logistic or softmax loss, and at least 6 bits"
    )
    assert err == f"spanboost: {words[0]} {message}\n"


def test_a_key_of_times(shell, tmp_path):
    data = put(tmp_path, "days.csv", b"day,a,y\n2025-01-01,1,2\n2025-01-02,2,3\n")
    printed = shell("evaluate", data, "--budget", "fast", "--quiet", "--key", "day", status=2)
    assert "the key 'day' is a column of times; choose a column of numbers" in printed.err


def test_a_key_that_no_line_has(shell, tmp_path):
    data = put(tmp_path, "x.jsonl", b'{"zone": "a", "label": 1}\n{"zone": "b", "label": 2}\n')
    printed = shell("evaluate", data, "--budget", "fast", "--quiet", "--key", "zon", status=2)
    assert printed.err == (
        "spanboost: none of the first rows has the key 'zon'; did you mean 'zone'?\n"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["trian", "houses.csv"], "did you mean 'train'?"),
        (["--versoin"], "unknown option --versoin; did you mean --version?"),
        (
            ["train", "houses.csv", "--ouput", "x.sb"],
            "spanboost train: unknown option --ouput; did you mean --output?",
        ),
        (
            ["evaluate", "houses.csv", "--compare", "trees:n_estimaters=3,linear"],
            "did you mean 'n-estimators'",
        ),
        (["evaluate", "houses.csv", "-t"], "-t needs a model to test; name it with -i"),
        (
            ["evaluate", "houses.csv", "-i", "houses.sb", "--baseline"],
            "--baseline cannot be combined with -i",
        ),
        (
            ["evaluate", "houses.csv", "-i", "houses.sb", "--compare", "linear", "-t"],
            "--compare linear: a new model needs to learn; leave out -t",
        ),
        (
            ["evaluate", "houses.csv", "-i", "houses.sb", "--compare", "houses.sb"],
            "--compare houses.sb: duplicate model",
        ),
        (
            ["evaluate", "houses.csv", "-i", "houses.sb", "--compare", "none.sb"],
            "none.sb: file not found",
        ),
        (
            ["evaluate", "houses.csv", "-i", "houses.sb", "--compare", "houses.csv"],
            "houses.csv: not a model file",
        ),
        (
            ["evaluate", "houses.csv", "--compare", "linear,houses.sb"],
            "--compare houses.sb: to compare model files, name the first one with -i MODEL",
        ),
        (["evaluate", "houses.csv", "--compare", "tree"], "unknown model 'tree'"),
        (["evaluate", "houses.csv", "--compare", "linear:"], "unknown model 'linear:'"),
        (["evaluate", "houses.csv", "--compare", "linear:n=0"], "n: must be at least 1 (got 0)"),
        (["evaluate", "houses.csv", "--compare", "linear:n=x"], "n: invalid integer value: 'x'"),
        (
            ["evaluate", "houses.csv", "--compare", "linear:feedback=x"],
            "feedback: invalid choice: 'x' (choose from greedy, linear)",
        ),
        (["evaluate", "houses.csv", "--compare", "linear:n=2:hull"], "got 'hull'"),
        (["evaluate", "houses.csv", "--compare", "linear:loss=absolute"], "got 'loss=absolute'"),
        (["evaluate", "houses.csv", "--compare", "linear:budget=fast"], "budget requires auto"),
        (["evaluate", "houses.csv", "--compare", "linear:memory=9"], "memory requires replay"),
        (
            ["evaluate", "houses.csv", "--compare", "linear:n=2,linear", "--baseline"],
            "--baseline cannot be combined with options in --compare",
        ),
        (
            ["evaluate", "houses.csv", "--plot-compare", "x.png"],
            "--plot-compare requires --compare with at least two models",
        ),
        (
            ["evaluate", "houses.csv", "--compare", "linear", "--plot-compare", "x.png"],
            "--plot-compare requires --compare with at least two models",
        ),
        (
            ["evaluate", "houses.csv", "--compare", "linear,stumps", "--plot-compare", "x.gif"],
            "x.gif: plots are .png or .svg files",
        ),
        (
            ["evaluate", "houses.csv", "--compare", "linear", "--learner", "linear"],
            "--compare cannot be combined with --learner",
        ),
        (["evaluate", "x.vw", "-i", "houses.sb", "-t"], "the model reads tables, not VW text"),
        (["evaluate", "x.vw", "--label", "a"], "--label requires named columns"),
        (["evaluate", "x.vw", "houses.csv"], "houses.csv: cannot read csv and vw files together"),
        (["train", "houses.csv"], "-o/-f/--output"),
        (["train", "houses.csv", "-o", "none/m.sb"], "none/m.sb: the folder does not exist"),
        (["export", "houses.sb", "--to", "compact", "-o", "no/m.sb"], "no/m.sb: the folder does"),
        (["export", "houses.sb", "--to", "compact", "-o", "houses.csv/m"], "the folder does not"),
        (["demo", "--rows", "10", "--save", "no/x.csv"], "no/x.csv: the folder does not exist"),
        (
            ["serve", "--dir", "houses.csv/x", "--port", "0"],
            "cannot create the folder houses.csv/x",
        ),
        (["restore", "houses.sb", "--dir", "houses.csv/x/y"], "cannot create the folder houses.c"),
        (["train", "houses.csv", "-o", "."], ". is a folder, not a file"),
        (["train", "houses.csv", "-o", "./houses.csv"], "the command also reads this file"),
        (["train", "houses.csv", "-o", "m.sb", "-p", "./m.sb"], "writes another output to it"),
        (
            ["evaluate", "houses.*v", "-p", "houses.csv"],
            "houses.csv: the command also reads this file",
        ),
        (
            ["predict", "houses.csv", "-m", "houses.sb", "-o", "houses.csv"],
            "the command also reads this file",
        ),
        (
            ["predict", "houses.csv", "-m", "houses.sb", "-o", "houses.sb"],
            "the command also reads this file",
        ),
        (
            ["train", "houses.csv", "-o", "m.sb", "--checkpoint-every", "0"],
            "must be at least 1 (got 0)",
        ),
        (["predict", "houses.csv"], "-m/-i/--model"),
        (["predict", "x.vw", "-m", "houses.sb"], "the model reads tables, not VW text"),
        (["predict", "-m", "houses.sb"], "no data"),
        (["predict", "houses.csv", "-m", "houses.sb", "-o", "none/p.csv"], "the folder does not"),
        (["predict", "none.csv", "-m", "houses.sb"], "none.csv"),
        (["inspect"], "MODEL"),
        (["inspect", "houses.sb", "--top", "-1"], "must be at least 0 (got -1)"),
        (["learn"], "invalid choice: 'learn'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_more_bad_usage(words, message, data, model, shell, tmp_path, monkeypatch):
    put(tmp_path, "x.vw", as_vw(HOUSES[:3]))
    monkeypatch.chdir(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    printed = shell(*words, status=2)
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_text_labels_need_a_loss_for_classes(form, shell, tmp_path):
    rows = [row | {"label": "cheap" if row["size"] < 99 else "dear"} for row in HOUSES]
    path = put(tmp_path, f"x.{form}", as_csv(rows) if form == "csv" else as_jsonl(rows))
    line, kind = (2, "column") if form == "csv" else (1, "key")
    err = shell("evaluate", path, *EVERY, status=2).err
    assert err.startswith(f"spanboost: {path}:{line}: {kind} 'label': the label ")
    for word in ("--loss logistic", "--loss softmax"):
        assert word in err
    whole = [row | {"label": int(row["size"] < 99)} for row in HOUSES]
    path = put(tmp_path, "y.csv", as_csv(whole))
    result = json.loads(shell("evaluate", path, "--json", *EVERY).out)
    share = np.mean([row["label"] for row in whole])
    assert result["best_constant_loss"] == pytest.approx(share * (1 - share))  # squared loss


def write_bad_model(model, how):
    """Write a file that is not a model; `how` says in which way."""
    path, data = model.with_name("bad.sb"), model.read_bytes()
    if how == "another format":
        with safe_open(model, framework="numpy") as file:
            header = json.loads(file.metadata()["spanboost"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        header |= {"format": 99, "library": "9.9"}
        save_file(tensors, path, metadata={"spanboost": json.dumps(header)})
    elif how == "other software":
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
        *("another format", "other software", "a folder", "missing", "truncated", "half"),
        *("eight bytes", "empty", "text", "a pickle", "too long"),
    ],
)
def test_a_file_that_is_not_a_model(how, data, model, shell, tmp_path):
    bad, output = write_bad_model(model, how), tmp_path / "out"
    for words in (
        ["inspect", bad],
        ["predict", data, "-m", bad, "-o", output],
        ["train", data, "-i", bad, "-o", output],
        ["evaluate", data, "-i", bad, "-t"],
    ):
        printed = shell(*words, status=2)
        start = f"{bad} is a folder" if how == "a folder" else f"{bad}: "
        assert printed.err.startswith(f"spanboost: {start}")
        assert printed.err.count("\n") == 1
        assert printed.out == ""
    assert not output.exists()
    if how == "another format":
        assert "written by spanboost 9.9" in printed.err


def write_odd_names(tmp_path):
    return put(tmp_path, "odd.csv", b'"a,b",c,"d,e",label\n1,2,x,3\n2,3,y,4\n')


def test_names_with_commas_are_quoted(shell, tmp_path):
    path, model = write_odd_names(tmp_path), tmp_path / "m.sb"
    for words, numbers in (
        (("--ignore", '"a,b"'), ["c"]),
        (("--ignore", 'c,"d,e"'), ["a,b"]),
        (("--ignore", '"d,e"', "--categorical", '"a,b",c'), []),
    ):
        shell("train", path, "-o", model, *EVERY, *words)
        schema = json.loads(shell("inspect", model, "--json").out)["schema"]
        assert schema.get("numbers", []) == numbers
    kept = shell("predict", path, "-m", model, "--keep", '"d,e",c').out
    assert kept.splitlines()[0] == '"d,e",c,prediction'


def test_a_name_that_a_comma_cuts_says_how_to_quote_it(shell, tmp_path):
    path = write_odd_names(tmp_path)
    err = shell("evaluate", path, "--ignore", "a,b", *EVERY, status=2).err
    what = "column 'a' not found; if it is 'a,b', write this name in double quotes: '\"a,b\"'"
    assert err == f"spanboost: {path}: {what}\n"
    err = shell("evaluate", path, "--ignore", '"a,b', *EVERY, status=2).err
    assert "unclosed double quote" in err


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl"])
def test_several_labels_are_refused_with_advice(name, shell, tmp_path):
    text = b"a,b,c\n1,2,3\n" if name == "x.csv" else b'{"a": 1, "b": 2, "c": 3}\n'
    path = put(tmp_path, name, text)
    err = shell("evaluate", path, "--label", "b,c", *EVERY, status=2).err
    assert "'b,c'" in err
    assert "; a model of the command line has one label, train one for each; in Python" in err


def test_only_the_first_rows_need_the_key():
    rows = [SimpleNamespace(X=[{"zone": "a"}]), SimpleNamespace(X=[{"b": 1.0}])]
    assert [*check_first_key(iter(rows), "zone")] == rows
    assert [*check_first_key(iter(rows[1:]), None)] == rows[1:]
    with pytest.raises(UserError, match="does not have the key 'zone'"):
        next(check_first_key(iter(rows[1:]), "zone"))


def late_row(tmp_path, row):
    """Return a file whose bad row comes after many good ones."""
    lines = ["a,b,y", *(f"{k},{k % 7},{k % 5}" for k in range(300)), row, "1,2,3"]
    return put(tmp_path, "late.csv", "\n".join(lines).encode() + b"\n")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("1,2,abc", "column 'y': the label 'abc' is not a number"),
        ("1,2,", "column 'y': the label is missing"),
        ("1,2", "expected 3 fields, got 2"),
    ],
)
def test_a_bad_row_after_many_good_ones_can_be_left_out(row, message, shell, tmp_path):
    data = late_row(tmp_path, row)
    printed = shell("evaluate", data, "--learner", "linear", "--quiet", status=2)
    assert printed.err == (
        f"spanboost: {data}:302: {message}; to leave out such rows, use --on-error skip\n"
    )
    printed = shell("evaluate", data, "--learner", "linear", "--on-error", "skip")
    assert f"left out: {data}:302: {message}\n" in printed.err


@pytest.mark.parametrize(
    ("label", "options", "message"),
    [
        ("", (), "the label is missing"),
        ("inf", (), "the label is infinite, or too large for a 64-bit float"),
        ("-1", ("--loss", "poisson"), "the label '-1' is negative; the loss needs labels of at "),
        ("x", (), "the label 'x' is not a number; for two classes use --loss logistic"),
        ("x", ("--loss", "logistic"), "the label 'x' cannot be used together with '0', '1'"),
    ],
)
def test_a_bad_label_among_the_first_rows_can_be_left_out(label, options, message, shell, tmp_path):
    rows = ["a,y", *(f"{k},{k % 2}" for k in range(9)), f"9,{label}", "9,1"]
    data = put(tmp_path, "x.csv", "\n".join(rows).encode() + b"\n")
    words = ("evaluate", data, "--learner", "linear", "--quiet", *options)
    err = shell(*words, status=2).err
    assert f"{data}:11: column 'y': {message}" in err
    assert err.endswith("; to leave out such rows, use --on-error skip\n")
    shell(*words, "--on-error", "skip")


def test_a_first_label_that_is_a_text_has_the_advice_for_classes_only(shell, tmp_path):
    data = put(tmp_path, "x.csv", b"a,y\n1,u\n2,v\n")
    err = shell("evaluate", data, "--learner", "linear", "--quiet", status=2).err
    assert err.endswith(
        "the label 'u' is not a number; for two classes use --loss logistic, for more --loss "
        "softmax\n"
    )


def test_names_that_are_read_as_a_row(shell, tmp_path):
    data = put(tmp_path, "x.csv", b"a,b,y\n1,2,3\n4,5,6\n")
    printed = shell("evaluate", data, "--no-header", "--quiet", status=2)
    assert ":1: column '1': 'a' is not a number; if line 1 contains the names" in printed.err


def test_an_empty_standard_input_is_named(shell, tmp_path, monkeypatch):
    data = put(tmp_path, "x.csv", b"a,y\n1,2\n3,4\n")
    shell("train", data, "-o", tmp_path / "m.sb", "--learner", "linear", "-n", "2", "--quiet")
    for text in (b"", b"\n \n"):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
        printed = shell("predict", "-", "-m", tmp_path / "m.sb", status=2)
        assert printed.err == "spanboost: stdin: the input is empty; expected rows of data\n"


def test_several_learners_are_compared_with_another_option(shell, tmp_path):
    data = put(tmp_path, "x.csv", b"a,y\n1,2\n3,4\n")
    err = shell("evaluate", data, "--learner", "linear,trees", status=2).err
    assert "; to compare them, use --compare linear,trees (see" in err
    for words in (
        ("evaluate", data, "--learner", "linear,tres"),
        ("train", data, "--learner", "a,b"),
    ):
        assert "--compare" not in shell(*words, status=2).err
