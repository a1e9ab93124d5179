"""The processes that the tests of workers share."""

import pytest
from peer_checks import pool_of


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    """The workers on one thread, each in one process for all tests."""
    found = pool_of(tmp_path_factory.mktemp("logs"), 1)
    yield found
    found.close()
