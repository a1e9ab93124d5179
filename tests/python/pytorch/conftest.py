"""The live comparisons need PyTorch, several GB: `make test-torch` asks for them, nobody else."""

import os

# Either the stand-in or PyTorch itself.
collect_ignore = ["over_numpy"] if os.environ.get("OPENRNN_TEST_TORCH") == "1" else ["live"]
