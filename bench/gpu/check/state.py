"""What is known so far: results.json and summary.txt, written again after every unit."""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

STATUSES = ("passed", "failed", "skipped", "left")
# Beside the two of the state itself.
FILES = ("cudnn_layout.txt", "benchmark.md", "benchmark.jsonl", "machine.log", "tests.log",
         "conformance.log")  # fmt: skip


@dataclass
class Outcome:
    """Of one unit."""

    status: str  # of STATUSES
    seconds: float = 0.0
    detail: str = ""


@dataclass
class State:
    """Of one folder of results; a later call with the same bundle and GPU goes on with it."""

    out: Path
    bundle: str
    machine: dict[str, str] = field(default_factory=dict)
    units: dict[str, Outcome] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)
    call: int = 1
    gpu: str = ""  # as the doctor names it, and its libraries

    @classmethod
    def read(cls, out: Path, bundle: str) -> "State":
        """From the folder, or afresh where it holds none or another bundle's."""
        state = cls(out, bundle)
        try:
            known = json.loads((out / "results.json").read_text("utf-8"))
        except (OSError, ValueError):
            known = {}
        if known.get("bundle") != bundle:
            state.forget()
            return state
        state.units = {name: Outcome(**found) for name, found in known["units"].items()}
        state.extra, state.call, state.gpu = known["extra"], known["call"] + 1, known.get("gpu", "")
        return state

    def forget(self) -> None:
        """What was found with another bundle or GPU, the files too: none of it may count as new."""
        self.units, self.extra, self.call, self.gpu = {}, {}, 1, ""
        for name in FILES:
            (self.out / name).unlink(missing_ok=True)

    def is_of(self, gpu: str) -> bool:
        """Whether that GPU may go on with this; the first one gives its name to it."""
        self.gpu = self.gpu or gpu
        return self.gpu == gpu

    def done(self, name: str) -> bool:
        """Whether an earlier call has an answer that stays."""
        return name in self.units and self.units[name].status in ("passed", "failed")

    def set(self, name: str, outcome: Outcome) -> None:
        """Keeps an outcome, on the disk too."""
        self.units[name] = outcome
        self.write()

    def count(self, status: str) -> int:
        """Units of that status."""
        return sum(unit.status == status for unit in self.units.values())

    def exit_code(self) -> int:
        """0: all passed; 1: one failed; 3: some are left."""
        if self.count("failed") or not self.count("passed"):
            return 1
        return 3 if self.count("left") else 0

    def summary(self) -> str:
        """For people."""
        lines = [f"{name}: {what}" for name, what in self.machine.items()]
        lines += [f"call {self.call}", ""]
        for name, unit in self.units.items():
            took = f"{unit.seconds / 60:6.2f} min"
            time = took if unit.status in ("passed", "failed") else " " * len(took)
            status = "left for a second call" if unit.status == "left" else unit.status
            lines.append(f"{status:<8} {time}  {name}" + (f": {unit.detail}" if unit.detail else ""))
        lines += ["", *self.extra.get("goals", [])]
        counts = ", ".join(f"{self.count(s)} {s}" for s in STATUSES if self.count(s))
        words = {0: "all passed", 1: "FAILED", 3: "not finished: call again with the same folder"}
        return "\n".join([*lines, f"{words[self.exit_code()]} ({counts or 'nothing ran'})", ""])

    def write(self) -> None:
        """Both files, each whole at any moment."""
        known = {"bundle": self.bundle, "gpu": self.gpu, "call": self.call, "machine": self.machine,
                 "units": {name: asdict(unit) for name, unit in self.units.items()},
                 "extra": self.extra}  # fmt: skip
        replace(self.out / "results.json", json.dumps(known, indent=1) + "\n")
        replace(self.out / "summary.txt", self.summary())


def replace(path: Path, text: str) -> None:
    """Writes beside and renames."""
    part = path.with_name(path.name + ".part")
    part.write_text(text, "utf-8")
    os.replace(part, path)
