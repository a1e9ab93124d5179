"""Operations of torch.library: what they are registered as, their rules for vmap, what they keep."""

import gc
import sys
from types import ModuleType, SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from numpy_torch import DTYPES, Tensor, seen
from numpy_torch import torch as numpy_torch
from problems import Rows, drawn
from test_second_gradients import SAMPLES, Net, beside, of_recurrent, sample

CALL = ("Tensor x, Tensor? h0, Tensor? c0, Tensor[] weights, Tensor? batch_sizes, Tensor? seed, str network, "
        "bool batch_first, bool training")
SCHEMAS = {
    "rnn": f"rnn({CALL}, bool saving) -> (Tensor, Tensor, Tensor, Tensor)",
    "rnn_backward": f"rnn_backward(Tensor? dy, Tensor? dh, Tensor? dc, Tensor token, {CALL}, bool[] wanted) -> "
                    "(Tensor, Tensor, Tensor, Tensor)",
    "rnn_tangent": "rnn_tangent(Tensor? vx, Tensor? vh, Tensor? vc, Tensor? vparams, Tensor? dy, Tensor? dh, "
                   f"Tensor? dc, {CALL}, bool[] wanted) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
}  # fmt: skip


@pytest.fixture
def operations(ours):
    import openrnn.torch._ops

    return openrnn.torch._ops


@pytest.fixture
def forwards(operations, monkeypatch):
    """The arguments of forward calls."""
    found, own = [], operations._calls.forward
    monkeypatch.setattr(operations._calls, "forward", lambda *args: found.append(args) or own(*args))
    return found


def test_what_is_registered(operations):
    for name, text in SCHEMAS.items():
        made = getattr(numpy_torch.ops.openrnn, name)
        assert made.schema == text and made is getattr(operations, name)
        assert made.kernels["CPU"] is getattr(operations, {"rnn": "_rnn", "rnn_backward": "_backward",
                                                           "rnn_tangent": "_tangent"}[name])
        assert made.fake is not None and made.gradient is not None and made.rule is not None
    assert operations.rnn_tangent.context is None
    assert set(operations.rnn.kernels) == {"CPU", "AutocastCPU"}


def test_rules_of_the_other_operations(operations, ours):
    net = Net(ours, "lstm", packed=False)
    _, args, _, output = of_recurrent(net, [*net.inputs, *net.weights])
    rest = (None, None, args[0].net.text, False, False)
    random = np.random.default_rng(2)
    size = args[0].net.size
    v = [random.normal(size=each.shape) for each in net.inputs] + [random.normal(size=size)]
    count = len(net.weights)
    tensors = [each.array for each in args[3:]]
    for op, first, wanted in ((operations.rnn_backward, [*net.grads, output[3].array], [True] * 4),
                              (operations.rnn_tangent, [*v, *net.grads], [True] * 7)):
        arrays = [*first, *tensors]
        for place in range(len(arrays)):
            if op is operations.rnn_backward and place == 3:
                continue  # the token
            dims = [1 if n == place and np.ndim(arrays[n]) > 1 else 0 if n == place else None
                    for n in range(len(arrays))]
            given = beside(arrays, dims)
            at = len(arrays) - count
            weight_dims = dims[at:] if place >= at else None
            found, out_dims = op.rule(
                SimpleNamespace(batch_size=SAMPLES), (*dims[:at], weight_dims, None, None, None, None, None,
                                                      [None] * len(wanted)),
                *given[:at], given[at:], *rest, wanted)  # fmt: skip
            assert out_dims == (0,) * len(wanted)
            for n in range(SAMPLES):
                alone = sample(given, dims, n)
                right = op(*alone[:at], alone[at:], *rest, wanted)
                for a, b in zip(found, right, strict=True):
                    np.testing.assert_allclose(a.select(0, n).numpy(), b.numpy(), rtol=0, atol=1e-12)


