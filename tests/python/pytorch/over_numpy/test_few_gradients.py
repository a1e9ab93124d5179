"""Gradients of some outputs and of some inputs: the engine is asked for those, and for nothing else."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy_torch import Context, Tensor, grad, told
from problems import leaf
from test_second_gradients import SAMPLES, WAYS, Net, beside, drawn, of_recurrent, sample


def given(tensors):
    return [each is not None for each in tensors]


@pytest.fixture
def asked(ours, monkeypatch):
    """What passes over gradients were asked for: (grads, wanted) and (directions, grads, wanted)."""
    from openrnn.torch import _calls

    found = SimpleNamespace(backward=[], tangent=[], forward=0, rows=0)
    backward, tangent = _calls.backward, _calls.tangent
    forward, rows = _calls.forward, _calls.row_gradients

    def count_backward(place, token, grads, inputs, weights, batch_sizes, wanted):
        found.backward.append((given(grads), list(wanted)))
        return backward(place, token, grads, inputs, weights, batch_sizes, wanted)

    def count_tangent(place, direction, grads, *rest):
        found.tangent.append((given(direction), given(grads), list(rest[-1])))
        return tangent(place, direction, grads, *rest)

    def count_forward(*args):
        found.forward += 1
        return forward(*args)

    def count_rows(*args):
        found.rows += 1
        return rows(*args)

    monkeypatch.setattr(_calls, "backward", count_backward)
    monkeypatch.setattr(_calls, "tangent", count_tangent)
    monkeypatch.setattr(_calls, "forward", count_forward)
    monkeypatch.setattr(_calls, "row_gradients", count_rows)
    return found


@pytest.mark.parametrize("way", WAYS)
def test_gradients_that_are_not_there_are_not_made(ours, asked, way):
    net = Net(ours, "lstm")
    arrays = [*net.inputs, *net.weights]
    leaves = [leaf(each) for each in arrays]
    outputs = net.call(leaves[:3], leaves[3:], **WAYS[way])
    upstream = [leaf(each) for each in net.grads]
    total = 0
    for n in range(3):
        found = grad(outputs[n : n + 1], leaves, upstream[n : n + 1])
        assert asked.backward.pop() == ([k == n for k in range(3)], [True] * 4)
        total = total + found[0].numpy()
    whole = grad(outputs, leaves, upstream, create_graph=True)
    np.testing.assert_allclose(total, whole[0].numpy(), rtol=0, atol=1e-12)
    # And of each of the gradients; those of the weights are one.
    v = [Tensor(each) for each in drawn(arrays)]
    for n, at in ((0, 0), (1, 1), (2, 2), (3, 4)):
        found = grad(whole[at : at + 1], [*leaves, *upstream], v[at : at + 1])
        assert asked.tangent.pop() == ([k == n for k in range(4)], [True] * 3, [True] * 7)
        assert all(abs(each.numpy()).max() > 0 for each in found if each.shape)
    assert not asked.tangent


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("alone", range(7))
def test_one_tensor_with_a_history(ours, asked, way, alone):
    """Any of x, h0, c0 and the weights makes a call one of training."""
    net = Net(ours, "lstm")
    arrays = [*net.inputs, *net.weights]
    tensors = [Tensor(each, requires_grad=n == alone) for n, each in enumerate(arrays)]
    outputs = net.call(tensors[:3], tensors[3:], **WAYS[way])
    found = grad(outputs, tensors, [Tensor(each) for each in net.grads])
    assert given(found) == [n == alone for n in range(7)]
    assert asked.backward == [([True] * 3, [alone == 0, alone == 1, alone == 2, alone > 2])]
    assert asked.forward == 1


def test_memory_of_any_order_and_sign_is_read_twice(ours):
    """Upstream gradients and directions that are not dense, or negated when they are read."""
    net = Net(ours, "lstm")
    arrays = [*net.inputs, *net.weights]
    v, found = drawn(arrays), []
    strided = lambda a: Tensor(np.repeat(a, 2, axis=-1)[..., ::2])
    for made in (Tensor, strided, lambda a: Tensor(-a, negated=True)):
        leaves, upstream = [leaf(each) for each in arrays], [made(each) for each in net.grads]
        for each in upstream:
            each.requires_grad = True
        outputs = net.call(leaves[:3], leaves[3:])
        first = grad(outputs, leaves, upstream, create_graph=True)
        found.append(grad(first[:3], [*leaves, *upstream], [made(each) for each in v[:3]]))
    for other in found[1:]:
        for a, b in zip(other, found[0], strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_nothing_is_computed_for_no_gradient(ours, asked):
    import openrnn.torch._ops as operations

    net = Net(ours, "lstm")
    functions, args, context, output = of_recurrent(net, [*net.inputs, *net.weights])
    assert functions.Recurrent.backward(context, None, None, None, None) == (None,) * len(args)
    gradient = (args[0], (True,) * 4, output[3], None, *map(Tensor, net.grads), *args[3:])
    context = Context(gradient)
    functions.Gradient.setup_context(context, gradient, None)
    assert functions.Gradient.backward(context, None, None, None, None) == (None,) * len(gradient)
    assert not asked.backward and not asked.tangent
    assert operations.rnn_backward.default is operations.rnn_backward


def assert_kept_for_forward(context):
    """PyTorch keeps for forward derivatives what it is told, and they read all that backward does."""
    assert [id(each) for each in context.kept_for_forward] == [id(each) for each in context.kept]


def test_a_tangent_of_one_alone(ours, asked):
    """Forward derivatives along any one argument, of outputs and of gradients."""
    net = Net(ours, "lstm")
    arrays = [*net.inputs, *net.weights]
    functions, args, context, output = of_recurrent(net, arrays)
    assert_kept_for_forward(context)
    v = [Tensor(each) for each in drawn(arrays)]
    for n in range(7):
        only = [each if k == n else None for k, each in enumerate(v)]
        found = functions.Recurrent.jvp(context, None, None, None, *only)
        assert asked.tangent.pop() == (
            [n == 0, n == 1, n == 2, n > 2], [False] * 3, [True] * 3 + [False] * 4)
        assert given(found) == [True, True, True, False]
        assert all(abs(each.numpy()).max() > 0 for each in found[:3])
    given_ = (args[0], (True,) * 4, output[3], None, *map(Tensor, net.grads), *args[3:])
    context = Context(given_)
    functions.Gradient.setup_context(context, given_, None)
    assert_kept_for_forward(context)
    for n in range(10):
        along = [Tensor(each) for each in drawn([*net.grads, *arrays])]
        only = [each if k == n else None for k, each in enumerate(along)]
        asked.backward.clear()
        found = functions.Gradient.jvp(context, None, None, None, None, *only)
        assert asked.tangent.pop() == (
            [n == 3, n == 4, n == 5, n > 5], [True] * 3, [False] * 3 + [True] * 4)
        assert len(asked.backward) == (n < 3)
        assert all(abs(each.numpy()).max() > 0 for each in found)


@pytest.mark.parametrize("mapped", ["x", "h0", "c0", "weight"])
def test_samples_that_share_weights_are_one_call(ours, asked, mapped):
    net = Net(ours, "lstm", packed=False)
    functions, args, _, _ = of_recurrent(net, [*net.inputs, *net.weights])
    tensors = args[3:]
    at = {"x": 0, "h0": 1, "c0": 2, "weight": len(tensors) - 1}[mapped]
    dims = tuple(0 if n == at else None for n in range(len(tensors)))
    samples = beside([each.array for each in tensors], dims)
    info = SimpleNamespace(batch_size=SAMPLES)
    asked.forward = 0
    outputs, _ = functions.Recurrent.vmap(info, (None,) * 3 + dims, args[0], args[1], None, *samples)
    assert asked.forward == (SAMPLES if mapped == "weight" else 1)
    grads = [Tensor(each) for each in net.grads]
    for wanted in ((True,) * 4, (True, True, True, False)):
        asked.backward.clear()
        asked.rows = 0
        in_dims = (None,) * 7 + dims
        with told(grad=False):
            functions.Gradient.vmap(info, in_dims, args[0], wanted, outputs[3], None, *grads, *samples)
        # x says whether the forward call was of samples.
        count = 1 if mapped == "x" else SAMPLES
        assert (asked.rows, len(asked.backward)) == ((1, 0) if wanted[3] and count == 1 else (0, count))


@pytest.mark.parametrize("place", range(14))
def test_samples_of_tangents(ours, place):
    """Tangents have a call for each sample, whatever is mapped."""
    net = Net(ours, "lstm", packed=False)
    functions, args, _, _ = of_recurrent(net, [*net.inputs, *net.weights])
    size = args[0].net.size
    shapes = [each.shape for each in net.inputs] + [(size,)] + [each.shape for each in net.grads]
    random = np.random.default_rng(8)
    arrays = [random.normal(size=shape) for shape in shapes] + [each.array for each in args[3:]]
    dims = tuple(0 if n == place else None for n in range(len(arrays)))
    samples = beside(arrays, dims)
    info = SimpleNamespace(batch_size=SAMPLES)
    wanted = (True,) * 7
    found, found_dims = functions.Tangent.vmap(info, (None,) * 3 + dims, args[0], wanted, None, *samples)
    assert found_dims == (0,) * 7
    for n in range(SAMPLES):
        right = functions.Tangent.forward(args[0], wanted, None, *sample(samples, dims, n))
        for a, b in zip(found, right, strict=True):
            np.testing.assert_allclose(a.select(0, n).numpy(), b.numpy(), rtol=0, atol=1e-12)
