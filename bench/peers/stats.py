"""Medians, spreads, and paired ratios with their intervals."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES, SEED = 2000, 20


@dataclass(frozen=True)
class Quartiles:
    """Of the times of one side."""

    low: float
    median: float
    high: float


def quartiles(values: Sequence[float]) -> Quartiles:
    """Of at least one value."""
    low, median, high = np.quantile(np.asarray(values, float), [0.25, 0.5, 0.75])
    return Quartiles(float(low), float(median), float(high))


@dataclass(frozen=True)
class Ratio:
    """How many times faster ours is, with the 95 percent interval."""

    value: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """'lost' when the whole interval lies below 1, 'won' when above, else 'level'."""
        if self.high < 1.0:
            return "lost"
        return "won" if self.low > 1.0 else "level"


def paired(
    ours: Sequence[float | None], theirs: Sequence[float | None]
) -> list[float]:
    """Their time over ours of every round that both took part in."""
    return [t / o for o, t in zip(ours, theirs, strict=False) if o is not None and t is not None]


def ratio_of(ours: Sequence[float | None], theirs: Sequence[float | None]) -> Ratio | None:
    """Median of the paired ratios and its bootstrap interval; None without a common round."""
    ratios = np.asarray(paired(ours, theirs))
    if ratios.size == 0:
        return None
    random = np.random.default_rng(SEED)
    picks = random.integers(0, ratios.size, (RESAMPLES, ratios.size))
    low, high = np.quantile(np.median(ratios[picks], axis=1), [0.025, 0.975])
    return Ratio(float(np.median(ratios)), float(low), float(high))


def geometric_mean(values: Sequence[float]) -> float | None:
    """None of nothing."""
    return float(np.exp(np.mean(np.log(values)))) if len(values) else None
