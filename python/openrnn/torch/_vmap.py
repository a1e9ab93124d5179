"""What torch.func.vmap makes of a call: more rows of the batch, or one call after another.

Rows fold into the batch where all weights are the same for all samples; then gradients of the
weights are the engine's gradients of rows. Everything else is computed sample by sample.
"""

# PyTorch is not there where types are checked.
# mypy: disable-error-code="import-not-found"

from __future__ import annotations

from typing import Any

import torch

from openrnn.torch import _calls
from openrnn.torch._calls import Place


def _sample(value: Any, dim: Any, index: int) -> Any:
    if dim is None or not isinstance(value, torch.Tensor):
        return value
    return value.select(dim, index)


def _stacked(results: list[Any]) -> tuple[Any, Any]:
    columns = [
        None if column[0] is None else torch.stack(column) for column in zip(*results, strict=True)
    ]
    return tuple(columns), tuple(None if column is None else 0 for column in columns)


def each(info: Any, in_dims: Any, function: Any, *args: Any) -> tuple[Any, Any]:
    """One call of `function` a sample."""
    results = []
    for index in range(info.batch_size):
        given = [_sample(arg, dim, index) for arg, dim in zip(args, in_dims, strict=True)]
        results.append(function(*given))
    return _stacked(results)


def folded(tensor: Any, dim: Any, axis: int, samples: int) -> Any:
    """The samples beside each other along the batch's `axis`, those of one sample together."""
    if tensor is None:
        return None
    if dim is None:
        moved = tensor.unsqueeze(axis).expand(*tensor.shape[:axis], samples, *tensor.shape[axis:])
    else:
        moved = tensor.movedim(dim, axis)
    return moved.flatten(axis, axis + 1)


def unfolded(tensor: Any, axis: int, samples: int) -> Any:
    return None if tensor is None else tensor.unflatten(axis, (samples, -1))


def _folds(place: Place, batch_sizes: Any, x: Any, weight_dims: Any) -> bool:
    """Whether samples can be rows. Masks are numbered by row, so every sample has its own call."""
    masks = place.training and place.net.draws
    return batch_sizes is None and not masks and all(dim is None for dim in weight_dims)


def recurrent(info: Any, in_dims: Any, function: Any, *args: Any) -> tuple[Any, Any]:
    """The rule of Recurrent."""
    place, held, batch_sizes, x, h0, c0, *weights = args
    samples = info.batch_size
    if not _folds(place, batch_sizes, x, in_dims[6:]):
        outputs, dims = each(info, in_dims, _without_token(function), *args)
        return (*outputs, _no_token(x)), (*dims, None)
    axis = 0 if place.batch_first else 1
    beside = [folded(x, in_dims[3], axis, samples)]
    beside += [folded(state, in_dims[4 + i], 1, samples) for i, state in enumerate((h0, c0))]
    y, hn, cn, token = function(place, held, None, *beside, *weights)
    outputs = (unfolded(y, axis, samples), unfolded(hn, 1, samples), unfolded(cn, 1, samples))
    return (*outputs, token), (axis, 1, None if cn is None else 1, None)


def _without_token(function: Any) -> Any:
    return lambda *args: function(*args)[:3]


def _no_token(like: Any) -> Any:
    """One that no saved call has: its backward computes the call again."""
    return like.new_empty(1, dtype=torch.uint8)


def gradient(info: Any, in_dims: Any, function: Any, *args: Any) -> tuple[Any, Any]:
    """The rule of Gradient."""
    place, wanted, token, batch_sizes, *tensors = args
    grads, inputs, weights = tensors[:3], tensors[3:6], tensors[6:]
    samples = info.batch_size
    rows_can = _folds(place, batch_sizes, inputs[0], in_dims[10:]) and in_dims[7] is not None
    if not rows_can or _nested(tensors) or (wanted[3] and not place.net.rows):
        return each(info, in_dims, function, *args)
    axis = 0 if place.batch_first else 1
    dims = in_dims[4:10]
    axes = (axis, 1, 1, axis, 1, 1)
    beside = [
        folded(tensor, dim, at, samples)
        for tensor, dim, at in zip((*grads, *inputs), dims, axes, strict=True)
    ]
    run = _row_gradients if wanted[3] else _plain_gradients
    dx, dh, dc, params = run(place, token, beside[:3], beside[3:], weights, wanted, samples)
    outputs = (unfolded(dx, axis, samples), unfolded(dh, 1, samples), unfolded(dc, 1, samples))
    out_dims = tuple(
        None if value is None else at for value, at in zip(outputs, (axis, 1, 1), strict=True)
    )
    return (*outputs, params), (*out_dims, None if params is None else 0)


def _nested(tensors: Any) -> bool:
    """Whether another transform looks on: it must see functions, not memory."""
    if torch._C._are_functorch_transforms_active():
        return True
    return torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)


def _plain_gradients(
    place: Place, token: Any, grads: Any, inputs: Any, weights: Any, wanted: Any, samples: int
) -> Any:
    return _calls.backward(place, token, grads, inputs, weights, None, wanted)


def _row_gradients(
    place: Place, token: Any, grads: Any, inputs: Any, weights: Any, wanted: Any, samples: int
) -> Any:
    """The sum of its rows is a sample's gradient."""
    dx, dh, dc, rows = _calls.row_gradients(place, token, grads, inputs, weights, wanted)
    return dx, dh, dc, rows.view(samples, -1, place.net.size).sum(1)
