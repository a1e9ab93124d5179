"""The binding below openrnn.keras against a loop over Keras's equations in NumPy.

Gradients by complex steps in float64: exact up to rounding. Needs no Keras.
"""

import numpy as np
import openrnn
import pytest
from openrnn import _core

STEP = 1e-30


def sigmoid(a):
    return 1 / (1 + np.exp(-a))


def step(mode, x, h, c, weights, reset_after):
    kernel, recurrent, bias = weights
    units = recurrent.shape[0]
    if mode == "rnn_tanh":
        return np.tanh(x @ kernel + h @ recurrent + (0 if bias is None else bias)), c
    if mode == "lstm":
        z = x @ kernel + h @ recurrent + (0 if bias is None else bias)
        i, f, g, o = (z[:, n * units:(n + 1) * units] for n in range(4))
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c
    inner = recurrent_bias = 0
    if bias is not None:
        inner, recurrent_bias = bias if reset_after else (bias, 0)
    a = x @ kernel + inner
    b = h @ recurrent + recurrent_bias
    z, r = sigmoid((a + b)[:, :units]), sigmoid((a + b)[:, units:2 * units])
    if reset_after:
        last = r * b[:, 2 * units:]
    else:
        last = (r * h) @ recurrent[:, 2 * units:]
    return z * h + (1 - z) * np.tanh(a[:, 2 * units:] + last), c


def walk(mode, arrays, mask, flags, reset_after):
    """y, hn, cn as Keras's generic loop makes them."""
    x, h, c, *weights = arrays
    backwards, sequences, zero = flags
    order = range(x.shape[1])
    shown, outputs = np.zeros_like(h), []
    for t in reversed(order) if backwards else order:
        count = np.ones((len(x), 1), bool) if mask is None else mask[:, t, None]
        new_h, new_c = step(mode, x[:, t], h, c, weights, reset_after)
        shown = np.where(count, new_h, np.zeros_like(h) if zero else shown)
        h, c = np.where(count, new_h, h), np.where(count, new_c, c)
        outputs.append(shown)
    return (np.stack(outputs, 1) if sequences else shown), h, c


def masks(kind, batch, time, random):
    if kind == "none":
        return None
    mask = np.ones((batch, time), bool)
    if kind == "padded":
        mask = np.arange(time) < random.integers(0, time + 1, (batch, 1))
    elif kind == "holes":
        mask = random.random((batch, time)) < 0.6
        mask[-1] = False
    return mask


def arrays_of(mode, sizes, bias, reset_after, random):
    batch, time, inputs, units = sizes
    width = {"lstm": 4, "gru": 3, "rnn_tanh": 1}[mode] * units
    two = mode == "gru" and reset_after
    return [
        random.normal(size=(batch, time, inputs)),
        random.normal(size=(batch, units)),
        random.normal(size=(batch, units)),
        random.normal(size=(inputs, width)),
        random.normal(size=(units, width)) / 2,
        random.normal(size=(2, width) if two else width) if bias else None,
    ]


def cell_of(mode, sizes, bias, reset_after, dtype="float64", **more):
    options = {"rnn_mode": mode, "input_size": sizes[2], "num_units": sizes[3], "dtype": dtype,
               "use_bias": bias, **more}
    if mode == "gru":
        options["reset_after"] = reset_after
    if bias and not (mode == "gru" and reset_after):
        options["single_bias"] = True
    return _core.KerasCell(options)


def call(cell, lstm, arrays, mask, flags, saving=False):
    x, h, c, *weights = arrays
    made = [np.full((*x.shape[:2], h.shape[1]) if flags[1] else h.shape, np.nan, x.dtype),
            np.full(h.shape, np.nan, x.dtype), np.full(h.shape, np.nan, x.dtype) if lstm else None]
    saved = cell.forward([x, h, c if lstm else None, *weights], mask, flags, saving, made)
    return made, saved


def made_for(arrays):
    """Room for the outputs of a sequence."""
    return [np.empty((*arrays[0].shape[:2], arrays[1].shape[1])), np.empty(arrays[1].shape),
            np.empty(arrays[1].shape)]


def complex_gradients(mode, arrays, mask, flags, reset_after, scales):
    found = []
    for n, array in enumerate(arrays):
        if array is None:
            found.append(None)
            continue
        gradient = np.zeros(array.shape)
        for index in np.ndindex(array.shape):
            moved = [None if each is None else each.astype(complex) for each in arrays]
            moved[n][index] += 1j * STEP
            out = walk(mode, moved, mask, flags, reset_after)
            gradient[index] = sum((s * o).sum() for s, o in zip(scales, out)).imag / STEP
        found.append(gradient)
    return found


@pytest.mark.parametrize("sizes", [(3, 5, 2, 3), (1, 1, 1, 1), (2, 4, 3, 1)])
@pytest.mark.parametrize("flags", [(b, s, z) for b in (False, True) for s in (False, True)
                                   for z in (False, True)])
