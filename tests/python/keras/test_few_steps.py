"""Every mask of every short call of the binding below openrnn.keras, with all of its flags.

Against the loop in NumPy, gradients by complex steps. Calls of one, two and three steps take ways
of their own: what one step can reverse is nothing, and a mask may begin, end or leave out anything.
"""

import itertools

import numpy as np
import pytest
from test_keras_both import both_walk, like
from test_keras_cell import arrays_of, cell_of, complex_gradients, walk

FLAGS = list(itertools.product((False, True), repeat=3))
each_mode = pytest.mark.parametrize("mode", ["lstm", "gru", "rnn_tanh"])


def every_mask(batch, time):
    yield None
    for bits in itertools.product((False, True), repeat=batch * time):
        yield np.array(bits).reshape(batch, time)


def room(mode, arrays, flags):
    x, h = arrays[0], arrays[1]
    y = (*x.shape[:2], h.shape[1]) if flags[1] else h.shape
    states = [h.shape, h.shape if mode == "lstm" else None]
    return [None if one is None else np.full(one, np.nan) for one in (y, *states)]


def given_to(mode, arrays):
    return [*arrays[:2], arrays[2] if mode == "lstm" else None, *arrays[3:]]


def close(found, wanted, atol, what):
    if found is not None:
        np.testing.assert_allclose(found, wanted, rtol=0, atol=atol, err_msg=str(what))


@each_mode
@pytest.mark.parametrize("time", [1, 2, 3, 4])
def test_outputs_of_every_mask(mode, time):
    sizes = (1 if time == 4 else 2, time, 2, 3)
    arrays = arrays_of(mode, sizes, True, True, np.random.default_rng(time))
    cell = cell_of(mode, sizes, True, True)
    for mask, flags in itertools.product(every_mask(*sizes[:2]), FLAGS):
        made = room(mode, arrays, flags)
        assert cell.forward(given_to(mode, arrays), mask, flags, False, made) is None
        wanted = walk(mode, arrays, mask, flags, True)
        for found, right in zip(made, wanted, strict=True):
            close(found, right, 1e-13, (mask, flags))


@each_mode
@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (1, 2, 2, 1), (1, 3, 1, 2), (2, 2, 1, 1)])
def test_gradients_of_every_mask(mode, sizes):
    random = np.random.default_rng(9)
    arrays = arrays_of(mode, sizes, True, True, random)
    cell = cell_of(mode, sizes, True, True)
    for mask, flags in itertools.product(every_mask(*sizes[:2]), FLAGS):
        made = room(mode, arrays, flags)
        saved = cell.forward(given_to(mode, arrays), mask, flags, True, made)
        shapes = [h.shape for h in walk(mode, arrays, mask, flags, True)]
        scales = [random.normal(size=shape) for shape in shapes]
        if mode != "lstm":
            scales[2] *= 0
        right = complex_gradients(mode, arrays, mask, flags, True, scales)
        results = like(given_to(mode, arrays))
        saved.backward([scales[0], scales[1], scales[2] if mode == "lstm" else None], results)
        for found, exact in zip(results, right, strict=True):
            close(found, exact, 1e-12, (mask, flags))


@each_mode
def test_one_gradient_at_a_time(mode):
    """What the others of a call are left out for is what it is with all of them."""
    sizes = (2, 3, 2, 3)
    random = np.random.default_rng(3)
    arrays = arrays_of(mode, sizes, True, True, random)
    cell = cell_of(mode, sizes, True, True)
    mask = np.array([[True, False, True], [False, True, True]])
    for flags, masked in itertools.product(FLAGS, (None, mask)):
        made = room(mode, arrays, flags)
        saved = cell.forward(given_to(mode, arrays), masked, flags, True, made)
        gradients = [None if one is None else random.normal(size=one.shape) for one in made]
        whole = like(given_to(mode, arrays))
        saved.backward(gradients, whole)
        for n, one in enumerate(whole):
            if one is None:
                continue
            alone = [None] * 6
            alone[n] = np.full(one.shape, np.nan)
            saved.backward(gradients, alone)
            np.testing.assert_array_equal(alone[n], one, err_msg=str((n, flags)))
        summed = [np.zeros(one.shape) if one is not None else None for one in whole]
        for n, gradient in enumerate(gradients):
            if gradient is None:
                continue
            given = [gradient if place == n else None for place in range(3)]
            found = like(whole)
            saved.backward(given, found)
            for to, one in zip(summed, found, strict=True):
                if to is not None:
                    to += one
        for found, one in zip(summed, whole, strict=True):
            if one is not None:
                np.testing.assert_allclose(found, one, rtol=0, atol=1e-12, err_msg=str(flags))


@each_mode
@pytest.mark.parametrize("time", [1, 2, 3])
def test_two_directions_of_every_mask(mode, time):
    sizes, random = (2, time, 2, 3), np.random.default_rng(time)
    one, other = (arrays_of(mode, sizes, True, True, random) for _ in range(2))
    arrays = [*one[:3], *other[1:3], *one[3:], *other[3:]]
    cell = cell_of(mode, sizes, True, True, direction="bidirectional")
    lstm = mode == "lstm"
    given = [one if lstm or n not in (2, 4) else None for n, one in enumerate(arrays)]
    forward = [one for one in FLAGS if not one[0]]
    for mask, flags in itertools.product(every_mask(2, time), forward):
        state = [np.full((2, 3), np.nan) if lstm or n % 2 == 0 else None for n in range(4)]
        made = [np.full((2, time, 6) if flags[1] else (2, 6), np.nan), *state]
        cell.forward(given, mask, flags, False, made)
        for found, right in zip(made, both_walk(mode, arrays, mask, flags, True), strict=True):
            close(found, right, 1e-13, (mask, flags))
