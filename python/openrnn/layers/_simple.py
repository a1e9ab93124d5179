"""The layers used with recurrent ones: Dense, Embedding, Dropout."""

from collections.abc import Callable
from typing import Any

from openrnn import _arguments, _core, _subclasses, initializers
from openrnn._core import Tensor, Variable
from openrnn._layer import Layer
from openrnn._typing import DTypeLike, Initializer, TensorLike


class _Simple(Layer):
    """A layer of one input and one output."""

    def _take(self, trainable: bool) -> None:
        self.trainable = trainable

    def __call__(self, inputs: TensorLike) -> Tensor:
        """The output for those inputs."""
        return self._any_call(inputs) if self._overrides_call else self.call(inputs)

    def call(self, inputs: TensorLike) -> Tensor:
        """What the class computes."""
        return _core.simple_call(self, inputs, False)


_ACTIVATIONS = ("linear", "relu", "tanh", "sigmoid")


class Dense(_Simple):
    """activation(x kernel + bias): [.., I] to [.., units]. Variables `kernel` and `bias`.

    Examples
    --------
    >>> dense = openrnn.layers.Dense(2, "relu", kernel_initializer="ones")
    >>> dense([[1.0, 2.0], [-3.0, 1.0]]).numpy().tolist()
    [[3.0, 3.0], [0.0, 0.0]]
    """

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
        if not (activation is None or isinstance(activation, str) or callable(activation)):
            raise TypeError(
                f"[Dense] activation is a {type(activation).__name__}, expected a name or a "
                "function of a Tensor"
            )
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
                "seed": _arguments.plain(seed),
                "device": device,
            },
        )
        self._take(trainable)
        self.units = _arguments.plain(units)
        self.activation = activation
        self.use_bias = use_bias
        self._config = {
            "kernel_initializer": initializers.serialize(kernel_initializer),
            "bias_initializer": initializers.serialize(bias_initializer),
            "seed": _arguments.plain(seed),
            "device": device,
        }

    def call(self, inputs: TensorLike) -> Tensor:
        """inputs [.., I] to [.., units]."""
        output = _core.simple_call(self, inputs, False)
        if callable(self.activation):
            return self.activation(output)
        return output

    @property
    def kernel(self) -> Variable | None:
        """[I, units]; None before it is built."""
        return _core.simple_variable(self, "kernel")

    @property
    def bias(self) -> Variable | None:
        """[units]; None without bias."""
        return _core.simple_variable(self, "bias")

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
    """Rows of a table: indices [..] to [.., output_dim]. Variable `embeddings`.

    Examples
    --------
    >>> embedding = openrnn.layers.Embedding(10, 4)
    >>> embedding([[1, 2, 2], [0, 9, 1]]).shape
    (2, 3, 4)
    """

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
                "seed": _arguments.plain(seed),
                "device": device,
            },
        )
        self._take(trainable)
        self.input_dim = _arguments.plain(input_dim)
        self.output_dim = _arguments.plain(output_dim)
        self._config = {
            "embeddings_initializer": initializers.serialize(embeddings_initializer),
            "seed": _arguments.plain(seed),
            "device": device,
        }

    def _as_inputs(self, flat: list[Any]) -> list[Any]:
        return [_core.convert(each, "int32") for each in flat]

    @property
    def embeddings(self) -> Variable | None:
        """[input_dim, output_dim]; None before it is built."""
        return _core.simple_variable(self, "embeddings")

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {
            **super().get_config(),
            "input_dim": self.input_dim,
            "output_dim": self.output_dim,
            **self._config,
        }


class Dropout(_Simple):
    """Sets elements to 0 with probability `rate` in training, and scales the others.

    Examples
    --------
    >>> dropout = openrnn.layers.Dropout(0.5, seed=1)
    >>> dropout([1.0, 2.0]).numpy()
    array([1., 2.], dtype=float32)
    >>> sorted(set(dropout(np.ones(1000, "float32"), training=True).numpy().tolist()))
    [0.0, 2.0]
    """

    def __init__(
        self, rate: float = 0.5, seed: int | None = None, name: str | None = None
    ) -> None:
        self._make("dropout", {"rate": rate, "seed": seed, "name": name})
        self._seed = _arguments.plain(seed)

    @property
    def rate(self) -> float:
        """The probability that an element is dropped."""
        return _core.dropout_rate(self)

    @_subclasses.or_own_call
    def __call__(self, inputs: TensorLike, training: bool = False) -> Tensor:
        """The inputs, dropped when training."""
        return self.call(inputs, training)

    def call(self, inputs: TensorLike, training: bool = False) -> Tensor:
        """The inputs, dropped when training."""
        return _core.simple_call(self, inputs, training)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {"rate": self.rate, "seed": self._seed, "name": self.name}


_core.set_layer_classes({"dense": Dense, "embedding": Embedding, "dropout": Dropout})
