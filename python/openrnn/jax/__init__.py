"""Recurrent networks on this engine as functions of JAX.

`lstm`, `gru` and `rnn` compute whole networks on a processor, under jit, vmap, scan, checkpoint and
grad, second derivatives included. `init` makes parameters, `pack` packs them once for inference,
`from_flax` and `to_flax` exchange them with cells of Flax. JAX 0.4.38 and later.
"""

# JAX is not there where types are checked.
# mypy: disable-error-code="import-not-found"

try:
    import jax as _jax
except ModuleNotFoundError as _error:
    if _error.name != "jax":
        raise
    raise ModuleNotFoundError(
        "[openrnn.jax] JAX is not installed, expected version 0.4.38 or later: pip install jax",
        name="jax",
    ) from None

if _jax.__version_info__ < (0, 4, 38):
    raise ModuleNotFoundError(
        f"[openrnn.jax] JAX {_jax.__version__} is installed, expected version 0.4.38 or later",
        name="jax",
    )

from openrnn.jax._calls import gru, lstm, rnn
from openrnn.jax._flax import from_flax, to_flax
from openrnn.jax._packed import Packed, pack
from openrnn.jax._params import flatten, init, unflatten

__all__ = [
    "Packed",
    "flatten",
    "from_flax",
    "gru",
    "init",
    "lstm",
    "pack",
    "rnn",
    "to_flax",
    "unflatten",
]
