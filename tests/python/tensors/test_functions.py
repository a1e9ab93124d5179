"""Each function against NumPy: at once and in a Model, several dtypes, odd and empty shapes."""

import numpy as np
import openrnn
import pytest

rng = np.random.default_rng(7)
EPS = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-6, "float64": 1e-12}


def positive(*shape):
    return rng.uniform(0.3, 2.0, shape)


def signed(*shape):
    return rng.normal(size=shape)


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def cross_entropy(z, x):
    return np.maximum(x, 0) - x * z + np.log1p(np.exp(-np.abs(x)))


r = openrnn
# (ours, NumPy's, operands)
FUNCTIONS = {
    "add a row": (r.add, np.add, [signed(3, 5), signed(5)]),
    "add a column": (r.add, np.add, [signed(3, 1), signed(1, 7)]),
    "subtract": (r.subtract, np.subtract, [signed(5), signed(3, 5)]),
    "multiply": (r.multiply, np.multiply, [signed(2, 1, 3), signed(4, 1)]),
    "divide": (r.divide, np.divide, [signed(3, 1), positive(3, 7)]),
    "of nothing": (r.multiply, np.multiply, [signed(0, 3), signed(1, 3)]),
    "maximum": (r.maximum, np.maximum, [signed(3, 1), signed(17)]),
    "minimum": (r.minimum, np.minimum, [signed(3, 1), signed(17)]),
    "pow": (r.pow, np.power, [positive(3, 1), signed(5)]),
    "square root": (lambda x: x**0.5, np.sqrt, [positive(7)]),
    "cube": (lambda x: x**3, lambda x: x**3, [signed(7)]),
    "two to the": (lambda x: 2.0**x, lambda x: 2.0**x, [signed(7)]),
    "log": (r.log, np.log, [positive(3, 17)]),
    "softplus": (r.nn.softplus, lambda x: np.log1p(np.exp(x)), [signed(17)]),
    "clip": (r.clip_by_value, np.clip, [signed(3, 5), -positive(5), positive(3, 1)]),
    "where": (lambda x, y: r.where(x > 0, x, y), lambda x, y: np.where(x > 0, x, y),
              [signed(3, 5), signed(5)]),
    "sum": (r.reduce_sum, np.sum, [signed(3, 5)]),
    "sum 0": (lambda x: r.reduce_sum(x, 0), lambda x: x.sum(0), [signed(3, 5)]),
    "sum -1 kept": (lambda x: r.reduce_sum(x, axis=-1, keepdims=True),
                    lambda x: x.sum(-1, keepdims=True), [signed(3, 1, 5)]),
    "sum of two": (lambda x: r.reduce_sum(x, (0, -1)), lambda x: x.sum((0, 2)), [signed(3, 7, 5)]),
    "sum of none": (lambda x: r.reduce_sum(x, ()), lambda x: x.sum(()), [signed(3, 5)]),
    "sum of nothing": (lambda x: r.reduce_sum(x, 0), lambda x: x.sum(0), [signed(0, 5)]),
    "mean": (lambda x: r.reduce_mean(x, 1), lambda x: x.mean(1), [signed(3, 7, 5)]),
    "max": (lambda x: r.reduce_max(x, 1), lambda x: x.max(1), [signed(3, 7, 5)]),
    "max of all": (lambda x: r.reduce_max(x, keepdims=True), lambda x: x.max(keepdims=True),
                   [signed(3, 7)]),
    "min": (lambda x: r.reduce_min(x, [0, 1]), lambda x: x.min((0, 1)), [signed(3, 7, 5)]),
    "variance": (lambda x: r.reduce_variance(x, 0), lambda x: x.var(0), [signed(17, 3)]),
    "std": (lambda x: r.reduce_std(x, 0), lambda x: x.std(0), [signed(17, 3)]),
    "logsumexp": (lambda x: r.reduce_logsumexp(x, 1), lambda x: np.log(np.exp(x).sum(1)),
                  [signed(3, 7)]),
    "softmax": (lambda x: r.nn.softmax(x, 0), lambda x: softmax(x, 0), [signed(3, 7)]),
    "log_softmax": (lambda x: r.nn.log_softmax(x, axis=1), lambda x: np.log(softmax(x, 1)),
                    [signed(3, 7, 2)]),
    "transpose": (r.transpose, np.transpose, [signed(3, 7, 5)]),
    "transpose perm": (lambda x: r.transpose(x, [1, 2, 0]), lambda x: x.transpose(1, 2, 0),
                       [signed(3, 7, 5)]),
    "tile": (lambda x: r.tile(x, [2, 3]), lambda x: np.tile(x, (2, 3)), [signed(3, 1)]),
    "broadcast_to": (lambda x: r.broadcast_to(x, (4, 3, 5)),
                     lambda x: np.broadcast_to(x, (4, 3, 5)), [signed(3, 1)]),
    "expand_dims": (lambda x: r.expand_dims(x, 1), lambda x: x[:, None], [signed(3, 5)]),
    "squeeze": (lambda x: r.squeeze(x, 1), lambda x: x.squeeze(1), [signed(3, 1, 5)]),
    "gather": (lambda x: r.gather(x, [[2, 0], [0, 0]], axis=1),
               lambda x: np.take(x, [[2, 0], [0, 0]], axis=1), [signed(2, 3, 5)]),
    "zeros_like": (r.zeros_like, np.zeros_like, [signed(3, 5)]),
    "ones_like": (r.ones_like, np.ones_like, [signed(3, 5)]),
    "matmul": (r.matmul, np.matmul, [signed(2, 1, 3, 5), signed(4, 5, 7)]),
    "matmul transposed": (lambda a, b: r.matmul(a, b, True, True),
                          lambda a, b: np.swapaxes(a, 1, 2) @ np.swapaxes(b, 1, 2),
                          [signed(3, 5, 2), signed(3, 7, 5)]),
    "einsum": (lambda a, b: r.einsum("bij,jk->kbi", a, b),
               lambda a, b: np.einsum("bij,jk->kbi", a, b), [signed(2, 3, 5), signed(5, 7)]),
    "einsum implied": (lambda a, b: r.einsum("ji,jk", a, b), lambda a, b: np.einsum("ji,jk", a, b),
                       [signed(5, 3), signed(5, 2)]),
    "einsum of one": (lambda a: r.einsum("abc->ca", a), lambda a: np.einsum("abc->ca", a),
                      [signed(2, 3, 5)]),
    "logits": (lambda x, z: r.nn.sigmoid_cross_entropy_with_logits(z, x),
               lambda x, z: cross_entropy(z, x), [4 * signed(3, 5), rng.uniform(size=5)]),
    "step of 2": (lambda x: x[::2, 1::3], lambda x: x[::2, 1::3], [signed(5, 7)]),
    "backwards": (lambda x: x[::-1, ..., -1:0:-2], lambda x: x[::-1, ..., -1:0:-2],
                  [signed(3, 2, 7)]),
    "dots": (lambda x: x[..., 0, None], lambda x: x[..., 0, None], [signed(3, 2, 7)]),
    "array": (lambda x: x[:, [2, -1, 0]], lambda x: x[:, [2, -1, 0]], [signed(3, 5)]),
    "two arrays": (lambda x: x[:, np.array([[0], [1]]), np.array([3, -1, 3])],
                   lambda x: x[:, np.array([[0], [1]]), np.array([3, -1, 3])], [signed(3, 2, 7)]),
    "tuple as an array": (lambda x: x[:, (2, -1, 0)], lambda x: x[:, (2, -1, 0)], [signed(3, 5)]),
    "mask": (lambda x: x[:, np.array([True, False, True])],
             lambda x: x[:, np.array([True, False, True])], [signed(2, 3)]),
}  # fmt: skip
DTYPES = ["float64", "float32", "float16", "bfloat16"]


