"""The page about JAX, and the example."""

import pathlib
import re
import subprocess
import sys

import jax
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tests" / "python" / "docs"))
import snippets  # noqa: E402
import test_snippets as pages  # noqa: E402


@pytest.mark.parametrize("page", snippets.OF_FRAMEWORKS["jax"][0])
def test_a_page(page, tmp_path, monkeypatch):
    # In single precision, as a reader has it.
    jax.config.update("jax_enable_x64", False)
    try:
        pages.test_python(page, tmp_path, monkeypatch)
    finally:
        jax.config.update("jax_enable_x64", True)


def test_the_flax_module_learns():
    pytest.importorskip("flax")
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "python" / "frameworks" / "flax_lstm.py"], capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    losses = [float(value) for value in re.findall(r"loss ([0-9.]+)", done.stdout)]
    assert len(losses) == 4 and losses[0] > 0.2 and losses[-1] < 0.02