def test_which_samples_are_rows(operations, ours, forwards):
    """Those that share weights, lengths and masks; they save nothing."""
    module = ours.torch.GRU(3, 4, 2, dropout=0.5)
    from openrnn.torch._network import text_of

    weights = list(module._parameters.values())
    x, h, seed = drawn(SAMPLES, 5, 2, 3), drawn(2, 2, 4), Tensor(np.array(5))
    rows = Rows([3, 2], 3)
    flat = drawn(SAMPLES, 5, 3)
    info = SimpleNamespace(batch_size=SAMPLES)
    call = lambda x, sizes, seed, training, weight_dims=None, seed_dim=None: operations.rnn.rule(
        info, (0, None, None, weight_dims, None, seed_dim, None, None, None, None),
        x, h, None, weights, sizes, seed, text_of(module), False, training, True)  # fmt: skip
    none = [None] * len(weights)
    for given, count in (
        ((x, None, None, False), 1), ((x, None, None, True), 1), ((x, None, seed, False), 1),
        ((x, None, seed, True), SAMPLES), ((x, None, None, False, none), 1),
        ((flat, Tensor(rows.sizes), None, False), SAMPLES),
        ((x, None, Tensor(np.arange(SAMPLES)), False, None, 0), SAMPLES),
    ):  # fmt: skip
        forwards.clear()
        outputs, dims = call(*given)
        assert len(forwards) == count
        assert [each[7] for each in forwards] == ([False] if count == 1 else [True] * SAMPLES)
        assert dims == ((1, 1, None, None) if count == 1 else (0,) * 4)
        assert outputs[1].shape == ((2, SAMPLES, 2, 4) if count == 1 else (SAMPLES, 2, 2, 4))
        assert outputs[2].shape == ((0,) if count == 1 else (SAMPLES, 0))
    mapped = [Tensor(np.stack([weights[0].array] * SAMPLES)), *weights[1:]]
    weights[:] = mapped
    forwards.clear()
    call(x, None, None, False, [0, *none[1:]])
    assert len(forwards) == SAMPLES


def test_functions_of_samples_that_are_no_rows(ours, forwards, monkeypatch):
    from openrnn.torch import _calls

    net = Net(ours, "gru_both_ways")
    functions, args, _, output = of_recurrent(net, [*net.inputs, *net.weights])
    assert net.rows is not None  # a PackedSequence: every sample has a call
    info, dims = SimpleNamespace(batch_size=SAMPLES), (0,) + (None,) * (len(args) - 4)
    given = beside([t if t is None else t.array for t in args[3:]], dims)
    forwards.clear()
    found, out_dims = functions.Recurrent.vmap(info, (None,) * 3 + dims, *args[:3], *given)
    assert len(forwards) == SAMPLES and out_dims == (0, 0, None, None)
    assert found[3].dtype is DTYPES["uint8"] and found[3].shape == (1,)
    right = functions.Recurrent.forward(*args[:3], *sample(given, dims, 1))
    np.testing.assert_array_equal(found[0].select(0, 1).numpy(), right[0].numpy())

    calls, own = [], _calls.backward
    monkeypatch.setattr(_calls, "backward", lambda *given: calls.append(given) or own(*given))
    monkeypatch.setattr(_calls, "row_gradients", None)
    plain = Net(ours, "lstm", packed=False)
    functions, args, _, output = of_recurrent(plain, [*plain.inputs, *plain.weights])
    dims = (0,) + (None,) * (len(args) - 4)
    given = beside([t.array for t in args[3:]], dims)
    monkeypatch.setattr(args[0].net, "rows", False)
    for wanted, count in (((True,) * 4, SAMPLES), ((True, True, True, False), 1)):
        calls.clear()
        before, seen.grad = seen.grad, False
        functions.Gradient.vmap(info, (None,) * 7 + dims, args[0], wanted, None, None, *map(Tensor, plain.grads),
                                *given)  # fmt: skip
        seen.grad = before
        assert len(calls) == count
    assert output[3] is not None


def test_packed_weights_go_with_the_first_of_them(operations, ours):
    module = ours.torch.GRU(3, 4)
    from openrnn.torch._network import text_of

    weights, x = list(module._parameters.values()), drawn(5, 2, 3)
    rest = (None, None, text_of(module), False, False, False)
    gc.collect()
    before = len(operations._held)
    for _ in range(3):
        operations.rnn(x, None, None, weights, *rest)
    assert len(operations._held) == before + 1
    held = operations._held[text_of(module), id(weights[0])]
    assert held[0]() is weights[0] and held[1].packings == 1
    del weights, module
    gc.collect()
    assert len(operations._held) == before
    # A number that another tensor had is not its.
    other = ours.torch.GRU(3, 4)
    key = (text_of(other), id(other.weight_ih_l0))
    stale = Tensor(np.ones(3))
    import weakref

    operations._held[key] = (weakref.ref(stale), None)
    y = operations.rnn(x, None, None, list(other._parameters.values()), *rest)[0]
    np.testing.assert_array_equal(y.numpy(), other(x)[0].numpy())


