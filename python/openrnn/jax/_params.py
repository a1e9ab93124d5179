"""Parameters: a list of dicts, or the opaque buffer."""

# JAX is not there where types are checked.
# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from openrnn.errors import ArgumentError
from openrnn.jax._network import (
    CELLS,
    DTYPES,
    Layout,
    Network,
    check_cell,
    check_options,
    network_of,
)


def shape_text(value: Any) -> str:
    return f"{value.dtype} {list(value.shape)}"


def _fail(call: str, what: str) -> ArgumentError:
    return ArgumentError(f"[{call}] {what}")


def _sizes(call: str, params: Any, layout: Layout) -> dict[str, Any]:
    """The sizes that the first dict says; the network then says what all must be."""
    directions = 2 if layout.bidirectional else 1
    if not isinstance(params, (list, tuple)) or not params or len(params) % directions:
        given = f"{len(params)} dicts" if isinstance(params, (list, tuple)) else type(params).__name__
        wanted = "one dict for each layer and direction" if directions == 2 else "one dict a layer"
        raise _fail(call, f"params is {given}, expected a list of {wanted}")
    first = params[0]
    if not isinstance(first, dict):
        raise _fail(call, f"params[0] is {type(first).__name__}, expected a dict")
    for key in ("w_ih", "w_hh"):
        if key not in first or getattr(first[key], "ndim", None) != 2:
            given = shape_text(first[key]) if hasattr(first.get(key), "ndim") else "missing"
            raise _fail(call, f"params[0]['{key}'] is {given}, expected a matrix")
    gates, rows = CELLS[layout.cell], first["w_hh"].shape[0]
    if rows % gates:
        raise _fail(call, f"params[0]['w_hh'] has {rows} rows, expected a multiple of {gates}")
    dtype = str(first["w_ih"].dtype)
    if dtype not in DTYPES:
        raise _fail(call, f"params[0]['w_ih'] is of {dtype}, expected {', '.join(DTYPES)}")
    sizes = {
        "num_layers": len(params) // directions, "num_units": rows // gates,
        "input_size": first["w_ih"].shape[1], "dtype": dtype,
        "use_bias": "b_ih" in first or "b_hh" in first,
    }  # fmt: skip
    if "b_ih" in first and "b_hh" not in first:
        sizes["single_bias"] = True
    if "w_hr" in first:
        sizes["num_proj"] = first["w_hr"].shape[0]
    return sizes


def as_arrays(params: Any) -> Any:
    """Parameters as arrays of JAX, which may have another dtype; what is no list of dicts as it is."""
    if not isinstance(params, (list, tuple)):
        return params
    return [
        {key: jnp.asarray(value) for key, value in each.items()} if isinstance(each, dict) else each
        for each in params
    ]


def network_of_params(call: str, params: Any, layout: Layout) -> Network:
    """The network of parameters from `as_arrays`. Raises ArgumentError for what does not fit."""
    net = network_of(_sizes(call, params, layout), layout)
    wanted = {(piece.at, piece.key): piece.shape for piece in net.pieces}
    for index, each in enumerate(params):
        if not isinstance(each, dict):
            raise _fail(call, f"params[{index}] is {type(each).__name__}, expected a dict")
        for key in each:
            if (index, key) not in wanted:
                raise _fail(call, f"params[{index}] has {key!r}, which this network has not")
    for (index, key), shape in wanted.items():
        value = params[index].get(key)
        if value is None:
            raise _fail(call, f"params[{index}] has no {key!r}, expected {list(shape)}")
        if tuple(value.shape) != shape or str(value.dtype) != net.dtype:
            raise _fail(
                call,
                f"params[{index}]['{key}'] is {shape_text(value)}, expected {net.dtype} "
                f"{list(shape)}",
            )
    return net


def joined(net: Network, params: Any) -> Any:
    """The opaque buffer of parameters that fit."""
    pieces = sorted(net.pieces, key=lambda piece: piece.offset)
    return jnp.concatenate([jnp.ravel(params[piece.at][piece.key]) for piece in pieces])


def layout_of(call: str, cell: Any, bidirectional: bool, options: dict[str, Any]) -> Layout:
    check_options(call, options)
    return Layout(check_cell(call, cell), bool(bidirectional), options)


def flatten(params: Any, cell: str = "lstm", *, bidirectional: bool = False, **options: Any) -> Any:
    """The opaque buffer of `params`: what a variable of openrnn.cudnn_rnn, or cuDNN, holds.

    Differentiable. Raises ArgumentError for parameters that do not fit together.

    Examples
    --------
    >>> params = openrnn.jax.init(jax.random.key(0), input_size=3, hidden_size=4)
    >>> openrnn.jax.flatten(params).shape
    (144,)
    """
    layout = layout_of("openrnn.jax.flatten", cell, bidirectional, options)
    params = as_arrays(params)
    return joined(network_of_params("openrnn.jax.flatten", params, layout), params)


def _split(net: Network, buffer: Any) -> list[dict[str, Any]]:
    params: list[dict[str, Any]] = [{} for _ in range(net.states)]
    for piece in net.pieces:
        flat = buffer[piece.offset : piece.offset + piece.size]
        params[piece.at][piece.key] = flat.reshape(piece.shape)
    return params


