"""One recurrent call under JAX's transformations: gradients twice, and vmap.

Rows fold into the batch where the weights are the same for all samples and no masks are drawn, since
those are numbered by row. Everything else that vmap asks for is one call after another.

What forward keeps for backward is an array of bytes. That of samples folded into one call lies in
the room of theirs together, which is never smaller; a call whose reserve is not just its own, by
what that says of itself, is computed again.
"""

# JAX is not there where types are checked.
# mypy: disable-error-code="import-not-found, untyped-decorator"

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap

from openrnn.jax._network import Network
from openrnn.jax._targets import backward_p, forward_p, reserve_bytes, sizes_of, tangent_p


class Call(NamedTuple):
    """What is no array. x is [B, T, I] where batch-major, and states [B, L*D, .]."""

    net: Network
    batch_major: bool
    training: bool  # whether masks are drawn

    @property
    def axis(self) -> int:
        """Of the rows, in sequences and states."""
        return 0 if self.batch_major else 1

    @property
    def attributes(self) -> dict[str, Any]:
        return {
            "network": self.net.text, "batch_major": self.batch_major, "training": self.training,
        }  # fmt: skip


def _each(function: Any, mapped: Any, args: Any) -> Any:
    """One call a sample."""
    many = [arg for arg, is_mapped in zip(args, mapped, strict=True) if is_mapped]

    def one(given: Any) -> Any:
        rest = iter(given)
        return function(
            *(next(rest) if is_mapped else arg for arg, is_mapped in zip(args, mapped, strict=True))
        )

    results = jax.lax.map(one, many)
    return results, tuple(True for _ in results)


def _folded(value: Any, mapped: bool, axis: int, samples: int) -> Any:
    """The samples beside each other along the rows' `axis`, those of one sample together."""
    if mapped:
        moved = jnp.moveaxis(value, 0, axis)
    else:
        shape = (*value.shape[:axis], samples, *value.shape[axis:])
        moved = jnp.broadcast_to(jnp.expand_dims(value, axis), shape)
    return moved.reshape(*moved.shape[:axis], -1, *moved.shape[axis + 2 :])


def _unfolded(value: Any, axis: int, samples: int) -> Any:
    rows = value.shape[axis] // samples
    shape = (*value.shape[:axis], samples, rows, *value.shape[axis + 1 :])
    return jnp.moveaxis(value.reshape(shape), axis, 0)


def _fold(call: Call, samples: int, triple: Any, mapped: Any) -> list[Any]:
    """A sequence and two states; the cell is empty in networks without one."""
    found = [
        _folded(value, is_mapped, call.axis, samples)
        for value, is_mapped in zip(triple[:2], mapped[:2], strict=True)
    ]
    if call.net.has_cell:
        return [*found, _folded(triple[2], mapped[2], call.axis, samples)]
    return [*found, triple[2][0] if mapped[2] else triple[2]]


def _unfold(call: Call, samples: int, triple: Any) -> tuple[tuple[Any, ...], tuple[bool, ...]]:
    count = 3 if call.net.has_cell else 2
    found = tuple(_unfolded(value, call.axis, samples) for value in triple[:count])
    return (*found, *triple[count:]), (True,) * count + (False,) * (3 - count)


def _fold_lengths(lengths: Any, mapped: bool, samples: int) -> Any:
    if lengths.shape[-1] == 0:
        return lengths[0] if mapped else lengths
    return _folded(lengths, mapped, 0, samples)


