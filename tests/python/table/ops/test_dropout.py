"""Dropout between layers: where it acts, its statistics, seeds, and the state that advances.

The probe is a relu network of two layers whose first always gives 1 and whose second copies what
enters it, so that its output is the mask itself.
"""

import os
import subprocess
import sys
import textwrap

import numpy as np
import openrnn
import pytest
from model import numpy_layout
from table.support import (
    RELU, B, I, LSTM, T, U, EagerCaller, array, assert_close, draw, make_layer, make_spec,
    oracle,
)  # fmt: skip

WIDE = {"num_layers": 2, "num_units": 8, "input_size": 1}


def probe_params(direction="unidirectional"):
    spec = make_spec(RELU, direction, **WIDE)
    weights, biases = numpy_layout.params_to_canonical(
        spec, np.zeros(numpy_layout.params_size(spec), "float32")
    )
    for pseudo in range(spec.num_dirs):
        biases[2 * pseudo][...] = 1.0
        later = 2 * (spec.num_dirs + pseudo)
        weights[later][...] = np.eye(8, weights[later].shape[1], 8 * pseudo)
    return numpy_layout.canonical_to_params(spec, weights, biases)


def probe(rate, seed=5, direction="unidirectional", **kw):
    layer = RELU.layer(2, 8, dropout=rate, seed=seed, direction=direction, **kw)
    layer.build((None, None, 1))
    layer.set_weights([probe_params(direction)])
    return layer


def mask(layer, caller=None, time=20, batch=10):
    """What the next training call multiplies the first layer's output with."""
    x = np.zeros((time, batch, 1), "float32")
    return (caller or EagerCaller())(layer, x, training=True)[0]


@pytest.mark.parametrize("rate", [0.1, 0.25, 0.5, 0.75])
def test_statistics(caller, direction, rate):
    """Kept elements are scaled by 1 / (1 - p); each is kept by itself, with probability 1 - p."""
    found = mask(probe(rate, direction=direction), caller, 40, 25)
    kept = found != 0.0
    np.testing.assert_allclose(found[kept], 1.0 / (1.0 - rate), rtol=1e-6)
    deviation = np.sqrt(rate * (1.0 - rate))
    for axes in ((0, 1, 2), (1, 2), (0, 2), (0, 1)):
        count = np.prod([found.shape[axis] for axis in axes])
        off = np.abs(kept.mean(axis=axes) - (1.0 - rate)) / (deviation / np.sqrt(count))
        # At most 40 means each: one beyond 5 deviations in 4e4 suites, and the seed is fixed.
        assert np.max(off) < 5.0
    centred = (kept - kept.mean()) / deviation
    for axis in range(3):
        a, b = (np.take(centred, range(s, found.shape[axis] - 1 + s), axis) for s in (0, 1))
        assert abs(np.mean(a * b)) * np.sqrt(a.size) < 5.0


