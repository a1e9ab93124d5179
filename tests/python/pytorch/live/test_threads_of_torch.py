"""Calls run on PyTorch's own threads: ours would wait for processors on which those spin."""

import os
import subprocess
import sys

import openrnn.torch
import pytest
import torch
from openrnn import _torch_threads

LARGE = (128, 16, 20)  # units, batch, time: worth several threads


def test_they_are_found():
    assert _torch_threads.FOUND, torch.__config__.parallel_info()


def results(module, x):
    y, state = module(x)
    y.square().sum().backward()
    return [y.detach(), *(each.detach() for each in state), *(p.grad.clone() for p in module.parameters())]


def test_the_same_bits_on_any_number_of_them():
    units, batch, time = LARGE
    torch.manual_seed(3)
    module, x = openrnn.torch.LSTM(units, units, 2), torch.randn(time, batch, units)
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            module.zero_grad()
            found.append(results(module, x))
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            assert torch.equal(a, b)


COUNT = f"""
import os, torch, openrnn.torch
torch.set_num_threads(2)
a = torch.randn(600, 600)
a @ a, (a + 1).sum()  # PyTorch has started its threads
torch.nn.LSTM(600, 600)(a[:, None])
module, x = openrnn.torch.LSTM({LARGE[0]}, {LARGE[0]}), torch.randn({LARGE[2]}, {LARGE[1]}, {LARGE[0]})
before = len(os.listdir("/proc/self/task"))
with torch.no_grad():
    for _ in range(20):
        module(x)
print(before, len(os.listdir("/proc/self/task")))
"""


def run(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_no_thread_of_ours_is_started():
    before, after = map(int, run(COUNT))
    assert after == before > 1


FORKED = f"""
import os, torch, openrnn.torch
torch.set_num_threads(2)
module, x = openrnn.torch.GRU({LARGE[0]}, {LARGE[0]}), torch.randn({LARGE[2]}, {LARGE[1]}, {LARGE[0]})
with torch.no_grad():
    y = module(x)[0].numpy().tobytes()
    pid = os.fork()
    if pid == 0:  # where PyTorch's own operations on several threads would wait for ever
        os._exit(0 if module(x)[0].numpy().tobytes() == y else 3)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_computes():
    assert run(FORKED) == ["0"]
