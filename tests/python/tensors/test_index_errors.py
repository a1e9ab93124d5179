"""Figures in the errors of indices and members, and the rare kinds of index."""

import itertools

import numpy as np
import openrnn
import pytest

X = np.arange(24, dtype="float32").reshape(2, 3, 4)
T = openrnn.Tensor(X)


def unknown(*shape, dtype="float32"):
    return openrnn.Input(batch_shape=shape, dtype=dtype)


BROADCASTS = "expected one that broadcasts with"
# (call, error, text)
INDICES = {
    "a truth value": (lambda: T[True], NotImplementedError,
                      "the index is True or False, expected an integer or an array"),
    "one float": (lambda: T[np.float32(1)], TypeError, "the index is a float32, expected an integer or an array"),
    "one half": (lambda: T[np.float16(1)], TypeError, "the index is a float16, expected an integer or an array"),
    "a bool": (lambda: T[openrnn.constant(True)], TypeError, "the index is a bool, expected an integer or an array"),
    "floats": (lambda: T[np.array([1.0])], TypeError,
               "the index is an array of float64, expected integers or truth values"),
    "symbolic floats": (lambda: T[unknown(2)], TypeError,
                        "the index is an array of float32, expected integers or truth values"),
    "text": (lambda: T["a"], TypeError, "'str', expected an integer"),
    "too many": (lambda: T[0, 0, 0, 0], IndexError, "4 indices for shape [2, 3, 4], expected fewer"),
    "too many in a mask": (lambda: T[np.ones((2, 3), bool), 0, 0], IndexError,
                           "4 indices for shape [2, 3, 4], expected fewer"),
    "above": (lambda: T[2], IndexError, "the index is 2, expected -2 to 1"),
    "below": (lambda: T[:, -4], IndexError, "the index is -4, expected -3 to 2"),
    "above in an array": (lambda: T[[0], [3]], IndexError, "the index is 3, expected -3 to 2"),
    "below in an array": (lambda: T[[0], [-4]], IndexError, "the index is -4, expected -3 to 2"),
    "another mask": (lambda: T[np.ones((2, 4), bool)], IndexError, "the mask has shape [2, 4], expected [2, 3]"),
    "a symbolic mask": (lambda: T[unknown(2, dtype="bool")], NotImplementedError,
                        "the index is a symbolic mask, expected one with values"),
    "arrays of a symbolic tensor": (lambda: unknown(None, 3)[[0], [1]], NotImplementedError,
                                    "several arrays as indices of a symbolic tensor, expected one"),
    "symbolic arrays": (lambda: T[unknown(2, dtype="int32"), [0, 1]], NotImplementedError,
                        "several arrays as indices of a symbolic tensor, expected one"),
    "arrays that do not fit": (lambda: T[[0, 1], [[0, 1, 2]]], IndexError,
                               f"an index of shape [1, 3], {BROADCASTS} [2]"),
    "two ellipses": (lambda: T[..., 0, ...], IndexError, "two ellipses, expected at most one"),
    "a slice between": (lambda: T[[0], :, [0]], NotImplementedError,
                        "arrays as indices with a slice between them, expected them side by side"),
    "a mask and an array": (lambda: T[[True, False], [0]], NotImplementedError,
                            "a mask beside other arrays, expected it as the only one"),
}  # fmt: skip


@pytest.mark.parametrize("name", INDICES)
def test_an_index_that_is_refused(name):
    call, error, text = INDICES[name]
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == f"[Tensor] {text}"


SYMBOLIC = "the tensor is symbolic, expected one with a value: call a Model"
FIRST = "the tensor has no known first dimension, expected one"
MEMBERS = [
    ("len", lambda: len(openrnn.Tensor(1.0)), FIRST),
    ("len", lambda: len(unknown(None, 2)), FIRST),
    ("len", lambda: list(openrnn.constant(3)), FIRST),
    ("len", lambda: list(unknown(None, 2, dtype="int32")), FIRST),
    ("format", lambda: format(openrnn.Tensor([1.0, 2.0]), ".2f"),
     "the format is '.2f' for shape [2], expected one element with a value"),
    ("format", lambda: format(unknown(1), ".3f"),
     "the format is '.3f' for shape [1], expected one element with a value"),
    ("in", lambda: 1.0 in unknown(2), SYMBOLIC),
    ("float", lambda: float(unknown()), SYMBOLIC),
    ("int", lambda: int(unknown()), SYMBOLIC),
    ("bool", lambda: bool(unknown()), SYMBOLIC),
    ("item", lambda: unknown().item(), SYMBOLIC),
    ("device", lambda: unknown().device, SYMBOLIC),
    ("numpy", lambda: unknown().numpy(), SYMBOLIC),
    ("__array__", lambda: np.asarray(unknown()), SYMBOLIC),
    ("__dlpack__", lambda: unknown().__dlpack__(), SYMBOLIC),
    ("__dlpack_device__", lambda: unknown().__dlpack_device__(), SYMBOLIC),
]  # fmt: skip


