"""What gpu_check runs, in this order."""

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpu.check import libraries
from gpu.check.run import Unit, by_tests, last_line
from gpu.check.state import Outcome

GOAL_MARKS = ("met:", "not met:", "met so far:", "not measured:")


@dataclass(frozen=True)
class Setting:
    """One bundle on one machine."""

    programs: Path
    out: Path
    reduced: bool = False  # a walk through everything at sizes for a stand-in
    algorithm: str = ""  # of cuDNN, for everything; empty: see checks

    def program(self, name: str) -> str:
        """The path of one of the bundle's programs."""
        return str(self.programs / name)


def environment(user: Mapping[str, str], modules: Path) -> dict[str, str]:
    """Of every unit: the user's, but for what would change which engine, GPU or tests run."""
    kept = {name: value for name, value in user.items()
            if name == libraries.VARIABLE or not name.startswith(("OPENRNN_", "GTEST_"))}  # fmt: skip
    paths = [str(modules), *filter(None, [user.get("PYTHONPATH", "")])]
    # The bundle may be on a disk that cannot be written.
    kept["PYTHONDONTWRITEBYTECODE"] = "1"
    # nvidia-smi counts so, and CUDA else by speed: all must mean the same GPU by a number.
    return kept | {"PYTHONPATH": ":".join(paths), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


def by_doctor(code: int, output: str) -> Outcome:
    """The GPU engine must be ready; else its line says what is missing."""
    line = re.search(r"^\s*cudnn\s+(\S+)\s+(.*)$", output, re.MULTILINE)
    if line is None:
        return Outcome("failed", 0.0, f"exit status {code}, {last_line(output)}")
    return Outcome("passed" if line.group(1) == "ready" else "failed", 0.0, line.group(2).strip())


def by_layout(code: int, output: str) -> Outcome:
    """A line for each network; a test compares them with ParamsLayout."""
    lines = [line for line in output.splitlines() if line and not line.startswith("#")]
    if code != 0 or not lines:
        return Outcome("failed", 0.0, f"exit status {code}, {last_line(output)}")
    return Outcome("passed", 0.0, f"{len(lines)} networks")


def by_benchmark(code: int, output: str) -> Outcome:
    """0: every line; 3: some are left; else one failed. The goals are sentences of their own."""
    said = [text for text in output.splitlines() if not text.startswith(GOAL_MARKS)]
    detail = last_line("\n".join(said))
    return Outcome({0: "passed", 3: "left"}.get(code, "failed"), 0.0, detail)


def choosing(algorithm: str) -> dict[str, str]:
    """The variables of a unit whose algorithm is fixed. Each is said before it is tried, in case
    that the unit dies of it."""
    if not algorithm:
        return {}
    return {"OPENRNN_CUDNN_ALGORITHM": algorithm, "OPENRNN_LOG_LEVEL": "debug"}


def shards(setting: Setting, step: str, program: str, count: int, algorithm: str) -> list[Unit]:
    """A GoogleTest program cut into pieces."""
    limit = 90.0
    if setting.reduced:  # stand-ins are slow
        count, limit = 1, 5 * limit
    found = []
    for index in range(count):
        name = f"{step} {algorithm} {index + 1}/{count}"
        environment = {"GTEST_TOTAL_SHARDS": str(count), "GTEST_SHARD_INDEX": str(index)}
        # Of tests of a device; of those that say nothing of one.
        environment |= {"OPENRNN_TEST_DEVICE": "gpu:0", "OPENRNN_DEVICE": "gpu:0"}
        environment |= {"OPENRNN_TEST_REDUCED": "1"} if setting.reduced else {}
        environment |= choosing(algorithm)
        command = [setting.program(program)]
        found.append(Unit(name, command, limit, f"{step}.log", environment, by_tests))
    return found


def graphs(setting: Setting) -> Unit:
    """The engine's tests with CUDA graphs: twice, since what is made again is run by a graph."""
    command = [setting.program("openrnn_gpu_tests")]
    tests, limit = "Cudnn*:*/Cudnn*", 90.0
    if setting.reduced:  # stand-ins are slow
        tests, limit = "CudnnGraph*:*/CudnnReplay*", 450.0
    command += [f"--gtest_filter={tests}", "--gtest_repeat=2"]
    environment = {"OPENRNN_TEST_DEVICE": "gpu:0", "OPENRNN_DEVICE": "gpu:0"}
    environment |= {"OPENRNN_CUDA_GRAPHS": "1"} | choosing(setting.algorithm or "standard")
    return Unit("tests with graphs", command, limit, "tests.log", environment, by_tests)


def doctor(setting: Setting) -> Unit:
    """Whether there is anything to test."""
    command = [setting.program("openrnn"), "doctor"]
    return Unit("doctor", command, 60, "machine.log", judge=by_doctor)


def checks(setting: Setting) -> list[Unit]:
    """Everything that decides whether the engine is right."""
    bench, layout = setting.program("openrnn_gpu_bench"), setting.program("cudnn_layout")
    across = [bench, "across", "gpu:0", "8" if setting.reduced else "40"]
    # What is right for everything first: the others can end all work on the GPU.
    algorithms = [setting.algorithm] if setting.algorithm else ["standard", "auto"]
    found = [Unit("layout", [layout], 60, "machine.log", judge=by_layout, keep="cudnn_layout.txt")]
    for algorithm in algorithms:
        found += shards(setting, "tests", "openrnn_gpu_tests", 6, algorithm)
        found += shards(setting, "conformance", "openrnn_gpu_conformance", 8, algorithm)
    chosen = choosing(setting.algorithm)
    return [*found, graphs(setting), Unit("training across engines", across, 90, "machine.log", chosen)]


def step(setting: Setting) -> Unit:
    """A training step of the demo's kind: how much of the time the GPU is busy."""
    command = [sys.executable, "-m", "gpu.check.busy", setting.program("openrnn_gpu_bench")]
    command += ["--reduced"] if setting.reduced else []  # no goal is spoken of then
    return Unit("training step", command, 60, "machine.log", choosing(setting.algorithm))


def benchmark(setting: Setting, seconds: float) -> Unit:
    """Against PyTorch, for so many seconds; what is left a later call does."""
    command = [sys.executable, "-m", "gpu", "--program", setting.program("openrnn_gpu_bench")]
    command += ["--lines", str(setting.out / "benchmark.jsonl"), "--seconds", f"{seconds:.0f}"]
    command += ["--report", str(setting.out / "benchmark.md")]
    command += ["--reduced", "--torch", "device=cpu"] if setting.reduced else []
    # The last group may begin just before its time is over.
    return Unit("benchmark", command, seconds + 60, "machine.log", choosing(setting.algorithm),
                by_benchmark)  # fmt: skip
