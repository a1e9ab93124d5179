"""The other end of the protocol of `workers.server`: one process of one side."""

import ctypes
import os
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import IO


PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """In the child: a stopped worker must not outlive whoever would let it go on."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Refusal(Exception):
    """The side cannot do this; the text says why."""


class WorkerError(Exception):
    """The side failed: it ended, did not answer in time, or said so."""


class Worker:
    """A process that is stopped whenever it is not asked anything, unless it idles without cost."""

    def __init__(
        self, command: list[str], environment: dict[str, str], log: Path, stopping: bool = True
    ) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        self._stopping = stopping
        self._log, self.log_path = log.open("ab"), log
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log,
                env=environment, start_new_session=True, preexec_fn=die_with_parent,
            )  # fmt: skip
        except OSError as error:
            raise WorkerError(f"{command[0]} cannot be started: {error.strerror}") from error
        self._rest = b""

    @property
    def alive(self) -> bool:
        """Whether the process is still there."""
        return self._process.poll() is None

    def stop(self) -> None:
        """Takes it off the processor."""
        if self._stopping and self.alive:
            os.killpg(self._process.pid, signal.SIGSTOP)
            # Until all of its threads have stopped, or it has ended (which is left for poll).
            os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """Lets it go on."""
        if self._stopping and self.alive:
            os.killpg(self._process.pid, signal.SIGCONT)

    def _read_line(self, limit: float) -> str:
        stream: IO[bytes] | None = self._process.stdout
        assert stream is not None
        end = time.monotonic() + limit
        while b"\n" not in self._rest:
            ready, _, _ = select.select([stream], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                self.kill()
                raise WorkerError(f"no answer within {limit:.0f} s")
            part = os.read(stream.fileno(), 1 << 20)
            if not part:
                self.kill()
                raise WorkerError(f"the process ended{self._last_words()}")
            self._rest += part
        line, self._rest = self._rest.split(b"\n", 1)
        return line.decode("utf-8", "replace")

    def _last_words(self) -> str:
        lines = self.log_path.read_text("utf-8", "replace").strip().splitlines()
        return f": {lines[-1][:200]}" if lines else ""

    def ask(self, command: str, limit: float = 300.0) -> str:
        """The answer to a command, the process running meanwhile. Raises Refusal, WorkerError."""
        if not self.alive:
            raise WorkerError(f"the process ended{self._last_words()}")
        self.resume()
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(command.encode() + b"\n")
            self._process.stdin.flush()
            line = self._read_line(limit)
        except BrokenPipeError as error:
            raise WorkerError(f"the process ended{self._last_words()}") from error
        finally:
            self.stop()
        word, _, rest = line.partition(" ")
        if word == "refused":
            raise Refusal(rest)
        if word == "error":
            raise WorkerError(rest)
        return rest

    def times(self, count: int, warm: int, limit: float = 300.0) -> list[float]:
        """Nanoseconds of `count` calls after `warm` untimed ones."""
        return [float(word) for word in self.ask(f"run {count} {warm}", limit).split()]

    def kill(self) -> None:
        """Ends the process, whatever it does."""
        if self.alive:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._log.close()


class Pool:
    """The workers of one number of threads, started when first asked for."""

    def __init__(
        self, commands: dict[str, list[str]], environment: dict[str, str], logs: Path
    ) -> None:
        self._commands, self._environment, self._logs = commands, environment, logs
        self._threads = 0
        self._workers: dict[str, Worker] = {}

    def use_threads(self, threads: int) -> None:
        """Ends the workers of another number of threads."""
        if threads != self._threads:
            self.close()
            self._threads = threads

    def start(self, name: str) -> Worker:
        """A new process, which the caller ends. Name: of the worker, or 'worker#which'."""
        threads = str(self._threads)
        environment = dict(self._environment)
        environment |= {"PEERS_THREADS": threads, "OMP_NUM_THREADS": threads}
        environment |= {"MKL_NUM_THREADS": threads, "OPENRNN_NUM_THREADS": threads}
        log = self._logs / f"{name.replace('#', '-')}-{threads}.log"
        return Worker(self._commands[name.split("#")[0]], environment, log)

    def get(self, name: str) -> Worker:
        """The running one of that name; a process that ended is started again."""
        worker = self._workers.get(name)
        if worker is None or not worker.alive:
            worker = self._workers[name] = self.start(name)
        return worker

    def close(self) -> None:
        """Ends all of them."""
        for worker in self._workers.values():
            worker.kill()
        self._workers.clear()
