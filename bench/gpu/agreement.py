"""Whether both sides of a group computed the same.

The bound is one on norms, made to find another function, another gate order or another arithmetic;
the conformance suite bounds every element. With u the rounding of what a product reads and K = I + U
terms in a sum: rounding the factors of a product moves its norm by at most u, and summing in float32
by 2^-24 sqrt(K) of it, both again in every layer and step, as sqrt(L T) since they are independent.
Each side may be off by as much, and a gradient goes the way twice more.
"""

import math

import numpy as np

from gpu.lines import Group
from peers.agreement import GRADIENTS, Results, difference

UNIT = {"float32": 2.0**-24, "tf32": 2.0**-11, "float16": 2.0**-11}
SUM = 2.0**-24


def limit(group: Group, result: str) -> float:
    """The largest norm of the difference, relative to the norm of the value."""
    network = group.network
    terms = 2 * network.units
    one_side = UNIT[group.arithmetic] + SUM * math.sqrt(terms)
    ways = 3 if result in GRADIENTS else 1
    return 2 * ways * one_side * math.sqrt(network.layers * network.time)


def worst(group: Group, ours: Results, theirs: Results) -> dict[str, float | str | bool]:
    """The result that comes nearest to its limit, or passes it the furthest."""
    found: dict[str, float | str | bool] = {"result": "", "difference": 0.0, "within": False}
    used = -1.0
    for name in sorted(theirs):
        if name not in ours:
            return {"result": f"{name} is missing", "difference": math.inf, "within": False}
        off = difference(np.asarray(ours[name]), np.asarray(theirs[name]))
        off = math.inf if math.isnan(off) else off  # theirs is not finite
        if (share := off / limit(group, name)) > used:
            used = share
            found = {"result": name, "difference": off, "within": share <= 1.0}
    return found
