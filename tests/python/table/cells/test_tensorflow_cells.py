"""The cells of TensorFlow 1 among the others: states, wrappers, copies, symbolic inputs, errors."""

import copy
import pickle

import numpy as np
import openrnn
import pytest
from openrnn import nn

rnn_cell = nn.rnn_cell
X = np.random.default_rng(4).normal(size=(3, 6, 2)).astype("float32")
MAKERS = {
    "basic_lstm": lambda **kw: rnn_cell.BasicLSTMCell(5, **kw),
    "joined": lambda **kw: rnn_cell.BasicLSTMCell(5, state_is_tuple=False, **kw),
    "lstm": lambda **kw: rnn_cell.LSTMCell(
        5, use_peepholes=True, cell_clip=0.3, num_proj=4, proj_clip=0.2, **kw),
    "gru": lambda **kw: rnn_cell.GRUCell(5, **kw),
    "layer_norm": lambda **kw: rnn_cell.LayerNormBasicLSTMCell(5, **kw),
}  # fmt: skip


def run(cell, x=X):
    return nn.dynamic_rnn(cell, x, [6, 0, 4], dtype="float32")


def arrays(state):
    return [a for one in state for a in arrays(one)] if isinstance(state, tuple) else [
        np.asarray(state)]  # fmt: skip


def test_states():
    joined = rnn_cell.LSTMCell(5, num_proj=3, state_is_tuple=False)
    apart = rnn_cell.LSTMCell(5, num_proj=3)
    assert joined.state_size == 8 and joined.output_size == 3
    assert apart.state_size == rnn_cell.LSTMStateTuple(5, 3)
    assert joined.zero_state(2, "float32").shape == (2, 8)
    with openrnn.variable_scope("a"):
        output, state = joined(X[:, 0], joined.zero_state(3, "float32"))
    assert state.shape == (3, 8) and output.shape == (3, 3)
    np.testing.assert_array_equal(np.asarray(state)[:, 5:], output)
    apart.build((None, 2))
    apart.set_weights(joined.get_weights())
    given = np.random.default_rng(5).normal(size=(3, 8)).astype("float32")
    wanted, (c, h) = apart(X[:, 1], (given[:, :5], given[:, 5:]))
    output, state = joined(X[:, 1], given)
    np.testing.assert_array_equal(output, wanted)
    np.testing.assert_array_equal(state, np.concatenate([c, h], axis=1))
    with pytest.raises(ValueError, match="the state is a tuple of 2, expected one tensor"):
        joined(X[:, 0], (c, h))
    with pytest.raises(ValueError, match=r"the state has shape \(3, 5\), expected \[batch, 8\]"):
        joined(X[:, 0], c)
    with pytest.raises(ValueError, match="expected length 2"):
        apart(X[:, 0], given)


def test_a_variable_as_joined_state_gets_its_gradient():
    joined = rnn_cell.BasicLSTMCell(5, state_is_tuple=False)
    first = openrnn.Variable(np.random.default_rng(6).normal(size=(3, 10)).astype("float32"))
    with openrnn.GradientTape() as tape:
        output, _ = joined(X[:, 0], first)
    of_variable = np.asarray(tape.gradient(output, [first])[0])
    with openrnn.GradientTape() as tape:
        tensor = openrnn.convert_to_tensor(first.numpy())
        tape.watch(tensor)
        output, _ = joined(X[:, 0], tensor)
    np.testing.assert_array_equal(of_variable, tape.gradient(output, [tensor])[0])
    assert np.abs(of_variable).min() > 0


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_clip_of_large_values(dtype):
    """The cell's sum is c times the forget gate: far above every precision of the bound."""
    cell = rnn_cell.LSTMCell(3, cell_clip=0.5, forget_bias=20.0, dtype=dtype, name="clipped")
    c = np.array([[6e4, -6e4, 0.25], [1e4, -np.inf, np.inf]], dtype)
    if dtype != "float16":
        c[0] *= 1e6
    _, (clipped, h) = cell(np.zeros((2, 2), dtype), (c, np.zeros((2, 3), dtype)))
    clipped = clipped.numpy()
    np.testing.assert_array_equal(clipped[1], np.array([0.5, -0.5, 0.5], dtype))
    np.testing.assert_array_equal(clipped[0, :2], np.array([0.5, -0.5], dtype))
    assert np.isfinite(h.numpy()).all()


