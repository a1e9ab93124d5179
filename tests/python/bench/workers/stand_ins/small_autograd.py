"""Arrays with gradients over NumPy: what the stand-ins for PyTorch and JAX have in common."""

import numpy as np

recording = [True]  # the innermost says whether there is a history


def data_of(value):
    return value.data if isinstance(value, Tensor) else np.float32(value)


def as_tensor(value):
    return value if isinstance(value, Tensor) else Tensor(np.float32(value))


def summed(gradient, shape):
    """Over what was broadcast."""
    while gradient.ndim > len(shape):
        gradient = gradient.sum(axis=0)
    for axis, size in enumerate(shape):
        if size == 1:
            gradient = gradient.sum(axis=axis, keepdims=True)
    return gradient.reshape(shape)


class Tensor:
    """`parents`: (tensor, the gradient of it from one of this) of each."""

    def __init__(self, data, *parents):
        self.data = np.asarray(data)
        self.parents = [pair for pair in parents if pair[0].requires_grad] if recording[-1] else []
        self.requires_grad, self.grad = bool(self.parents), None

    shape = property(lambda self: self.data.shape)
    dtype = property(lambda self: self.data.dtype)
    T = property(lambda self: self.t())

    def requires_grad_(self):
        self.requires_grad = True
        return self

    def backward(self, gradient=None):
        """Adds to `grad` of every leaf; numbers start from 1."""
        order, seen = [], set()

        def visit(tensor):
            if id(tensor) not in seen:
                seen.add(id(tensor))
                for parent, _ in tensor.parents:
                    visit(parent)
                order.append(tensor)

        visit(self)
        found = {id(self): np.ones(self.shape) if gradient is None else data_of(gradient)}
        for tensor in reversed(order):
            own = found.pop(id(tensor))
            for parent, back in tensor.parents:
                found[id(parent)] = found.get(id(parent), 0.0) + back(own)
            if not tensor.parents:
                old = 0.0 if tensor.grad is None else tensor.grad.data
                tensor.grad = Tensor(np.asarray(old + own, self.dtype))

    def __add__(self, other):
        other = as_tensor(other)
        return Tensor(self.data + other.data, (self, lambda g: summed(g, self.shape)),
                      (other, lambda g: summed(g, other.shape)))  # fmt: skip

    def __mul__(self, other):
        other = as_tensor(other)
        return Tensor(self.data * other.data, (self, lambda g: summed(g * other.data, self.shape)),
                      (other, lambda g: summed(g * self.data, other.shape)))  # fmt: skip

    def __neg__(self):
        return self * -1.0

    def __sub__(self, other):
        return self + -as_tensor(other)

    def __rsub__(self, other):
        return as_tensor(other) - self

    __radd__, __rmul__ = __add__, __mul__

    def __matmul__(self, other):
        """Of [.., n] and a matrix."""
        flat = self.data.reshape(-1, self.shape[-1])
        value = (flat @ other.data).reshape(*self.shape[:-1], other.shape[1])
        rows = lambda g: g.reshape(-1, other.shape[1])
        return Tensor(value, (self, lambda g: (rows(g) @ other.data.T).reshape(self.shape)),
                      (other, lambda g: flat.T @ rows(g)))  # fmt: skip

    def __getitem__(self, places):
        def back(gradient):
            made = np.zeros(self.shape)
            made[places] = gradient
            return made

        return Tensor(self.data[places], (self, back))

    def t(self):
        return Tensor(self.data.T, (self, lambda g: g.T))

    def reshape(self, *shape):
        return Tensor(self.data.reshape(*shape), (self, lambda g: g.reshape(self.shape)))

    def parts(self, count, axis):
        """Equal ones."""
        size = self.shape[axis] // count
        before = (slice(None),) * (axis % self.data.ndim)
        return [self[(*before, slice(n * size, (n + 1) * size))] for n in range(count)]


def elementwise(function, slope):
    """Of a slope of x and of the value."""

    def run(x):
        value = function(x.data).astype(x.dtype)
        return Tensor(value, (x, lambda g: g * slope(x.data, value)))

    return run


sigmoid = elementwise(lambda x: 1 / (1 + np.exp(-x)), lambda x, y: y * (1 - y))
tanh = elementwise(np.tanh, lambda x, y: 1 - y * y)
softsign = elementwise(lambda x: x / (1 + abs(x)), lambda x, y: 1 / (1 + abs(x)) ** 2)


def clamp(x, low, high):
    inside = lambda x, _: (x >= low) & (x <= high)
    return elementwise(lambda x: np.clip(x, low, high), inside)(x)


def joined(tensors, axis):
    """Along an axis that is there."""
    ends = np.cumsum([0, *(tensor.shape[axis] for tensor in tensors)])
    cut = lambda n: lambda g: np.take(g, range(ends[n], ends[n + 1]), axis)
    value = np.concatenate([tensor.data for tensor in tensors], axis)
    return Tensor(value, *((tensor, cut(n)) for n, tensor in enumerate(tensors)))


def stacked(tensors):
    """Along a new first axis."""
    value = np.stack([tensor.data for tensor in tensors])
    return Tensor(value, *((tensor, lambda g, n=n: g[n]) for n, tensor in enumerate(tensors)))
