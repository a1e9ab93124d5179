"""Losses, each a scalar."""

from openrnn import _core
from openrnn._core import Tensor
from openrnn._typing import TensorLike


def mean_squared_error(labels: TensorLike, predictions: TensorLike) -> Tensor:
    """The mean of (predictions - labels)^2 over all elements."""
    return _core.mean_squared_error(predictions, labels)


def sparse_softmax_cross_entropy(labels: TensorLike, logits: TensorLike) -> Tensor:
    """The mean loss in nats of logits [.., C] against labels [..]; labels below 0 are ignored."""
    return _core.cross_entropy(logits, labels)
