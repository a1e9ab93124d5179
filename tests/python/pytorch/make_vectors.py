"""Computes the stored vectors with PyTorch and writes them. Needs `make test-torch` to have run:

.venv-torch/bin/python tests/python/pytorch/make_vectors.py
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch_reference
import torch_vectors


def compute():
    """dict of everything that the file holds."""
    found = {"torch": np.array(torch_reference.torch.__version__.split("+")[0])}
    for case in torch_vectors.CASES:
        problem = torch_vectors.fresh_problem(case)
        for name in torch_vectors.INPUTS:
            if getattr(problem, name) is not None:
                found[f"{case}/{name}"] = getattr(problem, name)
        for dtype in torch_vectors.DTYPES:
            results = torch_reference.run(torch_vectors.in_dtype(problem, dtype))
            found.update((f"{case}/{dtype}/{name}", value) for name, value in results.items())
    return found


if __name__ == "__main__":
    torch_vectors.PATH.parent.mkdir(exist_ok=True)
    np.savez_compressed(torch_vectors.PATH, **compute())
    print(f"{torch_vectors.PATH}: {torch_vectors.PATH.stat().st_size // 1024} KB")
