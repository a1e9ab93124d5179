# mypy: ignore-errors
"""Covering arrays: few rows in which every allowed pair of values of two factors occurs."""

from itertools import combinations


class Random:
    """SplitMix64: integers that are the same everywhere."""

    def __init__(self, seed):
        self.state = seed & (2**64 - 1)

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & (2**64 - 1)
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & (2**64 - 1)
        return z ^ (z >> 31)

    def below(self, count):
        return self.next() % count

    def choose(self, values):
        return values[self.below(len(values))]


def pairs_of(row):
    return set(combinations(sorted(row.items(), key=lambda item: item[0]), 2))


def _possible(factors, allowed, random, tries=200):
    """Every pair of values that some allowed row has; a pair that no try completes has none."""
    found = set()
    for a, b in combinations(sorted(factors), 2):
        for x in factors[a]:
            for y in factors[b]:
                for _ in range(tries):
                    row = {name: random.choose(values) for name, values in factors.items()} | {a: x, b: y}
                    if allowed(row):
                        found.add(((a, x), (b, y)))
                        break
    return found


def cover(factors, allowed, seed=1):
    """Rows, dicts of one value a factor, with every pair that an allowed row can have. Values are
    hashable. Greedy: of sixty random rows around a pair that is left, the one that adds most."""
    random, rows = Random(seed), []
    left = _possible(factors, allowed, random)
    while left:
        pair = min(left, key=repr)
        best, most = None, 0
        while best is None:
            for _ in range(60):
                row = {name: random.choose(values) for name, values in factors.items()} | dict(pair)
                if allowed(row) and (adds := len(pairs_of(row) & left)) > most:
                    best, most = row, adds
        left -= pairs_of(best)
        rows.append(best)
    return rows
