"""One group: both sides set up once, what they compute compared, then timed in turns."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gpu import agreement
from gpu.lines import PASSES, Group
from peers import problem
from peers.agreement import read
from peers.lines import Line
from peers.protocol import Refusal, Worker, WorkerError
from peers.stats import quartiles

SIDES = ("ours", "torch")
TURN_NS = 20e6  # of calls in one turn
FEWEST_CALLS, MOST_CALLS = 3, 200
WARM_CALLS = 3
FEWEST_ROUNDS, MOST_ROUNDS = 3, 9


@dataclass
class Sides:
    """The two processes, and where they exchange files."""

    workers: dict[str, Worker]
    folder: Path
    options: dict[str, str] = field(default_factory=dict)  # of the set-up of one side
    written: str = ""  # the network whose problem lies in the folder

    def close(self) -> None:
        """Ends both."""
        for worker in self.workers.values():
            worker.kill()

    def write_problem(self, group: Group) -> None:
        """Parameters, input and upstream gradient, once a network."""
        if self.written != group.network.name:
            self.written = ""
            problem.write(Line("gpu", group.network, "training", 0, ()), self.folder)
            self.written = group.network.name


def setup_command(group: Group, folder: Path, options: str) -> str:
    """What a worker is told."""
    n = group.network
    return (
        f"setup folder={folder} cell={n.cell} layers={n.layers} units={n.units} input={n.units} "
        f"batch={n.batch} time={n.time} directions=1 arithmetic={group.arithmetic} {options}"
    ).strip()


def compare(group: Group, sides: Sides) -> dict[str, Any]:
    """Outputs of inference, and everything of a training step."""
    found: dict[str, Any] = {}
    for pass_ in ("inference", "training"):
        folders = {name: sides.folder / f"out-{name}" for name in SIDES}
        for name in SIDES:
            sides.workers[name].ask(f"choose {pass_}")
            sides.workers[name].ask(f"output {folders[name]}")
        found[pass_] = agreement.worst(group, read(folders["ours"]), read(folders["torch"]))
    found["forward"] = found["training"]
    return found


def calls_of_a_turn(worker: Worker) -> int:
    """So many that a turn is long enough to be told from noise."""
    look = float(np.median(worker.times(FEWEST_CALLS, WARM_CALLS)))
    return int(np.clip(TURN_NS / max(look, 1.0), FEWEST_CALLS, MOST_CALLS))


def time_pass(pass_: str, sides: Sides, seconds: float) -> dict[str, list[float]]:
    """Nanoseconds of every call of each side, its turns in between the other's."""
    times: dict[str, list[float]] = {name: [] for name in SIDES}
    for name in SIDES:
        sides.workers[name].ask(f"choose {pass_}")
    counts = {name: calls_of_a_turn(sides.workers[name]) for name in SIDES}
    end = time.monotonic() + seconds
    for number in range(MOST_ROUNDS):
        if number >= FEWEST_ROUNDS and time.monotonic() > end:
            break
        for name in SIDES if number % 2 == 0 else SIDES[::-1]:
            times[name] += sides.workers[name].times(counts[name], WARM_CALLS)
    return times


def as_json(
    group: Group, pass_: str, times: dict[str, list[float]], agrees: dict[str, Any]
) -> dict[str, Any]:
    """One line of the results."""
    line: dict[str, Any] = {"line": group.line(pass_), "network": group.network.name}
    line |= {"cell": group.network.cell, "arithmetic": group.arithmetic, "pass": pass_}
    for name in SIDES:
        q = quartiles(times[name])
        line[name] = {"calls": len(times[name]), "low_ns": q.low, "median_ns": q.median,
                      "high_ns": q.high}  # fmt: skip
    line["ratio"] = line["torch"]["median_ns"] / line["ours"]["median_ns"]
    return line | {"agrees": agrees}


def no_tf32(group: Group, reason: str) -> bool:
    """Whether the GPU is older than the arithmetic, which is nobody's fault."""
    return group.arithmetic == "tf32" and "compute capability" in reason


def refused(group: Group, name: str, reason: str) -> list[dict[str, Any]]:
    """Every line of a group that one side could not do; 'skipped' where no GPU of its age can."""
    how = {"skipped": True} if no_tf32(group, reason) else {}
    return [
        {"line": group.line(p), "network": group.network.name, "cell": group.network.cell,
         "arithmetic": group.arithmetic, "pass": p, "failed": name, "reason": reason} | how
        for p in PASSES
    ]  # fmt: skip


def run(group: Group, sides: Sides, seconds: float) -> list[dict[str, Any]]:
    """The lines of a group. A side that cannot is in them with its reason."""
    name = ""
    try:
        sides.write_problem(group)
        kernels = {}
        for name in SIDES:
            command = setup_command(group, sides.folder, sides.options.get(name, ""))
            kernels[name] = sides.workers[name].ask(command)
        name = "both"
        agrees = compare(group, sides)
        found = [
            as_json(group, p, time_pass(p, sides, seconds), agrees[p]) | {"kernels": kernels}
            for p in PASSES
        ]
        for worker in sides.workers.values():
            worker.ask("release")
    except (Refusal, WorkerError) as error:
        return refused(group, name, str(error))
    return found
