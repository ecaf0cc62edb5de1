"""Tests of PyTorch and Vowpal Wabbit learners, if installed: `pip install -e ".[peers]"`."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from spanboost import HullBoost, SpanBoost, TorchModule, VowpalWabbit

HOW = 'needs pip install -e ".[peers]"'
RANGE = (25, 346)


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return X / np.abs(X).max(axis=0), y


def error(model, X, y):
    half = len(y) // 2
    return np.mean((model.learn_many(X, y) - y)[half:] ** 2) / np.var(y[half:])


@pytest.fixture
def module():
    torch = pytest.importorskip("torch", reason=HOW)

    def make(outputs=1, lr=0.01):
        torch.manual_seed(0)
        layers = torch.nn.Linear(10, 8), torch.nn.Tanh(), torch.nn.Linear(8, outputs)
        return TorchModule(
            torch.nn.Sequential(*layers),
            lambda parameters: torch.optim.SGD(parameters, lr=lr, momentum=0.1),
        )

    return make


def test_boosting_improves_a_torch_module(module, diabetes):
    alone = error(HullBoost(module(), n=1, label_range=RANGE), *diabetes)
    boosted = error(HullBoost(module(), n=8, label_range=RANGE), *diabetes)
    assert boosted < 0.85 * alone


def test_a_module_steps_along_the_slope_of_its_loss(module):
    """One step of one copy, against PyTorch's own gradient of the squared error."""
    import torch

    x, y = np.linspace(-1, 1, 10), 0.6
    model = HullBoost(module(), n=1)
    model.learn_one(x, y)
    net, row = module().module, torch.tensor(x, dtype=torch.float32)
    optimiser = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.1)
    ((net(row) - y) ** 2 / 2).sum().backward()
    optimiser.step()
    assert model.predict_one(x) == pytest.approx(net(row).item(), abs=1e-6)


def test_modules_accept_every_loss_and_copies_are_independent(module, diabetes):
    X, y = diabetes
    sign = np.where(y > 140, 1.0, -1.0)
    for loss in ("logistic", "hinge"):
        model = HullBoost(module(lr=0.1), n=2, loss=loss)
        model.learn_many(X[:300], sign[:300])
        twin = copy.deepcopy(model)
        want = model.learn_many(X[300:], sign[300:])
        np.testing.assert_array_equal(twin.learn_many(X[300:], sign[300:]), want)
        assert np.mean(want * sign[300:] > 0) > 0.6


def test_dropout_is_inactive_in_predictions(module):
    import torch

    net = module()
    net.module.append(torch.nn.Dropout(0.5))
    net.module[1].eval()
    model = HullBoost(net, n=2)
    model.learn_many(np.eye(10), np.linspace(-0.5, 0.5, 10))
    assert len({model.predict_one(np.ones(10)) for _ in range(20)}) == 1
    learned = model.core.state.bank.copies[0].module
    assert [part.training for part in learned] == [True, False, True, True]  # unchanged


def test_a_module_without_an_optimiser_is_rejected(module):
    with pytest.raises(TypeError, match="Sequential has parameters but no optimiser"):
        SpanBoost(module().module)
    optimiser = module().optimiser
    with pytest.raises(TypeError, match="SGD is an optimiser, but each copy needs its own"):
        TorchModule(module().module, optimiser)
    with pytest.raises(TypeError, match="Sequential needs rows of numbers"):
        SpanBoost(module()).learn_one({"a": 1.0}, 0.5)


def test_boosting_improves_vowpal_wabbit(diabetes):
    pytest.importorskip("vowpalwabbit", reason=HOW)
    alone = error(HullBoost(VowpalWabbit("-l 0.05"), n=1, label_range=RANGE), *diabetes)
    boosted = error(SpanBoost(VowpalWabbit("-l 0.05"), n=10, label_range=RANGE), *diabetes)
    assert boosted < 0.97 * alone


def test_a_workspace_is_recreated_from_its_arguments(diabetes):
    vowpalwabbit = pytest.importorskip("vowpalwabbit", reason=HOW)
    X, y = diabetes
    words, workspace = "-l 0.3 --quiet", vowpalwabbit.Workspace("-l 0.3 --quiet")
    given = SpanBoost(workspace, n=2, label_range=RANGE).learn_many(X[:50], y[:50])
    named = SpanBoost(VowpalWabbit(words), n=2, label_range=RANGE).learn_many(X[:50], y[:50])
    np.testing.assert_allclose(given, named)
    workspace.finish()


def test_a_workspace_in_use_cannot_be_copied():
    pytest.importorskip("vowpalwabbit", reason=HOW)
    model = SpanBoost(VowpalWabbit("-l 0.3"), n=2)
    assert repr(copy.deepcopy(model).learner) == "VowpalWabbit('-l 0.3')"
    model.learn_one([1.0], 0.5)
    for duplicate in (copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="can be neither copied nor pickled"):
            duplicate(model)


def test_a_booster_of_one_copy_equals_vowpal_wabbit():
    vowpalwabbit = pytest.importorskip("vowpalwabbit", reason=HOW)
    rows = [{"area": 0.5, "city": "Ulm", "none": None}, {"area": -0.25, "city": "New York"}] * 10
    labels = [0.3, -0.4] * 10
    own = HullBoost(VowpalWabbit(), n=1).learn_many(rows, labels)
    workspace, direct = vowpalwabbit.Workspace("--quiet"), []
    texts = ["|x area:0.5 city=Ulm", "|x area:-0.25 city=New_York"] * 10
    for text, label in zip(texts, labels, strict=True):
        direct.append(workspace.predict(text))
        workspace.learn(f"{label} {text}")
    np.testing.assert_allclose(own, direct, atol=1e-6)
