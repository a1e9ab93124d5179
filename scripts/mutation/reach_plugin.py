"""A plugin of pytest: keeps for each test which mutations it reaches (environment: OPENRNN_MUTATIONS_REACHED and,
for the result, OPENRNN_MUTATIONS_OF_TESTS)."""
import mmap
import os
import pickle
import time

import numpy as np
import pytest

with open(os.environ["OPENRNN_MUTATIONS_REACHED"], "r+b") as _file:
    _bytes = mmap.mmap(_file.fileno(), 0)
_tests = {}


def _take():
    # A copy: programs that a test left behind may still write.
    reached = np.flatnonzero(np.frombuffer(bytes(_bytes), dtype=np.uint8)).astype(np.int32)
    _bytes[:] = bytes(len(_bytes))
    return reached


def pytest_collection_finish():
    _take()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    start, item.mutation_passed = time.monotonic(), True
    yield
    _tests[item.nodeid] = {"name": item.nodeid, "seconds": time.monotonic() - start,
                           "passed": item.mutation_passed, "reached": _take()}


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    report = (yield).get_result()
    item.mutation_passed &= not report.failed


def pytest_sessionfinish():
    with open(os.environ["OPENRNN_MUTATIONS_OF_TESTS"], "wb") as file:
        pickle.dump(list(_tests.values()), file)
