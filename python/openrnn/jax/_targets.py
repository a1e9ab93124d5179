"""The engine's calls as primitives of JAX, which only a processor has."""

# JAX is not there where types are checked.
# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import mlir

from openrnn import _core
from openrnn.errors import UnsupportedError
from openrnn.jax._network import Network, by_text

try:
    from jax import ffi
except ImportError:  # before 0.5
    from jax.extend import ffi


def reserve_bytes(net: Network, time: int, batch: int, training: bool) -> int:
    """Bytes that forward hands to backward."""
    return _core.jax_reserve_bytes(net.text, time, batch, training)


def sizes_of(x: Any, batch_major: bool) -> tuple[int, int]:
    """(T, B)."""
    return (x.shape[1], x.shape[0]) if batch_major else (x.shape[0], x.shape[1])


def _array(shape: tuple[int, ...], like: Any) -> Any:
    return ShapedArray(shape, like.dtype)


def _forward(
    x: Any, h0: Any, c0: Any, *_: Any, network: str, batch_major: bool, training: bool, room: int
) -> Any:
    y = _array((*x.shape[:2], by_text(network).output), x)
    return y, _array(h0.shape, h0), _array(c0.shape, c0), ShapedArray((room,), jnp.uint8)


def _backward(
    dy: Any, dhn: Any, dcn: Any, x: Any, h0: Any, c0: Any, params: Any, *_: Any,
    network: str, batch_major: bool, training: bool, rows: bool,
) -> Any:  # fmt: skip
    shape = (sizes_of(x, batch_major)[1], *params.shape) if rows else params.shape
    return _array(x.shape, x), _array(h0.shape, h0), _array(c0.shape, c0), _array(shape, params)


def _tangent(
    vx: Any, vh: Any, vc: Any, vp: Any, dy: Any, dhn: Any, dcn: Any, *_: Any, **__: Any
) -> Any:
    return tuple(_array(each.shape, each) for each in (dy, dhn, dcn, vx, vh, vc, vp))


def refusal(call: str, instead: str) -> Any:
    """A lowering for every platform that the engine has no calls for."""

    def refuse(ctx: Any, *_: Any, **__: Any) -> Any:
        platforms = ctx.platforms or ctx.module_context.platforms
        raise UnsupportedError(
            f"[{call}] a call is compiled for {', '.join(platforms)}, expected cpu: {instead}, or "
            "put the arrays on jax.devices('cpu')[0]"
        )

    return refuse


_refuse = refusal("openrnn.jax", "on a GPU use jax.experimental.rnn or jax.lax.scan")


def _primitive(name: str, shapes: Any) -> Any:
    primitive = Primitive(name)
    primitive.multiple_results = True
    primitive.def_abstract_eval(shapes)

    def now(*args: Any, **attributes: Any) -> Any:
        # Calls come here only where jit is switched off.
        with jax.disable_jit(False):
            return jax.jit(functools.partial(primitive.bind, **attributes))(*args)

    primitive.def_impl(now)
    mlir.register_lowering(primitive, _refuse)
    mlir.register_lowering(primitive, ffi.ffi_lowering(name), platform="cpu")
    return primitive


def register(targets: dict[str, Any]) -> None:
    """Handlers by the names under which programs call them on a processor."""
    for name, capsule in targets.items():
        ffi.register_ffi_target(name, capsule, platform="cpu", api_version=1)


ffi_call = ffi.ffi_call
register(_core.jax_targets())

forward_p = _primitive("openrnn_forward", _forward)
backward_p = _primitive("openrnn_backward", _backward)
tangent_p = _primitive("openrnn_tangent", _tangent)
