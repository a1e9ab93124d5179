"""Running one unit: a program with a time limit, its output in a log."""

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gpu import signals
from gpu.check.state import Outcome

LOG_BYTES = 4 << 20  # of one log; what is more is cut out of the middle
LEAST_SECONDS = 5.0  # with less than this no unit begins
GRACE = 8.0  # seconds that a program has to tidy up when it is ended

Judge = Callable[[int, str], Outcome]


@dataclass(frozen=True)
class Unit:
    """One piece of work, small enough to be left for a second call."""

    name: str
    command: list[str]
    limit: float
    log: str
    environment: Mapping[str, str] = field(default_factory=dict)
    judge: Judge | None = None  # of exit status and output; none: 0 passes
    keep: str = ""  # a file for the output of a unit that passes, in place of the log


def last_line(text: str) -> str:
    """The last one that says something."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


def by_status(code: int, output: str) -> Outcome:
    """0 passes; the last line says what happened."""
    return Outcome("passed" if code == 0 else "failed", 0.0, last_line(output))


def by_tests(code: int, output: str) -> Outcome:
    """A GoogleTest program: something must have run, and each kind is counted."""
    ran = {kind: len(set(re.findall(rf"^\[ *{mark} *\] (\S+\.\S+)", output, re.MULTILINE)))
           for kind, mark in (("passed", "OK"), ("skipped", "SKIPPED"), ("failed", "FAILED"))}
    detail = ", ".join(f"{count} {kind}" for kind, count in ran.items() if count)
    if code != 0 or ran["failed"]:
        first = re.search(r"^\[ *FAILED *\] (\S+)", output, re.MULTILINE)
        why = first.group(1) if first else f"exit status {code}, {last_line(output)}"
        return Outcome("failed", 0.0, f"{detail or 'no test ended'}; first: {why}")
    if not ran["passed"]:
        return Outcome("failed", 0.0, f"no test ran ({detail or 'none found'})")
    return Outcome("passed", 0.0, detail)


def last_tried(output: str) -> str:
    """The algorithm that was announced last, as a part of a sentence; empty when none was."""
    found = re.findall(r"^\[openrnn\] tries (.*)$", output, re.MULTILINE)
    return f"; the last that was tried: {found[-1]}" if found else ""


def append_log(path: Path, title: str, text: str) -> None:
    """Adds a section, and keeps head and tail of a log that has grown too long."""
    old = path.read_text("utf-8", "replace") if path.exists() else ""
    whole = f"{old}== {title}\n{text}\n"
    if len(whole) > LOG_BYTES:
        half = LOG_BYTES // 2
        whole = f"{whole[:half]}\n[... cut ...]\n{whole[-half:]}"
    path.write_text(whole, "utf-8")


def end_group(process: "subprocess.Popen[str]") -> str:
    """Ends the program and all that it has started; what it had printed."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        return process.communicate(timeout=GRACE)[0]
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()[0]


def output_within(process: "subprocess.Popen[str]", seconds: float) -> tuple[str, bool]:
    """What the program printed, and whether it had to be ended."""
    try:
        return process.communicate(timeout=seconds)[0], False
    except subprocess.TimeoutExpired:
        return end_group(process), True


@contextlib.contextmanager
def started(unit: Unit, environment: Mapping[str, str]) -> Iterator["subprocess.Popen[str]"]:
    """The program of a unit. It never outlives the block, not even where that is left by a signal
    that comes while the program begins."""
    process = None
    try:
        with signals.held():
            process = subprocess.Popen(
                unit.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                errors="replace", env={**environment, **unit.environment}, start_new_session=True,
            )  # fmt: skip
        yield process
    except BaseException:  # it leads a session of its own, which no Ctrl-C reaches
        if process:
            end_group(process)
        raise


def run(unit: Unit, out: Path, environment: Mapping[str, str], remaining: float) -> Outcome:
    """The outcome; 'left' when the call's time is too short, and not the unit's own limit."""
    if remaining < LEAST_SECONDS:
        return Outcome("left")
    allowed = min(unit.limit, remaining)
    begin = time.monotonic()
    try:
        with started(unit, environment) as process:
            output, late = output_within(process, allowed)
    except OSError as error:
        return Outcome("failed", 0.0, f"{unit.command[0]} cannot be started: {error.strerror}")
    seconds = time.monotonic() - begin
    if unit.keep and process.returncode == 0:
        (out / unit.keep).write_text(output, "utf-8")
    else:
        append_log(out / unit.log, unit.name, output)
    if late and allowed < unit.limit:
        return Outcome("left", seconds, "the call's time was over")
    if late:
        return Outcome("failed", seconds,
                       f"not done within {unit.limit:.0f} s{last_tried(output)}")  # fmt: skip
    outcome = (unit.judge or by_status)(process.returncode, output)
    died = last_tried(output) if process.returncode < 0 else ""
    return Outcome(outcome.status, seconds, outcome.detail + died)
