"""nn.rnn_cell beside TensorFlow's cells of the same names: variables, outputs, states, gradients,
and checkpoints in both directions."""

import numpy as np
import openrnn
import pytest
from openrnn import nn

from files import tf_rnn_cells as judge

TIME, BATCH, INPUTS, UNITS = 6, 4, 3, 5
LENGTHS = [6, 0, 3, 1]
TOLERANCE = {"float64": 1e-12, "float32": 1e-5}
CELLS = {
    "basic": ("BasicRNNCell", {}),
    "basic_relu": ("BasicRNNCell", {"activation": "relu"}),
    "basic_lstm": ("BasicLSTMCell", {}),
    "basic_lstm_options": ("BasicLSTMCell", {"forget_bias": -0.5, "activation": "sigmoid"}),
    "basic_lstm_joined": ("BasicLSTMCell", {"state_is_tuple": False}),
    "lstm": ("LSTMCell", {}),
    "lstm_peepholes": ("LSTMCell", {"use_peepholes": True, "forget_bias": 0.25}),
    "lstm_clip": ("LSTMCell", {"cell_clip": 0.2}),
    "lstm_projection": ("LSTMCell", {"num_proj": 2}),
    "lstm_square_projection": ("LSTMCell", {"num_proj": UNITS, "proj_clip": 0.1}),
    "lstm_wide_projection": ("LSTMCell", {"num_proj": UNITS + 2}),
    "lstm_proj_clip_alone": ("LSTMCell", {"proj_clip": 0.01}),
    "lstm_all": ("LSTMCell", {"use_peepholes": True, "cell_clip": 0.3, "num_proj": 4,
                              "proj_clip": 0.15, "forget_bias": 0.5, "activation": "relu",
                              "state_is_tuple": False}),
    "gru": ("GRUCell", {}),
    "gru_sigmoid": ("GRUCell", {"activation": "sigmoid"}),
    "layer_norm": ("LayerNormBasicLSTMCell", {}),
    "layer_norm_options": ("LayerNormBasicLSTMCell", {
        "forget_bias": -0.5, "activation": "relu", "norm_gain": 0.5, "norm_shift": 0.25}),
    "layer_norm_off": ("LayerNormBasicLSTMCell", {"layer_norm": False}),
}  # fmt: skip


def make_pair(case):
    name, options = CELLS[case]
    return (lambda: judge.make(name, UNITS, **options),
            lambda: getattr(nn.rnn_cell, name)(UNITS, **options))  # fmt: skip


def weight(shape):
    """Distinct numbers, so that no two elements of a result can be confused."""
    return np.linspace(-1.0, 2.0, int(np.prod(shape))).reshape(shape)


def inputs(dtype):
    return np.random.default_rng(1).normal(size=(BATCH, TIME, INPUTS)).astype(dtype)


def ours(run, x, variables):
    """As judge.graph_of, of the variables that are there."""
    given = openrnn.Variable(x)
    with openrnn.GradientTape() as tape:
        outputs, state = run(given)
        found = [*outputs, *flat(state)]
        terms = [openrnn.reduce_sum(one * weight(one.shape).astype(x.dtype)) for one in found]
        loss = openrnn.add_n(terms)
    names = ["x", *(variable.name for variable in variables)]
    gradients = tape.gradient(loss, [given, *variables])
    values = {name: np.asarray(one) for name, one in zip(names, gradients, strict=True)}
    return [np.asarray(one) for one in found], values


def flat(state):
    return [part for one in state for part in flat(one)] if isinstance(state, tuple) else [state]


def assert_same(found, wanted, dtype):
    close = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]}
    for one, other in zip(found[0], wanted[0], strict=True):
        np.testing.assert_allclose(one, other, **close)
    assert set(found[1]) == set(wanted[1])
    for name, value in wanted[1].items():
        np.testing.assert_allclose(found[1][name], value, err_msg=name, **close)


