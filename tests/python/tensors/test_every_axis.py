"""Functions with an axis along every axis, counted from both ends, of every small rank.

At once and recorded, where the batch is not known; and their gradients: a sum of what came out.
"""

import itertools

import numpy as np
import openrnn as r
import pytest

SHAPES = [(4,), (3, 4), (3, 2, 4), (3, 1, 2, 4)]
KINDS = ["eager", "recorded", "open"]


def number(shape):
    return np.random.default_rng(len(shape)).normal(size=shape)


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def joined(x, axis):
    """Parts of three sizes."""
    parts = [x, -x, np.take(x, [0], axis)]
    return parts, np.concatenate(parts, axis)


REDUCED = {
    "sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "variance": np.var, "std": np.std,
    "logsumexp": lambda x, axis, keepdims: np.log(np.exp(x).sum(axis, keepdims=keepdims)),
}  # fmt: skip
ALONG = {
    "argmax": (r.argmax, np.argmax),
    "argmin": (r.argmin, np.argmin),
    "softmax": (r.nn.softmax, softmax),
    "log_softmax": (r.nn.log_softmax, lambda x, axis: np.log(softmax(x, axis))),
    "gather": (lambda x, axis: r.gather(x, [[0, 1], [1, 1]] if x.shape[axis] != 1 else [[0]], axis),
               lambda x, axis: np.take(x, [[0, 1], [1, 1]] if x.shape[axis] != 1 else [[0]], axis)),
    "flipped parts": (lambda x, axis: r.concat(r.split(x, x.shape[axis], axis)[::-1], axis),
                      lambda x, axis: np.flip(x, axis)),
}  # fmt: skip


def axes_of(shape):
    return range(-len(shape), len(shape))


def outcome(function, x, kind):
    """Of the function at once, or of a model that records it."""
    if kind == "eager":
        return function(r.constant(x))
    shape = x.shape if kind == "recorded" else (None, *x.shape[1:])
    given = r.Input(batch_shape=shape, dtype="float64")
    return r.Model(given, function(given))(x)


def close(found, wanted, what):
    assert found.shape == wanted.shape, what
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-13, atol=1e-13, err_msg=str(what))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", REDUCED)
def test_reductions(name, kind):
    function, numpys = getattr(r, f"reduce_{name}"), REDUCED[name]
    for shape in SHAPES:
        x = number(shape)
        sets = [None, *axes_of(shape)]
        sets += itertools.combinations(range(len(shape)), 2)
        sets += [(a, b - len(shape)) for a, b in itertools.combinations(range(len(shape)), 2)]
        for axis, keepdims in itertools.product(sets, (False, True)):
            found = outcome(lambda v: function(v, axis, keepdims), x, kind)
            wanted = np.asarray(numpys(x, axis=axis, keepdims=keepdims))
            close(found, wanted, (shape, axis, keepdims))
            if name in ("sum", "mean", "max", "min"):
                close(getattr(r.constant(x), name)(axis, keepdims), wanted, (shape, axis, keepdims))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ALONG)
def test_functions_along_an_axis(name, kind):
    ours, numpys = ALONG[name]
    for shape in SHAPES:
        for axis in axes_of(shape):
            if kind == "open" and name in ("gather", "flipped parts") and axis % len(shape) == 0:
                continue  # the test asks for that size
            found = outcome(lambda v: ours(v, axis), number(shape), kind)
            close(found, numpys(number(shape), axis), (shape, axis))


@pytest.mark.parametrize("kind", KINDS)
def test_concat(kind):
    for shape in SHAPES:
        for axis in axes_of(shape):
            parts, wanted = joined(number(shape), axis)
            if kind == "eager":
                found = r.concat(parts, axis)
            else:
                sizes = [p.shape if kind == "recorded" else (None, *p.shape[1:]) for p in parts]
                inputs = [r.Input(batch_shape=size, dtype="float64") for size in sizes]
                found = r.Model(inputs, r.concat(inputs, axis))(parts)
            close(found, wanted, (shape, axis))


def test_concat_and_split_carry_gradients_of_their_own_parts():
    for shape in SHAPES:
        for axis in axes_of(shape):
            parts, wanted = joined(number(shape), axis)
            weights = number(wanted.shape) + 2
            variables = [r.Variable(part) for part in parts]
            with r.GradientTape() as tape:
                loss = r.reduce_sum(r.concat(variables, axis) * weights)
            ends = np.cumsum([part.shape[axis] for part in parts])[:-1]
            pairs = zip(tape.gradient(loss, variables), np.split(weights, ends, axis), strict=True)
            for found, right in pairs:
                np.testing.assert_array_equal(np.asarray(found), right)
            whole, sizes = r.Variable(wanted), [part.shape[axis] for part in parts]
            factors = [2.0, 3.0, 5.0]
            with r.GradientTape() as tape:
                pieces = r.split(whole, sizes, axis)
                loss = r.add_n([r.reduce_sum(p * f) for p, f in zip(pieces, factors, strict=True)])
            for piece, right in zip(pieces, parts, strict=True):
                np.testing.assert_array_equal(piece.numpy(), right)
            ones = [np.ones_like(p) * f for p, f in zip(parts, factors, strict=True)]
            right = np.concatenate(ones, axis)
            np.testing.assert_array_equal(np.asarray(tape.gradient(loss, whole)), right)


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_axis_and_one_of_size_one(kind):
    for shape in SHAPES:
        x = number(shape)
        for axis in range(-len(shape) - 1, len(shape) + 1):
            wanted = np.expand_dims(x, axis)
            close(outcome(lambda v: r.expand_dims(v, axis), x, kind), wanted, (shape, axis))
            place = axis % (len(shape) + 1)
            if kind == "open" and place == 0:
                continue
            for given in (place, place - wanted.ndim, [place]):
                close(outcome(lambda v: r.squeeze(v, given), wanted, kind), x, (shape, given))
    x = number((1, 3, 1, 4, 1))
    kind = "recorded" if kind == "open" else kind
    for axis in (None, (0, 2), [-1, 0], (2, 4, 0)):
        wanted = np.squeeze(x, None if axis is None else tuple(axis))
        close(outcome(lambda v: r.squeeze(v, axis), x, kind), wanted, axis)


