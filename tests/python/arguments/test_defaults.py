"""Defaults, seeds and configurations: what leaves a constructor as it came in."""

import inspect
import subprocess
import sys

import numpy as np
import openrnn
import pytest
from openrnn import cudnn_rnn, initializers, layers, regularizers
from openrnn.nn import rnn_cell

SHAPE = (300, 200)
# Of 60000 numbers the mean is within 5 / sqrt(60000) deviations, the deviation within 1.5 percent.
NEAR = 0.0204


def statistics(initializer):
    values = np.asarray(initializer(SHAPE)).astype("float64")
    return values.mean(), values.std(), values.min(), values.max()


def test_defaults_of_random_normal():
    mean, deviation, _, _ = statistics(initializers.random_normal())
    assert abs(mean) < NEAR * 0.05 and abs(deviation / 0.05 - 1) < 0.015
    mean, deviation, _, _ = statistics(initializers.random_normal(1.0, 0.5))
    assert abs(mean - 1.0) < NEAR * 0.5 and abs(deviation / 0.5 - 1) < 0.015
    made = initializers.random_normal(stddev=0.05)
    np.testing.assert_array_equal(made(SHAPE), initializers.random_normal()(SHAPE))


def test_defaults_of_random_uniform():
    mean, deviation, least, most = statistics(initializers.random_uniform())
    assert -0.05 <= least < -0.0499 and 0.0499 < most < 0.05
    assert abs(mean) < NEAR * 0.05 and abs(deviation * np.sqrt(12) / 0.1 - 1) < 0.015
    _, _, least, most = statistics(initializers.random_uniform(2.0, 3.0))
    assert 2.0 <= least < 2.001 and 2.999 < most < 3.0


def test_defaults_of_the_others():
    limit = np.sqrt(6 / sum(SHAPE))
    _, _, least, most = statistics(initializers.glorot_uniform())
    assert -limit <= least < -0.999 * limit and 0.999 * limit < most <= limit
    assert statistics(initializers.constant()) == (0.0,) * 4
    assert statistics(initializers.constant(3.0)) == (3.0, 0.0, 3.0, 3.0)
    assert statistics(initializers.zeros()) == (0.0,) * 4
    assert statistics(initializers.ones()) == (1.0, 0.0, 1.0, 1.0)


RANDOM = [initializers.glorot_uniform, initializers.random_uniform, initializers.random_normal]


@pytest.mark.parametrize("make", RANDOM)
def test_seeds_of_initializers(make):
    """Every seed of 64 bits has numbers of its own; a second tensor gets other ones."""
    drawn = {}
    for seed in (0, 1, -1, 7, -7, 2**63 - 1, -(2**63)):
        with openrnn.Graph().as_default():
            given = make(seed=seed)
            values = [openrnn.get_variable(name, (40,), initializer=given) for name in "ab"]
            again = openrnn.get_variable("c", (40,), initializer=make(seed=seed))
        np.testing.assert_array_equal(values[0], again)
        for one in values:
            drawn[one.numpy().tobytes()] = seed
    assert len(drawn) == 14
    for one, two in ((-1, 2**64 - 1), (-7, 2**64 - 7)):
        np.testing.assert_array_equal(make(seed=one)((40,)), make(seed=two)((40,)))


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: cudnn_rnn.CudnnLSTM(1, 4, seed=seed),
        lambda seed: cudnn_rnn.CudnnGRU(1, 4, seed=seed),
        lambda seed: layers.Dense(4, seed=seed),
    ],
)
def test_seeds_of_layers(make):
    values = {}
    for seed in (0, 1, -1, 5, -5, -(2**63)):
        made = []
        for _ in range(2):
            with openrnn.Graph().as_default():  # one name each: names take part in the seed
                made.append(make(seed))
                made[-1].build((None, None, 3))
        first, second = (layer.get_weights()[0] for layer in made)
        np.testing.assert_array_equal(first, second)
        values[first.tobytes()] = seed
    assert len(values) == 6


def test_seeds_of_dropout():
    x = np.ones((20, 10), "float32")
    masks = {}
    for seed in (1, -1, 9, -9):
        first, second = (layers.Dropout(0.5, seed=seed)(x, training=True) for _ in range(2))
        np.testing.assert_array_equal(first, second)
        masks[np.asarray(first).tobytes()] = seed
    assert len(masks) == 4


