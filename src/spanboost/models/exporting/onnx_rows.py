"""The inputs of an exported ONNX model, and what its operators read of a row."""

from typing import Any, NamedTuple

import numpy as np

from spanboost.errors import UserError
from spanboost.learners.stumps import StumpBank
from spanboost.models.exporting.onnx_graph import ML, Graph
from spanboost.models.exporting.program import BoosterPart
from spanboost.models.exporting.row_form import CODE_LIMIT, RowForm


class Inputs(NamedTuple):
    """The rows in a graph. Rows of dictionaries are rows of all known features."""

    values: list[Any]  # the inputs of the graph
    columns: int  # of numbers
    numbers: dict[Any, str]  # by type: [rows, columns]; empty if there are none
    codes: list[str]  # for each column of categories: [rows] int64, negative if missing
    unknown: str | None = None  # [rows] whether a row has unknown features, if that matters


def add_inputs(graph: Graph, form: RowForm, boosters: list[BoosterPart]) -> Inputs:
    """Add the inputs; a UserError if ONNX cannot read the rows of the model."""
    from onnx import TensorProto, helper

    _check(form, boosters)
    columns = len(form.names) if form.sparse else form.numbers
    dtypes = {one.dtype for one in boosters}
    widest = np.float64 if np.float64 in dtypes else np.float32
    values, numbers = [], dict[Any, str]()
    if columns:
        kind = TensorProto.DOUBLE if widest is np.float64 else TensorProto.FLOAT
        values.append(helper.make_tensor_value_info("numbers", kind, ["rows", columns]))
        numbers = {dtype: graph.cast("numbers", dtype) for dtype in dtypes}
    codes = []
    if form.categories:
        texts = any(one.texts for one in form.categories)
        name = "categories" if texts else "codes"
        kind = TensorProto.STRING if texts else TensorProto.INT64
        count = len(form.categories)
        values.append(helper.make_tensor_value_info(name, kind, ["rows", count]))
        for j, one in enumerate(form.categories):
            column = graph.add("Gather", name, graph.constant(j, np.int64), axis=1)
            codes.append(_encode(graph, column, one.texts) if texts else column)
    unknown = None
    if form.named and any(isinstance(one.bank, StumpBank) for one in boosters):
        unknown = "unknown"  # other learners ignore unknown features
        values.append(helper.make_tensor_value_info(unknown, TensorProto.BOOL, ["rows"]))
    return Inputs(values, columns, numbers, codes, unknown)


def invalid_rows(graph: Graph, inputs: Inputs) -> str:
    """Return which rows Python refuses, [rows]: infinite numbers, and codes that are too large."""
    found = []
    if inputs.numbers:
        narrow = min(inputs.numbers, key=lambda dtype: np.dtype(dtype).itemsize)
        infinite = graph.cast(graph.add("IsInf", inputs.numbers[narrow]), np.int64)
        found.append(graph.add("ReduceMax", infinite, axes=[1], keepdims=0))
    for code in inputs.codes:
        large = graph.add("GreaterOrEqual", code, graph.constant(CODE_LIMIT, np.int64))
        found.append(graph.cast(large, np.int64))
    most = graph.add("Max", *found)
    return graph.add("Greater", most, graph.constant(0, np.int64))


def row_zeros(graph: Graph, inputs: Inputs) -> str:
    """Return a zero for each row, [rows, 1, 1, 1]."""
    from onnx import numpy_helper

    shape = graph.add("Shape", inputs.values[0].name, start=0, end=1)
    zero = numpy_helper.from_array(np.zeros(1))
    return graph.reshape(graph.add("ConstantOfShape", shape, value=zero), -1, 1, 1, 1)


def _encode(graph: Graph, column: str, texts: Any) -> str:
    keys = [text.encode(errors="surrogatepass") for text in texts] or [b""]
    values = [*range(len(texts))] or [-1]
    return graph.add(
        "LabelEncoder",
        column,
        domain=ML,
        keys_strings=keys,
        values_int64s=values,
        default_int64=-1,
    )


def _check(form: RowForm, boosters: list[BoosterPart]) -> None:
    if any(one.mask >= 0 for one in boosters) or any(one.bits for one in form.categories):
        raise UserError(
            "cannot export hashed features or categories to ONNX, which has no operator for the "
            "hash; export to C, or train without hashing"
        )
    if form.sparse and not form.named:
        raise UserError(
            "cannot export a model of sparse rows to ONNX, which needs a fixed number of columns; "
            "export to C, or train on dense rows or dictionaries"
        )


def known_codes(form: RowForm, j: int, seen: Any) -> int:
    """Return the number of codes of a column; `seen` are those that a learner knows."""
    texts = len(form.categories[j].texts)
    return texts or int(max(seen, default=-1)) + 1


def code_index(graph: Graph, code: str, known: int) -> str:
    """Return 1 + the code: 0 if it is missing, 1 + `known` if it is unknown."""
    least, most, one = (graph.constant(k, np.int64) for k in (-1, known, 1))
    inside = graph.add("Min", graph.add("Max", code, least), most)
    return graph.add("Add", inside, one)
