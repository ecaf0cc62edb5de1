"""The Python reference: every public name once, docstrings as Markdown, search from disk."""

import inspect
import re
from collections import Counter
from pathlib import Path

import docstrings
import pytest
from chromium import CHROMIUM, browser

import spanboost
import spanboost.client
import spanboost.losses
import spanboost.river
import spanboost.sklearn

ROOT = Path(__file__).parents[2]
SHIM = ROOT / "docs" / "iframe-worker.js"


def public_classes(module):
    for name, value in vars(module).items():
        if inspect.isclass(value) and not name.startswith("_"):
            here = value.__module__.startswith(module.__name__)
            yield from [f"{module.__name__}.{name}"] if here else []


def test_every_public_name_is_in_the_reference_once():
    counts = Counter(docstrings.names())
    modules = {name for name in spanboost.__all__ if inspect.ismodule(getattr(spanboost, name))}
    expected = {f"spanboost.{name}" for name in spanboost.__all__ if name not in modules}
    expected |= {f"spanboost.analysis.{name}" for name in modules}
    for module in (spanboost.client, spanboost.river, spanboost.sklearn):
        expected |= set(public_classes(module))
    assert expected <= set(counts)
    assert set(counts.values()) == {1}


def test_the_members_of_models_that_guides_use_are_in_the_reference():
    guides = "".join(page.read_text() for page in [*ROOT.glob("docs/*.md"), ROOT / "README.md"])
    examples = "".join(re.findall("^```.*?^```", guides, re.MULTILINE | re.DOTALL))
    used = {*re.findall(r"\bmodel\.([a-z]\w*)", examples)} - {"labels"}
    sections = (ROOT / "docs/api/models.md").read_text().split("::: spanboost.")[1:]
    models = [section for section in sections if "learn_many" in section]
    assert len(models) >= 7
    for section in models:
        name, _, options = section.partition("\n")
        members = {one for one in used if hasattr(getattr(spanboost, name), one)}
        assert {"learn_many", "predict_many", "health"} <= members
        assert members <= {*re.findall(r"\w+", options)}, name


def test_every_loss_is_in_the_reference():
    losses = {name for name in public_classes(spanboost.losses) if hasattr(_get(name), "value")}
    assert len(losses) > 5
    assert losses - {"spanboost.losses.Scalar"} <= set(docstrings.names())


def _get(path):
    return getattr(spanboost.losses, path.rpartition(".")[2])


def test_parameters_become_lists_and_doctests_code():
    text = """Do it.

    See docs/auto.md for l(y*, y) and `a * b`.

    seed: random seed.
    alpha, beta: two numbers,
        both positive.

    >>> 1 * 2
    2
    """
    assert docstrings.markdown(text) == (
        "Do it.\n\nSee [auto](../auto.md) for l(y\\*, y) and `a * b`.\n\n"
        "- `seed`: random seed.\n- `alpha, beta`: two numbers,\n    both positive.\n\n"
        "```pycon\n>>> 1 * 2\n2\n```"
    )
    numpy_style = "Fit.\n\nParameters\n----------\nX : array"
    assert docstrings.markdown(numpy_style) == numpy_style
    choices = numpy_style.replace("array", '"span" or "hull"')
    assert docstrings.markdown(choices).endswith('X : one of "span" or "hull"')


@pytest.mark.process
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_the_worker_of_the_search_runs_in_a_local_file(tmp_path):
    (tmp_path / "worker.js").write_text(
        "addEventListener('message', async event => postMessage(event.data + 1))"
    )
    script = """
        const worker = new Worker("worker.js")
        worker.addEventListener("message", event => document.title = `got ${event.data}`)
        worker.postMessage(41)
    """
    page = tmp_path / "page.html"
    page.write_text(f"<script>{SHIM.read_text()}</script><body><script>{script}</script>")
    with browser() as one:
        one.open(page.as_uri())
        assert one.wait_until("document.title") == "got 42"
        assert one.errors() == []


def public_functions():
    for name in spanboost.__all__:
        value = getattr(spanboost, name)
        if inspect.isclass(value):
            methods = (one for one in dir(value) if not one.startswith("_"))
            yield from (getattr(value, one) for one in methods)
        elif not inspect.ismodule(value):
            yield value
    pictures = spanboost.pictures
    yield from (getattr(pictures, one) for one in dir(pictures) if one.startswith("plot_"))
    for cls in (spanboost.sklearn.BoostingRegressor, spanboost.river.BoostingRegressor):
        yield from (getattr(cls, one) for one in ("fit", "learn_one") if hasattr(cls, one))


def test_help_shows_short_types():
    functions = [one for one in public_functions() if inspect.isfunction(one)]
    assert len(functions) > 100
    for function in functions:
        text = str(inspect.signature(function))
        assert "_Buffer" not in text, f"help({function.__qualname__}) shows unions of NumPy"
        assert "Union[" not in text, f"help({function.__qualname__}) shows unions"
    assert "X: 'RowsLike', y: 'ArrayLike'" in str(inspect.signature(spanboost.compare))
