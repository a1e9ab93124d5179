# mypy: ignore-errors
"""How far a right implementation may be from the oracle: a bound is carried with each number.

u is the unit roundoff of the arithmetic (2^-24 for float32), eta its smallest number that counts
(results below it may be flushed to 0). A bound holds for every order of the sums:

- A sum of k terms, products or not, rounds each term at most k times: k * (u * sum |terms| + eta),
  to first order, as in Higham, Accuracy and Stability of Numerical Algorithms, section 3.1. Adding
  two sums makes a longer one. An input is exact.
- What the factors of a product bring along: |da| |b| + |a| |db| + |da| |db|.
- A function carries the largest slope within the error of its argument times that error.
- An implementation's own functions may be as far off as OpenCL's full profile allows of single
  precision: exp and log 3 ulp, tanh 5 ulp, a quotient 2.5 ulp (1 ulp <= 2 u of the value). A sigmoid
  may be 1 / (1 + e^-a) or (1 + tanh(a / 2)) / 2, a tanh that or the quotient in ONNX's text; the
  allowance is the larger of the two (`allowance`).
- A step function of the argument (slopes of relu, of a clip) is in doubt, by its jump, where the
  argument is within its error of the jump. The generator takes only data where that is nowhere.
- float64 of the oracle itself adds 2^-53 to u; the result's own type rounds once more.

Nothing here is statistical and no constant is fitted: what exceeds the bound is not explained by
rounding. Bounds of this suite are some 10 to 100 times what good implementations show, and a
thousandth or less of what a wrong gate, clip or length changes.
"""

import numpy as np

import activations
import oracle

UNITS = {"float32": 2.0**-24, "float64": 2.0**-53, "float16": 2.0**-11, "bfloat16": 2.0**-8}
SMALLEST = {"float32": 2.0**-126, "float64": 2.0**-1022, "float16": 2.0**-24, "bfloat16": 2.0**-126}


class Bounded(np.lib.mixins.NDArrayOperatorsMixin):
    """Values, the error that came with their terms, and the last sum: how many terms, sum |terms|."""

    def __init__(self, value, u, eta, carried=None, terms=0, magnitude=None):
        self.value = np.asarray(value, np.float64)
        self.u, self.eta, self.terms = u, eta, terms
        self.carried = np.zeros(self.value.shape) if carried is None else carried
        self.magnitude = np.abs(self.value) if magnitude is None else magnitude

    @property
    def shape(self):
        return self.value.shape

    @property
    def error(self):
        return self.carried + self.terms * (self.u * self.magnitude + self.eta)

    def like(self, change):
        """The same rearrangement of all three arrays."""
        parts = [change(part) for part in (self.value, self.carried, self.magnitude)]
        return Bounded(parts[0], self.u, self.eta, parts[1], self.terms, parts[2])

    @property
    def T(self):
        return self.like(np.transpose)

    def __getitem__(self, index):
        return self.like(lambda part: part[index])

    def product(self, other, value, multiply, terms):
        a, b, da, db = np.abs(self.value), np.abs(other.value), self.error, other.error
        carried = multiply(da, b) + multiply(a, db) + multiply(da, db)
        return Bounded(value, self.u, self.eta, carried, terms, multiply(a, b))

    def __array_ufunc__(self, ufunc, method, *inputs):
        if method != "__call__" or ufunc not in (np.add, np.subtract, np.multiply):
            return NotImplemented
        given = [x if isinstance(x, Bounded) else Bounded(x, self.u, self.eta) for x in inputs]
        a, b = given
        value = ufunc(a.value, b.value)
        if ufunc is np.multiply:
            return a.product(b, value, np.multiply, 1)
        terms = max(a.terms, 1) + max(b.terms, 1)
        magnitude = a.magnitude + b.magnitude
        return Bounded(value, self.u, self.eta, a.carried + b.carried, terms, magnitude)

    def __array_function__(self, function, types, args, kwargs):
        if function is not np.concatenate:
            return NotImplemented
        parts = args[0]
        joined = [np.concatenate([getattr(p, n) for p in parts]) for n in ("value", "carried", "magnitude")]
        return Bounded(joined[0], self.u, self.eta, joined[1], max(p.terms for p in parts), joined[2])


def allowance(function, a, y, u):
    """How far an implementation's own function of an exact argument may be off."""
    name, alpha, beta = function
    size = np.abs(y)
    if name == "Tanh":
        # 5 ulp, or (1 - e) / (1 + e): 6 u of e moves it by 6 u 2 e / (1 + e)^2 = 3 u (1 - y^2), and
        # the sums and the quotient add 7 u of the value.
        return u * np.maximum(10.0 * size, 3.0 * (1.0 - y * y) + 7.0 * size)
    if name == "Sigmoid":
        # 6 u of e, the sum, the quotient: 6 u y (1 - y) + 6 u y; or half of tanh's 10 u and a sum.
        half = np.abs(activations.tanh(0.5 * a))
        return u * np.maximum(12.0 * y - 6.0 * y * y, 5.0 * half + 2.0)
    if name == "ScaledTanh":
        # That of tanh times |alpha|, one rounding, and that of beta a, through tanh's slope.
        inner = activations.tanh(beta * a)
        moved = np.abs(alpha) * (1.0 - inner * inner) * np.abs(beta * a) * 2.0 * u
        return np.abs(alpha) * allowance(("Tanh", None, None), beta * a, inner, u) + moved + 2.0 * u * size
    if name == "Softplus":
        # 6 u of e^a, the sum, 3 ulp of the logarithm.
        return u * (6.0 * activations.sigmoid(a) + 1.0 + 6.0 * size)
    if name == "Elu":
        # 6 u of e^a, the difference, the product; alpha is rounded.
        below = np.abs(alpha) * 6.0 * (1.0 + activations.expm1(np.minimum(a, 0.0))) + 3.0 * size
        return u * np.where(a >= 0, 0.0, below)
    if name == "Softsign":
        return 6.0 * u * size  # the sum and a quotient of 2.5 ulp
    if name in ("Affine", "HardSigmoid"):
        return 3.0 * u * (np.abs(alpha * a) + np.abs(beta))  # alpha and beta are rounded, product, sum
    if name == "LeakyRelu":
        return np.where(a >= 0, 0.0, 2.0 * u * size)
    return 0.0 * size


