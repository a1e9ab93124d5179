"""Waiting for processes that others started."""

import time
from pathlib import Path


def runs(pid):
    """Whether the process is there, and not only for its parent to ask after."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] != "Z"


def until(found):
    """What it gives when it gives something."""
    end = time.monotonic() + 30
    while not (value := found()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return value
