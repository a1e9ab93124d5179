"""Masked steps and resets of a call as the core takes them."""

from typing import Any

import numpy as np

from openrnn._typing import TensorLike
from openrnn.errors import ArgumentError


def _bytes_of(call: str, name: str, given: TensorLike, steps: tuple[int, ...]) -> bytes:
    if given is None:
        return b""
    flags = np.asarray(given)
    if flags.dtype.kind not in "biu":
        raise TypeError(f"[{call}] {name} is of {flags.dtype}, expected booleans")
    if None not in steps and flags.shape != steps:
        raise ArgumentError(
            f"[{call}] {name} has shape {list(flags.shape)}, expected {list(steps)}, as the inputs"
        )
    return bytes((flags != 0).tobytes())


def step_flags(
    call: str,
    inputs: Any,
    mask: TensorLike,
    zero_output_for_mask: bool,
    reset: TensorLike,
    reset_to_initial: bool,
) -> tuple[bytes, bool, bytes, bool] | None:
    """What rnn_call takes; None where the call has neither. Throws: ArgumentError for a shape other
    than that of the inputs' time and batch, TypeError for flags that are no booleans or integers."""
    if mask is None and reset is None:
        return None
    # A symbolic input's are not all known; the call refuses it.
    steps = tuple(inputs.shape if hasattr(inputs, "shape") else np.shape(inputs))[:2]
    return (
        _bytes_of(call, "mask", mask, steps),
        bool(zero_output_for_mask),
        _bytes_of(call, "reset", reset, steps),
        bool(reset_to_initial),
    )
