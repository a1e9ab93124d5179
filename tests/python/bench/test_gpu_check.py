"""gpu_check over fake programs: order, time, a second call, and what is found."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gpu import signals
from gpu.check import busy, libraries
from gpu.check import __main__ as check
from gpu.check.run import Unit, by_tests, run
from gpu.check.state import Outcome, State
from children import runs, until

BENCH = Path(__file__).resolve().parents[3] / "bench"
READY = "engines:\n  cudnn      ready    cuDNN 9.19.0, a GPU\n  cpu        ready    avx2"
ABSENT = "engines:\n  cudnn      absent   no libcuda.so.1: install the NVIDIA driver"
TESTS = "[ RUN      ] A.b\n[       OK ] A.b (0 ms)\n[  SKIPPED ] A.c (0 ms)"
ALL_TESTS = {
    name: [f"tests {name} {n}/6" for n in range(1, 7)]
    + [f"conformance {name} {n}/8" for n in range(1, 9)]
    for name in ("standard", "auto")
}  # fmt: skip


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


def call(bundle, out, *more, modules=(), **variables):
    """One call of the script, by a Python that has no packages but these."""
    command = [sys.executable, "-S", "-m", "gpu.check", str(out), "--bundle", str(bundle), *more]
    environment = {k: v for k, v in os.environ.items() if k != "OPENRNN_CUDA_LIBRARIES"}
    environment |= {"PYTHONPATH": ":".join(map(str, [BENCH, *modules])), **variables}
    found = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100)
    results = out / "results.json"
    units = json.loads(results.read_text())["units"] if results.exists() else {}
    return found, {name: unit["status"] for name, unit in units.items()}


def test_everything_passes_and_a_missing_pytorch_is_said(bundle, tmp_path):
    found, units = call(bundle, tmp_path / "out")
    assert found.returncode == 0, found.stdout + found.stderr
    assert list(units) == [
        "doctor", "layout", *ALL_TESTS["standard"], *ALL_TESTS["auto"], "tests with graphs",
        "training across engines", "training step", "benchmark",
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
    found, units = call(bundle, tmp_path / "out", "--minutes", "0.133")
    assert found.returncode == 3 and units["tests standard 1/6"] == "passed", found.stdout
    assert units["tests auto 6/6"] == units["conformance auto 1/8"] == "left"
    assert units["training step"] == "left"
    assert "left for a second call" in (tmp_path / "out/summary.txt").read_text()
    program(path, "this one would fail", code=1)  # passed units are not run again
    program(bundle / "bin/cudnn_layout", "this one too", code=1)
    found, units = call(bundle, tmp_path / "out")
    assert units["layout"] == units["tests standard 1/6"] == "passed"
    assert units["tests auto 6/6"] == "failed"
    assert found.returncode == 1 and "call 2" in found.stdout


def test_a_call_can_be_cut_to_some_units(bundle, tmp_path):
    found, units = call(bundle, tmp_path / "out", "--only", "tests auto 2", "--only", "training")
    assert found.returncode == 0, found.stdout
    assert list(units) == ["doctor", "tests auto 2/6", "training across engines", "training step"]
    assert " min  tests auto 2/6: 1 passed" in (tmp_path / "out/summary.txt").read_text()
    found, units = call(bundle, tmp_path / "out", "--only", "layout")
    assert list(units)[-1] == "layout" and "call 2" in found.stdout


def test_tests_run_by_the_standard_algorithm_and_then_by_choice(bundle, tmp_path):
    for name in ("openrnn_gpu_tests", "openrnn_gpu_bench"):
        path = bundle / "bin" / name
        path.write_text(path.read_text() + f"env | grep ^OPENRNN_ >> {tmp_path}/seen.{name}\n")
    for name in ("openrnn_gpu_tests", "openrnn_gpu_bench"):
        path = bundle / "bin" / name
        lines = path.read_text().splitlines()
        path.write_text("\n".join([lines[0], lines[-1], *lines[1:-1]]) + "\n")

    def seen(name):
        lines = (tmp_path / f"seen.{name}").read_text().splitlines()
        return [line.split("=")[1] for line in lines if "ALGORITHM" in line]

    call(bundle, tmp_path / "out")
    # The last one is with graphs.
    assert seen("openrnn_gpu_tests") == ["standard"] * 6 + ["auto"] * 6 + ["standard"]
    assert "OPENRNN_LOG_LEVEL=debug" in (tmp_path / "seen.openrnn_gpu_tests").read_text()
    assert (tmp_path / "seen.openrnn_gpu_tests").read_text().count("OPENRNN_CUDA_GRAPHS=1") == 1
    assert seen("openrnn_gpu_bench") == []
    found, units = call(bundle, tmp_path / "out", "--algorithm", "standard")
    assert "call 1" in found.stdout  # what was found by another one does not count
    assert seen("openrnn_gpu_tests")[13:] == ["standard"] * 7
    assert set(seen("openrnn_gpu_bench")) == {"standard"}
    assert [name for name in units if "s" in name and "/" in name] == ALL_TESTS["standard"]
    assert call(bundle, tmp_path / "out", "--algorithm", "fast")[0].returncode == 2


def test_a_unit_that_dies_names_what_it_tried_last(bundle, tmp_path):
    path = bundle / "bin/openrnn_gpu_tests"
    program(path, "[openrnn] tries algorithm standard for lstm, 8 rows",
            "[openrnn] tries algorithm persist_static for lstm, 8 rows")  # fmt: skip
    path.write_text(path.read_text().replace("exit 0", "kill -SEGV $$"))
    found, units = call(bundle, tmp_path / "out", "--only", "tests auto 1")
    assert found.returncode == 1 and units["tests auto 1/6"] == "failed"
    assert "the last that was tried: algorithm persist_static for lstm, 8 rows" in found.stdout


def test_a_copy_without_mode_bits_that_cannot_be_written_will_do(bundle, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(bundle, copy, copy_function=shutil.copyfile, symlinks=True)
    shutil.copyfile(BENCH / "gpu/check/gpu_check", copy / "gpu_check")
    for path in [copy, *copy.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o555 if path.is_dir() else 0o444)
    before = {path: path.stat().st_mtime_ns for path in copy.rglob("*")}
    found = subprocess.run(["bash", str(copy / "gpu_check"), str(tmp_path / "out"), "--only", "layout"],
                           env={**os.environ, "PYTHON": sys.executable, "TMPDIR": str(tmp_path)},
                           capture_output=True, text=True, timeout=100)  # fmt: skip
    assert found.returncode == 0 and "layout: 2 networks" in found.stdout, found
    assert {path: path.stat().st_mtime_ns for path in copy.rglob("*")} == before
    assert not list(tmp_path.glob("gpu_check*"))


def test_another_bundle_starts_afresh(bundle, tmp_path):
    call(bundle, tmp_path / "out")
    (bundle / "bundle.txt").write_text("commit 2\n")
    program(bundle / "bin/cudnn_layout", "lstm offset 3, expected 2", code=1)
    found, units = call(bundle, tmp_path / "out")
    assert found.returncode == 1 and units["layout"] == "failed"
    assert "lstm offset 3, expected 2" in found.stdout and "call 1" in found.stdout


@pytest.mark.parametrize("what", ["bundle", "gpu"])
def test_lines_of_another_bundle_or_gpu_do_not_count(bundle, tmp_path, what):
    """The benchmark goes on with the lines that it finds, so they must be of the same."""
    out = tmp_path / "out"
    call(bundle, out)
    for name in ("benchmark.jsonl", "benchmark.md", "tests.log"):
        (out / name).write_text("of the first one\n")
    (out / "notes").write_text("the user's own\n")
    call(bundle, out)
    assert (out / "benchmark.jsonl").exists()  # the same machine and bundle go on
    if what == "bundle":
        (bundle / "bundle.txt").write_text("commit 2\n")
    else:
        program(bundle / "bin/openrnn", READY.replace("a GPU", "another GPU"))
    found, units = call(bundle, out)
    assert found.returncode == 0 and "call 1" in found.stdout and units["layout"] == "passed"
    assert not (out / "benchmark.jsonl").exists() and not (out / "benchmark.md").exists()
    assert "of the first one" not in (out / "tests.log").read_text()
    assert "== doctor" in (out / "machine.log").read_text() and (out / "notes").exists()
    assert "call 2" in call(bundle, out)[0].stdout


def test_a_gpu_that_is_away_for_a_call_loses_nothing(bundle, tmp_path):
    call(bundle, tmp_path / "out")
    program(bundle / "bin/openrnn", ABSENT)
    found, units = call(bundle, tmp_path / "out")
    assert found.returncode == 1 and units["layout"] == "passed" and "call 2" in found.stdout


def packages(folder, torch):
    """A folder of two fake packages."""
    for name, text in (("torch", torch), ("numpy", "")):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(text)
    return folder


@pytest.mark.parametrize(
    ("torch", "reason"),
    [
        ("class cuda:\n    is_available = lambda: False", "sees no GPU"),
        ("raise ImportError('no libc10.so')", "cannot be imported: ImportError: no libc10.so"),
        ("import os\nos._exit(9)", "cannot be imported: exit status 9"),
        ("class cuda:\n    is_available = lambda: True", ""),
    ],
)
def test_a_pytorch_that_is_of_no_use_is_no_failure(bundle, tmp_path, torch, reason):
    """Found on the user's PYTHONPATH, which units get, too."""
    folder = packages(tmp_path / "packages", torch)
    found, units = call(bundle, tmp_path / "out", modules=[folder])
    # One that can is gone on with, and then has nothing that the benchmark needs.
    assert units["benchmark"] == ("skipped" if reason else "failed"), found.stdout
    assert reason in (tmp_path / "out/summary.txt").read_text()
    assert found.returncode == (0 if reason else 1)


