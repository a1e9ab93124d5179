"""lstm, gru and rnn: checks, states and layouts around one operation."""

# JAX is not there where types are checked.
# mypy: disable-error-code="import-not-found, untyped-decorator"

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp

from openrnn.errors import ArgumentError
from openrnn.jax._network import Network
from openrnn.jax._operation import Call, operation
from openrnn.jax._packed import Packed
from openrnn.jax._params import as_arrays, joined, layout_of, network_of_params, shape_text


@functools.partial(jax.jit, static_argnums=0)
def _run(call: Call, x: Any, states: Any, params: Any, lengths: Any, key: Any, token: Any) -> Any:
    net = call.net
    flat = joined(net, params) if isinstance(params, list) else params
    h0, c0 = (_entering(call, state) for state in states)
    if key is None:
        seed = jnp.zeros(2, jnp.uint32)
    else:
        seed = jax.random.bits(key, (2,), jnp.uint32)
    y, hn, cn = operation(call)(x, h0, c0, flat, lengths, seed, token)
    hn, cn = (_entering(call, state) for state in (hn, cn))
    return (y, hn, cn) if net.has_cell else (y, hn)


def _entering(call: Call, state: Any) -> Any:
    """[L*D, B, .] as the engine has it, and back."""
    return jnp.swapaxes(state, 0, 1) if call.batch_major and state.ndim == 3 else state


def _check_array(call: str, name: str, value: Any, net: Network, shape: Any) -> Any:
    value = jnp.asarray(value)
    if tuple(value.shape) != tuple(shape) or str(value.dtype) != net.dtype:
        raise ArgumentError(
            f"[{call}] {name} is {shape_text(value)}, expected {net.dtype} {list(shape)}"
        )
    return value


def _state(call: str, name: str, value: Any, net: Network, rows: int, width: int) -> Any:
    shape = (net.states, rows, width)
    if value is None:
        return jnp.zeros(shape, net.dtype)
    return _check_array(call, name, value, net, shape)


def _lengths(call: str, value: Any, rows: int) -> Any:
    if value is None:
        return jnp.zeros(0, jnp.int32)
    value = jnp.asarray(value)
    if value.shape != (rows,) or not jnp.issubdtype(value.dtype, jnp.integer):
        raise ArgumentError(
            f"[{call}] sequence_lengths is {shape_text(value)}, expected integers [{rows}]"
        )
    return value.astype(jnp.int32)


def _network(call: str, params: Any, cell: str, bidirectional: bool, options: Any) -> Any:
    """(network, parameters, token) of params or of what pack made of them."""
    if not isinstance(params, Packed):
        params = as_arrays(params)
        layout = layout_of(call, cell, bidirectional, options)
        return network_of_params(call, params, layout), params, jnp.zeros(2, jnp.uint32)
    given = [name for name, value in options.items() if value not in (None, False, 0.0)]
    given += ["bidirectional"] * bool(bidirectional)
    if given:
        raise ArgumentError(
            f"[{call}] {given[0]} is given beside packed params, expected it in openrnn.jax.pack"
        )
    return params.parts(call, cell)


def _compute(
    call: str, cell: str, x: Any, h0: Any, c0: Any, params: Any, *, bidirectional: bool,
    time_major: bool, sequence_lengths: Any, key: Any, options: dict[str, Any],
) -> Any:  # fmt: skip
    net, given, token = _network(call, params, cell, bidirectional, options)
    x = jnp.asarray(x)
    letters = "[T, B, I]" if time_major else "[B, T, I]"
    if x.ndim != 3 or x.shape[2] != net.input_size or str(x.dtype) != net.dtype:
        raise ArgumentError(
            f"[{call}] x is {shape_text(x)}, expected {net.dtype} {letters} with I = "
            f"{net.input_size}"
        )
    rows = x.shape[1 if time_major else 0]
    h0 = _state(call, "h0", h0, net, rows, net.hidden)
    if net.has_cell:
        c0 = _state(call, "c0", c0, net, rows, net.units)
    elif c0 is None:
        c0 = jnp.zeros(0, net.dtype)
    else:
        raise ArgumentError(f"[{call}] c0 is given, expected None: only a projected gru has one")
    lengths = _lengths(call, sequence_lengths, rows)
    training = key is not None and net.draws
    where = Call(net, not time_major, training)
    return _run(where, x, (h0, c0), given, lengths, key if training else None, token)


