"""Being told to end: what a `finally` or a `with` would tidy away is tidied away."""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

TOLD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def leave(number: int, _frame: FrameType | None) -> None:
    """Raises SystemExit, once: a second signal must not cut the tidying short."""
    for told in TOLD:
        signal.signal(told, signal.SIG_IGN)
    raise SystemExit(128 + number)


def leave_tidily() -> None:
    """From now on; what is ignored already (nohup) stays so."""
    for told in TOLD:
        if signal.getsignal(told) != signal.SIG_IGN:
            signal.signal(told, leave)


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Being told to end waits until the block has ended: what it makes has a name by then."""
    heard: list[int] = []
    left = [told for told in TOLD if signal.getsignal(told) is leave]
    for told in left:
        signal.signal(told, lambda number, _frame: heard.append(number))
    try:
        yield
    finally:
        for told in left:
            signal.signal(told, leave)
        if heard:
            leave(heard[0], None)
