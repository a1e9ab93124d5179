"""The processes that share the steps of one fit()."""

import hashlib
from collections.abc import Callable
from types import TracebackType
from typing import Any

from openrnn import _core
from openrnn._communicators import as_communicator
from openrnn.errors import ArgumentError

REDUCTIONS = ("exact", "fast")


def as_reduction(call: str, value: Any) -> str:
    """'exact' or 'fast'."""
    if value not in REDUCTIONS:
        raise ArgumentError(f"[{call}] reduction is {value!r}, expected one of exact, fast")
    return str(value)


class Processes:
    """This process and its company. A `with` block tells the others of what it raises."""

    def __init__(self, communicator: Any, reduction: str, parts: int) -> None:
        base = as_communicator("fit", communicator)
        as_reduction("fit", reduction)
        #: None: this process alone.
        self.group: Any = None
        if base is not None and base.size > 1:
            self.group = _core.ProcessGroup(base, reduction)
            expected = _core.expected_parts(parts, base.size)
            if expected:
                raise ArgumentError(
                    f"[fit] micro_batches is {parts} with {base.size} processes, expected {expected}"
                )

    def __enter__(self) -> "Processes":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.group is not None and error is not None:
            self.group.fail(str(error) or type(error).__name__)

    @property
    def first(self) -> bool:
        """Whether this one speaks and validates."""
        return self.group is None or bool(self.group.first)

    def own_of(self, parts: int) -> range:
        """The parts of a step that this process computes."""
        return range(parts) if self.group is None else range(*self.group.own_of(parts))

    def goes_on(self, mine: bool) -> bool:
        """Whether all of them do."""
        return mine if self.group is None else bool(self.group.goes_on(mine))

    def number_of_first(self, compute: Callable[[], float]) -> float:
        """What the first one computes."""
        if self.group is None:
            return compute()
        return float(self.group.number_of_first(compute() if self.group.first else 0.0))

    def require_same_weights(self, model: Any) -> None:
        """Raises StateError, naming the rank, where one process has others than the first."""
        if self.group is None:
            return
        digest = hashlib.blake2b(digest_size=8)
        for weight in model.weights:
            digest.update(weight.numpy().tobytes())
        self.group.require_same("weights of fingerprint", digest.hexdigest())
