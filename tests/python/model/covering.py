"""Covering arrays: of a grid, as few rows as hold every pair of values of two columns.

A mistake that needs one value of one argument and one of another is in some row of them. The whole
grids, which cost several times as much, run with OPENRNN_GRIDS=whole.
"""

import dataclasses
import os
from itertools import combinations
from math import prod

PLAIN = (str, bytes, bool, int, float, type, type(None))
WHOLE = os.environ.get("OPENRNN_GRIDS") == "whole"


def label(value):
    """What equal values of a column share; any other object is equal to itself alone."""
    if isinstance(value, tuple):
        return tuple(label(part) for part in value)
    return (type(value), repr(value)) if isinstance(value, PLAIN) else id(value)


def columns(row):
    """The labels of a row's values; a dataclass has a column for each of its fields."""
    found = []
    for value in row:
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            found += [label(getattr(value, field.name)) for field in dataclasses.fields(value)]
        else:
            found.append(label(value))
    return found


def is_product(rows):
    """Whether every value of a column stands beside every one of the others."""
    sizes = [len(set(column)) for column in zip(*(map(label, row) for row in rows), strict=True)]
    return prod(sizes) == len(rows)


def cover(rows):
    """The numbers of the rows, lists of labels, that together hold every pair that any row holds.
    Greedy: the row that adds most comes next, the first one of equals."""
    pairs = [set(combinations(enumerate(row), min(2, len(row)))) for row in rows]
    left = set().union(*pairs)
    most = [len(each) for each in pairs]  # at least what a row adds, which can only shrink
    chosen = []
    while left:
        best = max(range(len(rows)), key=most.__getitem__)
        adds = len(pairs[best] & left)
        if adds == most[best]:
            left -= pairs[best]
            chosen.append(best)
        most[best] = adds if adds < most[best] else 0
    return sorted(chosen)


def covering(rows):
    """The rows of a grid that a covering array keeps; each a pytest.param or a tuple of values."""
    rows = list(rows)
    if WHOLE:
        return rows
    return [rows[n] for n in cover([columns(getattr(row, "values", row)) for row in rows])]
