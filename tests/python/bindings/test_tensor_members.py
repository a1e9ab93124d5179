"""What tensors and variables have of Python and NumPy, member by member and operand by operand."""

import copy
import html
import operator
import pickle
import subprocess
import sys

import numpy as np
import openrnn
import pytest

A = np.array([[1.5, -2.0], [0.25, 3.0]], "float32")
M = np.array([[2.0, 0.5], [-1.0, 4.0]], "float32")
W = np.array([[1.0, 2.0, 4.0], [-0.5, 0.25, 8.0]], "float32")
MADE = [openrnn.Tensor, openrnn.Variable]
OPERATORS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.pow,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
]


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize(
    "other",
    [
        np.abs(M),
        np.abs(M).tolist(),
        openrnn.constant(np.abs(M)),
        np.abs(M).astype("float64"),
        openrnn.constant([2.0, 1.5]),
        [[2.0], [1.5]],
        2,
        2.5,
        1,
        np.float32(2.0),
        openrnn.constant(2.0),
    ],
)
def test_operators_from_both_sides(made, op, other):
    mine, theirs = np.abs(A), np.asarray(other, "float32")
    np.testing.assert_allclose(op(made(mine), other), op(mine, theirs), rtol=2e-6)
    np.testing.assert_allclose(op(other, made(mine)), op(theirs, mine), rtol=2e-6)


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize(
    "kind", [np.asarray, np.ndarray.tolist, openrnn.constant, openrnn.Variable]
)
def test_products_from_both_sides(made, kind):
    np.testing.assert_array_equal(made(A) @ kind(M), A @ M)
    np.testing.assert_array_equal(kind(M) @ made(A), M @ A)
    np.testing.assert_array_equal(made(A) @ kind(W), A @ W)
    np.testing.assert_array_equal(kind(W.T) @ made(A), W.T @ A)
    np.testing.assert_array_equal(made(A).__rmatmul__(kind(M)), M @ A)
    np.testing.assert_array_equal(made(A).__matmul__(kind(M)), A @ M)


@pytest.mark.parametrize("made", MADE)
def test_operators_of_one(made):
    np.testing.assert_array_equal(-made(A), -A)
    np.testing.assert_array_equal(abs(made(A)), np.abs(A))
    for other in ("text", object(), {1: 2}, {3}):
        for op in OPERATORS:
            assert getattr(made(A), f"__{op.__name__}__")(other) is NotImplemented
            with pytest.raises(TypeError):
                op(made(A), other)


SYMBOLIC = {
    "numpy": lambda x: x.numpy(),
    "__array__": np.asarray,
    "item": lambda x: x.item(),
    "float": float,
    "int": int,
    "bool": bool,
    "in": lambda x: 1.0 in x,
    "device": lambda x: x.device,
    "__dlpack__": lambda x: x.__dlpack__(),
    "__dlpack_device__": lambda x: x.__dlpack_device__(),
}


@pytest.mark.parametrize("member", SYMBOLIC)
def test_a_symbolic_tensor_has_no_value(member):
    with pytest.raises(TypeError) as raised:
        SYMBOLIC[member](openrnn.Input((2,)))
    assert str(raised.value) == (
        f"[{member}] the tensor is symbolic, expected one with a value: call a Model"
    )


def test_other_refusals_of_a_symbolic_tensor():
    x = openrnn.Input(batch_shape=(None, 2))
    for call, error, text in (
        (lambda: memoryview(x), BufferError, "[Tensor] it is symbolic, expected one with a value"),
        (lambda: len(x), TypeError, "[len] the tensor has no known first dimension, expected one"),
        (
            lambda: f"{x:.2f}",
            TypeError,
            "[format] the format is '.2f' for shape [-1, 2], expected one element with a value",
        ),
        (
            lambda: openrnn.Variable(x),
            TypeError,
            "[Variable] the initial value is a symbolic tensor, expected one with a value",
        ),
        (
            lambda: openrnn.Variable(1.0).assign(x),
            TypeError,
            "[assign] a symbolic tensor, expected one with a value",
        ),
        (
            lambda: openrnn.constant(1.0).to(None),
            TypeError,
            "[to] device is 'NoneType', expected a string",
        ),
    ):
        with pytest.raises(error) as raised:
            call()
        assert str(raised.value) == text
    assert (x.size, x.shape, x.ndim, x.is_symbolic) == (None, (None, 2), 2, True)
    assert openrnn.Input(batch_shape=(3, 2)).size == 6


