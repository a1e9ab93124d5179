"""What is said and shown in rare places: words of errors, texts of objects, libraries beside ours."""

import ctypes

import numpy as np
import openrnn
import pytest
from openrnn import _core, cudnn_rnn, layers

X = openrnn.constant([1.0, 2.0])


def buffer_of(tensor, flags):
    get = ctypes.pythonapi.PyObject_GetBuffer
    get.argtypes = [ctypes.py_object, ctypes.c_void_p, ctypes.c_int]
    return get(tensor, (ctypes.c_size_t * 16)(), flags)


SAID = {
    "writable": (lambda: buffer_of(X, 1), BufferError,
                 "[Tensor] a writable buffer is asked for, a tensor's value never changes: expected a "
                 "read-only request"),
    "stream": (lambda: X.__dlpack__(stream="a"), TypeError,
               "[call] an argument is of a type that it cannot take, expected another"),
    "version": (lambda: X.__dlpack__(max_version=("a", 0)), TypeError,
                "[call] an argument is of a type that it cannot take, expected another"),
    "tape": (lambda: openrnn.GradientTape().watch(X), openrnn.StateError,
             "[GradientTape] it was never entered, expected a with statement"),
    "gradient": (lambda: openrnn.GradientTape().gradient(X, X), openrnn.StateError,
                 "[GradientTape] it was never entered, expected a with statement"),
    "layer": (lambda: _core.rnn_kernel(layers.Dense(2)), AttributeError,
              "[Layer] it is no recurrent layer, expected a CudnnLSTM"),
    "cell": (lambda: _core.cell_output_size(layers.Dense(2)), TypeError,
             "[Layer] it is no cell, expected an RNN cell"),
    "initializer": (lambda: _core.NativeInitializer("zipf"), openrnn.ArgumentError,
                    "[initializer] unknown kind 'zipf'"),
}  # fmt: skip


@pytest.mark.parametrize("name", SAID)
def test_what_is_said(name):
    call, kind, text = SAID[name]
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == text


def test_engines_show_what_they_run_on():
    found = {engine.name: engine for engine in openrnn.list_engines()}
    assert found["cpu"].available and found["cpu"].detail
    for name, engine in found.items():
        state = "available" if engine.available else "not available"
        assert repr(engine) == f"<openrnn engine '{name}', {state}: {engine.detail}>"


def test_saveables_show_what_they_save():
    layer = cudnn_rnn.CudnnGRU(1, 4, name="encoder")
    layer.build((None, None, 3))
    assert repr(layer.saveable) == (
        f"<openrnn saveable '{layer.saveable.name}' of 'encoder/opaque_kernel'>")
    assert layer.saveable.op is layer.kernel
    (first, *_) = layer.saveable.specs
    assert first.dtype == "float32" and first.tensor.dtype == "float32"


def test_series_of_pandas_leave_the_operator_to_a_tensor():
    pandas = pytest.importorskip("pandas")
    series = pandas.Series([1.0, 2.0])
    variable = openrnn.Variable([3.0, 4.0])
    for made in (X, variable):
        for found in (series * made, made * series, series + made - made):
            assert isinstance(found, openrnn.Tensor) and found.shape == (2,)
    np.testing.assert_array_equal(series * variable, [3.0, 8.0])
    with openrnn.GradientTape() as tape:
        loss = openrnn.reduce_sum(series * variable)
    np.testing.assert_array_equal(tape.gradient(loss, variable), [1.0, 2.0])
