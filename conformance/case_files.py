# mypy: ignore-errors
"""What a case is on disk: safetensors, an ONNX model and test data; needs the package `onnx`.

NAME/model.onnx, NAME/test_data_set_0/input_N.pb, output_N.pb are what ONNX's own node tests have.
NAME/tensors.safetensors has the same inputs and all that the form has no place for: bounds,
readings, gradients. NAME/case.json says what the case is.
"""

import json

import numpy as np

_NAMES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int32": "I32"}


def write_safetensors(path, arrays):
    """{name: array}, sorted, so that equal arrays are equal files."""
    header, offset, parts = {}, 0, []
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        end = offset + array.nbytes
        header[name] = {
            "dtype": _NAMES[array.dtype.name], "shape": list(np.shape(arrays[name])),
            "data_offsets": [offset, end],
        }  # fmt: skip
        parts.append(array.tobytes())
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(parts))


def node_attributes(case, flat):
    """Attributes of the node by name; those at their defaults are not written."""
    found = {"hidden_size": case.units} if case.hidden_size else {}
    if case.direction != "forward":
        found["direction"] = case.direction
    found |= flat
    if case.clip is not None:
        found["clip"] = case.clip
    for name in ("input_forget", "linear_before_reset", "layout"):
        if getattr(case, name):
            found[name] = getattr(case, name)
    if case.output_sequence:
        found["output_sequence"] = 1
    return found


def write_model(path, case, attributes, inputs):
    """One node; weights are initializers, or inputs like the others. Gives the inputs' names."""
    from onnx import TensorProto, helper, numpy_helper

    order = ["X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P"]
    order = order[: 8 if case.op == "LSTM" else 6]
    names = [name if name in inputs else "" for name in order]
    while not names[-1]:
        names.pop()
    constant = ("W", "R", "B", "P") if case.weights == "constant" else ()
    given = [name for name in names if name and name not in constant]
    every = ["Y", "Y_h", "Y_c"][: 2 + case.has_cell]
    outputs = [name if name in case.named_outputs else "" for name in every]
    while not outputs[-1]:
        outputs.pop()
    kind = {
        "float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "float16": TensorProto.FLOAT16,
        "bfloat16": TensorProto.BFLOAT16, "int32": TensorProto.INT32,
    }  # fmt: skip
    info = lambda name, dtype, shape: helper.make_tensor_value_info(name, kind[dtype], shape)
    state = [case.directions, case.batch, case.units]
    y = [case.time, *state]
    if case.layout:
        state, y = [state[1], state[0], state[2]], [y[2], y[0], y[1], y[3]]
    graph = helper.make_graph(
        [helper.make_node(case.op, names, outputs, **attributes)],
        case.name,
        [info(name, inputs[name].dtype.name, inputs[name].shape) for name in given],
        [info(name, case.dtype, y if name == "Y" else state) for name in outputs if name],
        [numpy_helper.from_array(inputs[name], name) for name in names if name in constant],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", case.opset)])
    model.ir_version, model.producer_name = 10 if case.opset >= 22 else 8, "conformance"
    path.write_bytes(model.SerializeToString(deterministic=True))
    return given


def write_data(folder, kind, arrays):
    """arrays as KIND_0.pb, KIND_1.pb, ..."""
    from onnx import numpy_helper

    folder.mkdir(parents=True, exist_ok=True)
    for number, (name, array) in enumerate(arrays.items()):
        tensor = numpy_helper.from_array(array, name)
        (folder / f"{kind}_{number}.pb").write_bytes(tensor.SerializeToString(deterministic=True))
