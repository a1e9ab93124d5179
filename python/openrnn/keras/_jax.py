"""The call under Keras's jax backend: callbacks to the host with a gradient of their own."""

# JAX is not there where types are checked.
# mypy: disable-error-code="import-not-found, import-untyped, misc, untyped-decorator"

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from openrnn.keras import _host
from openrnn.keras._cells import Place


def on_cpu(x: Any) -> bool:
    """Whether the engine can have the arrays of a call."""
    return bool(jax.default_backend() == "cpu")


def _numpy(tree: Any) -> Any:
    return jax.tree_util.tree_map(np.asarray, tree)


def _callback(host: Any, shapes: Any, *given: Any) -> Any:
    return jax.pure_callback(host, shapes, *given, vmap_method="sequential")


def _shapes(place: Place, x: Any) -> tuple[Any, Any, Any]:
    batch, steps = x.shape[:2]
    shape = (batch, steps, place.units) if place.flags[1] else (batch, place.units)
    state = jax.ShapeDtypeStruct((batch, place.units), x.dtype)
    return jax.ShapeDtypeStruct(shape, x.dtype), state, state if place.lstm else None


def _function(place: Place) -> Any:
    """(arrays, mask) -> (y, hn, cn), with its gradient."""

    def host_forward(arrays: Any, mask: Any) -> Any:
        return _host.forward(place, _numpy(arrays), _numpy(mask), False)[:3]

    def host_saving(arrays: Any, mask: Any) -> Any:
        *made, saved = _host.forward(place, _numpy(arrays), _numpy(mask), True)
        return tuple(made), _host.keep(saved)

    def host_backward(number: Any, grads: Any, arrays: Any, mask: Any) -> Any:
        arrays = _numpy(arrays)
        saved = _host.taken(place, number, arrays, _numpy(mask))
        wanted = [each is not None for each in arrays]
        return tuple(_host.backward(saved, _numpy(grads), _host.likes(arrays), wanted))

    @jax.custom_vjp
    def recurrent(arrays: Any, mask: Any) -> Any:
        return _callback(host_forward, _shapes(place, arrays[0]), arrays, mask)

    def forward(arrays: Any, mask: Any) -> Any:
        number = jax.ShapeDtypeStruct((), jnp.int32)
        made, token = _callback(host_saving, (_shapes(place, arrays[0]), number), arrays, mask)
        return made, (token, arrays, mask)

    def backward(kept: Any, grads: Any) -> Any:
        token, arrays, mask = kept
        shapes = jax.tree_util.tree_map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), arrays)
        return _callback(host_backward, shapes, token, grads, arrays, mask), None

    recurrent.defvjp(forward, backward)
    return recurrent


def run(place: Place, arrays: Any, mask: Any, training: bool) -> tuple[Any, Any, Any]:
    """y, hn, cn."""
    if place.function is None:
        place.function = _function(place)
    y, hn, cn = place.function(tuple(arrays), mask)
    return y, hn, cn
