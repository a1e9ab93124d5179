"""torch.nn's recurrent modules without their arithmetic: what they compute is a record of the call."""

from typing import NamedTuple

import numpy as np
from numpy_torch.tensors import Parameter, Tensor, seen


class Own(NamedTuple):
    """A call that went to PyTorch's own forward."""

    kind: str
    module: object
    input: object
    hx: object


class PackedSequence(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor = None
    unsorted_indices: Tensor = None


class Module:
    def __init__(self):
        self.__dict__.update(_parameters={}, _modules={}, training=True)

    def __setattr__(self, name, value):
        for table, kind in ((self._parameters, Parameter), (self._modules, Module)):
            if isinstance(value, kind):
                table[name] = value
                return
        object.__setattr__(self, name, value)

    def __getattr__(self, name):
        for table in ("_parameters", "_modules"):
            if name in self.__dict__.get(table, {}):
                return self.__dict__[table][name]
        raise AttributeError(name)

    def __delattr__(self, name):
        if self._parameters.pop(name, None) is None:
            object.__delattr__(self, name)

    def register_parameter(self, name, value):
        self._parameters[name] = value

    def named_parameters(self):
        return self._parameters.items()

    def named_modules(self, prefix=""):
        yield prefix, self
        for name, module in self._modules.items():
            yield from module.named_modules(f"{prefix}.{name}" if prefix else name)

    def modules(self):
        return (module for _, module in self.named_modules())

    def __call__(self, *args):
        return self.forward(*args)

    def train(self, mode=True):
        for module in self.modules():
            module.training = mode
        return self

    def eval(self):
        return self.train(False)

    def _apply(self, fn, recurse=True):
        for module in self._modules.values() if recurse else ():
            module._apply(fn)
        for name, parameter in self._parameters.items():
            self._parameters[name] = Parameter(fn(parameter))
        return self

    def to(self, dtype):
        return self._apply(lambda parameter: parameter.to(dtype))

    def _load_from_state_dict(self, state):
        for name, parameter in self._parameters.items():
            parameter.array[...] = state[name].array

    def load_state_dict(self, state):
        self._load_from_state_dict(state)

    def __setstate__(self, state):
        self.__dict__.update(state)

    def _replicate_for_data_parallel(self):
        replica = self.__new__(type(self))
        replica.__dict__.update(self.__dict__)
        return replica

    def extra_repr(self):
        return "what PyTorch says"


class Sequential(Module):
    def __init__(self, *modules):
        super().__init__()
        for place, module in enumerate(modules):
            setattr(self, str(place), module)

    def __getitem__(self, place):
        return self._modules[str(place)]


def drawn(*shape, dtype=None):
    made = np.random.default_rng(seen.draws).normal(size=shape)
    seen.draws += 1
    return Parameter(Tensor(made.astype("float32" if dtype is None else dtype.numpy)))


seen.draws = 0
GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class RNNBase(Module):
    def __init__(
        self, mode, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
        bidirectional=False, proj_size=0, device=None, dtype=None,
    ):  # fmt: skip
        super().__init__()
        self.made_with = device, dtype
        self.mode, self.input_size, self.hidden_size = mode, input_size, hidden_size
        self.num_layers, self.bias, self.batch_first = num_layers, bias, batch_first
        self.dropout, self.bidirectional, self.proj_size = dropout, bidirectional, proj_size
        ends, rows = ("", "_reverse")[: 1 + bidirectional], GATES[mode] * hidden_size
        out = proj_size or hidden_size
        for layer in range(num_layers):
            width = out * len(ends) if layer else input_size
            for end in ends:
                shapes = {"weight_ih": (rows, width), "weight_hh": (rows, out)}
                shapes.update({"bias_ih": (rows,), "bias_hh": (rows,)} if bias else {})
                shapes.update({"weight_hr": (proj_size, hidden_size)} if proj_size else {})
                for name, shape in shapes.items():
                    self._parameters[f"{name}_l{layer}{end}"] = drawn(*shape, dtype=dtype)
        self._flat_weights_names = list(self._parameters)
        self._init_flat_weights()

    def _init_flat_weights(self):
        self._flat_weights = [getattr(self, name) for name in self._flat_weights_names]

    def forward(self, input, hx=None):
        return Own("forward", self, input, hx)

    def check_forward_args(self, *args):
        raise TypeError("base", args)

    def permute_hidden(self, *args):
        return "base", "permute", args


class LSTM(RNNBase):
    def __init__(self, *args, **kwargs):
        super().__init__("LSTM", *args, **kwargs)

    def check_forward_args(self, *args):
        raise TypeError("LSTM", args)

    def permute_hidden(self, *args):
        return "LSTM", "permute", args

    def get_expected_cell_size(self, *args):
        return "LSTM", "cell", args

    def forward(self, input, hx=None):
        return Own("LSTM", self, input, hx)


class GRU(RNNBase):
    def __init__(self, *args, **kwargs):
        super().__init__("GRU", *args, **kwargs)

    def forward(self, input, hx=None):
        return Own("GRU", self, input, hx)


class RNN(RNNBase):
    def __init__(self, *args, nonlinearity="tanh", **kwargs):
        super().__init__("RNN_" + nonlinearity.upper(), *args, **kwargs)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):
        return Own("RNN", self, input, hx)


class CellBase(Module):
    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh"):
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        self.nonlinearity = nonlinearity
        rows = self.gates * hidden_size
        self.weight_ih, self.weight_hh = drawn(rows, input_size), drawn(rows, hidden_size)
        for name in ("bias_ih", "bias_hh"):
            self._parameters[name] = drawn(rows) if bias else None


class LSTMCell(CellBase):
    gates = 4

    def forward(self, input, hx=None):
        return Own("LSTMCell", self, input, hx)


class GRUCell(CellBase):
    gates = 3

    def forward(self, input, hx=None):
        return Own("GRUCell", self, input, hx)


class RNNCell(CellBase):
    gates = 1

    def forward(self, input, hx=None):
        return Own("RNNCell", self, input, hx)


def _sigmoid(a):
    return 1 / (1 + np.exp(-a))


def _products(x, h, weights):
    ih, hh, *biases = [None if each is None else each.numpy() for each in weights]
    biases = [0 if each is None else each for each in biases]
    return x.numpy() @ ih.T + biases[0], h.numpy() @ hh.T + biases[1]


def _lstm_step(x, states, *weights):
    i, f, g, o = np.split(sum(_products(x, states[0], weights)), 4, 1)
    c = _sigmoid(f) * states[1].numpy() + _sigmoid(i) * np.tanh(g)
    return Tensor(_sigmoid(o) * np.tanh(c)), Tensor(c)


def _gru_step(x, h, *weights):
    (a, b, n), (p, q, m) = (np.split(each, 3, 1) for each in _products(x, h, weights))
    z = _sigmoid(b + q)
    return Tensor((1 - z) * np.tanh(n + _sigmoid(a + p) * m) + z * h.numpy())


STEPS = {
    "LSTM": _lstm_step, "GRU": _gru_step,
    "RNN_TANH": lambda x, h, *weights: Tensor(np.tanh(sum(_products(x, h, weights)))),
    "RNN_RELU": lambda x, h, *weights: Tensor(np.maximum(sum(_products(x, h, weights)), 0)),
}  # fmt: skip
