"""The call under Keras's numpy backend, which has no gradients."""

from __future__ import annotations

from typing import Any

from openrnn.keras import _host
from openrnn.keras._cells import Place


def on_cpu(x: Any) -> bool:
    """Whether the engine can have the arrays of a call."""
    return True


def run(place: Place, arrays: Any, mask: Any, training: bool) -> Any:
    """The outputs."""
    return _host.forward(place, arrays, mask, False)[0]