def steepest(function, a, error, y):
    """At least the largest |slope| within `error` of a, where the value is y: the slope at a and, of
    the smooth ones, the largest second derivative (tanh 0.77, sigmoid 0.0963, softplus 0.25)."""
    name, alpha, beta = function
    if name == "Tanh":
        return 1.0 - y * y + 0.77 * error
    if name == "Sigmoid":
        return y * (1.0 - y) + 0.0963 * error
    if name == "ScaledTanh":
        inner = y / alpha if alpha else 0.0 * y
        return np.abs(alpha * beta) * (1.0 - inner * inner + 0.77 * np.abs(beta) * error)
    if name == "Softplus":
        return activations.sigmoid(a) + 0.25 * error
    if name == "Softsign":
        return 1.0 / (1.0 + np.maximum(np.abs(a) - error, 0.0)) ** 2
    if name == "Elu":
        below = abs(alpha) * (1.0 + activations.expm1(np.minimum(a + error, 0.0)))
        return np.where(a + error > 0, max(1.0, abs(alpha)), below)
    if name == "LeakyRelu":
        return np.maximum(1.0, abs(alpha)) + 0.0 * a
    return (abs(alpha) if name in ("Affine", "HardSigmoid") else 1.0) + 0.0 * a


class Bounding(oracle.Exact):
    """The oracle's arithmetic with bounds. `margin` is how near an argument came to a kink, measured
    in its own bound: what is above 1 is on a known side."""

    def __init__(self, dtype):
        self.u, self.eta, self.margin = UNITS[dtype] + 2.0**-53, SMALLEST[dtype], np.inf

    def number(self, array):
        return Bounded(array, self.u, self.eta)

    def dot(self, matrix, vector):
        multiply = lambda a, b: super(Bounding, self).dot(a, b)
        value = multiply(matrix.value, vector.value)
        return matrix.product(vector, value, multiply, matrix.shape[1])

    def outer(self, a, b):
        value = super().outer(a.value, b.value)
        return a.product(b, value, super().outer, 1)

    def _near(self, a, kink):
        distance = np.abs(a.value - kink)
        # An exact argument on the kink has a value, but no slope.
        ratio = np.where(a.error == 0, np.inf, distance / np.maximum(a.error, 1e-300))
        self.margin = min(self.margin, np.min(ratio, initial=np.inf))

    def apply(self, function, a):
        for kink in activations.kinks(function):
            self._near(a, kink)
        y = activations.value(function, a.value)
        own = allowance(function, a.value, y, self.u) + self.eta
        return Bounded(y, self.u, self.eta, steepest(function, a.value, a.error, y) * a.error + own)

    def slope(self, function, a, y):
        name, alpha, beta = function
        one = self.number(np.ones(a.shape))
        if name == "Tanh":
            return one - y * y
        if name == "Sigmoid":
            return y * (one - y)
        if name == "ScaledTanh":
            inner = self.apply(("Tanh", None, None), a * beta)
            return (one - inner * inner) * alpha * beta
        if name == "Softplus":
            return self.apply(("Sigmoid", None, None), a)
        value = activations.slope(function, a.value, y.value)
        error = None
        if name == "Softsign":  # 1 / (1 + |a|)^2: the sum, a product, a quotient; slope 2 / (1 + |a|)^3
            below = 1.0 + np.maximum(np.abs(a.value) - a.error, 0.0)
            error = 9.0 * self.u * value + 2.0 * a.error / activations.cube(below)
        if name == "Elu":  # y + alpha
            error = np.where(a.value >= 0, 0.0, y.error + 2.0 * self.u * (np.abs(y.value) + abs(alpha)))
        if name in ("LeakyRelu", "HardSigmoid", "Affine"):
            error = 2.0 * self.u * np.abs(value)  # alpha is rounded
        return Bounded(value, self.u, self.eta, error)

    def clip(self, a, limit):
        return a if limit is None else Bounded(super().clip(a.value, limit), self.u, self.eta, a.error)

    def inside(self, a, limit):
        if limit is not None:
            self._near(a, limit)
            self._near(a, -limit)
        return self.number(super().inside(a.value, limit))


def join(nested, rounded_to):
    """(values, bounds) of nested lists of Bounded; a result is rounded once to its type."""
    part = lambda node, take: [part(each, take) for each in node] if isinstance(node, list) else take(node)
    u = UNITS[rounded_to]
    values = np.array(part(nested, lambda b: b.value), np.float64)
    errors = np.array(part(nested, lambda b: b.error + u * np.abs(b.value)), np.float64)
    return values, errors
