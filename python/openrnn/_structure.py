"""Nested lists and tuples as flat lists, and back."""

import itertools
from collections.abc import Iterator
from typing import Any


def flatten(structure: Any) -> list[Any]:
    """The leaves, in order."""
    if isinstance(structure, (list, tuple)):
        return [leaf for part in structure for leaf in flatten(part)]
    return [structure]


def along(structure: Any, values: Any) -> list[Any] | None:
    """The values in the places of the leaves, which may be lists themselves; None if they do not fit."""
    if not isinstance(structure, (list, tuple)):
        return [values]
    if not isinstance(values, (list, tuple)) or len(values) != len(structure):
        return None
    parts = [along(part, value) for part, value in zip(structure, values, strict=True)]
    return None if any(part is None for part in parts) else [one for p in parts if p for one in p]


def replace(structure: Any, values: dict[int, Any]) -> Any:
    """The structure with the leaves that `values` has, by id, in place of its own."""
    if isinstance(structure, (list, tuple)):
        return pack(structure, iter([values.get(id(leaf), leaf) for leaf in flatten(structure)]))
    return values.get(id(structure), structure)


def without_leaves(structure: Any) -> Any:
    """The structure with None for every leaf."""
    return pack(structure, itertools.repeat(None))


def pack(structure: Any, leaves: Iterator[Any]) -> Any:
    """The leaves in that structure."""
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return type(structure)(*(pack(part, leaves) for part in structure))
    if isinstance(structure, (list, tuple)):
        return type(structure)(pack(part, leaves) for part in structure)
    return next(leaves)
