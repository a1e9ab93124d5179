"""ONNX graphs, node for node, from the weights of PyTorch's modules."""
import onnx
from onnx import TensorProto, helper, numpy_helper

import numpy as np

IOFC = [0, 3, 1, 2]  # of PyTorch's blocks i f g o, in ONNX


class Graph:
    """Collects nodes and weights; `node` gives the name of its output."""

    def __init__(self):
        self.nodes, self.weights = [], {}

    def weight(self, name, value):
        self.weights[name] = np.asarray(value)
        return name

    def floats(self, name, tensor):
        return self.weight(name, tensor.detach().numpy().astype("float32"))

    def integers(self, *values):
        return self.weight("integers_" + "_".join(map(str, values)), np.array(values, np.int64))

    def node(self, op, *inputs, outputs=None, **attributes):
        outputs = outputs or [f"{op}_{len(self.nodes)}"]
        self.nodes.append(helper.make_node(op, inputs, outputs, name=f"/{outputs[0]}", **attributes))
        return outputs[0]

    def unsqueeze(self, x, *axes):
        return self.node("Unsqueeze", x, self.integers(*axes))

    def squeeze(self, x, *axes, **more):
        return self.node("Squeeze", x, self.integers(*axes), **more)

    def cut(self, x, start, end, axis):
        return self.node("Slice", x, *map(self.integers, (start, end, axis)))

    def lstm(self, name, module, x, h, c):
        """x [T, B, I]; the states [1, B, U]. Gives y [T, B, U] and both states."""
        parts = [p.detach().numpy().astype("float32") for p in module.parameters()]
        w, r, b1, b2 = (np.concatenate([np.split(p, 4)[k] for k in IOFC])[None] for p in parts)
        names = [self.weight(f"{name}.{key}", value)
                 for key, value in [("W", w), ("R", r), ("B", np.concatenate([b1, b2], axis=1))]]
        outputs = [f"{name}_{key}" for key in ("Y", "Y_h", "Y_c")]
        self.node("LSTM", x, *names, "", h, c, outputs=outputs, hidden_size=module.hidden_size)
        return self.squeeze(outputs[0], 1), *outputs[1:]

    def save(self, path, inputs, outputs):
        """Inputs and outputs: their shapes by name."""
        infos = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
                  for name, shape in given.items()] for given in (inputs, outputs)]
        tensors = [numpy_helper.from_array(value, name) for name, value in self.weights.items()]
        graph = helper.make_graph(self.nodes, path.stem, *infos, tensors)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8,
                                  producer_name="OpenRNN examples")
        onnx.checker.check_model(model, full_check=True)
        onnx.save(model, path)
        print(f"{path.name}: {path.stat().st_size} bytes")
