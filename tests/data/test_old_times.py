"""Models of earlier versions continue with their four features of a time.

The version before the sine and cosine wrote the files. It printed the expected numbers.
"""

from datetime import datetime, timedelta
from pathlib import Path
from shutil import copy

import numpy as np
import pandas as pd
import pytest
from forged import changed

from spanboost import load, save
from spanboost.data.frames import FrameReader
from spanboost.data.schema import schema_from_json
from spanboost.errors import ModelFileError
from spanboost.rows.times import FIRST_PARTS

FOLDER = Path(__file__).parent / "files"
ROWS = [
    {"when": datetime(2023, 1, 1) + timedelta(hours=31 * k), "x": float(k % 3)}
    for k in range(300, 303)
]
LABELS = [3.0, 4.01, 5.02]
BEFORE = [0.9022630369663238, 2.636137218475342, 3.648443386554718]
AFTER = [2.5789978528022766, 4.669014868736267, 6.1062442445755005]


@pytest.mark.parametrize("name", ["names", "table"])
def test_a_model_of_an_earlier_version_keeps_its_features(name, tmp_path):
    model = load(FOLDER / f"times-{name}.sb")
    for _ in range(2):  # also after it is written again
        np.testing.assert_allclose(model.predict_many(ROWS), BEFORE, rtol=1e-6)
        save(model, tmp_path / "again.sb")
        model = load(tmp_path / "again.sb")
    progressive = [BEFORE[0], 3.3798907518386843, 4.04]
    np.testing.assert_allclose(model.learn_many(ROWS, LABELS), progressive, rtol=1e-6)
    parts = model.schema.time_parts if name == "table" else model.encoder.names.time_parts
    assert parts == FIRST_PARTS


def test_an_estimator_of_an_earlier_version_keeps_its_features(tmp_path):
    estimator, frame = load(FOLDER / "times-frame.sb"), pd.DataFrame(ROWS)
    np.testing.assert_allclose(estimator.predict(frame), BEFORE, rtol=1e-6)
    estimator.partial_fit(frame, LABELS)
    save(estimator, tmp_path / "again.sb")
    np.testing.assert_allclose(load(tmp_path / "again.sb").predict(frame), AFTER, rtol=1e-6)


@pytest.mark.parametrize("parts", [["days"], "days", ["days", "month"], 3, None, [["days"]]])
def test_unknown_features_of_times_are_refused(parts, tmp_path):
    column = {"name": "t", "category": False, "codes": [], "time": True}
    state = {
        "form": "table",
        "target": {"kind": "number"},
        "ignore": [],
        "categorical": [],
        "columns": [column],
        "time_parts": parts,
    }
    with pytest.raises(ValueError, match=r"time_parts|invalid schema"):
        schema_from_json(state)
    frame = {"names": ["t"], "times": [0], "categories": {}, "identifiers": set()}
    with pytest.raises(ValueError, match="features of times"):
        FrameReader.restore(frame | {"time_parts": parts})
    forged = Path(copy(FOLDER / "times-names.sb", tmp_path))
    changed(forged, lambda header: header["rows"].update(time_parts=parts))
    with pytest.raises(ModelFileError, match="features of times are unknown"):
        load(forged)
