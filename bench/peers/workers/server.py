"""What a worker in Python is: a program that is told on stdin what to set up, to run and to write.

One command a line, one answer a line:

    setup key=value ...    ok KERNEL | refused REASON       makes the job, replacing the last one
    run N W                times NS NS ...                  W calls untimed, then N timed ones
    output FOLDER          ok                               one call; its results as .npy files
    choose PASS            ok                               what a call is, where a job knows several
    mark | reset           ok                               memory: baseline; peak starts again
    memory                 bytes N                          peak since reset, above the baseline
    about                  ok VERSIONS
    release                ok                               frees the job
    quit

The same protocol is spoken by the C++ workers.
"""

import ctypes
import gc
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
MOST_ELEMENTS = 1 << 20


class Refused(Exception):
    """This side cannot do the task; the text says why."""


@dataclass(frozen=True)
class Task:
    """What to set up, from the words of a command."""

    options: Mapping[str, str]

    @classmethod
    def parse(cls, words: list[str]) -> "Task":
        """From `key=value` words."""
        return cls(dict(word.split("=", 1) for word in words))

    def text(self, key: str, default: str = "") -> str:
        """An option as text."""
        return self.options.get(key, default)

    def number(self, key: str, default: int = 0) -> int:
        """An option as an integer."""
        return int(self.options.get(key, default))

    @property
    def training(self) -> bool:
        """Whether a call is forward and backward."""
        return self.text("pass") == "training"

    @property
    def lengths_kind(self) -> str:
        """How padded rows are treated: 'none', 'plain' (they are computed), 'given', 'packed'."""
        return self.text("lengths", "none")

    def array(self, name: str) -> NDArray[np.generic]:
        """An input of the problem."""
        found: NDArray[np.generic] = np.load(Path(self.text("folder")) / f"{name}.npy")
        return found

    def states(self) -> list[NDArray[np.generic]]:
        """Those that a call begins with, h and of an LSTM c [L*D, B, U]; none where they are zero."""
        return [self.array(name) for name in ("h0", "c0") if self.has(name)]

    def has(self, name: str) -> bool:
        """Whether the problem has that input."""
        return (Path(self.text("folder")) / f"{name}.npy").exists()


class Job(Protocol):
    """A task that is set up."""

    kernel: str  # what computes it, for people; no line break

    def call(self) -> None:
        """One repetition."""

    def results(self) -> dict[str, Array]:
        """Of the last call: y, hn, cn; in training dx and dparams, in the problem's layout."""


def thin_step(size: int) -> int:
    """Of so many elements every how-manieth is kept."""
    return (size + MOST_ELEMENTS - 1) // MOST_ELEMENTS | 1


def thin(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """At most about a million elements of a flat array, evenly spread, the same on every side."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat[:: thin_step(flat.size)]


def stored(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """What is written of a result: float64 as it is, anything else as float32."""
    array = np.asarray(array)
    return thin(array if array.dtype == np.float64 else array.astype(np.float32))


def timed(job: Job, count: int, warm: int) -> list[float]:
    """Nanoseconds of each of `count` calls after `warm` untimed ones; a job may have a clock."""
    if (own := getattr(job, "times", None)) is not None:
        return list(own(count, warm))
    for _ in range(warm):
        job.call()
    found: list[float] = []
    for _ in range(count):
        begin = time.perf_counter_ns()
        job.call()
        found.append(time.perf_counter_ns() - begin)
    return found


def status_bytes(field: str) -> int:
    """A field of /proc/self/status that is given in kB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    return 0


def trim() -> None:
    """Gives freed memory back to the system."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


class Server:
    """Answers commands until the input ends."""

    def __init__(self, make: Callable[[Task], Job], about: Callable[[], str]) -> None:
        self._make, self._about = make, about
        self._job: Job | None = None
        self._baseline = 0

    def _setup(self, words: list[str]) -> str:
        self._job = None
        gc.collect()
        try:
            self._job = self._make(Task.parse(words))
        except (Refused, NotImplementedError, TypeError, ValueError, RuntimeError) as error:
            return f"refused {type(error).__name__}: {' '.join(str(error).split())[:300]}"
        return f"ok {self._job.kernel}"

    def _output(self, job: Job, folder: str) -> str:
        job.call()
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        for name, array in job.results().items():
            np.save(path / f"{name}.npy", stored(array))
        return "ok"

    def _memory(self, word: str) -> str:
        if word == "mark":
            trim()
            self._baseline = status_bytes("VmRSS")
        elif word == "reset":
            trim()
            Path("/proc/self/clear_refs").write_text("5")
        else:
            return f"bytes {max(0, status_bytes('VmHWM') - self._baseline)}"
        return "ok"

    def answer(self, line: str) -> str:
        """The answer to one command."""
        word, *rest = line.split()
        if word == "setup":
            return self._setup(rest)
        if word == "about":
            return f"ok {self._about()}"
        if word in ("mark", "reset", "memory"):
            return self._memory(word)
        if word == "release":
            self._job = None
            trim()
            return "ok"
        if self._job is None:
            return f"error {word} without a job"
        if word == "run":
            return "times " + " ".join(map(str, timed(self._job, int(rest[0]), int(rest[1]))))
        if word == "output":
            return self._output(self._job, rest[0])
        if word == "choose" and hasattr(self._job, "choose"):
            self._job.choose(rest[0])
            return "ok"
        return f"error unknown command {word}"

    def serve(self, commands: IO[str], answers: IO[str]) -> None:
        """Until `quit` or the end."""
        for line in commands:
            if line.strip() == "quit":
                return
            try:
                reply = self.answer(line)
            except Exception as error:
                reply = f"error {type(error).__name__}: {' '.join(str(error).split())[:300]}"
            print(reply, file=answers, flush=True)


def main(make: Callable[[Task], Job], about: Callable[[], str]) -> None:
    """Serves stdin; whatever a library prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    Server(make, about).serve(sys.stdin, answers)


def threads_wanted() -> int:
    """Of the process, as whoever started it says."""
    return int(os.environ.get("PEERS_THREADS", "1"))


def set_up_jax() -> None:
    """What XLA reads of the environment; call before JAX is imported."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    if threads_wanted() == 1:
        flags = os.environ.get("XLA_FLAGS", "")
        os.environ["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen=false {flags}".strip()


def pin() -> int:
    """Holds this process to the first cores, as many as PEERS_THREADS says; call before imports."""
    threads = threads_wanted()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    return threads
