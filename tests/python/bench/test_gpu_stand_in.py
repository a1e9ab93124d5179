"""gpu_check over the programs of the build and libraries that pretend to be NVIDIA's."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("OPENRNN_BUILD_DIR", ROOT / "build/release"))
STAND_INS = BUILD / "stand_in"
# In the bundle all tests are one program; each of these is a part of it.
PROGRAMS = {
    "openrnn": "openrnn", "openrnn_gpu_bench": "openrnn_gpu_bench",
    "openrnn_gpu_tests": "cudnn_replay_test", "openrnn_gpu_conformance": "cudnn_cpu_agreement_test",
    "cudnn_layout": "tool_cudnn_layout",
}  # fmt: skip
pytestmark = pytest.mark.skipif(
    not STAND_INS.is_dir(), reason="built without CUDA's headers, so there are no stand-ins"
)


@pytest.fixture
def bundle(tmp_path):
    """As scripts/gpu_bundle lays it out."""
    folder = tmp_path / "bundle"
    (folder / "bin").mkdir(parents=True)
    for name, built in PROGRAMS.items():
        assert (BUILD / built).exists(), built
        (folder / "bin" / name).symlink_to(BUILD / built)
    (folder / "lib").symlink_to(ROOT / "bench")
    shutil.copy(ROOT / "bench/gpu/check/gpu_check", folder)
    (folder / "bundle.txt").write_text("a test\n")
    return folder


def call(bundle, out, **environment):
    """DIR/gpu_check OUT, in a reduced form."""
    command = [str(bundle / "gpu_check"), str(out), "--reduced"]
    environment = {**os.environ, "PYTHON": sys.executable, **environment}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=460)


def test_it_passes_over_the_stand_ins(bundle, tmp_path):
    found = call(bundle, tmp_path / "out", OPENRNN_CUDA_LIBRARIES=str(STAND_INS))
    assert found.returncode == 0, found.stdout + found.stderr
    summary = (tmp_path / "out/summary.txt").read_text()
    for unit in ("doctor", "layout", "tests standard 1/1", "tests auto 1/1", "conformance auto 1/1", "tests with graphs", "training across engines"):
        assert f"  {unit}" in summary, summary
    assert f"libcudnn.so.9: {STAND_INS}" in summary
    assert len(list((tmp_path / "out").iterdir())) <= 8


def test_without_a_library_it_says_what_is_missing(bundle, tmp_path):
    found = call(bundle, tmp_path / "out", OPENRNN_CUDA_LIBRARIES="")
    if "cudnn      ready" in (tmp_path / "out/machine.log").read_text():
        pytest.skip("this machine has a GPU")
    assert found.returncode == 1
    assert "doctor: " in found.stdout and "driver" in found.stdout, found.stdout
    assert "left for a second call" in found.stdout
