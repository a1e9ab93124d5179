"""NumPy and Python values beside a tensor: every expression records on the tape, or raises."""

import operator
from itertools import product

import numpy as np
import openrnn
import pytest
from model.covering import covering
from table.support import draw, error_text

SHAPE = (2, 3)
REFUSALS = (TypeError, ValueError, NotImplementedError)
# Of the constant, on either side: value, d sum(weight * value) / d tensor.
ARITHMETIC = {
    "c+t": (lambda c, t: c + t, lambda c, t, w: w),
    "t+c": (lambda c, t: t + c, lambda c, t, w: w),
    "c-t": (lambda c, t: c - t, lambda c, t, w: -w),
    "t-c": (lambda c, t: t - c, lambda c, t, w: w),
    "c*t": (lambda c, t: c * t, lambda c, t, w: w * c),
    "t*c": (lambda c, t: t * c, lambda c, t, w: w * c),
    "c/t": (lambda c, t: c / t, lambda c, t, w: -w * c / t**2),
    "t/c": (lambda c, t: t / c, lambda c, t, w: w / c),
}
PRODUCTS = {
    "c@t": (lambda c, t: c @ t, lambda c, t, w: c.T @ w),
    "t@c": (lambda c, t: t @ c, lambda c, t, w: w @ c.T),
}


class OnlyArray:
    """What a table of another library offers."""

    def __init__(self, value):
        self.value = value

    def __array__(self, dtype=None, copy=None):
        return np.array(self.value, dtype)


class OnlyDlpack:
    """What another library's array offers."""

    def __init__(self, value):
        self.value = value

    def __dlpack__(self, **kw):
        return self.value.__dlpack__(**kw)

    def __dlpack_device__(self):
        return self.value.__dlpack_device__()


WHOLE = draw(*SHAPE, seed=3, low=0.5, high=2.0, dtype="float64")
CONSTANTS = {
    "float": 0.75,
    "int": 3,
    "np.float64": np.float64(0.75),
    "np.float32": np.float32(0.75),
    "np.float16": np.float16(0.75),
    "np.int64": np.int64(3),
    "np.int32": np.int32(3),
    "0-d float64": np.array(0.75),
    "0-d float32": np.array(0.75, "float32"),
    "0-d int": np.array(3),
    "1-element": np.array([0.75]),
    "float64": WHOLE,
    "float32": WHOLE.astype("float32"),
    "float16": WHOLE.astype("float16"),
    "int": np.arange(1, 7).reshape(SHAPE),
    "bool": np.ones(SHAPE, bool),
    "strided": np.asfortranarray(WHOLE),
    "list": WHOLE.tolist(),
    "tuple": tuple(map(tuple, WHOLE.tolist())),
    "only __array__": OnlyArray(WHOLE),
    "only __dlpack__": OnlyDlpack(WHOLE),
}
ROWS = {
    "row": WHOLE[0],
    "row float32": WHOLE[0].astype("float32"),
    "row list": WHOLE[0].tolist(),
    "row only __array__": OnlyArray(WHOLE[0]),
}
FACTORS = {
    "float64": draw(3, 3, seed=5, dtype="float64"),
    "float32": draw(3, 3, seed=5),
    "list": draw(3, 3, seed=5).tolist(),
    "only __array__": OnlyArray(draw(3, 3, seed=5)),
}


def rows():
    for names, constants in ((ARITHMETIC, CONSTANTS), (PRODUCTS, FACTORS)):
        for name, pair in names.items():
            for held, constant in constants.items():
                yield pytest.param(pair, constant, id=f"{name} {held}")
    for name in ("c+t", "t+c", "c-t", "t-c"):
        for held, constant in ROWS.items():
            yield pytest.param(ARITHMETIC[name], constant, id=f"{name} {held}")


def plain(constant, dtype):
    return np.asarray(getattr(constant, "value", constant)).astype(dtype).astype("float64")


