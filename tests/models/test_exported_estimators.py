"""Exports of estimators that were fitted to data frames know their columns and categories."""

import ctypes

import numpy as np
import pandas as pd
import polars
import pytest
from compiled_c import CompiledModel, needs_compiler
from onnx_session import OnnxModel
from predicting import SMALL_TREES

from spanboost import Trees, export, load, save
from spanboost.compiling.kernels import plain
from spanboost.errors import UserError
from spanboost.sklearn import BoostingClassifier, BoostingRegressor

T = 80
TREES = Trees(**SMALL_TREES)
CITIES = ["Ulm", 'the "Hague"', "Åbo", ""]


def frame_of(seed=0, **columns):
    """Return rows with numbers, times and categories: of texts, and of numbers and booleans."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            # in an order that is not alphabetical: the codes of pandas are others
            "city": pd.Categorical(rng.choice(CITIES[:3], T), categories=sorted(CITIES)),
            "size": rng.normal(size=T).astype(np.float32),
            "sold": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 9999, T), "h"),
            "rooms": pd.Categorical(rng.integers(1, 5, T)),
            "garden": pd.Categorical(rng.random(T) < 0.5),
        }
        | columns
    )


def labels_of(frame):
    cities = dict(zip(CITIES, (5.0, 0.0, 30.0, 90.0), strict=True))
    return [cities.get(city, 1.0) for city in frame["city"]] + frame["rooms"].astype(float) ** 2


def fitted(frame, estimator=BoostingRegressor, labels=labels_of, learner=TREES):
    return estimator(learner=learner, n_estimators=3, shuffle=False, random_state=0).fit(
        frame, labels(frame)
    )


def large(frame):
    return np.where(labels_of(frame) > 12, "large", "small")


def texts_of(frame):
    """Return the categories as a program would have them: texts, and "" for a missing one."""
    columns = [frame[name] for name in ("city", "rooms", "garden")]
    return np.array(
        [["" if pd.isna(one) else str(one) for one in column] for column in columns], object
    ).T


def compiled_predictions(estimator, frame, folder):
    """Return the predictions of a C program that gets texts and times."""
    compiled = CompiledModel(estimator.model_, folder, exported=estimator)
    found = []
    for size, sold, texts in zip(frame["size"], frame["sold"], texts_of(frame), strict=True):
        numbers = np.full(7, np.nan)
        moment = ctypes.c_int64(sold.value // 1000)
        compiled.function("time", None)(moment, ctypes.c_void_p(numbers.ctypes.data))
        codes = [compiled.code(j, one) for j, one in enumerate(texts)]
        found.append(compiled._dense([size, *numbers], codes))
    return np.array(found)[:, 0], compiled.source.read_text()


@needs_compiler
def test_c_finds_the_codes_of_categories(tmp_path):
    new = frame_of(1, city=np.random.default_rng(1).choice([*CITIES[:3], "Rome", None], T))
    with plain():
        estimator = fitted(frame_of())
        found, source = compiled_predictions(estimator, new, tmp_path)
        np.testing.assert_array_equal(found, estimator.predict(new))
    names = ["size", "sold.days", "sold.hour_sin"]
    assert all(f'numbers[{j}]: "{name}"' in source for j, name in enumerate(names))
    names = ["city", "rooms", "garden"]
    assert all(f'codes[{j}]: "{name}"' in source for j, name in enumerate(names))


@needs_compiler
def test_the_empty_text_can_be_a_category(tmp_path):
    frame = frame_of(city=np.random.default_rng(0).choice(CITIES, T))
    with plain():
        estimator = fitted(frame, learner="linear")
        found, source = compiled_predictions(estimator, frame, tmp_path)
        np.testing.assert_array_equal(found, estimator.predict(frame))
        unknown = estimator.predict(frame.assign(city=None))
    assert (found != unknown)[frame["city"] == ""].all()
    assert "unknown or NULL." in source


@pytest.mark.parametrize("estimator", [BoostingRegressor, BoostingClassifier])
def test_onnx_reads_categories_as_texts(estimator, tmp_path):
    new = frame_of(1, city=np.random.default_rng(1).choice([*CITIES[:3], "Rome", None], T))
    with plain():
        model = fitted(
            frame_of(), estimator, labels_of if estimator is BoostingRegressor else large
        )
        exported = OnnxModel(model, tmp_path)
        expected = model.predict(new)
        # the seven numbers of times, as the estimator computes them
        numbers = model._reader.read(model, new).numbers
    assert exported.names["categories"] == ["city", "rooms", "garden"]
    assert exported.names["numbers"][:2] == ["size", "sold.days"]
    inputs = {"numbers": numbers.astype(np.float32), "categories": texts_of(new)}
    if estimator is BoostingClassifier:
        assert exported.names["classes"] == model._labels.numbered()
        (found,) = exported.session.run(["label"], inputs)
        assert found.tolist() == expected.tolist()
    else:
        (found,) = exported.session.run(["prediction"], inputs)
        np.testing.assert_allclose(found, expected, rtol=1e-5)


@needs_compiler
def test_frames_of_polars_with_categories_only(tmp_path):
    """Such a model has no columns of numbers."""
    rows = {"city": ["Ulm", "Bonn", "Ulm", None] * 20, "street": ["a", "b", "c", "d"] * 20}
    frame = polars.DataFrame(rows)
    with plain():
        estimator = fitted(frame, labels=lambda frame: np.arange(80.0) % 4)
        compiled = CompiledModel(estimator.model_, tmp_path, exported=estimator)
        expected = estimator.predict(frame)
    for city, street, prediction in zip(*rows.values(), expected, strict=True):
        codes = [compiled.code(0, city), compiled.code(1, street)]
        assert compiled._dense([], codes) == prediction


@needs_compiler
def test_hashed_identifiers(tmp_path):
    """A column with a value of its own in each row is hashed, in C as in Python."""
    frame = pd.DataFrame({"id": [f"user-{k:05}" for k in range(3000)], "size": np.arange(3000.0)})
    with plain(), pytest.warns(UserWarning, match="id"):
        estimator = fitted(frame, labels=lambda frame: frame["size"] % 7)
    with plain():
        compiled = CompiledModel(estimator.model_, tmp_path, exported=estimator)
        few = frame[:20]
        codes = [compiled.code(0, one) for one in few["id"]]
        found = [
            compiled._dense([k], [code])[0] for k, code in zip(few["size"], codes, strict=True)
        ]
        np.testing.assert_array_equal(found, estimator.predict(few))
        assert compiled.code(0, "") == -1
        pytest.importorskip("onnx", reason="onnx is not installed")
        with pytest.raises(UserError, match="hashed features or categories to ONNX"):
            export(estimator, tmp_path / "model.onnx")


@needs_compiler
def test_compact_estimators_keep_the_categories(tmp_path):
    with plain():
        estimator = fitted(frame_of())
        export(estimator, tmp_path / "full.c")
        save(estimator, tmp_path / "small.sb", compact=True)
        export(load(tmp_path / "small.sb"), tmp_path / "small.c")
    assert (tmp_path / "small.c").read_text() == (tmp_path / "full.c").read_text()
