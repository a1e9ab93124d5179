"""The networks as ONNX models: what ONNX Runtime, OpenVINO and tract are given."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper

from peers.workers import layout, server

# The place of OpenRNN's gate at each place of ONNX's: lstm i o f c, gru z r h.
ORDERS = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnn_tanh": (0,)}
STATES = ("initial_h", "initial_c")  # of each layer; a model that names them has them as inputs
OPERATORS = {"lstm": "LSTM", "gru": "GRU", "rnn_tanh": "RNN"}


def initializers(name: str, parts: list[layout.Part], order: tuple[int, ...]) -> list[TensorProto]:
    """W, R and B of one layer, its directions stacked."""
    ordered = [part.reordered(order) for part in parts]
    arrays = {
        "W": np.stack([part.w for part in ordered]),
        "R": np.stack([part.r for part in ordered]),
        "B": np.stack([np.concatenate([part.bw, part.br]) for part in ordered]),
    }
    return [numpy_helper.from_array(array, f"{name}_{key}") for key, array in arrays.items()]


def inputs_of(task: server.Task) -> dict[str, NDArray[Any]]:
    """What the model is given, in its order: x, lengths where they are told, and where a call begins
    with states those of each layer."""
    found = {"x": np.ascontiguousarray(task.array("x"), np.float32)}
    if task.lengths_kind == "given":
        found["lengths"] = task.array("lengths").astype(np.int32)
    for name, state in zip(STATES, task.states(), strict=False):
        layers = np.split(np.ascontiguousarray(state, np.float32), task.number("layers"))
        found |= {f"{name}{layer}": part for layer, part in enumerate(layers)}
    return found


def model_of(task: server.Task) -> ModelProto:
    """The network as an ONNX model: inputs_of -> y, h0.., c0.. (states of each layer)."""
    cell, units, directions = task.text("cell"), task.number("units"), task.number("directions", 1)
    parts, nodes, constants, states, source = layout.parts_of(task), [], [], [], "x"
    given = inputs_of(task)
    lengths = "lengths" if "lengths" in given else ""
    more: dict[str, Any] = {"linear_before_reset": 1} if cell == "gru" else {}
    for layer in range(task.number("layers")):
        name = f"l{layer}"
        mine = [part for part in parts if part.layer == layer]
        constants += initializers(name, mine, ORDERS[cell])
        outputs = [f"{name}_y", f"h{layer}"] + ([f"c{layer}"] if cell == "lstm" else [])
        first_states = [state for state in (f"{each}{layer}" for each in STATES) if state in given]
        inputs = [source, f"{name}_W", f"{name}_R", f"{name}_B", lengths, *first_states]
        nodes.append(
            helper.make_node(
                OPERATORS[cell], inputs, outputs, hidden_size=units,
                direction="bidirectional" if directions == 2 else "forward", **more,
            )  # fmt: skip
        )
        # [T, D, B, U] -> [T, B, D*U].
        source = "y" if layer == task.number("layers") - 1 else f"{name}_out"
        if directions == 1:
            nodes.append(helper.make_node("Squeeze", [f"{name}_y", "axis"], [source]))
        else:
            nodes.append(
                helper.make_node("Transpose", [f"{name}_y"], [f"{name}_t"], perm=[0, 2, 1, 3])
            )
            nodes.append(helper.make_node("Reshape", [f"{name}_t", "flat"], [source]))
        states += outputs[1:]
    name, shape = ("axis", [1]) if directions == 1 else ("flat", [0, 0, directions * units])
    constants.append(numpy_helper.from_array(np.array(shape, np.int64), name))
    value = helper.make_tensor_value_info
    inputs_of_graph = [
        value(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in given.items()
    ]
    graph = helper.make_graph(
        nodes, "network", inputs_of_graph,
        [value(name, TensorProto.FLOAT, None) for name in ["y", *states]], constants,
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def refuse(
    task: server.Task,
    maths: tuple[str, ...] = ("float32",),
    weights: tuple[str, ...] = ("float32",),
) -> None:
    """Throws Refused for what such a model cannot say."""
    if task.training:
        raise server.Refused("inference alone")
    if task.lengths_kind == "packed" or task.text("math", "float32") not in maths:
        raise server.Refused("no such option of its recurrent operators")
    if task.text("weights", "float32") not in weights:
        raise server.Refused(f"no {task.text('weights')} weights in its recurrent operators")


def results_of(outputs: dict[str, server.Array]) -> dict[str, server.Array]:
    """y, hn, cn from the model's outputs."""
    found = {"y": np.asarray(outputs["y"])}
    for state in "hc":
        layers = [name for name in outputs if name[0] == state]  # in the order of the layers
        if layers:
            found[f"{state}n"] = np.concatenate([np.asarray(outputs[name]) for name in layers])
    return found
