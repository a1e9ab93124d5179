"""Parameters of Flax's cells (flax.linen), both ways. Needs no Flax."""

# JAX is not there where types are checked.
# mypy: disable-error-code="import-not-found"

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from openrnn.errors import ArgumentError
from openrnn.jax._network import check_cell

# Names of dense layers, in the order of the gates here.
_GATES = {"lstm": "ifgo", "gru": "rzn", "rnn": ""}


def _names(side: str, cell: str) -> list[str]:
    return [side + gate for gate in _GATES[cell]] if cell != "rnn" else [side]


def _layers(call: str, params: Any, names: list[str]) -> list[Any]:
    if isinstance(params, dict) and set(params) == {"params"}:
        params = params["params"]
    missing = [name for name in names if name not in params]
    if missing:
        raise ArgumentError(
            f"[{call}] params have {sorted(params)} and no {missing[0]!r}, expected those of one "
            "cell of flax.linen"
        )
    return [params[name] for name in names]


def from_flax(params: Any, cell: str = "lstm") -> dict[str, Any]:
    """One dict of `lstm`, `gru` or `rnn` from the params of a cell of flax.linen.

    cell: 'lstm' for OptimizedLSTMCell and LSTMCell, 'gru' for GRUCell, 'rnn' for SimpleCell. The
    LSTM's and the plain cell's one bias becomes b_ih, without a b_hh, so that it learns as in Flax.
    Raises ArgumentError for other names.

    Examples
    --------
    >>> ones = jax.numpy.ones
    >>> given = {"i": {"kernel": ones((3, 8)), "bias": ones(8)}, "h": {"kernel": ones((8, 8))}}
    >>> params = openrnn.jax.from_flax(given, "rnn")
    >>> {name: params[name].shape for name in sorted(params)}
    {'b_ih': (8,), 'w_hh': (8, 8), 'w_ih': (8, 3)}
    """
    call = "openrnn.jax.from_flax"
    check_cell(call, cell)
    sides = {side: _layers(call, params, _names(side, cell)) for side in "ih"}
    out = {
        f"w_{side}h": jnp.concatenate([layer["kernel"].T for layer in layers])
        for side, layers in sides.items()
    }
    biased = sides["i"] if cell != "lstm" else sides["h"]
    if "bias" in biased[0]:
        out["b_ih"] = jnp.concatenate([layer["bias"] for layer in biased])
    if cell == "gru" and "b_ih" in out:
        new = sides["h"][2]["bias"]
        out["b_hh"] = jnp.concatenate([jnp.zeros(2 * new.size, new.dtype), new])
    return out


def to_flax(params: dict[str, Any], cell: str = "lstm") -> dict[str, Any]:
    """The inverse, for a cell of the same name: two biases are added where Flax has one.

    Raises ArgumentError for parameters that those cells do not have.

    Examples
    --------
    >>> params = openrnn.jax.init(jax.random.key(0), "gru", input_size=3, hidden_size=8)
    >>> cell = openrnn.jax.to_flax(params[0], "gru")
    >>> sorted(cell), cell["ir"]["kernel"].shape
    (['hn', 'hr', 'hz', 'in', 'ir', 'iz'], (3, 8))
    """
    call = "openrnn.jax.to_flax"
    check_cell(call, cell)
    other = sorted(set(params) - {"w_ih", "w_hh", "b_ih", "b_hh"})
    if other:
        raise ArgumentError(f"[{call}] params have {other[0]!r}, which no cell of flax.linen has")
    count = len(_names("i", cell))
    out: dict[str, Any] = {}
    for side in "ih":
        parts = jnp.split(params[f"w_{side}h"], count)
        out |= {
            name: {"kernel": part.T} for name, part in zip(_names(side, cell), parts, strict=True)
        }
    if "b_ih" not in params and "b_hh" not in params:
        return out
    of_side = [params.get(name) for name in ("b_ih", "b_hh")]
    ih, hh = (jnp.zeros(params["w_ih"].shape[0], params["w_ih"].dtype) if b is None else b
              for b in of_side)  # fmt: skip
    biases = jnp.split(ih + hh, count)
    if cell == "gru":
        biases[2] = jnp.split(ih, 3)[2]
        out["hn"]["bias"] = jnp.split(hh, 3)[2]
    for name, bias in zip(_names("h" if cell == "lstm" else "i", cell), biases, strict=True):
        out[name]["bias"] = bias
    return out
