"""Forward, backward and second derivatives on plain tensors of PyTorch, without history.

Sequences are [T, B, .], or [B, T, .] with `batch_first`, or with `batch_sizes` the rows of a
PackedSequence; states are [L*D, B, .] always, as in torch.nn.
"""

# PyTorch is not there where types are checked.
# mypy: disable-error-code="import-not-found"

from __future__ import annotations

from typing import Any

import torch

from openrnn import _core
from openrnn._torch_threads import count as _threads
from openrnn.errors import ArgumentError
from openrnn.torch._network import Network

_from_dlpack = torch._C._from_dlpack


class Place:
    """What is fixed of a call besides its tensors."""

    __slots__ = ("batch_first", "net", "seed", "training")

    def __init__(self, net: Network, seed: int, batch_first: bool, training: bool) -> None:
        self.net, self.seed = net, seed
        self.batch_first, self.training = batch_first, training

    def sizes(self, x: Any, batch_sizes: Any) -> tuple[Any, ...]:
        """What the engine is told of a call."""
        if batch_sizes is None:
            time, batch = (1, 0) if self.batch_first else (0, 1)
            shape = x.shape
            steps, rows, address = shape[time], shape[batch], 0
        else:
            steps, rows, address = len(batch_sizes), int(batch_sizes[0]), batch_sizes.data_ptr()
        return (steps, rows, self.batch_first, self.training, address, _threads(), self.seed)


def _address(tensor: Any) -> int:
    return 0 if tensor is None else int(tensor.data_ptr())


def _dense(tensor: Any) -> Any:
    """Its values one behind the other, and as they are: not negated when they are read."""
    if tensor is None or (tensor.is_contiguous() and not tensor.is_neg()):
        return tensor
    return tensor.contiguous().resolve_neg()


def readable(net: Network, weights: Any) -> list[Any]:
    """Contiguous tensors with the values of the weights. Raises for what no network has."""
    if len(weights) != len(net.pieces):
        raise ArgumentError(
            f"[openrnn.torch] {len(weights)} parameters, expected {len(net.pieces)}: "
            + ", ".join(net.names)
        )
    for name, (shape, _, _), weight in zip(net.names, net.pieces, weights, strict=True):
        if weight is None:
            raise ArgumentError(f"[openrnn.torch] {name} is None, expected a tensor")
        if tuple(weight.shape) != shape or weight.dtype != net.dtype or not weight.is_cpu:
            raise ArgumentError(
                f"[openrnn.torch] {name} is {weight.dtype} of shape {tuple(weight.shape)} on "
                f"{weight.device}, expected {net.dtype} of shape {shape} on the cpu"
            )
    return [weight.contiguous() for weight in weights]


def _result(like: Any, shape: Any, wanted: bool) -> Any:
    return like.new_empty(shape) if wanted else None


def forward(
    place: Place, held: Any, x: Any, h0: Any, c0: Any, weights: Any, batch_sizes: Any, saving: bool
) -> tuple[Any, Any, Any, Any]:
    """y, hn, cn (None without a c), and the token of what backward needs, None without `saving`.

    `held` are the packed weights; `weights` None means those that it holds.
    """
    net = place.net
    x = _dense(x)
    h_at = c_at = cn_at = 0  # a call of microseconds: no function is called for a None
    if h0 is not None:
        h0 = _dense(h0)
        h_at = h0.data_ptr()
    if c0 is not None:
        c0 = _dense(c0)
        c_at = c0.data_ptr()
    sizes = place.sizes(x, batch_sizes)
    rows, new, cn = sizes[1], x.new_empty, None
    y = new((*x.shape[:-1], net.output))
    hn = new((net.states, rows, net.hidden))
    if net.has_cell:
        cn = new((net.states, rows, net.units))
        cn_at = cn.data_ptr()
    given, made = (x.data_ptr(), h_at, c_at), (y.data_ptr(), hn.data_ptr(), cn_at)
    done = held.forward(weights, saving, sizes, given, made)
    if done is False:
        done = held.forward(readable(net, weights), saving, sizes, given, made)
    return y, hn, cn, _from_dlpack(done) if saving else None


