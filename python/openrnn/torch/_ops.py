"""The recurrent call, its gradient and its second derivatives as operations of torch.library.

torch.compile and torch.export see one opaque operation. A saved call is found by its token, a
tensor; a token that a graph copied or computed anew finds none, and the call is computed again.
"""

# PyTorch is not there where types are checked.
# mypy: disable-error-code="import-not-found"

from __future__ import annotations

from typing import Any

import torch

from openrnn import _core
from openrnn.torch import _calls, _vmap
from openrnn.torch._calls import Place
from openrnn.torch._network import Network, network

_CALL = (
    "Tensor x, Tensor? h0, Tensor? c0, Tensor[] weights, Tensor? batch_sizes, Tensor? seed, "
    "str network, bool batch_first, bool training"
)
_GRADS = "Tensor? dy, Tensor? dh, Tensor? dc, "
_library = torch.library.Library("openrnn", "DEF")
_library.define(f"rnn({_CALL}, bool saving) -> (Tensor, Tensor, Tensor, Tensor)")
_library.define(
    f"rnn_backward({_GRADS}Tensor token, {_CALL}, bool[] wanted) -> (Tensor, Tensor, Tensor, Tensor)"
)
_library.define(
    f"rnn_tangent(Tensor? vx, Tensor? vh, Tensor? vc, Tensor? vparams, {_GRADS}{_CALL}, "
    "bool[] wanted) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)"
)
rnn = torch.ops.openrnn.rnn.default
rnn_backward = torch.ops.openrnn.rnn_backward.default
rnn_tangent = torch.ops.openrnn.rnn_tangent.default

# Packed weights of the first parameters of calls, which say when they are freed.
_held: dict[tuple[Any, int], Any] = {}


def _held_of(net: Network, weights: Any) -> Any:
    first = weights[0]
    key = (net.text, id(first))
    found = _held.get(key)
    if found is not None and found[0]() is first:
        return found[1]
    import weakref

    held = _core.TorchWeights(net.core)
    _held[key] = (weakref.ref(first, lambda _: _held.pop(key, None)), held)
    return held


def _place(text: str, dtype: Any, seed: Any, batch_first: bool, training: bool) -> Place:
    key = 0 if seed is None else int(seed)
    return Place(network(text, dtype), key, batch_first, training)


def _none(like: Any) -> Any:
    return like.new_empty(0)


def _rnn(
    x: Any, h0: Any, c0: Any, weights: Any, batch_sizes: Any, seed: Any, text: str,
    batch_first: bool, training: bool, saving: bool,
) -> Any:  # fmt: skip
    place = _place(text, x.dtype, seed, batch_first, training)
    held = _held_of(place.net, weights)
    y, hn, cn, token = _calls.forward(place, held, x, h0, c0, weights, batch_sizes, saving)
    if token is None:
        token = x.new_zeros(1, dtype=torch.uint8)
    return y, hn, _none(x) if cn is None else cn, token


def _rnn_fake(
    x: Any, h0: Any, c0: Any, weights: Any, batch_sizes: Any, seed: Any, text: str,
    batch_first: bool, training: bool, saving: bool,
) -> Any:  # fmt: skip
    net = network(text, x.dtype)
    rows = _rows(x, h0, batch_sizes, batch_first)
    y = x.new_empty((*x.shape[:-1], net.output))
    hn = x.new_empty((net.states, rows, net.hidden))
    cn = x.new_empty((net.states, rows, net.units)) if net.has_cell else _none(x)
    return y, hn, cn, x.new_empty(1, dtype=torch.uint8)


def _rows(x: Any, h0: Any, batch_sizes: Any, batch_first: bool) -> Any:
    if batch_sizes is not None:
        # Its value is not known in a graph, so the state says it.
        return h0.shape[1]
    return x.shape[0 if batch_first else 1]


def _backward(
    dy: Any, dh: Any, dc: Any, token: Any, x: Any, h0: Any, c0: Any, weights: Any,
    batch_sizes: Any, seed: Any, text: str, batch_first: bool, training: bool, wanted: Any,
) -> Any:  # fmt: skip
    place = _place(text, x.dtype, seed, batch_first, training)
    found = _calls.backward(
        place, token, (dy, dh, dc), (x, h0, c0), weights, batch_sizes, wanted
    )  # fmt: skip
    return tuple(_none(x) if value is None else value for value in found)


def _backward_fake(
    dy: Any, dh: Any, dc: Any, token: Any, x: Any, h0: Any, c0: Any, weights: Any,
    batch_sizes: Any, seed: Any, text: str, batch_first: bool, training: bool, wanted: Any,
) -> Any:  # fmt: skip
    net = network(text, x.dtype)
    rows = _rows(x, h0, batch_sizes, batch_first)
    shapes = (x.shape, (net.states, rows, net.hidden), (net.states, rows, net.units), (net.size,))
    return tuple(
        x.new_empty(shape) if want and (net.has_cell or i != 2) else _none(x)
        for i, (shape, want) in enumerate(zip(shapes, wanted, strict=True))
    )


