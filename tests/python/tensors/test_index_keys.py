"""Keys of every kind, many drawn together, against what NumPy takes."""

import numpy as np
import openrnn
import pytest

SHAPE = (2, 3, 4, 5)
X = (np.arange(120, dtype="float32").reshape(SHAPE) * 7) % 121
INTEGERS = X.astype("int64") + 2**40


def drawn_slice(rng, size):
    bounds = [None, *range(-size - 1, size + 2)]
    begin, end = (bounds[i] for i in rng.integers(0, len(bounds), 2))
    return slice(begin, end, [None, 1, 1, 2, -1, -2][rng.integers(6)])


def drawn_arrays(rng, sizes):
    """Arrays that broadcast together, one for each of `sizes`, each sometimes one integer."""
    shapes = [(2, 3), (3,), (1, 3), (2, 1), (1,)]
    arrays = []
    for size in sizes:
        if rng.integers(4) == 0:
            arrays.append(int(rng.integers(-size, size)))
        else:
            shape = shapes[rng.integers(len(shapes))]
            array = rng.integers(-size, size, shape)
            arrays.append(array.astype(["i4", "i8", "i4"][rng.integers(3)]))
    return arrays


def drawn_key(rng, shape=SHAPE):
    """At most one block of arrays, or one mask, among slices, None, integers and dots."""
    axes, key, block, dots = 0, [], bool(rng.integers(4)), bool(rng.integers(2))
    while axes < len(shape):
        left = len(shape) - axes
        if block and rng.integers(2):
            block = False
            count = int(rng.integers(1, left + 1))
            here = shape[axes : axes + count]
            key += [rng.integers(0, 3, here) > 0] if rng.integers(2) else drawn_arrays(rng, here)
            axes += count
            continue
        kind = rng.integers(6)
        if kind == 0 and dots:
            dots, skipped = False, int(rng.integers(0, left + 1))
            key.append(Ellipsis)
            axes += skipped
        elif kind == 1 and not any(one is None for one in key):
            key.append(None)
        elif kind == 2:
            key.append(int(rng.integers(-shape[axes], shape[axes])))
            axes += 1
        elif kind == 3 and dots:
            break
        else:
            key.append(drawn_slice(rng, shape[axes]))
            axes += 1
    return tuple(key)


def side_by_side(key):
    basic = [one is None or one is Ellipsis or isinstance(one, slice) for one in key]
    places = [i for i, one in enumerate(basic) if not one]
    arrays = any(isinstance(key[i], np.ndarray) for i in places)
    return not arrays or places == list(range(places[0], places[-1] + 1))


def keys(seed, count=1000):
    rng = np.random.default_rng(seed)
    found = [drawn_key(rng) for _ in range(count)]
    return [key for key in found if side_by_side(key)]


def test_the_draw_has_masks_of_every_number_of_axes_before_other_keys():
    found = set()
    for key in keys(1):
        for place, one in enumerate(key[:-1]):
            if isinstance(one, np.ndarray) and one.dtype == bool:
                found.add((one.ndim, type(key[place + 1])))
    assert {(n, kind) for n in (1, 2, 3) for kind in (slice, int)} <= found


def test_a_drawn_key_takes_what_numpy_takes():
    floats, integers = openrnn.constant(X), openrnn.constant(INTEGERS)
    for key in keys(1):
        basic = not any(isinstance(one, np.ndarray) for one in key)
        for tensor, values in [(floats, X), *[(integers, INTEGERS)] * basic]:
            found = tensor[key]
            assert found.shape == values[key].shape, key
            np.testing.assert_array_equal(found.numpy(), values[key], err_msg=str(key))


def test_the_gradient_of_a_drawn_key_is_what_it_took():
    rng = np.random.default_rng(4)
    v = openrnn.Variable(X)
    for key in keys(2, 300):
        weights = rng.integers(1, 9, X[key].shape).astype("float32")
        with openrnn.GradientTape() as tape:
            loss = openrnn.reduce_sum(v[key] * weights)
        wanted = np.zeros(SHAPE, "float32")
        np.add.at(wanted, key, weights)
        found = tape.gradient(loss, v)
        np.testing.assert_array_equal(np.asarray(found), wanted, err_msg=str(key))


def test_a_drawn_key_of_a_symbolic_tensor_of_known_and_unknown_sizes():
    one_array = 0
    for n, key in enumerate(keys(3, 200)):
        known = openrnn.Input(batch_shape=SHAPE)
        taken = known[key]
        assert taken.shape == X[key].shape, key
        models = [openrnn.Model(known, taken)]
        # Several arrays, and masks of empty tensors, need sizes that are known.
        if sum(isinstance(one, np.ndarray) for one in key) < 2 and X[key].size:
            some = openrnn.Input(
                batch_shape=[None if i == n % 4 else size for i, size in enumerate(SHAPE)]
            )
            models.append(openrnn.Model(some, some[key]))
            one_array += 1
        for model in models:
            np.testing.assert_array_equal(model(X).numpy(), X[key], err_msg=str(key))
    assert one_array > 50


