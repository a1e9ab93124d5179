"""The program of test_module_program.py against PyTorch itself."""

import module_reference
import numpy as np
import test_module_program


def test_against_torch(tmp_path):
    np.savez(tmp_path / "stored.npz", **module_reference.compute())
    test_module_program.check(tmp_path / "stored.npz", tmp_path)