def test_autocast_casts_all_and_looks_away(operations, ours, monkeypatch):
    found, own, half = [], operations.rnn, DTYPES["bfloat16"]
    monkeypatch.setattr(operations, "rnn", lambda *args: found.append((list(seen.excluded), args)) or own(*args))
    module = ours.torch.LSTM(3, 4)
    from openrnn.torch._network import text_of

    weights = list(module._parameters.values())
    rest = (weights, None, None, text_of(module), False, False, False)
    tensors = [drawn(5, 2, 3).to(half), drawn(1, 2, 4).to(half), drawn(1, 2, 4)]
    own.kernels["AutocastCPU"](*tensors, *rest)
    ((excluded, args),) = found
    assert excluded == [1] and not seen.excluded
    assert [each.dtype.name for each in args[:3]] == ["float32"] * 3 and args[3:] == rest
    own.kernels["AutocastCPU"](tensors[0], None, None, *rest)
    assert found[1][1][1:3] == (None, None)


def test_gradients_by_operations_of_what_is_wanted(operations, ours, monkeypatch):
    """`needs` of a list may be one flag; a network without a cell has no gradient of one."""
    from openrnn.torch._network import text_of

    for kind, outputs in (("GRU", 2), ("LSTM", 3)):
        module = getattr(ours.torch, kind)(3, 4)
        weights, x = list(module._parameters.values()), drawn(5, 2, 3)
        states = [drawn(1, 2, 4), drawn(1, 2, 4) if kind == "LSTM" else None]
        rest = [None, None, text_of(module), False, False]
        y, hn, cn, token = operations.rnn(x, *states, weights, *rest, True)
        dc = cn if outputs == 3 else operations._none(x)
        for flags, listed in ((True, [True] * 4), (False, [False] * 4), ([True, False, True, False],) * 2):
            context = SimpleNamespace(
                saved_tensors=(x, *states, token, None, None, *weights), rest=rest[2:], count=4,
                needs_input_grad=(True, False, outputs == 3, flags, False, False, False, False, False, False))
            asked, own = [], operations._calls.backward
            with monkeypatch.context() as patch:
                patch.setattr(operations._calls, "backward", lambda *args: asked.append(args) or own(*args))
                found = operations._rnn_gradient(context, y, hn, dc, None)
            assert asked[0][6] == [True, False, outputs == 3, any(listed)]
            assert (asked[0][2][2] is None) == (outputs == 2)
            assert len(found) == 10 and found[4:] == (None,) * 6 and found[0].shape == x.shape
            assert [each is not None for each in found[3]] == listed
            assert [each is not None for each in found[:3]] == [True, False, outputs == 3]


def test_places_of_operations(operations, ours):
    from openrnn.torch._network import network, text_of

    text = text_of(ours.torch.GRU(3, 4))
    for dtype in ("float32", "float64"):
        place = operations._place(text, DTYPES[dtype], Tensor(np.array(7)), True, False)
        assert (place.seed, place.batch_first, place.training) == (7, True, False)
        assert place.net is network(text, DTYPES[dtype])
    place = operations._place(text, DTYPES["float32"], None, False, True)
    assert (place.seed, place.batch_first, place.training) == (0, False, True)


def test_a_saved_call_that_is_never_found(ours, monkeypatch):
    from openrnn import _core
    from openrnn.torch import _calls

    net = Net(ours, "lstm", packed=False)
    _, args, _, output = of_recurrent(net, [*net.inputs, *net.weights])
    tried = []
    monkeypatch.setattr(_core, "torch_backward", lambda *given: tried.append(given[1]))
    for token, times in ((output[3], 2), (None, 1)):
        with pytest.raises(RuntimeError, match=r"^\[backward\] the saved call was not found$"):
            _calls.backward(args[0], token, [*map(Tensor, net.grads)], args[3:6], args[6:], None, (True,) * 4)
        assert len(tried) == times
        tried.clear()


