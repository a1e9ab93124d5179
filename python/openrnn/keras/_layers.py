"""Keras's recurrent layers with their loops on the engine."""

# Keras is not there where types are checked.
# mypy: disable-error-code="import-not-found, import-untyped, misc"

from __future__ import annotations

from functools import partial
from typing import Any

import keras
from keras.src import api_export

from openrnn.errors import ArgumentError
from openrnn.keras import _bidirectional, _loop


def jit_property() -> property:
    """supports_jit of a layer: what Keras set, and what the engine's call allows."""

    def get(layer: Any) -> bool:
        return bool(layer.__dict__.get("supports_jit", True)) and _loop.compiles(layer)

    def put(layer: Any, value: bool) -> None:
        layer.__dict__["supports_jit"] = value

    return property(get, put)


def on_engine(cls: Any) -> Any:
    """Gives a class of Keras's layers the engine's loop; a base class of ours would forbid
    `_take_over`, as Python assigns a `__class__` to objects of one layout alone."""
    own = cls.inner_loop

    def inner_loop(
        self: Any, sequences: Any, initial_state: Any, mask: Any, training: bool = False
    ) -> Any:
        """The loop over time: (last output, outputs, states)."""
        return _loop.run(self, partial(own, self), sequences, initial_state, mask, training)

    inner_loop._openrnn_own = cls.__dict__.get("inner_loop")  # type: ignore[attr-defined]
    cls.inner_loop = inner_loop
    cls.supports_jit = jit_property()
    return cls


def together(cls: Any) -> Any:
    """Gives Bidirectional, or ours, a call of the engine for both directions."""
    own = cls.call

    def call(
        self: Any,
        sequences: Any,
        initial_state: Any = None,
        mask: Any = None,
        training: Any = None,
    ) -> Any:
        return _bidirectional.run(
            self, partial(own, self), sequences, initial_state, mask, training
        )

    call._openrnn_own = cls.__dict__.get("call")  # type: ignore[attr-defined]
    cls.call = call
    return cls


@on_engine
class LSTM(keras.layers.LSTM):
    """keras.layers.LSTM on this engine: its arguments, weights, states and results.

    Files and configurations name it keras.layers.LSTM, so Keras alone reads them.

    Examples
    --------
    >>> lstm = openrnn.keras.LSTM(4, return_sequences=True)
    >>> tuple(lstm(np.ones((2, 5, 3), "float32")).shape)
    (2, 5, 4)
    """


@on_engine
class GRU(keras.layers.GRU):
    """keras.layers.GRU on this engine: its arguments, weights, states and results.

    Files and configurations name it keras.layers.GRU, so Keras alone reads them.

    Examples
    --------
    >>> gru = openrnn.keras.GRU(4, return_state=True)
    >>> [tuple(one.shape) for one in gru(np.ones((2, 5, 3), "float32"))]
    [(2, 4), (2, 4)]
    """


@on_engine
class SimpleRNN(keras.layers.SimpleRNN):
    """keras.layers.SimpleRNN on this engine: its arguments, weights, states and results.

    Files and configurations name it keras.layers.SimpleRNN, so Keras alone reads them.

    Examples
    --------
    >>> rnn = openrnn.keras.SimpleRNN(4, activation="relu")
    >>> y = keras.ops.convert_to_numpy(rnn(np.ones((2, 5, 3), "float32")))
    >>> y.shape, bool((y >= 0).all())
    ((2, 4), True)
    """


@together
class Bidirectional(keras.layers.Bidirectional):
    """keras.layers.Bidirectional whose layers run on this engine, be they given as ours or Keras's,
    in one call where they differ in nothing but weights and direction.

    Files and configurations name it keras.layers.Bidirectional, so Keras alone reads them.

    Examples
    --------
    >>> layer = openrnn.keras.Bidirectional(keras.layers.GRU(4))
    >>> tuple(layer(np.ones((2, 5, 3), "float32")).shape)
    (2, 8)
    >>> isinstance(layer.forward_layer, openrnn.keras.GRU)
    True
    """

    def __init__(self, layer: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(layer, *args, **kwargs)
        # Keras makes new ones from the configuration, which names its own classes.
        _take_over(self.forward_layer)
        _take_over(self.backward_layer)


OURS = {
    keras.layers.LSTM: LSTM,
    keras.layers.GRU: GRU,
    keras.layers.SimpleRNN: SimpleRNN,
    keras.layers.Bidirectional: Bidirectional,
}

for _theirs, _ours in OURS.items():
    # The name that stands in files.
    api_export.REGISTERED_OBJS_TO_NAMES[_ours] = f"keras.layers.{_theirs.__name__}"


def _take_over(layer: Any) -> None:
    ours = OURS.get(type(layer))
    if ours is None:
        return
    # Not by Keras's __setattr__, which tracks what is set.
    object.__setattr__(layer, "__class__", ours)


def convert(model: Any) -> Any:
    """Makes the recurrent layers in a model those of this package, in place; returns the model.

    Weights, names and configurations stay. To be called before `compile`: what a model has compiled
    is not changed.

    Examples
    --------
    >>> model = keras.Sequential([keras.Input((None, 3)), keras.layers.GRU(4)])
    >>> isinstance(openrnn.keras.convert(model).layers[0], openrnn.keras.GRU)
    True
    """
    if not isinstance(model, keras.layers.Layer):
        raise ArgumentError(
            f"[convert] a {type(model).__name__}, expected a model or a layer of Keras"
        )
    for layer in model._flatten_layers():
        _take_over(layer)
    return model
