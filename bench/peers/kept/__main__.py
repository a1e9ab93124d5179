"""Keeps figures of `openrnn bench --json`, as bench/results/NAME_alone.json.

Usage: python -m peers.kept NAME FILE... Needs no package; `make bench KEEP=NAME` calls it.
"""

import datetime
import json
import sys
from pathlib import Path
from typing import Any

from peers.kept import machine
from peers.kept.record import FORMAT, KeptError, Record, checked_name, write
from peers.store import cpu_info

PASSES = {
    "forward": "forward", "forward_training": "forward for training",
    "forward_backward": "forward + backward",
}  # fmt: skip


def record_of(figures: list[dict[str, Any]]) -> Record:
    """One group, 'alone': our median, GFLOP/s, percent of the FMA peak and of bare tiles."""
    lines: Record = {}
    for each in figures:
        if each.get("pass") not in PASSES or "percent_of_peak" not in each:
            raise KeptError("[keep] expected figures of plain `openrnn bench --json`")
        entry = {
            "sides": {"OpenRNN C++": {"ms": [None, float(f"{each['ms']:.3g}"), None]}},
            "gflops": float(f"{each['gflops']:.3g}"), "roof": float(f"{each['percent_of_peak']:.3g}"),
        }  # fmt: skip
        if "percent_of_tiles" in each:
            entry["tiles"] = float(f"{each['percent_of_tiles']:.3g}")
        lines.setdefault(each["config"], {})[f"{PASSES[each['pass']]}, {each['threads']}"] = entry
    return {
        "format": FORMAT, "machine": machine.describe(cpu_info()),
        "date": str(datetime.date.today()), "versions": {}, "commit": machine.commit(),
        "quick": False, "lines": {"alone": lines}, "goals": [],
    }  # fmt: skip


def main(arguments: list[str]) -> int:
    """Writes the file."""
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    name, *paths = arguments
    try:
        figures = [each for path in paths for each in json.loads(Path(path).read_text("utf-8"))]
        path = write(record_of(figures), Path("bench/results"), f"{checked_name(name)}_alone")
    except KeptError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"kept: {path}; scripts/draw_benchmarks draws it")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
