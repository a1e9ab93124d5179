"""keras.layers's own recurrent layers on the engine."""

# Keras is not there where types are checked.
# mypy: disable-error-code="import-not-found, import-untyped, misc"

from __future__ import annotations

from types import TracebackType
from typing import Any

import keras

from openrnn.keras._layers import on_engine, together

_CLASSES = (keras.layers.LSTM, keras.layers.GRU, keras.layers.SimpleRNN)
_installed = False


class Installation:
    """What `install()` returns; at the end of its `with` block the installation is undone."""

    def __init__(self, first: bool) -> None:
        self._first = first

    def __enter__(self) -> Installation:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._first:
            uninstall()


def install() -> Installation:
    """Makes keras.layers.LSTM, GRU, SimpleRNN and Bidirectional run on this engine, those that exist,
    too.

    What the engine does not compute takes Keras's own loop. To be called before models are compiled.
    A second call does nothing. `with install():` undoes it at the end, unless it was there before.

    Examples
    --------
    >>> with openrnn.keras.install():
    ...     y = keras.layers.LSTM(4)(np.ones((2, 5, 3), "float32"))
    >>> tuple(y.shape)
    (2, 4)
    """
    global _installed
    first = not _installed
    if first:
        for cls in _CLASSES:
            on_engine(cls)
        together(keras.layers.Bidirectional)
        _installed = True
    return Installation(first)


def _restore(cls: Any, name: str) -> None:
    own = getattr(cls, name)._openrnn_own
    if own is None:
        delattr(cls, name)
    else:
        setattr(cls, name, own)


def uninstall() -> None:
    """Undoes `install()`; does nothing if there is nothing to undo.

    Examples
    --------
    >>> own = keras.layers.LSTM.inner_loop
    >>> installation = openrnn.keras.install()
    >>> openrnn.keras.uninstall()
    >>> keras.layers.LSTM.inner_loop is own
    True
    """
    global _installed
    if not _installed:
        return
    for cls in _CLASSES:
        _restore(cls, "inner_loop")
        del cls.supports_jit
    _restore(keras.layers.Bidirectional, "call")
    _installed = False