@pytest.mark.filterwarnings("ignore:.*num_layers=1")
def test_one_layer_has_no_dropout(kind, caller):
    sizes = {"num_layers": 1}
    plain = make_layer(kind, sizes=sizes)
    for rate in (0.5, 1.0):
        layer = make_layer(kind, sizes=sizes, dropout=rate, name=f"rate{int(10 * rate)}")
        for a, b in zip(caller(layer, draw(T, B, I)), caller(plain, draw(T, B, I)), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("rate", [0.5, 1.0])
def test_inference_ignores_the_rate(kind, direction, caller, rate):
    layer = make_layer(kind, direction, dropout=rate)
    output, _ = caller(layer, draw(T, B, I), training=False)
    assert_close(output, oracle(make_spec(kind, direction), array(layer.kernel), draw(T, B, I))[0])


def test_rate_zero_is_no_dropout(kind, caller):
    layer, plain = make_layer(kind, dropout=0.0, seed=3), make_layer(kind, name="plain")
    a, b = (caller(one, draw(T, B, I), training=True)[0] for one in (layer, plain))
    np.testing.assert_array_equal(a, b)


def test_first_layer_is_untouched(kind, direction, caller):
    """Neither input nor recurrence nor any state of the first layer is dropped."""
    layer = make_layer(kind, direction, dropout=0.5)
    output, states = caller(layer, draw(T, B, I), training=True)
    wanted, wanted_states = oracle(make_spec(kind, direction), array(layer.kernel), draw(T, B, I))
    for a, b in zip(states, wanted_states, strict=True):
        assert_close(a[: layer.num_dirs], b[: layer.num_dirs])
    assert not np.allclose(output, wanted)
    if direction == "unidirectional":
        np.testing.assert_array_equal(output[-1], states[0][-1], "the last output is not dropped")


def test_rate_one_feeds_zeros_upwards(kind, caller):
    layer = make_layer(kind, dropout=1.0)
    output, states = caller(layer, draw(T, B, I), training=True)
    spec = make_spec(kind, num_layers=1, input_size=U)
    params = numpy_layout.pseudo_layers(make_spec(kind), array(layer.kernel))[1]
    upper = numpy_layout.canonical_to_params(spec, *params)
    wanted, _ = oracle(spec, upper, np.zeros((T, B, U)))
    assert_close(output, wanted)
    assert all(np.all(np.isfinite(s)) for s in states)


def test_rate_one_gives_lower_layers_gradient_through_states_alone(kind):
    layer = make_layer(kind, dropout=1.0)
    x = openrnn.constant(draw(T, B, I))
    with openrnn.GradientTape() as tape:
        tape.watch(x)
        output, states = layer(x)
        through_output = openrnn.reduce_sum(output)
        through_states = openrnn.reduce_sum(states[0])
    assert np.all(array(tape.gradient(through_output, x)) == 0.0)
    gradient = array(tape.gradient(through_states, x))
    assert np.all(np.isfinite(gradient)) and np.any(gradient != 0.0)


@pytest.mark.parametrize("symbolic", [False, True], ids=["eager", "symbolic"])
def test_backward_has_the_mask_of_forward(symbolic):
    layer = probe(0.5)
    x = openrnn.Input(batch_shape=(20, 10, 1))
    call = openrnn.Model(x, layer(x)[0]) if symbolic else (lambda value: layer(value)[0])
    for _ in range(2):
        with openrnn.GradientTape() as tape:
            output = call(np.zeros((20, 10, 1), "float32"))
            loss = openrnn.reduce_sum(output)
        gradient = array(tape.gradient(loss, layer.kernel))
        _, biases = numpy_layout.params_to_canonical(make_spec(RELU, **WIDE), gradient)
        wanted = array(output).sum(axis=(0, 1))
        assert 0.0 < wanted.min()
        np.testing.assert_allclose(biases[0], wanted, rtol=1e-6)


def test_the_state_advances(caller):
    layer = probe(0.5)
    found = [mask(layer, caller) for _ in range(4)]
    assert len({m.tobytes() for m in found}) == 4


def test_a_recorded_model_advances():
    layer = probe(0.5)
    x = openrnn.Input(batch_shape=(None, None, 1))
    model = openrnn.Model(x, layer(x)[0])
    data = np.zeros((20, 10, 1), "float32")
    assert not np.array_equal(array(model(data)), array(model(data)))
    np.testing.assert_array_equal(array(model(data, training=False)), 1.0)
    np.testing.assert_array_equal(model.predict(data), 1.0)


def test_a_recorded_call_keeps_its_training():
    layer, data = probe(0.5), np.zeros((20, 10, 1), "float32")
    x = openrnn.Input(batch_shape=(None, None, 1))
    still = openrnn.Model(x, layer(x, training=False)[0])
    np.testing.assert_array_equal(array(still(data)), 1.0)
    assert np.any(array(still(data, training=True)) == 0.0)
    np.testing.assert_array_equal(array(still(data)), 1.0)


def test_inference_does_not_advance():
    first, second = probe(0.5), probe(0.5, name="other")
    mask(first), mask(second)
    first(np.zeros((20, 10, 1), "float32"), training=False)
    np.testing.assert_array_equal(mask(first), mask(second))


def test_a_failed_call_does_not_advance():
    first, second = probe(0.5), probe(0.5, name="other")
    for x in (np.zeros((20, 10, 2)), np.zeros((20, 10))):
        with pytest.raises(ValueError):
            first(x, training=True)
    with pytest.raises(ValueError):
        first(np.zeros((20, 10, 1)), sequence_lengths=[21] * 10, training=True)
    np.testing.assert_array_equal(mask(first), mask(second))


def masks_of(graph_seed, op_seed, count=2):
    """The first masks of a fresh layer in a fresh graph."""
    openrnn.reset_default_graph()
    if graph_seed is not None:
        openrnn.set_random_seed(graph_seed)
    layer = probe(0.5, seed=op_seed)
    return np.stack([mask(layer) for _ in range(count)])


SEEDS = [(None, None), (None, 1), (None, 2), (3, None), (4, None), (3, 1), (3, 2), (4, 1), (0, 0)]


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_the_same_seeds_repeat_the_sequence(seeds):
    np.testing.assert_array_equal(masks_of(*seeds), masks_of(*seeds))


def test_other_seeds_give_other_masks():
    found = [masks_of(*seeds) for seeds in SEEDS]
    every = [m.tobytes() for pair in found for m in pair]
    assert len(set(every)) == len(every)


# (what, two pairs of graph and op seed that mean the same)
EQUAL = [
    ("s alone has the graph seed 87654321", (None, 7), (87654321, 7)),
    ("op seeds are taken modulo 2^31 - 1", (3, 7), (3, 7 + 2**31 - 1)),
    ("graph seeds are taken modulo 2^31 - 1", (3, 7), (3 + 2**31 - 1, 7)),
    ("explicit zeros are (0, 2^31 - 1)", (0, 0), (2**31 - 1, 0)),
]


@pytest.mark.parametrize("what, one, other", EQUAL, ids=[row[0] for row in EQUAL])
def test_equal_seeds(what, one, other):
    np.testing.assert_array_equal(masks_of(*one), masks_of(*other))


def test_no_seed_is_the_fixed_seed_zero():
    """Neither seed: (0, 0), which explicit zeros are not."""
    openrnn.reset_default_graph()
    openrnn.Variable(np.zeros(1, "float32"))
    later = np.stack([mask(one) for one in [probe(0.5, seed=None)] for _ in range(2)])
    np.testing.assert_array_equal(later, masks_of(None, None))
    assert not np.array_equal(later, masks_of(0, 0))


def test_a_graph_seed_alone_counts_the_ops():
    openrnn.set_random_seed(9)
    first, second = probe(0.5, seed=None), probe(0.5, seed=None)
    assert not np.array_equal(mask(first), mask(second))


def test_op_level_default_seed_is_zero():
    def first_mask(**kw):
        openrnn.reset_default_graph()
        op = RELU.op(2, 8, 1, dropout=0.5, **kw)
        x, h = np.zeros((20, 10, 1), "float32"), np.zeros((2, 10, 8), "float32")
        return array(op(x, h, probe_params())[0])

    np.testing.assert_array_equal(first_mask(), first_mask(seed=0))
    np.testing.assert_array_equal(first_mask(), first_mask(seed=0))
    assert not np.array_equal(first_mask(), first_mask(seed=1))


def test_masks_do_not_depend_on_the_number_of_threads():
    before, found = openrnn.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            openrnn.set_num_threads(threads)
            found.append(masks_of(None, 4))
    finally:
        openrnn.set_num_threads(before)
    assert all(np.array_equal(found[0], other) for other in found[1:])


SCRIPT = """
    import hashlib, sys
    import numpy as np, openrnn
    rnn = openrnn.cudnn_rnn
    layer = rnn.CudnnGRU(2, 8, dropout=0.5, seed=4)
    op = rnn.ops.CudnnLSTM(2, 8, 3, dropout=0.5, seed=4)
    x = np.linspace(-1, 1, 120).reshape(10, 4, 3).astype("float32")
    state = np.zeros((2, 4, 8), "float32")
    params = np.sin(np.arange(op.params_size())).astype("float32")
    symbolic = openrnn.Input(batch_shape=(10, 4, 3))
    model = openrnn.Model(symbolic, rnn.CudnnRNNTanh(2, 8, dropout=0.5, seed=4)(symbolic)[0])
    calls = [lambda: layer(x)[0], lambda: op(x, state, state, params)[0], lambda: model(x)]
    for call in calls:
        print(*[hashlib.sha256(np.asarray(call()).tobytes()).hexdigest() for _ in range(3)])
"""


def fresh_process(value):
    """Three results each of a layer, an op and a recorded model."""
    environment = {k: v for k, v in os.environ.items() if k != "TF_CUDNN_RESET_RND_GEN_STATE"}
    if value is not None:
        environment["TF_CUDNN_RESET_RND_GEN_STATE"] = value
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT)],
        env=environment, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    return [line.split() for line in done.stdout.splitlines()]


