"""The call under Keras's jax backend: calls of XLA into the engine, with a gradient of their own.

The targets of openrnn.jax take the opaque buffer, into which XLA would have to transpose every kernel
at each call, and lengths in place of masks. So Keras's arrays have targets of their own beside them,
which use again what was packed of a cell's weights. Every call goes there, and none back into Python.
"""

# JAX is not there where types are checked.
# mypy: disable-error-code="import-not-found, import-untyped, misc, untyped-decorator"

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir

from openrnn import _core
from openrnn.jax._targets import ffi_call, refusal, register
from openrnn.keras import _host
from openrnn.keras._cells import Place

register(_core.keras_targets())

# The first operand of a call, which nothing but a processor lets pass.
_on_cpu_p = Primitive("openrnn_keras_on_cpu")
_on_cpu_p.def_abstract_eval(lambda x: x)
_on_cpu_p.def_impl(lambda x: x)
batching.defvectorized(_on_cpu_p)
mlir.register_lowering(
    _on_cpu_p, refusal("openrnn.keras", "on a GPU take the layers of keras.layers")
)
mlir.register_lowering(_on_cpu_p, lambda _, x: [x], platform="cpu")


def on_cpu(x: Any) -> bool:
    """Whether the engine can have the arrays of a call; of a program, its compilation says so."""
    if jax.default_backend() != "cpu":
        return False
    concrete = isinstance(x, jax.Array) and not isinstance(x, jax.core.Tracer)
    return not concrete or all(device.platform == "cpu" for device in x.devices())


def _call(name: str, shapes: Any, attributes: dict[str, Any]) -> Any:
    """A call of the engine, whose own derivative is refused."""

    @jax.custom_vjp
    def run(*operands: Any) -> Any:
        call = ffi_call(f"openrnn_keras_{name}", shapes, vmap_method="sequential")
        return tuple(call(_on_cpu_p.bind(operands[0]), *operands[1:], **attributes))

    run.defvjp(lambda *_: _host.refuse_second(), lambda *_: None)
    return run


def _bits(flags: Any) -> Any:
    return np.int64(sum(1 << place for place, flag in enumerate(flags) if flag))


def _outputs(place: Place, x: Any) -> list[Any]:
    """Shapes of those that are there."""
    batch, steps = x.shape[:2]
    width = place.directions * place.units
    y = (batch, steps, width) if place.flags[1] else (batch, width)
    made = (jax.ShapeDtypeStruct(shape, x.dtype) for shape in (y, (batch, place.units)))
    return _host.present(place.outputs(*made))


def _attributes(place: Place) -> dict[str, Any]:
    backwards, sequences, zero = place.flags
    return {
        "network": place.cell.text, "cell": np.int64(place.cell.number()),
        "backwards": backwards, "sequences": sequences, "zero": zero,
    }  # fmt: skip


def _function(place: Place) -> Any:
    """(arrays, mask) -> outputs that are there, with its gradient."""
    attributes = _attributes(place)

    def compute(arrays: Any, mask: Any, saving: bool) -> Any:
        x = arrays[0]
        room = place.cell.reserve_room(x.shape[1], x.shape[0]) if saving else 0
        shapes = [*_outputs(place, x), jax.ShapeDtypeStruct((room,), jnp.uint8)]
        run = _call("forward", shapes, {**attributes, "masked": mask is not None})
        *made, reserve = run(*_host.present((*arrays, mask)))
        return tuple(made), reserve

    @jax.custom_vjp
    def recurrent(arrays: Any, mask: Any) -> Any:
        return compute(arrays, mask, False)[0]

    def forward(arrays: Any, mask: Any) -> Any:
        # () stands for a gradient that somebody wants: what is no array belongs to the tree.
        wanted = [() if each is not None and each.perturbed else None for each in arrays]
        values = tuple(None if each is None else each.value for each in arrays)
        mask = None if mask is None else mask.value
        made, reserve = compute(values, mask, True)
        return made, (wanted, values, mask, reserve)

    def backward(kept: Any, grads: Any) -> Any:
        wanted, arrays, mask, reserve = kept
        given = [None if isinstance(each, SymbolicZero) else each for each in grads]
        there = [want for array, want in zip(arrays, wanted, strict=True) if array is not None]
        shapes = [
            jax.ShapeDtypeStruct(array.shape, array.dtype)
            for array, want in zip(arrays, wanted, strict=True)
            if want is not None
        ]
        bits = {
            "given": _bits(each is not None for each in given),
            "wanted": _bits(each is not None for each in there),
        }
        run = _call("backward", shapes, {**attributes, **bits, "masked": mask is not None})
        found = run(*_host.present((*given, *arrays, mask, reserve)))
        return tuple(_host.unpacked([want is not None for want in wanted], found)), None

    recurrent.defvjp(forward, backward, symbolic_zeros=True)
    # Outside of a program that somebody compiles, too, a call is compiled once.
    return jax.jit(recurrent)


def run(place: Place, arrays: Any, mask: Any, training: bool) -> Any:
    """The outputs."""
    if place.function is None:
        place.function = _function(place)
    there = [each is not None for each in place.outputs(True, True)]
    return _host.unpacked(there, place.function(tuple(arrays), mask))
