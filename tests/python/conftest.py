"""One hypothesis profile: the same examples on every run, and no deadline on a loaded machine."""

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
