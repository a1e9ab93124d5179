"""Optimizers and losses have the bits written down in tests/golden: on every machine, instruction
set and number of threads. `python tests/python/test_golden.py` writes them down anew."""

import hashlib
import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import rnn_capi
import train_capi
from model.numpy_optimizers import Optimizer

FILE = Path(__file__).parents[1] / "golden" / "training_results.json"
DTYPES = ["float32", "float64", "float16"]
THREADS = [1, 2, 4]


def numbers(dtype, seed, *shape):
    """Multiples of 2^-9 in [-1, 1) from a multiplicative hash: no generator and no rounding that
    could differ between machines."""
    size = int(np.prod(shape))
    mixed = (np.arange(1, size + 1, dtype=np.uint64) + np.uint64(seed << 20)) * np.uint64(
        0x9E3779B97F4A7C15
    )
    return ((mixed >> np.uint64(54)).astype(float) / 512 - 1).reshape(shape).astype(dtype)


def digest(arrays):
    """One hash over names, shapes and bytes; -0 is not 0."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total.update(f"{name} {array.dtype.str} {array.shape} ".encode() + array.tobytes())
    return total.hexdigest()[:32]


def optimizer_steps(optimizer, dtype):
    start, gradients = numbers(dtype, 8, 1037), numbers(dtype, 9, 5, 1037)
    found = train_capi.optimize(optimizer, start, gradients)
    return {name: values for name, (_, values) in found.items()}


def losses(kind, dtype):
    x, labels = 8 * numbers(dtype, 10, 7, 67), np.array([3, 66, -1, 0, 12, 5, 9], np.int32)
    target = labels if kind == "softmax_cross_entropy" else numbers(dtype, 11, 7, 67)
    loss, gradient = train_capi.loss(kind, x, target)
    return {"loss": np.float64(loss), "gradient": gradient}


def cases():
    """{name: function that computes the arrays}"""
    found = {}
    for kind, dtype in product(
        ["GradientDescent", "Momentum", "Adagrad", "RMSProp", "Adam"], DTYPES
    ):
        optimizer = Optimizer(kind, learning_rate=0.01, momentum=0.5, epsilon=1e-4)
        found[f"optimizer {kind} {dtype}"] = lambda o=optimizer, t=dtype: optimizer_steps(o, t)
    for kind, dtype in product(["softmax_cross_entropy", "mean_squared_error"], DTYPES):
        found[f"loss {kind} {dtype}"] = lambda k=kind, t=dtype: losses(k, t)
    return found


CASES = cases()


@pytest.fixture
def threads_and_isa():
    """Puts back what the tests change."""
    isa = rnn_capi.cpu_isas()[-1]
    yield
    rnn_capi.force_cpu_isa(isa)
    rnn_capi.set_num_threads(2)


@pytest.mark.parametrize("name", CASES)
def test_bits(name, threads_and_isa):
    wanted = json.loads(FILE.read_text())[name]
    for isa, threads in product(rnn_capi.cpu_isas(), THREADS):
        rnn_capi.force_cpu_isa(isa)
        rnn_capi.set_num_threads(threads)
        assert digest(CASES[name]()) == wanted, f"{isa}, {threads} threads"


def test_no_case_is_forgotten():
    assert json.loads(FILE.read_text()).keys() == CASES.keys()


if __name__ == "__main__":
    FILE.write_text(
        json.dumps({name: digest(run()) for name, run in CASES.items()}, indent=1) + "\n"
    )
