"""Parameters that were packed once, for inference."""

# JAX is not there where types are checked.
# mypy: disable-error-code="import-not-found, untyped-decorator"

from __future__ import annotations

import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from openrnn import _core
from openrnn.errors import ArgumentError
from openrnn.jax._network import Network
from openrnn.jax._params import as_arrays, joined, layout_of, network_of_params


def _drop(words: tuple[int, int], view: Any) -> None:
    """The packed weights go first, then what keeps the buffer where it is."""
    _core.jax_drop(*words)
    del view


@jax.tree_util.register_pytree_node_class
class Packed:
    """What `pack` returns: takes the place of params in lstm, gru and rnn.

    A pytree of the opaque buffer and of a number by which the engine finds what it packed of just
    those elements. With another buffer, in another process, or when the original is gone, a call
    packs again: results are never stale.

    Examples
    --------
    >>> params = openrnn.jax.init(jax.random.key(0), input_size=3, hidden_size=8)
    >>> packed = openrnn.jax.pack(params, weights_dtype="int8")
    >>> isinstance(packed, openrnn.jax.Packed), len(jax.tree_util.tree_leaves(packed))
    (True, 2)
    """

    def __init__(self, network: Network, params: Any, token: Any) -> None:
        self._network, self._params, self._token = network, params, token

    def tree_flatten(self) -> Any:
        return (self._params, self._token), self._network

    @classmethod
    def tree_unflatten(cls, network: Network, leaves: Any) -> Packed:
        return cls(network, *leaves)

    def __repr__(self) -> str:
        return f"<openrnn.jax.Packed of {self._network.text}>"

    def parts(self, call: str, cell: str) -> tuple[Network, Any, Any]:
        """The network, its buffer, its number. Raises ArgumentError where they do not fit."""
        net = self._network
        if not net.mode.startswith(cell):
            raise ArgumentError(f"[{call}] params are packed for {net.mode}, expected {cell}")
        for name, value, dtype, shape in (
            ("buffer", self._params, net.dtype, (net.size,)),
            ("token", self._token, "uint32", (2,)),
        ):
            if str(value.dtype) != dtype or tuple(value.shape[-1:]) != shape:
                raise ArgumentError(
                    f"[{call}] the {name} of packed params is {value.dtype} {list(value.shape)}, "
                    f"expected {dtype} {list(shape)} as pack made it"
                )
        return net, self._params, self._token


def pack(params: Any, cell: str = "lstm", *, bidirectional: bool = False, **options: Any) -> Packed:
    """Packs parameters once, for calls without gradients that then only compute.

    params: as of lstm, gru or rnn, which `cell` names; options: those of docs/options.md that make
    the network, weights_dtype ('int8', 'float16', 'bfloat16') among them. The result is an argument
    of jitted functions like any other; gradients through it are right, but pack at every call.
    Raises ArgumentError inside of jit, where there is nothing to pack yet.

    Examples
    --------
    >>> params = openrnn.jax.init(jax.random.key(0), input_size=3, hidden_size=8)
    >>> packed = openrnn.jax.pack(params)
    >>> x = jax.numpy.ones((2, 5, 3), "float32")
    >>> y, hn, cn = openrnn.jax.lstm(x, None, None, packed)
    >>> bool((y == openrnn.jax.lstm(x, None, None, params)[0]).all())
    True
    """
    call = "openrnn.jax.pack"
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree_util.tree_leaves(params)):
        raise ArgumentError(
            f"[{call}] params are traced, expected arrays: pack outside of jit, or pass params "
            "themselves"
        )
    params = as_arrays(params)
    net = network_of_params(call, params, layout_of(call, cell, bidirectional, options))
    flat = jax.device_put(joined(net, params), jax.devices("cpu")[0])
    # The view keeps the buffer from being donated, so its elements stay.
    view = np.asarray(flat)
    at = view.ctypes.data
    words = _core.jax_hold(net.text, at, at == flat.unsafe_buffer_pointer())
    packed = Packed(net, flat, jnp.asarray(words, jnp.uint32))
    weakref.finalize(packed, _drop, words, view)
    return packed
