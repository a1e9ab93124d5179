"""Times our GPU engine against PyTorch's, line by line, into a file that a later run goes on with.

python3 -m gpu --program openrnn_gpu_bench --lines FILE [--seconds S] [--report FILE]
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from gpu import measure, report, signals
from gpu.check import libraries
from gpu.lines import PASSES, Group, groups
from peers.protocol import Worker, WorkerError

LINE_SECONDS = 0.35  # of the turns of one pass
LOG_LINES = 400  # of what each process said, our choices of algorithms among it


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="gpu", description=__doc__)
    parser.add_argument("--program", type=Path, required=True, help="openrnn_gpu_bench")
    parser.add_argument("--lines", type=Path, required=True, help="JSON lines, appended to")
    parser.add_argument("--seconds", type=float, default=1e9, help="no new group after these")
    parser.add_argument("--report", type=Path, help="Markdown to write")
    parser.add_argument("--reduced", action="store_true", help="only two small networks")
    parser.add_argument("--device", default="gpu:0", help="device of our side")
    parser.add_argument("--torch", default="", help="further set-up options of PyTorch")
    return parser.parse_args()


def read_lines(path: Path) -> list[dict[str, Any]]:
    """What earlier calls found; a line that was cut off by a kill is not there."""
    found = []
    for text in path.read_text("utf-8").splitlines() if path.exists() else []:
        try:
            found.append(json.loads(text))
        except json.JSONDecodeError:
            continue
    return found


def start(options: argparse.Namespace, logs: Path) -> dict[str, Worker]:
    """Both processes."""
    root = str(Path(__file__).resolve().parents[1])
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH", "")])]
    theirs = libraries.without_ours(os.environ) | {"PYTHONPATH": ":".join(paths)}
    python = [sys.executable, "-m", "gpu.torch_side"]
    ours = [str(options.program), "serve", options.device]
    return {
        "ours": Worker(ours, dict(os.environ), logs / "ours.log", stopping=False),
        "torch": Worker(python, theirs, logs / "torch.log", stopping=False),
    }


def complaints(logs: Path) -> str:
    """What the processes wrote to their logs, the last of it."""
    found = []
    for path in sorted(logs.glob("*.log")):
        lines = path.read_text("utf-8", "replace").splitlines()[-LOG_LINES:]
        found += [f"{path.stem}: {line}" for line in lines]
    return "\n".join(found)


def missing_groups(options: argparse.Namespace, known: list[dict[str, Any]]) -> list[Group]:
    """Those that no earlier call has measured."""
    there = {line["line"] for line in known}
    return [g for g in groups(options.reduced) if any(g.line(p) not in there for p in PASSES)]


def run(options: argparse.Namespace, missing: list[Group], begin: float, folder: Path) -> None:
    """Measures until the time is over. Every line keeps what the sides say of themselves."""
    sides = measure.Sides(start(options, folder), folder / "work", {"torch": options.torch})
    try:
        about = {name: worker.ask("about") for name, worker in sides.workers.items()}
        for number, group in enumerate(missing):
            if time.monotonic() - begin > options.seconds:
                break
            if not all(worker.alive for worker in sides.workers.values()):
                sides.close()
                sides.workers = start(options, folder)
            print(f"[{number + 1}/{len(missing)}] {group.name}", flush=True)
            found = measure.run(group, sides, LINE_SECONDS)
            with options.lines.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(line | {"about": about}) + "\n" for line in found)
    finally:
        sides.close()


def scratch() -> str:
    """Where temporary files go; the workers are told of them in words that end at a blank."""
    places = (tempfile.gettempdir(), "/var/tmp", "/tmp")
    return next(place for place in places if len(place.split()) == 1)


def measure_missing(options: argparse.Namespace, begin: float) -> str:
    """Adds to the file of lines; why it could not, or nothing."""
    missing = missing_groups(options, read_lines(options.lines))
    if not missing:
        return ""
    with tempfile.TemporaryDirectory(prefix="openrnn-gpu-", dir=scratch()) as name:
        try:
            run(options, missing, begin, Path(name))
        except WorkerError as error:
            return str(error)
        finally:
            print(complaints(Path(name)), flush=True)
    return ""


def main() -> int:
    """0 when every line is there and none fails, 3 when some are left, 1 when one fails."""
    begin, options = time.monotonic(), parse()
    signals.leave_tidily()
    if problem := measure_missing(options, begin):
        print(problem)
        return 1
    lines = read_lines(options.lines)
    expected = len(PASSES) * len(list(groups(options.reduced)))
    if options.report:
        options.report.write_text(report.markdown(lines, expected), "utf-8")
    failed = sum(map(report.fails, lines))
    skipped = sum(line.get("skipped", False) for line in lines)
    words = [f"{len(lines)} of {expected} lines", f"{failed} of them do not count"]
    print(", ".join([*words, *([f"{skipped} skipped: this GPU has no tf32"] if skipped else [])]))
    for sentence in [] if options.reduced else report.goal_lines(report.goals(lines, expected)):
        print(sentence)
    if failed:
        return 1
    return 0 if len(lines) >= expected else 3


if __name__ == "__main__":
    sys.exit(main())
