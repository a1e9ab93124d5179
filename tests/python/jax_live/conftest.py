"""These tests need JAX: `make test-jax` asks for them, nobody else."""

import os

import pytest

ASKED = os.environ.get("OPENRNN_TEST_JAX") == "1"
if ASKED:
    # Most of the time goes into compiling scans that run once.
    os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
    import jax

    jax.config.update("jax_enable_x64", True)
    collect_ignore = []
else:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture
def key():
    import jax

    return jax.random.key(7)
