"""Arguments of Python's own types take no other kind of value, and say which call and argument it was."""

import pathlib

import numpy as np
import openrnn
import pytest
from openrnn import cudnn_rnn, layers, nn, train
from openrnn.nn import rnn_cell


def pool():
    layer = cudnn_rnn.CudnnGRU(1, 2)
    layer.build((None, None, 3))
    made = openrnn.StreamPool(openrnn.PackedModel.from_layer(layer), streams=2)
    return made


def model():
    given = openrnn.Input(batch_shape=(None, 4))
    return openrnn.Model(given, layers.Dense(2)(given))


X = np.zeros((2, 3), "float32")
LISTS = {
    "[Run] columns": lambda value: train.Run("no", task="series", columns=value),
    "[step] ids": lambda value: pool().step(value, np.zeros((1, 1, 3))),
    "[Input] shape": lambda value: openrnn.Input(shape=value),
    "[split] num_or_size_splits": lambda value: openrnn.split(X, value, axis=1),
    "[slice] begin": lambda value: openrnn.slice(X, value, [1, 1]),
    "[slice] size": lambda value: openrnn.slice(X, [0, 0], value),
    "[cudnn_rnn_canonical_to_opaque_params] weights": lambda value: (
        cudnn_rnn.ops.cudnn_rnn_canonical_to_opaque_params("gru", 1, 2, 3, value, [])),
    "[minimize] var_list": lambda value: train.GradientDescentOptimizer(0.1).minimize(
        lambda: openrnn.Tensor(1.0), var_list=value),
    "[apply_gradients] grads_and_vars": lambda value: train.GradientDescentOptimizer(0.1).apply_gradients(value),
    "[apply_gradients] an element": lambda value: train.GradientDescentOptimizer(0.1).apply_gradients([value]),
}  # fmt: skip
NUMBERS = {
    "[dropout] keep_prob": lambda value: nn.dropout(X, keep_prob=value),
    "[DropoutWrapper] input_keep_prob": lambda value: rnn_cell.DropoutWrapper(
        rnn_cell.BasicRNNCell(2), input_keep_prob=value),
    "[DropoutWrapper] output_keep_prob": lambda value: rnn_cell.DropoutWrapper(
        rnn_cell.BasicRNNCell(2), output_keep_prob=value),
    "[DropoutWrapper] state_keep_prob": lambda value: rnn_cell.DropoutWrapper(
        rnn_cell.BasicRNNCell(2), state_keep_prob=value),
    "[LayerNormBasicLSTMCell] forget_bias": lambda value: rnn_cell.LayerNormBasicLSTMCell(2, forget_bias=value),
    "[LayerNormBasicLSTMCell] norm_gain": lambda value: rnn_cell.LayerNormBasicLSTMCell(2, norm_gain=value),
    "[l2] scale": openrnn.regularizers.l2,
    "[load] forget_bias": lambda value: openrnn.load("no", forget_bias=value),
    "[minimize] clip_norm": lambda value: train.GradientDescentOptimizer(0.1).minimize(
        lambda: openrnn.Tensor(1.0), var_list=[], clip_norm=value),
}  # fmt: skip
INTEGERS = {
    "[Run] a column": lambda value: train.Run("no", task="series", columns=[value]),
    "[zero_state] batch_size": lambda value: rnn_cell.BasicRNNCell(2).zero_state(value, "float32"),
    "[get_layer] index": lambda value: model().get_layer(index=value),
    "[split] axis": lambda value: openrnn.split(X, [1, 1], axis=value),
    "[slice] an element of begin": lambda value: openrnn.slice(X, [0, value], [1, 1]),
    "[slice] an element of size": lambda value: openrnn.slice(X, [0, 0], [1, value]),
}
PATHS = {
    "[Run] out": train.Run,
    "[Run] input": lambda value: train.Run("no", input=value),
    "[Run] valid": lambda value: train.Run("no", valid=value),
    "[get_checkpoint_state] checkpoint_dir": train.get_checkpoint_state,
    "[latest_checkpoint] checkpoint_dir": train.latest_checkpoint,
    "[save] save_path": lambda value: train.Saver([openrnn.Variable(1.0)]).save(value),
    "[restore] save_path": lambda value: train.Saver([openrnn.Variable(1.0)]).restore(value),
    "[write] file_prefix": lambda value: train.Checkpoint().write(value),
    "[save] file_prefix": lambda value: train.Checkpoint().save(value),
    "[read] save_path": lambda value: train.Checkpoint().read(value),
    "[CheckpointManager] directory": lambda value: train.CheckpointManager(train.Checkpoint(), value, 1),
}


def refused(kind, call, value, wanted):
    with pytest.raises(TypeError) as raised:
        kind[call](value)
    said, given = str(raised.value), type(value).__name__
    assert said.startswith(f"{call} is '{given}', expected {wanted}"), said


@pytest.mark.parametrize("value", ["ab", b"ab", {0: 1, 1: 1}, 2.5], ids=repr)
@pytest.mark.parametrize("call", LISTS)
def test_lists(call, value):
    refused(LISTS, call, value, "a list of ")


@pytest.mark.parametrize("value", ["0.5", b"0.5", bytearray(b"0.5"), [0.5, 0.5], {}], ids=repr)
@pytest.mark.parametrize("call", NUMBERS)
def test_numbers(call, value):
    refused(NUMBERS, call, value, "a number")


@pytest.mark.parametrize("value", [1.0, b"1", np.float32(1)], ids=repr)
@pytest.mark.parametrize("call", INTEGERS)
def test_integers(call, value):
    refused(INTEGERS, call, value, "an integer")


@pytest.mark.parametrize("value", [3, b"no", ["no"]], ids=repr)
@pytest.mark.parametrize("call", PATHS)
def test_paths(call, value):
    refused(PATHS, call, value, "a path")


def test_what_each_kind_takes(tmp_path):
    assert [part.shape for part in openrnn.split(X, (1, 2), axis=np.int64(1))] == [(2, 1), (2, 2)]
    assert openrnn.slice(X, range(2), np.array([1, 1])).shape == (1, 1)
    assert layers.Dropout(np.float32(0.5)).rate == 0.5 and openrnn.regularizers.l2(np.array(0.5)).scale == 0.5
    assert rnn_cell.BasicRNNCell(2).zero_state(np.int32(3), "float32").shape == (3, 2)
    streams = pool()
    assert streams.step(iter([streams.join()]), np.zeros((1, 1, 3))).shape == (1, 1, 2)
    assert train.latest_checkpoint(pathlib.Path(tmp_path)) is None