@functools.lru_cache(maxsize=None)
def forward(call: Call, room: int) -> Any:
    """(x, h0, c0, params, lengths, seed, token) -> (y, hn, cn, reserve [room])."""

    @custom_vmap
    def run(*args: Any) -> Any:
        return tuple(forward_p.bind(*args, **call.attributes, room=room))

    @run.def_vmap
    def rule(samples: int, mapped: Any, *args: Any) -> Any:
        lengths, seed, token = args[4:]
        if call.training or any(mapped[i] for i in (3, 5, 6)):
            return _each(run, mapped, args)
        beside = _fold(call, samples, args[:3], mapped[:3])
        lengths = _fold_lengths(lengths, mapped[4], samples)
        *triple, reserve = forward(call, samples * room)(*beside, args[3], lengths, seed, token)
        outputs, out_mapped = _unfold(call, samples, triple)
        return (*outputs, reserve.reshape(samples, room)), (*out_mapped, True)

    return run


@functools.lru_cache(maxsize=None)
def _backward(call: Call, rows: bool) -> Any:
    """(dy, dhn, dcn, x, h0, c0, params, lengths, seed, reserve) -> (dx, dh0, dc0, dparams)."""

    @custom_vmap
    def run(*args: Any) -> Any:
        return tuple(backward_p.bind(*args, **call.attributes, rows=rows))

    @run.def_vmap
    def rule(samples: int, mapped: Any, *args: Any) -> Any:
        # An unmapped reserve is of one call, of which gradients of many outputs are wanted.
        folds = mapped[9] and call.net.rows and not (mapped[6] or mapped[8])
        if call.training or not folds:
            return _each(run, mapped, args)
        beside = _fold(call, samples, args[:3], mapped[:3])
        beside += _fold(call, samples, args[3:6], mapped[3:6])
        lengths = _fold_lengths(args[7], mapped[7], samples)
        reserve = args[9].reshape(-1)
        *triple, each = _backward(call, True)(*beside, args[6], lengths, args[8], reserve)
        outputs, out_mapped = _unfold(call, samples, triple)
        each = each.reshape(samples, -1, call.net.size)
        return (*outputs, each if rows else each.sum(1)), (*out_mapped, True)

    return run


@functools.lru_cache(maxsize=None)
def _tangent(call: Call) -> Any:
    @custom_vmap
    def run(*args: Any) -> Any:
        return tuple(tangent_p.bind(*args, **call.attributes))

    @run.def_vmap
    def rule(samples: int, mapped: Any, *args: Any) -> Any:
        return _each(run, mapped, args)

    return run


@functools.lru_cache(maxsize=None)
def _gradient(call: Call) -> Any:
    """The backward pass as an operation with a gradient of its own."""

    @jax.custom_vjp
    def gradient(*args: Any) -> Any:
        return _backward(call, False)(*args)

    def keep(*args: Any) -> Any:
        return gradient(*args), args[:9]

    def second(args: Any, directions: Any) -> Any:
        found = _tangent(call)(*directions, *args)
        return (*found, None, None, None)

    gradient.defvjp(keep, second)
    return gradient


@functools.lru_cache(maxsize=None)
def _saving(call: Call, room: int) -> Any:
    """As `forward`; gradients of gradients go through it."""

    @jax.custom_vjp
    def run(*args: Any) -> Any:
        return forward(call, room)(*args)

    def keep(*args: Any) -> Any:
        outputs = run(*args)
        return outputs, (*args[:6], outputs[3])

    def first(args: Any, gradients: Any) -> Any:
        return (*_gradient(call)(*gradients[:3], *args), None, None, None)

    run.defvjp(keep, first)
    return run


@functools.lru_cache(maxsize=None)
def operation(call: Call) -> Any:
    """(x, h0, c0, params, lengths, seed, token) -> (y, hn, cn)."""

    @jax.custom_vjp
    def run(*args: Any) -> Any:
        return forward(call, 0)(*args)[:3]

    def keep(*args: Any) -> Any:
        time, batch = sizes_of(args[0], call.batch_major)
        room = reserve_bytes(call.net, time, batch, call.training)
        *outputs, reserve = _saving(call, room)(*args)
        return tuple(outputs), (*args[:6], reserve)

    def first(args: Any, gradients: Any) -> Any:
        return (*_gradient(call)(*gradients, *args), None, None, None)

    run.defvjp(keep, first)
    return run
