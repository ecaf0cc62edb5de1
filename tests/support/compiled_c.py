"""Compile exported C files, and call them."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

from spanboost import Rows, export

COMPILER = shutil.which("cc") or shutil.which("gcc")
WARNINGS = ("-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-pedantic")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")


class CompiledModel:
    """An exported model, as Python calls it.

    exported: the estimator of the model, if it is exported instead of the model.
    """

    def __init__(self, model, folder, name="model", options=WARNINGS, exported=None):
        self.source, library = folder / f"{name}.c", folder / f"{name}.so"
        export(model if exported is None else exported, self.source, name=name)
        command = [COMPILER, *options, "-shared", "-fPIC", "-o", library, self.source, "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:4000]
        self.library = ctypes.CDLL(str(library))
        self.model, self.name = model, name
        self.outputs = len(model.labels.centre)

    def function(self, what, result=ctypes.c_int):
        found = getattr(self.library, f"{self.name}_{what}")
        found.restype = result
        return found

    def predict_many(self, rows):
        """Return predictions as the model returns them."""
        if isinstance(rows, list):
            answers = [self._sparse(*self._entries(row)) for row in rows]
        elif isinstance(rows, Rows):
            pairs = zip(rows.numbers, rows.codes, strict=True)
            answers = [self._dense(numbers, codes) for numbers, codes in pairs]
        else:
            answers = [self._dense(numbers, np.zeros(0, np.int64)) for numbers in rows]
        out = np.array(answers)
        return out[:, 0] if self.outputs == 1 else out

    def _dense(self, numbers, codes):
        numbers, codes = np.array(numbers, np.float64), np.array(codes, np.int64)
        return self._call(numbers.ctypes, codes.ctypes)

    def _sparse(self, columns, values):
        columns, values = np.array(columns, np.int64), np.array(values, np.float64)
        return self._call(columns.ctypes, values.ctypes, ctypes.c_int64(len(columns)))

    def _call(self, *given):
        out = np.full(self.outputs, np.nan)
        arguments = [one.data if hasattr(one, "data") else one for one in given]
        pointers = [ctypes.c_void_p(one) if isinstance(one, int) else one for one in arguments]
        status = self.function("predict")(*pointers, ctypes.c_void_p(out.ctypes.data))
        if status != 0:
            raise ValueError("the row is invalid")
        return out

    def _entries(self, row):
        """Return the columns and values of a dictionary, in the order of its keys."""
        find = self.function("column", ctypes.c_int64)
        columns, values = [], []
        for key in sorted(row):
            value = row[key]
            name = f"{key}={value}" if isinstance(value, str) else key
            columns.append(find(name.encode()))
            values.append(1.0 if isinstance(value, str) else np.nan if value is None else value)
        return columns, values

    def code(self, column, text):
        return self.function("code", ctypes.c_int64)(
            column, None if text is None else text.encode()
        )
