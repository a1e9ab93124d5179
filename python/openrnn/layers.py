"""Layer, the base of everything with variables of its own, and the layers around recurrent ones."""

import copy
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from openrnn import _core, initializers
from openrnn._core import Tensor, Variable
from openrnn._structure import flatten as _flatten
from openrnn._structure import pack as _pack
from openrnn._typing import DTypeLike, Initializer, Regularizer, ShapeLike, TensorLike
from openrnn.errors import ArgumentError


class InputSpec(NamedTuple):
    """What a layer demands of its input: number of dimensions, and sizes by axis."""

    ndim: int | None
    axes: dict[int, int]


def _snake_case(name: str) -> str:
    spaced = re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", spaced).lower()


class Layer(_core.LayerBase):
    """The members that every layer and cell has, as those of tf.layers.Layer.

    A subclass of one's own says in `call` what it computes, and may make weights in `build`.
    """

    def __init__(
        self,
        trainable: bool = True,
        name: str | None = None,
        dtype: DTypeLike = "float32",
        *,
        device: str | None = None,
    ) -> None:
        self._make(
            "python",
            {
                "trainable": trainable,
                "name": name or "",
                "default_name": _snake_case(type(self).__name__),
                "dtype": dtype or "float32",
                "device": device,
            },
        )

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # build() opens the layer's scope and marks it built around what the subclass does.
        super().__init_subclass__(**kwargs)
        if "build" in cls.__dict__:
            cls._build_weights = cls.__dict__["build"]  # type: ignore[method-assign]
            del cls.build

    def _make(self, kind: str, options: dict[str, Any]) -> None:
        _core.LayerBase.__init__(self, kind, options)

    def _build_weights(self, input_shape: ShapeLike) -> None:
        """What build() does inside the layer's scope."""

    @property
    def input_spec(self) -> InputSpec | None:
        """What the layer demands of its input; None before it is built."""
        spec = self.input_spec_core()
        return None if spec is None else InputSpec(spec[0], dict(spec[1]))

    def build(self, input_shape: ShapeLike) -> None:
        """Makes the variables for inputs of that shape; does nothing when built."""
        self.build_core(input_shape)

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """What the layer computes; each class says what it takes."""
        raise NotImplementedError(f"[{type(self).__name__}] it has no call(), expected one")

    def apply(self, *args: Any, **kwargs: Any) -> Any:
        """The same as calling the layer."""
        return self(*args, **kwargs)

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """call(), after building at first use. `scope`: a variable scope for that."""
        scope = kwargs.pop("scope", None)
        found: list[Any] = []

        def run(tensors: list[Tensor]) -> list[Any]:
            output = self.call(_pack(inputs, iter(tensors)), *args, **kwargs)
            if output is None:
                raise ArgumentError(f"[{self.name}] call() returned None, expected a Tensor")
            found[:] = [output]
            return _flatten(output)

        name = "" if scope is None else str(getattr(scope, "name", scope))
        outputs = self.python_call(_flatten(inputs), name, run)
        return _pack(found[0], iter(outputs))

    def add_weight(
        self,
        name: str,
        shape: ShapeLike,
        dtype: DTypeLike = None,
        initializer: Initializer = None,
        regularizer: Regularizer | None = None,
        trainable: bool = True,
        constraint: Callable[[Tensor], TensorLike] | None = None,
    ) -> Variable:
        """A variable of the layer's scope. Defaults: the layer's dtype, glorot_uniform."""
        return self.add_weight_core(
            name,
            shape,
            dtype,
            initializers.get(initializer),
            regularizer,
            trainable,
            constraint,
        )

    def add_variable(
        self,
        name: str,
        shape: ShapeLike,
        dtype: DTypeLike = None,
        initializer: Initializer = None,
        regularizer: Regularizer | None = None,
        trainable: bool = True,
        constraint: Callable[[Tensor], TensorLike] | None = None,
    ) -> Variable:
        """The same as add_weight()."""
        return self.add_weight(
            name, shape, dtype, initializer, regularizer, trainable, constraint
        )

    def add_loss(self, losses: Any, inputs: Any = None) -> None:
        """Adds a loss or a list of them: tensors, or functions that compute one when asked.

        `inputs` are those that the losses depend on; None: no input. They go to the collection
        REGULARIZATION_LOSSES as well.
        """
        for loss in losses if isinstance(losses, (list, tuple)) else [losses]:
            if loss is not None:
                self.add_loss_core(loss, inputs)

    def add_update(self, updates: Any, inputs: Any = None) -> None:
        """Adds something, or a list, to be run after a training step."""
        for update in updates if isinstance(updates, (list, tuple)) else [updates]:
            self.add_update_core(update, inputs)

    def get_losses_for(self, inputs: Any) -> list[Tensor]:
        """The losses that depend on one of `inputs`; for None those that depend on none."""
        return self.get_losses_for_core(inputs)

    def get_updates_for(self, inputs: Any) -> list[Any]:
        """The updates that depend on one of `inputs`; for None those that depend on none."""
        return self.get_updates_for_core(inputs)

    def get_input_at(self, node_index: int) -> Any:
        """The inputs of a call on symbolic tensors; a list when there are several."""
        return self.get_input_at_core(node_index)

    def get_output_at(self, node_index: int) -> Any:
        """The outputs of a call on symbolic tensors; a list when there are several."""
        return self.get_output_at_core(node_index)

    def get_input_shape_at(self, node_index: int) -> Any:
        """The shapes of get_input_at()."""
        return self.get_input_shape_at_core(node_index)

    def get_output_shape_at(self, node_index: int) -> Any:
        """The shapes of get_output_at()."""
        return self.get_output_shape_at_core(node_index)

    def get_input_mask_at(self, node_index: int) -> Any:
        """None: no layer here makes a mask."""
        return self.get_input_mask_at_core(node_index)

    def get_output_mask_at(self, node_index: int) -> Any:
        """None: no layer here makes a mask."""
        return self.get_output_mask_at_core(node_index)

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:
        """None. Raises TypeError for a mask, which no layer here supports."""
        masks = mask if isinstance(mask, (list, tuple)) else [mask]
        if any(one is not None for one in masks):
            raise TypeError(
                f"[{self.name}] a mask of type '{type(mask).__name__}', expected None: "
                "the layer does not support masking"
            )

    def compute_output_shape(self, input_shape: ShapeLike) -> tuple[int | None, ...]:
        """The shape of the output for inputs of that shape."""
        return self.compute_output_shape_core(input_shape)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments; from_config() is the inverse."""
        return {"name": self.name, "trainable": self.trainable, "dtype": self.dtype}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Layer":
        """A new layer from what get_config() returned."""
        return cls(**config)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self._copy_attributes(self.copy_core(), memo)

    def _copy_attributes(self, made: Any, memo: dict[int, Any]) -> Any:
        memo[id(self)] = made
        made.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return made

    def __repr__(self) -> str:
        return f"<openrnn.{type(self).__name__} '{self.name}'>"


class _Simple(Layer):
    """A layer of one input and one output."""

    def _take(self, trainable: bool) -> None:
        self.trainable = trainable

    def __call__(self, inputs: TensorLike) -> Tensor:
        """The output for those inputs."""
        return self.simple_call(inputs, False)

    def call(self, inputs: TensorLike, *args: Any, **kwargs: Any) -> Tensor:
        """The same as calling the layer."""
        return self(inputs, *args, **kwargs)


_ACTIVATIONS = ("linear", "relu", "tanh", "sigmoid")


class Dense(_Simple):
    """activation(x kernel + bias): [.., I] to [.., units]. Variables `kernel` and `bias`."""

    def __init__(
        self,
        units: int,
        activation: str | Callable[[Tensor], Tensor] | None = None,
        use_bias: bool = True,
        kernel_initializer: Initializer = None,
        bias_initializer: Initializer = None,
        name: str | None = None,
        *,
        dtype: DTypeLike = "float32",
        seed: int | None = None,
        trainable: bool = True,
        device: str | None = None,
    ) -> None:
        self._make(
            "dense",
            {
                "units": units,
                "activation": activation if isinstance(activation, str) else "linear",
                "use_bias": use_bias,
                "kernel_initializer": initializers.get(kernel_initializer),
                "bias_initializer": initializers.get(bias_initializer),
                "name": name,
                "dtype": dtype,
                "seed": seed,
                "device": device,
            },
        )
        self._take(trainable)
        self.units = units
        self.activation = activation
        self.use_bias = use_bias
        self._config = {
            "kernel_initializer": initializers.serialize(kernel_initializer),
            "bias_initializer": initializers.serialize(bias_initializer),
            "seed": seed,
            "device": device,
        }

    def __call__(self, inputs: TensorLike) -> Tensor:
        """inputs [.., I] to [.., units]."""
        output = self.simple_call(inputs, False)
        if callable(self.activation):
            return self.activation(output)
        return output

    @property
    def kernel(self) -> Variable | None:
        """[I, units]; None before it is built."""
        return self.simple_variable("kernel")

    @property
    def bias(self) -> Variable | None:
        """[units]; None without bias."""
        return self.simple_variable("bias")

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "units": self.units,
            "activation": self.activation,
            "use_bias": self.use_bias,
            **self._config,
        }


class Embedding(_Simple):
    """Rows of a table: indices [..] to [.., output_dim]. Variable `embeddings`."""

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        embeddings_initializer: Initializer = None,
        name: str | None = None,
        *,
        dtype: DTypeLike = "float32",
        seed: int | None = None,
        trainable: bool = True,
        device: str | None = None,
    ) -> None:
        self._make(
            "embedding",
            {
                "input_dim": input_dim,
                "output_dim": output_dim,
                "embeddings_initializer": initializers.get(embeddings_initializer),
                "name": name,
                "dtype": dtype,
                "seed": seed,
                "device": device,
            },
        )
        self._take(trainable)
        self.input_dim = input_dim
        self.output_dim = output_dim
        self._config = {
            "embeddings_initializer": initializers.serialize(embeddings_initializer),
            "seed": seed,
            "device": device,
        }

    @property
    def embeddings(self) -> Variable | None:
        """[input_dim, output_dim]; None before it is built."""
        return self.simple_variable("embeddings")

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "input_dim": self.input_dim,
            "output_dim": self.output_dim,
            **self._config,
        }


class Dropout(_Simple):
    """Sets elements to 0 with probability `rate` in training, and scales the others."""

    def __init__(
        self, rate: float = 0.5, seed: int | None = None, name: str | None = None
    ) -> None:
        self._make("dropout", {"rate": rate, "seed": seed, "name": name})
        self._seed = seed

    def __call__(self, inputs: TensorLike, training: bool = False) -> Tensor:
        """The inputs, dropped when training."""
        return self.simple_call(inputs, training)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {"rate": self.rate, "seed": self._seed, "name": self.name}


_core.set_layer_classes(
    {"layer": Layer, "dense": Dense, "embedding": Embedding, "dropout": Dropout}
)
