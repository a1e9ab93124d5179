"""Each option of each cell, by what it changes: one step of it beside NumPy's."""

import numpy as np
import openrnn
import pytest
from model.numpy_rnn import sigmoid
from openrnn.nn import rnn_cell
from table.support import draw

U, I, B = 3, 2, 2
X = np.array([[0.5, -1.0], [0.25, 2.0]], "float32")
C = np.array([[0.5, -0.25, 1.0], [2.0, 0.125, -1.5]], "float32")
H = np.array([[0.3, 0.6, -0.9], [-0.2, 0.4, 0.8]], "float32")


def filled(cell, *shapes):
    """The cell with weights that differ from one another."""
    cell.build((None, I))
    assert [w.shape for w in cell.weights] == list(shapes)
    cell.set_weights([draw(*shape, seed=n) for n, shape in enumerate(shapes)])
    return [w.numpy().astype("float64") for w in cell.weights]


def lstm(kernel, bias, h=H, forget_bias=1.0, activation=np.tanh, clip=None, peepholes=None):
    """(c, h) of one step."""
    i, j, f, o = np.split(np.concatenate([X, h], 1) @ kernel + bias, 4, 1)
    w_f, w_i, w_o = peepholes or (0.0, 0.0, 0.0)
    c = sigmoid(f + forget_bias + w_f * C) * C + sigmoid(i + w_i * C) * activation(j)
    c = c if clip is None else np.clip(c, -clip, clip)
    return c, sigmoid(o + w_o * c) * activation(c)


def close(found, wanted):
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=2e-6, atol=2e-6)


def relu(x):
    return np.maximum(x, 0.0)


@pytest.mark.parametrize("forget_bias", [0.0, 1.0, 2.5])
@pytest.mark.parametrize(
    "kind",
    [
        rnn_cell.BasicLSTMCell,
        rnn_cell.LSTMCell,
        lambda *a, **kw: rnn_cell.LayerNormBasicLSTMCell(*a, layer_norm=False, **kw),
    ],
)
def test_the_forget_bias(kind, forget_bias):
    cell = kind(U, forget_bias=forget_bias)
    kernel, bias = filled(cell, (I + U, 4 * U), (4 * U,))
    output, (c, h) = cell(X, (C, H))
    wanted = lstm(kernel, bias, forget_bias=forget_bias)
    close(c, wanted[0])
    close(h, wanted[1])
    close(output, wanted[1])


@pytest.mark.parametrize(
    "kind",
    [
        rnn_cell.BasicLSTMCell,
        rnn_cell.LSTMCell,
        lambda *a, **kw: rnn_cell.LayerNormBasicLSTMCell(*a, layer_norm=False, **kw),
    ],
)
def test_the_activation_of_an_lstm(kind):
    cell = kind(U, activation=openrnn.nn.relu)
    kernel, bias = filled(cell, (I + U, 4 * U), (4 * U,))
    _, (c, h) = cell(X, (C, H))
    wanted = lstm(kernel, bias, activation=relu)
    close(c, wanted[0])
    close(h, wanted[1])


def test_clips_peepholes_and_a_projection():
    P = 2
    h = H[:, :P]
    cell = rnn_cell.LSTMCell(U, use_peepholes=True, cell_clip=0.75, num_proj=P, proj_clip=0.125)
    cell.build((None, I))
    for n, weight in enumerate(cell.weights):
        weight.assign(draw(*weight.shape, seed=n))
    named = {w.name.split("lstm_cell/")[1]: w.numpy().astype("float64") for w in cell.weights}
    peepholes = tuple(named[f"w_{gate}_diag"] for gate in "fio")
    wanted_c, inner = lstm(named["kernel"], named["bias"], h=h, clip=0.75, peepholes=peepholes)
    wanted_h = np.clip(inner @ named["projection/kernel"], -0.125, 0.125)
    output, (c, new) = cell(X, (C, h))
    assert np.abs(wanted_c).max() == 0.75 and np.abs(wanted_h).max() == 0.125
    close(c, wanted_c)
    close(new, wanted_h)
    close(output, wanted_h)
    assert (cell.output_size, cell.state_size) == (P, (U, P))


@pytest.mark.parametrize("activation, function", [(None, np.tanh), (openrnn.nn.relu, relu)])
def test_a_gru(activation, function):
    cell = rnn_cell.GRUCell(U, activation=activation)
    gates, gate_bias, kernel, bias = filled(cell, (I + U, 2 * U), (2 * U,), (I + U, U), (U,))
    r, u = np.split(sigmoid(np.concatenate([X, H], 1) @ gates + gate_bias), 2, 1)
    n = function(np.concatenate([X, r * H], 1) @ kernel + bias)
    output, state = cell(X, H)
    close(output, u * H + (1 - u) * n)
    close(state, u * H + (1 - u) * n)


