"""Loss curves: their contents, identical bytes for identical losses, and refused paths."""

import re
import sys
from contextlib import ExitStack, closing
from xml.etree import ElementTree

import numpy as np
import pytest

from spanboost.analysis import figures, loss_curves
from spanboost.analysis.progressive import LossTape
from spanboost.atomic_files import atomic_write, check_writable
from spanboost.errors import UserError

pytestmark = pytest.mark.slow  # the file as a whole

OPEN = ExitStack()


@pytest.fixture(autouse=True)
def _close_tapes():
    with OPEN:
        yield


def tape_of(losses, weights=None):
    losses = np.asarray(losses, float)
    weights = np.ones(len(losses)) if weights is None else np.asarray(weights, float)
    tape = OPEN.enter_context(closing(LossTape(1 + losses.shape[1])))
    tape.extend(np.column_stack([weights, weights[:, None] * losses]))
    return tape


def falling_losses(rows, models=2, seed=0):
    rng = np.random.default_rng(seed)
    fall = 1 / np.sqrt(np.arange(1, rows + 1))[:, None]
    return rng.exponential(1, (rows, models)) * fall * np.arange(1, models + 1)


@pytest.mark.parametrize("rows", [1, 2, 29, 30, 199, 201, 300, 1000, 3000, 12_345, 41_234])
def test_curves_are_averages_of_rows(rows):
    losses, weights = falling_losses(rows), np.random.default_rng(1).integers(1, 4, rows)
    tape = tape_of(losses, weights)

    at, averages = loss_curves.running_averages(tape)
    assert at[0] == 1
    assert at[-1] == rows
    assert (np.diff(at) > 0).all()
    for row, average in zip(at, averages, strict=True):
        np.testing.assert_allclose(average, np.average(losses[:row], 0, weights[:row]))

    ends, averages = loss_curves.window_averages(tape)
    starts = [0, *ends[:-1]]
    assert ends[-1] == rows
    assert len(ends) == rows or 15 <= len(ends) <= 210
    assert rows < 2000 or ends[0] >= 100
    assert len({*np.diff([0, *ends])[:-1]}) <= 1  # all but the last have the same length
    for first, last, average in zip(starts, ends, averages, strict=True):
        np.testing.assert_allclose(
            average, np.average(losses[first:last], 0, weights[first:last]), rtol=1e-9
        )


def test_a_huge_loss_is_in_one_window_only():
    losses = falling_losses(5000, models=1)
    losses[1234] = 1e300
    ends, averages = loss_curves.window_averages(tape_of(losses))
    wild = np.flatnonzero(averages[:, 0] > 1e200)
    assert wild.tolist() == [np.searchsorted(ends, 1235)]
    for k in range(wild[0] + 1, len(ends)):
        expected = losses[ends[k - 1] : ends[k]].mean()
        np.testing.assert_allclose(averages[k, 0], expected, rtol=1e-12)


def test_rows_of_weight_0_leave_a_gap():
    tape = tape_of(np.ones((3, 1)), [0, 1, 0])
    np.testing.assert_array_equal(loss_curves.running_averages(tape)[1][:, 0], [np.nan, 1, 1])
    np.testing.assert_array_equal(loss_curves.window_averages(tape)[1][:, 0], [np.nan, 1, np.nan])


@pytest.mark.parametrize("suffix", ["png", "svg", "PNG"])
def test_the_same_losses_give_the_same_bytes(suffix, tmp_path, monkeypatch):
    import matplotlib

    paths = [tmp_path / f"{name}.{suffix}" for name in ("a", "b", "c")]
    loss_curves.plot(["one", "two"], tape_of(falling_losses(500)), 0.5, path=paths[0])
    monkeypatch.setitem(matplotlib.rcParams, "font.size", 20)  # a user's own setting
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
    loss_curves.plot(["one", "two"], tape_of(falling_losses(500)), 0.5, path=paths[1])
    loss_curves.plot(["one", "two"], tape_of(falling_losses(500, seed=1)), 0.5, path=paths[2])
    a, b, c = (path.read_bytes() for path in paths)
    assert a == b
    assert a != c
    assert a.startswith(b"<?xml" if suffix == "svg" else b"\x89PNG")
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in paths}


