"""Under the torch backend calls run on PyTorch's own threads."""

import subprocess
import sys

import numpy as np
import openrnn.keras as ours
import pytest
from framework import BACKEND, as_list, gradients, numpy_of

pytestmark = pytest.mark.skipif(BACKEND != "torch", reason="of the torch backend")

BATCH, TIME, UNITS = 16, 20, 128  # worth several threads


def test_the_same_bits_on_any_number_of_them():
    import torch

    rng = np.random.default_rng(5)
    x = rng.normal(size=(BATCH, TIME, UNITS)).astype("float32")
    scales = [rng.normal(size=(BATCH, TIME, UNITS)).astype("float32")]
    layer = ours.GRU(UNITS, return_sequences=True)
    layer.build(x.shape)
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append([*as_list(layer(x)), *gradients(layer, [x], scales)])
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(numpy_of(a), numpy_of(b))


COUNT = f"""
import os, torch, openrnn.keras
torch.set_num_threads(2)
a = torch.randn(600, 600)
a @ a, (a + 1).sum()  # PyTorch has started its threads
torch.nn.LSTM(600, 600)(a[:, None])
layer = openrnn.keras.LSTM({UNITS})
x = torch.randn({BATCH}, {TIME}, {UNITS}, requires_grad=True)
layer.build(x.shape)
before = len(os.listdir("/proc/self/task"))
for _ in range(20):
    layer(x)
print(before, len(os.listdir("/proc/self/task")))
"""


def test_no_thread_of_ours_is_started():
    done = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, check=True)
    before, after = map(int, done.stdout.split())
    assert after == before > 1
