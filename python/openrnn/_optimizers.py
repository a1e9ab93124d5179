"""Optimizers, under the names of tf.train and torch.optim."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from openrnn import _arguments, _copies, _core
from openrnn._core import Tensor, Variable
from openrnn._graph import GradientTape, trainable_variables
from openrnn._typing import TensorLike
from openrnn.errors import ArgumentError

GradsAndVars = list[tuple[Tensor | None, Variable]]


class Optimizer(_core.OptimizerBase):
    """Changes variables by their gradients; slots are variables of the current graph.

    A deep copy or a pickle holds the variables that have slots as well: copied in one go with a
    model, it continues with the model's.

    Examples
    --------
    >>> w = openrnn.Variable([1.0, 2.0])
    >>> optimizer = openrnn.train.MomentumOptimizer(0.5, momentum=0.9)
    >>> optimizer.minimize(lambda: openrnn.reduce_sum(w * w)).item(), w.numpy().tolist()
    (5.0, [0.0, 0.0])
    >>> optimizer.get_slot_names(), optimizer.get_slot(w, "momentum").numpy().tolist()
    (['momentum'], [2.0, 4.0])
    """

    def __init__(self, kind: str, options: dict[str, Any]) -> None:
        super().__init__(kind, options)
        self._made = (kind, options)

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (type(self), self._made, _core.optimizer_state(self))
        return _copies.make_optimizer, arguments, dict(self.__dict__)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return _copies.deep_copy(self, memo)

    def compute_gradients(
        self, loss: Callable[[], Tensor], var_list: Sequence[Variable] | None = None
    ) -> GradsAndVars:
        """(gradient, variable) of loss() for each variable; None where it does not depend on it.

        `var_list` None: all trainable variables, those that loss() makes included.
        """
        tape, value, variables = self._record("compute_gradients", loss, var_list)
        gradients = self.compute_core(tape._tape, value, variables)
        return list(zip(gradients, variables, strict=True))

    def _record(
        self, call: str, loss: Callable[[], Tensor], var_list: Sequence[Variable] | None
    ) -> tuple[GradientTape, Tensor, list[Variable]]:
        if not callable(loss):
            raise TypeError(
                f"[{call}] loss is a {type(loss).__name__}, expected a function that returns a "
                "Tensor"
            )
        with GradientTape() as tape:
            value = loss()
        if not isinstance(value, Tensor):
            raise TypeError(
                f"[{call}] loss() returned a {type(value).__name__}, expected a Tensor"
            )
        variables = trainable_variables()
        if var_list is not None:
            variables = _arguments.as_list(call, "var_list", var_list, "variables")
        if not variables:
            raise ArgumentError(f"[{call}] there are no variables, expected some")
        return tape, value, variables

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[TensorLike, Variable]],
        global_step: Variable | None = None,
    ) -> None:
        """One update; a gradient None leaves its variable alone. Adds 1 to global_step."""
        pairs = [
            _arguments.as_list("apply_gradients", "an element", one, "two: gradient, variable")
            for one in _arguments.as_list("apply_gradients", "grads_and_vars", grads_and_vars, "pairs")
        ]
        if any(len(one) != 2 for one in pairs):
            raise ArgumentError(
                "[apply_gradients] an element is no pair, expected (gradient, variable)"
            )
        if not pairs:
            raise ArgumentError("[apply_gradients] there are no variables, expected some")
        if all(gradient is None for gradient, _ in pairs):
            names = [variable.name for _, variable in pairs]
            raise ArgumentError(
                f"[apply_gradients] no gradients for any variable of {names}, expected one"
            )
        self.apply_core(
            [gradient for gradient, _ in pairs], [variable for _, variable in pairs], global_step
        )

    def minimize(
        self,
        loss: Callable[[], Tensor],
        global_step: Variable | None = None,
        var_list: Sequence[Variable] | None = None,
        *,
        clip_norm: float | None = None,
    ) -> Tensor:
        """compute_gradients(), then apply_gradients(); returns the loss before the update.

        `clip_norm`: the gradients are clipped as by clip_by_global_norm in between; None: no
        clipping. With float16 variables, whose losses are scaled, a step whose gradients are not finite is skipped; else that
        is an ArgumentError, which a GPU raises at the next step or in finish().
        """
        limit = 0.0 if clip_norm is None else _arguments.as_number("minimize", "clip_norm", clip_norm)
        if clip_norm is not None and not limit > 0.0:
            raise ArgumentError(
                f"[minimize] clip_norm is {limit}, expected a number above 0, or None"
            )
        tape, value, variables = self._record("minimize", loss, var_list)
        if not value.is_tracked:
            names = [variable.name for variable in variables]
            raise ArgumentError(f"[minimize] no gradients for any variable of {names}")
        self.minimize_core(tape._tape, value, variables, global_step, limit)
        return value

    def variables(self) -> list[Variable]:
        """The slots and scalars that this optimizer has made."""
        return self.made_variables()


class GradientDescentOptimizer(Optimizer):
    """var -= lr * g.

    Examples
    --------
    >>> w = openrnn.Variable([1.0, 2.0])
    >>> openrnn.train.GradientDescentOptimizer(0.5).apply_gradients([([3.0, -4.0], w)])
    >>> w.numpy().tolist()
    [-0.5, 4.0]
    """

    def __init__(self, learning_rate: float) -> None:
        super().__init__("sgd", {"learning_rate": learning_rate})


class MomentumOptimizer(Optimizer):
    """a = momentum * a + g; var -= lr * a, with nesterov lr * g + lr * momentum * a.

    Examples
    --------
    >>> w = openrnn.Variable(1.0)
    >>> optimizer = openrnn.train.MomentumOptimizer(0.5, momentum=0.5)
    >>> for step in range(2):
    ...     optimizer.apply_gradients([(1.0, w)])
    >>> w.numpy().item()
    -0.25
    """

    def __init__(self, learning_rate: float, momentum: float, use_nesterov: bool = False) -> None:
        super().__init__(
            "momentum",
            {"learning_rate": learning_rate, "momentum": momentum, "use_nesterov": use_nesterov},
        )


class AdagradOptimizer(Optimizer):
    """a += g^2; var -= lr * g / sqrt(a).

    Examples
    --------
    >>> w = openrnn.Variable([1.0, 2.0])
    >>> optimizer = openrnn.train.AdagradOptimizer(0.5, initial_accumulator_value=7.0)
    >>> optimizer.apply_gradients([([3.0, -3.0], w)])
    >>> w.numpy().tolist()
    [0.625, 2.375]
    """

    def __init__(self, learning_rate: float, initial_accumulator_value: float = 0.1) -> None:
        super().__init__(
            "adagrad",
            {
                "learning_rate": learning_rate,
                "initial_accumulator_value": initial_accumulator_value,
            },
        )


class RMSPropOptimizer(Optimizer):
    """ms = decay * ms + (1 - decay) * g^2; mom = momentum * mom + lr * g / sqrt(ms + epsilon);
    var -= mom. Centered: the variance in place of ms.

    Examples
    --------
    >>> w = openrnn.Variable([1.0, 2.0])
    >>> optimizer = openrnn.train.RMSPropOptimizer(0.5, decay=0.0)
    >>> optimizer.apply_gradients([([3.0, -4.0], w)])
    >>> w.numpy().round(4).tolist()
    [0.5, 2.5]
    """

    def __init__(
        self,
        learning_rate: float,
        decay: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-10,
        centered: bool = False,
    ) -> None:
        super().__init__(
            "rmsprop",
            {
                "learning_rate": learning_rate,
                "decay": decay,
                "momentum": momentum,
                "epsilon": epsilon,
                "centered": centered,
            },
        )


def _adam_options(rate: float, beta1: float, beta2: float, epsilon: float) -> dict[str, Any]:
    return {"learning_rate": rate, "beta1": beta1, "beta2": beta2, "epsilon": epsilon}


class AdamOptimizer(Optimizer):
    """m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g^2;
    var -= lr * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + epsilon).

    TensorFlow 1's, whose epsilon stands beside the root that is not corrected ("epsilon hat" of
    Kingma and Ba). Keras's Adam is the same with epsilon 1e-7; PyTorch's is Adam.

    Examples
    --------
    >>> w = openrnn.Variable([1.0, 2.0])
    >>> openrnn.train.AdamOptimizer(0.5).apply_gradients([([3.0, -4.0], w)])
    >>> w.numpy().round(6).tolist()
    [0.5, 2.5]
    """

    def __init__(
        self,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
    ) -> None:
        super().__init__("adam", _adam_options(learning_rate, beta1, beta2, epsilon))


class Adam(Optimizer):
    """m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g^2;
    var -= lr * m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon).

    PyTorch's torch.optim.Adam, Algorithm 1 of Kingma and Ba: epsilon stands beside the corrected
    root. AdamOptimizer, TensorFlow's, has it beside the other one.

    Examples
    --------
    >>> w = openrnn.Variable([1.0, 2.0])
    >>> openrnn.train.Adam(0.5, epsilon=3.0).apply_gradients([([3.0, -3.0], w)])
    >>> w.numpy().tolist()
    [0.75, 2.25]
    """

    def __init__(
        self,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
    ) -> None:
        rates = _adam_options(learning_rate, beta1, beta2, epsilon)
        super().__init__("adam_w", {**rates, "weight_decay": 0.0})


class AdamW(Optimizer):
    """var *= 1 - lr * weight_decay, then an update of Adam: PyTorch's torch.optim.AdamW.

    The decay is decoupled: it is in no gradient and in neither m nor v. It is applied to every
    variable that has a gradient, biases too.

    Examples
    --------
    >>> w = openrnn.Variable([1.0, 2.0])
    >>> openrnn.train.AdamW(0.5, weight_decay=0.5).apply_gradients([([3.0, -3.0], w)])
    >>> w.numpy().tolist()
    [0.25, 2.0]
    """

    def __init__(
        self,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        rates = _adam_options(learning_rate, beta1, beta2, epsilon)
        super().__init__("adam_w", {**rates, "weight_decay": weight_decay})
