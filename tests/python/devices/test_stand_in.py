"""test_gpu.py once more where there is no GPU, over libraries that stand in for CUDA's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import openrnn

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("OPENRNN_BUILD_DIR", HERE.parents[2] / "build" / "release"))
STAND_INS = BUILD / "stand_in"
PROBE = "import openrnn; print(openrnn.list_devices())"


@pytest.mark.skipif("gpu:0" in openrnn.list_devices(), reason="this machine has a GPU")
def test_the_programs_over_stand_ins():
    if not STAND_INS.is_dir():
        pytest.skip(f"there is no {STAND_INS}: this build has no GPU engine")
    environment = {**os.environ, "OPENRNN_CUDA_LIBRARIES": str(STAND_INS)}
    found = subprocess.run([sys.executable, "-c", PROBE], env=environment, capture_output=True,
                           text=True, timeout=120, check=False)
    if "gpu:0" not in found.stdout:
        pytest.skip(f"the stand-ins are no GPU for this build: {found.stdout}{found.stderr}")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / "test_gpu.py")],
        env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
