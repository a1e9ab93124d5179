"""Writes the files in fuzz/corpus/onnx that the tests read: made with the onnx package, and field by field.

Usage: python make_onnx_corpus.py, in an environment with numpy and onnx.
"""

import pathlib

import numpy as np
from onnx import TensorProto, helper, numpy_helper

CORPUS = pathlib.Path(__file__).parents[4] / "fuzz" / "corpus" / "onnx"


def varint(value):
    value %= 1 << 64
    out = bytearray()
    while value >= 128:
        out.append(value % 128 | 128)
        value //= 128
    return bytes(out + bytearray([value]))


def number(field, value):
    return varint(field * 8) + varint(value)


def part(field, *parts):
    data = b"".join(one.encode() if isinstance(one, str) else one for one in parts)
    return varint(field * 8 + 2) + varint(len(data)) + data


def model(*graph, version=number(1, 8), opsets=part(8, number(2, 14))):
    return version + part(7, *graph) + opsets


def tensor(*fields, name="t", dims=(2,), kind=1):
    return part(5, *(number(1, size) for size in dims), number(2, kind), *fields, part(8, name))


def node(*fields, op="Identity", inputs=("a",), outputs=("b",)):
    named = [part(1, name) for name in inputs] + [part(2, name) for name in outputs]
    return part(1, *named, part(4, op), *fields)


def entry(key, value):
    return part(13, part(1, key), part(2, value))


EIGHT = part(9, bytes(8))


def typed(kind, values, dims=None):
    return helper.make_tensor(f"typed_{kind}", kind, dims or [len(values)], values)


def lstm(raw=True):
    """A bidirectional LSTM whose weights are initializers, in raw bytes or typed fields."""
    random = np.random.default_rng(1)
    shapes = {"W": (2, 12, 2), "R": (2, 12, 3), "B": (2, 24), "P": (2, 9)}
    arrays = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    if raw:
        weights = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    else:
        weights = [helper.make_tensor(name, 1, array.shape, array.ravel()) for name, array in arrays.items()]
    made = helper.make_node(
        "LSTM", ["x", "W", "R", "B", "", "", "", "P"], ["y", "h", "c"], name="rnn", hidden_size=3,
        direction="bidirectional", clip=3.5, activations=["HardSigmoid", "Tanh", "Elu"] * 2,
        activation_alpha=[0.25, 0.5] * 2, activation_beta=[0.375] * 2)
    return graph_model([made], ["x"], ["y", "h", "c"], weights)


def graph_model(nodes, inputs, outputs, weights=(), **more):
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", [value(name) for name in inputs], [value(name) for name in outputs], weights)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], producer_name="by hand", **more)
    helper.set_model_props(made, {"key": "value\nof two lines"})
    return made.SerializeToString(deterministic=True)


def all_types():
    yield typed(TensorProto.FLOAT, [1.5, -2.5])
    yield typed(TensorProto.DOUBLE, [1.5, -2.5, 0.1])
    for kind in (TensorProto.INT32, TensorProto.INT64, TensorProto.INT8, TensorProto.INT16):
        yield typed(kind, [1, -2, 127])
    for kind in (TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64):
        yield typed(kind, [1, 2, 255])
    yield typed(TensorProto.BOOL, [True, False, True])
    for kind in (TensorProto.FLOAT16, TensorProto.BFLOAT16):
        yield typed(kind, [1.5, -2.0, 0.0])
    yield typed(TensorProto.COMPLEX64, [1 + 2j, -3j])
    yield typed(TensorProto.STRING, ["one", "two"])
    yield numpy_helper.from_array(np.zeros((0, 3), np.float32), "empty")
    yield numpy_helper.from_array(np.array(7, np.int64), "scalar")


def subgraphs():
    constant = helper.make_node("Constant", [], ["k"], value=numpy_helper.from_array(np.ones(2, np.float32)))
    branch = helper.make_graph([constant, helper.make_node("Identity", ["k"], ["o"])], "b", [],
                               [helper.make_tensor_value_info("o", 1, [2])],
                               [numpy_helper.from_array(np.zeros(3, np.float32), "w")])
    made = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    return graph_model([made], ["c"], ["y"])


