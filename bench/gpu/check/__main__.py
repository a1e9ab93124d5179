"""Tests the GPU engine of a bundle on this machine.

gpu_check OUT [--minutes N]: summary.txt, results.json, cudnn_layout.txt, the benchmark and the
logs go to the folder OUT. What does not fit into the time is left, and a second call with the same
OUT goes on there. Exit status: 0 all passed, 1 something failed, 3 something is left, 2 usage.
"""

import argparse
import contextlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from gpu import signals
from gpu.check import libraries, units
from gpu.check.run import Unit, last_line, run
from gpu.check.state import Outcome, State

MINUTES = 460.0 / 60.0  # of a call, of the 8 that it may take
BENCHMARK_LEAST = 20.0  # with less it is not begun; as much is kept for its last lines
MOST_KEPT = 0.02  # of the budget, for writing
PROBE_SECONDS = 2 * BENCHMARK_LEAST  # an import of PyTorch from a slow disk

ALGORITHMS = ("auto", "standard", "persist_static", "persist_static_small_h")


def runnable(programs: Path, stack: contextlib.ExitStack) -> Path:
    """The folder, or a copy of it for the time of the call where a transfer has lost mode bits."""
    files = list(programs.iterdir())
    if all(os.access(path, os.X_OK) for path in files):
        return programs
    copy = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gpu_check")))
    for path in files:
        shutil.copyfile(path, copy / path.name)
        (copy / path.name).chmod(0o755)
    return copy


