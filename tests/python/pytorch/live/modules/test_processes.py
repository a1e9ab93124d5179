"""Several processes: the example of torch.distributed, workers of a DataLoader."""

import re
import subprocess
import sys
import threading
from pathlib import Path

import openrnn.torch as ours
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

EXAMPLE = Path(__file__).parents[5] / "examples" / "python" / "frameworks" / "ddp.py"


def losses(processes):
    done = subprocess.run(
        [sys.executable, EXAMPLE, "--processes", str(processes), "--steps", "20", "--dtype", "float64"],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [float(value) for value in re.findall(r"loss (\S+)", done.stdout)]


def test_two_processes_train_as_one():
    one, two = losses(1), losses(2)
    assert len(one) == 20 and one[-1] < one[0]
    assert max(abs(a - b) for a, b in zip(one, two, strict=True)) < 1e-9


class Features(Dataset):
    """Each item runs the module in the worker that loads it."""

    def __init__(self, module):
        self.module = module

    def __len__(self):
        return 6

    def __getitem__(self, index):
        torch.manual_seed(index)
        with torch.no_grad():
            return self.module(torch.randn(20, 4, 8))[0]


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_of_a_data_loader(context):
    data = Features(ours.LSTM(8, 64))
    wanted = [data[index] for index in range(6)]
    loader = DataLoader(data, batch_size=1, num_workers=2, multiprocessing_context=context)
    found = [batch[0] for batch in loader]
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(found, wanted, strict=True))


def test_threads_share_a_module():
    module = ours.GRU(8, 32, 2)
    x = torch.randn(12, 3, 8)
    with torch.no_grad():
        wanted = module(x)[0]
    results, grads = [], []

    def run():
        for _ in range(10):
            with torch.no_grad():
                results.append(module(x)[0])
            own = x.clone().requires_grad_()
            grads.append(torch.autograd.grad(module(own)[0].sum(), own)[0])

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 40 and all(torch.equal(each, wanted) for each in results)
    assert all(torch.equal(each, grads[0]) for each in grads)


def test_results_do_not_depend_on_torchs_threads():
    module, x = ours.LSTM(64, 128), torch.randn(20, 16, 64)
    threads = torch.get_num_threads()
    try:
        found = []
        for count in (1, 2):
            torch.set_num_threads(count)
            found.append(module(x)[0])
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(*found)
