"""The configuration file of a service with several models."""

import re
from pathlib import Path

import pytest

from spanboost.cli.parser import parser
from spanboost.cli.service_config import read_config
from spanboost.errors import UsageError

VARIABLES = {"predict": "P_TOKEN", "learn": "L_TOKEN", "admin": "A_TOKEN"}
TWO = """
[models.prices]
dir = "state/prices"
label = "price"
learner = "linear"
n = 4
ignore = ["name", "street"]
max-rows = 50
label-range = "-5,5"

[models."clicks-2"]
dir = "/elsewhere"
model = "clicks.sb"
accept-upgrade = true
[models."clicks-2".tokens]
predict = "CLICKS_TOKEN"
"""


def read(tmp_path, text, *options):
    path = tmp_path / "service.toml"
    path.write_text(text)
    words = ["serve", "--config", str(path), *options]
    return read_config(parser("serve").parse_args(words), VARIABLES)


def test_the_keys_of_a_model_are_the_options_of_serve(tmp_path, monkeypatch):
    monkeypatch.setenv("P_TOKEN", "p" * 16)
    monkeypatch.setenv("L_TOKEN", "l" * 16)
    monkeypatch.setenv("CLICKS_TOKEN", "c" * 16)
    prices, clicks = read(tmp_path, TWO, "--quiet", "--port", "0")
    words = ["serve", "--dir", str(tmp_path / "state/prices"), "--label", "price", "--quiet"]
    words += ["--learner", "linear", "-n", "4", "--ignore", "name,street", "--max-rows", "50"]
    expected = vars(parser("serve").parse_args([*words, "--label-range=-5,5"]))
    del expected["command"], expected["flags"]  # of the command line alone
    assert vars(prices.args) == expected
    assert (prices.name, clicks.name) == ("prices", "clicks-2")
    assert prices.tokens == {"predict": "p" * 16, "learn": "l" * 16}
    assert clicks.tokens == {"predict": "c" * 16, "learn": "l" * 16}
    assert clicks.args.accept_upgrade
    assert Path(clicks.args.dir) == Path("/elsewhere")
    assert Path(clicks.args.model) == tmp_path / "clicks.sb"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[models.a", "is not a valid TOML file: "),
        ("", r"must contain a table \[models.NAME\] for each model$"),
        ("models = 1", r"must contain a table \[models.NAME\] for each model$"),
        ("[models]\n[other]", r"for each model \(got 'other'\)"),
        ("[models]\na = 1", r"\[models.a\] must be a table"),
        ("[models.a]", r"\[models.a\] needs the key 'dir', the path of its state folder"),
        ("[models.a]\ndir = 1", "needs the key 'dir'"),
        ("[models.'a/b']\ndir = 'x'", r"the name of a model consists of .* \(got 'a/b'\)"),
        ("[models.'..']\ndir = 'x'", r"the name of a model consists of .* \(got '..'\)"),
        ("[models.a]\ndir = 'x'\nmax_row = 1", "unknown key 'max_row'; did you mean 'max-rows'"),
        ("[models.a]\ndir = 'x'\nport = 1", "unknown key 'port'"),
        ("[models.a]\ndir = 'x'\nconfig = 'y'", "unknown key 'config'"),
        ("[models.a]\ndir = 'x'\nn = -1", r"\[models.a\]: argument -n/--n-estimators: "),
        ("[models.a]\ndir = 'x'\nlearner = true", "argument --learner: expected one argument"),
        ("[models.a]\ndir = 'x'\nn = 1979-05-27", "the value of 'n' must be a number, text or"),
        ("[models.a]\ndir = 'x'\ntokens = 1", "'tokens' must be a table of names of environment"),
        ("[models.a]\ndir = 'x'\ntokens.all = 'X'", "unknown key 'all'; expected predict, learn,"),
        ("[models.a]\ndir = 'x'\ntokens.learn = 'NO_X'", "environment variable NO_X is not set"),
        ("[models.a]\ndir = 'x'\n[models.b]\ndir = './y/../x'", "'a' and 'b' have the same folder"),
    ],
)
def test_bad_files_are_refused(tmp_path, text, why):
    with pytest.raises(UsageError, match=why):
        read(tmp_path, text)


@pytest.mark.parametrize("option", ["--label=x", "-n=3", "--max-rows=7", "--accept-upgrade"])
def test_options_of_models_belong_into_the_file(tmp_path, option):
    with pytest.raises(UsageError, match=r"cannot be used with --config; set it in .*\.toml"):
        read(tmp_path, "[models.a]\ndir = 'x'", option)


def test_a_model_of_a_file_cannot_follow_a_leader(tmp_path):
    text = "[models.a]\ndir = 'x'\n"
    with pytest.raises(UsageError, match=r"--follow cannot be used with --config$"):
        read(tmp_path, text, "--follow", "http://leader")
    with pytest.raises(UsageError, match="unknown key 'follow'"):
        read(tmp_path, text + "follow = 'y'")


def test_the_file_on_the_page_is_valid(tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "service-models.md").read_text()
    (text,) = re.findall(r"^```toml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    for variable in re.findall(r"CLICKS_\w+", text):
        monkeypatch.setenv(variable, variable)
    prices, clicks = read(tmp_path, text)
    assert (prices.args.label, prices.tokens) == ("price", {})
    assert (clicks.args.n, clicks.args.max_memory) == (64, 2048)
    assert set(clicks.tokens) == {"predict", "learn", "admin"}


def test_dir_and_config_exclude_each_other(capsys):
    for words in (["--dir", "x", "--config", "y"], []):
        with pytest.raises(SystemExit):
            parser("serve").parse_args(["serve", *words])
        assert "--config" in capsys.readouterr().err