@pytest.mark.parametrize("made", MADE)
def test_axes_of_transpose_and_reshape(made):
    x = np.arange(24, dtype="float32").reshape(2, 3, 4)
    t = made(x)
    for axes in ((), (None,), (2, 0, 1), ((2, 0, 1),), ([1, 0, 2],), (np.int64(0), 2, 1)):
        np.testing.assert_array_equal(t.transpose(*axes), x.transpose(*axes))
    np.testing.assert_array_equal(t.T, x.T)
    for shape in ((4, 6), ((4, 6),), ([-1, 8],), (-1,), (24,), (np.int32(12), 2)):
        np.testing.assert_array_equal(t.reshape(*shape), x.reshape(*shape))


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("name", ["sum", "mean", "max", "min"])
def test_reductions(made, name):
    x = np.arange(24, dtype="float32").reshape(2, 3, 4)[:, ::-1] * 0.5
    x = np.ascontiguousarray(x)
    for axis in (None, 0, -1, 1, (0, 2), [1, 2], np.int64(2)):
        for keepdims in (False, True):
            along = tuple(axis) if isinstance(axis, list) else axis
            wanted = getattr(x, name)(axis=along, keepdims=keepdims)
            np.testing.assert_allclose(getattr(made(x), name)(axis, keepdims), wanted, rtol=1e-6)
            np.testing.assert_allclose(
                getattr(openrnn, "reduce_" + name)(x, axis, keepdims), wanted, rtol=1e-6
            )


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "int32", "int64", "uint8", "bool", "bfloat16"]
)
def test_numbers_of_every_dtype(made, dtype):
    values = [1, 0, 1] if dtype == "bool" else [3, 0, 2]
    t = made(values, dtype=dtype)
    assert t.dtype == np.dtype(dtype) and t.size == 3 and t.ndim == 1 and len(t) == 3
    kind = {"b": bool, "i": int, "u": int, "f": float, "V": float}[np.dtype(dtype).kind]
    assert [type(one.item()) for one in t] == [kind] * 3
    assert [int(one) for one in t] == values and [float(one) for one in t] == values
    assert [bool(one) for one in t] == [one != 0 for one in values]
    assert values[0] in t and 0 in t and (7 not in t or dtype == "bool") and "text" not in t
    assert (
        t.astype(dtype).dtype == np.dtype(dtype) and t.astype("float64").numpy().tolist() == values
    )
    again = pickle.loads(pickle.dumps(t if made is openrnn.Tensor else t.read_value()))
    assert again.dtype == t.dtype and again.numpy().tolist() == t.numpy().tolist()


def test_integers_beyond_a_double():
    big = 2**53 + 1
    assert (
        openrnn.constant(big, dtype="int64").item()
        == big
        == int(openrnn.constant(big, dtype="int64"))
    )
    assert (
        openrnn.constant([big]).dtype == "int64" and openrnn.constant([2**31 - 1]).dtype == "int32"
    )


@pytest.mark.parametrize("made", MADE)
def test_texts(made):
    t = made(A) if made is openrnn.Tensor else made(A, name="w")
    kind = "Tensor" if made is openrnn.Tensor else f"Variable '{t.name}'"
    assert repr(t) == f"<openrnn.{kind} shape=(2, 2), dtype=float32, numpy=\n{A!r}>"
    assert format(t) == str(t) == repr(t)
    assert t._repr_html_() == f"<pre>{html.escape(repr(t))}</pre>"
    assert f"{made([2.5]):.2f}" == "2.50" and f"{made(7):d}" == "7"
    small = made([1.5], dtype="bfloat16")
    assert repr(small).endswith("numpy=\narray([1.5], dtype=bfloat16)>")


def test_the_text_of_a_symbolic_tensor():
    assert repr(openrnn.Input((2,), dtype="float64")) == (
        "<openrnn.Tensor symbolic, shape=(None, 2), dtype=float64>"
    )


