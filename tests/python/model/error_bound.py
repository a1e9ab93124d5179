"""How far a right engine may be from the float64 model: a bound is carried with each number.

With u = eps / 2 of the engine's arithmetic, every value v travels with a bound on |engine's v - v|:

- A sum of k products or terms in one chain has at most k roundings, each of at most u * sum |terms|:
  together u * k * sum |terms| at worst. They are independent of each other, so they add like
  sqrt(k): an error spread evenly up to e has a deviation of e / sqrt(3), and 3 sqrt(k) of them are
  5.2 deviations or more, which one element in ten million passes (one sqrt(k), 1.7 deviations, is
  passed by a chain of like sign whose largest term comes first). So u * min(k, 3 sqrt(k)) * sum
  |terms|, where for a product of matrices sum |terms| = |A| @ |B|, at most the product of the norms.
  Adding to a chain lengthens it: (k, sum) add, whichever way an engine cuts or joins the sums. One
  product is a chain of k = 1.
- What the factors of a product bring along: |da| |b| + |a| |db| + |da| |db|, and a sum adds up.
- tanh is within 2 ulp <= 2 eps |v|, and carries slope * error + 0.385 error^2 (half of the largest
  second derivative). The logistic function goes through the same rule.
- A quotient carries (|da| + |q| |db|) / (|b| - |db|), a root the difference to the root of the
  lowest value; both round once.
- relu and a clamp carry the error unchanged; their slopes are in doubt (error 1) where the distance
  to the kink is within the error.
- `store` rounds the engine's v to the type in memory: float16 adds eps16 / 2 (|v| + its bound) and
  half its smallest subnormal, bfloat16 eps8 / 2 (|v| + its bound) and the smallest normal float32.

eps is the sum of the engine's and of float64's own, since the model rounds too.
"""

import numpy as np

from model import numpy_rnn

_FLOAT64 = np.finfo(np.float64).eps


class Bounded(np.lib.mixins.NDArrayOperatorsMixin):
    """An array with its bound. The last sum is kept open (`terms` = k, `magnitude` = sum |terms|),
    so that adding to it goes on with the same chain; `carried` is the error of what went into it.
    """

    def __init__(self, value, eps, carried=0.0, terms=0, magnitude=None):
        self.value = np.asarray(value, np.float64)
        self.eps = eps
        self.carried = np.broadcast_to(carried, self.value.shape)
        self.terms = terms
        magnitude = np.abs(self.value) if magnitude is None else magnitude
        self.magnitude = np.broadcast_to(magnitude, self.value.shape)

    @property
    def shape(self):
        return self.value.shape

    @property
    def error(self):
        roundings = min(self.terms, 3.0 * np.sqrt(self.terms))
        return self.carried + 0.5 * self.eps * roundings * self.magnitude

    def _like(self, function, *others):
        """The same rearrangement of value, carried and magnitude."""
        every = (self,) + others
        return Bounded(
            function(*[b.value for b in every]),
            self.eps,
            function(*[b.carried for b in every]),
            max(b.terms for b in every),
            function(*[b.magnitude for b in every]),
        )

    @property
    def T(self):
        return self._like(np.transpose)

    def __getitem__(self, index):
        return self._like(lambda part: part[index])

    def __len__(self):
        return len(self.value)

    def reshape(self, shape):
        return self._like(lambda part: part.reshape(shape))

    def stored(self, eps, smallest):
        """Rounded to memory: a new number, no longer an open sum."""
        largest = np.abs(self.value) + self.error  # of the engine's own, which is what it rounds
        rounding = 0.0 if eps is None else 0.5 * (eps * largest + smallest)
        return Bounded(self.value, self.eps, self.error + rounding)

    def __array_ufunc__(self, ufunc, method, *inputs):
        if method != "__call__" or ufunc not in _UFUNCS:
            return NotImplemented
        return _UFUNCS[ufunc](*[_bounded(each, self.eps) for each in inputs])

    def __array_function__(self, function, types, args, kwargs):
        return _FUNCTIONS[function](self.eps, *args, **kwargs)


def _bounded(value, eps):
    return value if isinstance(value, Bounded) else Bounded(value, eps)


def _sum(a, b, value):
    terms = max(a.terms, 1) + max(b.terms, 1)
    return Bounded(value, a.eps, a.carried + b.carried, terms, a.magnitude + b.magnitude)


