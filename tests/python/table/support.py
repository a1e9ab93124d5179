"""What the tables share: the four modes, the two ways to call, data, and an oracle in NumPy.

T time, B batch, I input size, U units, L layers, D directions.
"""

import contextlib
import re
from dataclasses import dataclass

import numpy as np
import openrnn
import pytest
from model import numpy_layout, numpy_rnn

T, B, I, U, L = 5, 3, 4, 2, 2


@dataclass(frozen=True)
class Kind:
    """One mode and the names of its classes."""

    mode: str
    name: str
    snake: str
    suffix: str
    gates: int
    cell: str

    @property
    def layer(self):
        return getattr(openrnn.cudnn_rnn, self.name)

    @property
    def op(self):
        return getattr(openrnn.cudnn_rnn.ops, self.name)

    @property
    def function(self):
        return getattr(openrnn.cudnn_rnn.ops, self.snake)

    @property
    def saveable(self):
        return getattr(openrnn.cudnn_rnn, self.name + "Saveable")

    @property
    def converter(self):
        return getattr(openrnn.cudnn_rnn, "CudnnParamsFormatConverter" + self.suffix)

    @property
    def num_states(self):
        return 2 if self.mode == "lstm" else 1


KINDS = [
    Kind("lstm", "CudnnLSTM", "cudnn_lstm", "LSTM", 4, "cudnn_compatible_lstm_cell"),
    Kind("gru", "CudnnGRU", "cudnn_gru", "GRU", 3, "cudnn_compatible_gru_cell"),
    Kind("rnn_tanh", "CudnnRNNTanh", "cudnn_rnn_tanh", "Tanh", 1, "basic_rnn_cell"),
    Kind("rnn_relu", "CudnnRNNRelu", "cudnn_rnn_relu", "Relu", 1, "basic_rnn_cell"),
]
LSTM, GRU, TANH, RELU = KINDS


def per_kind(rows_of, ids_of=lambda row: row):
    """Parametrises (kind, row) over the rows that each kind has."""
    found = [(one, row) for one in KINDS for row in rows_of(one)]
    names = [f"{one.mode}-{ids_of(row)}" for one, row in found]
    return pytest.mark.parametrize("kind, row", found, ids=names)


def draw(*shape, seed=0, dtype="float32", low=-1.0, high=1.0):
    """Non-uniform numbers that depend on seed and shape alone."""
    return np.random.default_rng([seed, *shape]).uniform(low, high, shape).astype(dtype)


def make_spec(kind, direction="unidirectional", input_mode="linear_input", **sizes):
    found = {"num_layers": L, "num_units": U, "input_size": I, "num_proj": 0, **sizes}
    return numpy_layout.Spec(kind.mode, input_mode=input_mode, direction=direction, **found)


def make_states(spec, batch=B, seed=7, dtype="float32"):
    """(h0, c0) for lstm, (h0,) else; [L * D, batch, width]."""
    h0 = draw(spec.num_pseudo, batch, spec.state_width, seed=seed, dtype=dtype)
    c0 = draw(spec.num_pseudo, batch, spec.num_units, seed=seed + 1, dtype=dtype)
    return (h0, c0) if spec.mode == "lstm" else (h0,)


def oracle(spec, params, x, states=None, lengths=None):
    """(output, states) in float64, time-major."""
    given = [None, None] if states is None else [np.asarray(s, np.float64) for s in states]
    output, h, c, _ = numpy_rnn.forward(
        spec, np.asarray(params, np.float64), np.asarray(x, np.float64), *given, lengths=lengths
    )
    return output, (h,) if c is None else (h, c)


def array(value):
    """What the tests compare: a NumPy array of a Tensor, Variable or array."""
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)


def assert_close(found, wanted, tolerance=2e-6):
    """Values of a few small layers in float32: sums of at most 26 products, of which the absolute
    error is that of their largest term."""
    found, wanted = array(found), array(wanted)
    assert found.shape == wanted.shape
    largest = np.max(np.abs(wanted), initial=1.0)
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * largest)


def make_layer(kind, direction="unidirectional", values=11, dtype="float32", **kw):
    """A built layer whose parameters, biases too, differ from one another; `values` is their seed.
    Those of relu are mostly positive, so that its units live."""
    sizes = {"num_layers": L, "num_units": U, "input_size": I, **kw.pop("sizes", {})}
    layer = kind.layer(
        sizes["num_layers"], sizes["num_units"], direction=direction, dtype=dtype, **kw
    )
    layer.build((None, None, sizes["input_size"]))
    low = -0.25 if kind.mode == "rnn_relu" else -1.0
    layer.set_weights([draw(layer.count_params(), seed=values, dtype=dtype, low=low)])
    return layer


class EagerCaller:
    """Arrays go into the layer itself."""

    name = "eager"

    def __call__(self, layer, x, initial_state=None, **kw):
        if initial_state is not None:
            kw["initial_state"] = tuple(initial_state)
        output, states = layer(x, **kw)
        assert type(states) is tuple
        return array(output), tuple(array(state) for state in states)

    def tensor(self, value):
        """Something to call a layer with: here the values themselves."""
        return openrnn.constant(value)


class SymbolicCaller:
    """The layer is called on Inputs, a Model runs what was recorded on arrays."""

    name = "symbolic"

    def __call__(self, layer, x, initial_state=None, **kw):
        arrays = [x, *(initial_state or ())]
        inputs = [self.tensor(value) for value in arrays]
        if initial_state is not None:
            kw["initial_state"] = tuple(inputs[1:])
        output, states = layer(inputs[0], **kw)
        assert output.is_symbolic and type(states) is tuple
        model = openrnn.Model(inputs, [output, *states])
        found = [array(value) for value in model(arrays)]
        return found[0], tuple(found[1:])

    def tensor(self, value):
        value = np.asarray(value)
        return openrnn.Input(batch_shape=value.shape, dtype=str(value.dtype))


def error_text(error, function, *args, **kw):
    """The message of the exception of exactly this family that the call raises."""
    with pytest.raises(error) as caught:
        function(*args, **kw)
    return str(caught.value)


def assert_names(message, *parts):
    """The message holds every part (a regular expression), whatever the case."""
    missing = [p for p in parts if not re.search(str(p), message, re.IGNORECASE)]
    assert not missing, f"{missing} not in: {message}"


def graph_state():
    """Everything of the default graph that a failed call must leave alone."""
    keys = ("GLOBAL_VARIABLES", "TRAINABLE_VARIABLES", "SAVEABLE_OBJECTS",
            "REGULARIZATION_LOSSES", "UPDATE_OPS")  # fmt: skip
    sizes = {key: len(openrnn.get_collection(getattr(openrnn.GraphKeys, key))) for key in keys}
    variables = {v.name: (v.version, array(v.read_value()).tobytes())
                 for v in openrnn.global_variables()}  # fmt: skip
    return sizes, variables, openrnn.get_variable_scope().name


def layer_state(layer):
    """The same for one layer."""
    connected = (len(layer.inbound_nodes), len(layer.outbound_nodes))
    values = [value.tobytes() for value in layer.get_weights()] if layer.built else None
    names = [v.name for v in layer.variables]
    saveable = getattr(layer, "saveable", None)
    saveable = None if saveable is None else saveable.name
    return layer.built, names, values, connected, saveable, layer.name, layer.dtype


@contextlib.contextmanager
def nothing_changes(*layers):
    """The block, which should catch an error, leaves the graph and the layers as they were."""
    before = graph_state(), [layer_state(layer) for layer in layers]
    yield
    assert (graph_state(), [layer_state(layer) for layer in layers]) == before
