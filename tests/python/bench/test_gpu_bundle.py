"""scripts/gpu_bundle over tools that only pretend to build."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TOOLS = {
    "cmake": "", "readelf": "", "strip": 'echo "$FAKE_PROGRAM" > "$2"',
    "objdump": 'echo "0000 DF *UND* 0000 (GLIBC_$FAKE_GLIBC) memcpy"',
}  # fmt: skip


@pytest.fixture
def bundle(tmp_path):
    """Runs the script of a copy of the repository, for DIR."""
    root, tools = tmp_path / "root", tmp_path / "tools"
    for part in ("scripts", "bench"):
        shutil.copytree(ROOT / part, root / part)
    tools.mkdir()
    for name, text in TOOLS.items():
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)

    def run(folder, glibc, built="1"):
        environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
        environment |= {"FAKE_GLIBC": glibc, "FAKE_PROGRAM": built}
        command = [str(root / "scripts/gpu_bundle"), str(folder)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)

    return run


def test_what_fails_half_way_leaves_nothing_and_takes_nothing(bundle, tmp_path):
    place = tmp_path / "new"
    failed = bundle(place / "b", "2.99")
    assert failed.returncode == 1 and "the programs need GLIBC_2.99" in failed.stderr
    assert list(place.iterdir()) == []
    made = bundle(place / "b", "2.34")
    assert made.returncode == 0, made.stderr
    text = (place / "b/bundle.txt").read_text()
    assert "needs glibc 2.34" in text and (place / "b").stat().st_mode & 0o777 == 0o755
    assert os.access(place / "b/gpu_check", os.X_OK) and (place / "b/lib/gpu/signals.py").exists()
    assert bundle(place / "b", "2.99").returncode == 1
    assert (place / "b/bundle.txt").read_text() == text and len(list(place.iterdir())) == 1
    assert bundle(place / "b", "2.35", "2").returncode == 0  # a newer one takes its place
    assert (place / "b/bundle.txt").read_text() != text and len(list(place.iterdir())) == 1


def test_a_folder_that_is_no_bundle_is_left_alone(bundle, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/file").write_text("kept")
    found = bundle(tmp_path / "mine", "2.34")
    assert found.returncode == 2 and "expected a new folder" in found.stderr
    assert (tmp_path / "mine/file").read_text() == "kept"
