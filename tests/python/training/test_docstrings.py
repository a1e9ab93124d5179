"""The examples of docstrings run, and say what they print."""

import doctest
import importlib

import numpy as np
import openrnn
import pytest

MODULES = ["openrnn._graph", "openrnn._model", "openrnn._optimizers", "openrnn.cudnn_rnn._layers",
           "openrnn.layers._simple", "openrnn._fit_callbacks", "openrnn._fit_loop",
           "openrnn._fit_model_file", "openrnn._fit_report", "openrnn._fit_schedules"]  # fmt: skip
WITH_EXAMPLES = ["GradientTape", "Model", "load_model", "train.Adam", "train.AdamOptimizer", "train.AdamW",
                 "train.Callback", "train.ConstantSchedule", "train.CosineDecay", "train.EarlyStopping",
                 "train.ExponentialDecay", "train.PiecewiseConstant", "train.WarmUp", "train.evaluate",
                 "train.fit", "train.plot_history", "cudnn_rnn.CudnnLSTM", "cudnn_rnn.CudnnGRU",
                 "layers.Dense"]  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    failed, tried = doctest.testmod(module, extraglobs={"openrnn": openrnn, "np": np})
    assert failed == 0 and tried > 0


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_it_has_an_example(name):
    found = openrnn
    for part in name.split("."):
        found = getattr(found, part)
    assert ">>> " in found.__doc__, name
