"""torch.library's checks, torch.compile, torch.export, autocast, traces, ONNX."""

import io
import shutil

import openrnn.torch as ours
import pytest
import torch
from openrnn.torch import _ops
from openrnn.torch._network import text_of
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

from module_pairs import MODES, assert_close, flat, make_pair, states


@pytest.mark.parametrize("mode, more", [*((one, {}) for one in MODES), ("LSTM", {"proj_size": 1})])
@pytest.mark.parametrize("with_states", [False, True])
def test_operations_pass_opcheck(mode, more, with_states):
    module = make_pair(mode, 2, 3, dtype=torch.float64, **more)[1]
    weights = [p.detach().clone().requires_grad_() for p in module.parameters()]
    x = torch.randn(4, 2, 2, dtype=torch.float64, requires_grad=True)
    hx = states(module, 2) if with_states else None
    h, c = (hx if isinstance(hx, tuple) else (hx, None))
    rest = (None, None, text_of(module), False, True)
    torch.library.opcheck(_ops.rnn, (x, h, c, weights, *rest, True))
    y, _, _, token = _ops.rnn(x, h, c, weights, *rest, True)
    dy = torch.randn_like(y).requires_grad_()
    wanted = [True, with_states, with_states and mode == "LSTM", True]
    given = (dy, None, None, token.detach(), x, h, c, weights, *rest, wanted)
    torch.library.opcheck(_ops.rnn_backward, given)
    plain = [w.detach() for w in weights]
    v = torch.randn(4, 2, 2, dtype=torch.float64)
    given = (v, None, None, None, dy.detach(), None, None, x.detach(), h, c, plain, *rest)
    torch.library.opcheck(_ops.rnn_tangent, (*given, [True] * 7))


def test_operations_have_second_derivatives():
    module = ours.GRU(2, 3, dtype=torch.float64)
    weights = [p.detach().clone().requires_grad_() for p in module.parameters()]
    x = torch.randn(3, 2, 2, dtype=torch.float64, requires_grad=True)

    def call(x, *weights):
        rest = (None, None, text_of(module), False, True, True)
        return _ops.rnn(x, None, None, list(weights), *rest)[:2]

    assert torch.autograd.gradcheck(call, (x, *weights), fast_mode=True)
    assert torch.autograd.gradgradcheck(call, (x, *weights), fast_mode=True)


def test_operations_under_vmap():
    module = ours.LSTM(2, 3)
    weights = [p.detach() for p in module.parameters()]
    x = torch.randn(5, 4, 2, 2)
    rest = (None, None, text_of(module), False, False, False)
    found = torch.vmap(lambda x: _ops.rnn(x, None, None, weights, *rest)[0])(x)
    assert_close([found[3]], [module(x[3])[0]], 1e-6)
    every = [torch.stack([w, 2 * w]) for w in weights]
    found = torch.vmap(lambda *w: _ops.rnn(x[0], None, None, list(w), *rest)[2])(*every)
    assert_close([found[0]], [module(x[0])[1][1]], 1e-6)


class Model(nn.Module):
    def __init__(self, recurrent):
        super().__init__()
        self.recurrent = recurrent
        self.head = nn.LazyLinear(3)

    def forward(self, x, hx=None):
        output, last = self.recurrent(x, hx)
        last = last if isinstance(last, tuple) else (last,)
        return self.head(output).pow(2).sum() + sum(state.sum() for state in last)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("with_states", [False, True])
def test_compile_sees_one_operation(mode, bidirectional, batch_first, with_states):
    torch._dynamo.reset()
    options = {"bidirectional": bidirectional, "batch_first": batch_first}
    module = make_pair(mode, 4, 5, 2, **options)[1]
    model = Model(module)
    x = torch.randn(6, 6, 4, requires_grad=True)
    hx = states(module, 6) if with_states else None
    wanted = torch.autograd.grad(model(x, hx), [x, *model.parameters()])
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    loss = compiled(x, hx)
    assert_close([loss], [model(x, hx)], 1e-6)
    assert_close(torch.autograd.grad(loss, [x, *model.parameters()]), wanted, 1e-6)
    with torch.no_grad():
        assert_close([compiled(x, hx)], [model(x, hx)], 1e-6)
        module.weight_hh_l0.data.add_(0.5)
        assert_close([compiled(x, hx)], [model(x, hx)], 1e-6)


@pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor needs a C++ compiler")
def test_inductor():
    torch._dynamo.reset()
    model = Model(ours.LSTM(4, 5, 2))
    x = torch.randn(6, 3, 4, requires_grad=True)
    wanted = torch.autograd.grad(model(x), [x, *model.parameters()])
    compiled = torch.compile(model, fullgraph=True)
    assert_close(torch.autograd.grad(compiled(x), [x, *model.parameters()]), wanted, 1e-6)


def test_compiled_dropout_draws_anew_and_its_gradient_has_the_same_mask():
    torch._dynamo.reset()
    module = ours.LSTM(4, 50, 2, dropout=0.5)
    call = torch.compile(lambda x: module(x)[0], fullgraph=True, backend="aot_eager")
    x = torch.randn(6, 3, 4, requires_grad=True)
    torch.manual_seed(3)
    first, second = call(x), call(x)
    torch.manual_seed(3)
    again = call(x)
    assert torch.equal(first, again) and not torch.equal(first, second)
    found = torch.autograd.grad(first.sum(), x, retain_graph=True)[0]
    assert torch.equal(found, torch.autograd.grad(again.sum(), x)[0])
    assert not torch.equal(found, torch.autograd.grad(second.sum(), x)[0])