def check(pair, constant, held, dtype):
    function, derivative = pair
    shape = (3, 3) if pair in PRODUCTS.values() else SHAPE
    start, weight = draw(*shape, seed=1, low=0.5, high=2.0), draw(*shape, seed=2)
    start, weight = start.astype(dtype), weight.astype(dtype)
    run = lambda t: function(constant, t)  # noqa: E731 - one expression, called in three ways
    source = openrnn.Variable(start) if held == "variable" else openrnn.Tensor(start)
    if held == "symbolic":
        given = openrnn.Input(batch_shape=shape, dtype=dtype)
        recorded = function(constant, given)
        assert isinstance(recorded, openrnn.Tensor) and recorded.is_symbolic
        run = openrnn.Model(given, recorded)
    with openrnn.GradientTape() as tape:
        if held != "variable":
            tape.watch(source)
        result = run(source)
        assert isinstance(result, openrnn.Tensor) and result.dtype == dtype
    (gradient,) = tape.gradient(result, [source], [openrnn.Tensor(weight)])
    bound = {"float16": 4e-3, "float32": 1e-6, "float64": 1e-14}[dtype]
    c, t = plain(constant, dtype), start.astype("float64")
    np.testing.assert_allclose(result.numpy(), function(c, t), rtol=bound, atol=bound)
    wanted = np.broadcast_to(derivative(c, t, weight.astype("float64")), shape)
    np.testing.assert_allclose(gradient.numpy(), wanted, rtol=4 * bound, atol=4 * bound)


def grid():
    for row, held, dtype in product(
        rows(), ["tensor", "variable", "symbolic"], ["float16", "float32", "float64"]
    ):
        yield pytest.param(*row.values, held, dtype, id=f"{row.id}-{held}-{dtype}")


@pytest.mark.parametrize("pair, constant, held, dtype", covering(grid()))
def test_value_dtype_and_gradient(pair, constant, held, dtype):
    check(pair, constant, held, dtype)


OTHERS = [operator.floordiv, operator.mod, operator.pow, divmod, operator.lt, operator.le,
          operator.gt, operator.ge, operator.add, operator.sub, operator.mul,
          operator.truediv, operator.matmul]  # fmt: skip
SHAPES = [(), (1,), (3,), (2, 1), (2, 3), (3, 2), (1, 2, 3)]


def sources():
    tensor = openrnn.Tensor(draw(*SHAPE, low=0.5, high=2.0))
    return {
        "tensor": tensor,
        "variable": openrnn.Variable(tensor),
        "symbolic": openrnn.Input(batch_shape=SHAPE),
    }


@pytest.mark.parametrize("held", ["tensor", "variable", "symbolic"])
@pytest.mark.parametrize("apply", OTHERS)
def test_every_shape_records_or_raises(apply, held):
    source = sources()[held]
    with openrnn.GradientTape() as tape:
        if held == "tensor":
            tape.watch(source)
        for shape in SHAPES:
            array = draw(*shape, seed=9, low=0.5, high=2.0)
            for constant in (array, array.tolist(), OnlyArray(array), *array.ravel()[:1]):
                for left, right in ((constant, source), (source, constant)):
                    try:
                        result = apply(left, right)
                    except REFUSALS:
                        continue
                    assert isinstance(result, openrnn.Tensor), (shape, type(constant))
                    if result.dtype == "bool":
                        continue  # a comparison has no gradient
                    assert result.is_symbolic or tape.gradient(result, [source])[0] is not None


@pytest.mark.parametrize("held", ["tensor", "variable", "symbolic"])
def test_equality_with_an_array_raises(held):
    source, array = sources()[held], draw(*SHAPE)
    with openrnn.GradientTape() as tape:
        if held == "tensor":
            tape.watch(source)
        for apply in (operator.eq, operator.ne):
            for left, right in ((array, source), (source, array), (np.float32(1), source)):
                error_text(TypeError, apply, left, right)


INPLACE = [operator.iadd, operator.isub, operator.imul, operator.itruediv]


@pytest.mark.parametrize("apply", INPLACE)
def test_in_place(apply):
    tensor, start = openrnn.Tensor(draw(*SHAPE, low=0.5, high=2.0)), draw(*SHAPE)
    with openrnn.GradientTape() as tape:
        tape.watch(tensor)
        array = start.copy()
        assert "numpy" in error_text(TypeError, apply, array, tensor)
        np.testing.assert_array_equal(array, start)
        for number in (2.0, np.float64(2.0), np.float32(2.0)):
            assert tape.gradient(apply(number, tensor), [tensor])[0] is not None
        assert tape.gradient(apply(tensor, start), [tensor])[0] is not None
    result = apply(start.copy(), tensor)
    np.testing.assert_array_equal(result, apply(start.copy(), tensor.numpy()))
    assert isinstance(result, np.ndarray)