def lstm(
    x: Any, h0: Any, c0: Any, params: Any, *, bidirectional: bool = False, time_major: bool = False,
    sequence_lengths: Any = None, dropout: float = 0.0, key: Any = None, **options: Any,
) -> Any:  # fmt: skip
    """A network of LSTM layers. Returns (y, hn, cn).

    Letters: B batch, T time, I input size, L layers, D directions, H units, O = P when projecting
    (w_hr), else H. x [B, T, I], y [B, T, D*O]; with time_major [T, B, .]. h0, hn [L*D, B, O] and c0,
    cn [L*D, B, H] in either case; None is zeros. params: the list of dicts of `init`, gates i f g o,
    or what `pack` made of it. x, states and params have one dtype: float32, float64, bfloat16 or
    float16.
    sequence_lengths: [B] integers in 0..T; padded y is 0 and padded x is never read. dropout: rate
    between layers; masks are drawn from `key`, a key of jax.random, the same for the same key;
    without a key nothing is dropped. options: those of docs/options.md, such as use_peepholes,
    recurrent_dropout, cell_clip, math.
    Raises ArgumentError for shapes and dtypes that do not fit, UnsupportedError on a GPU; a length
    outside 0..T is the runtime's error when the call runs.

    Examples
    --------
    >>> params = openrnn.jax.init(jax.random.key(0), input_size=3, hidden_size=8)
    >>> x = jax.numpy.ones((2, 5, 3), "float32")
    >>> y, hn, cn = openrnn.jax.lstm(x, None, None, params)
    >>> y.shape, hn.shape, cn.shape
    ((2, 5, 8), (1, 2, 8), (1, 2, 8))
    """
    return _compute(
        "openrnn.jax.lstm", "lstm", x, h0, c0, params, bidirectional=bidirectional,
        time_major=time_major, sequence_lengths=sequence_lengths, key=key,
        options={"dropout": dropout, **options},
    )  # fmt: skip


def gru(
    x: Any, h0: Any, params: Any, *, c0: Any = None, bidirectional: bool = False,
    time_major: bool = False, sequence_lengths: Any = None, dropout: float = 0.0, key: Any = None,
    reset_after: bool | None = None, **options: Any,
) -> Any:  # fmt: skip
    """A network of GRU layers. Returns (y, hn); with a projection (y, hn, cn).

    Arguments as of lstm; gates r z n. reset_after: True (the default, as cuDNN, PyTorch and Flax)
    applies the reset gate to W_hn h + b_hn, False to h before the product. c0, cn [L*D, B, H] are
    what a projected GRU (w_hr) interpolates.

    Examples
    --------
    >>> params = openrnn.jax.init(jax.random.key(0), "gru", input_size=3, hidden_size=8)
    >>> x = jax.numpy.ones((2, 5, 3), "float32")
    >>> y, hn = jax.jit(openrnn.jax.gru)(x, None, params)
    >>> y.shape, hn.shape
    ((2, 5, 8), (1, 2, 8))
    """
    if reset_after is not None:
        options = {**options, "reset_after": reset_after}
    return _compute(
        "openrnn.jax.gru", "gru", x, h0, c0, params, bidirectional=bidirectional,
        time_major=time_major, sequence_lengths=sequence_lengths, key=key,
        options={"dropout": dropout, **options},
    )  # fmt: skip


def rnn(
    x: Any, h0: Any, params: Any, *, bidirectional: bool = False, time_major: bool = False,
    sequence_lengths: Any = None, dropout: float = 0.0, key: Any = None,
    activation: str | None = None, **options: Any,
) -> Any:  # fmt: skip
    """A network of plain layers, h = f(W_ih x + b_ih + W_hh h + b_hh). Returns (y, hn).

    Arguments as of lstm. activation: f, by default 'tanh'; 'relu', or one of docs/options.md.

    Examples
    --------
    >>> params = openrnn.jax.init(jax.random.key(0), "rnn", input_size=3, hidden_size=8)
    >>> x = jax.numpy.ones((2, 5, 3), "float32")
    >>> y, hn = openrnn.jax.rnn(x, None, params, activation="relu")
    >>> y.shape, bool((y >= 0).all())
    ((2, 5, 8), True)
    """
    if activation is not None:
        options = {**options, "activation": activation}
    return _compute(
        "openrnn.jax.rnn", "rnn", x, h0, None, params, bidirectional=bidirectional,
        time_major=time_major, sequence_lengths=sequence_lengths, key=key,
        options={"dropout": dropout, **options},
    )  # fmt: skip
