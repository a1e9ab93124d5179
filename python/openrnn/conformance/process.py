"""Starts a worker, asks it, and starts it again after a crash or a call that does not end."""

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

WORKER = Path(__file__).parent / "worker.py"


class Backend:
    """A worker with one adapter, on one interpreter, with some environment variables."""

    def __init__(self, adapter: Path, python: str = sys.executable, timeout: float = 60.0,
                 environment: dict[str, str] | None = None):  # fmt: skip
        self._command = [python, str(WORKER), str(adapter)]
        self._environment = {**os.environ, **(environment or {})}
        self._timeout = timeout
        self._process: subprocess.Popen[str] | None = None
        self._folder = tempfile.TemporaryDirectory()

    def __enter__(self) -> "Backend":
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        self._folder.cleanup()

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _line(self, process: "subprocess.Popen[str]", text: str) -> str | None:
        """The answer; '' of a process that has ended, None after too long a time."""
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(text + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            return ""
        ready, _, _ = select.select([process.stdout], [], [], self._timeout)
        return process.stdout.readline() if ready else None

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """The worker's answer, or {"ok": False, "kind": "crash" or "timeout", "text": ..}."""
        if self._process is None:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, text=True, env=self._environment,
            )  # fmt: skip
        process = self._process
        line = self._line(process, json.dumps(request))
        if line is None:
            self._stop()
            return {"ok": False, "kind": "timeout", "text": f"no answer in {self._timeout:g} s"}
        if not line:
            code = process.wait()
            self._stop()
            how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
            return {"ok": False, "kind": "crash", "text": f"the process ended with {how}"}
        answer: dict[str, Any] = json.loads(line)
        return answer

    def version(self) -> dict[str, Any]:
        return self.ask({"do": "version"})

    def compute(self, what: str, case: Path) -> tuple[dict[str, Any], dict[str, Any]]:
        """The answer to 'run' or 'gradients', and the arrays."""
        import numpy as np

        result = Path(self._folder.name) / "result.npz"
        answer = self.ask({"do": what, "case": str(case), "result": str(result)})
        if not answer["ok"]:
            return answer, {}
        with np.load(result) as stored:
            return answer, {name: stored[name] for name in stored.files}
