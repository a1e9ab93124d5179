"""A recorded network computes what the calls themselves compute, bit for bit, gradients too."""

from itertools import product

import numpy as np
import openrnn
import pytest

from model import package_run
from model.numpy_layout import Spec
from model.rnn_data import make_problem

MODES = ["lstm", "gru", "rnn_tanh", "rnn_relu"]
DIRECTIONS = ["unidirectional", "bidirectional"]
NETWORKS = [
    Spec(mode, 2, 7, 3, direction=direction) for mode, direction in product(MODES, DIRECTIONS)
] + [Spec("lstm", 2, 7, 3, direction="bidirectional", num_proj=4)]


def symbolic_states(spec):
    """One Input a state, [L * D, B, .] with the batch unknown."""
    widths = [spec.state_width] + ([spec.num_units] if spec.mode == "lstm" else [])
    return [openrnn.Input(batch_shape=(spec.num_pseudo, None, width)) for width in widths]


def step(tape, call, sources, upstream):
    """(results, gradients of everything) of one call under the tape."""
    with tape:
        for source in sources[:-1]:
            tape.watch(source)
        results = call()
    gradients = tape.gradient(
        results, sources, output_gradients=[openrnn.Tensor(each) for each in upstream]
    )
    return results, gradients


@pytest.mark.parametrize("spec", NETWORKS, ids=str)
@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("time_major", [True, False])
def test_a_model_is_its_layer(spec, ragged, time_major):
    problem = make_problem(spec, 5, 4, np.float32)
    turn = lambda a: a if time_major else np.ascontiguousarray(a.swapaxes(0, 1))
    how = {"time_major": time_major}
    if ragged:
        how["sequence_lengths"] = np.array([3, 0, 5, 1], np.int32)
    layer = package_run.make_layer(spec, np.float32, problem.params)
    data = openrnn.Tensor(turn(problem.x))
    states = [openrnn.Tensor(turn(s)) for s in problem.states if s is not None]
    upstream = [turn(each) for each in problem.upstream if each is not None]

    batch = 4 if ragged else None
    shape = (None, batch, 3) if time_major else (batch, None, 3)
    x = openrnn.Input(batch_shape=shape)
    given = symbolic_states(spec)
    if not time_major:
        given = [openrnn.Input(batch_shape=(None, *[s.shape[0], s.shape[2]])) for s in given]
    output, last = layer(x, tuple(given), **how)
    model = openrnn.Model([x, *given], [output, *last])

    def eager():
        y, final = layer(data, tuple(states), **how)
        return [y, *final]

    sources = [data, *states, layer.kernel]
    wanted = step(openrnn.GradientTape(), eager, sources, upstream)
    found = step(openrnn.GradientTape(), lambda: model([data, *states]), sources, upstream)
    for one, other in zip(found[0], wanted[0], strict=True):
        assert np.array_equal(one, other)
    for one, other in zip(found[1], wanted[1], strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("mode", MODES)
def test_a_stack_of_layers(mode):
    """Two layers of the package are the two layers of one network."""
    spec = Spec(mode, 2, 6, 3, direction="bidirectional")
    problem = make_problem(spec, 4, 3, np.float32)
    whole = package_run.make_layer(spec, np.float32, problem.params)
    weights, biases = package_run.make_op(spec, np.float32).params_to_canonical(problem.params)
    x = openrnn.Input(batch_shape=(None, None, 3))
    y = x
    for number in range(2):
        part = Spec(mode, 1, 6, spec.input_width(number), direction="bidirectional")
        half = [
            tensors[number * len(tensors) // 2 : (number + 1) * len(tensors) // 2]
            for tensors in (weights, biases)
        ]
        params = package_run.make_op(part, np.float32).canonical_to_params(*half)
        y, _ = package_run.make_layer(part, np.float32, np.array(params))(y)
    model = openrnn.Model(x, y)
    output, _ = whole(problem.x)
    assert np.array_equal(model(problem.x), output)
    assert np.array_equal(model.predict(problem.x), output)
