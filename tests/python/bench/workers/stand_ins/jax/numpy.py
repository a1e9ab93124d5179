"""Functions with NumPy's names."""

import numpy as np
from small_autograd import Tensor, joined, tanh

__all__ = ["asarray", "concatenate", "split", "tanh", "zeros", "zeros_like"]
asarray = Tensor


def split(x, count, axis):
    return x.parts(count, axis)


def concatenate(tensors, axis):
    return joined(tensors, axis % tensors[0].data.ndim)


def zeros(shape, dtype):
    return Tensor(np.zeros(shape, dtype))


def zeros_like(like):
    return zeros(like.shape, like.dtype)
