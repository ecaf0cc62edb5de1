"""Run exported ONNX models with onnxruntime."""

import json

import numpy as np
import pytest

from spanboost import Rows, export


class OnnxModel:
    """An exported model, as Python calls it."""

    def __init__(self, model, folder):
        runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
        pytest.importorskip("onnx", reason="onnx is not installed")
        self.path = folder / "model.onnx"
        export(model, self.path)
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = runtime.InferenceSession(self.path, options)
        self.dtypes = {one.name: one.type for one in self.session.get_inputs()}
        given = self.session.get_modelmeta().custom_metadata_map
        self.names = {key: json.loads(text) for key, text in given.items()}

    def run(self, rows):
        """Return all outputs by name."""
        outputs = [one.name for one in self.session.get_outputs()]
        return dict(zip(outputs, self.session.run(outputs, self.inputs_of(rows)), strict=True))

    def predict_many(self, rows):
        return self.run(rows)["prediction"]

    def inputs_of(self, rows):
        """Return the inputs for a block of rows by name."""
        numbers, inputs = rows, {}
        if isinstance(rows, list):
            features = [self._features(row) for row in rows]
            names = self.names["numbers"]
            numbers = np.array([[one.get(name, 0.0) for name in names] for one in features])
            if "unknown" in self.dtypes:
                active = [
                    {name for name, x in one.items() if x and not np.isnan(x)} for one in features
                ]
                inputs["unknown"] = np.array([not one <= {*names} for one in active])
        if isinstance(rows, Rows):
            numbers = rows.numbers
            inputs["codes"] = np.asarray(rows.codes, np.int64)
        kind = np.float64 if self.dtypes["numbers"] == "tensor(double)" else np.float32
        return inputs | {"numbers": np.asarray(numbers, kind)}

    def _features(self, row):
        """Return the features of a dictionary and their values."""
        pairs = [
            (f"{key}={value}", 1.0) if isinstance(value, str) else (key, value)
            for key, value in row.items()
        ]
        return dict(pairs)
