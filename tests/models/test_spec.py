"""One specification: every front end has its parameters, with the same defaults and checks."""

import inspect
import json
from dataclasses import FrozenInstanceError, fields

import pytest

from spanboost import AutoBoost, HullBoost, LinearSGD, Ridge, SpanBoost, Trees
from spanboost.cli.parser import parser
from spanboost.errors import ParameterError
from spanboost.losses import Logistic, Quantile, Softmax
from spanboost.models.model_spec import LEARNERS, ModelSpec
from spanboost.models.spec import AutoSpec, SharedParameters, SpanSpec, default_step

SHARED = {one.name: one.default for one in fields(SharedParameters)}


@pytest.mark.parametrize("model", [SpanBoost, HullBoost, ModelSpec])
def test_models_have_the_shared_parameters_with_their_defaults(model):
    signature = inspect.signature(model)
    assert {name: signature.parameters[name].default for name in SHARED} == SHARED


@pytest.mark.parametrize("library", ["sklearn", "river"])
@pytest.mark.parametrize("name", ["BoostingRegressor", "BoostingClassifier"])
def test_estimators_have_the_shared_parameters_with_their_defaults(library, name):
    estimators = pytest.importorskip(f"spanboost.{library}")
    estimator = getattr(estimators, name)()
    given = estimator.get_params() if library == "sklearn" else estimator._get_params()
    assert {name: given[name] for name in SHARED} == SHARED


def test_the_command_line_offers_every_parameter_that_has_an_option():
    args = parser().parse_args(["train", "x.csv", "-o", "m.sb"])
    options = {one.name for one in fields(ModelSpec) if one.metadata}
    assert options == {one.name for one in fields(ModelSpec)} - {"classes"}
    for name in options:
        assert getattr(args, name) is None  # what is not given is left to the specification


@pytest.mark.parametrize("name", SHARED)
def test_files_and_identities_hold_the_shared_parameters(name):
    test = next(one.metadata["test"] for one in fields(SharedParameters) if one.name == name)
    value = next(value for value in (7, 0.5, "other") if value != SHARED[name] and test(value))
    assert SpanBoost(LinearSGD(), **{name: value}).parameters()["parameters"][name] == value
    spec = ModelSpec(learner="linear", **{name: value})
    assert spec.build().parameters()["parameters"][name] == value
    assert spec.identity() != ModelSpec(learner="linear").identity()


def test_an_identity_is_that_of_version_0_1():
    spec = ModelSpec(learner="linear", n=4, seed=3, label_range=(0.0, 1.0))
    expected = ["linear", "span", 4, None, "squared", "greedy", None, (0.0, 1.0), None]
    assert spec.identity() == [*expected, 3, None, None, "default", 0, 50_000]
    json.dumps(spec.identity())


def test_parameters_of_a_model_cannot_be_changed():
    model = SpanBoost(LinearSGD(), n=4)
    with pytest.raises(FrozenInstanceError):
        model.n = 8
    with pytest.raises(FrozenInstanceError):
        AutoBoost(budget="fast").budget = "default"


def test_models_are_equal_to_themselves_alone():
    one, same = SpanBoost(LinearSGD(), n=2), SpanBoost(LinearSGD(), n=2)
    assert one == one  # noqa: PLR0124
    assert one != same
    assert len({one, same}) == 2
    assert AutoBoost(budget="fast") != AutoBoost(budget="fast")


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_can_be_built_by_name(name):
    ball = {"x_norm": 1.0, "label_range": (-1, 1)} if name == "ball" else {}
    model = ModelSpec(learner=name, **ball).build()
    assert model.n == {"trees": 100, "ridge": 1}.get(name, 32)
    assert isinstance(model, SpanBoost)


def test_a_learner_that_is_an_object_has_the_copies_of_its_kind():
    assert ModelSpec(learner=Trees(depth=2)).build().n == 100
    assert ModelSpec(learner=Ridge()).build().n == 1
    assert ModelSpec(learner=LinearSGD()).build().n == 32


@pytest.mark.parametrize(
    ("loss", "expected"),
    [("quantile:0.3", Quantile(0.3)), ("quantile:0.5", Quantile(0.5)), ("logistic", Logistic())],
)
def test_losses_by_name(loss, expected):
    assert ModelSpec(learner="linear", loss=loss).build().loss_ == expected


def test_classes_have_room_for_their_scores():
    model = ModelSpec(learner="linear", loss="softmax", classes=3).build()
    assert model.loss_ == Softmax(3)
    assert (model.D, model.label_range) == (6.0, (-1, 1))


def test_the_default_step():
    assert default_step(1) == 1
    assert default_step(100) == pytest.approx(0.0460517, rel=1e-6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n": 0}, "n must be a positive integer or 'auto' (got 0)"),
        ({"booster": "both"}, "booster must be 'span' or 'hull' (got 'both')"),
        (
            {"budget": "huge"},
            "budget must be 'fast', 'default', 'thorough' or 'exhaustive' (got 'huge')",
        ),
        ({"seed": -1}, "seed must be an integer of at least 0 (got -1)"),
        ({"learner": "forest"}, "learner must be 'auto', 'linear'"),
        ({"learner": "auto", "n": 3}, "n does not apply to learner 'auto'"),
        ({"learner": "linear", "booster": "hull", "step": 0.5}, "step is for Algorithm 1 only"),
        ({"learner": "linear", "step": 0.001}, "eta must be between 1/n = 0.03125 and 1"),
        ({"learner": "ball"}, "x_norm is required by the learner 'ball'"),
        ({"learner": "trees", "rate": 0.1}, "rate does not apply to trees"),
        ({"learner": "ridge", "rate": 0.1}, "rate does not apply to ridge"),
    ],
)
def test_a_parameter_that_is_not_allowed_is_named(given, message):
    with pytest.raises(ParameterError) as error:
        ModelSpec(**given).build()
    assert str(error.value).startswith(message)


def test_specifications_check_themselves():
    with pytest.raises(ParameterError, match="B must be a number of at least scale"):
        SpanSpec(LinearSGD(), B=0.5)
    with pytest.raises(ParameterError, match="alpha needs feedback='greedy'"):
        SpanSpec(LinearSGD(), feedback="linear", alpha=1.0)
    with pytest.raises(ParameterError, match="label_range must be"):
        AutoSpec(label_range=(1, 0))
    with pytest.raises(ParameterError, match=r"n must be at most 1,000,000 \(got 1,000,000,000\)"):
        SpanSpec(LinearSGD(), n=10**9)


@pytest.mark.parametrize("cls", [SpanBoost, HullBoost, AutoBoost])
def test_errors_about_arguments_name_the_class_that_was_called(cls):
    with pytest.raises(TypeError, match=rf"^{cls.__name__} has no parameter 'unknown'"):
        cls(unknown=1)


def test_version_0_1_can_read_parameters_that_are_left_at_their_defaults():
    new = {one.name for one in fields(SpanSpec) if one.metadata.get("new")}
    assert new
    assert not new & SpanBoost(LinearSGD(), n=2).parameters()["parameters"].keys()