@pytest.mark.parametrize("kind", KINDS)
def test_every_permutation_and_repetition(kind):
    for shape in SHAPES:
        x = number(shape)
        for perm in itertools.permutations(range(len(shape))):
            negative = [p - len(shape) if n % 2 else p for n, p in enumerate(perm)]
            for given in (perm, list(perm), negative):
                close(outcome(lambda v: r.transpose(v, given), x, kind), x.transpose(perm), perm)
            close(r.constant(x).transpose(*perm), x.transpose(perm), perm)
        for multiples in itertools.product((1, 2, 3), repeat=len(shape)):
            found = outcome(lambda v: r.tile(v, multiples), x, kind)
            close(found, np.tile(x, multiples), multiples)


def test_every_slice_of_two_axes():
    x = number((3, 4))
    for begin in itertools.product(range(3), range(4)):
        for size in itertools.product(range(-1, 4 - begin[0]), range(-1, 5 - begin[1])):
            ends = [None if s < 0 else b + s for b, s in zip(begin, size, strict=True)]
            wanted = x[begin[0] : ends[0], begin[1] : ends[1]]
            close(r.slice(x, begin, size), wanted, (begin, size))


def test_stacked_and_unstacked():
    for shape in SHAPES:
        x = number(shape)
        for found, wanted in zip(r.unstack(x), x, strict=True):
            close(found, wanted, shape)
        close(r.stack(list(x)), x, shape)
        deeper = number((2, *shape))
        close(r.transpose_leading(deeper), np.swapaxes(deeper, 0, 1), shape)


@pytest.mark.parametrize("time_major", [True, False])
def test_reversed_sequences_of_every_length(time_major):
    x = number((4, 3, 2)) if time_major else number((3, 4, 2))
    for lengths in [None, *itertools.product(range(5), repeat=3)]:
        wanted = x.copy() if time_major else np.swapaxes(x, 0, 1).copy()
        for row, length in enumerate(lengths or (4, 4, 4)):
            wanted[:length, row] = wanted[:length, row][::-1].copy()
        wanted = wanted if time_major else np.swapaxes(wanted, 0, 1)
        close(r.reverse_sequence(x, lengths, time_major), wanted, lengths)
    close(r.reverse_sequence(number((4, 3, 2)), [1, 2, 4]),
          r.reverse_sequence(number((4, 3, 2)), [1, 2, 4], True).numpy(), "time major")  # fmt: skip


@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("transpose_a", [False, True])
def test_products_of_every_rank(transpose_a, transpose_b):
    for lead_a, lead_b in [((), ()), ((2,), ()), ((), (2,)), ((3, 1), (2,)), ((2,), (3, 1))]:
        a = number((*lead_a, *((5, 3) if transpose_a else (3, 5))))
        b = number((*lead_b, *((4, 5) if transpose_b else (5, 4)))) + 0.5
        left = np.swapaxes(a, -1, -2) if transpose_a else a
        right = np.swapaxes(b, -1, -2) if transpose_b else b
        close(r.matmul(a, b, transpose_a, transpose_b), left @ right, (lead_a, lead_b))


TWO = {
    "maximum": np.maximum, "minimum": np.minimum, "add": np.add, "subtract": np.subtract,
    "multiply": np.multiply, "divide": np.divide, "equal": np.equal, "not_equal": np.not_equal,
    "less": np.less, "less_equal": np.less_equal, "greater": np.greater,
    "greater_equal": np.greater_equal, "logical_and": np.logical_and, "logical_or": np.logical_or,
    "pow": lambda x, y: x**y,
}  # fmt: skip


@pytest.mark.parametrize("name", TWO)
def test_operands_of_every_kind_and_order(name):
    """Values that are equal, unequal, zero and not; each operand an array, a tensor or a number."""
    x, y = np.array([[0.0, 1.0, 2.0, 3.0]]), np.array([[2.0], [1.0], [3.0]])
    for a, b in ((x, y), (y, x + 1), (x, 2.0), (2.0, x + 1)):
        wanted = np.asarray(TWO[name](a, b))
        forms = [np.asarray, lambda v: r.constant(v, "float64"), lambda v: np.asarray(v).tolist()]
        for one, other in itertools.product(forms, repeat=2):
            found = getattr(r, name)(one(a), other(b))
            assert found.shape == wanted.shape
            np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6)
            assert (found.dtype == "bool") == (wanted.dtype == bool)
