"""Comparisons with Keras itself need it and its backends: `make test-keras` asks for them, nobody
else. Each run of pytest has one backend, which KERAS_BACKEND names."""

import os

collect_ignore = [] if os.environ.get("OPENRNN_TEST_KERAS") == "1" else ["live"]
