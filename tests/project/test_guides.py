"""Run every line of the guides for users of other tools: the other tool's code, and ours."""

import importlib
import re
import shlex
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def lines(page):
    """Yield the code in the first two cells of each line of the table."""
    for line in (DOCS / page).read_text().splitlines():
        if line.startswith("| `"):
            there, here = (
                re.match(r"\s*`(.*?)`", cell).group(1).replace(r"\|", "|")
                for cell in re.split(r"(?<!\\)\|", line)[1:3]
            )
            yield there, here


MODULES = (
    *("compose", "ensemble", "forest", "linear_model", "multiclass", "optim"),
    *("multioutput", "preprocessing", "tree"),
)
CHOSEN = {"--learner", "predict", "-i"}  # commands with one of these words have no budget
VW = list(lines("from-vowpal-wabbit.md"))
RIVER = list(lines("from-river.md"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the files that the lines of the table name."""
    rows = [f"{t % 7 / 7} |n a:{t % 7} b:{t % 3} c{t % 2}" for t in range(50)]
    for name in ("train.vw", "test.vw", "more.vw"):
        (tmp_path / name).write_text("\n".join(rows) + "\n")
    classes = [f"{1 if t % 7 > 3 else -1} |n a:{t % 7}" for t in range(50)]
    (tmp_path / "classes.vw").write_text("\n".join(classes) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_our_commands_for_users_of_vowpal_wabbit(folder, shell):
    assert len(VW) > 10
    for _, here in VW:
        program, *words = shlex.split(here)
        assert program == "spanboost"
        shell(*words, *([] if CHOSEN & set(words) else ["--budget", "fast"]))  # to save time
        for option in {"-p", "-f"} & set(words):
            assert (folder / words[words.index(option) + 1]).stat().st_size


def test_the_commands_of_vowpal_wabbit(folder):
    vowpalwabbit = pytest.importorskip("vowpalwabbit", reason="Vowpal Wabbit is not installed")
    for there, _ in VW:
        program, *words = shlex.split(there)
        assert program == "vw"
        vowpalwabbit.Workspace(shlex.join(words), enable_logging=True).finish()


@pytest.mark.parametrize(("there", "here"), RIVER, ids=range(len(RIVER)))
def test_code_for_users_of_river(there, here):
    from river import base, datasets

    from spanboost import losses, river

    modules = {name: importlib.import_module(f"river.{name}") for name in MODULES}
    ours = {name: getattr(river, name) for name in dir(river) if name.startswith("Boosting")}
    for code in (there, here):
        model = eval(code, modules | ours | {"losses": losses})
        several = isinstance(model, base.MultiTargetRegressor)
        numbers = several or isinstance(model, base.Regressor) or "LinearRegression" in code
        for x, y in (datasets.TrumpApproval() if numbers else datasets.Phishing()).take(5):
            model.learn_one(x, {"a": y, "b": -y} if several else y)
        assert model.predict_one(x) is not None
