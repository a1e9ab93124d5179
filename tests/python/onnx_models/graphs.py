"""Graphs in the form in which PyTorch and tf2onnx export recurrent models, with random weights."""

import numpy as np

from onnx import TensorProto, helper, numpy_helper

ORDER = {"LSTM": [0, 3, 1, 2], "GRU": [1, 0, 2], "RNN": [0]}  # of PyTorch's blocks, in ONNX
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


class Builder:
    """Collects nodes and weights; `node` gives the name of the only output."""

    def __init__(self, seed=0, opset=14):
        self.nodes, self.weights, self.opset = [], {}, opset
        self.random = np.random.default_rng(seed)

    def draw(self, *shape):
        return self.random.uniform(-0.7, 0.7, shape).astype(np.float32)

    def weight(self, name, array):
        self.weights[name] = np.asarray(array)
        return name

    def integers(self, *values):
        return self.weight(f"integers_{len(self.weights)}", np.array(values, np.int64))

    def node(self, op, *inputs, outputs=None, **attributes):
        outputs = outputs or [f"{op}_{len(self.nodes)}"]
        self.nodes.append(helper.make_node(op, inputs, outputs, name=f"/{outputs[0]}", **attributes))
        return outputs[0]

    def axes(self, op, x, *axes):
        """Squeeze or Unsqueeze, whose axes were an attribute."""
        return self.node(op, x, axes=list(axes)) if self.opset < 13 else self.node(op, x, self.integers(*axes))

    def model(self, inputs, outputs):
        """Inputs as (name, dtype, shape); the outputs by name, float32."""
        kinds = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64, "int32": TensorProto.INT32}
        graph = helper.make_graph(
            self.nodes, "graph",
            [helper.make_tensor_value_info(name, kinds[kind], shape) for name, kind, shape in inputs],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
            [numpy_helper.from_array(array, name) for name, array in self.weights.items()],
        )  # fmt: skip
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        made.ir_version = 7
        return made


def torch_parameters(build, op, units, width, dirs):
    """weight_ih, weight_hh, bias_ih, bias_hh of each direction, in PyTorch's order of gates."""
    rows = GATES[op] * units
    return [[build.draw(rows, width), build.draw(rows, units), build.draw(rows), build.draw(rows)] for _ in range(dirs)]


def as_onnx(op, parameters):
    """W, R and B of them."""
    moved = lambda a: np.concatenate([np.split(a, GATES[op])[k] for k in ORDER[op]])
    stacked = [np.stack([moved(each[i]) for each in parameters]) for i in range(4)]
    return stacked[0], stacked[1], np.concatenate(stacked[2:], axis=1)


def opaque(layers):
    """The parameters of all layers as the opaque buffer: all weights, then all biases."""
    flat = lambda picked: [a.ravel() for layer in layers for each in layer for a in each[picked]]
    return np.concatenate(flat(slice(0, 2)) + flat(slice(2, 4)))


def torch_module(op="LSTM", layers=2, dirs=2, units=5, width=3, opset=14, batch_first=True):
    """nn.LSTM and its sisters without h0, then a linear layer of the last step and log_softmax; and the parameters."""
    build = Builder(opset=opset)
    x = build.node("Transpose", "input", perm=[1, 0, 2]) if batch_first else "input"
    # Zeros of the batch's size, as the exporter makes them.
    batch = build.node("Gather", build.node("Shape", x), build.weight("one", np.int64(1)), axis=0)
    shape = build.node("Concat", build.integers(layers * dirs), build.axes("Unsqueeze", batch, 0),
                       build.integers(units), axis=0)
    zeros = build.node("ConstantOfShape", shape, value=numpy_helper.from_array(np.zeros(1, np.float32)))
    parameters, states = [], []
    for layer in range(layers):
        parameters.append(torch_parameters(build, op, units, width, dirs))
        names = [build.weight(f"onnx::{op}_{layer}_{n}", a) for n, a in zip("WRB", as_onnx(op, parameters[-1]))]
        cut = lambda: build.node("Slice", zeros, build.integers(layer * dirs), build.integers((layer + 1) * dirs),
                                 build.integers(0))
        more = [cut()] if op == "LSTM" else []
        outputs = [f"{op}_{layer}_{n}" for n in ("Y", "h", "c")][: 2 + (op == "LSTM")]
        attributes = {"direction": "bidirectional"} if dirs == 2 else {}
        attributes |= {"linear_before_reset": 1} if op == "GRU" else {}
        y = build.node(op, x, *names, "", cut(), *more, outputs=outputs, hidden_size=units, **attributes)
        if dirs == 1:
            x = build.axes("Squeeze", y, 1)
        else:
            x = build.node("Reshape", build.node("Transpose", y, perm=[0, 2, 1, 3]), build.integers(0, 0, -1))
        states.append(outputs[1])
        width = dirs * units
    if batch_first:
        x = build.node("Transpose", x, perm=[1, 0, 2])
    last = build.node("Gather", x, build.weight("last", np.int64(-1)), axis=1 if batch_first else 0)
    logits = build.node("Gemm", last, build.weight("fc.weight", build.draw(7, dirs * units)),
                        build.weight("fc.bias", build.draw(7)), alpha=1.0, beta=1.0, transB=1)
    build.node("LogSoftmax", logits, axis=1 if opset < 13 else -1, outputs=["scores"])
    build.node("Concat", *states, axis=0, outputs=["hn"])
    return build.model([("input", "float32", ["a", "b", 3])], ["scores", "hn"]), parameters


