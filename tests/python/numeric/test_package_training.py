"""Some steps of every optimizer on every layer, against the NumPy model with the bounds that each
step hands on to the next."""

from itertools import cycle, product

import numpy as np
import openrnn
import pytest

from engine_check import assert_within, poisoned
from model import numpy_optimizers, numpy_rnn, package_run
from model.error_bound import Bounded
from model.numpy_layout import Spec
from model.numpy_optimizers import Optimizer
from model.rnn_data import make_problem

train = openrnn.train
MODES = ["lstm", "gru", "rnn_tanh"]
# Epsilons that keep a bound on quotients of small numbers.
OPTIMIZERS = {
    Optimizer("GradientDescent", 0.125): lambda: train.GradientDescentOptimizer(0.125),
    Optimizer("Momentum", 0.0625, momentum=0.75): lambda: train.MomentumOptimizer(0.0625, 0.75),
    Optimizer("Momentum", 0.0625, momentum=0.5, nesterov=True): lambda: train.MomentumOptimizer(
        0.0625, 0.5, use_nesterov=True
    ),
    Optimizer("Adagrad", 0.125, initial_accumulator=0.25): lambda: train.AdagradOptimizer(
        0.125, initial_accumulator_value=0.25
    ),
    Optimizer("RMSProp", 0.0625, momentum=0.5, epsilon=0.5): lambda: train.RMSPropOptimizer(
        0.0625, momentum=0.5, epsilon=0.5
    ),
    Optimizer("Adam", 0.25, beta1=0.875, beta2=0.96875, epsilon=0.5): lambda: train.AdamOptimizer(
        0.25, 0.875, 0.96875, 0.5
    ),
}
STEPS = 4


def model_training(optimizer, problem):
    """{name: Bounded} of the variable 'X' and its slots."""
    eps = float(np.finfo(problem.x.dtype).eps + np.finfo(np.float64).eps)
    exact = lambda value: value if isinstance(value, Bounded) else Bounded(value, eps)

    def gradient(params):
        h0, c0 = (None if s is None else exact(s) for s in problem.states)
        x = exact(problem.x)
        tape = numpy_rnn.forward(problem.spec, params, x, h0, c0, problem.lengths)[3]
        upstream = [None if each is None else exact(each) for each in problem.upstream]
        return numpy_rnn.backward(tape, *upstream)[3]

    start = problem.params.astype(float)
    if problem.x.dtype == np.float32:
        optimizer = optimizer.in_float32()
    return numpy_optimizers.run(optimizer, start, [gradient] * STEPS, exact)


def loss_of(layer, problem):
    """A function of nothing: every result times its upstream gradient, padding left out."""
    states = tuple(s for s in problem.states if s is not None)
    valid = np.arange(problem.x.shape[0])[:, None] < problem.lengths[None, :]
    upstream = [np.where(valid[:, :, None], problem.dy, 0), problem.dh, problem.dc]

    def loss():
        output, last = layer(problem.x, states, sequence_lengths=problem.lengths)
        pairs = zip([output, *last], upstream)
        return openrnn.add_n([openrnn.reduce_sum(value * openrnn.Tensor(u)) for value, u in pairs])

    return loss


def cases():
    directions = cycle(["unidirectional", "bidirectional", "bidirectional"])
    return [
        (optimizer, mode, next(directions), dtype)
        for optimizer, mode, dtype in product(OPTIMIZERS, MODES, [np.float32, np.float64])
    ]


@pytest.mark.parametrize("optimizer,mode,direction,dtype", cases())
def test_training(optimizer, mode, direction, dtype):
    spec = Spec(mode, 2, 5, 3, direction=direction, num_proj=3 if mode == "lstm" else 0)
    problem = poisoned(make_problem(spec, 4, 3, dtype, "mixed", seed=2))
    with openrnn.Graph().as_default():
        layer = package_run.make_layer(spec, dtype, problem.params)
        ours = OPTIMIZERS[optimizer]()
        loss, wanted = loss_of(layer, problem), model_training(optimizer, problem)
        for _ in range(STEPS):
            ours.minimize(loss)
        assert_within(layer.get_weights()[0], wanted["X"], "kernel")
        slots = [name for name in wanted if name.startswith("X/")]
        assert len(ours.get_slot_names()) == len(slots)
        names = {v.name: v for v in openrnn.global_variables()}
        for slot in slots:
            found = names[layer.kernel.name + slot[1:]].numpy()
            assert_within(found, wanted[slot], slot)
    assert np.abs(wanted["X"].value - problem.params).max() > 0.02