def _product(a, b, multiply, terms):
    size_a, size_b, error_a, error_b = abs(a.value), abs(b.value), a.error, b.error
    carried = multiply(error_a, size_b + error_b) + multiply(size_a, error_b)
    return Bounded(multiply(a.value, b.value), a.eps, carried, terms, multiply(size_a, size_b))


def _tanh(a):
    value = np.tanh(a.value)
    error = a.error
    moved = np.minimum((1.0 - value * value) * error + 0.385 * error * error, 2.0)
    return Bounded(value, a.eps, moved + 2.0 * a.eps * np.abs(value))


def _quotient(a, b):
    value, least = a.value / b.value, np.abs(b.value) - b.error
    if not (least > 0).all():
        raise ZeroDivisionError("a divisor may be 0 within its bound")
    carried = (a.error + np.abs(value) * b.error) / least
    return Bounded(value, a.eps, carried, 1)


def _sqrt(a):
    value = np.sqrt(a.value)
    return Bounded(value, a.eps, value - np.sqrt(np.maximum(a.value - a.error, 0.0)), 1)


_UFUNCS = {
    np.add: lambda a, b: _sum(a, b, a.value + b.value),
    np.subtract: lambda a, b: _sum(a, b, a.value - b.value),
    np.multiply: lambda a, b: _product(a, b, np.multiply, 1),
    np.matmul: lambda a, b: _product(a, b, np.matmul, a.shape[-1]),
    np.divide: _quotient,
    np.sqrt: _sqrt,
    np.tanh: _tanh,
    np.maximum: lambda a, b: Bounded(np.maximum(a.value, b.value), a.eps, a.error),
    np.minimum: lambda a, b: Bounded(np.minimum(a.value, b.value), a.eps, a.error),
    np.heaviside: lambda a, b: Bounded(
        np.heaviside(a.value, b.value), a.eps, (np.abs(a.value) <= a.error).astype(float)
    ),
}


def _where(eps, condition, a, b):
    choose = lambda *parts: np.where(condition, *parts)
    return _bounded(a, eps)._like(choose, _bounded(b, eps))


def _gather(function):
    def run(eps, parts, **kwargs):
        first, *rest = [_bounded(part, eps) for part in parts]
        return first._like(lambda *arrays: function(arrays, **kwargs), *rest)

    return run


def _sum_axis(eps, a, axis):
    total = a._like(lambda part: part.sum(axis=axis))
    total.terms = max(a.terms, 1) * a.shape[axis]
    return total


_FUNCTIONS = {
    np.where: _where,
    np.stack: _gather(np.stack),
    np.concatenate: _gather(np.concatenate),
    np.sum: _sum_axis,
    np.ravel: lambda eps, a: a.reshape(-1),
}


def arithmetic(dtype):
    """(eps of the computation, eps of memory or None, smallest subnormal of memory)."""
    if dtype == np.float16:
        info = np.finfo(np.float16)
        return float(np.finfo(np.float32).eps), float(info.eps), float(info.smallest_subnormal)
    if np.dtype(dtype).name == "bfloat16":
        # Subnormal numbers are those of float32, which arithmetic flushes to 0.
        return float(np.finfo(np.float32).eps), 2.0**-7, 2.0**-125
    return float(np.finfo(dtype).eps), None, 0.0


def bound(spec, dtype, params, x, h0, c0, lengths, masks, upstream=None):
    """Values and bounds of one training step: dict name -> Bounded, its `.error` being the bound.

    `upstream`: (dy, dh, dc), or None for forward alone. Names: y h c, dx dh0 dc0 dparams."""
    eps, eps_memory, smallest = arithmetic(dtype)
    eps += _FLOAT64
    exact = lambda a: None if a is None else Bounded(a, eps)
    store = lambda value: _bounded(value, eps).stored(eps_memory, smallest)
    masks = None if masks is None else [exact(mask) for mask in masks]
    y, h, c, tape = numpy_rnn.forward(
        spec, exact(params), exact(x), exact(h0), exact(c0), lengths, masks, store
    )
    found = {"y": y, "h": h, "c": c}
    if upstream is not None:
        names = ("dx", "dh0", "dc0", "dparams")
        found.update(zip(names, numpy_rnn.backward(tape, *[exact(each) for each in upstream])))
    return {
        name: _bounded(value, eps).stored(eps_memory, smallest)
        for name, value in found.items()
        if value is not None
    }