def close(found, wanted, dtype):
    found = np.asarray(found)
    assert found.shape == np.shape(wanted)
    np.testing.assert_allclose(found.astype("f8"), wanted, rtol=EPS[dtype], atol=8 * EPS[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name, dtype):
    ours, numpys, operands = FUNCTIONS[name]
    given = [openrnn.cast(openrnn.Tensor(one), dtype) for one in operands]
    exact = [openrnn.cast(one, "float64").numpy() for one in given]
    close(openrnn.cast(ours(*given), "float64"), numpys(*exact), dtype)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_in_a_model(name, known):
    ours, _, operands = FUNCTIONS[name]
    if not known and name in ("two arrays",):
        pytest.skip("sizes that are indexed by several arrays are known")
    shapes = [
        one.shape if known or one.ndim == 0 else (None, *one.shape[1:]) for one in operands
    ]
    inputs = [openrnn.Input(batch_shape=shape, dtype="float64") for shape in shapes]
    output = ours(*inputs)
    assert output.is_symbolic
    wanted = ours(*[openrnn.Tensor(one) for one in operands])
    assert len(output.shape) == wanted.ndim
    for size, real in zip(output.shape, wanted.shape, strict=True):
        assert size in (None, real)
    found = openrnn.Model(inputs, output)(operands if len(operands) > 1 else operands[0])
    np.testing.assert_array_equal(found.numpy(), wanted.numpy())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(name):
    ours, _, operands = FUNCTIONS[name]
    if name in ("zeros_like", "ones_like"):
        return
    weights = rng.normal(size=ours(*[openrnn.Tensor(one) for one in operands]).shape)

    def loss(*values):
        return openrnn.reduce_sum(openrnn.multiply(ours(*values), weights))

    given = [openrnn.Tensor(one) for one in operands]
    with openrnn.GradientTape() as tape:
        for one in given:
            tape.watch(one)
        value = loss(*given)
    found = tape.gradient(value, given)
    for i, gradient in enumerate(found):
        assert gradient.shape == operands[i].shape
        for at in list(np.ndindex(operands[i].shape))[:12]:
            moved = []
            for delta in (1e-5, -1e-5):
                shifted = [one.copy() for one in operands]
                shifted[i][at] += delta
                moved.append(float(loss(*[openrnn.Tensor(one) for one in shifted])))
            slope = (moved[0] - moved[1]) / 2e-5
            assert abs(gradient.numpy()[at] - slope) < 1e-6 * (1 + abs(slope)), (i, at)


NAN = np.array([[1.0, np.nan, 3.0], [np.inf, 2.0, -np.inf]])


@pytest.mark.parametrize("name", ["max", "min"])
def test_a_nan_is_the_maximum(name):
    for axis in (None, 0, 1):
        found = getattr(openrnn, "reduce_" + name)(NAN, axis)
        np.testing.assert_array_equal(found, getattr(np, name)(NAN, axis))
    for name in ("argmax", "argmin"):
        for axis in (0, 1, -1):
            np.testing.assert_array_equal(getattr(openrnn, name)(NAN, axis),
                                          getattr(np, name)(NAN, axis))  # fmt: skip


@pytest.mark.parametrize("name", ["less", "less_equal", "greater", "greater_equal", "equal", "not_equal"])
def test_comparisons(name):
    x, y = np.array([[1.0], [np.nan], [2.0]]), np.array([1.0, 2.0])
    found = getattr(openrnn, name)(x, y)
    assert found.dtype == "bool"
    np.testing.assert_array_equal(found, getattr(np, name)(x, y))
    whole = np.array([3, 1, 2])
    np.testing.assert_array_equal(getattr(openrnn, name)(whole, 2), getattr(np, name)(whole, 2))


def test_accuracy_of_classes():
    logits, labels = signed(7, 3), rng.integers(0, 3, 7)
    right = openrnn.equal(openrnn.argmax(logits, 1), labels.astype("int32"))
    assert float(openrnn.reduce_mean(openrnn.cast(right, "float32"))) == pytest.approx(
        np.mean(logits.argmax(1) == labels)
    )


def test_zeros_and_ones():
    assert openrnn.zeros((2, 0, 3)).shape == (2, 0, 3)
    assert openrnn.ones([2], "bfloat16").dtype == "bfloat16"
    np.testing.assert_array_equal(openrnn.ones((2, 3), "int32"), np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"\[zeros\] shape is \(-1,\), expected sizes"):
        openrnn.zeros([-1])


ERRORS = {
    "shapes": (lambda: r.add(signed(2), signed(3)), ValueError,
               r"\[add\] b has shape \[3\], expected one that broadcasts with \[2\] of a"),
    "axis": (lambda: r.reduce_sum(signed(2), 1), ValueError,
             r"\[reduce_sum\] axis is 1, expected -1 to 0"),
    "twice": (lambda: r.reduce_max(signed(2, 2), (0, -2)), ValueError, "each axis once"),
    "no maximum": (lambda: r.reduce_max(signed(0)), ValueError, "at least one element"),
    "perm": (lambda: r.transpose(signed(2, 3), [0]), ValueError, "each of the 2 axes once"),
    "tile": (lambda: r.tile(signed(2, 3), [1]), ValueError, "one an axis"),
    "squeeze": (lambda: r.squeeze(signed(2, 3), 0), ValueError, "expected 1 along axis 0"),
    "gather": (lambda: r.gather(signed(2, 3), [3], 1), ValueError, "expected at least 0 and below 3"),
    "einsum": (lambda: r.einsum("ii->i", signed(2, 2)), NotImplementedError, "'i' once in an operand"),
    "einsum sizes": (lambda: r.einsum("ij,jk", signed(2, 3), signed(2, 3)), ValueError,
                     "one size of 'j', not 3 and 2"),
    "index": (lambda: r.Tensor(signed(3))[[3]], IndexError, "the index is 3, expected -3 to 2"),
    "floats": (lambda: r.Tensor(signed(3))[[1.5]], TypeError, "expected integers or truth values"),
    "apart": (lambda: r.Tensor(signed(3, 3, 3))[[0], :, [0]], NotImplementedError, "side by side"),
    "mask": (lambda: r.Tensor(signed(3))[np.array([True])], IndexError, "the mask has shape"),
    "two ellipses": (lambda: r.Tensor(signed(3, 2))[..., 0, ...], IndexError, "two ellipses"),
    "arrays apart": (lambda: r.Tensor(signed(3, 4))[[0, 1], [0, 1, 2]], IndexError,
                     r"an index of shape \[3\], expected one that broadcasts with \[2\]"),
    "mask and array": (lambda: r.Tensor(signed(2, 3))[[True, False], [0]], NotImplementedError,
                       "a mask beside other arrays"),
    "truth value": (lambda: r.Tensor(signed(3))[np.True_], TypeError, "the index is a bool"),
    "labels": (lambda: r.nn.ctc_loss([[3]], signed(4, 1, 3)), ValueError,
               r"labels\[0, 0\] is 3, expected 0 to 2 but the blank, 0"),
    "epsilon": (lambda: r.losses.binary_cross_entropy(signed(2), signed(2), epsilon=0.5), ValueError,
                "epsilon is 0.5, expected 0 to below 0.5"),
    "cast": (lambda: r.cast(np.array([1e10]), "int32"), ValueError, "element 0 is 1e.10, expected"),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    call, error, text = ERRORS[name]
    with pytest.raises(error, match=text):
        call()


def test_axes_of_a_squeeze():
    x = signed(1, 3, 1, 5, 1)
    for axis, shape in (([0], (3, 1, 5, 1)), ((0, 2), (3, 5, 1)), ([-1, 0], (3, 1, 5)), ([], x.shape), (None, (3, 5))):
        np.testing.assert_array_equal(r.squeeze(x, axis), x.reshape(shape))
        assert r.squeeze(x, axis).shape == shape


def test_binary_cross_entropy():
    x, z = 3 * signed(3, 5), rng.uniform(size=(3, 5))
    p = 1 / (1 + np.exp(-x))
    wanted = np.mean(cross_entropy(z, x))
    close(r.losses.binary_cross_entropy(z, x, True), wanted, "float64")
    close(r.losses.binary_cross_entropy(z, p), wanted, "float64")
    far = r.losses.binary_cross_entropy(np.array([0.0, 1.0]), np.array([-1e4, 1e4]), True)
    assert float(far) == 0.0
    assert float(r.losses.binary_cross_entropy([1.0], [0.0], epsilon=0.25)) == pytest.approx(np.log(4))
    # 1 - 1e-7 is 1 in 16 bits.
    for dtype, error in (("float64", 1e-9), ("float32", 1e-5), ("float16", 0.2), ("bfloat16", 0.2)):
        z, p = (r.cast([0.0, 1.0, 1.0, 0.0], dtype), r.cast([0.0, 1.0, 0.0, 1.0], dtype))
        assert float(r.losses.binary_cross_entropy(z[:2], p[:2])) <= 2e-7, dtype
        wrong = float(r.losses.binary_cross_entropy(z[2:], p[2:]))
        assert wrong == pytest.approx(-np.log(1e-7), abs=error), dtype
