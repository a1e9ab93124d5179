"""Arguments of Python's own types, checked: '[call] what was given, what was expected'."""

import operator
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

# Of what the locals() of a constructor hold.
_NOT_GIVEN = ("self", "__class__", "network")


def _refuse(call: str, name: str, value: Any, expected: str) -> TypeError:
    return TypeError(f"[{call}] {name} is {type(value).__name__!r}, expected {expected}")


def of_call(arguments: dict[str, Any]) -> dict[str, Any]:
    """The locals() at the start of a function as what it was given: options of `**network` too."""
    given = {name: value for name, value in arguments.items() if name not in _NOT_GIVEN}
    return {**given, **arguments.get("network", {})}


def as_path(call: str, name: str, value: Any) -> str:
    """A path as a string."""
    if not isinstance(value, (str, os.PathLike)):
        raise _refuse(call, name, value, "a path")
    return os.fspath(value)


def as_number(call: str, name: str, value: Any) -> float:
    """A number as a float; a string is none."""
    try:
        if not isinstance(value, (str, bytes, bytearray)):
            return float(value)
    except (TypeError, ValueError):
        pass
    raise _refuse(call, name, value, "a number")


def as_integer(call: str, name: str, value: Any) -> int:
    """An integer, of NumPy too."""
    try:
        return operator.index(value)
    except TypeError:
        raise _refuse(call, name, value, "an integer") from None


def plain(value: Any) -> Any:
    """A number of NumPy's as one of Python's, which JSON takes; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def as_dict(call: str, name: str, value: Any, of: str) -> dict[Any, Any]:
    """A dictionary of a mapping."""
    if not isinstance(value, Mapping):
        raise _refuse(call, name, value, f"a dictionary of {of}")
    return dict(value)


def as_list(call: str, name: str, value: Any, of: str) -> list[Any]:
    """A list of what can be iterated over."""
    if not isinstance(value, Iterable) or isinstance(value, (str, bytes, dict)):
        raise _refuse(call, name, value, f"a list of {of}")
    return list(value)
