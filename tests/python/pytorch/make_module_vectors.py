"""Computes with PyTorch what module_program.py is compared with, and writes it. Needs `make test-torch`
to have run:

.venv-torch/bin/python tests/python/pytorch/make_module_vectors.py
"""

from pathlib import Path

import numpy as np

import module_reference

PATH = Path(__file__).resolve().parent / "data" / "module.npz"

if __name__ == "__main__":
    np.savez_compressed(PATH, **module_reference.compute())
    print(f"{PATH}: {PATH.stat().st_size} bytes")