@pytest.mark.parametrize("made", MADE)
def test_arrays_and_copies(made):
    t = made(A)
    shared, own = np.asarray(t), np.array(t, copy=True)
    assert not shared.flags.writeable and own.flags.writeable and not np.shares_memory(shared, own)
    assert np.shares_memory(shared, t.__array__(copy=False)) and np.shares_memory(
        shared, t.__array__("float32")
    )
    wide = t.__array__("float64", copy=True)
    assert (
        wide.dtype == "float64" and wide.tolist() == A.tolist() == t.__array__("float64").tolist()
    )
    again = t.__array__("float32", copy=True)
    assert again.flags.writeable and not np.shares_memory(again, shared)
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        taken = np.from_dlpack(t, copy=True)
        taken[:] = 0
        np.testing.assert_array_equal(t, A)


def test_bounds_of_clip_by_value():
    low, high = np.array([0.0, -1.0], "float32"), np.array([1.0, 2.0], "float32")
    for lower in (low, -1.0, openrnn.constant(low), low.tolist(), openrnn.Variable(low), -1):
        for upper in (high, 2.0, openrnn.constant(high), high.tolist(), openrnn.Variable(high), 2):
            wanted = np.clip(A, np.asarray(lower), np.asarray(upper))
            np.testing.assert_array_equal(openrnn.clip_by_value(A, lower, upper), wanted)


def test_masks_of_calls_differ():
    ones = np.ones(200, "float32")
    for seed in (None, 5):
        masks = [openrnn.nn.dropout(ones, rate=0.5, seed=seed).numpy() for _ in range(3)]
        assert (
            (masks[0] != masks[1]).any()
            and (masks[1] != masks[2]).any()
            and (masks[0] != masks[2]).any()
        )
    with openrnn.GradientTape() as tape:
        x = openrnn.Variable(ones)
        y = openrnn.nn.dropout(x, rate=0.5)
    np.testing.assert_array_equal(tape.gradient(y, x), y)


def test_a_state_keeps_its_layout_when_copied():
    layer = openrnn.cudnn_rnn.CudnnLSTM(2, 4)
    x = np.random.default_rng(1).normal(size=(5, 2, 3)).astype("float32")
    _, (h, c) = layer(x, training=False)
    wanted, _ = layer(x, (h, c), training=False)
    _, batch_major = layer(x.swapaxes(0, 1), training=False, time_major=False)
    for again in (copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))):
        state = tuple(again(one) for one in batch_major)
        np.testing.assert_array_equal(state[0], batch_major[0])
        np.testing.assert_array_equal(layer(x, state, training=False)[0], wanted)
        back = tuple(again(one) for one in (h, c))
        found, _ = layer(x.swapaxes(0, 1), back, training=False, time_major=False)
        np.testing.assert_array_equal(found.numpy().swapaxes(0, 1), wanted)
        plain = tuple(openrnn.constant(one.numpy()) for one in state)
        assert not np.array_equal(layer(x, plain, training=False)[0], wanted)


ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", ARITHMETIC)
@pytest.mark.parametrize("number", [3.0, 0.1, -7, 1e-3])
def test_a_number_is_rounded_once(op, dtype, number):
    x = np.random.default_rng(3).uniform(0.5, 2.0, 200).astype(dtype)
    same = np.dtype(dtype).type(number)
    for made in MADE:
        np.testing.assert_array_equal(op(made(x), number), op(x, same))
        np.testing.assert_array_equal(op(number, made(x)), op(same, x))
        for one in (openrnn.constant([same], dtype), openrnn.constant(same, dtype)):
            np.testing.assert_array_equal(op(made(x), one), op(x, same))
            np.testing.assert_array_equal(op(one, made(x)), op(same, x))


def slopes(op, a, b):
    """By a and by b, element by element."""
    return {
        operator.add: (np.ones_like(a * b), np.ones_like(a * b)),
        operator.sub: (np.ones_like(a * b), -np.ones_like(a * b)),
        operator.mul: (b + 0 * a, a + 0 * b),
        operator.truediv: (1 / b + 0 * a, -a / b**2),
    }[op]


