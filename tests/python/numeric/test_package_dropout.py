"""Dropout between layers against the NumPy model: the masks are the generator's own, at the seed
that TensorFlow's rule makes of the graph's and the layer's, and of this very call."""

from itertools import product

import numpy as np
import openrnn
import pytest

import rnn_capi
from engine_check import assert_within, poisoned
from model import package_run
from model.error_bound import bound
from model.numpy_layout import Spec
from model.rnn_data import make_problem

LARGEST = 2**31 - 1
DEFAULT_GRAPH_SEED = 87654321
# (seed of the graph, of the layer, the two halves of the 64 bits)
SEEDS = [
    (None, 7, (DEFAULT_GRAPH_SEED, 7)),
    (None, 0, (DEFAULT_GRAPH_SEED, 0)),
    (None, LARGEST + 4, (DEFAULT_GRAPH_SEED, 4)),
    (5, 7, (5, 7)),
    (0, 0, (0, LARGEST)),
]
MODES = ["lstm", "gru", "rnn_tanh", "rnn_relu"]
RATE = 0.375


def check(call, spec, halves, number, rate=RATE, dtype=np.float32, **more):
    """The call after `number` others against the model with that call's masks."""
    problem = poisoned(make_problem(spec, 4, 3, dtype, "mixed", seed=6))
    high, low = halves
    masks = rnn_capi.dropout_mask(spec, dtype, rate, 4, 3, (high << 32) | low, number)
    h0, c0 = problem.states
    wanted = bound(
        spec, dtype, problem.params, problem.x, h0, c0, problem.lengths, list(masks),
        problem.upstream,
    )  # fmt: skip
    found = package_run.run(call, problem, before=number, dropout=rate, **more)
    for name, value in found.items():
        assert_within(value, wanted[name], name)


@pytest.mark.parametrize("call", package_run.CALLS)
@pytest.mark.parametrize("graph_seed,seed,halves", SEEDS)
def test_seeds(call, graph_seed, seed, halves):
    with openrnn.Graph().as_default():
        if graph_seed is not None:
            openrnn.set_random_seed(graph_seed)
        check(call, Spec("gru", 2, 5, 3), halves, 0, seed=seed)


def test_no_seed_at_all():
    """A layer's default is none, which means 0; an op-level model's default is a seed of 0."""
    with openrnn.Graph().as_default():
        check("layer", Spec("gru", 2, 5, 3), (0, 0), 0)
        check("op", Spec("gru", 2, 5, 3), (DEFAULT_GRAPH_SEED, 0), 0)


@pytest.mark.parametrize("call", package_run.CALLS)
@pytest.mark.parametrize(
    "mode,direction,number",
    list(product(MODES, ["unidirectional", "bidirectional"], [0, 1, 3])),
)
def test_every_call_has_its_own_masks(call, mode, direction, number):
    with openrnn.Graph().as_default():
        spec = Spec(mode, 3, 7, 3, direction=direction)
        check(call, spec, (DEFAULT_GRAPH_SEED, 11), number, seed=11, time_major=number != 1)


@pytest.mark.parametrize("call", package_run.CALLS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("rate", [0.125, 1.0])
def test_projection(call, dtype, rate):
    with openrnn.Graph().as_default():
        spec = Spec("lstm", 2, 7, 3, direction="bidirectional", num_proj=4)
        check(call, spec, (DEFAULT_GRAPH_SEED, 3), 0, rate, dtype, seed=3)


@pytest.mark.parametrize("call", package_run.CALLS)
def test_inference_drops_nothing(call):
    problem = make_problem(Spec("lstm", 2, 5, 3), 4, 3, np.float32)
    plain = package_run.run(call, problem, training=False, gradients=False)
    full = package_run.run(call, problem, training=False, gradients=False, dropout=1.0)
    for name, value in plain.items():
        assert np.array_equal(value, full[name]), name


def test_inference_takes_no_number():
    """Calls without training leave the masks of the next training call as they are."""
    problem = make_problem(Spec("lstm", 2, 5, 3), 4, 3, np.float32)
    fresh = lambda: package_run.make_layer(
        problem.spec, np.float32, problem.params, dropout=RATE, seed=2
    )
    layer = fresh()
    inferred, _ = layer(problem.x, training=False)
    layer(problem.x, training=False)
    first, second = (layer(problem.x, training=True)[0] for _ in range(2))
    assert np.array_equal(first, fresh()(problem.x, training=True)[0])
    assert not np.array_equal(first, second) and not np.array_equal(first, inferred)