def torch_cell(op="LSTM", units=5, width=3):
    """nn.LSTMCell: parameters in PyTorch's order of gates, cut and joined by nodes; and the parameters."""
    build = Builder()
    (parameters,) = torch_parameters(build, op, units, width, 1)
    names = ["weight_ih", "weight_hh", "bias_ih", "bias_hh"]
    for name, array in zip(names, parameters):
        build.weight(name, array)

    def moved(name):
        cut = lambda k: build.node("Slice", name, build.integers(k * units), build.integers((k + 1) * units),
                                   build.integers(0))
        return build.node("Concat", *map(cut, ORDER[op]), axis=0)

    w, r = (build.axes("Unsqueeze", moved(name), 0) for name in names[:2])
    b = build.axes("Unsqueeze", build.node("Concat", *map(moved, names[2:]), axis=0), 0)
    states = [build.axes("Unsqueeze", name, 0) for name in ["h0", "c0"][: 1 + (op == "LSTM")]]
    outputs = ["Y", "h", "c"][: 2 + (op == "LSTM")]
    attributes = {"linear_before_reset": 1} if op == "GRU" else {}
    build.node(op, build.axes("Unsqueeze", "x", 0), w, r, b, "", *states, outputs=outputs, hidden_size=units,
               **attributes)
    build.node("Identity", build.axes("Squeeze", "h", 0), outputs=["next"])
    inputs = [("x", "float32", ["b", width]), ("h0", "float32", ["b", units]), ("c0", "float32", ["b", units])]
    return build.model(inputs[: 2 + (op == "LSTM")], ["next"]), parameters


def tf2onnx_model(op="LSTM", opset=14, units=5, reverse=False):
    """Embedding, LSTM, TimeDistributed dense and softmax of Keras; and W, R and B."""
    build = Builder(opset=opset)
    x = build.node("Gather", build.weight("embedding", build.draw(11, 4)), "ids", axis=0)
    x = build.node("Transpose", x, perm=[1, 0, 2])
    rows = GATES[op] * units
    arrays = {"W": build.draw(1, rows, 4), "R": build.draw(1, rows, units), "B": build.draw(1, 2 * rows)}
    arrays["B"][:, rows:] = 0.0  # one bias
    names = [build.weight(f"lstm/{name}", array) for name, array in arrays.items()]
    activations = {"LSTM": ["HardSigmoid", "Tanh", "Tanh"], "GRU": ["HardSigmoid", "Tanh"], "RNN": ["Relu"]}[op]
    attributes = {"direction": "reverse"} if reverse else {}
    y = build.node(op, x, *names, outputs=["Y", "Y_h"], hidden_size=units, activations=activations, **attributes)
    y = build.node("Transpose", build.axes("Squeeze", y, 1), perm=[1, 0, 2])
    product = build.node("MatMul", y, build.weight("dense/kernel", build.draw(units, 6)))
    logits = build.node("Add", product, build.weight("dense/bias", build.draw(6)))
    # As tf2onnx keeps a dynamic shape.
    shape = build.node("Cast", build.node("Shape", logits), to=TensorProto.INT64)
    first = build.node("Slice", shape, build.integers(0), build.integers(2), build.integers(0))
    whole = build.node("Concat", first, build.integers(6), axis=0)
    build.node("Softmax", build.node("Reshape", logits, whole), axis=2 if opset < 13 else -1, outputs=["p"])
    return build.model([("ids", "int64", ["b", "t"])], ["p"]), arrays