def unflatten(
    buffer: Any, cell: str = "lstm", *, input_size: int, hidden_size: int, num_layers: int = 1,
    bidirectional: bool = False, proj_size: int = 0, **options: Any,
) -> list[dict[str, Any]]:  # fmt: skip
    """The inverse of `flatten`: a list of dicts of an opaque buffer [P], of its dtype.

    Examples
    --------
    >>> params = openrnn.jax.unflatten(
    ...     jax.numpy.ones(144, "float32"), "lstm", input_size=3, hidden_size=4)
    >>> {name: params[0][name].shape for name in sorted(params[0])}
    {'b_hh': (16,), 'b_ih': (16,), 'w_hh': (16, 4), 'w_ih': (16, 3)}
    """
    call = "openrnn.jax.unflatten"
    buffer = jnp.asarray(buffer)
    layout = layout_of(call, cell, bidirectional, options)
    sizes = {
        "num_layers": num_layers, "num_units": hidden_size, "input_size": input_size,
        "num_proj": proj_size or None, "dtype": str(buffer.dtype),
    }  # fmt: skip
    net = network_of(sizes, layout)
    if buffer.shape != (net.size,):
        raise _fail(call, f"buffer is {shape_text(buffer)}, expected [{net.size}]")
    return _split(net, buffer)


def _orthogonal(key: Any, shape: tuple[int, ...], gates: int, dtype: Any) -> Any:
    """One orthogonal matrix a gate."""
    make = jax.nn.initializers.orthogonal()
    each = (shape[0] // gates, shape[1])
    keys = jax.random.split(key, gates)
    return jnp.concatenate([make(one, each, dtype) for one in keys])


def _initial(key: Any, piece: Any, net: Network, method: str, gates: int) -> Any:
    # Random numbers of 16 bits are coarse: those are rounded from float32.
    dtype = jnp.float64 if net.dtype == "float64" else jnp.float32
    if "gain" in piece.key:
        value = jnp.ones(piece.shape, dtype)
    elif piece.key == "cell_bias" or (method == "glorot" and piece.key.startswith("b_")):
        value = jnp.zeros(piece.shape, dtype)
    elif method == "uniform" or len(piece.shape) == 1:
        bound = 1.0 / math.sqrt(net.units)
        value = jax.random.uniform(key, piece.shape, dtype, -bound, bound)
    elif piece.key == "w_hh":
        value = _orthogonal(key, piece.shape, gates, dtype)
    else:
        limit = math.sqrt(6.0 / (piece.shape[0] // (gates if piece.key == "w_ih" else 1) + piece.shape[1]))
        value = jax.random.uniform(key, piece.shape, dtype, -limit, limit)
    return value.astype(net.dtype)


def init(
    key: Any, cell: str = "lstm", *, input_size: int, hidden_size: int, num_layers: int = 1,
    bidirectional: bool = False, proj_size: int = 0, use_bias: bool = True,
    single_bias: bool = False, dtype: Any = "float32", method: str = "uniform", **options: Any,
) -> list[dict[str, Any]]:  # fmt: skip
    """Parameters of a network: a list of dicts, by layer, of each the forward direction first.

    Of each: w_ih [G*H, in], w_hh [G*H, O], b_ih [G*H], b_hh [G*H], with `proj_size` P also w_hr
    [P, H]; `in` is I at layer 0, else D*O, and O is P when projecting, else H. Gates: i f g o
    (lstm), r z n (gru). single_bias leaves out b_hh. Options such as use_peepholes add their own.
    method: 'uniform' draws all within 1/sqrt(H), as PyTorch; 'glorot' draws w_ih and w_hr by
    Glorot's rule, w_hh orthogonal gate by gate, biases 0, as Flax and Keras. Gains are 1.
    Raises ArgumentError for another cell, method or size.

    Examples
    --------
    >>> params = openrnn.jax.init(
    ...     jax.random.key(0), "gru", input_size=3, hidden_size=8, bidirectional=True)
    >>> len(params), params[0]["w_ih"].shape, params[0]["w_hh"].shape
    (2, (24, 3), (24, 8))
    """
    call = "openrnn.jax.init"
    if method not in ("uniform", "glorot"):
        raise _fail(call, f"method is {method!r}, expected 'uniform' or 'glorot'")
    layout = layout_of(call, cell, bidirectional, options)
    sizes = {
        "num_layers": num_layers, "num_units": hidden_size, "input_size": input_size,
        "num_proj": proj_size or None, "dtype": str(jnp.dtype(dtype)), "use_bias": use_bias,
        "single_bias": single_bias,
    }  # fmt: skip
    net = network_of(sizes, layout)
    params: list[dict[str, Any]] = [{} for _ in range(net.states)]
    keys = jax.random.split(key, len(net.pieces))
    for one, piece in zip(keys, net.pieces, strict=True):
        params[piece.at][piece.key] = _initial(one, piece, net, method, CELLS[layout.cell])
    return params
