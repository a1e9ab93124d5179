"""What is kept of a call: whose it is, for which rows, and the workspace of the calls that follow."""

import numpy as np
import pytest
from numpy_torch import DTYPES, Tensor, no_grad
from problems import Rows, drawn

from openrnn import _core


def place_of(module, x, seed=0):
    from openrnn.torch import _forward
    from openrnn.torch._calls import Place

    engine = _forward.engine_of(module, x.dtype)
    return engine, Place(engine.net, seed, module.batch_first, module.training)


def test_a_token_of_another_call_is_nobody_s(ours):
    from openrnn.torch import _calls

    module, x = ours.torch.LSTM(3, 4), drawn(5, 2, 3)
    other = ours.torch.LSTM(3, 4, cell_clip=(-1.0, 1.0))
    engine, place = place_of(module, x)
    other_core = place_of(other, x)[0].net.core
    weights = list(module._parameters.values())
    y, _, _, token = _calls.forward(place, engine.held, x, None, None, weights, None, True)
    sizes, core = place.sizes(x, None), engine.net.core
    assert sizes[:3] == (5, 2, False) and sizes[4] == sizes[6] == 0
    dx, counts = np.full(x.shape, np.nan, "float32"), np.array([2] * 5)

    def found(core, **changes):
        given = list(sizes)
        for place, value in changes.items():
            given[int(place[1:])] = value
        return _core.torch_backward(core, token.data_ptr(), tuple(given), (y.data_ptr(), 0, 0),
                                    (dx.ctypes.data, 0, 0), 0, 0, 0, 0)  # fmt: skip

    assert not found(other_core)
    for wrong in ({"n0": 4}, {"n1": 1}, {"n2": True}, {"n3": not sizes[3]}, {"n4": counts.ctypes.data}, {"n6": 1}):
        assert not found(core, **wrong), wrong
    assert np.isnan(dx).all() and found(core, n5=sizes[5] + 1) and np.isfinite(dx).all()


def test_gradients_of_some_rows(ours):
    from openrnn.torch import _calls

    module, x = ours.torch.GRU(3, 4), drawn(5, 3, 3)
    engine, place = place_of(module, x)
    weights = list(module._parameters.values())
    y, _, _, token = _calls.forward(place, engine.held, x, None, None, weights, None, True)
    net, whole = engine.net, []
    for first, last in ((0, 3), (1, 3), (2, 3), (0, 2)):
        rows = np.full((3, net.size), np.nan, "float32")
        assert _core.torch_backward(net.core, token.data_ptr(), place.sizes(x, None), (y.data_ptr(), 0, 0),
                                    (0, 0, 0), 0, rows.ctypes.data, first, last)  # fmt: skip
        whole.append(rows)
        np.testing.assert_array_equal(rows[: last - first], whole[0][first:last])
        assert np.isnan(rows[last - first :]).all()


WAYS = {
    "as it is": Tensor,
    "between others": lambda array: Tensor(np.repeat(array, 2, axis=-1)[..., ::2]),
    "in another order": lambda array: Tensor(np.asfortranarray(array)),
    "negated": lambda array: Tensor(-array, negated=True),
}


@pytest.mark.parametrize("of_rows", [False, True], ids=["of the batch", "of rows"])
def test_upstream_gradients_of_any_memory_are_read_by_their_values(ours, of_rows):
    """Each of y, hn and cn by itself; the gradients of all that is asked for are the same."""
    from openrnn.torch import _calls

    module, x = ours.torch.LSTM(3, 4, 2), drawn(5, 3, 3)
    engine, place = place_of(module, x)
    weights, random = list(module._parameters.values()), np.random.default_rng(12)
    states = [Tensor(random.normal(size=(2, 3, 4)).astype("float32")) for _ in "hc"]
    *outputs, _ = _calls.forward(place, engine.held, x, *states, weights, None, True)
    upstream = [random.normal(size=each.shape).astype("float32") for each in outputs]

    def found(ways):
        grads = [WAYS[way](each) for way, each in zip(ways, upstream, strict=True)]
        *_, token = _calls.forward(place, engine.held, x, *states, weights, None, True)
        given = (place, token, grads, (x, *states), weights)
        if of_rows:
            return numpys(_calls.row_gradients(*given, [True] * 4))
        return numpys(_calls.backward(*given, None, [True] * 4))

    plain = found(["as it is"] * 3)
    assert all(np.ptp(each) > 0 for each in plain)
    for way in list(WAYS)[1:]:
        for place_of_one in range(3):
            ways = ["as it is"] * 3
            ways[place_of_one] = way
            for one, two in zip(found(ways), plain, strict=True):
                np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("batch_first", [False, True])
