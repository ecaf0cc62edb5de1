"""A start that is refused says why, and creates or changes nothing."""

import pytest
from state_folders import some_rows, write_folder

from spanboost.cli.commands.serve import open_state
from spanboost.cli.main import main
from spanboost.cli.parser import parser
from spanboost.errors import UsageError, UserError
from spanboost.service.limits import StateLimits
from spanboost.service.storage.row_past import uses_past

SMALL = ["--learner", "linear", "-n", "4"]


def open_folder(folder, *words):
    """Open a folder as `serve` does, with some options."""
    args = parser().parse_args(["serve", "--dir", str(folder), "--quiet", *words])
    return open_state(args, StateLimits())


@pytest.fixture
def refusal(capsys):
    """Return the error message of a server that does not start."""

    def run(*words):
        assert main(["serve", "--port", "0", *map(str, words)]) == 2
        (line,) = [line for line in capsys.readouterr().err.splitlines() if "compil" not in line]
        return line

    return run


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--max-memory", "300"], "--max-memory must be at least"),
        (["--id", "label"], "--id label: the rows already have a label"),
        (["--id", "y", "--label", "y"], "--id y: the rows already have a label"),
    ],
)
def test_a_refused_start_creates_no_folder(tmp_path, refusal, words, why):
    assert why in refusal("--dir", tmp_path / "state", *SMALL, *words)
    assert not any(tmp_path.iterdir())
    open_folder(tmp_path / "state", "--learner", "stumps").close()


@pytest.mark.parametrize(
    ("words", "differences"),
    [
        (["--learner", "stumps", "-n", "4"], ["--learner is linear (got stumps)"]),
        (["--learner", "stumps", "-n", "5"], ["--learner is linear", "-n is 4 (got 5)"]),
        (["--intervals"], ["--intervals is off (got on)"]),
        (["--budget", "fast"], ["--budget is default (got fast)"]),
        ([*SMALL, "--seed", "7"], ["--seed is 0 (got 7)"]),
        ([*SMALL, "--label", "y"], ["--label is price (got y)"]),
        (
            [*SMALL, "--label", "price", "--label-range", "0,9"],
            ["--label-range is auto (got 0.0,9.0)"],
        ),
        (
            [*SMALL, "--label", "price", "--ignore", "a", "--ignore", "b"],
            ["--ignore is the default"],
        ),
    ],
)
def test_options_that_differ_are_named_with_both_values(tmp_path, words, differences):
    open_folder(tmp_path, *SMALL, "--label", "price").close()
    with pytest.raises(UsageError) as error:
        open_folder(tmp_path, *words)
    for difference in differences:
        assert difference in str(error.value)
    assert str(error.value).count("(got ") == len(differences)
    assert "omit the options of the model, or give another --dir" in str(error.value)
    open_folder(tmp_path, *SMALL, "--label", "price").close()


def test_the_key_of_ids_cannot_change(tmp_path):
    open_folder(tmp_path, *SMALL, "--id", "key").close()
    for words, got in ((["--id", "other"], "other"), ([], "id")):
        with pytest.raises(UsageError, match=rf"created with --id key \(got {got}\)"):
            open_folder(tmp_path, *SMALL, *words)
    open_folder(tmp_path, "--id", "key").close()


@pytest.mark.parametrize("command", ["serve", "work"])
def test_any_options_may_be_omitted_later(tmp_path, command):
    options = [["--budget", "fast"], ["--label", "price"], ["--label-range", "0,9"], ["--key", "a"]]
    options = [["--intervals"], *options[:3]] if command == "serve" else options
    words = {"serve": [], "work": ["--from", "redis://localhost/rows", "--group", "g"]}[command]

    def start(*given):
        args = parser().parse_args([command, *words, "--dir", str(tmp_path), "--quiet", *given])
        args.intervals = getattr(args, "intervals", False)
        open_state(args, StateLimits()).close()

    start(*(word for one in options for word in one))
    for one in options:
        start(*one)


