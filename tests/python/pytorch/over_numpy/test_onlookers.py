"""Whoever looks on at a call sees an operation or a function, and the right one."""

import numpy as np
import pytest
from numpy_torch import DTYPES, Tensor, grad, no_grad, seen, told
from numpy_torch import torch as numpy_torch
from numpy_torch.modules import Own
from problems import Rows, drawn, leaf, ones

WAYS = {"compiler": {"compiling": True}, "mode": {"modes": 1}}


@pytest.fixture
def operations(ours, monkeypatch):
    """The arguments of calls of the operation."""
    import openrnn.torch._ops  # noqa: F401

    calls, own = [], numpy_torch.ops.openrnn.rnn
    monkeypatch.setattr(numpy_torch.ops.openrnn, "rnn", lambda *args: calls.append(args) or own(*args))
    return calls


@pytest.mark.parametrize("way", WAYS)
def test_arguments_of_the_operation(ours, operations, way):
    from openrnn.torch._network import text_of

    x, h, c = drawn(2, 5, 3), drawn(4, 2, 2), drawn(4, 2, 4)
    lstm = ours.torch.LSTM(3, 4, 2, batch_first=True, bidirectional=True, proj_size=2, dropout=0.5)
    for training in (False, True):
        lstm.train(training)
        with told(**WAYS[way]):
            lstm(x, (h, c))
        *tensors, weights, sizes, seed, text, batch_first, trains, saving = operations.pop()
        assert [id(each) for each in tensors] == [id(x), id(h), id(c)]
        assert weights == list(lstm._parameters.values()) and sizes is None
        assert (seed is not None) == training == trains
        assert seed is None or seed.dtype is DTYPES["int64"]
        assert (text, batch_first, saving) == (text_of(lstm), True, True)


@pytest.mark.parametrize("way", WAYS)
def test_seeds_are_of_what_draws(ours, operations, way):
    """And nothing else takes a random number from PyTorch."""
    for options, draws in (
        ({}, False), ({"dropout": 0.5}, False), ({"num_layers": 2}, False),
        ({"num_layers": 2, "dropout": 0.5}, True), ({"zoneout": 0.5}, True),
        ({"recurrent_dropout": 0.5}, True), ({"cell_clip": (-1.0, 1.0)}, False),
    ):  # fmt: skip
        lstm = ours.torch.LSTM(3, 4, **options)
        for training in (True, False):
            lstm.train(training)
            before = seen.draws
            with told(**WAYS[way]):
                lstm(drawn(5, 2, 3))
            assert (operations.pop()[5] is not None) == (draws and training)
            assert seen.draws == before + (draws and training)
            if "dropout" not in options or draws:  # the direct way asks the engine
                lstm(drawn(5, 2, 3))
                assert seen.draws == before + 2 * (draws and training)


@pytest.mark.parametrize("alone", [None, "x", "h", "c", "weight"])
def test_what_is_saved(ours, operations, alone):
    lstm = ours.torch.LSTM(3, 4)
    for parameter in lstm._parameters.values():
        parameter.requires_grad = False
    tensors = {"x": drawn(5, 2, 3), "h": drawn(1, 2, 4), "c": drawn(1, 2, 4), "weight": lstm.bias_hh_l0}
    if alone:
        tensors[alone].requires_grad = True
    for way, saving in (({"compiling": True}, alone is not None), ({"compiling": True, "grad": False}, False)):
        with told(**way):
            lstm(tensors["x"], (tensors["h"], tensors["c"]))
        assert operations.pop()[-1] is saving


@pytest.mark.parametrize("proj_size", [0, 2])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_the_state_of_rows_says_how_many_they_are(ours, operations, bidirectional, proj_size):
    lstm = ours.torch.LSTM(3, 4, 3, batch_first=True, bidirectional=bidirectional, proj_size=proj_size,
                           dtype=DTYPES["float64"])  # fmt: skip
    rows = Rows([3, 1], 3)
    packed = rows.packed(drawn(4, 3, dtype="float64"))
    with told(compiling=True):
        lstm(packed)
        _, h0, c0, _, sizes, _, _, batch_first, *_ = operations.pop()
        assert h0.shape == (3 * (1 + bidirectional), 2, proj_size or 4) and not h0.array.any()
        assert h0.dtype is DTYPES["float64"] and c0 is None
        assert sizes is packed.batch_sizes and batch_first is False
        lstm(drawn(2, 5, 3, dtype="float64"))
        assert operations.pop()[1] is None


def test_autocast_has_the_direct_way(ours, operations):
    gru, half = ours.torch.GRU(3, 4), DTYPES["bfloat16"]
    with told(autocast=half):
        gru(drawn(5, 2, 3))
        assert not operations
        with told(compiling=True):
            gru(drawn(5, 2, 3))
        assert '"math": "bf16"' in operations.pop()[6]
        with told(modes=1):
            gru(drawn(5, 2, 3))
        assert '"math": "bf16"' in operations.pop()[6]
    for dtype, lower in (("float64", "bfloat16"), ("float32", "float16")):
        other = ours.torch.GRU(3, 4, dtype=DTYPES[dtype])
        with told(autocast=DTYPES[lower], compiling=True):
            other(drawn(5, 2, 3, dtype=dtype))
        assert "math" not in operations.pop()[6]