def compare(theirs, mine, dtype, folder):
    """Variables of a checkpoint of each side give the same on both."""
    x = inputs(dtype)
    wanted, starts = judge.draw_and_save(theirs, x, weight, folder / "theirs", seed=2)
    with openrnn.Graph().as_default():
        openrnn.set_random_seed(2)  # the limit below holds for these numbers, not for all
        mine(x)
        variables = openrnn.global_variables()
        for variable in variables:
            start = starts.pop(variable.name)
            assert variable.shape == start.shape
            if variable.name.endswith(("bias", "gamma", "beta")):
                np.testing.assert_array_equal(variable, start)
            else:  # glorot: other random numbers within the same limit
                limit = np.sqrt(6.0 / (sum(start.shape) * (3 - start.ndim)))
                for value in (variable, start):
                    assert 0.25 * limit < np.abs(value).max() <= limit
        assert not starts
        openrnn.train.Saver(variables).restore(str(folder / "theirs"))
        assert_same(ours(mine, x, variables), wanted, dtype)
        rng = np.random.default_rng(3)
        for variable in variables:
            variable.assign(rng.uniform(-0.9, 0.9, variable.shape).astype(dtype))
        openrnn.train.Saver(variables).save(str(folder / "ours"))
        found = ours(mine, x, variables)
    assert_same(found, judge.restore_and_run(theirs, x, weight, folder / "ours"), dtype)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("case", CELLS)
def test_a_cell_in_a_loop(case, dtype, tmp_path):
    make_theirs, make_ours = make_pair(case)
    cell = make_ours()
    kwargs = {"sequence_length": LENGTHS, "dtype": dtype}

    def theirs(x):
        outputs, state = judge.v1.nn.dynamic_rnn(make_theirs(), x, **kwargs)
        return [outputs], state

    def mine(x):
        outputs, state = nn.dynamic_rnn(cell, x, **kwargs)
        return [outputs], state

    compare(theirs, mine, dtype, tmp_path)


def test_a_stack_of_cells(tmp_path):
    cases = ["lstm_all", "gru", "basic_lstm", "basic"]
    stack = nn.rnn_cell.MultiRNNCell([make_pair(case)[1]() for case in cases])

    def theirs(x):
        cells = judge.make("MultiRNNCell", [make_pair(case)[0]() for case in cases])
        outputs, state = judge.v1.nn.dynamic_rnn(cells, x, dtype="float64")
        return [outputs], state

    def mine(x):
        outputs, state = nn.dynamic_rnn(stack, x, dtype="float64")
        return [outputs], state

    compare(theirs, mine, "float64", tmp_path)


@pytest.mark.parametrize("case", ["lstm_projection", "gru"])
@pytest.mark.parametrize("time_major", [False, True])
@pytest.mark.parametrize("scope", [None, "encoder"])
def test_both_directions(case, time_major, scope, tmp_path):
    make_theirs, make_ours = make_pair(case)
    forward, backward = make_ours(), nn.rnn_cell.GRUCell(2)
    kwargs = {"sequence_length": None if time_major else LENGTHS, "dtype": "float64",
              "time_major": time_major, "scope": scope}  # fmt: skip

    def theirs(x):
        other = judge.make("GRUCell", 2)
        return judge.v1.nn.bidirectional_dynamic_rnn(make_theirs(), other, x, **kwargs)

    def mine(x):
        return nn.bidirectional_dynamic_rnn(forward, backward, x, **kwargs)

    compare(theirs, mine, "float64", tmp_path)


@pytest.mark.parametrize("lengths", [None, LENGTHS])
@pytest.mark.parametrize("case", ["lstm_peepholes", "basic_lstm_joined", "gru"])
def test_a_list_of_steps(case, lengths, tmp_path):
    make_theirs, make_ours = make_pair(case)
    cell = make_ours()
    kwargs = {"sequence_length": lengths, "dtype": "float64"}

    def theirs(x):
        steps = judge.tf.unstack(x, axis=1)
        return judge.v1.nn.static_rnn(make_theirs(), steps, **kwargs)

    def mine(x):
        steps = openrnn.unstack(openrnn.transpose_leading(x))
        return nn.static_rnn(cell, steps, **kwargs)

    compare(theirs, mine, "float64", tmp_path)
