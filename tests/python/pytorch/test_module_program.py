"""A program as users of PyTorch write them, against PyTorch's stored numbers."""

import subprocess
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent


def run(command, stored, folder):
    words = [sys.executable, str(HERE / "module_program.py"), command, str(stored), str(folder)]
    subprocess.run(words, check=True, timeout=600)


def check(stored, folder):
    """Gradients and a step of PyTorch to 1e-5; restored in another process, the same bits."""
    run("train", stored, folder)
    run("restore", stored, folder)
    torch, found = np.load(stored), np.load(folder / "trained.npz")
    # Weights are those of attributes first, then those of sublayers; frozen ones come last.
    wanted = [torch["gradient_scale"], torch["gradient0"], torch["gradient1"]]
    for i, gradient in enumerate(wanted):
        np.testing.assert_allclose(found[f"all{i}"], gradient, atol=1e-5)
    np.testing.assert_allclose(found["loss"], torch["loss"], atol=1e-5)
    wanted = [torch["trained_scale"], torch["trained"], torch["params0"]]
    for i, weight in enumerate(wanted):
        np.testing.assert_allclose(found[f"trained{i}"], weight, atol=1e-5)
    np.testing.assert_array_equal(found["kept1"], torch["params1"])  # the copy trained, alone
    np.testing.assert_array_equal(found["kept2"], torch["params0"])
    np.testing.assert_allclose(found["output"], torch["output"], atol=1e-5)
    restored = np.load(folder / "restored.npz")["output"]
    assert restored.tobytes() == found["output"].tobytes()


def test_against_stored_numbers(tmp_path):
    check(HERE / "data" / "module.npz", tmp_path)