def test_seeds_of_the_dropout_operation():
    program = "import sys, openrnn; openrnn.set_random_seed(1)\n" \
        "print(openrnn.nn.dropout([1.0] * 200, rate=0.5, seed=int(sys.argv[1])).numpy().tolist())"

    def masks(seed):  # of another process: in one each call has its own
        return subprocess.run([sys.executable, "-c", program, str(seed)], check=True,
                              capture_output=True, text=True).stdout  # fmt: skip

    assert masks(3) == masks(3) != masks(4)


CELLS = [
    rnn_cell.BasicRNNCell, rnn_cell.BasicLSTMCell, rnn_cell.LSTMCell,
    rnn_cell.GRUCell, rnn_cell.LayerNormBasicLSTMCell, cudnn_rnn.CudnnCompatibleLSTMCell,
    cudnn_rnn.CudnnCompatibleGRUCell,
]  # fmt: skip


@pytest.mark.parametrize("cls", CELLS)
def test_a_configuration_says_whether_variables_are_reused(cls):
    with openrnn.Graph().as_default():
        first = cls(3, name="shared")
        first(np.ones((2, 4), "float32"), first.zero_state(2, "float32"))
        again = cls.from_config(cls(3, name="shared", reuse=True).get_config())
        again(np.ones((2, 4), "float32"), again.zero_state(2, "float32"))
        assert again.get_config()["reuse"] is True and first.get_config()["reuse"] is None
        pairs = zip(again.weights, first.weights, strict=True)
        assert all(one is other for one, other in pairs)


def test_sizes_of_an_input():
    assert openrnn.Input((5,)).shape == (None, 5)
    assert openrnn.Input((None, 5), batch_size=3).shape == (3, None, 5)
    assert openrnn.Input((), 7).shape == (7,)
    assert openrnn.Input(batch_shape=(2, None)).shape == (2, None)
    given = openrnn.Input((5,), 3, "given", "float64")
    assert given.dtype == "float64"
    model = openrnn.Model(given, given * 2.0)
    assert model(np.ones((3, 5))).shape == (3, 5)
    with pytest.raises(ValueError, match="3"):
        model(np.ones((4, 5)))
    for wrong in ({}, {"shape": (5,), "batch_shape": (2, 5)},
                  {"batch_shape": (2, 5), "batch_size": 2}):  # fmt: skip
        with pytest.raises(ValueError, match="Input"):
            openrnn.Input(**wrong)


RNN = {
    "num_layers": 2, "num_units": 3, "input_mode": "skip_input", "direction": "bidirectional",
    "dropout": 0.25, "seed": -7, "dtype": "float64",
    "kernel_initializer": initializers.random_normal(0.5, 0.25, -3),
    "bias_initializer": initializers.constant(0.5), "name": "given", "trainable": False,
    "device": "cpu",
}  # fmt: skip
CELL = {"num_units": 3, "kernel_initializer": initializers.ones(), "name": "given",
        "dtype": "float64", "device": "cpu"}  # fmt: skip
DENSE = {"units": 3, "activation": "tanh", "use_bias": False, "seed": -7, "dtype": "float64",
         "kernel_initializer": initializers.random_uniform(0.5, 0.75, -3), "name": "given",
         "trainable": False, "device": "cpu"}  # fmt: skip
EMBEDDING = {"input_dim": 5, "output_dim": 3, "embeddings_initializer": initializers.ones(),
             "name": "given", "dtype": "float64", "seed": -7, "trainable": False,
             "device": "cpu"}  # fmt: skip