def test_forward_derivatives_find_a_function_with_rules(ours, monkeypatch):
    """Also without gradients, and after calls that need none."""
    from openrnn.torch._function import Recurrent

    calls, own = [], Recurrent.apply
    monkeypatch.setattr(Recurrent, "apply", lambda *args: calls.append(1) or own(*args))
    gru, x = ours.torch.GRU(3, 4), drawn(5, 2, 3)
    with no_grad():
        right = gru(x)[0].numpy()
        gru(x)
    assert not calls
    monkeypatch.setattr(numpy_torch.forward_ad, "_current_level", 0)
    with no_grad():
        np.testing.assert_array_equal(gru(x)[0].numpy(), right)
        assert len(calls) == 1
    for parameter in gru._parameters.values():
        parameter.requires_grad = False
    gru(x)
    assert len(calls) == 2
    monkeypatch.setattr(numpy_torch.forward_ad, "_current_level", -1)
    with told(grad=False, transforms=True):
        gru(x)
    assert len(calls) == 3


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", ["LSTM", "GRU", "tanh", "relu"])
def test_a_trace_of_a_cell_has_pytorch_s_operation(ours, name, bias):
    kind = {"nonlinearity": name} if name in ("tanh", "relu") else {}
    cell = getattr(ours.torch, f"{'RNN' if kind else name}Cell")(3, 4, bias=bias, **kind)
    x, states = drawn(2, 3), (drawn(2, 4), Tensor(2 * drawn(2, 4).array + 1))
    hx = states if name == "LSTM" else states[0]
    alone = (states[0][1], states[1][1]) if name == "LSTM" else states[0][1]
    of = lambda last: [each.numpy() for each in (last if isinstance(last, tuple) else (last,))]
    for args in ((x, hx), (x,), (x[1], alone)):
        right = of(cell(*args))
        with told(tracing=object()):
            found = of(cell(*args))
        for a, b in zip(found, right, strict=True):
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-6)


def test_cells_under_autocast_are_modules_of_one_step(ours):
    half = DTYPES["bfloat16"]
    for name in ("LSTM", "GRU"):
        cell, module = getattr(ours.torch, f"{name}Cell")(3, 4), getattr(ours.torch, name)(3, 4)
        for key, parameter in cell.named_parameters():
            module._parameters[f"{key}_l0"] = parameter
        x, h = drawn(2, 3), drawn(2, 4)
        hx = (h, h) if name == "LSTM" else h
        of = lambda last: last[0] if isinstance(last, tuple) else last
        with told(autocast=half):
            found = of(cell(x.to(half), hx))
            right = of(module(x.to(half).unsqueeze(0), tuple(each.unsqueeze(0) for each in hx) if
                              name == "LSTM" else h.unsqueeze(0))[1])
        assert found.dtype is right.dtype is DTYPES["float32"]
        np.testing.assert_array_equal(found.numpy(), right.numpy()[0])


def test_what_goes_to_pytorch_goes_as_it_came(ours):
    lstm, x, hx = ours.torch.LSTM(3, 4), ones(5, 2, 3), (ones(1, 2, 4), ones(1, 2, 4))
    for way in ({"tracing": object()}, {"onnx": True, "compiling": True}):
        with told(**way):
            assert lstm(x, hx) == Own("LSTM", lstm, x, hx)
    rnn, h = ours.torch.RNN(3, 4), ones(1, 2, 4)
    with told(autocast=DTYPES["int64"]):
        assert rnn(x, h) == Own("RNN", rnn, x, h)
    for cell, states in ((ours.torch.LSTMCell(3, 4), (h, h, h)), (ours.torch.GRUCell(3, 4), 5)):
        assert cell(x, states) == Own(type(cell).__name__, cell, x, states)


def test_states_in_lists(ours):
    lstm = ours.torch.LSTM(3, 4)
    x, h, c = drawn(5, 2, 3), drawn(1, 2, 4), Tensor(drawn(1, 2, 4).array + 1)
    packed = Rows([5, 4], 5).packed(drawn(9, 3))
    for given, pair in ((x, (h, c)), (x[:, 0], (h[:, 0], c[:, 0])), (packed, (h, c))):
        for way in ({}, {"autocast": DTYPES["bfloat16"]}, {"grad": False}):
            with told(**way):
                for a, b in zip(lstm(given, list(pair))[1], lstm(given, pair)[1], strict=True):
                    np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_rows_that_are_in_order(ours):
    """A PackedSequence without indices; what comes out has those of what goes in."""
    gru = ours.torch.GRU(3, 4)
    rows = Rows([4, 3, 1], 4)
    packed, h = rows.packed(drawn(8, 3)), drawn(1, 3, 4)
    right, last = gru(packed, h)
    assert right[1:] == packed[1:]
    plain = packed._replace(sorted_indices=None, unsorted_indices=None)
    found, hn = gru(plain, h)
    assert found[1:] == plain[1:]
    np.testing.assert_array_equal(found.data.numpy(), right.data.numpy())
    np.testing.assert_array_equal(hn.numpy(), last.numpy())


