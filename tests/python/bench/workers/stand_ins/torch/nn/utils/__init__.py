"""Clipping."""

import numpy as np
from torch.nn.utils import rnn

__all__ = ["clip_grad_norm_", "rnn"]


def clip_grad_norm_(parameters, most):
    norm = np.sqrt(sum(float((each.grad.data.astype("float64") ** 2).sum()) for each in parameters))
    for each in parameters:
        each.grad.data = each.grad.data * np.float32(min(1.0, most / (norm + 1e-6)))
