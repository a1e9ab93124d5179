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


def _host_call(function: Any, inputs: Any, dtypes: Any, shapes: Any) -> list[Any]:
    made = tf.numpy_function(function, inputs, dtypes)
    for tensor, shape in zip(made, shapes, strict=True):
        tensor.set_shape(shape)
    return list(made)


def _gradients(place: Place, there: Any, number: Any, mask: Any, grads: Any, tensors: Any) -> Any:
    """Gradients of the tensors; they have none themselves."""
    count = len(grads)
    outputs = [each is not None for each in place.outputs(True, True)]

    def host(number: Any, *given: Any) -> Any:
        rest = given[count:]
        mask_array, rest = (rest[-1], rest[:-1]) if mask is not None else (None, rest)
        arrays = _host.unpacked(there, rest)
        saved = _host.taken(place, number, arrays, mask_array)
        wanted = [each is not None for each in arrays]
        given_grads = _host.unpacked(outputs, given[:count])
        return _host.present(_host.backward(saved, given_grads, _host.likes(arrays), wanted))

    @tf.custom_gradient
    def compute(*given: Any) -> Any:
        inputs = [number, *given, *([] if mask is None else [mask])]
        made = _host_call(host, inputs, [t.dtype for t in tensors], [t.shape for t in tensors])
        return made, lambda *_: _host.refuse_second()

    return compute(*grads, *tensors)


def run(place: Place, tensors: Any, mask: Any, training: bool) -> Any:
    """The outputs. What backward needs is kept in training; else a gradient computes it again."""
    there = [each is not None for each in tensors]
    # Not the variables themselves, which custom_gradient would ask for gradients of its own.
    tensors = [tf.convert_to_tensor(each) for each in _host.present(tensors)]
    x = tensors[0]
    outer = x.shape[:2] if place.flags[1] else x.shape[:1]
    outputs = place.outputs(outer + [place.directions * place.units], x.shape[:1] + [place.units])
    shapes = [*_host.present(outputs), []]

    def host(*given: Any) -> Any:
        mask_array, rest = (given[-1], given[:-1]) if mask is not None else (None, given)
        made, saved = _host.forward(place, _host.unpacked(there, rest), mask_array, training)
        number = _host.NONE if saved is None else _host.keep(saved)
        return [*_host.present(made), number]

    @tf.custom_gradient
    def compute(*given: Any) -> Any:
        inputs = [*given, *([] if mask is None else [mask])]
        dtypes = [x.dtype] * (len(shapes) - 1) + [tf.int32]
        *made, number = _host_call(host, inputs, dtypes, shapes)

        def gradient(*grads: Any) -> Any:
            return _gradients(place, there, number, mask, grads, given)

        return made, gradient

    return _host.unpacked([each is not None for each in outputs], compute(*tensors))
