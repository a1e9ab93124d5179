"""Results of lines with what follows from them: ratios, best peers, rooflines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from peers.lines import Line
from peers.stats import Quartiles, Ratio, quartiles, ratio_of

# The end of the names of our sides that peers are compared with, where it is not float32.
ARITHMETIC = {"math": " bf16", "weights": " int8"}
Rounds = Sequence[float | None]


@dataclass(frozen=True)
class SideResult:
    """One side of a finished line."""

    key: str
    role: str
    native: bool
    about: str
    kernel: str
    reason: str
    agrees: bool
    difference: float
    differs_in: str
    memory: int
    rounds: tuple[float | None, ...]
    errors: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> "SideResult":
        """From the file of results."""
        return cls(
            found["side"], found["role"], found["native"], found["about"], found["kernel"],
            found["reason"], found["agrees"], found["difference"], found["differs_in"], found["memory"],
            tuple(found["rounds"]), found.get("errors", {}),
        )  # fmt: skip

    @property
    def counts(self) -> bool:
        """Whether it was timed and computed the right numbers."""
        return not self.reason and self.agrees and any(r is not None for r in self.rounds)

    @property
    def times(self) -> Quartiles:
        """Of its rounds, in nanoseconds."""
        return quartiles([r for r in self.rounds if r is not None])


@dataclass(frozen=True)
class LineResult:
    """One finished line."""

    line: Line
    date: str
    sides: tuple[SideResult, ...]

    @classmethod
    def of(cls, line: Line, found: Mapping[str, Any]) -> "LineResult":
        """From the file of results."""
        return cls(line, found["date"], tuple(SideResult.of(side) for side in found["sides"]))

    def side(self, key: str) -> SideResult | None:
        """That side, if it counts."""
        return next((side for side in self.sides if side.key == key and side.counts), None)

    def ours(self, native: bool) -> SideResult | None:
        """Our float32 side of a language, or of the other one where there is none."""
        mine = [side for side in self.sides if side.role == "ours" and side.counts]
        return next((s for s in mine if s.native == native), mine[0] if mine else None)

    def challenger(self, peer: SideResult) -> SideResult | None:
        """Ours that stands against a peer: of its language if we have one, in its arithmetic."""
        suffix = ARITHMETIC.get(self.line.group)
        if suffix is None:
            return self.ours(peer.native)
        names = [f"OpenRNN{suffix}", f"OpenRNN C++{suffix}"]
        found = [side for name in names if (side := self.side(name)) is not None]
        return next((s for s in found if s.native == peer.native), found[0] if found else None)

    def ratio(self, peer: SideResult) -> Ratio | None:
        """Ours, called from the same language, against a peer."""
        ours = self.challenger(peer)
        return ratio_of(ours.rounds, peer.rounds) if ours and peer.counts else None

    def peers(self) -> list[tuple[SideResult, Ratio]]:
        """Everyone whose ratio counts, the best peer first."""
        found = [
            (side, ratio)
            for side in self.sides
            if side.role == "peer" and (ratio := self.ratio(side)) is not None
        ]
        return sorted(found, key=lambda pair: pair[1].value)

    def best(self) -> tuple[SideResult, Ratio] | None:
        """The peer against which we stand worst."""
        peers = self.peers()
        return peers[0] if peers else None

    def against(self, prefix: str) -> Ratio | None:
        """The best of the peers whose names begin so ('Keras' is Keras and Keras XLA)."""
        found = [ratio for side, ratio in self.peers() if side.key.startswith(prefix)]
        return found[0] if found else None

    def speedup(self, key: str, over: str) -> Ratio | None:
        """How many times faster one side is than another."""
        fast, slow = self.side(key), self.side(over)
        return ratio_of(fast.rounds, slow.rounds) if fast and slow else None


def best_quartile(values: Sequence[float]) -> float | None:
    """The 75th percentile; None of nothing."""
    return float(np.quantile(values, 0.75)) if len(values) else None


def peak_percent(result: LineResult) -> float | None:
    """Best quartile of percent of the FMA peak, of rounds whose peak was measured too."""
    meter = result.side("FMA peak")
    found = []
    for ours in (s for s in result.sides if s.role == "ours" and s.counts and meter):
        assert meter is not None
        flop = result.line.network.flop(result.line.work)
        # The meter counts nanoseconds of 1 GFLOP.
        pairs = [(o, p) for o, p in zip(ours.rounds, meter.rounds, strict=False) if o and p]
        percents = [100.0 * flop * 1e-9 * peak / own for own, peak in pairs]
        found.append(best_quartile(percents))
    return max((value for value in found if value is not None), default=None)


def reading_percent(result: LineResult) -> float | None:
    """The same of the rate at which steps read the recurrent weights, to that of reading alone."""
    steps, meter = result.side("steps alone"), result.side("reading")
    if steps is None or meter is None:
        return None
    gigabytes = result.line.network.recurrent_bytes * result.line.network.time * 1e-9
    pairs = [(o, p) for o, p in zip(steps.rounds, meter.rounds, strict=False) if o and p]
    return best_quartile([100.0 * gigabytes * peak / own for own, peak in pairs])


def roofline_percent(result: LineResult) -> float | None:
    """Whichever the line has."""
    peak = peak_percent(result)
    return peak if peak is not None else reading_percent(result)
