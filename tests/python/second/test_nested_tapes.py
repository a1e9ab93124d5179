"""Gradients of gradients: tapes inside tapes, jvp, hvp."""

import numpy as np
import openrnn
import pytest
from openrnn import cudnn_rnn, nn

from table.support import array


def random(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-0.9, 0.9, shape)


def differences(function, x, delta=1e-5):
    """Central differences of an array by each element of x."""
    found = []
    for k in range(x.size):
        step = np.zeros(x.size)
        step[k] = delta
        step = step.reshape(x.shape)
        found.append((function(x + step) - function(x - step)) / (2 * delta))
    return np.stack(found, -1)


def test_nested_tapes():
    x = openrnn.constant(random(3, 2))
    with openrnn.GradientTape() as outer:
        outer.watch(x)
        with openrnn.GradientTape() as inner:
            y = openrnn.reduce_sum(x * x * x)
        slope = inner.gradient(y, x)
    curve = outer.gradient(slope, x)
    np.testing.assert_allclose(array(slope), 3 * array(x) ** 2, rtol=1e-14)
    np.testing.assert_allclose(array(curve), 6 * array(x), rtol=1e-14)
    assert inner.gradient(y, x).numpy().tolist() == slope.numpy().tolist()


def test_inside_its_own_statement_a_tape_does_not_record_itself():
    x = openrnn.constant([2.0])
    with openrnn.GradientTape() as tape:
        tape.watch(x)
        slope = tape.gradient(openrnn.square(x), x)
    assert slope.numpy().tolist() == [4.0]
    assert tape.gradient(slope, x) is None


