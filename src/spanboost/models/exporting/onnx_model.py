"""A prediction program as an ONNX model.

Everything but trees is computed in float64. Trees are exact, so predictions differ from those of
Python by the rounding errors of float32 sums only.
"""

import json
from typing import Any

import numpy as np

from spanboost import __version__
from spanboost.compiling.arrays import Array
from spanboost.learners.tree_tables import PredictingTrees
from spanboost.models.exporting.onnx_banks import Place, add_bank
from spanboost.models.exporting.onnx_combinations import add_combination
from spanboost.models.exporting.onnx_graph import IR_VERSION, OPSETS, Graph, import_onnx
from spanboost.models.exporting.onnx_rows import Inputs, add_inputs, invalid_rows
from spanboost.models.exporting.onnx_trees import project
from spanboost.models.exporting.program import (
    BoosterPart,
    CombinedPart,
    Lane,
    Part,
    Program,
    boosters_of,
)
from spanboost.models.exporting.row_form import RowForm


def onnx_bytes(program: Program, name: str = "model") -> bytes:
    """Return the bytes of an ONNX file."""
    onnx = import_onnx()
    from onnx import helper

    graph = Graph()
    inputs = add_inputs(graph, program.form, boosters_of(program.part))
    forecasts = _add_part(graph, program.part, program.form, inputs)  # [rows, d, 1]
    d = program.outputs
    invalid = graph.reshape(invalid_rows(graph, inputs), -1, 1)
    scores = graph.call("Where", invalid, np.nan, graph.reshape(forecasts, -1, d))
    shape = [-1] if d == 1 else [-1, d]
    named = {"prediction": graph.reshape(scores, *shape)}
    if program.classes:
        named |= _add_classes(graph, scores, invalid, program)
    outputs = [_output(graph, program, key, value) for key, value in named.items()]
    made = helper.make_graph(graph.nodes, name, inputs.values, outputs, graph.constants)
    opsets = [helper.make_opsetid(domain, version) for domain, version in OPSETS.items()]
    model = helper.make_model(made, opset_imports=opsets, ir_version=IR_VERSION)
    model.producer_name, model.producer_version = "spanboost", __version__
    model.doc_string = program.description
    helper.set_model_props(model, _metadata(program))
    onnx.checker.check_model(model)
    data: bytes = model.SerializeToString()
    return data


def _metadata(program: Program) -> dict[str, str]:
    """Return the names of columns and classes, as JSON."""
    form = program.form
    named = {
        "numbers": [*form.names],
        "categories": [one.name for one in form.categories],
        "classes": [*program.classes],
    }
    return {key: json.dumps(names) for key, names in named.items() if names}


def _add_classes(graph: Graph, scores: str, invalid: str, program: Program) -> dict[str, str]:
    """Return the probabilities of the classes, and the name of the most probable one.

    The name is empty for invalid rows.
    """
    if program.binary:
        scores = graph.add("Concat", graph.call("Mul", scores, 0.0), scores, axis=1)
    best = graph.add("ArgMax", scores, axis=1, keepdims=0)
    known = graph.add("Gather", graph.texts([*program.classes]), best, axis=0)
    label = graph.add("Where", graph.reshape(invalid, -1), graph.texts([""]), known)
    return {"probabilities": graph.add("Softmax", scores, axis=1), "label": label}


def _output(graph: Graph, program: Program, key: str, value: str) -> Any:
    from onnx import TensorProto, helper

    graph.nodes.append(helper.make_node("Identity", [value], [key], name=key))
    many = program.outputs if key == "prediction" else len(program.classes)
    shape = ["rows"] if key == "label" or many == 1 else ["rows", many]
    kind = TensorProto.STRING if key == "label" else TensorProto.DOUBLE
    return helper.make_tensor_value_info(key, kind, shape)


def _add_part(graph: Graph, part: Part, form: RowForm, inputs: Inputs) -> str:
    """Return the forecasts of a part, [rows, d, K], in the units of the labels."""
    if isinstance(part, CombinedPart):
        each = [_add_part(graph, one, form, inputs) for one in part.parts]
        forecasts = graph.add("Concat", *each, axis=2) if len(each) > 1 else each[0]
        return add_combination(graph, part.how, forecasts)
    h = add_bank(part.bank, Place(graph, form, inputs, part))
    if not isinstance(part.bank, PredictingTrees):  # the leaves of trees are projected already
        h = _project(graph, h, part.D, len(part.centre))
    sums = _add_copies(graph, part, h)
    if part.link == "score":
        return sums
    if part.link == "log":
        return graph.call("Mul", graph.add("Exp", sums), part.half)
    return graph.call("Add", graph.call("Mul", sums, part.half), part.centre[:, None])


