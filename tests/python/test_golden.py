"""Results have the bits written down in tests/golden: on every machine, instruction set and number
of threads. `python tests/python/test_golden.py` writes them down anew."""

import hashlib
import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import rnn_capi
import train_capi
from model import numpy_layout
from model.numpy_layout import Spec
from model.numpy_optimizers import Optimizer
from model.rnn_data import Problem

FILE = Path(__file__).parents[1] / "golden" / "cpu_results.json"
MODES, DIRECTIONS = ["lstm", "gru", "rnn_tanh", "rnn_relu"], ["unidirectional", "bidirectional"]
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


def make_problem(spec, dtype, time, batch):
    width, rows = spec.state_width, spec.num_pseudo
    return Problem(
        spec,
        numbers(dtype, 1, numpy_layout.params_size(spec)) / dtype(4),
        numbers(dtype, 2, time, batch, spec.input_size),
        numbers(dtype, 3, rows, batch, width),
        numbers(dtype, 4, rows, batch, spec.num_units),
        ((5 * np.arange(batch) + 3) % (time + 1)).astype(np.int32),
        numbers(dtype, 5, time, batch, spec.num_dirs * width),
        numbers(dtype, 6, rows, batch, width),
        numbers(dtype, 7, rows, batch, spec.num_units),
    )


def digest(arrays):
    """One hash over names, shapes and bytes; -0 is not 0."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total.update(f"{name} {array.dtype.str} {array.shape} ".encode() + array.tobytes())
    return total.hexdigest()[:32]


def training_step(mode, direction, dtype):
    """Two layers with dropout and lengths; sizes beside, below and above a register tile."""
    results = {}
    for units, width, batch in ((33, 17, 7), (130, 3, 2), (5, 5, 13)):
        proj = 3 if mode == "lstm" and units == 5 else 0
        spec = Spec(mode, 2, units, width, "auto_select", direction, proj)
        problem = make_problem(spec, np.dtype(dtype).type, 6, batch)
        found = rnn_capi.run(
            "cpu", problem, training=True, saving=True, backward_calls=1, dropout=0.25, seed=9
        )
        results.update({f"{units} {name}": value for name, value in found.items()})
    return results


def optimizer_steps(optimizer, dtype):
    start, gradients = numbers(dtype, 8, 37), numbers(dtype, 9, 5, 37)
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
    for mode, direction, dtype in product(MODES, DIRECTIONS, DTYPES):
        key = f"training step {mode} {direction} {dtype}"
        found[key] = lambda m=mode, d=direction, t=dtype: training_step(m, d, t)
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
