"""Operations of networks, under the names of tf.nn."""

from openrnn import _arguments, _core
from openrnn._core import Tensor
from openrnn._typing import TensorLike
from openrnn.nn import rnn_cell
from openrnn.nn._loops import (
    bidirectional_dynamic_rnn,
    dynamic_rnn,
    stack_bidirectional_dynamic_rnn,
    static_rnn,
)

__all__ = [
    "bidirectional_dynamic_rnn",
    "ctc_loss",
    "dropout",
    "dynamic_rnn",
    "embedding_lookup",
    "l2_loss",
    "log_softmax",
    "relu",
    "rnn_cell",
    "sigmoid",
    "sigmoid_cross_entropy_with_logits",
    "softmax",
    "softplus",
    "sparse_softmax_cross_entropy_with_logits",
    "stack_bidirectional_dynamic_rnn",
    "static_rnn",
    "tanh",
]


def relu(features: TensorLike) -> Tensor:
    """max(0, x).

    Examples
    --------
    >>> openrnn.nn.relu([-1.0, 2.0]).numpy()
    array([0., 2.], dtype=float32)
    """
    return _core.relu(features)


def tanh(x: TensorLike) -> Tensor:
    """The hyperbolic tangent.

    Examples
    --------
    >>> openrnn.nn.tanh([0.0, 1.0]).numpy().round(4)
    array([0.    , 0.7616], dtype=float32)
    """
    return _core.tanh(x)


def sigmoid(x: TensorLike) -> Tensor:
    """1 / (1 + exp(-x)).

    Examples
    --------
    >>> openrnn.nn.sigmoid([0.0, 1.0]).numpy().round(4)
    array([0.5   , 0.7311], dtype=float32)
    """
    return _core.sigmoid(x)


def softplus(features: TensorLike) -> Tensor:
    """log(1 + exp(x)), within 2 ulp.

    Examples
    --------
    >>> openrnn.nn.softplus([0.0, 1.0]).numpy().round(4)
    array([0.6931, 1.3133], dtype=float32)
    """
    return _core.softplus(features)


def softmax(logits: TensorLike, axis: int = -1) -> Tensor:
    """exp(x) / sum(exp(x)) along an axis.

    Examples
    --------
    >>> openrnn.nn.softmax([0.0, 1.0]).numpy().round(4)
    array([0.2689, 0.7311], dtype=float32)
    """
    return _core.softmax(logits, axis)


def log_softmax(logits: TensorLike, axis: int = -1) -> Tensor:
    """x - log(sum(exp(x))) along an axis.

    Examples
    --------
    >>> openrnn.nn.log_softmax([0.0, 1.0]).numpy().round(4)
    array([-1.3133, -0.3133], dtype=float32)
    """
    return _core.log_softmax(logits, axis)


def dropout(
    x: TensorLike,
    keep_prob: float | None = None,
    seed: int | None = None,
    *,
    rate: float | None = None,
) -> Tensor:
    """Elements set to 0 with probability `rate` = 1 - keep_prob, the others scaled by its inverse.

    Each call has another mask; with a seed, a new process repeats them.

    Examples
    --------
    >>> x = openrnn.nn.dropout(np.ones(1000, "float32"), rate=0.5, seed=1).numpy()
    >>> sorted(set(x.tolist())), bool(400 < (x > 0).sum() < 600)
    ([0.0, 2.0], True)
    """
    if (keep_prob is None) == (rate is None):
        from openrnn.errors import ArgumentError

        raise ArgumentError("[dropout] expected one of keep_prob and rate")
    kept = 0.0 if keep_prob is None else _arguments.as_number("dropout", "keep_prob", keep_prob)
    dropped = rate if rate is not None else 1.0 - kept
    return _core.dropout(x, dropped, seed)


def embedding_lookup(params: TensorLike, ids: TensorLike) -> Tensor:
    """Rows of params [N, D] at ids [..]: [.., D].

    Examples
    --------
    >>> openrnn.nn.embedding_lookup([[1.0, 2.0], [3.0, 4.0]], [1, 1, 0]).numpy()
    array([[3., 4.],
           [3., 4.],
           [1., 2.]], dtype=float32)
    """
    return _core.embedding_lookup(params, ids)


def sparse_softmax_cross_entropy_with_logits(labels: TensorLike, logits: TensorLike) -> Tensor:
    """The loss in nats of each row of logits [.., C] against labels [..]; 0 for a label below 0.

    Examples
    --------
    >>> loss = openrnn.nn.sparse_softmax_cross_entropy_with_logits
    >>> loss([1, -1], [[0.0, 1.0], [0.0, 1.0]]).numpy().round(4)
    array([0.3133, 0.    ], dtype=float32)
    """
    return _core.cross_entropy_rows(logits, labels)


def sigmoid_cross_entropy_with_logits(labels: TensorLike, logits: TensorLike) -> Tensor:
    """Elementwise, -z log(sigmoid(x)) - (1 - z) log(1 - sigmoid(x)) of labels z in [0, 1].

    Examples
    --------
    >>> openrnn.nn.sigmoid_cross_entropy_with_logits([1.0, 0.0], [0.0, 1.0]).numpy().round(4)
    array([0.6931, 1.3133], dtype=float32)
    """
    return _core.sigmoid_cross_entropy(logits, labels)


def ctc_loss(
    labels: TensorLike,
    logits: TensorLike,
    label_length: TensorLike = None,
    logit_length: TensorLike = None,
    logits_time_major: bool = True,
    blank_index: int = 0,
) -> Tensor:
    """The loss in nats of each row [B] of logits [T, B, C] against int32 labels [B, L].

    Minus the logarithm of the probability of all alignments (Graves et al., 2006). No label_length:
    the labels before the first below 0; no logit_length: all T. A row with fewer steps than its
    labels need has an infinite loss and a gradient of 0. Computed on the host.

    Examples
    --------
    >>> logits = np.zeros((2, 1, 3), "float32")  # 9 paths of 2 steps, 3 of which are the label 1
    >>> openrnn.nn.ctc_loss(np.array([[1]], "int32"), logits).numpy().round(4)
    array([1.0986], dtype=float32)
    """
    return _core.ctc_loss(
        labels, logits, label_length, logit_length, logits_time_major, blank_index
    )


def l2_loss(t: TensorLike) -> Tensor:
    """sum(t^2) / 2.

    Examples
    --------
    >>> openrnn.nn.l2_loss([3.0, 4.0]).item()
    12.5
    """
    return _core.l2(t, 1.0)