@pytest.mark.parametrize("op", ARITHMETIC)
@pytest.mark.parametrize(
    "shapes",
    [
        ((3, 2), (2,)),
        ((2,), (3, 2)),
        ((3, 2), (3, 2)),
        ((3, 2), (1,)),
        ((1,), (3, 2)),
        ((3, 2), ()),
        ((4, 3, 2), (2,)),
        ((3, 1), (2,)),
    ],
)
def test_gradients_of_operands_of_any_shape(op, shapes):
    random = np.random.default_rng(4)
    a, b = (random.uniform(0.5, 2.0, shape) for shape in shapes)
    first, second = openrnn.Variable(a), openrnn.Variable(b)
    upstream = random.uniform(0.5, 2.0, np.broadcast_shapes(*shapes))
    with openrnn.GradientTape() as tape:
        output = op(first, second)
        loss = openrnn.reduce_sum(output * upstream)
    np.testing.assert_allclose(output, op(a, b), rtol=1e-14)
    for found, slope, given in zip(
        tape.gradient(loss, [first, second]), slopes(op, a, b), (a, b), strict=True
    ):
        wanted = slope * upstream
        extra = wanted.ndim - given.ndim
        wanted = wanted.sum(tuple(range(extra)))
        wanted = wanted.sum(
            tuple(n for n, size in enumerate(given.shape) if size == 1), keepdims=True
        )
        assert found.shape == given.shape
        np.testing.assert_allclose(found, wanted.reshape(given.shape), rtol=1e-12)


def test_a_constant_of_one_element_counts_as_a_number():
    x = openrnn.constant(A)
    for one in (openrnn.constant([2.0], dtype="float64"), openrnn.constant(2.0, dtype="float64")):
        assert (x * one).dtype == "float32" == (one * x).dtype
        np.testing.assert_array_equal(x * one, 2 * A)
    wide = x + openrnn.constant([[[2.0]]])
    assert wide.shape == (1, 2, 2)
    with pytest.raises(openrnn.ArgumentError):
        x * openrnn.constant([2.0, 3.0], dtype="float64")
    with openrnn.GradientTape() as tape:
        given = openrnn.constant([2.0])
        tape.watch(given)
        y = openrnn.reduce_sum(x * given)
    np.testing.assert_allclose(tape.gradient(y, given), [A.sum()], rtol=1e-6)


def test_powers():
    x = np.array([0.5, 1.5, 2.0], "float64")
    w = openrnn.Variable(x)
    for exponent in (0, 1, 1.0, 2, 2.0, 3, -1, 0.5, -2.5):
        with openrnn.GradientTape() as tape:
            y = w**exponent
        np.testing.assert_allclose(y, x**exponent, rtol=1e-14)
        np.testing.assert_allclose(
            tape.gradient(y, w), exponent * x ** (exponent - 1.0), rtol=1e-13
        )
    for base in (2, 0.5, 1):
        with openrnn.GradientTape() as tape:
            y = base**w
        np.testing.assert_allclose(y, base**x, rtol=1e-14)
        np.testing.assert_allclose(
            tape.gradient(y, w), base**x * np.log(base), rtol=1e-13, atol=1e-15
        )
    np.testing.assert_allclose(
        openrnn.constant([2.0, 3.0]) ** openrnn.constant([3.0, 2.0]), [8.0, 9.0]
    )
    np.testing.assert_allclose([2.0, 3.0] ** openrnn.constant([3.0, 2.0]), [8.0, 9.0])


def test_einsum_of_three_operands_is_refused():
    operands = [np.ones((2, 3)), np.ones((3, 4)), np.ones((4, 5))]
    with pytest.raises(openrnn.ArgumentError) as raised:
        openrnn.einsum("ij,jk->ik", *operands)
    assert str(raised.value) == (
        "[einsum] equation is 'ij,jk->ik', expected one operand or two, as many as the 3 that are "
        "given"
    )


def test_every_public_name_is_one_that_a_star_brings():
    """In a process of its own: modules that others import later are names of the package, too."""
    found = subprocess.check_output(
        [sys.executable, "-c", "import openrnn; print(*dir(openrnn))"], text=True
    )
    public = {name for name in found.split() if not name.startswith("_")} - {"errors"}
    assert set(openrnn.__all__) == public | {"__version__"}
    assert len(openrnn.__all__) == len(set(openrnn.__all__))
