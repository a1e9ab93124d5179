"""The recurrent call and its gradient as functions of autograd.

Gradients of gradients come from the engine, too: of the gradient J^T u along v they are H v and
J v. Functions have vmap rules and forward derivatives, so torch.func's transforms take them.
"""

# PyTorch is not there where types are checked.
# mypy: disable-error-code="import-not-found, misc"

from __future__ import annotations

from typing import Any

import torch

from openrnn import _core
from openrnn.torch import _calls, _vmap
from openrnn.torch._calls import Place


class Recurrent(torch.autograd.Function):
    """(place, held, batch_sizes, x, h0, c0, *weights) -> y, hn, cn or None, token."""

    @staticmethod
    def forward(place: Place, held: Any, batch_sizes: Any, x: Any, h0: Any, c0: Any, *w: Any) -> Any:
        held = held or _core.TorchWeights(place.net.core)
        return _calls.forward(place, held, x, h0, c0, w, batch_sizes, True)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        place, _, batch_sizes, x, h0, c0, *weights = inputs
        ctx.place = place
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(output[3])
        ctx.save_for_backward(x, h0, c0, output[3], batch_sizes, *weights)
        ctx.save_for_forward(x, h0, c0, output[3], batch_sizes, *weights)

    @staticmethod
    def backward(ctx: Any, dy: Any, dh: Any, dc: Any, _: Any) -> Any:
        x, h0, c0, token, batch_sizes, *weights = ctx.saved_tensors
        needs = ctx.needs_input_grad
        if dy is None and dh is None and dc is None:
            return (None,) * len(needs)
        wanted = (needs[3], needs[4], needs[5], any(needs[6:]))
        place, grads, inputs = ctx.place, (dy, dh, dc), (x, h0, c0)
        if _has_history():
            found = Gradient.apply(place, wanted, token, batch_sizes, *grads, *inputs, *weights)
        else:
            found = _calls.backward(place, token, grads, inputs, weights, batch_sizes, wanted)
        dx, dh0, dc0, params = found
        pieces: Any = (None,) * len(weights)
        if params is not None:
            split = place.net.split(params)
            pieces = [piece if need else None for piece, need in zip(split, needs[6:], strict=True)]
        return (None, None, None, dx, dh0, dc0, *pieces)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        x, h0, c0, _, batch_sizes, *weights = ctx.saved_tensors
        vx, vh, vc = tangents[3:6]
        params = None
        if any(v is not None for v in tangents[6:]):
            params = ctx.place.net.joined(list(tangents[6:]), x)
        wanted = (True, True, ctx.place.net.has_cell, False, False, False, False)
        u = (None, None, None)
        moved = Tangent.apply(
            ctx.place, wanted, batch_sizes, vx, vh, vc, params, *u, x, h0, c0, *weights
        )[:3]
        return (*moved, None)

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        return _vmap.recurrent(info, in_dims, Recurrent.apply, *args)


class Direct(torch.autograd.Function):
    """Recurrent where no transform and no forward derivative looks on.

    PyTorch binds the arguments of a function with setup_context by name at every call, which is half
    of a small one's time.
    """

    @staticmethod
    def forward(
        ctx: Any, place: Place, held: Any, batch_sizes: Any, x: Any, h0: Any, c0: Any, *w: Any
    ) -> Any:
        output = _calls.forward(place, held, x, h0, c0, w, batch_sizes, True)
        ctx.place = place
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(output[3])
        ctx.save_for_backward(x, h0, c0, output[3], batch_sizes, *w)
        return output

    backward = Recurrent.backward


class Gradient(torch.autograd.Function):
    """(place, wanted, token, batch_sizes, dy, dh, dc, x, h0, c0, *weights) -> gradients.

    Of x, h0, c0 and, flat, of all parameters; None where not wanted.
    """

    @staticmethod
    def forward(place: Place, wanted: Any, token: Any, batch_sizes: Any, *args: Any) -> Any:
        grads, inputs, weights = args[:3], args[3:6], args[6:]
        return _calls.backward(place, token, grads, inputs, weights, batch_sizes, wanted)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        place, _, _, batch_sizes, *args = inputs
        ctx.place, ctx.wanted = place, inputs[1]
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(batch_sizes, *args)
        ctx.save_for_forward(batch_sizes, *args)

    @staticmethod
    def backward(ctx: Any, vx: Any, vh: Any, vc: Any, params: Any) -> Any:
        batch_sizes, *args = ctx.saved_tensors
        needs = ctx.needs_input_grad
        if vx is None and vh is None and vc is None and params is None:
            return (None,) * len(needs)
        grads, inputs, weights = args[:3], args[3:6], args[6:]
        wanted = (*needs[4:10], any(needs[10:]))
        place = ctx.place
        *found, curvature = Tangent.apply(
            place, wanted, batch_sizes, vx, vh, vc, params, *grads, *inputs, *weights
        )
        pieces: Any = (None,) * len(weights)
        if curvature is not None:
            split = place.net.split(curvature)
            pieces = [p if need else None for p, need in zip(split, needs[10:], strict=True)]
        return (None, None, None, None, *found, *pieces)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        batch_sizes, *args = ctx.saved_tensors
        grads, inputs, weights = args[:3], args[3:6], args[6:]
        place = ctx.place
        params = None
        if any(v is not None for v in tangents[10:]):
            params = place.net.joined(list(tangents[10:]), inputs[0])
        direction = (*tangents[7:10], params)
        wanted = (False, False, False, *ctx.wanted)
        found = Tangent.apply(
            place, wanted, batch_sizes, *direction, *grads, *inputs, *weights
        )[3:]
        if any(v is not None for v in tangents[4:7]):
            linear = Gradient.apply(
                place, ctx.wanted, None, batch_sizes, *tangents[4:7], *inputs, *weights
            )
            found = tuple(
                a if a is None or b is None else a + b for a, b in zip(found, linear, strict=True)
            )
        return found

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        return _vmap.gradient(info, in_dims, Gradient.apply, *args)


class Tangent(torch.autograd.Function):
    """(place, wanted, batch_sizes, v of x, h0, c0, parameters; u of y, hn, cn; x, h0, c0, *weights).

    -> J v of y, hn, cn and H v of x, h0, c0, parameters; None where not wanted.
    """

    @staticmethod
    def forward(place: Place, wanted: Any, batch_sizes: Any, *args: Any) -> Any:
        v, u, inputs, weights = args[:4], args[4:7], args[7:10], args[10:]
        return _calls.tangent(place, v, u, inputs, weights, batch_sizes, wanted)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(
            "[backward] a third derivative, or a reverse derivative of a forward one, expected "
            "first and second ones, and forward ones of reverse ones: jacfwd(jacrev(f))"
        )

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        raise RuntimeError("[jvp] a third derivative, expected first and second ones")

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        return _vmap.each(info, in_dims, Tangent.apply, *args)


def _has_history() -> bool:
    return bool(torch.is_grad_enabled() or torch._C._are_functorch_transforms_active())