@pytest.mark.parametrize("kind", ["none", "whole", "padded", "holes"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("mode, reset_after",
                         [("lstm", True), ("gru", True), ("gru", False), ("rnn_tanh", True)])
def test_against_the_loop(mode, reset_after, bias, kind, flags, sizes):
    random = np.random.default_rng(sum(sizes))
    arrays = arrays_of(mode, sizes, bias, reset_after, random)
    mask = masks(kind, *sizes[:2], random)
    cell, lstm = cell_of(mode, sizes, bias, reset_after), mode == "lstm"
    given = [None if each is None else each.copy() for each in arrays]
    if mask is not None:
        given[0][~mask] = np.nan  # never read
    wanted = walk(mode, arrays, mask, flags, reset_after)
    made, saved = call(cell, lstm, given, mask, flags, saving=True)
    plain, _ = call(cell, lstm, given, mask, flags)
    count = 3 if lstm else 2
    for found, again, right in zip(made[:count], plain[:count], wanted):
        np.testing.assert_allclose(found, right, rtol=0, atol=1e-13)
        np.testing.assert_array_equal(found, again)

    scales = [random.normal(size=each.shape) for each in wanted]
    if not lstm:
        scales[2] = np.zeros_like(wanted[2])
    right = complex_gradients(mode, arrays, mask, flags, reset_after, scales)
    results = [None if each is None else np.full(each.shape, np.nan) for each in arrays]
    if not lstm:
        results[2] = None
    given[0][...] = given[3][...] = 7.0  # what forward saved is its own
    gradients = (scales[0], scales[1], scales[2] if lstm else None)
    for _ in range(2):
        saved.backward(gradients, results)
        for found, exact in zip(results, right):
            if found is not None:
                np.testing.assert_allclose(found, exact, rtol=0, atol=1e-12)


def test_gradients_that_nobody_asks_for():
    random = np.random.default_rng(1)
    arrays = arrays_of("lstm", (2, 3, 2, 2), True, True, random)
    cell = cell_of("lstm", (2, 3, 2, 2), True, True)
    made, saved = call(cell, True, arrays, None, (False, True, False), saving=True)
    whole, alone = np.empty(arrays[0].shape), np.empty(arrays[0].shape)
    kernel = np.empty(arrays[3].shape)
    none = (None, None, None)
    saved.backward((made[0], None, None), (whole, None, None, kernel, None, None))
    saved.backward((made[0], None, None), (alone, None, None, *none))
    np.testing.assert_array_equal(whole, alone)
    assert abs(kernel).min() > 0
    zeros = np.full(arrays[0].shape, np.nan)
    saved.backward(none, (zeros, None, None, *none))
    assert not zeros.any()


def test_packed_weights_are_never_stale():
    sizes = (2, 3, 4, 5)
    cell = cell_of("gru", sizes, True, True, "float32")
    random = np.random.default_rng(2)
    arrays = [a.astype("float32") for a in arrays_of("gru", sizes, True, True, random)]
    flags = (False, False, False)
    first, _ = call(cell, False, arrays, None, flags)
    call(cell, False, [None if a is None else a.copy() for a in arrays], None, flags)
    assert cell.packings == 1
    for n in (3, 4, 5):
        arrays[n].flat[-1] += 1
        other, _ = call(cell, False, arrays, None, flags)
        fresh, _ = call(cell_of("gru", sizes, True, True, "float32"), False, arrays, None, flags)
        np.testing.assert_array_equal(other[0], fresh[0])
        assert (other[0] != first[0]).any()
        first = other
    assert cell.packings == 4


def test_errors():
    sizes = (2, 3, 4, 5)
    cell = cell_of("lstm", sizes, True, True)
    arrays = arrays_of("lstm", sizes, True, True, np.random.default_rng(3))
    flags = (False, True, False)

    def refused(text, n=None, array=None, mask=None):
        given = list(arrays)
        if n is not None:
            given[n] = array
        with pytest.raises(openrnn.ArgumentError, match=text):
            call(cell, True, given, mask, flags)

    refused(r"kernel has shape \[4, 3\], expected \[4, 20\]", 3, np.zeros((4, 3)))
    refused(r"h0 has shape \[3, 5\], expected \[2, 5\]", 1, np.zeros((3, 5)))
    refused("a bias if, and only if", 5, None)
    refused(r"^\[KerasCell\] x is float32, expected float64$", 0, arrays[0].astype("float32"))
    refused(r"^\[KerasCell\] bias is complex128, expected float64$", 5, arrays[5].astype(complex))
    refused(r"mask has shape \[2, 4\], expected \[2, 3\]", mask=np.ones((2, 4), bool))
    refused(r"^\[KerasCell\] mask is uint8, expected bool$", mask=np.ones((2, 3), "uint8"))
    refused("^.KerasCell. bias is None, expected a bias if, and only if, the cell has one$", 5, None)
    refused("x has 0 steps", 0, np.zeros((2, 0, 4)))
    refused("x is not three-dimensional", 0, np.zeros((2, 4)))
    with pytest.raises(openrnn.ArgumentError, match="dtype float16, expected float32 or float64"):
        cell_of("lstm", sizes, True, True, "float16")
    with pytest.raises(openrnn.ArgumentError, match="3 arrays, expected 6 or None in a place"):
        cell.forward(arrays[:3], None, flags, False, arrays[:3])
    with pytest.raises(openrnn.ArgumentError, match="is None, expected a kernel and a recurrent_kernel"):
        cell.forward([*arrays[:3], None, *arrays[4:]], None, flags, False, made_for(arrays))
    with pytest.raises(openrnn.ArgumentError, match="y or hn is None, expected y and hn to be written"):
        cell.forward(arrays, None, flags, False, [made_for(arrays)[0], None, arrays[2].copy()])
    with pytest.raises(openrnn.ArgumentError, match="2 layers, expected one"):
        _core.KerasCell({"rnn_mode": "lstm", "num_units": 2, "input_size": 1, "num_layers": 2})
