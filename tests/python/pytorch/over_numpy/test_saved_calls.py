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


@pytest.mark.parametrize("batch_first", [False, True])
def test_a_workspace_serves_calls_of_any_size(ours, batch_first):
    """Small ones, larger ones in either dimension, and those that are too large to keep one."""
    options = {"num_layers": 2, "batch_first": batch_first, "proj_size": 2}
    module = ours.torch.LSTM(3, 4, **options).eval()
    with no_grad():
        for time, batch in ((2, 1), (7, 1), (2, 9), (7, 9), (1, 1), (40, 30), (3, 300), (300, 2), (2, 2)):
            fresh = ours.torch.LSTM(3, 4, **options).eval()
            fresh._parameters.update(module._parameters)
            x = drawn(*(batch, time) if batch_first else (time, batch), 3)
            states = drawn(2, batch, 2), drawn(2, batch, 4)
            found, right = module(x, states), fresh(x, states)
            np.testing.assert_array_equal(found[0].numpy(), right[0].numpy())
            for a, b in zip(found[1], right[1], strict=True):
                np.testing.assert_array_equal(a.numpy(), b.numpy())
    assert module._engine.held.packings == 1


def numpys(tensors):
    return [None if each is None else np.asarray(each.numpy()) for each in tensors]


@pytest.mark.parametrize("order", ["time first", "batch first", "packed"])
@pytest.mark.parametrize("training", [False, True])
def test_tangents_are_differences(ours, training, order):
    """Of outputs and of gradients, with one seed's masks."""
    from openrnn.torch import _calls

    packed, batch_first = order == "packed", order == "batch first"
    module = ours.torch.LSTM(3, 4, 2, dropout=0.5, batch_first=batch_first, proj_size=2).to(DTYPES["float64"])
    module.train() if training else module.eval()
    rows = Rows([5, 3], 5)
    x = drawn(8, 3, dtype="float64") if packed else drawn(*(2, 5) if batch_first else (5, 2), 3, dtype="float64")
    batch_sizes = Tensor(rows.sizes) if packed else None
    engine, place = place_of(module, x, seed=2**40 + 5)
    net = engine.net
    inputs = [x, drawn(2, 2, 2, dtype="float64"), drawn(2, 2, 4, dtype="float64")]
    weights = list(module._parameters.values())
    random = np.random.default_rng(8)
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
        np.testing.assert_allclose(value, slope, atol=1e-6 * max(1, abs(slope).max()))
