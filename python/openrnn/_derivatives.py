"""Products with Jacobians and Hessians, by tapes inside tapes."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from openrnn._core import Tensor, Variable
from openrnn._graph import GradientTape
from openrnn._ops import constant, convert_to_tensor, reshape
from openrnn._structure import flatten as _flatten
from openrnn._structure import pack as _pack
from openrnn._typing import TensorLike
from openrnn.errors import ArgumentError


def jvp(
    function: Callable[..., Any], primals: Sequence[TensorLike], tangents: Sequence[TensorLike]
) -> tuple[Any, Any]:
    """function(*primals), and its Jacobian times `tangents`, in the structure of the first.

    The Jacobian-vector product is the gradient of the gradient: for u of the shapes of the outputs,
    d/du of (tangents . J^T u). An output that does not depend on the primals has a tangent of 0.
    Tapes that are open record both. Each tangent has the shape of its primal. Raises
    UnsupportedError naming an operation without a second derivative.

    Examples
    --------
    >>> y, tangent = openrnn.jvp(openrnn.square, [[1.0, 2.0]], [[10.0, 1.0]])
    >>> y.numpy(), tangent.numpy()
    (array([1., 4.], dtype=float32), array([20.,  4.], dtype=float32))
    """
    x, directions = _checked("jvp", "tangents", primals, tangents)
    with GradientTape() as outer:
        leaves = _fresh_leaves(outer, x)
        with GradientTape() as inner:
            outputs = function(*leaves)
        flat = [convert_to_tensor(output) for output in _flatten(outputs)]
        u = [_zeros_like(output) for output in flat]
        outer.watch(u)
        products = inner.gradient(flat, leaves, u)
    kept = [(p, v) for p, v in zip(products, directions, strict=True) if p is not None]
    found = outer.gradient([p for p, _ in kept], u, [v for _, v in kept])
    pairs = zip(found, flat, strict=True)
    return outputs, _pack(outputs, iter([_zeros_like(y) if t is None else t for t, y in pairs]))


def hvp(
    function: Callable[..., Tensor], primals: Sequence[TensorLike], vectors: Sequence[TensorLike]
) -> list[Tensor]:
    """The Hessian of function(*primals), one element, times `vectors`: a tensor for each primal.

    0 where the function is linear in a primal. Each vector has the shape of its primal. Raises
    UnsupportedError naming an operation without a second derivative.

    Examples
    --------
    >>> def function(x):
    ...     return openrnn.reduce_sum(x * x * x)
    >>> openrnn.hvp(function, [[1.0, 2.0]], [[1.0, 1.0]])[0].numpy()
    array([ 6., 12.], dtype=float32)
    """
    x, directions = _checked("hvp", "vectors", primals, vectors)
    with GradientTape() as outer:
        leaves = _fresh_leaves(outer, x)
        with GradientTape() as inner:
            value = function(*leaves)
        if value.numpy().size != 1:
            raise ArgumentError(
                f"[hvp] the function returned shape {tuple(value.shape)}, expected one element"
            )
        gradients = inner.gradient(value, leaves)
    kept = [(g, v) for g, v in zip(gradients, directions, strict=True) if g is not None]
    found = outer.gradient([g for g, _ in kept], leaves, [v for _, v in kept])
    return [_zeros_like(p) if g is None else g for g, p in zip(found, leaves, strict=True)]


def _checked(
    call: str, name: str, primals: Sequence[TensorLike], given: Sequence[TensorLike]
) -> tuple[list[Tensor], list[Tensor]]:
    """Both as tensors: as many of one as of the other, each of its primal's shape."""
    if len(primals) != len(given):
        raise ArgumentError(f"[{call}] {len(given)} {name}, expected {len(primals)}, one a primal")
    x = [p.read_value() if isinstance(p, Variable) else convert_to_tensor(p) for p in primals]
    directions = [convert_to_tensor(v, p.dtype) for p, v in zip(x, given, strict=True)]
    for i, (p, v) in enumerate(zip(x, directions, strict=True)):
        if v.shape != p.shape:
            raise ArgumentError(
                f"[{call}] {name}[{i}] has shape {tuple(v.shape)}, expected {tuple(p.shape)} "
                "as its primal"
            )
    return x, directions


def _fresh_leaves(tape: GradientTape, tensors: list[Tensor]) -> list[Tensor]:
    """Leaves of their own, also where one is given twice; the caller's tapes see through them."""
    leaves = [reshape(tensor, [n for n in tensor.shape if n is not None]) for tensor in tensors]
    tape.watch(leaves)
    return leaves


def _zeros_like(tensor: Tensor) -> Tensor:
    return constant(np.zeros(tensor.shape), tensor.dtype)