@pytest.mark.parametrize("name, call, text", MEMBERS, ids=[f"{n} {row[0]}" for n, row in enumerate(MEMBERS)])
def test_a_member_that_needs_a_value(name, call, text):
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value) == f"[{name}] {text}"


WHOLE = openrnn.constant(np.arange(24, dtype="int64").reshape(2, 3, 4) + 2**40)
BASIC = [
    (-1,), (-2, 2), (1, -3, -4), (slice(None), -1), (slice(1, None), slice(None, -1)), (slice(-5, 9),),
    (Ellipsis, -1), (0, Ellipsis, 1), (None, 1, None), (slice(None, None, 2), slice(None, None, -1)),
    (slice(2, 1),), (np.int64(1), np.array(2)),
]  # fmt: skip
ARRAYS = [
    ([[0, 1], [1, 0]],), (slice(None), [2, -3]), ([1, 0], [[2], [-1]]), (0, [1, 2], [-1, 0]), (1, [0, 2], slice(None)),
    (slice(None), np.array([[True, False, True, False], [False] * 4, [True] * 4])), (np.array([False, True]),),
    (np.array([1, 0], "int64"), slice(None), slice(1, 3)), (slice(None), slice(None), np.array([3, 0], "uint8")),
]  # fmt: skip


@pytest.mark.parametrize("key", BASIC + ARRAYS, ids=str)
def test_an_index_takes_what_numpy_takes(key):
    np.testing.assert_array_equal(T[key].numpy(), X[key])
    if not any(isinstance(one, list) or getattr(one, "ndim", 0) for one in key):
        np.testing.assert_array_equal(WHOLE[key].numpy(), WHOLE.numpy()[key])


def test_every_slice_of_a_short_axis():
    bounds = [None, -(2**62), *range(-5, 6), 2**62]
    for size, step in itertools.product((0, 1, 4), (-5, -3, -2, -1, 1, 2, 3, 5)):
        x = np.arange(size, dtype="float32")
        tensor = openrnn.constant(x)
        for begin, end in itertools.product(bounds, bounds):
            key = slice(begin, end, step)
            assert tensor[key].numpy().tolist() == x[key].tolist(), (size, key)
            assert unknown(size)[key].shape == x[key].shape, (size, key)


def test_an_empty_array_of_any_shape_takes_nothing():
    for key in (np.zeros((0, 2)), np.zeros((2, 0), int), np.zeros(0, "float32")):
        assert T[key].shape == (*key.shape, 3, 4)


def test_a_symbolic_integer_and_array_index():
    where = unknown(dtype="int32")
    model = openrnn.Model(where, T[openrnn.expand_dims(where, 0)])
    np.testing.assert_array_equal(model(np.array(1, "int32")), X[[1]])
    one = openrnn.Model(where, T[:, where])
    np.testing.assert_array_equal(one(np.array(2, "int32")), X[:, 2])
    many = unknown(2, dtype="int64")
    np.testing.assert_array_equal(openrnn.Model(many, T[many])(np.array([1, 0])), X[[1, 0]])


def test_items_of_every_dtype():
    assert openrnn.constant(2**53 + 1).item() == 2**53 + 1
    assert openrnn.constant(7, "uint8").item() == 7 and type(openrnn.constant(True).item()) is bool
    assert int(openrnn.Variable(2**53 + 1)) == 2**53 + 1
    assert f"{openrnn.constant(2**53 + 1):d}" == str(2**53 + 1)
    assert "a" not in T and 23.0 in T and 24.0 not in T
    assert unknown(None, 3).size is None and T.size == 24
    assert openrnn.constant([1.5])._repr_html_().count("&lt;openrnn.Tensor") == 1


def test_reductions_take_axes_in_any_list():
    for axis in ([0, 2], (0, 2), (-3, -1)):
        np.testing.assert_array_equal(T.sum(axis), X.sum((0, 2)))
        np.testing.assert_array_equal(T.max(axis, keepdims=True), X.max((0, 2), keepdims=True))
    for name in ("sum", "mean"):
        assert getattr(T, name)(keepdims=True).shape == (1, 1, 1)
        assert getattr(openrnn, f"reduce_{name}")(T, keepdims=True).shape == (1, 1, 1)
