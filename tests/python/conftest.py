"""What every test has in common.

One hypothesis profile: the same examples on every run, and no deadline on a loaded machine. And
signals as in a terminal: a shell starts background jobs with SIGINT ignored, which the programs
that tests interrupt would inherit.

And of a test with three parameters or more a covering array runs, which holds every pair of values;
OPENRNN_GRIDS=whole runs the whole grid.
"""

import signal

import ml_dtypes  # noqa: F401  NumPy knows 'bfloat16' from then on
from hypothesis import HealthCheck, settings

from model.covering import WHOLE, columns, cover, is_product, label

settings.register_profile(
    "openrnn",
    derandomize=True,
    deadline=None,
    max_examples=100,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("openrnn")

signal.signal(signal.SIGINT, signal.default_int_handler)


def _columns(item):
    """The labels of a case's parameters. Rows that name several at once are a table and one column,
    unless they are a product."""
    params, found = dict(item.callspec.params), []
    for mark in item.iter_markers("parametrize"):
        names, rows = mark.args[:2]
        names = [name.strip() for name in names.split(",")] if isinstance(names, str) else names
        rows = [getattr(row, "values", row) for row in rows]
        if len(names) > 1 and not is_product(rows):
            found.append(label(tuple(params.pop(name) for name in names)))
    return found + columns(params.values())


def pytest_collection_modifyitems(config, items):
    """Keeps of each parametrised test the cases of a covering array."""
    if WHOLE:
        return
    grids = {}
    for item in items:
        if hasattr(item, "callspec"):
            grids.setdefault((item.path, item.originalname), []).append(item)
    dropped = set()
    for grid in grids.values():
        kept = {grid[n] for n in cover([_columns(item) for item in grid])}
        dropped.update(item for item in grid if item not in kept)
    config.hook.pytest_deselected(items=[item for item in items if item in dropped])
    items[:] = [item for item in items if item not in dropped]