def _tangent(
    vx: Any, vh: Any, vc: Any, vparams: Any, dy: Any, dh: Any, dc: Any, x: Any, h0: Any, c0: Any,
    weights: Any, batch_sizes: Any, seed: Any, text: str, batch_first: bool, training: bool,
    wanted: Any,
) -> Any:  # fmt: skip
    place = _place(text, x.dtype, seed, batch_first, training)
    found = _calls.tangent(
        place, (vx, vh, vc, vparams), (dy, dh, dc), (x, h0, c0), weights, batch_sizes, wanted
    )
    return tuple(_none(x) if value is None else value for value in found)


def _tangent_fake(
    vx: Any, vh: Any, vc: Any, vparams: Any, dy: Any, dh: Any, dc: Any, x: Any, h0: Any, c0: Any,
    weights: Any, batch_sizes: Any, seed: Any, text: str, batch_first: bool, training: bool,
    wanted: Any,
) -> Any:  # fmt: skip
    net = network(text, x.dtype)
    rows = _rows(x, h0, batch_sizes, batch_first)
    hidden, units = (net.states, rows, net.hidden), (net.states, rows, net.units)
    shapes = ((*x.shape[:-1], net.output), hidden, units, x.shape, hidden, units, (net.size,))
    return tuple(
        x.new_empty(shape) if want and (net.has_cell or i not in (2, 5)) else _none(x)
        for i, (shape, want) in enumerate(zip(shapes, wanted, strict=True))
    )


for _name, _run, _fake in (
    ("rnn", _rnn, _rnn_fake),
    ("rnn_backward", _backward, _backward_fake),
    ("rnn_tangent", _tangent, _tangent_fake),
):
    _library.impl(_name, _run, "CPU")
    torch.library.register_fake(f"openrnn::{_name}", _fake)


def _rnn_autocast(x: Any, h0: Any, c0: Any, weights: Any, *rest: Any) -> Any:
    """Data of an autocast region in the dtype of the weights; the network says its arithmetic."""
    dtype = weights[0].dtype
    given = [value if value is None else value.to(dtype) for value in (x, h0, c0)]
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)
    with torch._C._ExcludeDispatchKeyGuard(keys):
        return rnn(*given, weights, *rest)


_library.impl("rnn", _rnn_autocast, "AutocastCPU")


def _keep_call(ctx: Any, inputs: Any, output: Any) -> None:
    x, h0, c0, weights, batch_sizes, seed, *rest, _ = inputs
    ctx.rest, ctx.count = rest, len(weights)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(x, h0, c0, output[3], batch_sizes, seed, *weights)


def _rnn_gradient(ctx: Any, dy: Any, dh: Any, dc: Any, _: Any) -> Any:
    x, h0, c0, token, batch_sizes, seed, *weights = ctx.saved_tensors
    needs = ctx.needs_input_grad
    listed = list(needs[3]) if isinstance(needs[3], (list, tuple)) else [needs[3]] * ctx.count
    wanted = [needs[0], needs[1], needs[2], any(listed)]
    net = network(ctx.rest[0], x.dtype)
    if not net.has_cell:
        dc = None
    found = rnn_backward(
        dy, dh, dc, token, x, h0, c0, weights, batch_sizes, seed, *ctx.rest, wanted
    )
    given = [value if want else None for value, want in zip(found, wanted, strict=True)]
    pieces: list[Any] = [None] * ctx.count
    if given[3] is not None:
        split = net.split(given[3])
        pieces = [piece if need else None for piece, need in zip(split, listed, strict=True)]
    return (*given[:3], pieces, *((None,) * 6))


def _keep_gradient(ctx: Any, inputs: Any, output: Any) -> None:
    dy, dh, dc, _, x, h0, c0, weights, batch_sizes, seed, *rest, _ = inputs
    ctx.rest, ctx.count = rest, len(weights)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(dy, dh, dc, x, h0, c0, batch_sizes, seed, *weights)


