"""Symbolic inputs, and models that run what was recorded from them."""

import os
from typing import TYPE_CHECKING, Any, Generic, Literal, cast, overload

from numpy.typing import NDArray

from openrnn import _arguments, _copies, _core
from openrnn._core import Tensor
from openrnn._layer import Layer
from openrnn._optimizers import Optimizer
from openrnn._structure import along as _along
from openrnn._structure import flatten as _flatten
from openrnn._structure import pack as _pack
from openrnn._subclasses import or_own_call
from openrnn._fit_callbacks import EarlyStopping, History
from openrnn._fit_loop import Loss, evaluate, fit, predict
from openrnn._fit_model_file import save_model
from openrnn._fit_report import summary
from openrnn._fit_schedules import Schedule
from openrnn._typing import DTypeLike, ShapeLike
from openrnn.errors import ArgumentError

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    _Outputs = TypeVar("_Outputs", default=Any)
else:
    from typing import TypeVar

    _Outputs = TypeVar("_Outputs")


def Input(  # noqa: N802 - TensorFlow's name
    shape: ShapeLike | None = None,
    batch_size: int | None = None,
    name: str | None = None,
    dtype: DTypeLike = "float32",
    batch_shape: ShapeLike | None = None,
) -> Tensor:
    """A symbolic tensor, whose value is given to a Model when it is called.

    `batch_shape` is the whole shape, None where a size is not known: (None, None, 5) is time,
    batch and depth of a recurrent layer. Or `shape` is the shape without its first dimension,
    which is then `batch_size`.

    Examples
    --------
    >>> openrnn.Input((3,)).shape, openrnn.Input(batch_shape=(None, 8, 3)).shape
    ((None, 3), (None, 8, 3))
    """
    if (shape is None) == (batch_shape is None):
        raise ArgumentError("[Input] expected one of shape and batch_shape")
    if batch_shape is None:
        sizes = getattr(shape, "as_list", lambda: shape)()
        batch_shape = (batch_size, *_arguments.as_list("Input", "shape", sizes, "sizes"))
    elif batch_size is not None:
        raise ArgumentError("[Input] batch_size and batch_shape are given, expected one of them")
    return _core.make_input(batch_shape, dtype, name or "")


