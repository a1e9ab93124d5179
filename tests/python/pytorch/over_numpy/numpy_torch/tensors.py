"""Tensors over NumPy with as much of PyTorch's as openrnn.torch asks for, and reverse gradients."""

import heapq
import itertools
from contextlib import contextmanager
from types import SimpleNamespace

import ml_dtypes
import numpy as np


class DType:
    def __init__(self, name):
        self.name, self.numpy = name, np.dtype(getattr(ml_dtypes, name, name))

    def __repr__(self):
        return f"torch.{self.name}"


DTYPES = {name: DType(name) for name in ("float32", "float64", "float16", "bfloat16", "int64", "uint8")}
# Who looks on at a call; the functions of `torch._C` answer from it.
seen = SimpleNamespace(grad=True, modes=0, transforms=False, tracing=None, autocast=None,
                       compiling=False, onnx=False, threads=1, excluded=[])  # fmt: skip
_sequence = itertools.count()


@contextmanager
def told(**changes):
    before = {name: getattr(seen, name) for name in changes}
    seen.__dict__.update(changes)
    try:
        yield
    finally:
        seen.__dict__.update(before)


def no_grad():
    return told(grad=False)


class Node:
    """Where tensors came from: `backward` maps gradients of outputs to those of `inputs`."""

    def __init__(self, inputs, outputs, backward):
        self.inputs, self.count, self.backward = list(inputs), outputs, backward
        self.order = next(_sequence)


class Tensor:
    layout = "strided"
    is_cpu, device = True, "cpu"

    def __init__(self, array, requires_grad=False, negated=False):
        self.array = np.asarray(array)
        self.requires_grad, self.negated = requires_grad, negated
        self.node = None

    shape = property(lambda self: self.array.shape)
    dtype = property(lambda self: DTYPES[self.array.dtype.name])
    data = property(lambda self: Tensor(self.array))

    def numpy(self, force=False):
        return -self.array if self.negated else self.array

    def dim(self):
        return self.array.ndim

    def numel(self):
        return self.array.size

    def data_ptr(self):
        return self.array.ctypes.data

    def is_contiguous(self):
        return self.array.flags.c_contiguous

    def is_neg(self):
        return self.negated

    def contiguous(self):
        return Tensor(np.ascontiguousarray(self.array), negated=self.negated)

    def resolve_neg(self):
        return Tensor(self.numpy())

    def new_empty(self, shape, dtype=None):
        kind = (dtype or self.dtype).numpy
        shape = np.atleast_1d(shape) if np.ndim(shape) == 0 else shape
        # What nobody writes is no number.
        return Tensor(np.full(tuple(shape), np.nan if kind.kind in "fV" else 77, kind))

    def new_zeros(self, shape, dtype=None):
        made = self.new_empty(shape, dtype)
        made.array[...] = 0
        return made

    def _moved(self, move):
        """Some of the values in another order, a view where NumPy makes one."""
        made = Tensor(move(self.array), negated=self.negated)
        if seen.grad and self.requires_grad:
            places = move(np.arange(self.array.size).reshape(self.shape))

            def back(gradients):
                if places.size == self.array.size:  # in another order, which has a history itself
                    order = np.argsort(places, axis=None)
                    return [gradients[0]._moved(lambda a: a.reshape(-1)[order].reshape(self.shape))]
                found = np.zeros(self.array.size, self.array.dtype)
                np.add.at(found, places, gradients[0].numpy())
                return [Tensor(found.reshape(self.shape))]

            made.requires_grad, made.node = True, (Node([self], 1, back), 0)
        return made

    def __getitem__(self, index):
        return self._moved(lambda a: a[index])

    def __int__(self):
        return int(self.array)

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __len__(self):
        return len(self.array)

    def __add__(self, other):
        return Tensor(self.numpy() + other.numpy())

    def unsqueeze(self, axis):
        return self._moved(lambda a: np.expand_dims(a, axis))

    def squeeze(self, axis):
        return self._moved(lambda a: a.squeeze(axis))

    def narrow(self, axis, start, size):
        return self._moved(lambda a: a[(slice(None),) * axis + (slice(start, start + size),)])

    def reshape(self, *shape):
        return self._moved(lambda a: a.reshape(*shape))

    view = reshape

    def select(self, axis, index):
        return self._moved(lambda a: a.take(index, axis))

    def index_select(self, axis, index):
        return self._moved(lambda a: a.take(index.array, axis))

    def movedim(self, source, to):
        return self._moved(lambda a: np.moveaxis(a, source, to))

    def expand(self, *shape):
        return self._moved(lambda a: np.broadcast_to(a, shape))

    def flatten(self, first, last):
        shape = self.shape
        return self._moved(lambda a: a.reshape(*shape[:first], -1, *shape[last + 1 :]))

    def unflatten(self, axis, sizes):
        shape = self.shape
        return self._moved(lambda a: a.reshape(*shape[:axis], *sizes, *shape[axis + 1 :]))

    def sum(self, axis):
        return Tensor(self.array.sum(axis))

    def to(self, dtype):
        return Tensor(self.array.astype(dtype.numpy), self.requires_grad)


