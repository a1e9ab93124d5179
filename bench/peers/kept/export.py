"""A record of a finished run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from peers.kept.record import FORMAT, Record, write
from peers.report.goals import Goal
from peers.report.results import ARITHMETIC, LineResult, SideResult, roofline_percent
from peers.stats import Ratio

NEAR = 1.5  # a peer this many times slower than the best one is kept as its ratio alone


def short(value: float, digits: int = 3) -> float | int:
    """Few digits; a whole number where it is one."""
    found = float(f"{value:.{digits}g}")
    return int(found) if found.is_integer() else found


def compared(ratio: Ratio, best: float) -> list[float | int] | float | int:
    """Ratio and interval, finer around 1, where a line is won or lost."""
    ends = [ratio.value, ratio.low, ratio.high]
    found = [short(round(each, 3), 4 if 0.5 < each < 2 else 3) for each in ends]
    return found if ratio.value <= NEAR * best else found[0]


def own_pairs(result: LineResult) -> list[tuple[str, str]]:
    """Which of our sides are compared with each other, as the report does."""
    own = [side.key for side in result.sides if side.role == "own"]
    if result.line.group in ARITHMETIC:
        cpp = "OpenRNN C++"
        return [(key, cpp if key.startswith(cpp) else "OpenRNN") for key in own]
    if not result.line.group.startswith("dropin"):
        return []
    return [(side.key, key) for side in result.sides if side.role == "ours" for key in own]


def entry_of(result: LineResult) -> Record:
    """What is kept of a line."""
    if result.line.work == "memory":
        return {"memory": {s.key: round(s.memory / 1e6) for s in result.sides if s.memory}}
    sides: dict[str, dict[str, Any]] = {}

    def of(side: SideResult) -> dict[str, Any]:
        times = side.times
        ms = [short(each * 1e-6) for each in (times.low, times.median, times.high)]
        return sides.setdefault(side.key, {"ms": ms})

    best = result.best()
    for peer, ratio in result.peers():
        ours = result.challenger(peer)
        assert ours is not None
        of(ours).setdefault("peers", {})[peer.key] = compared(ratio, best[1].value if best else 1)
    for key, over in own_pairs(result):
        side, found = result.side(key), result.speedup(key, over)
        if side and found:
            of(side).setdefault("own", {})[over] = compared(found, found.value)
    if not sides and (ours := result.ours(True)) is not None:
        of(ours)
    entry: Record = {"sides": sides} if sides else {}
    if (roof := roofline_percent(result)) is not None:
        entry["roof"] = short(roof)
    wrong = sorted(side.key for side in result.sides if not side.reason and not side.agrees)
    if wrong:
        entry["disagree"] = wrong
    if result.line.group == "accuracy":
        errors = {s.key: s.errors for s in result.sides if s.errors and not s.reason}
        entry["errors"] = {
            key: {name: float(f"{value:.2g}") for name, value in found.items()}
            for key, found in errors.items()
        }
    return entry


def place_of(result: LineResult) -> tuple[str, str, str]:
    """Group, network, pass and threads."""
    line = result.line
    work = "forward + backward" if line.work == "training" else line.work
    network = f"{line.network.name}, {line.note}" if line.note else line.network.name
    return line.group, network, f"{work}, {line.threads}"


def is_drop_in(result: LineResult) -> bool:
    """Whether it is a line of a file of its own: they are many, and of frameworks alone."""
    return result.line.group.startswith("dropin")


def versions_of(results: Sequence[LineResult], packages: Mapping[str, str]) -> dict[str, str]:
    """Of the packages, and of oneDNN, whose package has another one."""
    found = {name: text for name, text in packages.items() if text != "not there"}
    for side in (side for result in results for side in result.sides):
        library, _, version = side.about.partition(" ")
        if library == "oneDNN":
            found[library] = version
    return found


def goal_entry(goal: Goal) -> Record:
    """Of one that was measured, as the report has it."""
    assert goal.found is not None
    found = round(goal.found, 3)
    return {
        "text": goal.text, "wanted": goal.wanted, "found": found, "lines": goal.lines,
        "state": goal.state, "most": goal.at_most,
    }  # fmt: skip


def record_of(
    results: Sequence[LineResult], goals: Sequence[Goal], setting: Mapping[str, Any],
    machine: Mapping[str, Any],
) -> Record:  # fmt: skip
    """The whole file; `setting` has versions, quick, and where it is known the commit."""
    lines: dict[str, dict[str, dict[str, Record]]] = {}
    for result in results:
        group, network, call = place_of(result)
        lines.setdefault(group, {}).setdefault(network, {})[call] = entry_of(result)
    return {
        "format": FORMAT,
        "machine": dict(machine),
        "date": max(result.date for result in results)[:10],
        "versions": versions_of(results, setting["versions"]),
        "commit": setting.get("commit", ""),
        "quick": bool(setting.get("quick")),
        "lines": lines,
        "goals": [goal_entry(goal) for goal in goals if goal.found is not None],
    }


def keep(
    results: Sequence[LineResult], goals: Sequence[Goal], setting: Mapping[str, Any],
    machine: Mapping[str, Any], folder: Path, name: str,
) -> list[Path]:  # fmt: skip
    """Writes NAME.json, and NAME_dropin.json where there are lines of that kind."""
    written = []
    for drop_in in (False, True):
        mine = [result for result in results if is_drop_in(result) == drop_in]
        of_mine = [goal for goal in goals if goal.text.startswith("drop-in") == drop_in]
        if mine:
            record = record_of(mine, of_mine, setting, machine)
            written.append(write(record, folder, f"{name}_dropin" if drop_in else name))
    return written
