"""Second gradients, forward derivatives and vmap rules, against differences and calls one by one."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch_vectors
from numpy_torch import Context, Tensor, grad, told
from problems import Rows, leaf, module_of

CASES = ["lstm_projection_both_ways", "gru_both_ways", "lstm"]
# Recurrent's way, Direct's, and that of the operations.
WAYS = {"direct": {}, "recurrent": {"transforms": True}, "operation": {"compiling": True}}
STEP = 1e-6


class Net:
    """A problem in float64; `flat` is x, h0, c0 and the weights, as arrays."""

    def __init__(self, ours, case, batch_first=False, packed=True):
        with np.load(torch_vectors.PATH) as archive:
            problem = torch_vectors.stored_problem(dict(archive), case, "float64")
        self.module = module_of(ours.torch, problem.spec, problem.params, batch_first=batch_first)
        self.names = list(self.module._parameters)
        lstm = problem.spec.mode == "lstm"
        self.rows = None
        if packed and problem.lengths is not None:  # in order, so that states need no other one
            self.rows = Rows(np.sort(problem.lengths)[::-1], len(problem.x))
        rows = self.rows.flat if self.rows else lambda a: a.swapaxes(0, 1) if batch_first else a
        self.inputs = [np.ascontiguousarray(rows(problem.x)), problem.h0, *([problem.c0] if lstm else [])]
        self.weights = [self.module._parameters[name].array for name in self.names]
        self.grads = [np.ascontiguousarray(rows(problem.dy)), problem.dh, *([problem.dc] if lstm else [])]

    def call(self, inputs, weights, **way):
        as_tensor = lambda each: each if isinstance(each, Tensor) else Tensor(each)
        self.module._parameters.update(zip(self.names, map(as_tensor, weights), strict=True))
        x, *states = map(as_tensor, inputs)
        x = self.rows.packed(x) if self.rows else x
        with told(**way):
            y, last = self.module(x, tuple(states) if len(states) == 2 else states[0])
        return [y.data if self.rows else y, *(last if isinstance(last, tuple) else [last])]

    def gradients(self, arrays, grads, create_graph=False, **way):
        """Of all leaves, and the leaves and gradients given."""
        leaves = [leaf(array) for array in arrays]
        given = [leaf(each) for each in grads]
        count = len(self.inputs)
        outputs = self.call(leaves[:count], leaves[count:], **way)
        return grad(outputs, leaves, given, create_graph), leaves, given, outputs


def slope(function, arrays, directions):
    """The derivative of a list of arrays along the directions."""
    ends = [function([a + sign * STEP * v for a, v in zip(arrays, directions)]) for sign in (1, -1)]
    return [(a - b) / (2 * STEP) for a, b in zip(*ends, strict=True)]


def drawn(arrays, seed=5):
    random = np.random.default_rng(seed)
    return [random.normal(size=a.shape) for a in arrays]


def assert_near(found, wanted):
    for place, (a, b) in enumerate(zip(found, wanted, strict=True)):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-7 * max(1, abs(b).max()), err_msg=str(place))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES)
def test_gradients_of_gradients(ours, case, way):
    """Of sum(gradients * v): by leaves H v, by the upstream gradients J v."""
    net = Net(ours, case)
    arrays = [*net.inputs, *net.weights]
    v = drawn(arrays)
    first, leaves, given, _ = net.gradients(arrays, net.grads, create_graph=True, **WAYS[way])
    with told(**{**WAYS[way], "grad": False}):
        second = grad(first, [*leaves, *given], [Tensor(each) for each in v])
    curved = slope(lambda moved: [g.numpy() for g in net.gradients(moved, net.grads)[0]], arrays, v)
    moved = slope(lambda at: [o.numpy() for o in net.gradients(at, net.grads)[3]], arrays, v)
    assert_near([each.numpy() for each in second], [*curved, *moved])


@pytest.mark.parametrize("way", WAYS)
def test_second_gradients_of_some(ours, way):
    """Of what has a gradient alone, of one gradient alone; none of what does not need it."""
    net = Net(ours, "lstm")
    arrays = [*net.inputs, *net.weights]
    first, leaves, given, _ = net.gradients(arrays, net.grads, create_graph=True, **WAYS[way])
    whole = grad(first[4:5], [*leaves, *given], [Tensor(np.ones_like(arrays[4]))])
    x, h, c, *weights = [leaf(array) for array in arrays]
    for frozen in (h, weights[0], weights[2]):
        frozen.requires_grad = False
    again = [Tensor(each) for each in net.grads[:2]] + [leaf(net.grads[2])]
    outputs = net.call([x, h, c], weights, **WAYS[way])
    some = grad(outputs, [x, *weights], again, create_graph=True)
    assert [each is None for each in some] == [False, True, False, True, False]
    second = grad(some[2:3], [x, h, c, *weights, *again], [Tensor(np.ones_like(arrays[4]))])
    wanted = [True, False, True, False, True, False, True, False, False, True]
    assert [each is not None for each in second] == wanted
    for a, b, want in zip(second, whole, wanted, strict=True):
        if want:
            np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_second_gradients_of_weights_that_are_not_dense(ours):
    net = Net(ours, "lstm")
    arrays = [*net.inputs, *net.weights]
    found = []
    for order in ("C", "F"):
        leaves = [Tensor(np.asarray(array, order=order), requires_grad=True) for array in arrays]
        given = [leaf(each) for each in net.grads]
        first = grad(net.call(leaves[:3], leaves[3:]), leaves, given, create_graph=True)
        found.append(grad(first, leaves, [Tensor(np.ones_like(array)) for array in arrays]))
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def of_recurrent(net, arrays):
    """(Recurrent, its arguments, their context after a call)."""
    from openrnn.torch import _forward, _function

    engine = _forward.engine_of(net.module, Tensor(arrays[0]).dtype)
    place = engine.place_of(net.module, net.rows is not None)
    sizes = Tensor(net.rows.sizes) if net.rows else None
    x, h, *rest = [leaf(array) for array in arrays]
    c, weights = (rest[0], rest[1:]) if net.module.mode == "LSTM" else (None, rest)
    args = (place, engine.held, sizes, x, h, c, *weights)
    context = Context(args)
    output = _function.Recurrent.forward(*args)
    _function.Recurrent.setup_context(context, args, output)
    return _function, args, context, output


@pytest.mark.parametrize("case", CASES)
def test_forward_derivatives(ours, case):
    net = Net(ours, case)
    arrays = [*net.inputs, *net.weights]
    _function, args, context, output = of_recurrent(net, arrays)
    v = [*map(Tensor, drawn(arrays))]
    if args[5] is None:
        v.insert(2, None)
    for moving in (range(len(v)), [0], [1, 4], [2, len(v) - 1]):
        tangents = [each if n in moving else None for n, each in enumerate(v)]
        found = _function.Recurrent.jvp(context, None, None, None, *tangents)
        assert found[3] is None
        directions = [np.zeros_like(a.array) if t is None else t.array for a, t in zip(args[3:], tangents)
                      if a is not None]
        wanted = slope(lambda at: [o.numpy() for o in net.gradients(at, net.grads)[3]], arrays, directions)
        assert_near([each.numpy() for each in found if each is not None], wanted)

    # Of the gradient: along the upstream gradients, and along what it was taken at.
    count = len(net.weights)
    grads = [Tensor(each) for each in net.grads] + ([None] if args[5] is None else [])
    given = (args[0], (True, True, args[5] is not None, True), output[3], args[2], *grads, *args[3:])
    context = Context(given)
    first = _function.Gradient.forward(*given)
    _function.Gradient.setup_context(context, given, first)
    for seed, moves in ((1, (True, True)), (2, (False, True)), (3, (True, False))):
        along = drawn([*net.grads, *arrays], seed)
        pieces = iter(Tensor(each) if moves[n >= len(net.grads)] else None for n, each in enumerate(along))
        tangents = [None if each is None else next(pieces) for each in given[4:]]
        found = _function.Gradient.jvp(context, None, None, None, None, *tangents)
        along = [each if moves[n >= len(net.grads)] else 0 * each for n, each in enumerate(along)]

        def gradients(at):
            made = net.gradients(at[len(net.grads):], at[: len(net.grads)])[0]
            params = args[0].net.joined(made[-count:], made[0])
            return [each.numpy() for each in (*made[:-count], params)]

        wanted = slope(gradients, [*net.grads, *arrays], along)
        assert_near([each.numpy() for each in found if each is not None], wanted)


def test_forward_derivatives_of_some_gradients(ours):
    net = Net(ours, "lstm")
    arrays = [*net.inputs, *net.weights]
    _function, args, _, output = of_recurrent(net, arrays)
    found = []
    for wanted in ((True,) * 4, (False, True, False, True)):
        given = (args[0], wanted, output[3], args[2], *map(Tensor, net.grads), *args[3:])
        context = Context(given)
        _function.Gradient.setup_context(context, given, _function.Gradient.forward(*given))
        along = [Tensor(each) for each in drawn([*net.grads, *arrays])]
        found.append(_function.Gradient.jvp(context, None, None, None, None, *along))
    assert [each is not None for each in found[1]] == [False, True, False, True]
    for place in (1, 3):
        np.testing.assert_array_equal(found[1][place].numpy(), found[0][place].numpy())


def test_transforms_see_the_gradient_as_a_function(ours, monkeypatch):
    """Whatever looks on at a backward pass must find a function with rules, not memory."""
    net = Net(ours, "lstm")
    _function, args, context, _ = of_recurrent(net, [*net.inputs, *net.weights])
    calls, own = [], _function.Gradient.apply
    monkeypatch.setattr(_function.Gradient, "apply", lambda *given: calls.append(1) or own(*given))
    rules, direct = [], _function.Recurrent.apply
    monkeypatch.setattr(_function.Recurrent, "apply", lambda *given: rules.append(1) or direct(*given))
    net.call(net.inputs, net.weights, transforms=True)
    assert rules
    net.call([leaf(each) for each in net.inputs], net.weights)
    assert len(rules) == 1
    grads = [Tensor(each) for each in net.grads]
    for way, count in (({"grad": False}, 0), ({"grad": False, "transforms": True}, 1), ({}, 1)):
        with told(**way):
            _function.Recurrent.backward(context, *grads, None)
        assert len(calls) == count
        calls.clear()
    info, dims = SimpleNamespace(batch_size=1), (None,) * 7 + (0,) + (None,) * (len(args) - 4)
    given = (args[0], (True, True, True, True), None, None, *grads, args[3].unsqueeze(0), *args[4:])
    for way, count in (({"grad": False}, 0), ({"grad": False, "transforms": True}, 1), ({}, 1)):
        with told(**way):
            _function.Gradient.vmap(info, dims, *given)
        assert len(calls) == count
        calls.clear()


def test_third_derivatives_are_refused(ours):
    import openrnn.torch._function as functions
    import openrnn.torch._ops as operations

    with pytest.raises(RuntimeError, match="a third derivative, or a reverse derivative of a forward"):
        functions.Tangent.backward(None)
    with pytest.raises(RuntimeError, match="a third derivative, expected first and second"):
        functions.Tangent.jvp(None)
    with pytest.raises(RuntimeError, match="a third derivative of openrnn::rnn"):
        operations.rnn_tangent.gradient(None)


SAMPLES = 3


def beside(arrays, dims, seed=9):
    """Samples of the arrays along the dimensions; the same for all where it is None."""
    random = np.random.default_rng(seed)
    made = []
    for array, dim in zip(arrays, dims, strict=True):
        if array is not None and dim is not None:
            array = np.stack([array + 0.1 * random.normal(size=array.shape) for _ in range(SAMPLES)], dim)
        made.append(None if array is None else Tensor(array))
    return made


def sample(tensors, dims, n):
    return [t if t is None or d is None else t.select(d, n) for t, d in zip(tensors, dims, strict=True)]


# Dimensions of x, h0, c0 and the first and other weights.
MAPPED = {"x": (0, None, None, None), "states": (None, 1, 2, None), "all inputs": (1, 0, 2, None),
          "weights": (0, None, None, 0)}  # fmt: skip


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("mapped", MAPPED)
@pytest.mark.parametrize("case", ["lstm", "gru_both_ways"])
def test_vmap_rules(ours, case, mapped, batch_first, training, lost):
    net = Net(ours, case, batch_first, packed=False)
    net.module.train(training)
    _function, args, _, _ = of_recurrent(net, [*net.inputs, *net.weights])
    place, _, _, *tensors = args
    x_dim, h_dim, c_dim, w_dim = MAPPED[mapped]
    dims = (x_dim, h_dim, None if args[5] is None else c_dim, w_dim, *[None] * (len(tensors) - 4))
    given = beside([t if t is None else t.array for t in tensors], dims)
    info = SimpleNamespace(batch_size=SAMPLES)
    rule = _function.Recurrent.vmap
    outputs, out_dims = rule(info, (None,) * 3 + dims, place, args[1], None, *given)
    token = None if lost else outputs[3]
    assert out_dims[3] is None and outputs[3].dtype.name == "uint8"
    grads_dims = (1, None, None if args[5] is None else 0)
    grads = [*net.grads] + ([None] if args[5] is None else [])
    grads = beside(grads, grads_dims, 11)
    for wanted in ((True, True, args[5] is not None, True), (True, False, False, False)):
        found, found_dims = _function.Gradient.vmap(
            info, (None, None, None, None, *grads_dims, *dims), place, wanted, token, None, *grads, *given)
        for n in range(SAMPLES):
            alone = sample(given, dims, n)
            right = _function.Recurrent.forward(place, None, None, *alone)
            for a, dim, b in zip(outputs[:3], out_dims[:3], right[:3], strict=True):
                assert (a is None) == (b is None)
                if a is not None:
                    np.testing.assert_allclose(a.select(dim, n).numpy(), b.numpy(), rtol=0, atol=1e-14)
            right = _function.Gradient.forward(place, wanted, right[3], None, *sample(grads, grads_dims, n), *alone)
            for a, dim, b in zip(found, found_dims, right, strict=True):
                assert (a is None) == (b is None)
                if a is not None:
                    np.testing.assert_allclose(a.select(dim, n).numpy(), b.numpy(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("mapped", MAPPED)
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("case", ["lstm", "gru_both_ways"])
def test_vmap_rules_of_operations(ours, case, batch_first, mapped):
    import openrnn.torch._ops as operations

    net = Net(ours, case, batch_first, packed=False)
    _, args, _, _ = of_recurrent(net, [*net.inputs, *net.weights])
    tensors = args[3:]
    x_dim, h_dim, c_dim, w_dim = MAPPED[mapped]
    dims = (x_dim, h_dim, None if args[5] is None else c_dim, w_dim, *[None] * (len(tensors) - 4))
    given = beside([t if t is None else t.array for t in tensors], dims)
    rest = (None, None, args[0].net.text, batch_first, False, True)
    info = SimpleNamespace(batch_size=SAMPLES)
    in_dims = (*dims[:3], list(dims[3:]), *[None] * 6)
    outputs, out_dims = operations.rnn.rule(info, in_dims, *given[:3], given[3:], *rest)
    for n in range(SAMPLES):
        x, h, c, *weights = sample(given, dims, n)
        right = operations.rnn(x, h, c, weights, *rest)
        for a, dim, b in zip(outputs[:3], out_dims[:3], right[:3], strict=True):
            a = a if dim is None else a.select(dim, n)
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=0, atol=1e-14)


def test_masks_of_samples_are_their_own(ours):
    """With dropout samples are no rows of one batch: a row's masks go by its number."""
    from openrnn.torch._function import Recurrent

    module = ours.torch.LSTM(3, 4, 2, dropout=0.5)
    module.train()
    x = Tensor(np.repeat(np.ones((1, 5, 1, 3), "float32"), SAMPLES, 0))
    from openrnn.torch import _forward

    engine = _forward.engine_of(module, x.dtype)
    place = engine.place_of(module, False)
    assert place.seed and place.training
    weights = _forward.weights_of(module, engine.names)
    info = SimpleNamespace(batch_size=SAMPLES)
    in_dims = (None, None, None, 0, *[None] * (2 + len(weights)))
    (y, *_), (dim, *_) = Recurrent.vmap(info, in_dims, place, engine.held, None, x, None, None, *weights)
    right = Recurrent.forward(place, None, None, x.select(0, 0), None, None, *weights)[0]
    for n in range(SAMPLES):
        np.testing.assert_array_equal(y.select(dim, n).numpy(), right.numpy())

    import openrnn.torch._ops as operations

    rest = (None, Tensor(np.array(place.seed)), place.net.text, False, True, False)
    in_dims = (0, None, None, None, *[None] * 6)
    (y, *_), (dim, *_) = operations.rnn.rule(info, in_dims, x, None, None, weights, *rest)
    for n in range(SAMPLES):
        np.testing.assert_array_equal(y.select(dim, n).numpy(), right.numpy())
