"""`spanboost tune`: its table, files and model, and its messages about bad usage."""

import json
from xml.etree import ElementTree

import pytest
from streams import FLATS, HOUSES, as_csv, as_jsonl, as_vw, put

from spanboost import load
from spanboost.tuning.rival import Rival
from spanboost.tuning.search import Sweep

FEW = ("--learner", "linear", "--rate", "0.2,0.5", "--step", "0.25,1", "-n", "4")


@pytest.fixture
def flats(tmp_path):
    return put(tmp_path, "flats.csv", as_csv(FLATS))


def test_the_chosen_model_is_the_one_that_train_makes(flats, shell, tmp_path):
    out, written = tmp_path / "tuned.sb", tmp_path / "tuned.json"
    read = ("--label", "label", "--categorical", "rooms", "--weight", "count", "--ignore", "age")
    printed = shell("tune", flats, *FEW, *read, "-o", out, "--json", written)
    result = json.loads(written.read_text())
    settings, n = result["chosen"]["settings"], result["chosen"]["n"]
    step = ("--step", settings["eta"]) if "eta" in settings else ()
    booster = ("--booster", settings["booster"], "-n", n, "--rate", settings["rate"], *step)
    evaluated = shell(
        *("train", flats, "-o", tmp_path / "own.sb", "--learner", "linear", "--json", "--quiet"),
        *(*booster, *read),
    )
    assert (tmp_path / "own.sb").read_bytes() == out.read_bytes()
    own = json.loads(evaluated.out)
    assert own["loss_first_half"] == result["chosen"]["loss_first"]
    assert own["loss_second_half"] == result["chosen"]["loss_rest"]
    assert "6 configurations over 200 rows" in printed.err
    lines = printed.out.splitlines()
    assert lines[0].split() == ["loss,", "first", "part", *["rest", "n", "booster", "step", "rate"]]
    assert len(lines) == 1 + 6 + 5
    assert lines[8].startswith("chosen on the first 100 rows: n ")
    assert lines[11].startswith("improvement = ")
    shell("train", flats, "-i", out, "-o", tmp_path / "more.sb", "--quiet")
    assert load(tmp_path / "more.sb").labels.rows == 400


def test_every_loss_is_in_the_json(data, shell):
    words = ("tune", data, *FEW, "--quiet", "--split", "0.25", "--json")
    result, again = (json.loads(shell(*words, *where).out) for where in ((), ("-",)))
    assert result | {"seconds": 0} == again | {"seconds": 0}
    assert (result["rows"], result["first"], result["learned"]) == (200, 50, 200)
    assert [len(one["sizes"]["n"]) for one in result["configurations"]] == [1, 1, 4, 4, 4, 4]
    losses = [
        (loss, one["settings"], n)
        for one in result["configurations"]
        for loss, n in zip(one["sizes"]["loss_first"], one["sizes"]["n"], strict=True)
    ]
    best = min(losses, key=lambda entry: entry[0])
    chosen = result["chosen"]
    assert best == (chosen["loss_first"], chosen["settings"], chosen["n"])
    assert result["alone"]["n"] == 1


@pytest.mark.parametrize("as_text", [as_vw, as_jsonl])
def test_formats_and_threads(as_text, shell, tmp_path):
    file = put(tmp_path, f"houses.{as_text.__name__[3:]}", as_text(HOUSES))
    models = []
    for threads in (1, 3):
        out = tmp_path / f"{threads}.sb"
        shell("tune", file, *FEW, "--threads", threads, "-o", out, "--booster", "hull")
        models.append(out.read_bytes())
    assert models[0] == models[1]


def test_plots(data, shell, tmp_path):
    more = ("--feedback", "greedy,linear", "--scale", "0.5,1")
    for name in ("a.svg", "b.svg", "c.png"):
        shell("tune", data, *FEW, *more, "--plot", tmp_path / name, "--quiet")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    assert ElementTree.parse(tmp_path / "a.svg").getroot().tag.endswith("svg")
    text = (tmp_path / "a.svg").read_text()
    for words in ("copies n", "step eta", "learning rate", "scale lambda", "feedback"):
        assert f"<!-- {words} -->" in text
    drawn = (tmp_path / "a.svg").read_text()
    assert drawn.count("<!-- average loss -->") >= 2  # every panel has a label
    assert "<!-- 2.5 -->" not in drawn.partition("<!-- copies n -->")[0]  # copies are integers
    # one configuration has only the plot over copies
    one = ("--learner", "linear", "--booster", "hull", "--rate", "0.5", "-n", "3")
    shell("tune", data, *one, "--plot", tmp_path / "one.svg", "--quiet")
    assert "learning rate" not in (tmp_path / "one.svg").read_text()