def test_units_get_the_users_variables_but_those_that_choose(bundle, tmp_path):
    path = bundle / "bin/cudnn_layout"
    program(path)
    path.write_text("#!/bin/sh\nenv\n")
    call(bundle, tmp_path / "out", modules=["/users/own"], OPENRNN_ENGINE="reference",
         OPENRNN_CUDNN_ALGORITHM="standard", OPENRNN_CUDA_LIBRARIES=str(tmp_path),
         GTEST_FILTER="None.*", CUDA_DEVICE_ORDER="FASTEST_FIRST", USERS_OWN="1")  # fmt: skip
    lines = (tmp_path / "out/cudnn_layout.txt").read_text().splitlines()
    known = dict(line.split("=", 1) for line in lines if "=" in line)
    assert [n for n in known if n.startswith(("OPENRNN_", "GTEST_"))] == ["OPENRNN_CUDA_LIBRARIES"]
    assert known["PYTHONDONTWRITEBYTECODE"] == "1"
    assert known["OPENRNN_CUDA_LIBRARIES"].split(":")[0] == str(tmp_path)
    assert known["PYTHONPATH"] == f"{bundle}/lib:{BENCH}:/users/own"
    assert known["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID" and known["USERS_OWN"] == "1"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_check_that_is_ended_ends_its_unit(bundle, tmp_path, number):
    path = bundle / "bin/openrnn_gpu_tests"
    program(path)
    path.write_text(f"#!/bin/sh\nsleep 100 & echo $! > {tmp_path}/made\nmv {tmp_path}/made "
                    f"{tmp_path}/child\nwait\n")  # fmt: skip
    command = [sys.executable, "-S", "-m", "gpu.check", str(tmp_path / "out")]
    # What nohup or a shell's background ignores would be ignored there, too.
    process = subprocess.Popen([*command, "--bundle", str(bundle)], stdout=subprocess.DEVNULL,
                               env={**os.environ, "PYTHONPATH": str(BENCH)},
                               preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))  # fmt: skip
    child = until(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text())
    process.send_signal(number)
    assert process.wait(30) == 128 + number
    until(lambda: not runs(int(child)))