def good():
    yield "lstm", lstm()
    yield "typed_fields", lstm(raw=False)
    yield "all_types", graph_model([], [], [], list(all_types()))
    yield "subgraphs", subgraphs()
    yield "no_weights", graph_model([helper.make_node("Identity", ["x"], ["y"])], ["x"], ["y"])
    yield "external", model(tensor(entry("location", "m.data"), entry("offset", "0"), entry("length", "8"),
                                   number(14, 1))) + part(14, part(1, "k"), part(2, bytes(9)))
    yield "no_opset", model(tensor(EIGHT), opsets=b"")


def bad_tensors():
    yield "shape_overflow", tensor(EIGHT, dims=(1 << 40, 1 << 40))
    yield "negative_size", tensor(EIGHT, dims=(-2,))
    yield "too_few_bytes", tensor(part(9, bytes(7)))
    yield "too_many_bytes", tensor(part(9, bytes(9)))
    yield "no_elements", tensor()
    yield "unknown_type", tensor(EIGHT, kind=99)
    yield "no_type", tensor(EIGHT, kind=0)
    yield "two_fields", tensor(EIGHT, part(4, bytes(8)))
    yield "wrong_field", tensor(part(7, bytes(2)))
    yield "wire_type_of_elements", tensor(varint(4 * 8 + 1) + bytes(8))
    yield "wire_type_of_strings", tensor(number(6, 1), kind=8, dims=(1,))
    yield "half_a_float", tensor(part(4, bytes(7)))
    yield "wide_int8", tensor(part(5, varint(300), varint(1)), kind=3)
    yield "bool", tensor(part(9, b"\1\2"), kind=9)
    yield "long_varint", tensor(part(7, b"\xff" * 11), kind=7)
    yield "strings", tensor(part(6, "one"), kind=8)
    yield "segment", tensor(EIGHT, part(3, number(1, 0), number(2, 2)))
    yield "tensor_name", tensor(EIGHT, name="a\nb")
    yield "unnamed", tensor(EIGHT, name="")
    yield "twice", tensor(EIGHT) + tensor(EIGHT)
    external = lambda location, *more: tensor(entry("location", location), *more, number(14, 1))
    yield "external_above", external("../m.data")
    yield "external_path", external("/etc/passwd")
    yield "external_nowhere", external("")
    yield "external_offset", external("m.data", entry("offset", "18446744073709551615"))
    yield "external_number", external("m.data", entry("offset", "-1"))
    yield "external_overflow", external("m.data", entry("offset", "18446744073709551616"))
    yield "external_length", external("m.data", entry("length", "7"))
    yield "external_end", external("m.data", entry("offset", "1000"))
    yield "external_and_raw", tensor(EIGHT, entry("location", "m.data"), number(14, 1))


def bad():
    whole = lstm()
    yield "cut", whole[:-200]
    yield "cut_in_graph", whole[:400]
    for name, fields in bad_tensors():
        yield name, model(fields)
    yield "two_graphs", model() + part(7, b"")
    yield "no_graph", number(1, 8) + part(8, number(2, 14))
    yield "two_opsets", model() + part(8, number(2, 15))
    yield "wire_type", model(b"\x0f")
    yield "long_length", model(varint(10) + varint((1 << 63) + 5))
    yield "node_without_operator", model(part(1, part(1, "a")))
    yield "output_twice", model(node() + node())
    yield "output_of_initializer", model(tensor(EIGHT, name="b") + node())
    yield "attribute_without_name", model(node(part(5, number(3, 1))))
    yield "attribute_twice", model(node(part(5, part(1, "k"), number(3, 1)), part(5, part(1, "k"), number(3, 1))))
    yield "attribute_of_two_kinds", model(node(part(5, part(1, "k"), number(3, 1), part(4, "s"))))
    yield "node_name", model(node(part(3, "\x1b[2J")))
    yield "input_without_name", model(part(11, b""))
    deep = b""
    for _ in range(40):
        deep = part(1, part(4, "If"), part(5, part(1, "b"), part(6, deep)))
    yield "deep", model(deep)


def main():
    CORPUS.mkdir(parents=True, exist_ok=True)
    for kind, files in (("good", good()), ("bad", bad())):
        for name, data in files:
            (CORPUS / f"{kind}_{name}").write_bytes(data)


if __name__ == "__main__":
    main()
