"""fit() of openrnn.train over a process group of torch.distributed: the bits of one process."""

import os
import socket
import subprocess
import sys

WORKER = """
import numpy as np, openrnn, sys
import torch.distributed as dist
from openrnn import layers, train

if int(sys.argv[1]) > 1:
    dist.init_process_group("gloo")
random = np.random.default_rng(5)
data = random.normal(size=(6, 19, 3)).astype("float32"), random.normal(size=(19, 1)).astype("float32")
inputs = openrnn.Input(batch_shape=(6, None, 3))
out, _ = openrnn.cudnn_rnn.CudnnLSTM(2, 5, dropout=0.4, seed=3)(inputs)
model = openrnn.Model(inputs, layers.Dense(1, seed=4)(out[-1]))
for reduction in sys.argv[2:]:
    model.fit(data, "mean_squared_error", train.Adam(0.05), epochs=3, batch_size=8,
              batch_axis=(1, 0), micro_batches=4, clip_norm=0.5, progress=False, reduction=reduction,
              communicator=dist.group.WORLD if int(sys.argv[1]) > 1 else None)
print([weight.numpy().tobytes().hex() for weight in model.weights])
if int(sys.argv[1]) > 1:
    dist.destroy_process_group()
"""


def weights(size, *reductions):
    """What each of `size` processes ends with."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(size), *reductions], stdout=subprocess.PIPE, text=True,
            env={**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
                 "RANK": str(rank), "WORLD_SIZE": str(size)},
        )
        for rank in range(size)
    ]  # fmt: skip
    said = [one.communicate(timeout=300)[0] for one in running]
    assert [one.returncode for one in running] == [0] * size
    return said


def test_a_process_group_has_the_bits_of_one_process():
    alone = weights(1, "exact")
    assert weights(2, "exact") == alone * 2
    assert weights(4, "exact") == alone * 4


def test_its_own_sum_is_equal_in_all_processes():
    assert len(set(weights(4, "fast"))) == 1
