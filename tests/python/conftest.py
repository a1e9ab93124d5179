"""What every test has in common.

One hypothesis profile: the same examples on every run, and no deadline on a loaded machine. And
signals as in a terminal: a shell starts background jobs with SIGINT ignored, which the programs
that tests interrupt would inherit.
"""

import signal

from hypothesis import HealthCheck, settings

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
