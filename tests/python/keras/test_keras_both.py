"""Two directions in one call of the binding below openrnn.keras, against two calls of one direction,
which are tested against a loop. Needs no Keras."""

import numpy as np
import pytest
from openrnn import _core
from test_keras_cell import walk

SIZES = (3, 5, 2, 3)
# Of sums in another order, over the largest value: gradients of weights add up time steps, and dx
# both directions.
CLOSE = {"float64": 1e-14, "float32": 1e-5}


def options_of(mode, bias, dtype, **more):
    options = {"rnn_mode": mode, "num_units": SIZES[3], "input_size": SIZES[2], "dtype": dtype,
               "use_bias": bias, **more}
    return options if mode == "gru" or not bias else {**options, "single_bias": True}


def drawn(random, dtype):
    return lambda *shape: random.normal(size=shape).astype(dtype)


def mask_of(kind, random):
    batch, time = SIZES[:2]
    if kind == "none":
        return None
    if kind == "padded":
        return np.arange(time) < random.integers(1, time + 1, (batch, 1))
    mask = random.random((batch, time)) < 0.6
    mask[-1] = False
    return mask


def arrays_of(mode, bias, dtype, random):
    """x; h and c of each direction; weights of each direction."""
    batch, time, inputs, units = SIZES
    draw, width = drawn(random, dtype), {"lstm": 4, "gru": 3, "rnn_tanh": 1}[mode] * units
    states = [draw(batch, units) if mode == "lstm" or n % 2 == 0 else None for n in range(4)]
    weights = []
    for _ in range(2):
        weights += [draw(inputs, width), draw(units, width) / 2]
        weights.append(draw(*(2, width) if mode == "gru" else (width,)) if bias else None)
    return [draw(batch, time, inputs), *states, *weights]


def one_direction(arrays, d):
    return [arrays[0], *arrays[1 + 2 * d:3 + 2 * d], *arrays[5 + 3 * d:8 + 3 * d]]


def both_walk(mode, arrays, mask, flags, reset_after):
    """walk() of both directions: the second one's outputs stand in the order of time."""
    parts = []
    for d in range(2):
        own = one_direction(arrays, d)
        y, h, c = walk(mode, own, mask, (d == 1, *flags[1:]), reset_after)
        parts.append((y[:, ::-1] if d == 1 and flags[1] else y, h, c))
    return [np.concatenate([parts[0][0], parts[1][0]], -1), *parts[0][1:], *parts[1][1:]]


def run(cell, arrays, mask, flags, width):
    batch, time, _, units = SIZES
    dtype = arrays[0].dtype
    states = arrays[1:5] if len(arrays) == 11 else arrays[1:3]
    made = [np.full((batch, time, width) if flags[1] else (batch, width), np.nan, dtype)]
    made += [None if each is None else np.full((batch, units), np.nan, dtype) for each in states]
    return made, cell.forward(arrays, mask, flags, True, made)


def split(y, sequences, flip):
    one, other = y[..., :SIZES[3]], y[..., SIZES[3]:]
    return one, (other[:, ::-1] if sequences and flip else other)


def like(arrays):
    return [None if each is None else np.full(each.shape, np.nan, each.dtype) for each in arrays]


@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("sequences", [False, True])
@pytest.mark.parametrize("kind", ["none", "padded", "holes"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("mode", ["lstm", "gru", "rnn_tanh"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_call_is_two(dtype, mode, bias, kind, sequences, zero):
    random = np.random.default_rng(7)
    arrays, mask = arrays_of(mode, bias, dtype, random), mask_of(kind, random)
    both = _core.KerasCell(options_of(mode, bias, dtype, direction="bidirectional"))
    made, saved = run(both, arrays, mask, (False, sequences, zero), 2 * SIZES[3])
    singles = []
    for d in range(2):
        cell = _core.KerasCell(options_of(mode, bias, dtype))
        singles.append(run(cell, one_direction(arrays, d), mask, (d == 1, sequences, zero), SIZES[3]))
    wanted = [singles[0][0][0], *singles[0][0][1:], *singles[1][0][1:]]
    one, other = split(made[0], sequences, flip=True)
    np.testing.assert_array_equal(one, wanted[0])
    np.testing.assert_array_equal(other, singles[1][0][0])
    for found, right in zip(made[1:], wanted[1:], strict=True):
        if right is not None:
            np.testing.assert_array_equal(found, right)

    grads = [None if each is None else random.normal(size=each.shape).astype(dtype) for each in made]
    results = like(arrays)
    saved.backward(grads, results)
    of_each = []
    for d in range(2):
        dy = np.ascontiguousarray(split(grads[0], sequences, flip=True)[d])
        found = like(one_direction(arrays, d))
        singles[d][1].backward([dy, *grads[1 + 2 * d:3 + 2 * d]], found)
        of_each.append(found)
    (dx, *rest), (dx_back, *rest_back) = of_each
    right = [dx + dx_back, *rest[:2], *rest_back[:2], *rest[2:], *rest_back[2:]]
    for place, (a, b) in enumerate(zip(results, right, strict=True)):
        if b is None:
            continue
        if place in range(1, 8):  # states, and the weights of the forward direction
            np.testing.assert_array_equal(a, b)
        size = max(1.0, abs(b).max())
        np.testing.assert_allclose(a / size, b / size, rtol=0, atol=CLOSE[dtype])


def test_states_that_are_not_given_are_zeros():
    random = np.random.default_rng(3)
    arrays = arrays_of("lstm", True, "float32", random)
    cell = _core.KerasCell(options_of("lstm", True, "float32", direction="bidirectional"))
    flags = (False, True, False)

    def of(states):
        given = [arrays[0], *states, *arrays[5:]]
        made = [np.empty((3, 5, 6), "float32"), *(np.empty((3, 3), "float32") for _ in range(4))]
        cell.forward(given, None, flags, False, made)
        return made

    zeros = np.zeros((3, 3), "float32")
    for a, b in zip(of([None] * 4), of([zeros] * 4), strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(of([None, arrays[2], *[None] * 2]), of([zeros, arrays[2], zeros, zeros]), strict=True):
        np.testing.assert_array_equal(a, b)
    assert cell.packings == 1