class VmapInfo(NamedTuple):
    batch_size: int
    randomness: str


class Batched(NamedTuple):
    value: object
    dim: int


def parts_of_pytorch_2_4(monkeypatch):
    """Those from which the function that is not there yet is made."""
    add = lambda output, dim, level: (output, dim, level)
    parts = {
        "torch._functorch": {"__path__": []},
        "torch._functorch.autograd_function": {
            "VmapInfo": VmapInfo,
            "wrap_outputs_maintaining_identity": lambda outputs, plain, args, wrap, out_dims:
                (plain, args, [wrap(each, dim) for each, dim in zip(outputs, out_dims, strict=True)])},
        "torch._functorch.pyfunctorch": {"retrieve_current_functorch_interpreter": lambda: SimpleNamespace(
            level=lambda: 3, batch_size=lambda: 5, randomness=lambda: "different")},
        "torch._functorch.vmap": {
            "_add_batch_dim": add,
            "unwrap_batched": lambda args, level: (
                [getattr(each, "value", each) for each in args],
                [getattr(each, "dim", None) if level == 3 else 99 for each in args])},
    }  # fmt: skip
    for name, members in parts.items():
        module = ModuleType(name)
        module.__dict__.update(members)
        monkeypatch.setitem(sys.modules, name, module)
    leaves = SimpleNamespace(_pytree=SimpleNamespace(tree_leaves=list))
    monkeypatch.setattr(numpy_torch, "utils", leaves, raising=False)
    monkeypatch.delattr(numpy_torch.library, "register_vmap")


def test_rules_of_pytorch_2_4(operations, monkeypatch):
    parts_of_pytorch_2_4(monkeypatch)
    monkeypatch.setattr(operations.rnn, "kernels", dict(operations.rnn.kernels))
    rules = []

    def rule(info, in_dims, *args):
        rules.append((info, in_dims, args, list(seen.excluded)))
        return ("a", "b"), (1, None)

    operations._register_vmap("rnn", lambda *args: ("op", args, list(seen.excluded)), rule)
    batched = operations.rnn.kernels["FuncTorchBatched"]
    assert batched("keys", 1, None) == ("op", (1, None), [2]) and not rules
    args = (Batched("x", 0), None, 7)
    assert batched("keys", *args) == (["x", None, 7], args, [("a", 1, 3), "b"])
    assert rules == [(VmapInfo(5, "different"), [0, None, None], ("x", None, 7), [2])]
    assert not seen.excluded


def test_second_gradients_by_operations_of_what_is_wanted(operations, ours, monkeypatch):
    """An empty gradient is one that is not there."""
    from openrnn.torch._network import text_of

    asked, own = [], operations._calls.tangent
    monkeypatch.setattr(operations._calls, "tangent", lambda *args: asked.append(args) or own(*args))
    for kind in ("GRU", "LSTM"):
        lstm = kind == "LSTM"
        module = getattr(ours.torch, kind)(3, 4)
        weights, x, h = list(module._parameters.values()), drawn(5, 2, 3), drawn(1, 2, 4)
        c, empty = h if lstm else None, operations._none(x)
        for flags, listed in ((True, [True] * 4), (False, [False] * 4), ([True, False, True, False],) * 2):
            needs = (True, False, lstm, False, False, True, lstm, flags, *[False] * 6)
            context = SimpleNamespace(
                saved_tensors=(drawn(5, 2, 4), h, c, x, h, c, None, None, *weights), count=4,
                rest=[text_of(module), False, False], needs_input_grad=needs)
            found = operations._gradient_gradient(context, x, empty, c if lstm else empty, empty)
            _, direction, grads, _, _, _, wanted = asked.pop()
            assert [each is not None for each in direction] == [True, False, lstm, False]
            assert [each is not None for each in grads] == [True, True, lstm]
            assert wanted == [True, False, lstm, False, True, lstm, any(listed)]
            assert [each is not None for each in found[:7]] == [True, False, lstm, False, False, True, lstm]
            assert [each is not None for each in found[7]] == listed
            assert len(found) == 14 and found[8:] == (None,) * 6
            assert found[5].shape == h.shape and found[0].shape == (5, 2, 4)