def _project(graph: Graph, y: str, radius: Any, d: int) -> str:
    """Return y [rows, d, N] with every column projected to this norm."""
    if np.isinf(radius):
        return y
    if d == 1:
        return graph.clip(y, -float(radius), float(radius))
    norm = graph.add("Sqrt", graph.sum(graph.call("Mul", y, y), 1, True))
    shrink = graph.call("Div", float(radius), graph.call("Max", norm, float(radius)))
    return graph.call("Mul", y, shrink)


def _add_copies(graph: Graph, part: BoosterPart, h: str) -> str:
    """Return the partial sums that are forecasts, [rows, d, K]."""
    bounds = _bounds(part)
    if all(_stays_inside(lane, bounds) for lane in part.lanes):
        return graph.call("MatMul", h, _coefficients(part))
    sums = [_scan(graph, lane, h, len(part.centre)) for lane in part.lanes]  # [rows, d, N] each
    every = graph.add("Concat", *sums, axis=2) if len(sums) > 1 else sums[0]
    return graph.add("Gather", every, graph.constant([*part.places], np.int64), axis=2)


def _bounds(part: BoosterPart) -> Array:
    """Return an upper bound on the norm of the predictions of each copy."""
    bounds = np.full(part.lanes[-1].last, float(part.D))
    if isinstance(part.bank, PredictingTrees):
        from spanboost.models.exporting.onnx_trees import trees_of

        nodes = part.bank.nodes
        norms = np.linalg.norm(project(nodes.value, part.D).astype(np.float64), axis=1)
        bounds[:] = 0
        np.maximum.at(bounds, trees_of(nodes)[nodes.inner == 0], norms)
    return bounds


def _stays_inside(lane: Lane, bounds: Array) -> bool:
    """Return whether no partial sum can be projected, whatever the row is."""
    if lane.radius is None:
        return True
    y, most = 0.0, 0.0
    for keep, eta, bound in zip(lane.keep, lane.eta, bounds[lane.first : lane.last], strict=True):
        y = float(keep) * y + float(eta) * float(lane.scale) * float(bound)
        most = max(most, y)
    return most * (1 + 1e-6) < float(lane.radius)


def _coefficients(part: BoosterPart) -> Array:
    """Return the weight of every copy in every forecast, [N, K], without projections."""
    table = np.zeros((part.lanes[-1].last, len(part.places)))
    for k, place in enumerate(part.places):
        (lane,) = (one for one in part.lanes if one.first <= place < one.last)
        last = place - lane.first + 1
        keep, eta = (one[:last].astype(np.float64) for one in (lane.keep, lane.eta))
        after = np.append(np.cumprod(keep[:0:-1])[::-1], 1.0)  # over all later copies
        table[lane.first : place + 1, k] = eta * float(lane.scale) * after
    return table


def _scan(graph: Graph, lane: Lane, h: str, d: int) -> str:
    """Return all partial sums of a lane, [rows, d, N], each projected to the radius."""
    from onnx import TensorProto, helper

    inside = Graph(prefix="scan_")
    kept = inside.add("Mul", "keep", "before")
    y = inside.add("Add", kept, inside.add("Mul", "step", "copy"))
    y = inside.reshape(_project(inside, inside.reshape(y, -1, d, 1), lane.radius, d), -1, d)
    inside.nodes += [helper.make_node("Identity", [y], [out]) for out in ("after", "sums")]

    def info(name: str, shape: list[Any]) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.DOUBLE, shape)

    body = helper.make_graph(
        inside.nodes,
        "copies",
        [
            info("before", ["rows", d]),
            info("keep", []),
            info("step", []),
            info("copy", ["rows", d]),
        ],
        [info("after", ["rows", d]), info("sums", ["rows", d])],
        inside.constants,
    )
    own = graph.constant(np.arange(lane.first, lane.last), np.int64)
    each = graph.add("Transpose", graph.add("Gather", h, own, axis=2), perm=[2, 0, 1])
    start = graph.call("Mul", graph.sum(h, 2), 0.0)
    steps = lane.eta.astype(np.float64) * float(lane.scale)
    keep = graph.constant(lane.keep.astype(np.float64))
    last, sums = f"{each}_last", f"{each}_sums"
    graph.nodes.append(
        helper.make_node(
            "Scan",
            [start, keep, graph.constant(steps), each],
            [last, sums],
            name=sums,
            body=body,
            num_scan_inputs=3,
        )
    )
    return graph.add("Transpose", sums, perm=[1, 2, 0])
