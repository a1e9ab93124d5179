"""Initial values of variables; any function f(shape, dtype=...) of an array will do, too."""

from typing import Any

from openrnn import _arguments
from openrnn._core import NativeInitializer, Tensor
from openrnn._typing import DTypeLike, Initializer, ShapeLike
from openrnn.errors import ArgumentError


class _Native(NativeInitializer):
    """One of the library's own: its random numbers depend on the variable's seed."""

    def __init__(self, kind: str, first: float, second: float, seed: int | None) -> None:
        if seed is not None:
            seed = _arguments.as_integer(type(self).__name__, "seed", seed) % 2**64
        super().__init__(kind, first, second, seed)
        self._config: dict[str, Any] = {}

    def __call__(self, shape: ShapeLike, dtype: DTypeLike = "float32") -> Tensor:
        """A tensor of that shape; without a seed the same one each time."""
        return self.fill(shape, dtype, 0)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return dict(self._config)

    def __reduce__(self) -> tuple[Any, ...]:
        return get, (serialize(self),)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "_Native":
        """The inverse of get_config()."""
        return cls(**config)


class constant(_Native):  # noqa: N801 - TensorFlow's name
    """Every element `value`.

    Examples
    --------
    >>> openrnn.initializers.constant(0.5)([2]).numpy()
    array([0.5, 0.5], dtype=float32)
    """

    def __init__(self, value: float = 0.0) -> None:
        super().__init__("constant", value, 0.0, None)
        self._config = {"value": value}


class zeros(_Native):  # noqa: N801 - TensorFlow's name
    """Every element 0.

    Examples
    --------
    >>> openrnn.initializers.zeros()([2]).numpy()
    array([0., 0.], dtype=float32)
    """

    def __init__(self) -> None:
        super().__init__("constant", 0.0, 0.0, None)


class ones(_Native):  # noqa: N801 - TensorFlow's name
    """Every element 1.

    Examples
    --------
    >>> openrnn.initializers.ones()([2], "float16").numpy()
    array([1., 1.], dtype=float16)
    """

    def __init__(self) -> None:
        super().__init__("constant", 1.0, 0.0, None)


class glorot_uniform(_Native):  # noqa: N801 - TensorFlow's name
    """Uniform within sqrt(6 / (rows + columns)): Glorot and Bengio, 2010.

    Examples
    --------
    >>> x = openrnn.initializers.glorot_uniform(seed=1)([2, 4]).numpy()
    >>> x.shape, bool(0.5 < abs(x).max() < 1.0)
    ((2, 4), True)
    """

    def __init__(self, seed: int | None = None) -> None:
        super().__init__("glorot_uniform", 0.0, 0.0, seed)
        self._config = {"seed": seed}


class random_uniform(_Native):  # noqa: N801 - TensorFlow's name
    """Uniform in [minval, maxval).

    Examples
    --------
    >>> x = openrnn.initializers.random_uniform(-1.0, 3.0, seed=1)([1000]).numpy()
    >>> bool(x.min() >= -1.0 and x.max() < 3.0), round(float(x.mean()))
    (True, 1)
    """

    def __init__(
        self, minval: float = -0.05, maxval: float = 0.05, seed: int | None = None
    ) -> None:
        super().__init__("random_uniform", minval, maxval, seed)
        self._config = {"minval": minval, "maxval": maxval, "seed": seed}


class random_normal(_Native):  # noqa: N801 - TensorFlow's name
    """Normal with that mean and standard deviation.

    Examples
    --------
    >>> x = openrnn.initializers.random_normal(1.0, 0.5, seed=1)([1000]).numpy()
    >>> round(float(x.mean()), 1), round(float(x.std()), 1)
    (1.0, 0.5)
    """

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: int | None = None) -> None:
        super().__init__("random_normal", mean, stddev, seed)
        self._config = {"mean": mean, "stddev": stddev, "seed": seed}


_CLASSES: dict[str, type[_Native]] = {
    cls.__name__: cls
    for cls in (constant, zeros, ones, glorot_uniform, random_uniform, random_normal)
}


def serialize(initializer: Initializer) -> Any:
    """{'class_name', 'config'} of one of this module; anything else unchanged.

    Examples
    --------
    >>> openrnn.initializers.serialize(openrnn.initializers.constant(0.5))
    {'class_name': 'constant', 'config': {'value': 0.5}}
    """
    if isinstance(initializer, _Native):
        return {"class_name": type(initializer).__name__, "config": initializer.get_config()}
    return initializer


def get(identifier: Initializer) -> Any:
    """An initializer from a name, from a result of serialize(), or unchanged.

    Examples
    --------
    >>> openrnn.initializers.get("ones")([2]).numpy()
    array([1., 1.], dtype=float32)
    """
    if isinstance(identifier, str):
        identifier = {"class_name": identifier, "config": {}}
    if isinstance(identifier, dict):
        name = identifier.get("class_name")
        if name not in _CLASSES:
            raise ArgumentError(
                f"[initializers] the class is {name!r}, expected one of {sorted(_CLASSES)}"
            )
        return _CLASSES[name].from_config(identifier.get("config", {}))
    return identifier
