"""Optimizers as TensorFlow 1 has them, in NumPy; they also run on arrays that carry bounds."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Optimizer:
    """`kind`: GradientDescent, Momentum, Adagrad, RMSProp or Adam; each reads what it knows."""

    kind: str
    learning_rate: float = 0.1
    momentum: float = 0.0
    decay: float = 0.9
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    initial_accumulator: float = 0.1
    nesterov: bool = False
    centered: bool = False

    def in_float32(self):
        """As TensorFlow keeps its constants, whatever the variable's type."""
        rounded = {
            name: float(np.float32(value))
            for name, value in vars(self).items()
            if isinstance(value, float)
        }
        return Optimizer(**{**vars(self), **rounded})

    def slots(self):
        """First values by name, '' being the variable's first slot, then '_1', '_2'."""
        if self.kind == "Momentum":
            return {"": 0.0}
        if self.kind == "Adagrad":
            return {"": self.initial_accumulator}
        if self.kind == "RMSProp":
            return {"": 1.0, "_1": 0.0, "_2": 0.0} if self.centered else {"": 1.0, "_1": 0.0}
        return {"": 0.0, "_1": 0.0} if self.kind == "Adam" else {}


def _rmsprop(o, var, slots, g):
    ms = o.decay * slots[""] + (1.0 - o.decay) * (g * g)
    under, kept = ms, {"": ms}
    if o.centered:
        mg = o.decay * slots["_1"] + (1.0 - o.decay) * g
        under, kept["_1"] = ms - mg * mg, mg
    last = "_2" if o.centered else "_1"
    kept[last] = o.momentum * slots[last] + o.learning_rate * g / np.sqrt(under + o.epsilon)
    return var - kept[last], kept


def _adam(o, var, slots, g, powers):
    m = o.beta1 * slots[""] + (1.0 - o.beta1) * g
    v = o.beta2 * slots["_1"] + (1.0 - o.beta2) * (g * g)
    rate = o.learning_rate * np.sqrt(1.0 - powers[1]) / (1.0 - powers[0])
    return var - rate * m / (np.sqrt(v) + o.epsilon), {"": m, "_1": v}


def _step(o, var, slots, g, powers):
    if o.kind == "Momentum":
        a = o.momentum * slots[""] + g
        step = o.learning_rate * a
        if o.nesterov:
            step = o.learning_rate * g + o.learning_rate * o.momentum * a
        return var - step, {"": a}
    if o.kind == "Adagrad":
        a = slots[""] + g * g
        return var - o.learning_rate * g / np.sqrt(a), {"": a}
    if o.kind == "RMSProp":
        return _rmsprop(o, var, slots, g)
    if o.kind == "Adam":
        return _adam(o, var, slots, g, powers)
    return var - o.learning_rate * g, {}


def run(o, var, gradients, exact=lambda value: value):
    """All variables by name after one update for each gradient: an array, or a function that has it
    of the variable. `exact` makes a number that carries a bound of one that has no error. The two
    powers are float32 in any case."""
    number = {name: exact(v) if isinstance(v, float) else v for name, v in vars(o).items()}
    constants = Optimizer(**number)
    slots = {name: exact(np.full(np.shape(var), value)) for name, value in o.slots().items()}
    betas = np.float32(o.beta1), np.float32(o.beta2)
    powers, var = betas, exact(var)
    for gradient in gradients:
        given = [exact(np.float64(power)) for power in powers]
        now = gradient(var) if callable(gradient) else exact(gradient)
        var, slots = _step(constants, var, slots, now, given)
        powers = powers[0] * betas[0], powers[1] * betas[1]
    found = {"X": var, **{f"X/{o.kind}{suffix}": value for suffix, value in slots.items()}}
    if o.kind == "Adam":
        found.update(
            beta1_power=exact(np.float64(powers[0])), beta2_power=exact(np.float64(powers[1]))
        )
    return found