def parse(arguments: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="gpu_check", description=__doc__)
    parser.add_argument("out", type=Path, metavar="OUT", help="folder of the results")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="time limit of this call")
    parser.add_argument("--only", action="append", default=[], metavar="UNIT",
                        help="run units whose names begin so; repeatable")  # fmt: skip
    parser.add_argument("--algorithm", default="", choices=ALGORITHMS,
                        help="cuDNN algorithm (default: standard, then auto)")  # fmt: skip
    parser.add_argument("--bundle", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--reduced", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


class Check:
    """One call."""

    def __init__(self, options: argparse.Namespace, stack: contextlib.ExitStack) -> None:
        self.begin = time.monotonic()
        bundle: Path = options.bundle
        self.budget: float = 60.0 * options.minutes * (1.0 - MOST_KEPT)
        self.only: tuple[str, ...] = tuple(options.only)
        options.out.mkdir(parents=True, exist_ok=True)
        self.setting = units.Setting(runnable(bundle / "bin", stack), options.out.resolve(),
                                     options.reduced, options.algorithm)  # fmt: skip
        identity = (bundle / "bundle.txt").read_text("utf-8").strip()
        identity += f"\nalgorithm {options.algorithm}" if options.algorithm else ""
        self.state = State.read(self.setting.out, identity)
        self.environment = units.environment(os.environ, bundle / "lib")
        self.describe(identity)

    def describe(self, identity: str) -> None:
        """Finds the libraries, and says what was found."""
        found = libraries.find(os.environ, libraries.loader_cache(), libraries.wheel_folders())
        self.environment |= libraries.variables(found, os.environ)
        if (old := os.environ.get("LD_LIBRARY_PATH")) is not None:
            self.environment[libraries.OLD_PATH] = old
        self.state.machine = {"bundle": identity.replace("\n", ", ")}
        if self.setting.reduced:
            self.state.machine["form"] = "reduced: it says nothing of a GPU"
        self.state.machine |= {"system": platform.platform(), "python": sys.version.split()[0]}
        self.state.machine |= {name: place or "not found" for name, place in found.items()}

    def remaining(self) -> float:
        """Seconds of the budget."""
        return self.budget - (time.monotonic() - self.begin)

    def perform(self, unit: Unit) -> Outcome:
        """Runs a unit unless an earlier call has, and keeps what it gave."""
        if self.state.done(unit.name):
            return self.state.units[unit.name]
        outcome = run(unit, self.setting.out, self.environment, self.remaining())
        self.keep(unit.name, outcome)
        return outcome

    def keep(self, name: str, outcome: Outcome) -> None:
        """On the disk and on the screen."""
        self.state.set(name, outcome)
        print(f"[gpu_check] {outcome.status:<8} {name}: {outcome.detail}", flush=True)

    def benchmark(self) -> None:
        """Against PyTorch, with a clock of its own that stops between lines."""
        if self.state.done("benchmark"):
            return
        missing = torch_missing()
        if not missing and self.remaining() >= PROBE_SECONDS:
            missing = torch_unusable(self.environment, self.setting.reduced)
        seconds = self.remaining() - BENCHMARK_LEAST
        if missing:
            self.keep("benchmark", Outcome("skipped", 0.0, missing))
        elif seconds < BENCHMARK_LEAST:
            self.keep("benchmark", Outcome("left"))
        else:
            self.perform(units.benchmark(self.setting, seconds))

    def goals(self) -> list[str]:
        """Every sentence about a goal that the log has, the last of each."""
        log = self.setting.out / "machine.log"
        text = log.read_text("utf-8", "replace") if log.exists() else ""
        found = {}
        for line in text.splitlines():
            if line.startswith(units.GOAL_MARKS):
                found[line.split(": ")[1]] = line
        return [f"goal {line}" for line in found.values()]

    def ready(self) -> Outcome:
        """The doctor's word; the machine may have changed since the last call."""
        self.state.units.pop("doctor", None)
        found = self.perform(units.doctor(self.setting))
        if found.status != "passed" or self.state.is_of(found.detail):
            return found
        print(f"[gpu_check] this folder is of '{self.state.gpu}': all begins again", flush=True)
        self.state.forget()
        return self.ready()

    def wants(self, name: str) -> bool:
        """Whether the call is for that unit."""
        return not self.only or name.startswith(self.only)

    def run(self) -> int:
        """Everything, or only what is wrong with the machine."""
        ready = self.ready()
        for unit in filter(lambda unit: self.wants(unit.name), units.checks(self.setting)):
            if ready.status == "passed":
                self.perform(unit)
            elif not self.state.done(unit.name):
                self.state.units[unit.name] = Outcome("left", 0.0, "the GPU engine is not ready")
        if ready.status == "passed":
            if self.wants("training step"):
                self.perform(units.step(self.setting))
            if self.wants("benchmark"):
                self.benchmark()
            self.state.extra["goals"] = self.goals()
        self.state.write()
        print(self.state.summary(), end="")
        return self.state.exit_code()


def torch_missing() -> str:
    """What this Python lacks to measure PyTorch; empty when it has all. Nothing is imported."""
    lacking = [name for name in ("torch", "numpy") if importlib.util.find_spec(name) is None]
    return f"{' and '.join(lacking)} not found by {sys.executable}" if lacking else ""


def torch_unusable(environment: Mapping[str, str], reduced: bool) -> str:
    """Why PyTorch, which is there, cannot be measured. It is imported by another process."""
    sees = "import numpy, torch\nprint(torch.cuda.is_available())"
    try:
        probe = subprocess.run(
            [sys.executable, "-c", sees], env=libraries.without_ours(environment),
            capture_output=True, text=True, errors="replace", timeout=PROBE_SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"PyTorch cannot be imported within {PROBE_SECONDS:.0f} s"
    if probe.returncode != 0:
        why = last_line(probe.stderr) or f"exit status {probe.returncode}"
        return f"PyTorch cannot be imported: {why}"
    seen = reduced or last_line(probe.stdout) == "True"
    return "" if seen else f"the PyTorch of {sys.executable} sees no GPU"


def main(arguments: list[str]) -> int:
    """One call."""
    options = parse(arguments)
    if options.bundle is None or not (options.bundle / "bundle.txt").is_file():
        print("[gpu_check] no bundle here, expected the folder that scripts/gpu_bundle made",
              file=sys.stderr)  # fmt: skip
        return 2
    signals.leave_tidily()
    with contextlib.ExitStack() as stack:
        return Check(options, stack).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
