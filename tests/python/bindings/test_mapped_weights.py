"""Weights to and from the arrays of other frameworks: every dtype keeps its bits."""

import numpy as np
import openrnn
import pytest

MODES = {
    "lstm": openrnn.cudnn_rnn.ops.CudnnLSTM,
    "gru": openrnn.cudnn_rnn.ops.CudnnGRU,
    "rnn_tanh": openrnn.cudnn_rnn.ops.CudnnRNNTanh,
    "rnn_relu": openrnn.cudnn_rnn.ops.CudnnRNNRelu,
}
WAYS = {
    "torch": (openrnn.torch_from_canonical, openrnn.canonical_from_torch),
    "keras": (openrnn.keras_from_canonical, openrnn.canonical_from_keras),
    "onnx": (openrnn.onnx_from_canonical, openrnn.canonical_from_onnx),
}
SIZES = {"num_layers": 2, "num_units": 3, "input_size": 2, "direction": "bidirectional"}


def canonical(mode, dtype, way):
    """(weights, biases, options) of numbers that need all digits of their dtype."""
    options = {**SIZES, "dtype": dtype}
    if way == "keras":
        options["single_bias"] = mode != "gru"
    op = MODES[mode](**options)
    params = np.random.default_rng(5).uniform(-1, 1, op.params_size()).astype(dtype)
    return *op.params_to_canonical(params), options


def arrays_of(made):
    return list(made.values()) if isinstance(made, dict) else list(made)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("given", ["own", "float64", "lists"])
def test_weights_there_and_back(way, mode, dtype, given):
    there, back = WAYS[way]
    weights, biases, options = canonical(mode, dtype, way)
    kind = {
        "own": np.asarray,
        "float64": lambda one: np.asarray(one).astype("float64"),
        "lists": lambda one: np.asarray(one).tolist(),
    }[given]
    made = there([kind(one) for one in weights], [kind(one) for one in biases], mode, **options)
    arrays = arrays_of(made)
    assert {str(one.dtype) for one in arrays} == {dtype}
    numbers = np.sort(np.concatenate([np.ravel(one) for one in [*weights, *biases]]))
    np.testing.assert_array_equal(np.sort(np.concatenate([one.ravel() for one in arrays])), numbers)
    again = (
        {name: kind(one) for name, one in made.items()}
        if way == "torch"
        else [kind(one) for one in made]
    )
    found = back(again, mode, **options)
    for before, after in zip((weights, biases), found, strict=True):
        assert {str(one.dtype) for one in after} == {dtype} and len(before) == len(after)
        for a, b in zip(before, after, strict=True):
            np.testing.assert_array_equal(a, b)


CALLS = {
    "torch_from_canonical": lambda w, b, bad: openrnn.torch_from_canonical(w, b, "gru", **bad),
    "keras_from_canonical": lambda w, b, bad: openrnn.keras_from_canonical(w, b, "gru", **bad),
    "onnx_from_canonical": lambda w, b, bad: openrnn.onnx_from_canonical(w, b, "gru", **bad),
    "canonical_from_keras": lambda w, b, bad: openrnn.canonical_from_keras(w, "gru", **bad),
    "canonical_from_onnx": lambda w, b, bad: openrnn.canonical_from_onnx(w, "gru", **bad),
}


@pytest.mark.parametrize("call", CALLS)
def test_errors_name_the_call(call):
    weights, biases, options = canonical("gru", "float32", "torch")
    weights, biases = [np.asarray(one) for one in weights], [np.asarray(one) for one in biases]
    with pytest.raises(TypeError) as raised:
        CALLS[call](weights, biases, {**options, "num_units": "three"})
    assert str(raised.value) == f"[{call}] num_units is 'str', expected an integer"
    with pytest.raises(TypeError) as raised:
        CALLS[call](["text", *weights[1:]], biases, options)
    assert str(raised.value) == f"[{call}] an array of <U4, expected float32"