INNER = cudnn_rnn.CudnnCompatibleGRUCell(3)
CONFIGS = [
    (cudnn_rnn.CudnnLSTM, {**RNN, "num_proj": 2, "input_mode": "linear_input"}),
    (cudnn_rnn.CudnnLSTM, {"num_layers": 1, "num_units": 3, "math": "bf16"}),
    (cudnn_rnn.CudnnGRU, RNN),
    (cudnn_rnn.CudnnRNNTanh, RNN),
    (cudnn_rnn.CudnnRNNRelu, {**RNN, "dtype": "float32", "weights_dtype": "int8"}),
    (layers.LSTM, {**RNN, "num_proj": 2, "input_mode": "linear_input", "use_peepholes": True}),
    (layers.GRU, {**RNN, "reset_after": False}),
    (layers.RNN, RNN),
    (layers.RNN, {**RNN, "activation": "softsign"}),
    (layers.RNN, {**RNN, "activation": "relu"}),
    (cudnn_rnn.CudnnCompatibleLSTMCell, {**CELL, "num_proj": 2}),
    (cudnn_rnn.CudnnCompatibleGRUCell, CELL),
    (rnn_cell.BasicRNNCell, {**CELL, "activation": "relu"}),
    (rnn_cell.BasicLSTMCell, {**CELL, "activation": "relu", "forget_bias": 0.5,
                              "state_is_tuple": False}),
    (rnn_cell.LSTMCell, {"num_units": 3, "initializer": initializers.ones(), "name": "given",
                         "dtype": "float64", "use_peepholes": True, "cell_clip": 0.5,
                         "num_proj": 2, "proj_clip": 0.25, "forget_bias": 0.0,
                         "activation": "sigmoid", "state_is_tuple": False, "device": "cpu"}),
    (rnn_cell.GRUCell, {**CELL, "activation": "linear",
                        "bias_initializer": initializers.constant(0.5)}),
    (rnn_cell.LayerNormBasicLSTMCell, {
        **CELL, "activation": "relu", "forget_bias": 0.5, "layer_norm": False, "norm_gain": 0.5,
        "norm_shift": 0.25, "dropout_keep_prob": 0.75, "dropout_prob_seed": -7}),
    (rnn_cell.MultiRNNCell, {"cells": [INNER]}),
    (rnn_cell.DropoutWrapper, {"cell": INNER, "input_keep_prob": 0.5, "output_keep_prob": 0.25,
                               "state_keep_prob": 0.75, "seed": -7}),
    (layers.Dense, DENSE),
    (layers.Embedding, EMBEDDING),
    (layers.Dropout, {"rate": 0.25, "seed": -7, "name": "given"}),
    (regularizers.l1, {"scale": 0.25}),
    (regularizers.l2, {"scale": 0.25}),
    (initializers.constant, {"value": 2.0}),
    (initializers.glorot_uniform, {"seed": -7}),
    (initializers.random_uniform, {"minval": 1.0, "maxval": 2.0, "seed": -7}),
    (initializers.random_normal, {"mean": 1.0, "stddev": 2.0, "seed": -7}),
]  # fmt: skip


@pytest.mark.parametrize("cls, given", CONFIGS, ids=[cls.__name__ for cls, _ in CONFIGS])
def test_every_argument_is_in_the_configuration(cls, given):
    """As it was given; and what is made of the configuration has the same one."""
    config = cls(**given).get_config()
    plain = {key: initializers.serialize(value) for key, value in given.items()}
    assert {key: config[key] for key in given} == plain
    parameters = set(inspect.signature(cls).parameters)
    assert set(config) <= parameters
    assert cls.from_config(config).get_config() == config


@pytest.mark.parametrize("cls", [cudnn_rnn.CudnnCompatibleLSTMCell, rnn_cell.LSTMCell])
def test_a_projected_cell_has_outputs_of_its_size(cls):
    cell = cls(5, num_proj=2)
    assert cell.output_size == 2 and tuple(cell.state_size) == (5, 2)
    output, state = cell(np.ones((3, 4), "float32"), cell.zero_state(3, "float32"))
    assert output.shape == (3, 2) and [each.shape for each in state] == [(3, 5), (3, 2)]


def test_what_is_made_of_a_configuration_does_the_same():
    x = np.ones((20, 10), "float32")
    first = layers.Dropout(0.5, seed=3)
    second = layers.Dropout.from_config(first.get_config())
    np.testing.assert_array_equal(first(x, training=True), second(x, training=True))
    for make in RANDOM:
        first = make(seed=3)
        np.testing.assert_array_equal(first((9,)), make.from_config(first.get_config())((9,)))


def test_weights_of_a_model_hold_canonical_tensors(tmp_path):
    """What TensorFlow's compatible cells read lies beside the variables."""
    given = openrnn.Input(batch_shape=(None, None, 3))
    layer = cudnn_rnn.CudnnLSTM(1, 4, name="lstm")
    output = layers.Dense(2, name="dense")(layer(given)[0])
    prefix = openrnn.Model(given, output).save_weights(str(tmp_path / "weights"))
    names = {name for name, _ in openrnn.train.list_variables(prefix)}
    cell = "rnn/multi_rnn_cell/cell_0/cudnn_compatible_lstm_cell/"
    assert {"dense/kernel", "dense/bias", f"{cell}kernel", f"{cell}bias"} <= {
        name.removeprefix("lstm/") for name in names
    }
    kernel = next(name for name in names if name.endswith(f"{cell}kernel"))
    assert openrnn.train.load_variable(prefix, kernel).shape == (7, 16)
