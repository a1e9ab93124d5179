"""Operations of torch.library: shapes, networks, and saved calls by their tokens."""

import gc

import numpy as np
from numpy_torch import DTYPES, Tensor
from problems import Rows, drawn


def test_shapes_without_values(ours):
    """What a compiler is told of the operations: shapes and dtypes of what they give."""
    import openrnn.torch._ops as operations
    from openrnn.torch._network import text_of

    for module, batch_first in ((ours.torch.LSTM(3, 4, 2, proj_size=2, bidirectional=True), False),
                                (ours.torch.GRU(3, 4, batch_first=True), True)):
        lstm = module.mode == "LSTM"
        weights = list(module._parameters.values())
        rest = (weights, None, None, text_of(module), batch_first, False)
        x, h = drawn(5, 2, 3), drawn(module.num_layers * (1 + module.bidirectional), 5 if batch_first else 2,
                                     module.proj_size or 4)
        c = drawn(h.shape[0], h.shape[1], 4) if lstm else None
        real, fake = (call(x, h, c, *rest, True) for call in (operations.rnn, operations.rnn.fake))
        shapes = lambda all: [(each.shape, each.dtype) for each in all]
        assert shapes(fake) == shapes(real) == shapes(operations.rnn(x, h, c, *rest, False))
        grads = (drawn(*real[0].shape), drawn(*real[1].shape), drawn(*real[2].shape) if lstm else None)
        for wanted in ([True] * 4, [False, True, False, False], [True, False, True, True]):
            args = (*grads, real[3], x, h, c, *rest, wanted)
            assert shapes(operations.rnn_backward.fake(*args)) == shapes(operations.rnn_backward(*args))
        for wanted in ([True] * 7, [True, False, False, True, False, True, False]):
            args = (x, h, c, None, *grads, x, h, c, *rest, wanted)
            assert shapes(operations.rnn_tangent.fake(*args)) == shapes(operations.rnn_tangent(*args))
    packed = Rows([5, 3], 5)  # their number is that of no other axis
    args = (drawn(8, 3), drawn(1, 2, 4), None, weights, Tensor(packed.sizes), None, text_of(module), False, False, True)
    assert shapes(operations.rnn.fake(*args)) == shapes(operations.rnn(*args))


def test_autocast_of_an_operation(ours):
    import openrnn.torch._ops as operations
    from openrnn.torch._network import text_of

    module = ours.torch.GRU(3, 4)
    weights = list(module._parameters.values())
    rest = (weights, None, None, text_of(module), False, False, False)
    x, h = drawn(5, 2, 3).to(DTYPES["bfloat16"]), drawn(1, 2, 4)
    found = operations.rnn.kernels["AutocastCPU"](x, h, None, *rest)
    right = operations.rnn(x.to(DTYPES["float32"]), h, None, *rest)
    np.testing.assert_array_equal(found[0].numpy(), right[0].numpy())


def test_operations_of_two_networks_with_the_same_weights(ours):
    import openrnn.torch._ops as operations
    from openrnn.torch._network import text_of

    plain = ours.torch.GRU(3, 4)
    other = ours.torch.GRU(3, 4, reset_after=False)
    weights, x = list(plain._parameters.values()), drawn(5, 2, 3)
    found = [operations.rnn(x, None, None, weights, None, None, text_of(each), False, False, False)[0].numpy()
             for each in (plain, other, plain)]
    np.testing.assert_array_equal(found[0], plain(x)[0].numpy())
    np.testing.assert_array_equal(found[0], found[2])
    assert abs(found[0] - found[1]).max() > 1e-3


def test_a_token_that_is_gone(ours):
    """A backward pass without the saved call computes it again; saved calls go with their tokens."""
    from openrnn import _core
    from openrnn.torch import _forward
    from openrnn.torch._function import Recurrent

    gc.collect()
    before = _core.torch_saved_calls()
    module, x = ours.torch.LSTM(3, 4), drawn(5, 2, 3)
    engine = _forward.engine_of(module, x.dtype)
    place, weights = engine.place_of(module, False), list(module._parameters.values())
    y, hn, cn, token = Recurrent.forward(place, engine.held, None, x, None, None, *weights)
    assert token.shape == (1,) and token.dtype.name == "uint8"
    assert _core.torch_saved_calls() == before + 1
    from openrnn.torch import _calls

    grads, inputs = (y, None, cn), (x, None, None)
    wanted = (True, True, False, True)
    found = [
        _calls.backward(place, each, grads, inputs, weights, None, wanted)
        for each in (token, None, Tensor(token.array.copy()))
    ]
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                np.testing.assert_array_equal(a.numpy(), b.numpy())
    assert found[0][2] is None
    del token
    gc.collect()
    assert _core.torch_saved_calls() == before