class Model(Layer, Generic[_Outputs]):
    """The recorded calls between symbolic inputs and outputs, as one layer.

    `inputs` and `outputs` are symbolic tensors, or lists or tuples of them; calls return the
    structure of `outputs`, which type checkers know: a Model[Tensor] returns a Tensor.

    Examples
    --------
    >>> x = openrnn.Input(batch_shape=(None, None, 3))
    >>> output, state = openrnn.cudnn_rnn.CudnnGRU(1, 4)(x)
    >>> model = openrnn.Model(x, openrnn.layers.Dense(2)(output))
    >>> model(np.zeros((5, 2, 3), "float32")).shape
    (5, 2, 2)
    """

    def __init__(self, inputs: Any, outputs: _Outputs, name: str | None = None) -> None:
        self._make(
            "model", {"inputs": _flatten(inputs), "outputs": _flatten(outputs), "name": name}
        )
        self._inputs = inputs
        self._outputs = outputs

    @property
    def inputs(self) -> list[Tensor]:
        """The symbolic inputs."""
        return _core.model_inputs(self)

    @property
    def outputs(self) -> list[Tensor]:
        """The symbolic outputs."""
        return _core.model_outputs(self)

    @property
    def layers(self) -> list[Any]:
        """The layers that were called, in the order of their first call."""
        return _core.model_layers(self)

    @or_own_call
    def __call__(self, inputs: Any, training: bool | None = None) -> _Outputs:
        """The outputs for values of the inputs, or for other symbolic ones.

        `training` None: as each call was recorded.
        """
        return self.call(inputs, training)

    def call(self, inputs: Any, training: bool | None = None) -> _Outputs:
        """What the model computes."""
        flat = iter(_core.model_call(self, self._values(inputs), training))
        return cast(_Outputs, _pack(self._outputs, flat))

    def _as_inputs(self, flat: list[Any]) -> list[Any]:
        if len(flat) != len(self.inputs):
            return flat
        return [_core.convert(x, spec.dtype) for x, spec in zip(flat, self.inputs, strict=True)]

    def _values(self, inputs: Any) -> list[Any]:
        if not isinstance(self._inputs, (list, tuple)):
            return [inputs]
        if not isinstance(inputs, (list, tuple)):
            return [inputs]
        along = _along(self._inputs, inputs)
        return _flatten(inputs) if along is None else along

    @overload
    def predict(
        self: "Model[Tensor]",
        x: Any,
        batch_size: int | None = ...,
        *,
        batch_axis: int | tuple[int, int] = ...,
    ) -> NDArray[Any]: ...

    @overload
    def predict(
        self, x: Any, batch_size: int | None = ..., *, batch_axis: int | tuple[int, int] = ...
    ) -> Any: ...

    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        *,
        batch_axis: int | tuple[int, int] = 0,
    ) -> Any:
        """The outputs as NumPy arrays, with training off.

        `batch_size` samples at a time, along `batch_axis` of x, or (of x, of the outputs); None: all
        at once.
        """
        return predict(self, x, batch_size, batch_axis)

    def fit(
        self,
        data: Any,
        loss: Loss,
        optimizer: Optimizer,
        epochs: int = 1,
        *,
        validation: Any = None,
        callbacks: Any = None,
        early_stopping: EarlyStopping | int | None = None,
        progress: bool = True,
        tensorboard: str | os.PathLike[str] | None = None,
        micro_batches: int = 1,
        clip_norm: float | None = None,
        schedule: Schedule | float | None = None,
        batch_size: int = 32,
        seed: int = 0,
        shuffle: bool = True,
        batch_axis: int | tuple[int, int] = 0,
        steps_per_epoch: int | None = None,
        communicator: Any = None,
        reduction: Literal["exact", "fast"] = "exact",
    ) -> History:
        """Trains the model; train.fit() says what the arguments are."""
        arguments = dict(locals())
        del arguments["self"]
        return fit(self, **arguments)

    def evaluate(
        self,
        data: Any,
        loss: Loss,
        *,
        batch_size: int = 32,
        batch_axis: int | tuple[int, int] = 0,
    ) -> float:
        """The mean loss over all samples, with training off; arguments as of train.fit()."""
        return evaluate(self, data, loss, batch_size=batch_size, batch_axis=batch_axis)

    def summary(self) -> str:
        """A table of the layers, their outputs and parameters, 80 columns wide."""
        return summary(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the whole model, its calls and its weights; openrnn.load_model() reads it."""
        save_model(self, path)

    def get_layer(self, name: str | None = None, index: int | None = None) -> Any:
        """The layer of that name or index. Raises ArgumentError when there is none."""
        layers = self.layers
        if index is not None:
            index = _arguments.as_integer("get_layer", "index", index)
            if not -len(layers) <= index < len(layers):
                raise ArgumentError(
                    f"[get_layer] index is {index}, expected {-len(layers)} to {len(layers) - 1}"
                )
            return layers[index]
        for layer in layers:
            if layer.name == name:
                return layer
        raise ArgumentError(
            f"[get_layer] name is {name!r}, expected one of {[layer.name for layer in layers]}"
        )

    def save_weights(self, prefix: str) -> str:
        """Writes the values of the weights, and the canonical tensors, to a checkpoint."""
        from openrnn.train import Saver

        return Saver(self._saved()).save(prefix)

    def load_weights(self, prefix: str) -> None:
        """Reads what save_weights() wrote, or any checkpoint with these variables."""
        from openrnn.train import Saver

        Saver(self._saved()).restore(prefix)

    def _saved(self) -> list[Any]:
        saveables = [getattr(layer, "saveable", None) for layer in self.layers]
        return [*self.weights, *(one for one in saveables if one is not None)]

    def __reduce__(self) -> tuple[Any, ...]:
        # The calls come first, each after its inputs: nothing recurses along the graph.
        recorded = (_core.model_calls(self), self.inputs, self.outputs, _core.model_losses(self))
        state = (recorded, _core.layer_state(self), dict(self.__dict__))
        return _copies.make_model, (type(self),), state

    def __setstate__(self, state: Any) -> None:
        (_, inputs, outputs, losses), made, attributes = state
        options = {"inputs": inputs, "outputs": outputs, "copied": True}
        _core.LayerBase.__init__(self, "model", options)
        _core.layer_take_over(self, made)
        _core.model_add_losses(losses)
        super().__setstate__(attributes)
        self._install()

    def get_config(self) -> dict[str, Any]:
        """Inputs, outputs and name: the structure is that of the recorded calls."""
        return {"inputs": self._inputs, "outputs": self._outputs, "name": self.name}



_core.set_layer_classes({"model": Model})
