"""The recurrent modules of torch.nn on this engine.

`LSTM`, `GRU` and `RNN` take the place of torch.nn's; `convert(model)` puts them in a model that is
there already. PyTorch 2.4 and later.
"""

# PyTorch is not there where types are checked.
# mypy: disable-error-code="import-not-found"

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as _error:
    if _error.name != "torch":
        raise
    raise ModuleNotFoundError(
        "[openrnn.torch] PyTorch is not installed, expected version 2.4 or later: pip install torch",
        name="torch",
    ) from None

from openrnn.torch._cells import GRUCell, LSTMCell, RNNCell
from openrnn.torch._convert import convert, enabled, freeze, revert, unfreeze
from openrnn.torch._modules import GRU, LSTM, RNN

__all__ = [
    "GRU",
    "GRUCell",
    "LSTM",
    "LSTMCell",
    "RNN",
    "RNNCell",
    "convert",
    "enabled",
    "freeze",
    "revert",
    "unfreeze",
]