CALLS = {
    "tanh": np.tanh,
    "exp": np.exp,
    "square": np.square,
    "abs": np.abs,
    "negative": np.negative,
    "maximum": lambda t: np.maximum(t, 0.0),
    "add into": lambda t: np.add(t, 1.0, out=np.zeros(SHAPE, "float32")),
    "add.reduce": np.add.reduce,
    "multiply.outer": lambda t: np.multiply.outer(t, [1.0, 2.0]),
    "sum": np.sum,
    "mean": np.mean,
    "max": np.max,
    "dot": lambda t: np.dot(np.ones((4, 2)), t),
    "where": lambda t: np.where(True, t, 0.0),
    "concatenate": lambda t: np.concatenate([np.zeros(SHAPE), t]),
    "stack": lambda t: np.stack((t, t)),
    "einsum": lambda t: np.einsum("ij->j", t),
    "clip": lambda t: np.clip(t, 0.0, 1.0),
    "norm": np.linalg.norm,
    "transpose": np.transpose,
    "reshape": lambda t: np.reshape(t, -1),
}


@pytest.mark.parametrize("held", ["tensor", "variable", "symbolic"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_functions_of_numpy(call, held):
    source = sources()[held]
    if held != "symbolic":
        value = call(source)
        assert not isinstance(value, openrnn.Tensor)
        np.testing.assert_array_equal(value, call(source.numpy()))
    with openrnn.GradientTape() as tape:
        if held == "tensor":
            np.testing.assert_array_equal(call(source), value)  # nobody asks for its gradient
            tape.watch(source)
        assert ".numpy()" in error_text(TypeError, call, source)
    if held != "symbolic":
        np.testing.assert_array_equal(call(source), value)


@pytest.mark.parametrize("reduce", [np.add.reduce, np.sum], ids=["ufunc", "function"])
def test_a_named_argument_whose_gradient_is_recorded(reduce):
    plain, start = openrnn.constant(draw(*SHAPE)), openrnn.Variable(np.float32(2.5))
    wanted = reduce(plain.numpy(), axis=None, initial=2.5)
    np.testing.assert_array_equal(reduce(plain, axis=None, initial=start), wanted)
    with openrnn.GradientTape():
        text = error_text(TypeError, lambda: reduce(plain, axis=None, initial=start))
    assert "a Variable whose gradient is being recorded" in text


@pytest.mark.parametrize("held", ["tensor", "variable"])
@pytest.mark.parametrize("apply", [operator.add, operator.sub, operator.mul, operator.truediv])
def test_one_element_with_a_gradient_is_no_number(apply, held):
    """A constant of one element is taken as a number; of this the gradient is a sum."""
    start = np.array([0.75], "float32")
    source = openrnn.Variable(start) if held == "variable" else openrnn.Tensor(start)
    with openrnn.GradientTape() as tape:
        if held == "tensor":
            tape.watch(source)
        for other in (draw(*SHAPE), openrnn.Tensor(draw(*SHAPE))):
            for left, right in ((source, other), (other, source)):
                gradient = tape.gradient(openrnn.reduce_sum(apply(left, right)), [source])[0]
                moved = [
                    np.sum(apply(*[
                        start.astype("f8") + by if one is source else np.asarray(one, "f8")
                        for one in (left, right)
                    ]))
                    for by in (1e-4, -1e-4)
                ]  # fmt: skip
                np.testing.assert_allclose(gradient, [(moved[0] - moved[1]) / 2e-4], rtol=1e-5)


def test_what_has_no_gradient_is_allowed_under_a_tape():
    source = openrnn.Tensor(draw(*SHAPE))
    with openrnn.GradientTape() as tape:
        tape.watch(source)
        assert np.shape(source) == SHAPE and np.ndim(source) == 2 and np.size(source) == 6
        assert np.zeros_like(source).dtype == np.float32
        assert np.allclose(source, source.numpy()) and np.array_equal(source, source.numpy())
        # Conversions that say so leave the tape.
        for value in (source.numpy(), np.asarray(source), np.array([source]), float(source[0, 0])):
            assert not isinstance(value, openrnn.Tensor)


# NumPy's functions of one tensor, whose result has no gradient.
WITHOUT_GRADIENT = {
    "shape": np.shape, "ndim": np.ndim, "size": np.size, "zeros_like": np.zeros_like,
    "ones_like": np.ones_like, "empty_like": lambda t: np.empty_like(t).shape,
    "full_like": lambda t: np.full_like(t, 1.5), "allclose": lambda t: np.allclose(t, 2.0 * t),
    "array_equal": lambda t: np.array_equal(t, t),
}  # fmt: skip
# Of those that NumPy would drop a gradient of, some of each kind of argument.
WITH_GRADIENT = {
    "sum": np.sum, "mean": np.mean, "concatenate": lambda t: np.concatenate([t, t]),
    "stack": lambda t: np.stack((t, t)), "where": lambda t: np.where([True], 1.0, t),
    "transpose": np.transpose, "clip": lambda t: np.clip(t, 0.0, a_max=1.0),
    "einsum": lambda t: np.einsum("ij->j", t),
    "exp": np.exp, "maximum": lambda t: np.maximum(1.0, t), "add": lambda t: np.add.reduce(t),
}  # fmt: skip


@pytest.mark.parametrize("made", [openrnn.Tensor, openrnn.Variable])
@pytest.mark.parametrize("name", WITHOUT_GRADIENT)
def test_functions_of_shapes_and_truths_take_recorded_tensors(made, name):
    given, function = made(WHOLE.astype("float32")), WITHOUT_GRADIENT[name]
    wanted = function(WHOLE.astype("float32"))
    with openrnn.GradientTape() as tape:
        tape.watch(given)
        for found in (function(given), function(given * 1.0)):
            assert type(found) is type(wanted)
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", WITH_GRADIENT)
def test_functions_of_values_refuse_recorded_tensors_alone(name):
    plain, function = WHOLE.astype("float32"), WITH_GRADIENT[name]
    given = openrnn.Tensor(plain)
    np.testing.assert_array_equal(np.asarray(function(given)), function(plain))
    with openrnn.GradientTape() as tape:
        tape.watch(given)
        with pytest.raises(TypeError) as refused:
            function(given)
    assert str(refused.value) == (
        f"[numpy.{name}] a Tensor whose gradient is being recorded, which NumPy would drop; "
        "expected an operation of openrnn, or .numpy() for the value without gradient"
    )


def test_two_tensors_and_an_array_in_one_expression():
    w, y = draw(*SHAPE, seed=4), openrnn.Variable(draw(*SHAPE, seed=5))
    with openrnn.GradientTape() as tape:
        loss = openrnn.reduce_sum(np.float64(0.5) * (w * y - 2.0 * w) * (w - y) / np.float32(4))
    a, b = w.astype("float64"), y.numpy().astype("float64")
    np.testing.assert_allclose(
        tape.gradient(loss, [y])[0], (a * (a - b) - (a * b - 2 * a)) / 8, rtol=1e-5, atol=1e-6
    )


class Answers:
    """What stands beside a tensor and computes itself: other libraries' arrays, one's own units."""

    def __radd__(self, left):
        return "add", left

    def __rsub__(self, left):
        return "sub", left

    def __rmul__(self, left):
        return "mul", left

    def __rtruediv__(self, left):
        return "div", left


@pytest.mark.parametrize("made", [openrnn.Tensor, openrnn.Variable])
def test_what_is_no_operand_is_asked_to_compute_itself(made):
    given, other = made(WHOLE.astype("float32")), Answers()
    found = [given + other, given - other, given * other, given / other]
    assert [name for name, _ in found] == ["add", "sub", "mul", "div"]
    assert all(left is given for _, left in found)
    for refused in (object(), "text", None, {"a": 1}):
        for act in (operator.add, operator.sub, operator.mul, operator.truediv):
            for pair in ((given, refused), (refused, given)):
                with pytest.raises(TypeError):
                    act(*pair)


@pytest.mark.parametrize("made", [openrnn.Tensor, openrnn.Variable])
def test_pandas_leaves_the_operators_to_us(made):
    # Its Index, Series and DataFrame have the priorities 2000, 3000 and 4000, and return
    # NotImplemented for an operand of a higher one.
    assert made.__pandas_priority__ > 4000