@pytest.mark.parametrize("mode", MODES)
def test_export_has_one_operation(mode):
    module = make_pair(mode, 4, 5, 2)[1]
    x = torch.randn(6, 3, 4)
    program = torch.export.export(module, (x,))
    targets = [str(n.target) for n in program.graph.nodes if n.op == "call_function"]
    assert targets.count("openrnn.rnn.default") == 1
    assert_close(flat(*program.module()(x)), flat(*module(x)), 1e-6)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("state", [None, torch.float32, torch.bfloat16])
def test_autocast_gives_the_dtypes_of_torch(mode, dtype, state):
    theirs, mine = make_pair(mode, 4, 5, 2)
    x = torch.randn(6, 3, 4).to(dtype)
    hx = states(mine, 3)
    hx = tuple(s.to(state) for s in hx) if isinstance(hx, tuple) and state else hx
    hx = hx.to(state) if torch.is_tensor(hx) and state else hx
    hx = hx if state else None
    with torch.backends.mkldnn.flags(enabled=False), torch.autocast("cpu", torch.bfloat16):
        wanted, found = flat(*theirs(x, hx)), flat(*mine(x, hx))
        assert [value.dtype for value in found] == [value.dtype for value in wanted]
        assert_close([v.float() for v in found], [v.float() for v in wanted], 3e-2)
    found[0].sum().backward()
    assert mine.weight_ih_l0.grad.dtype == torch.float32
    with torch.no_grad():
        exact = flat(*mine(x.float(), None))[0]
    assert torch.allclose(exact, flat(*mine(x.float(), None))[0])


def test_autocast_of_packed_sequences_and_cells():
    theirs, mine = make_pair("GRU", 4, 5)
    packed = pack_padded_sequence(torch.randn(6, 3, 4), [6, 4, 1])
    cell = ours.LSTMCell(4, 5)
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        found = mine(packed)
        assert found[0].data.dtype == found[1].dtype == torch.float32
        assert cell(torch.randn(3, 4))[0].dtype == torch.float32
    assert_close([found[0].data], [theirs(packed)[0].data.detach()], 3e-2)


@pytest.mark.parametrize("mode", MODES)
def test_operations_under_autocast(mode):
    module = make_pair(mode, 2, 3)[1]
    weights = [p.detach().clone().requires_grad_() for p in module.parameters()]
    x = torch.randn(4, 2, 2).bfloat16().requires_grad_()
    h, c = (states(module, 2) if mode == "LSTM" else (states(module, 2), None))
    rest = (None, None, text_of(module), False, True, True)
    with torch.autocast("cpu", torch.bfloat16):
        y, last = _ops.rnn(x, h.bfloat16(), c, weights, *rest)[:2]
    assert y.dtype == last.dtype == torch.float32
    wanted = _ops.rnn(x.float(), h.bfloat16().float(), c, weights, *rest)
    assert_close([y, last], wanted[:2], 0)
    y.sum().backward()
    assert x.grad.dtype == torch.bfloat16
    assert weights[0].grad.abs().sum() > 0


@pytest.mark.parametrize("mode", MODES)
def test_a_trace_follows_its_input(mode):
    module = make_pair(mode, 4, 5, 2)[1]
    traced = torch.jit.trace(module, (torch.randn(6, 3, 4),))
    x = torch.randn(6, 3, 4)
    assert_close(flat(*traced(x)), flat(*module(x)), 1e-5)


def exported(module, dynamo):
    """The kinds of recurrent nodes in torch.onnx's graph of a module."""
    onnx = pytest.importorskip("onnx")
    args = (module.eval(), (torch.randn(6, 3, 4),))
    later = "dynamo" in torch.onnx.export.__code__.co_varnames
    if dynamo:
        if not later:
            pytest.skip("an exporter of later versions")
        pytest.importorskip("onnxscript")
        graph = torch.onnx.export(*args, dynamo=True, verbose=False).model_proto.graph
    else:
        file = io.BytesIO()
        torch.onnx.export(*args, file, **({"dynamo": False} if later else {}))
        graph = onnx.load_from_string(file.getvalue()).graph
    return [node.op_type for node in graph.node if node.op_type in ("LSTM", "GRU", "RNN")]


@pytest.mark.parametrize("dynamo", [False, True])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.filterwarnings("ignore")
def test_onnx_has_the_nodes_of_torch(mode, dynamo):
    theirs, mine = make_pair(mode, 4, 5)
    found = exported(mine, dynamo)
    assert found == exported(theirs, dynamo)
    # PyTorch's later exporter spells a plain network out.
    assert found == ([] if dynamo and mode.startswith("RNN") else [mode.partition("_")[0]])


def test_a_compiled_module_in_evaluation_drops_nothing():
    module = ours.LSTM(3, 4, 2, dropout=0.5).eval()
    x = torch.randn(5, 2, 3, requires_grad=True)
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
    y = compiled(x)[0]
    (dx,) = torch.autograd.grad(y.square().sum(), x)
    plain = module(x)[0]
    assert torch.equal(y, plain)
    assert torch.equal(dx, torch.autograd.grad(plain.square().sum(), x)[0])


def test_a_compiled_module_in_training_drops_without_gradients_too():
    module = ours.LSTM(3, 16, 2, dropout=0.5).train()
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
    x = torch.ones(5, 2, 3)
    with torch.no_grad():
        assert not torch.equal(compiled(x)[0], module.eval()(x)[0])