@pytest.mark.parametrize("batch_first", [False, True])
def test_sizes_of_nothing(ours, batch_first):
    """A batch of no rows is computed; a sequence of no steps is PyTorch's to refuse."""
    gru = ours.torch.GRU(3, 4, batch_first=batch_first)
    rows, steps = ((0, 5, 3), (2, 0, 3)) if batch_first else ((5, 0, 3), (0, 2, 3))
    for way in ({}, {"grad": False}, {"compiling": True}):
        gru(drawn(5, 2, 3))
        with told(**way):
            y, h = gru(ones(*rows))
            assert y.shape == (*rows[:2], 4) and h.shape == (1, 0, 4)
            assert isinstance(gru(ones(*steps)), Own)


def test_a_gru_without_a_batch(ours):
    gru, x, h = ours.torch.GRU(3, 4), drawn(5, 2, 3), drawn(1, 2, 4)
    y, last = gru(x, h)
    for way in ({}, {"grad": False}, {"compiling": True}):
        with told(**way):
            found, hn = gru(x[:, 1], h[:, 1])
        np.testing.assert_allclose(found.numpy(), y.numpy()[:, 1], atol=1e-6)
        np.testing.assert_allclose(hn.numpy(), last.numpy()[:, 1], atol=1e-6)
        for wrong in (h[:, 1].array, h, (h[:, 1],), h[:, 1, :3]):
            with told(**way):
                assert isinstance(gru(x[:, 1], wrong), Own)


def test_states_that_the_engine_cannot_read(ours):
    lstm, x = ours.torch.LSTM(3, 4), ones(5, 2, 3)
    with no_grad():
        lstm(x)
    good = ones(1, 2, 4)
    elsewhere, sparse, double = ones(1, 2, 4), ones(1, 2, 4), ones(1, 2, 4, dtype="float64")
    elsewhere.is_cpu, sparse.layout = False, "sparse"
    for bad in (elsewhere, sparse, double, good.array, None, ones(2, 2, 4), ones(1, 3, 4), ones(1, 2, 5)):
        for hx in ((bad, good), (good, bad)):
            for way in ({}, {"grad": False}, {"compiling": True}):
                with told(**way):
                    assert lstm(x, hx).hx is hx
    spread = ones(5, 2, 3)
    spread.layout = "sparse"
    with no_grad():
        assert isinstance(lstm(spread), Own)
    far = ours.torch.GRUCell(3, 4)
    far.weight_ih.device = "meta"
    assert isinstance(far(ones(2, 3)), Own)


def test_the_seed_and_the_threads_of_a_call(ours):
    from openrnn.torch._calls import Place

    net = object()
    x, sizes = ones(5, 2, 3), Tensor(np.array([3, 2, 2, 1]))
    with told(threads=3):
        assert Place(net, 7, False, True).sizes(x, None) == (5, 2, False, True, 0, 3, 7)
        assert Place(net, 0, True, False).sizes(x, None) == (2, 5, True, False, 0, 3, 0)
        assert Place(net, 9, False, False).sizes(x[0], sizes) == (4, 3, False, False, sizes.data_ptr(), 3, 9)


def test_gradients_flow_through_a_mode(ours):
    gru, x = ours.torch.GRU(3, 4), leaf(drawn(5, 2, 3).array)
    (right,) = grad([gru(x)[0]], [x], [drawn(5, 2, 4)])
    with told(modes=1):
        y = gru(x)[0]
    np.testing.assert_array_equal(grad([y], [x], [drawn(5, 2, 4)])[0].numpy(), right.numpy())


@pytest.mark.parametrize("batch_first", [False, True])
def test_usual_calls_are_not_looked_at_twice(ours, monkeypatch, batch_first):
    """Without gradients a call of a few microseconds takes a shorter way, and no other call does."""
    from openrnn.torch import _forward

    longer, own = [], _forward.plain_call
    monkeypatch.setattr(_forward, "plain_call", lambda *args: longer.append(1) or own(*args))
    lstm = ours.torch.LSTM(3, 4, batch_first=batch_first).eval()
    x, h, c = drawn(5, 2, 3), drawn(1, 5 if batch_first else 2, 4), Tensor(np.ones((1, 5 if batch_first else 2, 4), "f"))
    with no_grad():
        right = [lstm(x)[0].numpy(), lstm(x, (h, c))[0].numpy()]
        longer.clear()
        for states, y in ((None, right[0]), ((h, c), right[1]), ([h, c], right[1])):
            np.testing.assert_array_equal(lstm(x, states)[0].numpy(), y)
        assert not longer
        lstm.train()  # the place is another
        lstm(x)
        assert len(longer) == 1
        lstm(x)
        assert len(longer) == 1
    lstm(x)
    with told(grad=False, transforms=True):
        lstm(x)
    assert len(longer) == 3
    frozen = ours.torch.freeze(ours.torch.GRU(3, 4).eval())
    with no_grad():
        frozen(x)
        longer.clear()
        frozen(x)
        assert not longer and frozen._engine.held.packings == 1
