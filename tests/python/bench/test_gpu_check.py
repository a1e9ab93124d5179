"""gpu_check over programs that only pretend: order, time, a second call, and what is found."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gpu.check import busy, libraries
from gpu.check import __main__ as check
from gpu.check.run import Unit, by_tests, run
from gpu.check.state import Outcome, State

BENCH = Path(__file__).resolve().parents[3] / "bench"
READY = "engines:\n  cudnn      ready    cuDNN 9.19.0, a GPU\n  cpu        ready    avx2"
ABSENT = "engines:\n  cudnn      absent   no libcuda.so.1: install the NVIDIA driver"
TESTS = "[ RUN      ] A.b\n[       OK ] A.b (0 ms)\n[  SKIPPED ] A.c (0 ms)"


def program(path, *lines, code=0):
    """A shell script that prints."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(["#!/bin/sh", *(f"printf '%s\\n' '{line}'" for line in lines)])
    path.write_text(f"{text}\nexit {code}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def bundle(tmp_path):
    """One whose programs all pass at once."""
    folder = tmp_path / "bundle"
    program(folder / "bin/openrnn", READY)
    for name in ("openrnn_gpu_tests", "openrnn_gpu_conformance"):
        program(folder / "bin" / name, TESTS)
    program(folder / "bin/openrnn_gpu_bench", "begin", "end", "5 steps",
            "the GPU had work for 93.5 percent of the time")
    program(folder / "bin/cudnn_layout", "# Made by a test", "lstm 1 2", "gru 3 4")
    (folder / "bundle.txt").write_text("commit 1\n")
    (folder / "lib").symlink_to(BENCH)
    return folder


def call(bundle, out, *more):
    """One call of the script, by a Python that has no packages."""
    command = [sys.executable, "-S", "-m", "gpu.check", str(out), "--bundle", str(bundle), *more]
    environment = {k: v for k, v in os.environ.items() if k != "OPENRNN_CUDA_LIBRARIES"}
    environment["PYTHONPATH"] = str(BENCH)
    found = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100)
    results = out / "results.json"
    units = json.loads(results.read_text())["units"] if results.exists() else {}
    return found, {name: unit["status"] for name, unit in units.items()}


def test_everything_passes_and_a_missing_pytorch_is_said(bundle, tmp_path):
    found, units = call(bundle, tmp_path / "out")
    assert found.returncode == 0, found.stdout + found.stderr
    assert list(units) == [
        "doctor", "layout", *(f"tests {n}/6" for n in range(1, 7)),
        *(f"conformance {n}/8" for n in range(1, 9)), "training across engines", "training step",
        "benchmark",
    ]  # fmt: skip
    assert units["benchmark"] == "skipped" and set(units.values()) == {"passed", "skipped"}
    summary = (tmp_path / "out/summary.txt").read_text()
    assert (tmp_path / "out/cudnn_layout.txt").read_text().endswith("lstm 1 2\ngru 3 4\n")
    assert "layout: 2 networks" in summary
    assert "goal met: a training step of L4 U1024 B64 T40" in summary
    assert "torch" in summary and "all passed" in summary and "1 passed, 1 skipped" in summary
    assert summary.rstrip().splitlines()[-1] in found.stdout
    files = list((tmp_path / "out").rglob("*"))
    assert len(files) <= 8 and all(path.parent == tmp_path / "out" for path in files)


def test_without_a_gpu_the_line_of_the_doctor_is_what_one_reads(bundle, tmp_path):
    program(bundle / "bin/openrnn", ABSENT)
    found, units = call(bundle, tmp_path / "out")
    assert found.returncode == 1 and units["doctor"] == "failed"
    assert "no libcuda.so.1: install the NVIDIA driver" in found.stdout
    assert {s for name, s in units.items() if name != "doctor"} == {"left"}
    program(bundle / "bin/openrnn", READY)  # the driver is there now: nothing was lost
    found, units = call(bundle, tmp_path / "out")
    assert found.returncode == 0 and units["layout"] == "passed"


def test_what_does_not_fit_is_left_and_a_second_call_goes_on(bundle, tmp_path):
    path = bundle / "bin/openrnn_gpu_tests"
    program(path, TESTS)
    path.write_text(path.read_text().replace("#!/bin/sh", "#!/bin/sh\nsleep 2"))
    found, units = call(bundle, tmp_path / "out", "--budget", "8")
    assert found.returncode == 3 and units["tests 1/6"] == "passed", found.stdout
    assert units["tests 6/6"] == units["conformance 1/8"] == units["training step"] == "left"
    assert "left for a second call" in (tmp_path / "out/summary.txt").read_text()
    program(path, "this one would fail", code=1)  # passed units are not run again
    program(bundle / "bin/cudnn_layout", "this one too", code=1)
    found, units = call(bundle, tmp_path / "out")
    assert units["layout"] == units["tests 1/6"] == "passed" and units["tests 6/6"] == "failed"
    assert found.returncode == 1 and "call 2" in found.stdout


