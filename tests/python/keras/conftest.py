"""Comparisons with Keras itself need it and its backends: `make test-keras` asks for all of them, and
names the backend of a run by KERAS_BACKEND.

`make test` has Keras beside TensorFlow, so a few cases of each comparison run there, the fast ones.
"""

import os
from importlib.util import find_spec

import pytest

WHOLE = os.environ.get("OPENRNN_TEST_KERAS") == "1"
FEW = 6  # cases of a grid
SLOW = {"test_losses_of_200_steps", "test_fit_evaluate_predict", "test_keras_alone_reads_a_file",
        "test_files_both_ways", "test_stateful", "test_jit_compile", "test_predict", "test_variable_lengths"}

collect_ignore = []
if not WHOLE:
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    # Of other backends; one file's name is another folder's, too.
    collect_ignore = ["live/test_jax.py", "live/test_threads.py"]
    if find_spec("keras") is None or find_spec("tensorflow") is None:
        collect_ignore = ["live"]


@pytest.hookimpl(trylast=True)  # of the cases of a covering array
def pytest_collection_modifyitems(config, items):
    """Keeps of each grid a few cases, from its first to its last."""
    if WHOLE:
        return
    grids = {}
    for item in items:
        if item.path.parent.name == "live" and item.path.parent.parent.name == "keras":
            grids.setdefault((item.path, item.originalname), []).append(item)
    kept = set()
    for (_, name), grid in grids.items():
        places = {round(n * (len(grid) - 1) / (FEW - 1)) for n in range(FEW)}
        kept.update(grid[n] for n in places if name not in SLOW)
    dropped = {item for grid in grids.values() for item in grid} - kept
    config.hook.pytest_deselected(items=list(dropped))
    items[:] = [item for item in items if item not in dropped]