@pytest.mark.parametrize("value", [None, "0", "false"])
def test_without_reset_each_call_has_a_mask_of_its_own(value):
    found = fresh_process(value)
    assert [len(set(row)) for row in found] == [3, 3, 3]
    assert found == fresh_process(None), "a fresh process repeats the sequence"


@pytest.mark.parametrize("value", ["1", "true"])
def test_reset_makes_every_mask_the_first(value):
    found = fresh_process(value)
    assert [len(set(row)) for row in found] == [1, 1, 1]
    assert [row[0] for row in found] == [row[0] for row in fresh_process(None)]


def test_two_directions_are_dropped_apart():
    found = mask(probe(0.5, direction="bidirectional"))
    assert found.shape == (20, 10, 16)
    assert not np.array_equal(found[..., :8], found[..., 8:])


def test_lstm_masks_every_layer_boundary_apart():
    layer = make_layer(LSTM, sizes={"num_layers": 3}, dropout=0.5, seed=2)
    _, states = layer(draw(T, B, I))
    _, plain_states = layer(draw(T, B, I), training=False)
    np.testing.assert_array_equal(array(states[0])[0], array(plain_states[0])[0])
    for k in (1, 2):
        assert not np.array_equal(array(states[0])[k], array(plain_states[0])[k])


@pytest.mark.parametrize("seed", [None, 3])
def test_every_call_of_the_operation_has_another_mask(seed):
    x = np.ones((20, 30), "float32")
    first, second = (array(openrnn.nn.dropout(x, rate=0.5, seed=seed)) for _ in range(2))
    assert set(np.unique(first)) == set(np.unique(second)) == {0.0, 2.0}
    assert not np.array_equal(first, second)
