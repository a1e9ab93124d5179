"""The covering arrays by which grids are thinned hold what they promise."""

from dataclasses import dataclass
from itertools import combinations, product

from model import covering


def pairs(rows):
    return {pair for row in rows for pair in combinations(enumerate(row), 2)}


def test_every_pair_is_kept_and_little_else():
    grid = list(product("abcd", [1, 2], [None, True], [0.0, 1.0, 2.0]))
    kept = [grid[n] for n in covering.cover([covering.columns(row) for row in grid])]
    assert pairs(kept) == pairs(grid)
    assert 12 <= len(kept) <= 15  # 4 x 3 values of two columns stand in as many rows


def test_what_stands_in_one_row_alone_is_kept():
    rows = [("a", 1, 1), ("a", 1, 2), ("b", 1, 1), ("b", 1, 2), ("a", 9, 1)]
    kept = covering.cover([covering.columns(row) for row in rows])
    assert 4 in kept


def test_one_or_two_columns_are_kept_whole():
    for rows in ([(1,), (2,), (2.0,), (True,)], list(product("ab", [1, 2, 3]))):
        assert covering.cover([covering.columns(row) for row in rows]) == list(range(len(rows)))


def test_fields_of_a_dataclass_are_columns():
    @dataclass(frozen=True)
    class Sizes:
        layers: int
        units: int

    grid = [(Sizes(*sizes), way) for sizes in product([1, 2], [3, 4]) for way in "xy"]
    assert len(covering.cover([covering.columns(row) for row in grid])) == 4


def test_a_table_is_no_product():
    assert covering.is_product(list(product([1, 2], "ab", [None])))
    assert not covering.is_product([(1, "a"), (2, "b"), (1, "b")])
