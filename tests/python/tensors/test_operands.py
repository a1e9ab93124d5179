"""Operands of rare kinds, and what stands beside a tensor as a number."""

import numpy as np
import openrnn
import pytest

X = np.random.default_rng(5).normal(size=(2, 3, 5))
T = openrnn.Tensor(X)


def test_bounds_that_are_numbers_arrays_or_both():
    low, high = -np.abs(X[0, :, :1]), np.abs(X[1, :, :1])
    for a, b in ((-0.5, 0.25), (low, 0.25), (-0.5, high), (low, high)):
        np.testing.assert_array_equal(openrnn.clip_by_value(T, a, b), np.clip(X, a, b))


def test_products_of_many_matrices_and_one():
    w = np.random.default_rng(6).normal(size=(5, 7))
    flipped = np.ascontiguousarray(w.T)
    wanted = X @ w
    np.testing.assert_allclose(openrnn.matmul(T, w), wanted, rtol=1e-13)
    np.testing.assert_allclose(openrnn.matmul(T, flipped, transpose_b=True), wanted, rtol=1e-13)
    upright = openrnn.Tensor(np.ascontiguousarray(X.swapaxes(1, 2)))
    np.testing.assert_allclose(openrnn.matmul(upright, w, transpose_a=True), wanted, rtol=1e-13)
    np.testing.assert_allclose(openrnn.matmul(upright, flipped, True, True), wanted, rtol=1e-13)
    np.testing.assert_allclose(T @ w, wanted, rtol=1e-13)


def test_one_element_is_a_number_only_where_its_shape_adds_nothing():
    x = openrnn.constant([1.0, 2.0, 4.0])
    for one in (2.0, np.float32(2), openrnn.constant(2.0), openrnn.constant([2.0])):
        for made, wanted in ((one * x, [2, 4, 8]), (x - one, [-1, 0, 2]), (one - x, [1, 0, -2]), (one / x, [2, 1, 0.5])):
            assert made.shape == (3,)
            np.testing.assert_array_equal(made, wanted)
    for other in (openrnn.constant([[2.0]]), np.array([[2.0]], "float32")):
        for made in (other * x, x + other, x - other, other / x):
            assert made.shape == (1, 3)
    assert (openrnn.constant([3.0]) - openrnn.constant([1.0])).numpy().tolist() == [2.0]
    with pytest.raises(ValueError, match=r"^\[multiply\] a is int32 of shape \[1\], expected a floating tensor$"):
        openrnn.constant([2]) * x  # noqa: B018
    row = openrnn.constant(X[0, 0])
    np.testing.assert_array_equal(T - row, X - X[0, 0])
    np.testing.assert_array_equal(row - T, X[0, 0] - X)
    np.testing.assert_array_equal(row + row, 2 * X[0, 0])


def test_the_other_operand_takes_the_dtype():
    wide = openrnn.constant(np.array([0.5, 0.7]))
    loss = openrnn.losses.mean_squared_error([0.1, 0.2], wide)
    assert loss.dtype == "float64" and float(loss) == pytest.approx(0.205, abs=1e-15)
    assert ([0.1, 0.2] * wide).numpy().tolist() == [0.1 * 0.5, 0.2 * 0.7]
    assert openrnn.maximum([0.1, 0.9], wide).numpy().tolist() == [0.5, 0.9]
    np.testing.assert_array_equal(wide**1, wide)
    np.testing.assert_array_equal(wide**2, wide.numpy() * wide.numpy())


def test_names_of_variables():
    with openrnn.Graph().as_default():
        with openrnn.variable_scope("s"):
            first = openrnn.get_variable("v", (2,))
            others = [openrnn.Variable(1.0, name="v") for _ in range(2)]
        assert [v.name for v in (first, *others)] == ["s/v", "s/v_1", "s/v_2"]
        plain = openrnn.get_variable("v_1", (2,))
        outer = [openrnn.Variable(1.0, name="v") for _ in range(2)]
        assert [v.name for v in (plain, *outer)] == ["v_1", "v", "v_2"]
        assert openrnn.Variable(lambda: np.array([1.5])).numpy().tolist() == [1.5]
        with pytest.raises(TypeError, match=r"^\[Variable\] the initial value is a symbolic tensor, expected one with a value$"):
            openrnn.Variable(openrnn.Input((3,)))
        with pytest.raises(ValueError, match=r"dl_device is \(10, 3\)"):
            openrnn.Variable(1.0).__dlpack__(dl_device=(10, 3))


def initialized(function, dtype="float32"):
    with openrnn.Graph().as_default():
        return openrnn.get_variable("w", (2,), dtype=dtype, initializer=function)


RETURNED = [
    (lambda shape, dtype: np.zeros(3), "float32", "float32 of shape [3], expected float32 of shape [2]"),
    (lambda shape, dtype: [1.0], "float64", "float64 of shape [1], expected float64 of shape [2]"),
    (lambda shape, dtype: openrnn.constant(np.zeros(2)), "float32", "float64 of shape [2], expected float32 of shape [2]"),
    (lambda shape, dtype: openrnn.Input(batch_shape=(2,)), "float32", "float32 of shape [2], expected float32 of shape [2]"),
]  # fmt: skip


@pytest.mark.parametrize("function, dtype, text", RETURNED, ids=["long", "short", "wide", "symbolic"])
def test_what_an_initializer_returns(function, dtype, text):
    with pytest.raises(ValueError) as caught:
        initialized(function, dtype)
    assert str(caught.value) == f"[initializer] it returned {text}"


def test_functions_of_python_in_the_variables_dtype():
    assert initialized(lambda shape, dtype: [0.1, 0.2], "float64").numpy().tolist() == [0.1, 0.2]
    with pytest.raises(TypeError, match=r"^\[initializer\] 'int' is given, expected a function of \(shape, dtype\)$"):
        initialized(3)
    with openrnn.Graph().as_default():
        sgd = openrnn.train.GradientDescentOptimizer(0.5)
        v = openrnn.get_variable("v", (2,), dtype="float64", constraint=lambda value: [0.1, 0.2])
        sgd.apply_gradients([([1.0, 1.0], v)])
        assert v.numpy().tolist() == [0.1, 0.2]
        w = openrnn.get_variable("w", (2,), constraint=lambda value: "a")
        with pytest.raises(TypeError, match=r"^\[get_variable\] an array of <U1, expected float32$"):
            sgd.apply_gradients([([1.0, 1.0], w)])


def test_what_is_said_of_every_option():
    options = {each["name"]: each for each in openrnn.network_options()}
    always = {name for name, each in options.items() if each["always"]}
    assert always == {"rnn_mode", "num_layers", "num_units", "input_size", "input_mode", "direction", "dropout", "seed",
                      "dtype", "num_proj", "math", "weights_dtype"}  # fmt: skip
    groups = {group: {n for n, each in options.items() if each["group"] == group} for group in ("training", "compute")}
    assert groups["compute"] == {"math", "weights_dtype"}
    assert {"dropout", "seed", "input_dropout", "recurrent_dropout_form"} <= groups["training"]
    assert "zoneout" not in groups["training"] and options["zoneout"]["group"] == "network"
    layer = openrnn.cudnn_rnn.CudnnLSTM(1, 2, cell_clip=(-0.25, 0.5))
    assert layer.get_config()["cell_clip"] == (-0.25, 0.5)