@pytest.mark.parametrize("kind", MAKERS)
def test_copies_reuse_and_subclasses(kind):
    cell = MAKERS[kind](name="one")
    outputs, state = run(cell)
    with openrnn.variable_scope("rnn", reuse=True):
        pass
    for made in (copy.copy(cell), copy.deepcopy(cell), pickle.loads(pickle.dumps(cell))):
        assert type(made) is type(cell)
        again, last = run(made)
        np.testing.assert_array_equal(again, outputs)
        for one, other in zip(arrays(last), arrays(state), strict=True):
            np.testing.assert_array_equal(one, other)
    reusing = MAKERS[kind](name="one", reuse=True)
    np.testing.assert_array_equal(run(reusing)[0], outputs)

    class Negated(type(cell)):
        def call(self, inputs, state):
            output, state = super().call(inputs, state)
            return openrnn.negative(output), state

    config = {**cell.get_config(), "name": "one", "reuse": True}
    # A subclass is called at every step, where the class itself is one call of the engine.
    negated = run(Negated.from_config(config))[0]
    np.testing.assert_allclose(negated, -np.asarray(outputs), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", MAKERS)
def test_on_symbolic_inputs(kind):
    cell = MAKERS[kind](name=f"symbolic_{kind}")
    given = openrnn.Input(batch_shape=(3, 6, 2))
    outputs, state = nn.dynamic_rnn(cell, given, [6, 0, 4], dtype="float32")
    model = openrnn.Model(given, [outputs, *([state] if not isinstance(state, tuple) else state)])
    wanted, last = run(cell)
    found = model(X)
    np.testing.assert_array_equal(found[0], wanted)
    for one, other in zip(found[1:], arrays(last), strict=True):
        np.testing.assert_array_equal(one, other)


def test_dropout_leaves_the_memory_alone():
    cell = rnn_cell.LSTMCell(40, name="dropped")
    dropped = rnn_cell.DropoutWrapper(cell, state_keep_prob=0.5, seed=3)
    zeros = cell.zero_state(3, "float32")
    _, plain = cell(X[:, 0], zeros)
    _, state = dropped(X[:, 0], zeros)
    np.testing.assert_array_equal(state.c, plain.c)
    assert 0.3 < (np.asarray(state.h) == 0).mean() < 0.7


def test_what_is_refused():
    with pytest.raises(NotImplementedError, match="num_proj_shards is 2, expected None"):
        rnn_cell.LSTMCell(3, num_proj_shards=2)
    with pytest.raises(ValueError, match=r"\[GRUCell\] activation is 'tan', expected \['linear'"):
        rnn_cell.GRUCell(3, activation="tan")
    with pytest.raises(ValueError, match=r"\[LSTMCell\] cell_clip -1, expected 0 or more"):
        rnn_cell.LSTMCell(3, cell_clip=-1.0)
    with pytest.raises(TypeError, match=r"\[static_rnn\] inputs is a ndarray, expected a list"):
        nn.static_rnn(rnn_cell.GRUCell(3), X)
    with pytest.raises(ValueError, match=r"\[static_rnn\] no inputs"):
        nn.static_rnn(rnn_cell.GRUCell(3), [], dtype="float32")
    with pytest.raises(TypeError, match=r"\[bidirectional_dynamic_rnn\] cell_bw is a int"):
        nn.bidirectional_dynamic_rnn(rnn_cell.GRUCell(3), 3, X)
    with pytest.raises(ValueError, match="neither an initial state nor a dtype"):
        nn.bidirectional_dynamic_rnn(rnn_cell.GRUCell(3), rnn_cell.GRUCell(3), X)


def test_an_activation_of_ones_own():
    doubled = rnn_cell.GRUCell(4, activation=lambda a: openrnn.tanh(2.0 * a), name="doubled")
    plain = rnn_cell.GRUCell(4, name="plain")
    zeros = plain.zero_state(3, "float32")
    doubled(X[:, 0], zeros), plain(X[:, 0], zeros)
    weights = doubled.get_weights()
    plain.set_weights([*weights[:2], 2 * weights[2], 2 * weights[3]])
    np.testing.assert_allclose(doubled(X[:, 0], zeros)[0], plain(X[:, 0], zeros)[0], atol=1e-6)


def test_layer_norm_drops_its_share_by_its_seed():
    def dropped(seed):
        with openrnn.Graph().as_default():
            cell = rnn_cell.LayerNormBasicLSTMCell(
                64, layer_norm=False, dropout_keep_prob=0.9, dropout_prob_seed=seed
            )
            zeros = np.zeros((20, 64), "float32")
            _, (c, _) = cell(np.ones((20, 3), "float32"), (zeros, zeros))
            return c.numpy() == 0  # i * g, where g is dropped

    first = dropped(1)
    assert 0.05 < first.mean() < 0.15
    np.testing.assert_array_equal(dropped(1), first)
    assert (dropped(2) != first).any()


def test_an_input_is_no_layer_of_a_node():
    dense = openrnn.layers.Dense(2)
    dense(openrnn.Input(batch_shape=(None, 3)))
    assert dense.inbound_nodes[0].inbound_layers == []
