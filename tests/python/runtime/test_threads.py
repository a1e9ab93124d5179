"""Where worker threads may run: a switch that changes no result."""
import os
import subprocess
import sys

import numpy as np
import openrnn
import pytest
from openrnn import cudnn_rnn


@pytest.fixture(autouse=True)
def as_it_was():
    threads = openrnn.get_num_threads()
    yield
    openrnn.set_num_threads(threads)
    openrnn.set_spread_threads(True)


def test_a_switch_that_changes_no_bit():
    x = np.random.default_rng(1).normal(size=(9, 5, 33)).astype("float32")
    layer = cudnn_rnn.CudnnGRU(2, 65, seed=3)
    openrnn.set_num_threads(2)
    outputs = []
    for spread in (True, False):
        openrnn.set_spread_threads(spread)
        assert openrnn.get_spread_threads() is spread
        outputs.append(layer(x)[0].numpy())
    np.testing.assert_array_equal(*outputs)


@pytest.mark.parametrize("value, spreads", [(None, True), ("1", True), ("0", False)])
def test_the_environment_says_what_it_is_at_first(value, spreads):
    environment = {name: text for name, text in os.environ.items()
                   if name != "OPENRNN_SPREAD_THREADS"}
    if value is not None:
        environment["OPENRNN_SPREAD_THREADS"] = value
    shown = subprocess.run(
        [sys.executable, "-c", "import openrnn; print(openrnn.get_spread_threads())"],
        env=environment, capture_output=True, text=True, check=True, timeout=120)
    assert shown.stdout == f"{spreads}\n"


@pytest.mark.parametrize("wrong", [None, "no", 0.0])
def test_it_is_true_or_false(wrong):
    with pytest.raises(TypeError, match=r"\[set_spread_threads\] spread is '\w+', expected"):
        openrnn.set_spread_threads(wrong)
    assert openrnn.get_spread_threads() is True
