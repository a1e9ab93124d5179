"""Copies, pickles and configurations of every class with every option: they compute the same."""

import copy
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
