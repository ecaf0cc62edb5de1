"""A graph of ONNX operators under construction. Values are known by their names."""

from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.errors import UserError, install_hint

ML = "ai.onnx.ml"
OPSETS = {"": 17, ML: 3}
IR_VERSION = 8  # of these operator sets
MOST_BYTES = 2_000_000_000  # of all constants: a file has at most 2^31 - 1 bytes


def import_onnx() -> Any:
    """Return the module onnx; a UserError says how to install it."""
    try:
        import onnx
    except ImportError:
        raise UserError(
            f"the export to ONNX needs the package onnx; {install_hint('onnx')}"
        ) from None
    return onnx


class Graph:
    """The nodes and constants so far."""

    def __init__(self, prefix: str = "") -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._prefix, self._count, self._bytes = prefix, 0, 0
        self._known: dict[Any, str] = {}

    def add(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add a node with one output; return the name of the output."""
        from onnx import helper

        out = self._name(operator.lower())
        self.nodes.append(
            helper.make_node(operator, inputs, [out], name=out, domain=domain, **attributes)
        )
        return out

    def constant(self, values: Any, dtype: Any = np.float64) -> str:
        """Return the name of a constant; equal constants are stored once.

        A UserError says that the constants do not fit into a file.
        """
        from onnx import numpy_helper

        array = np.ascontiguousarray(values, dtype).reshape(np.shape(values))
        if self._bytes + array.nbytes > MOST_BYTES:
            raise UserError(
                "cannot export a model with tables of more than 2 GB to ONNX, whose files cannot "
                "be larger; number categories from 0 without gaps, or export to C"
            )
        key = array.dtype.str, array.shape, array.tobytes()
        if key not in self._known:
            self._known[key] = self._name("constant")
            self._bytes += array.nbytes
            self.constants.append(numpy_helper.from_array(array, self._known[key]))
        return self._known[key]

    def texts(self, values: list[str]) -> str:
        """Return the name of a constant list of texts."""
        from onnx import TensorProto, helper

        name = self._name("texts")
        encoded = [text.encode(errors="surrogatepass") for text in values]
        self.constants.append(helper.make_tensor(name, TensorProto.STRING, [len(values)], encoded))
        return name

    def _name(self, stem: str) -> str:
        self._count += 1
        return f"{self._prefix}{stem}_{self._count}"

    # arithmetic on float64, with constants as numbers or arrays

    def value(self, given: Any) -> str:
        """Return the name of a value: a name as it is, a number or an array as a constant."""
        return given if isinstance(given, str) else self.constant(given)

    def call(self, operator: str, *given: Any, **attributes: Any) -> str:
        """Add a node whose inputs are names, numbers or arrays."""
        return self.add(operator, *map(self.value, given), **attributes)

    def clip(self, x: str, low: Any, high: Any) -> str:
        """Return x limited to [low, high]; infinite limits are left out."""
        if not np.all(np.isneginf(low)):
            x = self.call("Max", x, low)
        return x if np.all(np.isposinf(high)) else self.call("Min", x, high)

    def sum(self, x: str, axis: int, keep: bool = False) -> str:
        """Return the sum along an axis."""
        axes = self.constant([axis], np.int64)
        return self.add("ReduceSum", x, axes, keepdims=int(keep))

    def cast(self, x: str, dtype: Any) -> str:
        """Return x as another type."""
        from onnx import helper

        return self.add("Cast", x, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def reshape(self, x: str, *shape: int) -> str:
        """Return x in another shape; -1 is the number of rows."""
        return self.add("Reshape", x, self.constant(shape, np.int64))

    def rows_of(self, table: Array, index: str) -> str:
        """Return the rows of a table at these indices."""
        return self.add("Gather", self.constant(table), index, axis=0)
