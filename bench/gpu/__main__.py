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

from gpu import measure, report
from gpu.lines import PASSES, Group, groups
from peers.protocol import Worker, WorkerError

LINE_SECONDS = 0.35  # of the turns of one pass


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="gpu", description=__doc__)
    parser.add_argument("--program", type=Path, required=True, help="openrnn_gpu_bench")
    parser.add_argument("--lines", type=Path, required=True, help="JSON lines: kept and added to")
    parser.add_argument("--seconds", type=float, default=1e9, help="no group begins after these")
    parser.add_argument("--report", type=Path, help="Markdown to write")
    parser.add_argument("--log", type=Path, default=Path("/dev/null"), help="what workers complain")
    parser.add_argument("--reduced", action="store_true", help="two small networks alone")
    parser.add_argument("--ours", default="", help="further words of our set-up")
    parser.add_argument("--torch", default="", help="further words of PyTorch's set-up")
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


def start(options: argparse.Namespace) -> dict[str, Worker]:
    """Both processes."""
    root = str(Path(__file__).resolve().parents[1])
    theirs = dict(os.environ, PYTHONPATH=root)
    # Ours may need libraries from inside PyTorch's packages; PyTorch finds its own.
    theirs.pop("LD_LIBRARY_PATH", None)
    theirs |= {"LD_LIBRARY_PATH": path} if (path := os.environ.get("GPU_CHECK_OLD_PATH")) else {}
    python = [sys.executable, "-m", "gpu.torch_side"]
    return {
        "ours": Worker([str(options.program)], dict(os.environ), options.log, stopping=False),
        "torch": Worker(python, theirs, options.log, stopping=False),
    }


def missing_groups(options: argparse.Namespace, known: list[dict[str, Any]]) -> list[Group]:
    """Those that no earlier call has measured."""
    there = {line["line"] for line in known}
    return [g for g in groups(options.reduced) if any(g.line(p) not in there for p in PASSES)]


def run(options: argparse.Namespace, missing: list[Group], begin: float) -> None:
    """Measures until the time is over. Every line keeps what the sides say of themselves."""
    workers = start(options)
    try:
        about = {name: worker.ask("about") for name, worker in workers.items()}
        with tempfile.TemporaryDirectory(prefix="openrnn-gpu-") as folder:
            sides = measure.Sides(
                workers, Path(folder) / "work", {"ours": options.ours, "torch": options.torch}
            )
            for number, group in enumerate(missing):
                if time.monotonic() - begin > options.seconds:
                    break
                if not all(worker.alive for worker in workers.values()):
                    sides.workers = workers = restart(options, workers)
                print(f"[{number + 1}/{len(missing)}] {group.name}", flush=True)
                found = measure.run(group, sides, LINE_SECONDS)
                with options.lines.open("a", encoding="utf-8") as file:
                    file.writelines(json.dumps(line | {"about": about}) + "\n" for line in found)
    finally:
        for worker in workers.values():
            worker.kill()


def restart(options: argparse.Namespace, old: dict[str, Worker]) -> dict[str, Worker]:
    """After one of them has ended."""
    for worker in old.values():
        worker.kill()
    return start(options)


def main() -> int:
    """0 when every line is there and counts, 3 when some are left, 1 when one does not count."""
    begin, options = time.monotonic(), parse()
    missing = missing_groups(options, read_lines(options.lines))
    try:
        if missing:
            run(options, missing, begin)
    except WorkerError as error:
        print(f"[gpu] {error}", file=sys.stderr)
        return 1
    lines = read_lines(options.lines)
    expected = len(PASSES) * len(list(groups(options.reduced)))
    if options.report:
        options.report.write_text(report.markdown(lines, expected), "utf-8")
    for sentence in report.goal_lines(report.goals(lines, expected)):
        print(sentence)
    if not all(report.counts(line) for line in lines):
        return 1
    return 0 if len(lines) >= expected else 3


if __name__ == "__main__":
    sys.exit(main())
