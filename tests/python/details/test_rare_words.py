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


def built():
    layer = layers.GRU(4)
    layer.build((None, None, 3))
    return layer


def save_value(value):
    openrnn.save("no/folder", built(), "openrnn", values={"rate": value})


PLAIN = ", expected None, a bool, a number, a string or a list of one kind"
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
    "a large value": (lambda: save_value(2**64), openrnn.ArgumentError,
                      "[save] the value 'rate' has an integer beyond 64 bits, expected a smaller one"),
    "an object": (lambda: save_value(object()), TypeError, "[save] the value 'rate' is 'object'" + PLAIN),
    "a mixed list": (lambda: save_value([1, "a"]), TypeError, "[save] the value 'rate' is 'list'" + PLAIN),
    "an object to track": (lambda: openrnn.train.Checkpoint(a=3), TypeError,
                           "[Checkpoint] an object is 'int', expected a Variable, layer, optimizer, saveable, list or "
                           "dict"),
    "no epochs": (lambda: openrnn.train.plot_history(openrnn.train.History()), openrnn.ArgumentError,
                  "[plot_history] the history has no epochs, expected some"),
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


def test_tensors_show_shape_dtype_and_elements():
    assert repr(X) == str(X) == "<openrnn.Tensor shape=(2,), dtype=float32, numpy=\narray([1., 2.], dtype=float32)>"
    assert repr(openrnn.Input(batch_shape=(None, 3), dtype="float64")) == (
        "<openrnn.Tensor symbolic, shape=(None, 3), dtype=float64>")
    assert repr(openrnn.Variable([1.0, 2.5], name="shown")) == (
        "<openrnn.Variable 'shown' shape=(2,), dtype=float32, numpy=\narray([1. , 2.5], dtype=float32)>")


def test_networks_show_their_options(tmp_path):
    openrnn.save(tmp_path / "m.openrnn", {"encoder": built()})
    model = openrnn.load(tmp_path / "m.openrnn")
    options = "rnn_mode='gru', num_layers=1, num_units=4, input_size=3, input_mode='linear_input'"
    assert repr(model.network).startswith(f"<openrnn network 'encoder' {options}, ")
    assert repr(model) == f"<openrnn model of a file of OpenRNN: [{model.network!r}]>"
    assert repr(model.packed()).startswith(f"<openrnn.PackedModel {options}, ")
    assert repr(model.packed()).endswith(", math='float32', weights_dtype=None>")


def test_dropout_between_no_layers_is_warned_of():
    with pytest.warns(UserWarning) as caught:
        cudnn_rnn.CudnnGRU(1, 4, dropout=0.5)
    assert [str(one.message) for one in caught] == [
        "[CudnnGRU] dropout is 0.5 with num_layers=1, where it has no effect: it acts on the output of every layer but "
        "the last, expected num_layers of 2 or more"]
    assert caught[0].filename == __file__


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
