"""The call under Keras's tensorflow backend: host functions with a gradient of their own.

They hold the interpreter lock around the engine and cannot be compiled by XLA or exported.
"""

# Keras is not there where types are checked.
# mypy: disable-error-code="import-not-found, import-untyped, misc, untyped-decorator"

from __future__ import annotations

from typing import Any

import tensorflow as tf

from openrnn.keras import _host
from openrnn.keras._cells import Place


def on_cpu(x: Any) -> bool:
    """Whether the engine can have the tensors of a call."""
    return not tf.config.list_physical_devices("GPU")


def _unpacked(there: Any, arrays: Any) -> list[Any]:
    """The arrays at their places; None where there is none."""
    given = iter(arrays)
    return [next(given) if each else None for each in there]


def _present(arrays: Any) -> list[Any]:
    return [each for each in arrays if each is not None]


def _host_call(function: Any, inputs: Any, dtypes: Any, shapes: Any) -> list[Any]:
    made = tf.numpy_function(function, inputs, dtypes)
    for tensor, shape in zip(made, shapes, strict=True):
        tensor.set_shape(shape)
    return list(made)


def _gradients(place: Place, there: Any, number: Any, mask: Any, grads: Any, tensors: Any) -> Any:
    """Gradients of the tensors; they have none themselves."""
    count = len(grads)

    def host(number: Any, *given: Any) -> Any:
        rest = given[count:]
        mask_array, rest = (rest[-1], rest[:-1]) if mask is not None else (None, rest)
        arrays = _unpacked(there, rest)
        saved = _host.taken(place, number, arrays, mask_array)
        wanted = [each is not None for each in arrays]
        given_grads = (*given[:count], *(None,) * (3 - count))
        return _present(_host.backward(saved, given_grads, _host.likes(arrays), wanted))

    @tf.custom_gradient
    def compute(*given: Any) -> Any:
        inputs = [number, *given, *([] if mask is None else [mask])]
        made = _host_call(host, inputs, [t.dtype for t in tensors], [t.shape for t in tensors])
        return made, lambda *_: _host.refuse_second()

    return compute(*grads, *tensors)


def run(place: Place, tensors: Any, mask: Any, training: bool) -> tuple[Any, Any, Any]:
    """y, hn, cn. What backward needs is kept in training; else a gradient computes it again."""
    there = [each is not None for each in tensors]
    # Not the variables themselves, which custom_gradient would ask for gradients of its own.
    tensors = [tf.convert_to_tensor(each) for each in _present(tensors)]
    x = tensors[0]
    states = 2 if place.lstm else 1
    outer = x.shape[:2] if place.flags[1] else x.shape[:1]
    shapes = [outer + [place.units]] + [x.shape[:1] + [place.units]] * states + [[]]

    def host(*given: Any) -> Any:
        mask_array, rest = (given[-1], given[:-1]) if mask is not None else (None, given)
        *made, saved = _host.forward(place, _unpacked(there, rest), mask_array, training)
        number = _host.NONE if saved is None else _host.keep(saved)
        return [*_present(made), number]

    @tf.custom_gradient
    def compute(*given: Any) -> Any:
        inputs = [*given, *([] if mask is None else [mask])]
        *made, number = _host_call(host, inputs, [x.dtype] * (states + 1) + [tf.int32], shapes)

        def gradient(*grads: Any) -> Any:
            return _gradients(place, there, number, mask, grads, given)

        return made, gradient

    y, hn, *rest = compute(*tensors)
    return y, hn, rest[0] if rest else None
