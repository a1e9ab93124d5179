"""The whole model of a file as one layer."""

from typing import Any

from openrnn import _core
from openrnn._core import Tensor
from openrnn._layer import Layer
from openrnn.errors import ArgumentError


class LayerGraph(Layer):
    """The layers of a model file, connected as the file says; `openrnn.load(path).model` makes one.

    Batch-major: inputs and outputs begin with B. Masks (of Embedding, Masking) are computed from the
    values of each call. As any layer it has weights and trains under a GradientTape; `openrnn.save`
    writes it with the weights that it has then.

    description, outputs: as a model of load() has them. made: its layers with weights, and those of
    dropout, by name.

    Examples
    --------
    >>> lstm = openrnn.layers.LSTM(4)
    >>> lstm.build((None, None, 3))
    >>> openrnn.save("lstm.json", lstm)
    >>> model = openrnn.load("lstm.json").model
    >>> list(model.layers), model.predict(np.ones((2, 5, 3), "float32")).shape
    (['layers.0'], (2, 5, 4))
    """

    def __init__(
        self,
        description: list[dict[str, Any]],
        outputs: list[tuple[str, int]],
        made: dict[str, Layer],
        name: str | None = None,
    ) -> None:
        self._make(
            "layer_graph",
            {"description": description, "outputs": outputs, "made": made, "name": name},
        )

    @property
    def layers(self) -> dict[str, Layer]:
        """The layers with weights, and those of dropout, by their names in the file."""
        return dict(self._made[1]["made"])

    def get_layer(self, name: str) -> Layer:
        """The layer of that name. Raises ArgumentError when there is none."""
        if name not in self.layers:
            raise ArgumentError(f"[get_layer] name is {name!r}, expected one of {list(self.layers)}")
        return self.layers[name]

    @property
    def inputs(self) -> list[tuple[str, tuple[int | None, ...]]]:
        """(dtype, shape) of what a call is given; None where a size is not known."""
        return _core.graph_inputs(self)

    @property
    def outputs(self) -> list[tuple[str, tuple[int | None, ...]]]:
        """The same of what it returns."""
        return _core.graph_outputs(self)

    def __call__(self, inputs: Any, training: bool = False) -> Any:
        """The output for those inputs, a list of them where the model has several.

        inputs: an array, or a list of them where the model has several inputs. training: whether
        dropout drops.
        """
        return self._any_call(inputs, training) if self._overrides_call else self.call(inputs, training)

    def call(self, inputs: Any, training: bool = False) -> Any:
        """What the layers compute."""
        several = len(self.inputs) > 1
        if several and not isinstance(inputs, (list, tuple)):
            raise ArgumentError(
                f"[{self.name}] the inputs are a {type(inputs).__name__}, expected a list of "
                f"{len(self.inputs)}"
            )
        values = list(inputs) if several else [inputs]
        outputs: list[Tensor] = _core.graph_call(self, values, bool(training))
        return outputs if len(outputs) > 1 else outputs[0]

    def predict(self, inputs: Any) -> Any:
        """The outputs as NumPy arrays, with training off."""
        outputs = self(inputs, training=False)
        return [one.numpy() for one in outputs] if isinstance(outputs, list) else outputs.numpy()

    def reset_states(self) -> None:
        """Stateful layers begin the next call with their initial states again."""
        _core.graph_reset(self)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments, with the name that it has now."""
        return {**self._made[1], "name": self.name}


_core.set_layer_classes({"layer_graph": LayerGraph})
