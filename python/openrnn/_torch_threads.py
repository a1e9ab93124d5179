"""PyTorch's own threads, for calls that stand between its operations."""

# PyTorch is not there where types are checked.
# mypy: disable-error-code="import-not-found"

import os

import torch

from openrnn import _core

# Whether calls can run on them: threads of ours would wait for processors on which those spin, for
# milliseconds after each operation.
FOUND = _core.find_torch_threads(
    os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so")
)
# How many a call may use.
count = torch.get_num_threads