def check(key):
    found = openrnn.constant(X)[key].numpy()
    np.testing.assert_array_equal(found, X[key], err_msg=str(key))


@pytest.mark.parametrize("first, count", [(0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (2, 2)])
def test_a_mask_between_other_keys(first, count):
    sizes = SHAPE[first : first + count]
    mask = (np.arange(np.prod(sizes)) % 3 != 1).reshape(sizes)
    left = 4 - first - count
    for before in ([slice(1, None)], [0], [slice(None)]):
        check((*before * first, mask))
        for behind in (slice(1, -1), 1, slice(None, None, -2), -1):
            for n in range(1, left + 1):
                key = (*before * first, mask, *[behind] * n)
                if side_by_side(key):
                    check(key)


KINDS = {
    "an array": np.array([2, 0, 2]),
    "a list": [2, 0, 2],
    "a tensor": openrnn.constant([2, 0, 2]),
    "a wide tensor": openrnn.constant(np.array([2, 0, 2], "int64")),
    "a tuple in a tuple": (2, 0, 2),
    "small integers": np.array([2, 0, 2], "uint8"),
    "one from the end": np.array([2, 0, -1], "int64"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_array_is_an_index(kind):
    tensor, key = openrnn.constant(X), KINDS[kind]
    np.testing.assert_array_equal(tensor[:, key].numpy(), X[:, [2, 0, 2]])
    np.testing.assert_array_equal(tensor[1, key, 0].numpy(), X[1, [2, 0, 2], 0])


def test_a_mask_of_any_kind_is_an_index():
    mask = np.array([[True, False, True], [False, True, True]])
    wanted = X[mask]
    tensor = openrnn.constant(mask)
    for key in (mask, mask.tolist(), tensor, (mask,), (tensor, Ellipsis), (mask, slice(None))):
        np.testing.assert_array_equal(openrnn.constant(X)[key].numpy(), wanted)
    nothing = openrnn.constant(X)[np.zeros((2, 3), bool)]
    assert nothing.shape == (0, 4, 5)
    assert openrnn.constant(X)[:, np.zeros((3, 4), bool), 1:].shape == (2, 0, 4)


def test_one_integer_of_any_kind_is_an_index():
    class Whole:
        def __index__(self):
            return 1

    tensor = openrnn.constant(X)
    for key in (1, np.int32(1), np.int64(1), np.array(1), np.array(1, "uint8"), Whole()):
        for x, values in (tensor, X), (openrnn.constant(INTEGERS), INTEGERS):
            np.testing.assert_array_equal(x[key].numpy(), values[1])
            np.testing.assert_array_equal(x[..., key].numpy(), values[..., 1])
            np.testing.assert_array_equal(x[key:, :, key:].numpy(), values[1:, :, 1:])


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_a_tensor_of_one_integer_is_an_index(dtype):
    for index in (0, 1) if dtype == "uint8" else (1, -1):
        key = openrnn.constant(np.array(index, dtype))
        for x, values in (openrnn.constant(X), X), (openrnn.constant(INTEGERS), INTEGERS):
            np.testing.assert_array_equal(x[key].numpy(), values[index])
            np.testing.assert_array_equal(x[:, key, 1:].numpy(), values[:, index, 1:])
    with pytest.raises(IndexError) as raised:
        openrnn.constant(X)[openrnn.constant(np.array(7, dtype))]
    assert str(raised.value) == "[Tensor] the index is 7, expected -2 to 1"


def test_sizes_that_one_key_joins_are_counted_once():
    """Places of three arrays: each has its own size and its own sign."""
    tensor = openrnn.constant(X)
    for at in np.ndindex(2, 3, 4):
        for signs in np.ndindex(2, 2, 2):
            key = tuple([at[n] - SHAPE[n] * signs[n]] for n in range(3))
            np.testing.assert_array_equal(tensor[key].numpy(), X[key])
    for axis, size in enumerate(SHAPE):
        for wrong in (size, -size - 1):
            key = tuple([wrong if i == axis else 0] for i in range(4))
            with pytest.raises(IndexError) as caught:
                tensor[key]
            expected = f"expected {-size} to {size - 1}"
            assert str(caught.value) == f"[Tensor] the index is {wrong}, {expected}"