def test_another_bundle_starts_afresh(bundle, tmp_path):
    call(bundle, tmp_path / "out")
    (bundle / "bundle.txt").write_text("commit 2\n")
    program(bundle / "bin/cudnn_layout", "lstm offset 3, expected 2", code=1)
    found, units = call(bundle, tmp_path / "out")
    assert found.returncode == 1 and units["layout"] == "failed"
    assert "lstm offset 3, expected 2" in found.stdout and "call 1" in found.stdout


def test_a_folder_without_a_bundle_is_a_users_fault(tmp_path):
    assert check.main([str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()


def test_the_judge_of_test_programs():
    assert by_tests(0, TESTS) == Outcome("passed", 0.0, "1 passed, 1 skipped")
    failed = by_tests(1, TESTS + "\n[  FAILED  ] A.d (3 ms)\n[  FAILED  ] A.d")
    assert failed.status == "failed" and "1 failed" in failed.detail and "A.d" in failed.detail
    assert by_tests(0, "[  SKIPPED ] A.c (0 ms)").status == "failed"  # nothing ran at all
    assert "139" in by_tests(139, "[       OK ] A.b").detail
    assert by_tests(0, "").status == "failed"


def test_limits_of_a_unit_and_of_the_call(tmp_path):
    slow = Unit("slow", ["sleep", "30"], 0.3, "a.log")
    assert run(slow, tmp_path, os.environ, 100.0).status == "failed"
    longer = Unit("longer", ["sh", "-c", "echo begun; sleep 30"], 60, "a.log")
    assert run(longer, tmp_path, os.environ, 5.1).status == "left"
    assert "begun" in (tmp_path / "a.log").read_text()
    assert run(longer, tmp_path, os.environ, 1.0) == Outcome("left")
    missing = Unit("missing", [str(tmp_path / "none")], 60, "a.log")
    assert "cannot be started" in run(missing, tmp_path, os.environ, 100.0).detail


def test_a_log_keeps_its_ends(tmp_path):
    talk = Unit("talk", ["sh", "-c", "echo first; yes 0123456789 | head -c 9000000; echo last"], 60,
                "b.log")  # fmt: skip
    assert run(talk, tmp_path, os.environ, 100.0).status == "passed"
    text = (tmp_path / "b.log").read_text()
    assert len(text) < 5 << 20 and "first" in text and text.rstrip().endswith("last")


def test_results_that_are_no_json_are_started_afresh(tmp_path):
    (tmp_path / "results.json").write_text("{")
    assert State.read(tmp_path, "b").units == {}


def test_libraries_are_found_in_this_order(tmp_path, monkeypatch):
    monkeypatch.setattr(libraries, "USUAL", tmp_path / "usual")

    def install(folder, *names):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        for name in names:
            (tmp_path / folder / name).write_text("")
        return str(tmp_path / folder)

    dnn, blas = libraries.WANTED
    cache = f"\t{dnn} (libc6,x86-64) => /usr/lib/{dnn}\n"
    wheel = Path(install("wheels/nvidia/cudnn/lib", dnn))
    other = Path(install("wheels/nvidia/cu13/lib", blas))
    found = libraries.find({}, "", [wheel, other])
    assert found == {dnn: str(wheel), blas: str(other)}
    assert libraries.variables(found, {"LD_LIBRARY_PATH": "/x"}) == {
        libraries.VARIABLE: f"{wheel}:{other}", "LD_LIBRARY_PATH": f"{wheel}:{other}:/x",
    }  # fmt: skip
    assert libraries.find({}, cache, [wheel])[dnn] == "system"
    named = {"CUDNN_PATH": str(tmp_path / "cudnn")}
    install("cudnn/lib64", dnn)
    assert libraries.find(named, "", [wheel])[dnn] == str(tmp_path / "cudnn/lib64")
    ours = {libraries.VARIABLE: install("ours", dnn)}
    assert libraries.find(ours, cache, [wheel])[dnn] == str(tmp_path / "ours")
    nothing = libraries.find({}, "", [])
    assert nothing == {dnn: "", blas: ""} and libraries.variables(nothing, {}) == {}


def test_how_busy_a_gpu_is():
    samples = [(0.5, 0.0), (2.0, 95.0), (3.0, 97.0), (9.5, 0.0)]
    assert busy.mean_between(samples, 0.0, 9.0) == 96.0
    assert busy.mean_between(samples, 20.0, 30.0) is None
    assert busy.sentence(96.0, 50.0).startswith("met:")
    assert busy.sentence(90.0, None).startswith("not met:")
    assert busy.sentence(None, 97.0).endswith("97 by events")
    assert busy.sentence(None, None).startswith("not measured:")
