"""The call under Keras's torch backend."""

# PyTorch is not there where types are checked.
# mypy: disable-error-code="import-not-found, misc, no-untyped-call, untyped-decorator"

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from openrnn import _torch_threads
from openrnn.keras import _host
from openrnn.keras._cells import Place


def on_cpu(x: Any) -> bool:
    """Whether the engine can have the tensors of a call."""
    return bool(x.device.type == "cpu")


def _arrays(tensors: Any) -> list[Any]:
    """Arrays over their memory where that is possible."""
    return [None if each is None else each.numpy(force=True) for each in tensors]


def _tensor(array: Any) -> Any:
    return None if array is None else torch.from_numpy(array)


class Recurrent(torch.autograd.Function):
    """(place, mask, arrays..) -> outputs."""

    @staticmethod
    def forward(ctx: Any, place: Place, mask: Any, *tensors: Any) -> Any:
        arrays = _arrays(tensors)
        made, ctx.saved = _host.forward(place, arrays, mask, True, _torch_threads.count())
        # What was saved owns its memory: who writes into x or a weight meanwhile changes nothing.
        ctx.likes = _host.likes(arrays)
        ctx.set_materialize_grads(False)
        return tuple(_tensor(each) for each in made)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Any) -> Any:
        if all(grad is None for grad in grads):
            return (None,) * len(ctx.needs_input_grad)
        made = _host.backward(
            ctx.saved, _arrays(grads), ctx.likes, ctx.needs_input_grad[2:]
        )
        return (None, None, *(_tensor(each) for each in made))


@torch.compiler.disable  # a compiler breaks its graph here
def run(place: Place, tensors: Any, mask: Any, training: bool) -> Any:
    """The outputs, with whatever history they need."""
    if mask is not None:
        mask = mask.numpy(force=True)
    if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors):
        return Recurrent.apply(place, mask, *tensors)
    made, _ = _host.forward(place, _arrays(tensors), mask, False, _torch_threads.count())
    return [_tensor(each) for each in made]