@pytest.mark.parametrize("activation, function", [("tanh", np.tanh), (openrnn.nn.relu, relu)])
def test_a_plain_cell(activation, function):
    cell = rnn_cell.BasicRNNCell(U, activation=activation)
    kernel, bias = filled(cell, (I + U, U), (U,))
    output, state = cell(X, H)
    close(output, function(np.concatenate([X, H], 1) @ kernel + bias))
    np.testing.assert_array_equal(output, state)


def test_layer_norm_begins_with_its_gain_and_its_shift():
    cell = rnn_cell.LayerNormBasicLSTMCell(U, norm_gain=0.5, norm_shift=0.25)
    cell.build((None, I))
    values = {
        w.name.split("/", 1)[1]: set(w.numpy().tolist()) for w in cell.weights if w.shape == (U,)
    }
    kinds = ("input", "transform", "forget", "output", "state")
    assert values == {
        **{f"{kind}/gamma": {0.5} for kind in kinds},
        **{f"{kind}/beta": {0.25} for kind in kinds},
    }


CELLS = [
    rnn_cell.BasicRNNCell,
    rnn_cell.BasicLSTMCell,
    rnn_cell.LSTMCell,
    rnn_cell.GRUCell,
    rnn_cell.LayerNormBasicLSTMCell,
    openrnn.cudnn_rnn.CudnnCompatibleLSTMCell,
    openrnn.cudnn_rnn.CudnnCompatibleGRUCell,
]


@pytest.mark.parametrize("kind", CELLS)
def test_what_every_cell_takes(kind):
    ones = {"initializer" if kind is rnn_cell.LSTMCell else "kernel_initializer": "ones"}
    compatible = kind.__name__.startswith("Cudnn")
    if compatible:
        ones = {}
    cell = kind(U, name="own", dtype="float64", device="cpu", **ones)
    cell.build((None, I))
    assert (cell.name, cell.dtype, cell.device, cell.num_units) == ("own", "float64", "cpu", U)
    kernels = [w for w in cell.weights if w.name.endswith("kernel")]
    assert kernels and all(w.name.startswith("own/") for w in cell.weights)
    assert {str(w.dtype) for w in cell.weights} == {"float64"}
    if not compatible:
        assert all((kernel.numpy() == 1.0).all() for kernel in kernels)
    with openrnn.variable_scope("", reuse=True):
        again = kind(U, name="own", dtype="float64", reuse=True)
        again.build((None, I))
    assert again.weights == cell.weights


def test_initial_biases_of_a_gru():
    cell = rnn_cell.GRUCell(
        U,
        kernel_initializer="zeros",
        bias_initializer=lambda shape, dtype: np.full(shape, 0.5, dtype),
    )
    cell.build((None, I))
    assert [set(w.numpy().ravel().tolist()) for w in cell.weights] == [{0.0}, {0.5}, {0.0}, {0.5}]
    plain = rnn_cell.GRUCell(U, kernel_initializer="ones")
    plain.build((None, I))
    assert [set(w.numpy().ravel().tolist()) for w in plain.weights] == [{1.0}, {1.0}, {1.0}, {0.0}]


def test_sizes_of_wrapped_cells():
    lstm_cell = rnn_cell.LSTMCell(4, num_proj=3)
    both = rnn_cell.MultiRNNCell([rnn_cell.GRUCell(5), lstm_cell])
    assert (lstm_cell.output_size, lstm_cell.state_size) == (3, (4, 3))
    assert (both.output_size, both.state_size) == (3, (5, (4, 3)))
    for cell in (lstm_cell, both):
        wrapped = rnn_cell.DropoutWrapper(cell)
        assert (wrapped.output_size, wrapped.state_size) == (cell.output_size, cell.state_size)
    zeros = both.zero_state(2, "float32")
    assert zeros[0].shape == (2, 5) and [one.shape for one in zeros[1]] == [(2, 4), (2, 3)]


@pytest.mark.parametrize("option", ["input_keep_prob", "output_keep_prob", "state_keep_prob"])
def test_where_a_wrapper_drops(option):
    class Seen(rnn_cell.RNNCell):
        state_size = output_size = 200

        def call(self, inputs, state):
            self.seen = inputs
            return inputs * 0 + 2.0, state * 0 + 3.0

    def step(seed):
        cell = Seen()
        wrapped = rnn_cell.DropoutWrapper(cell, seed=seed, **{option: 0.5})
        ones = np.ones((1, 200), "float32")
        output, state = wrapped(ones, ones)
        return {
            "input_keep_prob": np.asarray(cell.seen),
            "output_keep_prob": np.asarray(output) / 2.0,
            "state_keep_prob": np.asarray(state) / 3.0,
        }

    found = step(7)
    assert set(found.pop(option).ravel().tolist()) == {0.0, 2.0}
    assert all((one == 1.0).all() for one in found.values())
    np.testing.assert_array_equal(step(7)[option], step(7)[option])
    assert (step(7)[option] != step(8)[option]).any()
