"""Learning rates by step: functions of the number of updates so far.

Their bits are the same on every machine, as those of the library's own runs.
"""

import math
from collections.abc import Callable, Sequence

from openrnn import _arguments, _core
from openrnn._fit_data import positive
from openrnn.errors import ArgumentError

__all__ = [
    "ConstantSchedule",
    "CosineDecay",
    "ExponentialDecay",
    "PiecewiseConstant",
    "Schedule",
    "WarmUp",
]

#: What fit() takes: the learning rate of update 0, 1, 2, ...
Schedule = Callable[[int], float]


def _rate(call: str, name: str, value: float) -> float:
    rate = _arguments.as_number(call, name, value)
    if not (math.isfinite(rate) and rate >= 0.0):
        raise ArgumentError(f"[{call}] {name} is {rate}, expected a finite number of at least 0")
    return rate


def _step(call: str, step: int) -> int:
    number = _arguments.as_integer(call, "step", step)
    if number < 0:
        raise ArgumentError(f"[{call}] step is {number}, expected 0 or more")
    return number


class ConstantSchedule:
    """The same rate at every step.

    Examples
    --------
    >>> openrnn.train.ConstantSchedule(0.1)(7)
    0.1
    """

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = _rate("ConstantSchedule", "learning_rate", learning_rate)

    def __call__(self, step: int) -> float:
        """The rate of that step."""
        return self.learning_rate


class ExponentialDecay:
    """learning_rate * decay_rate^(step / decay_steps), as tf.train.exponential_decay.

    Parameters
    ----------
    learning_rate : the rate of step 0.
    decay_steps : steps after which it is multiplied by `decay_rate`.
    decay_rate : above 0, at most 1.
    staircase : whether step / decay_steps is rounded down.

    Examples
    --------
    >>> rate = openrnn.train.ExponentialDecay(0.5, 10, 0.25)
    >>> rate(0), rate(20)
    (0.5, 0.03125)
    """

    def __init__(
        self, learning_rate: float, decay_steps: int, decay_rate: float, staircase: bool = False
    ) -> None:
        self.learning_rate = _rate("ExponentialDecay", "learning_rate", learning_rate)
        self.decay_steps = positive("ExponentialDecay", "decay_steps", decay_steps)
        self.decay_rate = _arguments.as_number("ExponentialDecay", "decay_rate", decay_rate)
        if not 0.0 < self.decay_rate <= 1.0:
            raise ArgumentError(
                f"[ExponentialDecay] decay_rate is {self.decay_rate}, expected more than 0 and at "
                "most 1"
            )
        self.staircase = bool(staircase)

    def __call__(self, step: int) -> float:
        """The rate of that step."""
        whole, rest = divmod(_step("ExponentialDecay", step), self.decay_steps)
        rate, factor = self.learning_rate, self.decay_rate
        while whole > 0:  # by squaring: libm's pow has other bits on other machines
            rate *= factor if whole % 2 else 1.0
            whole, factor = whole // 2, factor * factor
        if self.staircase or rest == 0:
            return rate
        return float(
            _core.schedule_at("exponential", rate, self.decay_steps, self.decay_rate, 0.0, rest)
        )


class CosineDecay:
    """From learning_rate down to alpha * learning_rate along half a cosine, as tf.train.cosine_decay.

    Parameters
    ----------
    learning_rate : the rate of step 0.
    decay_steps : the step from which on it is alpha * learning_rate.
    alpha : 0 to 1.

    Examples
    --------
    >>> rate = openrnn.train.CosineDecay(0.5, 10)
    >>> rate(0), rate(5), rate(10)
    (0.5, 0.25, 0.0)
    """

    def __init__(self, learning_rate: float, decay_steps: int, alpha: float = 0.0) -> None:
        self.learning_rate = _rate("CosineDecay", "learning_rate", learning_rate)
        self.decay_steps = positive("CosineDecay", "decay_steps", decay_steps)
        self.alpha = _arguments.as_number("CosineDecay", "alpha", alpha)
        if not 0.0 <= self.alpha <= 1.0:
            raise ArgumentError(f"[CosineDecay] alpha is {self.alpha}, expected 0 to 1")

    def __call__(self, step: int) -> float:
        """The rate of that step."""
        step = _step("CosineDecay", step)
        return float(
            _core.schedule_at(
                "cosine", self.learning_rate, self.decay_steps, 1.0, self.alpha, step
            )
        )


class PiecewiseConstant:
    """values[i] up to step boundaries[i], the last value after it, as tf.train.piecewise_constant.

    Parameters
    ----------
    boundaries : ascending steps; at a boundary the rate is still the one before it.
    values : one more than boundaries.

    Examples
    --------
    >>> rate = openrnn.train.PiecewiseConstant([10, 20], [0.5, 0.2, 0.1])
    >>> rate(10), rate(11), rate(99)
    (0.5, 0.2, 0.1)
    """

    def __init__(self, boundaries: Sequence[int], values: Sequence[float]) -> None:
        call = "PiecewiseConstant"
        self.boundaries = [
            _arguments.as_integer(call, "a boundary", one)
            for one in _arguments.as_list(call, "boundaries", boundaries, "steps")
        ]
        self.values = [
            _rate(call, "a value", one)
            for one in _arguments.as_list(call, "values", values, "rates")
        ]
        if len(self.values) != len(self.boundaries) + 1:
            raise ArgumentError(
                f"[{call}] {len(self.values)} values, expected {len(self.boundaries) + 1}, one more "
                "than boundaries"
            )
        if sorted(set(self.boundaries)) != self.boundaries:
            raise ArgumentError(f"[{call}] boundaries are {self.boundaries}, expected ascending ones")

    def __call__(self, step: int) -> float:
        """The rate of that step."""
        step = _step("PiecewiseConstant", step)
        return self.values[sum(step > boundary for boundary in self.boundaries)]


class WarmUp:
    """(step + 1) / steps of the schedule's first rate, then the schedule from its step 0 on.

    Parameters
    ----------
    schedule : a function of the step, or a rate.
    steps : of the warm-up.

    Examples
    --------
    >>> rate = openrnn.train.WarmUp(openrnn.train.CosineDecay(0.5, 10), 4)
    >>> rate(0), rate(3), rate(4), rate(9)
    (0.125, 0.5, 0.5, 0.25)
    """

    def __init__(self, schedule: Schedule | float, steps: int) -> None:
        self.schedule = as_schedule("WarmUp", schedule)
        self.steps = positive("WarmUp", "steps", steps)

    def __call__(self, step: int) -> float:
        """The rate of that step."""
        step = _step("WarmUp", step)
        if step < self.steps:
            return self.schedule(0) * ((step + 1) / self.steps)
        return self.schedule(step - self.steps)


def as_schedule(call: str, schedule: Schedule | float) -> Schedule:
    """A rate as the schedule that it is."""
    if callable(schedule):
        return schedule
    return ConstantSchedule(_rate(call, "schedule", schedule))
