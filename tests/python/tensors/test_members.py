"""What a Tensor and a Variable do under NumPy's and Python's own names."""

import pickle

import numpy as np
import openrnn
import pytest

VALUE = np.arange(6.0).reshape(2, 3) - 2.5
KINDS = {"tensor": openrnn.Tensor, "variable": openrnn.Variable}
each = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)


@each
def test_numpy_members(make):
    x = make(VALUE)
    assert x.dtype == np.dtype("float64") and isinstance(x.dtype, np.dtype)
    assert x.dtype == "float64" and f"{x.dtype}" == "float64"
    assert (x.size, x.ndim, x.shape) == (6, 2, (2, 3))
    np.testing.assert_array_equal(x.T, VALUE.T)
    np.testing.assert_array_equal(x.transpose(1, 0), VALUE.T)
    np.testing.assert_array_equal(x.transpose((1, 0)), VALUE.T)
    np.testing.assert_array_equal(x.transpose(None), VALUE.T)
    np.testing.assert_array_equal(x.reshape(3, -1), VALUE.reshape(3, -1))
    np.testing.assert_array_equal(x.reshape((6,)), VALUE.reshape(6))
    np.testing.assert_array_equal(x.astype("int32"), VALUE.astype("int32"))
    assert x.astype(np.float32).dtype == np.float32
    for name in ("sum", "mean", "max", "min"):
        for axis in (None, 0, -1, (0, 1)):
            for keepdims in (False, True):
                found = getattr(x, name)(axis=axis, keepdims=keepdims)
                wanted = getattr(VALUE, name)(axis=axis, keepdims=keepdims)
                assert found.shape == wanted.shape
                np.testing.assert_allclose(found, wanted, rtol=1e-15)


@each
def test_python_protocols(make):
    x, scalar = make(VALUE), make(2.5)
    assert len(x) == 2 and [list(row.numpy()) for row in x] == VALUE.tolist()
    assert f"{scalar:.3f}" == "2.500" and f"{make(np.int32(7)):03d}" == "007"
    assert (float(scalar), int(scalar), bool(scalar), bool(make(0.0))) == (2.5, 2, True, False)
    assert int(make(np.int64(2**53 + 1))) == 2**53 + 1 and int(make(1e30)) == int(np.float32(1e30))
    with pytest.raises(ValueError, match="NaN to integer"):
        int(make(float("nan")))
    assert scalar.item() == 2.5 and type(make(np.int32(7)).item()) is int
    assert -2.5 in x and 7.0 not in x and "a" not in x
    assert x._repr_html_().startswith("<pre>&lt;openrnn.")
    assert f"{x}" == str(x)
    with pytest.raises(TypeError, match="the format is '.2f' for shape"):
        f"{x:.2f}"
    with pytest.raises(openrnn.ArgumentError, match="expected exactly one element"):
        bool(x)
    with pytest.raises(TypeError, match="no known first dimension"):
        len(scalar)


@each
def test_operators(make):
    x, column = make(VALUE), np.array([[2.0], [3.0]])
    for name in ("__lt__", "__le__", "__gt__", "__ge__"):
        np.testing.assert_array_equal(getattr(x, name)(0.5), getattr(VALUE, name)(0.5))
    np.testing.assert_array_equal(column < x, column < VALUE)
    np.testing.assert_array_equal(x * column, VALUE * column)
    np.testing.assert_array_equal(column - x, column - VALUE)
    np.testing.assert_allclose(x**3, VALUE**3, rtol=1e-15)
    np.testing.assert_allclose(2**x, 2**VALUE, rtol=1e-15)
    np.testing.assert_allclose(column**x, column**VALUE, rtol=1e-15)
    assert (x == x) is True and (x == make(VALUE)) is False and hash(x) == hash(x)
    with pytest.raises(TypeError):
        x < "a"  # noqa: B015


@each
def test_dlpack(make):
    x = make(VALUE)
    np.testing.assert_array_equal(np.from_dlpack(x), VALUE)
    assert x.__dlpack_device__() == (1, 0)
    if make is openrnn.Variable:
        kept = np.from_dlpack(x)
        x.assign_add(np.ones_like(VALUE))
        np.testing.assert_array_equal(kept, VALUE)


def test_gradients_flow_through_members():
    v = openrnn.Variable(VALUE)
    with openrnn.GradientTape() as tape:
        loss = ((v.T.reshape(6)[::-2] ** 3) * v.mean(1).max()).sum()
    found = tape.gradient(loss, v).numpy()
    flat, wanted = VALUE.T.reshape(6), np.zeros((3, 2))
    wanted.reshape(6)[::-2] = 3 * flat[::-2] ** 2 * VALUE.mean(1).max()
    wanted = wanted.T
    wanted[1] += (flat[::-2] ** 3).sum() / 3
    np.testing.assert_allclose(found, wanted, rtol=1e-13)


def test_members_of_symbolic_tensors():
    x = openrnn.Input(batch_shape=(None, 3))
    assert x.size is None and x.dtype == np.float32 and x.T.shape == (3, None)
    assert x[:, 0].shape == (None,) and x[-1].shape == (3,) and x[1:].shape == (None, 3)
    model = openrnn.Model(x, [x[-1], x[:, ::-1], x.mean(0), x[1:], x.max(axis=1, keepdims=True)])
    value = VALUE.astype("f4")
    wanted = [value[-1], value[:, ::-1], value.mean(0), value[1:], value.max(1, keepdims=True)]
    for found, right in zip(model(value), wanted, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-6)
    again = pickle.loads(pickle.dumps(model))
    for one, two in zip(model(value), again(value), strict=True):
        np.testing.assert_array_equal(one, two)
    with pytest.raises(TypeError, match="symbolic"):
        x.item()


def test_integers_and_masks_are_indexed():
    whole = openrnn.Tensor(np.arange(12, dtype="int32").reshape(3, 4))
    np.testing.assert_array_equal(whole[::-1, 1], np.arange(12).reshape(3, 4)[::-1, 1])
    assert [row.shape for row in whole] == [(4,)] * 3
    mask = openrnn.Tensor(VALUE) > 0
    np.testing.assert_array_equal(openrnn.Tensor(VALUE)[mask], VALUE[VALUE > 0])
    np.testing.assert_array_equal(openrnn.logical_not(mask), VALUE <= 0)
    np.testing.assert_array_equal(openrnn.logical_and(mask, [True, False, True]),
                                  (VALUE > 0) & [True, False, True])  # fmt: skip
    np.testing.assert_array_equal(openrnn.logical_or(mask, VALUE), (VALUE > 0) | (VALUE != 0))


def test_no_index_takes_nothing():
    found = openrnn.Tensor(VALUE)[[]]
    assert found.shape == (0, *VALUE.shape[1:])


def test_a_mask_over_a_size_that_is_not_known():
    x = openrnn.Input(batch_shape=(2, None))
    mask = np.array([[True, False], [True, True]])
    model = openrnn.Model(x, x[mask])
    value = np.arange(4, dtype="f4").reshape(2, 2)
    np.testing.assert_array_equal(model(value), value[mask])