def test_a_model_file_and_options_are_distinguished(tmp_path):
    data = tmp_path / "data.csv"
    data.write_text("x,y\n" + "".join(f"{k},{k % 3}\n" for k in range(20)))
    for name, options in (("one", SMALL), ("other", [*SMALL, "--seed", "3"])):
        words = [str(data), "--label", "y", "-o", str(tmp_path / f"{name}.sb"), "--quiet"]
        assert main(["train", *words, *options]) == 0
    one, other = (["-m", str(tmp_path / f"{name}.sb")] for name in ("one", "other"))
    open_folder(tmp_path / "file", *one).close()
    open_folder(tmp_path / "options", *SMALL).close()
    for folder, words, why in (
        ("file", other, "the file given with -m has changed"),
        ("file", SMALL, "its model is from a file (-m), not from options"),
        ("options", one, "its model is from options, not from a file (-m)"),
    ):
        with pytest.raises(UsageError) as error:
            open_folder(tmp_path / folder, *words)
        assert why in str(error.value)
    open_folder(tmp_path / "file", *one).close()


@pytest.mark.parametrize(
    ("options", "other", "why"),
    [
        ([*SMALL, "--seed", "3"], ["--seed", "4"], "it has '3' (got '4')"),
        (["--budget", "fast", "--past", "on"], ["--budget", "default"], "it has 'fast'"),
        (["--budget", "fast", "--intervals"], ["--label", "x"], "it has 'y' (got 'x')"),
        ([*SMALL, "--loss", "logistic", "--calibrate"], ["--intervals"], "--intervals cannot be"),
    ],
)
def test_options_that_repeat_those_of_a_model_file_are_accepted(tmp_path, options, other, why):
    data, file = tmp_path / "data.csv", str(tmp_path / "m.sb")
    data.write_text("x,y\n" + "".join(f"{k},{k % 2}\n" for k in range(20)))
    repeated = [*options, "--label", "y"]
    assert main(["train", str(data), "-o", file, "--quiet", *repeated]) == 0
    for _ in range(2):  # a new folder, and a restart
        state = open_folder(tmp_path / "state", "-m", file, *repeated)
        assert uses_past(state.model) == ("--past" in options)
        state.close()
    with pytest.raises(UsageError) as error:
        open_folder(tmp_path / "new", "-m", file, *other)
    assert why in str(error.value)


def test_past_labels_of_a_model_file_are_used_on_demand(tmp_path):
    data = tmp_path / "data.csv"
    data.write_text("x,y\n" + "".join(f"{k},{k % 3}\n" for k in range(20)))
    for name in ("on", "off"):
        words = [str(data), "--label", "y", "-o", str(tmp_path / f"{name}.sb"), "--quiet"]
        assert main(["train", *words, "--budget", "fast", "--past", name]) == 0
    on, off = (["-m", str(tmp_path / f"{name}.sb")] for name in ("on", "off"))
    for folder, words in (("with", [*on, "--past", "on"]), ("without", on)):
        for _ in range(2):
            state = open_folder(tmp_path / folder, *words)
            assert uses_past(state.model) == (folder == "with")
            state.close()
    for folder, words, why in (
        ("with", [*on, "--past", "off"], "--past is on (got off)"),
        ("without", [*on, "--past", "on"], "--past is off (got on)"),
        ("new", [*off, "--past", "on"], "does not use past labels"),
    ):
        with pytest.raises(UsageError) as error:
            open_folder(tmp_path / folder, *words)
        assert why in str(error.value)


def test_past_labels_and_intervals_are_refused_together(tmp_path, refusal):
    words = ["--budget", "fast", "--past", "on", "--intervals"]
    assert "--intervals cannot be combined with --past" in refusal("--dir", tmp_path / "s", *words)
    assert not any(tmp_path.iterdir())


def test_a_file_instead_of_a_folder_is_named(tmp_path, refusal, capsys):
    file = tmp_path / "state"
    file.write_text("rows")
    with pytest.raises(UserError, match="is a file; expected a folder"):
        open_folder(file, *SMALL)
    assert f"{file} is a file; expected a folder" in refusal("--dir", file, *SMALL)
    write_folder(tmp_path / "other", [1], some_rows(25))
    for words in (
        ["check", file],
        ["repair", file],
        ["erase", file, "x"],
        ["backup", file, tmp_path / "backup.tar"],
        ["versions", file],
        ["challenge", file],
        ["restore", tmp_path / "other", "--dir", file],
    ):
        assert main([*map(str, words)]) == 2
        assert f"{file} is a file; expected a " in capsys.readouterr().err
    assert file.read_text() == "rows"
