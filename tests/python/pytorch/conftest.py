"""The live comparisons need PyTorch, several GB: `make test-torch` asks for them, nobody else."""

import os

collect_ignore = [] if os.environ.get("OPENRNN_TEST_TORCH") == "1" else ["live"]