class Parameter(Tensor):
    def __init__(self, data, requires_grad=True):
        super().__init__(data.array, requires_grad)
        self.device = data.device


def from_dlpack(capsule):
    class Holder:
        def __dlpack__(self, **_):
            return capsule

        def __dlpack_device__(self):
            return 1, 0

    return Tensor(np.from_dlpack(Holder()))


class Context:
    """What a Function keeps between its passes."""

    def __init__(self, args):
        self.needs_input_grad = tuple(needs(arg) for arg in args)
        self.kept, self.plain, self.materialize = (), [], True
        self.kept_for_forward = None

    def save_for_backward(self, *tensors):
        assert all(t is None or isinstance(t, Tensor) for t in tensors)
        self.kept = tensors

    def save_for_forward(self, *tensors):
        self.kept_for_forward = tensors

    saved_tensors = property(lambda self: self.kept)

    def mark_non_differentiable(self, *tensors):
        self.plain = [id(each) for each in tensors]

    def set_materialize_grads(self, value):
        self.materialize = value


def needs(arg):
    if isinstance(arg, list):
        return [needs(each) for each in arg]
    return isinstance(arg, Tensor) and arg.requires_grad


def any_needs(arg):
    return any(map(any_needs, arg)) if isinstance(arg, list) else needs(arg)


def pairs(args, gradients):
    """Each argument with its gradient, those of lists one by one."""
    for arg, gradient in zip(args, gradients, strict=True):
        if isinstance(arg, list):
            yield from zip(arg, [None] * len(arg) if gradient is None else gradient, strict=True)
        else:
            yield arg, gradient


def recorded(context, args, output, backward):
    """The output, with a history if one of its arguments has one."""
    if not seen.grad or not any(map(any_needs, args)):
        return output

    assert all(each is None or each.array.dtype != np.uint8 or id(each) in context.plain for each in output)
    shapes = [None if each is None or id(each) in context.plain else (each.shape, each.array.dtype)
              for each in output]  # fmt: skip

    def back(gradients):
        if context.materialize:  # zeros for what nobody used
            gradients = [Tensor(np.zeros(*shape)) if gradient is None and shape else gradient
                         for gradient, shape in zip(gradients, shapes, strict=True)]  # fmt: skip
        found = list(pairs(args, backward(context, *gradients)))
        for arg, gradient in found:
            assert gradient is None or gradient.shape == arg.shape
        return [gradient for _, gradient in found]

    node = Node([arg for arg, _ in pairs(args, [None] * len(args))], len(output), back)
    for index, each in enumerate(output):
        if each is not None and id(each) not in context.plain:
            each.requires_grad, each.node = True, (node, index)
    return output


class Function:
    """torch.autograd.Function; forward takes a context, or setup_context does."""

    setup_context = None

    @classmethod
    def apply(cls, *args):
        context = Context(args)
        with no_grad():
            if cls.setup_context is None:
                output = cls.forward(context, *args)
            else:
                output = cls.forward(*args)
                cls.setup_context(context, args, output)
        return recorded(context, args, output, cls.backward)


def grad(outputs, inputs, gradients, create_graph=False):
    """Gradients of sum(outputs * gradients) with respect to inputs; None without a way there."""
    found, pending, waiting, marks = {}, {}, [], {}

    def give(tensor, gradient):
        if gradient is None or not isinstance(tensor, Tensor):
            return
        before = found.get(id(tensor))
        found[id(tensor)] = gradient if before is None else before + gradient
        if tensor.node is not None:
            node, index = tensor.node
            if node.order not in pending:
                pending[node.order] = [None] * node.count
                marks[node.order] = node
                heapq.heappush(waiting, -node.order)
            room = pending[node.order]
            room[index] = gradient if room[index] is None else room[index] + gradient

    for tensor, gradient in zip(outputs, gradients, strict=True):
        give(tensor, gradient)
    with told(grad=create_graph):
        while waiting:
            order = -heapq.heappop(waiting)
            node = marks[order]
            for tensor, gradient in zip(node.inputs, node.backward(pending.pop(order)), strict=True):
                give(tensor, gradient)
    return [found.get(id(tensor)) for tensor in inputs]
