"""Reports (one self-contained page) and the options --plot and --report."""

import json
import random
import shlex
import sys
from contextlib import closing
from html.parser import HTMLParser

import numpy as np
import pytest

from spanboost.analysis.progressive import LossTape
from spanboost.cli.main import main
from spanboost.cli.output import plots, report
from spanboost.cli.output.summary import Speed, result_of
from spanboost.models.model_spec import ModelSpec

VOID = {"meta", "br", "img", "link", "hr"}
NASTY = """a <script>alert("1")</script> & 'b'.jsonl"""


class Page(HTMLParser):
    """A parsed page: checks that elements are closed in order, keeps tables as lists of texts."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.tables, self.text = [], [], [], {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_startendtag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        for tag in self.open:
            self.text[tag] = self.text.get(tag, "") + data
        if self.open and self.open[-1] in ("td", "th"):
            self.tables[-1][-1][-1] += data

    def all(self, tag):
        return [attributes for name, attributes in self.seen if name == tag]


class Labels:
    def best_constant(self):
        return 0.5, 0.25


@pytest.fixture
def example():
    """A page of three models over 6 rows, and the words of its command."""
    losses = np.array([[1.0, 4, 2], [3, 2, 2], [2, 2, 2], [1, 4, 4], [1, 4, 3], [1, 4, 2]])
    specs = [
        ModelSpec(learner="stumps", n=2),
        ModelSpec(learner="linear", booster="hull", n=2),
        ModelSpec(learner="stumps").alone,
    ]
    models = {spec.name: spec.build() for spec in specs}
    words = ["evaluate", NASTY, "--report", "it's.html"]
    bad = [f"{NASTY}:{line}: '<b>' is not a number" for line in range(1, 4)]
    with closing(LossTape(4)) as tape:
        tape.extend(np.column_stack([np.ones(6), losses]))
        result = result_of(list(models), tape, Labels(), Speed(6, 0.5, 0.1), 7)
        return Page(report.page(words, [NASTY, "b"], models, tape, result, bad, {})), words


def test_a_page_shows_the_command_and_the_results(example):
    page, words = example
    assert shlex.split(page.text["pre"]) == ["spanboost", *words]
    assert page.text["h1"] == page.text["title"] == f"spanboost evaluate: {NASTY} and 1 more"
    losses, stream, progress, windows, parameters = page.tables
    head = ["model", "average loss", "first half", "second half"]
    assert losses == [
        [*head, "improvement over its learner alone, second half"],
        ["stumps:span", "1.5", "2", "1", "+66.67%"],
        ["linear:hull", "3.33333", "2.66667", "4", report.NONE],
        ["stumps alone", "2.5", "2", "3", report.NONE],
    ]
    facts = dict(map(tuple, stream))
    assert facts["rows"] == "6"
    assert facts["best constant"] == "0.5"
    assert facts["best constant's loss"] == "0.25"
    assert facts["rows left out"] == "7"
    assert facts["seconds of compiling"] == "0.10"
    assert facts["rows a second, without compiling"] == "15"
    assert progress == [
        ["rows", "stumps:span", "linear:hull", "stumps alone"],
        ["1", "1", "4", "2"],
        ["2", "2", "3", "2"],
        ["4", "1.75", "3", "2.5"],
        ["6", "1.5", "3.33333", "2.5"],
    ]
    assert windows[0] == progress[0]
    assert windows[1] == ["1 to 1", "1", "4", "2"]
    assert [row[0] for row in windows[2:]] == [f"{t} to {t}" for t in range(2, 7)]
    by_model = {row[0]: dict(zip(parameters[0], row, strict=True)) for row in parameters[1:]}
    assert by_model["linear:hull"]["booster"] == "HullBoost"
    assert by_model["linear:hull"]["learner"].startswith("LinearSGD(rate=0.5")
    assert [row["n"] for row in by_model.values()] == ["2", "2", "1"]
    assert "7 rows, the first 3:" in page.text["p"]
    assert page.text["li"].count("'<b>' is not a number") == 3


def test_a_page_is_self_contained_and_has_no_scripts(example):
    page, _ = example
    tags = {tag for tag, _ in page.seen}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "b", "a"}
    for _, attributes in page.seen:
        assert not {"src", "href", "onload"} & set(attributes)
        assert attributes.get("xlink:href", "#").startswith("#")
    assert "url(http" not in page.text["style"]
    assert "prefers-color-scheme: dark" in page.text["style"]
    assert "@media print" in page.text["style"]


def test_a_page_is_accessible(example):
    page, _ = example
    assert page.all("html")[0]["lang"] == "en"
    assert [attributes["scope"] for attributes in page.all("th")].count("row") == 3 + 8 + 4 + 6 + 3
    assert all(cell.strip() for table in page.tables for row in table for cell in row)
    (svg,) = page.all("svg")
    assert svg["role"] == "img"
    assert "stumps:span" in svg["aria-label"]
    assert len(page.all("main")) == len(page.all("h1")) == len(page.all("figcaption")) == 1


def test_characters_that_utf8_cannot_encode_are_escaped(tmp_path):
    report.save(tmp_path / "r.html", "<p>\udcff.csv</p>")
    assert (tmp_path / "r.html").read_text("utf-8") == r"<p>\udcff.csv</p>"


@pytest.fixture
def data(tmp_path):
    path = tmp_path / NASTY.replace("/", "")
    rng = random.Random(0)
    rows = [{"x": rng.random(), "kind": rng.choice("ab")} for _ in range(300)]
    lines = [json.dumps(row | {"label": row["x"] + (row["kind"] == "a")}) for row in rows]
    lines[7] = "no row"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_evaluate_draws_and_reports(data, tmp_path, capsys):
    command = ["evaluate", str(data), "-n", "3", "--compare", "linear,stumps:hull", "--baseline"]
    more = ["--on-error", "skip", "--json", "--quiet"]
    places = ["--plot", str(tmp_path / "c.png"), "--report", str(tmp_path / "r.html")]
    assert main([*command, *more, *places]) == 0
    result = json.loads(capsys.readouterr().out)
    page = Page((tmp_path / "r.html").read_text("utf-8"))
    assert shlex.split(page.text["pre"]) == ["spanboost", *command, *more, *places]
    shown = {row[0]: row for row in page.tables[0][1:]}
    assert set(shown) == {"linear:span", "stumps:hull", "linear alone", "stumps alone"}
    assert float(shown["linear:span"][1]) == pytest.approx(result["loss"], rel=1e-5)
    assert shown["linear:span"][4] == f"{result['relative_improvement']:+.2%}"
    assert "no row" in page.text["li"]
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    assert {path.name for path in tmp_path.iterdir()} == {data.name, "c.png", "r.html"}


def test_the_report_contains_every_plot_of_the_command(data, tmp_path, capsys):
    command = ["evaluate", str(data), "--learner", "stumps", "-n", "3", "--on-error", "skip"]
    drawn = [f"--plot-{kind}={tmp_path / kind}.svg" for kind in plots.KINDS]
    assert main([*command, "--quiet", "--report", str(tmp_path / "r.html"), *drawn]) == 0
    page = Page((tmp_path / "r.html").read_text("utf-8"))
    labels = [svg["aria-label"] for svg in page.all("svg") if "aria-label" in svg]
    for kind in plots.KINDS:
        assert sum(f"--plot-{kind}" in label for label in labels) == 1
        assert report.PLOTS[kind] in page.text["h2"]
    pictures = [one["xlink:href"] for one in page.all("image")]  # colour bars
    assert pictures
    assert all(one.startswith("data:image/png;") for one in pictures)
    (policy,) = (one["content"] for one in page.all("meta") if "http-equiv" in one)
    assert "img-src data:;" in policy
    assert len(list(tmp_path.glob("*.svg"))) == len(plots.KINDS)


def test_a_resumed_run_plots_all_rows(data, tmp_path, monkeypatch, capsys):
    from spanboost.cli.checkpoints import Checkpoints

    def run(name, *more):
        output = ["-o", str(tmp_path / f"{name}.sb"), "--plot", str(tmp_path / f"{name}.svg")]
        options = ["--learner", "linear", "-n", "2", "--on-error", "skip", "--quiet", *more]
        return main(["train", str(data), *output, *options])

    assert run("straight") == 0
    save = Checkpoints.save

    def save_and_interrupt(self, model, tape, *more):
        save(self, model, tape, *more)
        if tape.rows:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "save", save_and_interrupt)
        assert run("resumed", "--checkpoint-every", "100") == 130
    assert not (tmp_path / "resumed.svg").exists()
    assert run("resumed", "--resume") == 0
    curves = [(tmp_path / f"{name}.svg").read_bytes() for name in ("straight", "resumed")]
    assert curves[0] == curves[1]


@pytest.mark.parametrize(
    ("option", "place", "message"),
    [
        ("--plot", "c.pdf", "plots are .png or .svg files"),
        ("--plot", "no/c.png", "the folder does not exist"),
        ("--report", "r.txt", "a report must be a .html file"),
        ("--report", "no/r.html", "the folder does not exist"),
        ("--predictions", "no/p.csv", "the folder does not exist"),
        (
            "--report",
            "r.html",
            "plots need matplotlib: run pip install '.[plot]' in a clone of spanboost",
        ),
        (
            "--plot",
            "c.png",
            "plots need matplotlib: run pip install '.[plot]' in a clone of spanboost",
        ),
    ],
)
@pytest.mark.parametrize("command", ["evaluate", "train"])
def test_unwritable_outputs_are_refused_before_learning(
    command, option, place, message, data, tmp_path, monkeypatch, capsys
):
    model = tmp_path / "m.sb"
    if "matplotlib" in message:
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setattr(
        "spanboost.models.booster.Booster.learn_many", lambda *_: pytest.fail("learned")
    )
    kept = tmp_path / "m.sb.checkpoint"
    kept.touch()
    output = ["-o", str(model)] if command == "train" else []
    assert main([command, str(data), *output, option, str(tmp_path / place)]) == 2
    printed = capsys.readouterr()
    assert printed.err.endswith(f"{message}\n")
    assert printed.err.count("\n") == 1
    assert printed.out == ""
    assert {path.name for path in tmp_path.iterdir()} == {data.name, kept.name}


def test_a_failed_pass_leaves_no_plot(data, tmp_path, capsys):
    places = ["--plot", str(tmp_path / "c.png"), "--report", str(tmp_path / "r.html")]
    assert main(["evaluate", str(data), "--learner", "linear", "-n", "2", "--quiet", *places]) == 2
    assert ":8: " in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [data.name]


def write_classes(tmp_path, names):
    rows = [f"{t % 7},{names[t % 7 % len(names)]}" for t in range(300)]
    path = tmp_path / "classes.csv"
    path.write_text("\n".join(["a,label", *rows, ""]))
    return path


@pytest.mark.parametrize(
    ("names", "loss", "event"),
    [
        (("no", "yes"), "logistic", "How often the label is yes,"),
        (("a", "b", "c"), "softmax", "How often the predicted class is right,"),
    ],
)
def test_the_calibration_is_drawn_once(names, loss, event, shell, tmp_path):
    path, page, plot = write_classes(tmp_path, names), tmp_path / "r.html", tmp_path / "p.svg"
    words = ("evaluate", path, "--loss", loss, "--learner", "linear", "-n", "2", "--quiet")
    shell(*words, "--report", page)
    assert event in page.read_text()
    assert page.read_text().count("<!-- observed frequency -->") == 1
    shell(*words, "--report", page, "--plot-predictions", plot)
    assert event not in page.read_text()
    assert "The calibration is drawn below." in page.read_text()
    assert page.read_text().count("<!-- observed frequency -->") == 1