@pytest.mark.parametrize(
    "losses",
    [
        np.zeros((50, 1)),
        np.full((1, 1), 3.0),
        np.full((300, 3), np.nan),
        np.where(np.arange(1000)[:, None] < 5, 1e12, 1e-9),
        falling_losses(400, models=14),
        np.eye(1000)[:, :2],
    ],
    ids=["zeroes", "one row", "nothing finite", "a spike", "many models", "almost all zeroes"],
)
@pytest.mark.parametrize("constant", [None, 0.0, 0.25])
def test_unusual_losses_can_be_drawn(losses, constant, tmp_path):
    names = [f"model {k}" for k in range(losses.shape[1])]
    loss_curves.plot(names, tape_of(losses), constant, path=tmp_path / "c.svg")
    assert ElementTree.parse(tmp_path / "c.svg").getroot().tag.endswith("svg")


def figure_of(losses, constant=None):
    names = [f"model {k}" for k in range(np.shape(losses)[1])]
    return loss_curves._plot(names, tape_of(losses), constant, ()).figure()


def test_outliers_switch_to_a_log_scale():
    steady = figure_of(np.random.default_rng(0).uniform(1, 2, (1000, 2)))
    assert [axes.get_yscale() for axes in steady.axes] == ["linear", "linear"]
    spike = figure_of(np.where(np.arange(1000)[:, None] < 5, 1e6, 1.0))
    assert [axes.get_yscale() for axes in spike.axes] == ["log", "log"]
    assert [axes.get_xscale() for axes in spike.axes] == ["log", "linear"]


def test_every_model_has_a_distinct_line_and_a_legend_entry():
    figure = figure_of(falling_losses(1000, models=12), constant=0.5)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == [*(f"model {k}" for k in range(12)), "best constant"]
    for axes in figure.axes:
        lines = axes.get_lines()
        assert len({(line.get_color(), line.get_linestyle()) for line in lines[:12]}) == 12
        assert list(lines[-1].get_ydata()) == [0.5, 0.5]
    # the legend is below the axes
    figure.draw_without_rendering()
    top = figure.legends[0].get_window_extent().y1
    assert all(axes.get_tightbbox().y0 >= top for axes in figure.axes)


def test_inline_plots_take_the_colours_of_the_page():
    svg = loss_curves.inline_svg(["one"], tape_of(falling_losses(300, 1)), 0.5)
    assert svg.startswith("<svg")
    assert "currentColor" in svg
    colours = set(re.findall(r"#[0-9a-f]{6}\b", svg.lower()))
    assert colours == {figures.COLOURS[0]}  # nothing is black or white
    hosts = set(re.findall(r"https?://([^/\"]+)", svg))
    assert hosts == {"www.w3.org"}  # the XML namespace, not a resource to load


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("c.pdf", r"c\.pdf: plots are \.png or \.svg files"),
        ("c", r"c: plots are \.png or \.svg files"),
        ("nowhere/c.png", r"nowhere/c\.png: the folder does not exist"),
        ("folder.svg", r"folder\.svg is a folder, not a file"),
        ("file/c.png", r"file/c\.png: the folder does not exist"),
    ],
)
def test_bad_paths_are_refused(name, message, tmp_path):
    (tmp_path / "folder.svg").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=f"{message}$"):
        figures.check_plot_path(tmp_path / name)


def test_missing_matplotlib_is_reported(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for call in (
        lambda: figures.check_plot_path(tmp_path / "c.png"),
        lambda: loss_curves.inline_svg(["one"], tape_of(falling_losses(3, 1)), None),
    ):
        with pytest.raises(UserError, match=r"^plots need matplotlib: run pip install '\.\["):
            call()


def test_files_are_written_completely_or_not_at_all(tmp_path):
    target = tmp_path / "file"
    target.write_text("before")

    def write_half():
        with atomic_write(target) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert target.read_text() == "before"
    with atomic_write(target) as file:
        file.write(b"after")
        assert target.read_text() == "before"
    assert target.read_text() == "after"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_links_are_kept_and_devices_can_be_written(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder/file")
    with atomic_write(tmp_path / "link") as file:
        file.write(b"linked")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "folder" / "file").read_text() == "linked"
    check_writable("/dev/null")
    with atomic_write("/dev/null") as file:
        file.write(b"gone")
