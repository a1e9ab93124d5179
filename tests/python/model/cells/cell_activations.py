"""The functions of a cell in NumPy, for real and complex numbers, after docs/cells_reference.md.

A derivative is taken by a complex step: f'(a) = imag(f(a + ih)) / h, exact for h = 1e-100 or so,
since nothing is subtracted. On which side of a kink a number is, its real part says; so a branch
that a function takes at the kink is the one whose derivative the document names.
"""

import re

import numpy as np


def sigmoid(a):
    """Through tanh, which does not overflow."""
    return 0.5 + 0.5 * np.tanh(0.5 * a)


def _above(a, kink, high, low):
    return np.where(np.real(a) > kink, high, low)


def _hard_sigmoid(a, alpha, beta):
    line = alpha * a + beta
    return np.where(np.real(line) >= 1, 1.0, _above(line, 0, line, 0.0))


def _elu(a, alpha):
    below = np.where(np.real(a) > 0, 0.0, a)  # e^a of a large number would overflow
    return _above(a, 0, a, alpha * (np.exp(below) - 1))


def _softsign(a):
    return a / (1 + _above(a, 0, a, -a))


def _softplus(a):
    """ln(1 + e^a) = a + ln(1 + e^-a), without overflow."""
    size = _above(a, 0, a, -a)
    return _above(a, 0, a, 0.0) + np.log(1 + np.exp(-size))


# name: (function, defaults of alpha and beta, kinks as a function of them)
FUNCTIONS = {
    "sigmoid": (sigmoid, (), lambda: ()),
    "tanh": (np.tanh, (), lambda: ()),
    "relu": (lambda a: _above(a, 0, a, 0.0), (), lambda: (0.0,)),
    "affine": (lambda a, alpha, beta: alpha * a + beta, (1.0, 0.0), lambda *_: ()),
    "linear": (lambda a: a, (), lambda: ()),
    "leaky_relu": (lambda a, alpha: _above(a, 0, a, alpha * a), (0.01,), lambda _: (0.0,)),
    "thresholded_relu": (lambda a, alpha: _above(a, alpha, a, 0.0), (1.0,), lambda alpha: (alpha,)),
    "scaled_tanh": (lambda a, alpha, beta: alpha * np.tanh(beta * a), (1.0, 1.0), lambda *_: ()),
    "hard_sigmoid": (
        _hard_sigmoid, (0.2, 0.5), lambda alpha, beta: (-beta / alpha, (1 - beta) / alpha),
    ),
    "elu": (_elu, (1.0,), lambda _: (0.0,)),
    "softsign": (_softsign, (), lambda: ()),
    "softplus": (_softplus, (), lambda: ()),
}  # fmt: skip


class Activation:
    """A function by the text that names it; `kinks` are where it has no derivative."""

    def __init__(self, text):
        name, given = re.fullmatch(r"(\w+)(?:\((.*)\))?", text).groups()
        self.name = name
        function, defaults, kinks = FUNCTIONS[name]
        numbers = tuple(float(each) for each in given.split(",")) if given else ()
        self.parameters = numbers + defaults[len(numbers) :]
        self.kinks = kinks(*self.parameters)
        self._function = function

    def __call__(self, a):
        return self._function(a, *self.parameters)
