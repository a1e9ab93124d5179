"""How far the run is, on stderr."""

import sys
import time
from collections.abc import Callable
from typing import TextIO


def clock(seconds: float) -> str:
    """'3:05'."""
    whole = max(0, round(seconds))
    return f"{whole // 60}:{whole % 60:02d}"


class Progress:
    """A bar that is drawn again in place on a terminal, a line for each piece of work elsewhere."""

    def __init__(
        self, weights: list[float], stream: TextIO = sys.stderr,
        now: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._weights, self._stream, self._now = weights, stream, now
        self._done, self._start = 0, now()
        self._terminal = stream.isatty()

    def remaining(self) -> float:
        """Seconds, from the time that the work done so far took for its weight."""
        done = sum(self._weights[: self._done])
        left = sum(self._weights[self._done :])
        spent = self._now() - self._start
        return left * (spent / done if done > 0 else 1.0)

    def show(self, name: str, what: str = "") -> None:
        """The line at work."""
        total = len(self._weights)
        full = 20 * self._done // max(1, total)
        text = (
            f"[{'#' * full}{'.' * (20 - full)}] {self._done}/{total}, "
            f"{clock(self.remaining())} left: {name}{': ' if what else ''}{what}"
        )
        if self._terminal:
            print(f"\r\x1b[K{text[:150]}", end="", file=self._stream, flush=True)
        elif not what:
            print(text, file=self._stream, flush=True)

    def advance(self) -> None:
        """One piece is finished."""
        self._done += 1

    def close(self) -> None:
        """Clears the bar."""
        if self._terminal:
            print("\r\x1b[K", end="", file=self._stream, flush=True)
