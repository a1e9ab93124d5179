"""Copies, pickles and configurations of every class with every option: they compute the same."""

import copy
import json
import pickle

import numpy as np
import openrnn
import pytest
from openrnn.nn import rnn_cell
from test_defaults import CONFIGS

X = np.random.default_rng(3).normal(size=(4, 2, 3))
MADE = [(cls, given) for cls, given in CONFIGS if issubclass(cls, openrnn.layers.Layer)]
WAYS = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda one: pickle.loads(pickle.dumps(one)),
}


def made(row):
    """Of its options; an initializer draws other numbers each time, so each layer has its own."""
    cls, given = MADE[row]
    if cls in (rnn_cell.MultiRNNCell, rnn_cell.DropoutWrapper):
        inner = openrnn.cudnn_rnn.CudnnCompatibleGRUCell(3)
        return cls(**{**given, **({"cells": [inner]} if "cells" in given else {"cell": inner})})
    with openrnn.Graph().as_default():
        config = cls(**given).get_config()
    return cls.from_config(config)


def results(one):
    """What it gives for some input, and what is random twice."""
    if isinstance(one, rnn_cell.RNNCell):
        x = X[0].astype(one.dtype)
        state = one.zero_state(2, one.dtype)
        output, state = one(x, state)
        again, state = one(x, state)
        return [np.asarray(each) for each in (output, again)]
    if isinstance(one, openrnn.layers.Embedding):
        return [np.asarray(one([[0, 1], [2, 4]]))]
    if isinstance(one, openrnn.layers.Dropout):
        return [np.asarray(one(X, training=True)) for _ in range(2)]
    if isinstance(one, openrnn.layers.Dense):
        return [np.asarray(one(X.astype(one.dtype)))]
    x = X.astype(one.dtype)
    exact = one.math == "float32" and one.weights_dtype is None
    return [np.asarray(one(x, training=training)[0]) for training in ([True] if exact else []) + [False]]


@pytest.mark.parametrize("built", [False, True])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("row", range(len(MADE)), ids=[cls.__name__ for cls, _ in MADE])
def test_a_copy_has_every_option(row, way, built):
    one = made(row)
    if built:
        results(one)
    other = WAYS[way](one)
    assert type(other) is type(one)
    mine, others = one.get_config(), other.get_config()
    if way != "copy":  # its name is the next free one
        mine.pop("name", None), others.pop("name", None)
        cells = [config.pop(key, None) for config in (mine, others) for key in ("cell", "cells")]
        assert sum(cell is None for cell in cells) in (2, 4)
    else:
        for config in (mine, others):
            config.pop("cell", None), config.pop("cells", None)
    assert others == mine
    assert other.trainable == one.trainable and other.device == one.device
    assert [v.trainable for v in other.weights] == [v.trainable for v in one.weights]
    if built:
        for found, wanted in zip(results(other), results(one), strict=True):
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("row", range(len(MADE)), ids=[cls.__name__ for cls, _ in MADE])
def test_what_a_configuration_makes_computes_the_same(row):
    one = made(row)
    wanted = results(one)
    if isinstance(one, (rnn_cell.DropoutWrapper, rnn_cell.MultiRNNCell)):
        return  # around the same cell
    with openrnn.Graph().as_default():  # names take part in seeds
        other = type(one).from_config(one.get_config())
        for found, value in zip(results(other), wanted, strict=True):
            np.testing.assert_array_equal(found, value)


NUMBERS = {
    openrnn.layers.Dense: {"units": np.int64(3), "seed": np.int32(1)},
    openrnn.layers.Embedding: {"input_dim": np.int64(4), "output_dim": np.int32(3)},
    openrnn.layers.Dropout: {"rate": np.float32(0.5), "seed": np.int64(2)},
    openrnn.cudnn_rnn.CudnnLSTM: {"num_layers": np.int64(2), "num_units": np.int64(3), "dropout": np.float64(0.5)},
    openrnn.cudnn_rnn.CudnnCompatibleGRUCell: {"num_units": np.int64(3)},
    rnn_cell.BasicLSTMCell: {"num_units": np.int16(3), "forget_bias": np.float32(0.5)},
    rnn_cell.LSTMCell: {"num_units": np.uint8(3), "cell_clip": np.float64(2.5), "state_is_tuple": np.True_},
    rnn_cell.GRUCell: {"num_units": np.int64(3)},
}


@pytest.mark.parametrize("cls", NUMBERS, ids=lambda cls: cls.__name__)
def test_configurations_of_numpy_s_numbers_are_plain(cls):
    one = cls(**NUMBERS[cls])
    config = json.loads(json.dumps(one.get_config()))
    for name, given in NUMBERS[cls].items():
        assert config[name] == given.item() and type(config[name]) is type(given.item()), name
    assert cls.from_config(config).get_config() == one.get_config()


@pytest.mark.parametrize("cls", [openrnn.layers.Layer, rnn_cell.RNNCell])
def test_trainable_is_a_bool(cls):
    with pytest.raises(TypeError, match="trainable is 'str', expected"):
        cls(trainable="no")
    assert cls(trainable=False).trainable is False
