"""A kept run: what its file holds, how it is written and read. Needs no package.

`lines` is group -> network -> 'forward, 1' (the pass and the threads) -> an entry. An entry has
`sides`: each of ours that was compared, with `ms` (lower quartile, median, upper quartile),
`peers` and, against other sides of ours, `own`; both are name -> [how many times faster ours is,
lower and upper end of that ratio's interval], or the ratio alone of a peer that is far from the
best one. `roof` is the percent of the roofline, `disagree` names peers whose numbers were wrong.
Memory lines have `memory` (MB) instead, lines of the group 'accuracy' also `errors`. null is what a
run did not keep; `whole` is false where it kept the best peers alone.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FORMAT = 1
NAME = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*")
EXPANDED = 4  # levels that are written over several lines, so that a diff shows one entry a line
Record = dict[str, Any]


class KeptError(ValueError):
    """What was given, what was expected."""


@dataclass(frozen=True)
class Comparison:
    """One of ours against another side, in ms; what was not kept is None."""

    ours: str
    ms: float
    peer: str
    ratio: float
    low: float | None
    high: float | None

    @property
    def lost(self) -> bool:
        """Whether the whole interval lies below 1."""
        return self.high is not None and self.high < 1


def comparisons(entry: Record, kind: str = "peers") -> Iterator[Comparison]:
    """Of an entry; `kind` is 'peers' or 'own'."""
    for name, side in entry.get("sides", {}).items():
        for peer, found in side.get(kind, {}).items():
            ratio, low, high = found if isinstance(found, list) else (found, None, None)
            yield Comparison(name, side["ms"][1], peer, ratio, low, high)


def best(entry: Record) -> Comparison | None:
    """The peer against which ours stands worst."""
    return min(comparisons(entry), key=lambda found: found.ratio, default=None)


def _text(value: Any, depth: int) -> str:
    """JSON with sorted keys, expanded down to a depth."""
    lists = isinstance(value, list) and any(isinstance(each, dict) for each in value)
    if depth < EXPANDED and value and (isinstance(value, dict) or lists):
        if isinstance(value, dict):
            items = [f"{json.dumps(k)}: {_text(value[k], depth + 1)}" for k in sorted(value)]
        else:
            items = [_text(each, EXPANDED) for each in value]
        indent = "\n" + " " * (depth + 1)
        ends = "{}" if isinstance(value, dict) else "[]"
        return f"{ends[0]}{indent}{(',' + indent).join(items)}\n{' ' * depth}{ends[1]}"
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def text_of(record: Record) -> str:
    """The same record has the same bytes."""
    return _text(record, 0) + "\n"


def checked_name(name: str) -> str:
    """Of a run, which is the name of its file."""
    if not NAME.fullmatch(name):
        raise KeptError(f"[keep] name {name!r}: expected lower-case words joined by '_'")
    return name


def write(record: Record, folder: Path, name: str) -> Path:
    """NAME.json in the folder."""
    path = folder / f"{checked_name(name)}.json"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(text_of(record), "utf-8")
    return path


def read(path: Path) -> Record:
    """Throws KeptError where it is no record of this version."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise KeptError(f"[read] {path.name}: {error}; expected JSON") from None
    version = found.get("format") if isinstance(found, dict) else None
    if version != FORMAT:
        raise KeptError(f"[read] {path.name}: format {version!r}, expected {FORMAT}")
    missing = sorted({"date", "lines", "machine", "versions"} - found.keys())
    if missing:
        raise KeptError(f"[read] {path.name}: {', '.join(missing)} missing")
    return dict(found)


def read_all(folder: Path) -> dict[str, Record]:
    """Every run of the folder by its name."""
    return {path.stem: read(path) for path in sorted(folder.glob("*.json"))}
