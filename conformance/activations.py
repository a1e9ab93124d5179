# mypy: ignore-errors
"""The activation functions of ONNX's recurrent operators in float64: values, slopes, kinks, rounded once.

A function is (name, alpha, beta). exp and log come from `decimal`, whose results are rounded
correctly at 40 digits, so the float64 is the same on every machine.
"""

from decimal import Context, Decimal
from functools import lru_cache

import numpy as np

_CONTEXT = Context(prec=40, Emin=-10**6, Emax=10**6)
_ONE = Decimal(1)
# name: (takes alpha, takes beta, defaults of the operator of this name or None where there is none)
FACTS = {
    "Relu": (False, False, ()),
    "Tanh": (False, False, ()),
    "Sigmoid": (False, False, ()),
    "Affine": (True, True, None),
    "LeakyRelu": (True, False, (0.01,)),
    "ThresholdedRelu": (True, False, (1.0,)),
    "ScaledTanh": (True, True, None),
    "HardSigmoid": (True, True, (0.2, 0.5)),
    "Elu": (True, False, (1.0,)),
    "Softsign": (False, False, ()),
    "Softplus": (False, False, ()),
}


def _exp(a):
    return _CONTEXT.exp(Decimal(float(a)))


@lru_cache(maxsize=4096)
def _sigmoid(a):
    return float(_CONTEXT.divide(_ONE, _CONTEXT.add(_ONE, _exp(-a))))


@lru_cache(maxsize=4096)
def _tanh(a):
    e = _exp(-2.0 * abs(a))
    return float(_CONTEXT.divide(_CONTEXT.subtract(_ONE, e), _CONTEXT.add(_ONE, e))) * (1 if a >= 0 else -1)


@lru_cache(maxsize=4096)
def _softplus(a):
    return float(_CONTEXT.ln(_CONTEXT.add(_ONE, _exp(a))))


@lru_cache(maxsize=4096)
def _expm1(a):
    return float(_CONTEXT.subtract(_exp(a), _ONE))


def _each(function, a):
    return np.array([function(x) for x in np.ravel(a).tolist()], np.float64).reshape(np.shape(a))


def cube(a):
    """Rounded once: NumPy's power is another one on some processors."""
    return _each(lambda x: float(_CONTEXT.power(Decimal(x), 3)), a)


def sigmoid(a):
    return _each(_sigmoid, a)


def tanh(a):
    return _each(_tanh, a)


def expm1(a):
    return _each(_expm1, a)


def softplus(a):
    return _each(_softplus, a)


def value(function, a):
    """The function of every element."""
    name, alpha, beta = function
    if name == "Relu":
        return np.maximum(a, 0.0)
    if name == "Tanh":
        return tanh(a)
    if name == "Sigmoid":
        return sigmoid(a)
    if name == "Affine":
        return alpha * a + beta
    if name == "LeakyRelu":
        return np.where(a >= 0, a, alpha * a)
    if name == "ThresholdedRelu":
        return np.where(a > alpha, a, 0.0)
    if name == "ThresholdedRelu from":  # the other reading: alpha at alpha
        return np.where(a >= alpha, a, 0.0)
    if name == "ScaledTanh":
        return alpha * tanh(beta * a)
    if name == "HardSigmoid":
        return np.minimum(np.maximum(alpha * a + beta, 0.0), 1.0)
    if name == "Elu":
        return np.where(a >= 0, a, alpha * expm1(np.minimum(a, 0.0)))
    if name == "Softsign":
        return a / (1.0 + np.abs(a))
    if name == "Softplus":
        return softplus(a)
    raise ValueError(f"[value] the function is {name!r}, expected one of {list(FACTS)}")


def slope(function, a, y):
    """The derivative at a, where y is the value; away from kinks."""
    name, alpha, beta = function
    if name == "Relu":
        return 1.0 * (a > 0)
    if name == "Tanh":
        return 1.0 - y * y
    if name == "Sigmoid":
        return y * (1.0 - y)
    if name == "Affine":
        return alpha + 0.0 * a
    if name == "LeakyRelu":
        return np.where(a >= 0, 1.0, alpha)
    if name.startswith("ThresholdedRelu"):
        return 1.0 * (a > alpha)
    if name == "ScaledTanh":
        return alpha * beta * (1.0 - tanh(beta * a) ** 2)
    if name == "HardSigmoid":
        return alpha * ((y > 0) & (y < 1))
    if name == "Elu":
        return np.where(a >= 0, 1.0, y + alpha)
    if name == "Softsign":
        return 1.0 / (1.0 + np.abs(a)) ** 2
    if name == "Softplus":
        return sigmoid(a)
    raise ValueError(f"[slope] the function is {name!r}, expected one of {list(FACTS)}")


def kinks(function):
    """Where it has no derivative."""
    name, alpha, beta = function
    if name in ("Relu", "LeakyRelu", "Elu"):
        return [0.0]
    if name.startswith("ThresholdedRelu"):
        return [alpha]
    return [-beta / alpha, (1.0 - beta) / alpha] if name == "HardSigmoid" else []