def test_ctrl_c_keeps_the_results_so_far(data, shell, tmp_path, monkeypatch):
    monkeypatch.setattr("spanboost.tuning.search.ROWS", 30)
    learn, calls = Sweep.learn, []

    def interrupted(self, batch):
        learn(self, batch)
        calls.append(batch.rows)
        if len(calls) == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr(Sweep, "learn", interrupted)
    files = ("-o", tmp_path / "m.sb", "--json", tmp_path / "m.json", "--plot", tmp_path / "m.svg")
    printed = shell("tune", data, *FEW, *files, status=130)
    assert sum(calls) == 120
    assert "interrupted after 120 of 200 rows; no model was written" in printed.err
    assert "chosen on the first 100 rows" in printed.out
    assert "average loss of the other 20 rows" in printed.out
    assert not (tmp_path / "m.sb").exists()
    assert (tmp_path / "m.svg").exists()
    assert json.loads((tmp_path / "m.json").read_text())["learned"] == 120
    calls[:] = [0] * 3  # interrupted in the first part: choose on the rows so far
    printed = shell("tune", data, *FEW, status=130)
    assert "chosen on the first 60 rows" in printed.out
    assert "average loss" not in printed.out  # there are no other rows


def test_ctrl_c_before_the_first_row_is_learned(data, shell, monkeypatch):
    def interrupted(self, batch):
        raise KeyboardInterrupt

    monkeypatch.setattr(Sweep, "learn", interrupted)
    printed = shell("tune", data, *FEW, status=130)
    assert printed.out == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--learner", "linear", "--step", "0.01"],
            "--step must be between 1/n = 0.03125 and 1 (got 0.01)",
        ),
        (["--hidden", "3"], "--hidden requires --learner network; the default tunes trees"),
        (["--rate", "1"], "--rate requires --learner linear, stumps or network; the default"),
        (
            ["--learner", "linear", "--hidden", "3"],
            "spanboost: --hidden does not apply to linear; leave it out",
        ),
        (["--rate", "quick"], "argument -l/--rate: invalid list of numbers value: 'quick'"),
        (["--feedback", "loud"], "--feedback must be 'linear' or 'greedy' (got 'loud')"),
        (["--split", "1.5"], "--split must be between 0 and 1 (got 1.5)"),
        (["--split", "0.001"], "--split selects none of 200 rows to choose on (got 0.001)"),
        (["--learner", "auto"], "argument --learner: invalid choice: 'auto'"),
        (
            ["--learner", "trees", "--rate", "1"],
            "spanboost: --rate does not apply to trees; leave it out",
        ),
        (["--learner", "ridge", "--rate", "1"], "--rate does not apply to ridge; leave it out"),
        (["-o", "-"], "-o must name a file; a model cannot be written to standard output"),
        (["--plot", "curves.pdf"], "curves.pdf: plots are .png or .svg files"),
        (["--threads", "0"], "argument --threads: must be at least 1 (got 0)"),
    ],
)
def test_bad_usage_is_one_line(words, message, data, shell):
    printed = shell("tune", data, *words, status=2)
    assert message in printed.err
    assert len(printed.err.splitlines()) == 1


def test_a_bad_label_is_named_by_its_line(data, shell):
    printed = shell("tune", data, *FEW, "--label-range", "0,300", status=2)
    assert f"{data}:" in printed.err
    assert "is outside the label range 0 to 300" in printed.err


def test_rows_of_weight_0_cannot_choose(shell, tmp_path):
    rows = [f"{t % 7},{t % 3},{int(t >= 30)}" for t in range(60)]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["a,label,w", *rows]) + "\n")
    words = ("--learner", "linear", "--weight", "w", "--rate", "0.5", "--step", "1", "-n", "2")
    assert "its rows have weight 0" in shell("tune", path, *words, status=2).err


@pytest.mark.slow
def test_an_interrupted_run_names_no_winner(flats, shell, tmp_path, monkeypatch):
    def interrupted(self, batch):
        raise KeyboardInterrupt

    monkeypatch.setattr(Rival, "learn", interrupted)  # AutoBoost has not learned the grid's rows
    written = tmp_path / "tuned.json"
    words = ("--step", "0.25,1", "-n", "4", "--label", "label", "--json", written)
    printed = shell("tune", flats, *words, status=130)
    assert "better" not in printed.out
    assert "nan" not in printed.out
    assert "better" not in json.loads(written.read_text())


@pytest.mark.slow
def test_without_a_learner_trees_are_compared_with_autoboost(flats, shell, tmp_path):
    out, written = tmp_path / "tuned.sb", tmp_path / "tuned.json"
    read = ("--label", "label", "--weight", "count")
    printed = shell(
        "tune", flats, "--step", "0.25,1", "-n", "4", *read, "-o", out, "--json", written
    )
    assert "tuning trees and comparing them with AutoBoost" in printed.err
    result = json.loads(written.read_text())
    evaluated = json.loads(shell("evaluate", flats, "--json", "--quiet", *read).out)
    assert result["auto"]["loss_first"] == pytest.approx(evaluated["loss_first_half"])
    assert result["auto"]["loss_rest"] == pytest.approx(evaluated["loss_second_half"])
    auto = result["auto"]["loss_rest"] < result["chosen"]["loss_rest"]
    assert result["better"] == ("auto" if auto else "trees")
    assert printed.out.splitlines()[-1] == f"better: {'AutoBoost' if auto else 'the tuned trees'}"
    name = "AutoBoost" if auto else "the tuned trees"
    assert printed.err.splitlines()[-1] == f"{out} contains {name}"
    model = load(out)
    assert type(model).__name__ == "AutoBoost" if auto else type(model.learner).__name__ == "Trees"
    assert model.labels.rows == 200
    assert model.schema is not None
