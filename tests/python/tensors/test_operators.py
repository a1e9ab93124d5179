"""Operators of tensors and variables from both sides, arrays of values, and initializers."""

import operator

import numpy as np
import openrnn
import pytest
from openrnn import _core

X = np.array([[1.5, -2.0, 0.5], [3.0, 4.0, -1.25]])
MAKERS = {"tensor": openrnn.constant, "variable": openrnn.Variable}
each = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
BINARY = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
    "pow": operator.pow, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip


@pytest.fixture(autouse=True)
def own_graph():
    with openrnn.Graph().as_default():
        yield


@each
@pytest.mark.parametrize("name", BINARY)
def test_an_operator_from_both_sides(name, make):
    function = BINARY[name]
    positive, other = np.abs(X), np.array([0.5, 2.0, 3.0])
    pairs = [(positive, other), (positive, positive[::-1]), (positive, 2.0), (positive, 3)]
    for left, right in pairs:
        forms = [right]
        if not np.isscalar(right):
            forms += [right.tolist(), openrnn.constant(right), openrnn.Variable(right)]
        for form in forms:
            wanted = function(left, right)
            found = function(make(left), form)
            assert found.shape == wanted.shape and isinstance(found, openrnn.Tensor)
            np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6)
            if isinstance(form, list):
                continue  # a list's own operators come first
            back = function(form, make(left))
            np.testing.assert_allclose(np.asarray(back), function(right, left), rtol=1e-6)


@each
def test_products_and_signs(make):
    y = np.arange(12.0).reshape(3, 4) - 5
    for form in (y, y.tolist(), openrnn.constant(y), openrnn.Variable(y)):
        np.testing.assert_allclose((make(X) @ form).numpy(), X @ y, rtol=1e-6)
    np.testing.assert_allclose((y.T @ make(X.T)).numpy(), y.T @ X.T, rtol=1e-14)
    np.testing.assert_allclose((y.T.tolist() @ make(X.T)).numpy(), y.T @ X.T, rtol=1e-6)
    np.testing.assert_array_equal((-make(X)).numpy(), -X)
    np.testing.assert_array_equal(abs(make(X)).numpy(), np.abs(X))
    for operation in (operator.add, operator.sub, operator.mul, operator.truediv):
        for other in ("a", None, object()):
            for one, two in ((make(X), other), (other, make(X))):
                with pytest.raises(TypeError):
                    operation(one, two)


@each
def test_arrays_of_values(make):
    x = make(X)
    for dtype in (None, "float64", "float32", "int32"):
        for copy in (None, False, True):
            if dtype not in (None, "float64") and copy is False:
                continue
            found = x.__array__(dtype, copy) if copy is not None else x.__array__(dtype)
            assert found.dtype == (dtype or "float64")
            np.testing.assert_array_equal(found, X.astype(found.dtype))
            shares = np.shares_memory(found, x.__array__())
            assert shares == (not copy and dtype in (None, "float64"))
            assert found.flags.writeable == (not shares)
    assert not x.numpy().flags.writeable
    whole = np.array(x)
    whole[:] = 0
    np.testing.assert_array_equal(x.numpy(), X)


CHANGES = {"assign": lambda a, b: b, "assign_add": np.add, "assign_sub": np.subtract}


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int64"])
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_a_variable(name, dtype):
    start, by = np.array([5, -3, 7]).astype(dtype), np.array([2, 4, -1]).astype(dtype)
    for form in (by, by.tolist(), openrnn.constant(by, dtype), openrnn.Variable(by, dtype=dtype)):
        v = openrnn.Variable(start, dtype=dtype)
        before, kept = v.version, v.numpy()
        assert getattr(v, name)(form) is v
        assert v.version > before and v.dtype == dtype
        np.testing.assert_array_equal(v.numpy(), CHANGES[name](start, by))
        np.testing.assert_array_equal(kept, start)
    with pytest.raises(TypeError) as caught:
        getattr(v, name)(openrnn.Input(batch_shape=(3,), dtype=dtype))
    assert str(caught.value) == f"[{name}] a symbolic tensor, expected one with a value"


def test_names_of_variables_in_scopes():
    names = []
    for name in (None, "v", "v", None):
        names.append(openrnn.Variable(1.0, name=name).name)
    kept = openrnn.get_variable("w_1", ())  # a graph holds its variables weakly
    names += [openrnn.Variable(1.0, name="w").name for _ in range(2)]
    with openrnn.variable_scope("s"):
        names += [openrnn.Variable(1.0, name=name).name for name in ("v", "v", None)]
    wanted = ["Variable", "v", "v_1", "Variable_1", "w", "w_2", "s/v", "s/v_1", "s/Variable"]
    assert names == wanted and kept.name == "w_1"
    made = openrnn.Variable(lambda: [1.0, 2.0], False, "f", "float64")
    assert (made.name, made.trainable, made.dtype, made.shape) == ("f", False, "float64", (2,))
    with pytest.raises(TypeError) as caught:
        openrnn.Variable(openrnn.Input((2,)))
    text = "[Variable] the initial value is a symbolic tensor, expected one with a value"
    assert str(caught.value) == text


FILLS = {
    "constant": (0.75, 0.0), "random_uniform": (-2.0, -1.0), "random_normal": (10.0, 0.5),
    "glorot_uniform": (0.0, 0.0),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", FILLS)
def test_what_an_initializer_fills(kind, dtype):
    first, second = FILLS[kind]
    made = _core.NativeInitializer(kind, first, second)
    found = made.fill((40, 60), dtype, 3).numpy()
    assert found.dtype == dtype and found.shape == (40, 60)
    if kind == "constant":
        assert (found == 0.75).all()
        return
    low, high = {"random_uniform": (-2, -1), "random_normal": (7, 13)}.get(
        kind, (-np.sqrt(6 / 100), np.sqrt(6 / 100))
    )
    assert low <= found.min() < found.max() <= high
    uniform = (low + high) / 2, (high - low) / np.sqrt(12)
    middle, spread = {"random_normal": (10, 0.5)}.get(kind, uniform)
    assert abs(found.mean() - middle) < spread / 8 and abs(found.std() / spread - 1) < 0.05
    np.testing.assert_array_equal(made.fill((40, 60), dtype, 3), found)
    assert (made.fill((40, 60), dtype, 4).numpy() != found).any()
    seeded = _core.NativeInitializer(kind, first, second, 9)
    parts = [seeded.fill((40, 60), dtype, n).numpy() for n in (3, 3)]
    assert (parts[0] != parts[1]).any(), "each tensor has a stream of its own"
    again = _core.NativeInitializer(kind, first, second, 9)
    for part in parts:
        np.testing.assert_array_equal(again.fill((40, 60), dtype, 77), part)
    other = _core.NativeInitializer(kind, first, second, 10)
    assert (other.fill((40, 60), dtype, 3).numpy() != parts[0]).any()


def test_an_initializer_of_no_kind():
    with pytest.raises(openrnn.ArgumentError) as caught:
        _core.NativeInitializer("other")
    assert str(caught.value) == "[initializer] unknown kind 'other'"
