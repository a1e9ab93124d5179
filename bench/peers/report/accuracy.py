"""Errors against float64: what they are, what they should be, and where they are not."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from peers.accuracy import QUANTITIES
from peers.markdown import head, row
from peers.report.results import LineResult, SideResult

OF_TORCH, OF_STORAGE = 0.8, 1.1
SHORT = ("y", "dx", "dW", "db")
STORAGE = "float32 storage"


@dataclass(frozen=True)
class Aim:
    """One quantity of one line: our error and what it should not exceed, where that is known."""

    line: str
    quantity: str
    ours: float
    limit: float | None  # of PyTorch and float32 storage
    other: float | None  # the least of the other peers
    other_key: str = ""

    @staticmethod
    def _share(ours: float, limit: float | None) -> float | None:
        if limit is None:
            return None
        return ours / limit if limit > 0 else float(ours > 0)

    @property
    def of_limit(self) -> float | None:
        """At most 1 is wanted."""
        return self._share(self.ours, self.limit)

    @property
    def of_other(self) -> float | None:
        """At most 1 is wanted."""
        return self._share(self.ours, self.other)


def with_errors(result: LineResult, role: str) -> list[SideResult]:
    """Sides of that role whose errors are known and whose numbers agree."""
    return [s for s in result.sides if s.role == role and s.errors and s.agrees and not s.reason]


def aims(result: LineResult) -> list[Aim]:
    """Of every quantity that ours has."""
    found = []
    peers = with_errors(result, "peer")
    for name in QUANTITIES:
        mine = [s.errors[name] for s in with_errors(result, "ours") if name in s.errors]
        if not mine:
            continue
        torch, others = [], []
        for side in peers:
            if name in side.errors:
                own = torch if side.key.startswith("PyTorch") else others
                own.append((side.errors[name], side.key))
        storage = [s.errors[name] for s in with_errors(result, "bound") if name in s.errors]
        limit = None
        if torch and storage:
            limit = max(OF_TORCH * min(torch)[0], OF_STORAGE * storage[0])
        other, key = min(others) if others else (None, "")
        found.append(Aim(result.line.name, name, max(mine), limit, other, key))
    return found


def worst(shares: Iterable[float | None]) -> float | None:
    """The largest of those that are known."""
    return max((share for share in shares if share is not None), default=None)


def beyond(results: Sequence[LineResult]) -> list[str]:
    """Every quantity that is farther off than the goals allow."""
    lines = []
    for aim in (aim for result in results for aim in aims(result)):
        for share, of in (
            (aim.of_limit, "the larger of 0.8 of PyTorch's and 1.1 of float32 storage's"),
            (aim.of_other, f"{aim.other_key}'s"),
        ):
            if share is not None and share > 1:
                lines.append(
                    f"- {aim.line}: {aim.quantity} is off by {aim.ours:.2e}, {share:.2f} of {of}."
                )
    return lines


def every_quantity(results: Sequence[LineResult]) -> list[str]:
    """A row for each network and side."""
    lines = head(["network", "side", *QUANTITIES])
    for result in results:
        for side in result.sides:
            if side.reason or not side.errors:
                continue
            mark = "" if side.agrees else " !"
            cells = [f"{side.errors[q]:.1e}" if q in side.errors else "-" for q in QUANTITIES]
            lines.append(row([result.line.network.name + _note(result), side.key + mark, *cells]))
    return lines


def _note(result: LineResult) -> str:
    """What the note of a line of the group 'accuracy' says beyond that."""
    return result.line.note.removeprefix("accuracy")


def in_short(results: Sequence[LineResult]) -> list[str]:
    """A row for each line, a column for each side; nothing where nothing is known."""
    known = [result for result in results if any(side.errors for side in result.sides)]
    keys = list(dict.fromkeys(s.key for r in known for s in r.sides if s.errors))
    if not keys:
        return []
    lines = head([f"error against float64: {' / '.join(SHORT)}", *keys])
    for result in known:
        sides = {side.key: side for side in result.sides}
        cells = []
        for key in keys:
            errors = sides[key].errors if key in sides else {}
            cells.append(" / ".join(f"{errors[q]:.1e}" for q in SHORT if q in errors) or "-")
        lines.append(row([result.line.name, *cells]))
    return lines
