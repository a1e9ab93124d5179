"""Losses, each a scalar."""

from openrnn import _core
from openrnn._core import Tensor
from openrnn._typing import TensorLike


def mean_squared_error(labels: TensorLike, predictions: TensorLike) -> Tensor:
    """The mean of (predictions - labels)^2 over all elements.

    Examples
    --------
    >>> openrnn.losses.mean_squared_error([1.0, 2.0], [1.0, 4.0]).item()
    2.0
    """
    return _core.mean_squared_error(predictions, labels)


def sparse_softmax_cross_entropy(labels: TensorLike, logits: TensorLike) -> Tensor:
    """The mean loss in nats of logits [.., C] against labels [..]; labels below 0 are ignored.

    Examples
    --------
    >>> logits = [[0.0, 1.0], [0.0, 1.0]]
    >>> round(openrnn.losses.sparse_softmax_cross_entropy([1, -1], logits).item(), 4)
    0.3133
    """
    return _core.cross_entropy(logits, labels)


def binary_cross_entropy(
    labels: TensorLike,
    predictions: TensorLike,
    from_logits: bool = False,
    *,
    epsilon: float = 1e-7,
) -> Tensor:
    """The mean loss in nats of labels in [0, 1] against probabilities, or against logits.

    Probabilities are kept within [epsilon, 1 - epsilon]; shapes broadcast.

    Examples
    --------
    >>> round(openrnn.losses.binary_cross_entropy([1.0, 0.0], [0.5, 0.5]).item(), 4)
    0.6931
    >>> round(openrnn.losses.binary_cross_entropy([1.0], [1.0], from_logits=True).item(), 4)
    0.3133
    """
    rows = (
        _core.sigmoid_cross_entropy(predictions, labels)
        if from_logits
        else _core.binary_cross_entropy(predictions, labels, epsilon)
    )
    return _core.reduce_mean(rows, None, False)


def ctc_loss(
    labels: TensorLike,
    logits: TensorLike,
    label_length: TensorLike = None,
    logit_length: TensorLike = None,
    logits_time_major: bool = True,
    blank_index: int = 0,
) -> Tensor:
    """The mean over the rows of openrnn.nn.ctc_loss.

    Examples
    --------
    >>> logits = np.zeros((2, 1, 3), "float32")  # 9 paths of 2 steps, 3 of which are the label 1
    >>> round(openrnn.losses.ctc_loss(np.array([[1]], "int32"), logits).item(), 4)
    1.0986
    """
    rows = _core.ctc_loss(
        labels, logits, label_length, logit_length, logits_time_major, blank_index
    )
    return _core.reduce_mean(rows, None, False)