def test_a_signal_while_a_unit_begins_ends_it(tmp_path, monkeypatch):
    """It comes when the program runs, and nobody knows its number yet."""
    begun = []

    class Slow(subprocess.Popen):
        def __init__(self, *arguments, **more):
            super().__init__(*arguments, **more)
            begun.append(self.pid)
            os.kill(os.getpid(), signal.SIGTERM)

    before = {told: signal.getsignal(told) for told in signals.TOLD}
    signals.leave_tidily()
    monkeypatch.setattr(subprocess, "Popen", Slow)
    try:
        with pytest.raises(SystemExit) as ended:
            run(Unit("sleeps", ["sleep", "100"], 60.0, "log.txt"), tmp_path, {}, 60.0)
    finally:
        for told, handler in before.items():
            signal.signal(told, handler)
    assert ended.value.code == 128 + signal.SIGTERM
    until(lambda: not runs(begun[0]))


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


def test_nvidia_smi_is_asked_for_the_gpu_that_is_used(tmp_path, monkeypatch):
    assert busy.first_gpu({}) == "0" and busy.first_gpu({"CUDA_VISIBLE_DEVICES": "3, 1"}) == "3"
    program(tmp_path / "nvidia-smi")
    (tmp_path / "nvidia-smi").write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\n')
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-12ab,0")
    assert busy.sample([]).wait(30) == 0
    assert (tmp_path / "asked").read_text().split()[-2:] == ["-i", "GPU-12ab"]


def test_how_busy_a_gpu_is():
    samples = [(0.5, 0.0), (2.0, 95.0), (3.0, 97.0), (9.5, 0.0)]
    assert busy.mean_between(samples, 0.0, 9.0) == 96.0
    assert busy.mean_between(samples, 20.0, 30.0) is None
    assert busy.sentence(96.0, 50.0).startswith("met:")
    assert busy.sentence(90.0, None).startswith("not met:")
    assert busy.sentence(None, 97.0).endswith("97 by events")
    assert busy.sentence(None, None).startswith("not measured:")