def test_a_workspace_serves_calls_of_any_size(ours, batch_first):
    """Small ones, larger ones in either dimension, and those that are too large to keep one."""
    options = {"num_layers": 2, "batch_first": batch_first, "proj_size": 2}
    module = ours.torch.LSTM(3, 4, **options).eval()
    with no_grad():
        for time, batch in ((2, 1), (7, 1), (2, 9), (7, 9), (1, 1), (40, 30), (3, 300), (300, 2), (2, 2)):
            fresh = ours.torch.LSTM(3, 4, **{**options, "batch_first": False}).eval()
            fresh._parameters.update(module._parameters)
            x, order = drawn(time, batch, 3), (1, 0, 2) if batch_first else (0, 1, 2)
            states = drawn(2, batch, 2), drawn(2, batch, 4)
            right = fresh(x, states)
            found = module(Tensor(np.ascontiguousarray(x.numpy().transpose(order))), states)
            np.testing.assert_array_equal(found[0].numpy().transpose(order), right[0].numpy())
            for a, b in zip(found[1], right[1], strict=True):
                np.testing.assert_array_equal(a.numpy(), b.numpy())
    assert module._engine.held.packings == 1


def test_weights_that_cannot_be_read_where_they_lie(ours):
    module, x = ours.torch.GRU(3, 4), drawn(5, 2, 3)
    engine, place = place_of(module, x)
    weights = list(module._parameters.values())
    y, hn = np.full((5, 2, 4), np.nan, "float32"), np.empty((1, 2, 4), "float32")

    def run(given, saving=False):
        made = (y.ctypes.data, hn.ctypes.data, 0)
        return engine.held.forward(given, saving, place.sizes(x, None), (x.data_ptr(), 0, 0), made)

    other = Tensor(weights[1].numpy().copy())
    other.is_cpu = False
    wide = np.zeros((12, 8), "float32")[:, ::2]
    wrong = [None, Tensor(np.zeros((12, 5), "float32")), Tensor(np.zeros((12, 4))),
             other, Tensor(wide), Tensor(np.zeros(48, "float32"))]
    for each in wrong:
        assert run([weights[0], each, *weights[2:]]) is False
    assert run(weights[:3]) is False and run([*weights, weights[0]]) is False
    assert np.isnan(y).all() and engine.held.packings == 0
    assert run(None) is False, "nothing is packed"
    assert run(weights) is True and run(None) is True and engine.held.packings == 1
    assert run(None, saving=True) is False, "packed for inference"
    before = _core.torch_saved_calls()
    token = run(weights, saving=True)
    assert _core.torch_saved_calls() == before + 1 and engine.held.packings == 2
    del token  # that nobody has taken
    assert _core.torch_saved_calls() == before
    assert run(None) is True and run(weights) is True and engine.held.packings == 2, "packed for both"
    for count, weight in enumerate(weights, 3):
        weight.array.flat[-1] += 1
        assert run(weights) is True and engine.held.packings == count
    engine.held.drop()
    assert run(None) is False
    with pytest.raises(TypeError, match=r"^\[openrnn.torch\] num_units is 'str', expected an integer$"):
        _core.TorchNetwork({"num_units": "a"}, x.dtype)


def numpys(tensors):
    return [None if each is None else np.asarray(each.numpy()) for each in tensors]


@pytest.mark.parametrize("order", ["time first", "batch first", "packed"])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("more", [{"proj_size": 2}, {"layer_norm": "products", "layer_norm_cell": "output"}])
def test_tangents_are_differences(ours, training, order, more):
    """Of outputs and of gradients, with one seed's masks; of layer norm by the engine that has them."""
    from openrnn.torch import _calls

    packed, batch_first = order == "packed", order == "batch first"
    module = ours.torch.LSTM(3, 4, 2, dropout=0.5, batch_first=batch_first, **more).to(DTYPES["float64"])
    module.train() if training else module.eval()
    rows = Rows([5, 3], 5)
    x = drawn(8, 3, dtype="float64") if packed else drawn(*(2, 5) if batch_first else (5, 2), 3, dtype="float64")
    batch_sizes = Tensor(rows.sizes) if packed else None
    engine, place = place_of(module, x, seed=2**40 + 5)
    net = engine.net
    width = more.get("proj_size", 4)
    inputs = [x, drawn(2, 2, width, dtype="float64"), drawn(2, 2, 4, dtype="float64")]
    random = np.random.default_rng(8)  # those of the module depend on the modules made before
    weights = [Tensor(random.uniform(-0.7, 0.7, each.shape)) for each in module._parameters.values()]
    like = lambda each: Tensor(random.normal(size=each.shape))
    direction = [like(each) for each in inputs]
    by_weight = [like(each) for each in weights]
    flat = net.joined(by_weight, x)
    outputs = _calls.forward(place, engine.held, *inputs, weights, batch_sizes, False)[:3]
    grads = [like(each) for each in outputs]
    found = numpys(_calls.tangent(place, [*direction, flat], grads, inputs, weights, batch_sizes, [True] * 7))
    near, step = [], 1e-6
    for by in (step, -step):
        moved = [Tensor(a.numpy() + by * b.numpy()) for a, b in zip(inputs, direction, strict=True)]
        at = [Tensor(a.numpy() + by * b.numpy()) for a, b in zip(weights, by_weight, strict=True)]
        *made, token = _calls.forward(place, engine.held, *moved, at, batch_sizes, True)
        back = _calls.backward(place, token, grads, moved, at, batch_sizes, [True] * 4)
        near.append(numpys([*made, *back]))
    for value, right, left in zip(found, *near, strict=True):
        slope = (right - left) / (2 * step)
        assert abs(slope).max() > 1e-3
        np.testing.assert_allclose(value, slope, atol=1e-5 * max(1, abs(slope).max()))
