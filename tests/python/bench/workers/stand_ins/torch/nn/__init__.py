"""Recurrent modules, an embedding and a dense layer."""

import numpy as np
import torch
from small_autograd import Tensor, joined, sigmoid, stacked, tanh
from torch.nn import functional, utils
from torch.nn.utils.rnn import Packed

__all__ = ["GRU", "LSTM", "RNN", "Embedding", "Linear", "Module", "functional", "utils"]
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


class Module:
    def __init__(self):
        self.training, self.held = True, {}

    def named_parameters(self):
        return list(self.held.items())

    def parameters(self):
        return list(self.held.values())

    def load_state_dict(self, state):
        assert state.keys() == self.held.keys()
        for name, value in state.items():
            assert self.held[name].shape == value.shape, name
            self.held[name].data = value.data.copy()

    def add(self, name, *shape):
        self.held[name] = Tensor(np.full(shape, np.nan, "float32")).requires_grad_()

    def to(self, dtype):
        for each in self.held.values():
            each.to(dtype)

    def train(self, training):
        assert isinstance(training, bool)
        self.training = training

    def zero_grad(self, set_to_none):
        assert set_to_none
        for each in self.held.values():
            each.grad = None

    def __call__(self, *given):
        return self.forward(*given)


class Recurrent(Module):
    def __init__(self, inputs, units, layers, bidirectional=False):
        super().__init__()
        self.units, self.layers, self.ways = units, layers, ["", "_reverse"][: 1 + bidirectional]
        rows = GATES[type(self).__name__] * units
        for layer in range(layers):
            for way in self.ways:
                width = inputs if layer == 0 else len(self.ways) * units
                for side, size in (("ih", width), ("hh", units)):
                    self.add(f"weight_{side}_l{layer}{way}", rows, size)
                for side in ("ih", "hh"):
                    self.add(f"bias_{side}_l{layer}{way}", rows)

    def step(self, x, h, c, end):
        a = x @ self.held[f"weight_ih_{end}"].t() + self.held[f"bias_ih_{end}"]
        b = h @ self.held[f"weight_hh_{end}"].t() + self.held[f"bias_hh_{end}"]
        kind = type(self).__name__
        if kind == "RNN":
            return tanh(a + b), c
        if kind == "GRU":
            (r, z, n), (hr, hz, hn) = a.parts(3, 1), b.parts(3, 1)
            z, n = sigmoid(z + hz), tanh(n + sigmoid(r + hr) * hn)
            return (1.0 - z) * n + z * h, c
        i, f, g, o = (a + b).parts(4, 1)
        c = sigmoid(f) * c + sigmoid(i) * tanh(g)
        return sigmoid(o) * tanh(c), c

    def walk(self, x, valid, way, end, h, c):
        outputs, order = {}, range(x.shape[0])
        for t in reversed(order) if way else order:
            new, cell = self.step(x[t], h, c, end)
            on, off = Tensor(valid[t]), Tensor(1 - valid[t])
            h, c = on * new + off * h, on * cell + off * c
            outputs[t] = on * new
        return stacked([outputs[t] for t in order]), h, c

    def forward(self, given, state=None):
        one_dnn = torch.flags["onednn"] and type(self).__name__ == "LSTM"
        torch.used.update(["aten::mkldnn_rnn_layer"] if one_dnn else ["aten::mm", "aten::addmm"])
        x, lengths = (given.data, given.lengths) if isinstance(given, Packed) else (given, None)
        time, batch = x.shape[:2]
        valid = np.ones((time, batch, 1), "float32")
        if lengths is not None:
            valid = (np.arange(time)[:, None] < lengths)[..., None].astype("float32")
        last, count = [], self.layers * len(self.ways)
        if state is None:
            state = Tensor(np.zeros((count, batch, self.units), "float32"))
        first = state if isinstance(state, tuple) else (state, state)
        for layer in range(self.layers):
            sides = []
            for way in self.ways:
                h, c = (each[len(last)] for each in first)
                y, h, c = self.walk(x, valid, way, f"l{layer}{way}", h, c)
                sides.append(y)
                last.append((h, c))
            x = joined(sides, 2)
        h, c = (stacked([pair[n] for pair in last]) for n in range(2))
        y = x if lengths is None else Packed(x, lengths)
        return y, (h, c) if type(self).__name__ == "LSTM" else h


class LSTM(Recurrent):
    pass


class GRU(Recurrent):
    pass


class RNN(Recurrent):
    pass


class Embedding(Module):
    @classmethod
    def from_pretrained(cls, values, freeze):
        assert freeze is False
        made = cls()
        made.add("weight", *values.shape)
        made.load_state_dict({"weight": values})
        return made

    def forward(self, ids):
        table = self.held["weight"]

        def back(gradient):
            made = np.zeros(table.shape)
            np.add.at(made, ids.data, gradient)
            return made

        return Tensor(table.data[ids.data], (table, back))


class Linear(Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.add("weight", outputs, inputs)
        self.add("bias", outputs)

    def forward(self, x):
        return functional.linear(x, self.held["weight"], self.held["bias"])
