"""The GPU benchmark's whole way with PyTorch itself, both sides on the CPU: what they exchange agrees."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
sys.path.insert(0, str(ROOT / "bench"))

from gpu import __main__ as program
from gpu import report
from gpu.lines import PASSES, groups

BENCH = Path(os.environ["OPENRNN_BUILD_DIR"]) / "openrnn_gpu_bench"


@pytest.mark.skipif(not BENCH.exists(), reason="openrnn_gpu_bench is not built")
def test_both_sides_compute_the_same(tmp_path):
    command = [sys.executable, "-m", "gpu", "--program", str(BENCH), "--device", "cpu"]
    command += ["--lines", str(tmp_path / "lines"), "--report", str(tmp_path / "page.md")]
    command += ["--reduced", "--torch", "device=cpu"]
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "bench"))
    subprocess.run(command, env=environment, timeout=600, check=False)
    lines = program.read_lines(tmp_path / "lines")
    assert len(lines) == len(PASSES) * len(list(groups(reduced=True)))
    for line in lines:
        if line["arithmetic"] == "tf32":  # of GPUs alone
            assert line["failed"] == "ours" and "tf32" in line["reason"]
        else:
            assert report.counts(line), line
    assert "OpenRNN, this processor" in (tmp_path / "page.md").read_text()
