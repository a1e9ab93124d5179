"""The recurrent layers of Keras 3 on this engine, under its torch, tensorflow, jax and numpy backends.

`LSTM`, `GRU`, `SimpleRNN` and `Bidirectional` take the place of keras.layers's; `convert(model)` puts
them in a model that is there already, and `install()` makes keras.layers's own use the engine.
"""

# Keras is not there where types are checked.
# mypy: disable-error-code="import-not-found, import-untyped, misc"

try:
    import keras as _keras
except ModuleNotFoundError as _error:
    if _error.name != "keras":
        raise
    raise ModuleNotFoundError(
        "[openrnn.keras] Keras is not installed, expected version 3.5 or later: pip install keras",
        name="keras",
    ) from None

if not hasattr(_keras, "ops"):
    raise ModuleNotFoundError(
        f"[openrnn.keras] Keras {_keras.__version__} is installed, expected version 3.5 or later",
        name="keras",
    )

from openrnn.keras._install import install, uninstall
from openrnn.keras._layers import GRU, LSTM, Bidirectional, SimpleRNN, convert
from openrnn.keras._loop import why_not

__all__ = [
    "GRU",
    "LSTM",
    "Bidirectional",
    "SimpleRNN",
    "convert",
    "install",
    "uninstall",
    "why_not",
]