def _gradient_gradient(ctx: Any, vx: Any, vh: Any, vc: Any, vparams: Any) -> Any:
    dy, dh, dc, x, h0, c0, batch_sizes, seed, *weights = ctx.saved_tensors
    needs = ctx.needs_input_grad
    listed = list(needs[7]) if isinstance(needs[7], (list, tuple)) else [needs[7]] * ctx.count
    net = network(ctx.rest[0], x.dtype)
    v = [None if value is None or value.numel() == 0 else value for value in (vx, vh, vc, vparams)]
    wanted = [needs[0], needs[1], needs[2], needs[4], needs[5], needs[6], any(listed)]
    found = rnn_tangent(
        *v, dy, dh, dc, x, h0, c0, weights, batch_sizes, seed, *ctx.rest, wanted
    )  # fmt: skip
    given = [value if want else None for value, want in zip(found, wanted, strict=True)]
    pieces: list[Any] = [None] * ctx.count
    if given[6] is not None:
        split = net.split(given[6])
        pieces = [piece if need else None for piece, need in zip(split, listed, strict=True)]
    return (*given[:3], None, *given[3:6], pieces, *((None,) * 6))


def _no_third(ctx: Any, *grads: Any) -> Any:
    raise RuntimeError("[backward] a third derivative of openrnn::rnn, expected first and second")


torch.library.register_autograd("openrnn::rnn", _rnn_gradient, setup_context=_keep_call)
torch.library.register_autograd(
    "openrnn::rnn_backward", _gradient_gradient, setup_context=_keep_gradient
)
torch.library.register_autograd("openrnn::rnn_tangent", _no_third)


def _each(op: Any) -> Any:
    """A vmap rule of an operation: one call a sample."""

    def rule(info: Any, in_dims: Any, *args: Any) -> Any:
        def sample(value: Any, dim: Any, index: int) -> Any:
            if isinstance(value, (list, tuple)) and isinstance(dim, (list, tuple)):
                return [sample(v, d, index) for v, d in zip(value, dim, strict=True)]
            return value if dim is None or value is None else value.select(dim, index)

        results = []
        for index in range(info.batch_size):
            given = [sample(arg, dim, index) for arg, dim in zip(args, in_dims, strict=True)]
            results.append(op(*given))
        outputs = tuple(torch.stack(column) for column in zip(*results, strict=True))
        return outputs, (0,) * len(outputs)

    return rule


def _rnn_rule(info: Any, in_dims: Any, *args: Any) -> Any:
    """Samples fold into the batch where weights are the same for all."""
    x, h0, c0, weights, batch_sizes, seed, text, batch_first, training, _ = args
    dims = in_dims[3]
    same = dims is None or all(dim is None for dim in dims)
    seeded = in_dims[5] is not None or (training and seed is not None)
    if batch_sizes is not None or not same or seeded:
        return _each(rnn)(info, in_dims, *args)
    axis = 0 if batch_first else 1
    samples = info.batch_size
    folded = [
        _vmap.folded(tensor, dim, at, samples)
        for tensor, dim, at in zip((x, h0, c0), in_dims[:3], (axis, 1, 1), strict=True)
    ]
    y, hn, cn, token = rnn(*folded, weights, None, seed, text, batch_first, training, False)
    has_cell = network(text, x.dtype).has_cell
    return (
        _vmap.unfolded(y, axis, samples),
        _vmap.unfolded(hn, 1, samples),
        _vmap.unfolded(cn, 1, samples) if has_cell else cn,
        token,
    ), (axis, 1, 1 if has_cell else None, None)


def _register_vmap(name: str, op: Any, rule: Any) -> None:
    if hasattr(torch.library, "register_vmap"):
        torch.library.register_vmap(f"openrnn::{name}", rule)
        return
    # PyTorch 2.4 has the parts, but not the function.
    from torch._functorch.autograd_function import VmapInfo, wrap_outputs_maintaining_identity
    from torch._functorch.pyfunctorch import retrieve_current_functorch_interpreter
    from torch._functorch.vmap import _add_batch_dim, unwrap_batched

    def batched(keyset: Any, *args: Any, **kwargs: Any) -> Any:
        interpreter = retrieve_current_functorch_interpreter()
        level = interpreter.level()
        info = VmapInfo(
            batch_size=interpreter.batch_size(), randomness=interpreter.randomness()
        )  # fmt: skip
        plain, in_dims = unwrap_batched(args, level)
        with torch._C._ExcludeDispatchKeyGuard(
            torch._C.DispatchKeySet(torch._C.DispatchKey.FuncTorchBatched)
        ):
            if all(dim is None for dim in torch.utils._pytree.tree_leaves(in_dims)):
                return op(*plain)
            outputs, out_dims = rule(info, in_dims, *plain)

        def wrap(output: Any, dim: Any) -> Any:
            return output if dim is None else _add_batch_dim(output, dim, level)

        return wrap_outputs_maintaining_identity(outputs, plain, args, wrap, out_dims=out_dims)

    _library.impl(name, batched, "FuncTorchBatched", with_keyset=True)


_register_vmap("rnn", rnn, _rnn_rule)
_register_vmap("rnn_backward", rnn_backward, _each(rnn_backward))
_register_vmap("rnn_tangent", rnn_tangent, _each(rnn_tangent))
