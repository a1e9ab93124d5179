"""Warnings that point to the user's own line."""

import sys
import warnings


def warn(text: str) -> None:
    """A UserWarning at the innermost line outside of this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] == "openrnn":
        frame, level = frame.f_back, level + 1
    warnings.warn(text, UserWarning, stacklevel=level)


def warn_of_dropout(call: str, num_layers: int, dropout: float) -> None:
    """Dropout acts between layers: with one layer it does nothing."""
    if num_layers == 1 and dropout > 0.0:
        warn(
            f"[{call}] dropout is {dropout} with num_layers=1, where it has no effect: it acts on "
            "the output of every layer but the last, expected num_layers of 2 or more"
        )