def _token(place: Place, x: Any, h0: Any, c0: Any, weights: Any, batch_sizes: Any) -> Any:
    """The forward call once more, for a token that was copied or freed on the way."""
    held = _core.TorchWeights(place.net.core)
    return forward(place, held, x, h0, c0, weights, batch_sizes, True)[3]


def _input_gradients(net: Network, x: Any, rows: int, wanted: Any) -> tuple[Any, Any, Any]:
    """Memory for those of x, h0 and c0; None where not `wanted`."""
    return (
        _result(x, x.shape, wanted[0]),
        _result(x, (net.states, rows, net.hidden), wanted[1]),
        _result(x, (net.states, rows, net.units), wanted[2] and net.has_cell),
    )


def _run_backward(
    place: Place, token: Any, call: Any, inputs: Any, weights: Any, batch_sizes: Any
) -> None:
    core = place.net.core
    if token is None or not _core.torch_backward(core, _address(token), *call):
        x, h0, c0 = inputs
        token = _token(place, x, h0, c0, weights, batch_sizes)
        if not _core.torch_backward(core, _address(token), *call):
            raise RuntimeError("[backward] the saved call was not found")


def backward(
    place: Place, token: Any, grads: Any, inputs: Any, weights: Any, batch_sizes: Any, wanted: Any
) -> tuple[Any, Any, Any, Any]:
    """Gradients of x, h0, c0 and, flat, of all parameters; None where not `wanted`."""
    net, x = place.net, inputs[0]
    sizes = place.sizes(x, batch_sizes)
    made = _input_gradients(net, x, sizes[1], wanted)
    params = _result(x, (net.size,), wanted[3])
    dense = [_dense(grad) for grad in grads]
    given, at = tuple(map(_address, dense)), tuple(map(_address, made))
    call = (sizes, given, at, _address(params), 0, 0, 0)
    _run_backward(place, token, call, inputs, weights, batch_sizes)
    return *made, params


def row_gradients(
    place: Place, token: Any, grads: Any, inputs: Any, weights: Any, wanted: Any
) -> tuple[Any, Any, Any, Any]:
    """As backward, but the gradients of the parameters for each row of the batch, [B, size]."""
    net, x = place.net, inputs[0]
    sizes = place.sizes(x, None)
    made = _input_gradients(net, x, sizes[1], wanted)
    rows = x.new_empty((sizes[1], net.size))
    dense = [_dense(grad) for grad in grads]
    given, at = tuple(map(_address, dense)), tuple(map(_address, made))
    call = (sizes, given, at, 0, rows.data_ptr(), 0, sizes[1])
    _run_backward(place, token, call, inputs, weights, None)
    return *made, rows


def tangent(
    place: Place, direction: Any, grads: Any, inputs: Any, weights: Any, batch_sizes: Any,
    wanted: Any,
) -> tuple[Any, ...]:  # fmt: skip
    """J v of (y, hn, cn), then H v of (x, h0, c0, parameters); None where not `wanted`.

    `direction` is v of (x, h0, c0, parameters), `grads` those of (y, hn, cn); None is zeros.
    """
    net = place.net
    x, h0, c0 = (_dense(tensor) for tensor in inputs)
    v = [_dense(tensor) for tensor in direction]
    dense = [_dense(grad) for grad in grads]
    sizes = place.sizes(x, batch_sizes)
    hidden, units = (net.states, sizes[1], net.hidden), (net.states, sizes[1], net.units)
    y = (*x.shape[:-1], net.output)
    shapes = (y, hidden, units, x.shape, hidden, units, (net.size,))
    made = [
        _result(x, shape, want and (net.has_cell or i not in (2, 5)))
        for i, (shape, want) in enumerate(zip(shapes, wanted, strict=True))
    ]
    at = [_address(tensor) for tensor in made]
    rest: Any = (
        sizes,
        (x.data_ptr(), _address(h0), _address(c0)),
        tuple(_address(tensor) for tensor in v[:3]),
        _address(v[3]),
        tuple(_address(grad) for grad in dense),
        tuple(at[:3]),
        tuple(at[3:6]),
        at[6],
    )
    if not _core.torch_tangent(net.core, weights, *rest):
        _core.torch_tangent(net.core, readable(net, weights), *rest)
    return tuple(made)