def test_gradient_penalty_of_a_layer():
    layer = cudnn_rnn.CudnnGRU(1, 3, dtype="float64")
    x = openrnn.constant(random(4, 2, 3))
    layer.build(x.shape)

    def penalty(kernel):
        layer.kernel.assign(kernel)
        with openrnn.GradientTape() as outer:
            outer.watch(x)
            with openrnn.GradientTape() as inner:
                y, _ = layer(x)
                score = openrnn.reduce_sum(openrnn.square(y))
            slope = inner.gradient(score, x)
            value = openrnn.reduce_sum(openrnn.square(slope))
        return float(value), outer.gradient(value, layer.kernel)

    kernel = layer.kernel.numpy() + 0.1
    value, found = penalty(kernel)
    expected = differences(lambda k: np.array(penalty(k)[0]), kernel)
    assert value > 0
    np.testing.assert_allclose(array(found), expected, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("make", [
    lambda: nn.rnn_cell.BasicLSTMCell(2, dtype="float64"),
    lambda: nn.rnn_cell.GRUCell(2, dtype="float64"),
    lambda: cudnn_rnn.CudnnCompatibleLSTMCell(2),
    lambda: cudnn_rnn.CudnnCompatibleGRUCell(2),
])
def test_cells_are_operations(make):
    openrnn.reset_default_graph()
    cell = make()
    dtype = "float64" if "Basic" in type(cell).__name__ or type(cell) is nn.rnn_cell.GRUCell else "float32"
    x, v = random(1, 3).astype(dtype), random(1, 3, seed=1).astype(dtype)

    def output(x):
        return cell(x, cell.zero_state(1, dtype))[0]

    def loss(x):
        return openrnn.reduce_sum(openrnn.square(output(x)))

    output(openrnn.constant(x))

    def slope(x):
        x = openrnn.constant(x.astype(dtype))
        with openrnn.GradientTape() as tape:
            tape.watch(x)
            y = loss(x)
        return array(tape.gradient(y, x)).astype("float64")

    expected = (slope(x + 1e-2 * v) - slope(x - 1e-2 * v)) / 2e-2
    np.testing.assert_allclose(array(openrnn.hvp(loss, [x], [v])[0]), expected, atol=2e-4)


def test_jvp_keeps_the_structure_and_is_the_derivative():
    layer = cudnn_rnn.CudnnLSTM(1, 3, dtype="float64")
    x, v = random(4, 2, 3), random(4, 2, 3, seed=1)
    outputs, tangents = openrnn.jvp(layer, [x], [v])
    (y, (h, c)), (dy, (dh, dc)) = outputs, tangents
    np.testing.assert_array_equal(array(y), array(layer(x)[0]))
    for of, found in [(lambda r: r[0], dy), (lambda r: r[1][0], dh), (lambda r: r[1][1], dc)]:
        difference = array(of(layer(x + 1e-6 * v))) - array(of(layer(x - 1e-6 * v)))
        np.testing.assert_allclose(array(found), difference / 2e-6, atol=1e-8)
    assert h.shape == dh.shape and c.shape == dc.shape


def test_jvp_of_what_does_not_depend_and_of_one_tensor():
    value, tangent = openrnn.jvp(lambda a: openrnn.constant([1.0, 2.0]), [[3.0]], [[1.0]])
    assert tangent.numpy().tolist() == [0.0, 0.0] and value.numpy().tolist() == [1.0, 2.0]
    x = openrnn.constant([3.0])
    _, tangent = openrnn.jvp(lambda a, b: a * a * b, [x, x], [[1.0], [2.0]])
    assert tangent.numpy().tolist() == [36.0]


def test_jvp_of_a_variable_under_a_tape():
    v = openrnn.Variable(np.array([1.5, -0.5]), name="v")
    direction = np.array([0.5, 2.0])
    with openrnn.GradientTape() as tape:
        _, tangent = openrnn.jvp(lambda a: openrnn.reduce_sum(a * a * a), [v], [direction])
    np.testing.assert_allclose(float(tangent), np.sum(3 * v.numpy() ** 2 * direction))
    np.testing.assert_allclose(array(tape.gradient(tangent, v)), 6 * v.numpy() * direction)


def test_vectors_take_the_dtype_of_their_primals():
    x = np.array([1.0, 2.0])
    cube = lambda a: openrnn.reduce_sum(a * a * a)
    assert openrnn.hvp(cube, [x], [[1.0, 0.5]])[0].numpy().tolist() == [6.0, 6.0]
    _, tangent = openrnn.jvp(cube, [x], [[1, 1]])
    assert tangent.dtype == "float64" and float(tangent) == 15.0


def test_hvp_of_several():
    a, b = random(3), random(3, seed=1)
    va, vb = random(3, seed=2), random(3, seed=3)
    found = openrnn.hvp(lambda a, b: openrnn.reduce_sum(a * a * b + b), [a, b], [va, vb])
    np.testing.assert_allclose(array(found[0]), 2 * b * va + 2 * a * vb, rtol=1e-13)
    np.testing.assert_allclose(array(found[1]), 2 * a * va, rtol=1e-13)


def test_what_was_computed_before_the_outer_tape_is_named():
    x = openrnn.constant([1.0])
    with openrnn.GradientTape() as inner:
        inner.watch(x)
        y = openrnn.exp(x)
        with openrnn.GradientTape() as outer:
            slope = inner.gradient(y, x)
    with pytest.raises(NotImplementedError, match="'exp' was recorded before the outer tape"):
        outer.gradient(slope, x)


def test_the_third_derivative_of_a_recurrent_call_is_named():
    layer = cudnn_rnn.CudnnGRU(1, 3)
    x = openrnn.constant(random(2, 1, 3).astype("float32"))
    with openrnn.GradientTape() as third:
        third.watch(x)
        with openrnn.GradientTape() as second:
            with openrnn.GradientTape() as first:
                y = openrnn.reduce_sum(openrnn.square(layer(x)[0]))
            slope = openrnn.reduce_sum(openrnn.square(first.gradient(y, x)))
        curve = second.gradient(slope, x)
    with pytest.raises(NotImplementedError, match="third derivative of"):
        third.gradient(curve, x)


@pytest.mark.parametrize("call, message", [
    (lambda: openrnn.jvp(openrnn.exp, [[1.0]], []), "[jvp] 0 tangents, expected 1, one a primal"),
    (lambda: openrnn.hvp(openrnn.exp, [[1.0]], [1, 2, 3]), "[hvp] 3 vectors, expected 1, one a primal"),
    (lambda: openrnn.hvp(openrnn.exp, [[1.0]], [[1.0, 2.0]]),
     "[hvp] vectors[0] has shape (2,), expected (1,) as its primal"),
    (lambda: openrnn.jvp(openrnn.add, [[1.0], [[1.0, 2.0]]], [[1.0], [1.0, 2.0]]),
     "[jvp] tangents[1] has shape (2,), expected (1, 2) as its primal"),
    (lambda: openrnn.hvp(openrnn.exp, [[[1.0], [2.0]]], [[[1.0], [2.0]]]),
     "[hvp] the function returned shape (2, 1), expected one element"),
])  # fmt: skip
def test_errors(call, message):
    with pytest.raises(ValueError) as raised:
        call()
    assert str(raised.value) == message


def test_products_that_are_zero():
    """Where the function is linear, and where it does not depend on a primal."""
    x, y = random(2, 3), openrnn.constant(random(4).astype("float32"))
    z, v = random(1, 1), random(2, 3, seed=4)
    given = [x, y, z], [v, [1, 2, 3, 4], [[5.0]]]
    linear = lambda a, b, c: openrnn.reduce_sum(a * a) + openrnn.reduce_sum(c)
    found = openrnn.hvp(linear, *given)
    assert isinstance(found, list)
    assert [(each.shape, each.dtype) for each in found] == [((2, 3), "float64"), ((4,), "float32"), ((1, 1), "float64")]
    np.testing.assert_allclose(array(found[0]), 2 * v, rtol=1e-14)
    assert not array(found[1]).any() and not array(found[2]).any()
    cubes = lambda a, b, c: openrnn.reshape(openrnn.reduce_sum(c * c * c), [1, 1])
    np.testing.assert_allclose(array(openrnn.hvp(cubes, *given)[2]), 6 * z * 5, rtol=1e-14)
    outputs, tangents = openrnn.jvp(lambda a, b, c: (b + b, openrnn.constant(x), [c]), *given)
    assert array(tangents[0]).tolist() == [2, 4, 6, 8] and tangents[0].dtype == "float32"
    assert tangents[1].shape == (2, 3) and tangents[1].dtype == "float64" and not array(tangents[1]).any()
    assert array(tangents[2][0]).tolist() == [[5.0]] and array(outputs[2][0]) == z
