"""Layer, the base class of all layers."""

import inspect
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from openrnn import _copies, _core, _subclasses, initializers
from openrnn._core import Tensor, Variable
from openrnn._messages import own_constructor as _own_constructor
from openrnn._structure import flatten as _flatten
from openrnn._structure import pack as _pack
from openrnn._structure import replace as _replace
from openrnn._structure import without_leaves as _structure_of
from openrnn._typing import DTypeLike, Initializer, Regularizer, ShapeLike, TensorLike
from openrnn.errors import ArgumentError, UnsupportedError


class InputSpec(NamedTuple):
    """Requirements of a layer on its input: number of dimensions, and sizes by axis.

    Examples
    --------
    >>> dense = openrnn.layers.Dense(2)
    >>> dense.build((None, 3))
    >>> dense.input_spec
    InputSpec(ndim=None, axes={-1: 3})
    """

    ndim: int | None
    axes: dict[int, int]


class Layer(_core.LayerBase):
    """The members that every layer and cell has, as those of tf.layers.Layer.

    Your own subclass computes in `call`, and may make weights in `build`; so may a subclass of any
    class below. Calling the layer always calls them. `_reuse`: the layer uses the existing
    variables under its name.

    Layers and variables in its attributes, also in lists, tuples and dicts, are parts of it: of its
    weights, losses and updates, and under the names of the attributes in checkpoints.

    Examples
    --------
    >>> class Scale(openrnn.layers.Layer):
    ...     def build(self, input_shape):
    ...         self.factor = self.add_weight("factor", input_shape[-1:], initializer="ones")
    ...     def call(self, inputs):
    ...         return inputs * self.factor
    >>> layer = Scale()
    >>> layer(np.ones((2, 3), "float32")).shape, [one.name for one in layer.weights]
    ((2, 3), ['scale/factor'])
    """

    _steps = False  # a cell, which loops call as well
    _overrides_call = False
    _overrides_build = False
    _untracked: ClassVar[frozenset[str]] = frozenset({"_made"})

    def __init__(
        self,
        trainable: bool = True,
        name: str | None = None,
        dtype: DTypeLike = "float32",
        *,
        device: str | None = None,
        _reuse: bool | None = None,
    ) -> None:
        self._make(
            "python",
            {
                "reuse": bool(_reuse),
                "trainable": trainable,
                "name": name or "",
                "default_name": _subclasses.snake_case(type(self).__name__),
                "dtype": dtype or "float32",
                "device": device,
            },
        )

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _own_constructor(cls)
        cls._overrides_call = _subclasses.is_overridden(cls, "call")
        cls._overrides_build = _subclasses.is_overridden(cls, "build")
        if cls._overrides_build and not hasattr(cls.build, "_in_scope"):
            cls.build = _subclasses.built_in_scope(cls.build)  # type: ignore[method-assign]
        if cls._overrides_call and not (cls._steps or _subclasses.is_overridden(cls, "__call__")):
            cls.__call__ = cls._any_call  # type: ignore[method-assign]

    def _make(self, kind: str, options: dict[str, Any]) -> None:
        _core.LayerBase.__init__(self, kind, options)
        self._made = (kind, options)
        self._install()

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        self._may_be_part(name, value)

    def _may_be_part(self, name: str, value: Any) -> None:
        if isinstance(value, (_core.LayerBase, Variable, list, tuple, dict)):
            _core.layer_part_added(self, name, value)

    def _install(self) -> None:
        """Tells the layer behind the object what a subclass overrides."""
        if self._overrides_build:
            _core.layer_override_build(self)

    @property
    def input_spec(self) -> InputSpec | None:
        """Requirements of the layer on its input; None before it is built."""
        spec = _core.layer_input_spec(self)
        return None if spec is None else InputSpec(spec[0], dict(spec[1]))

    def build(self, input_shape: ShapeLike) -> None:
        """Makes the variables for inputs of that shape; does nothing when built."""
        _core.layer_build(self, input_shape)

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """What the layer computes; each class defines its arguments."""
        raise NotImplementedError(f"[{type(self).__name__}] it has no call(), expected one")

    def apply(self, *args: Any, **kwargs: Any) -> Any:
        """The same as calling the layer."""
        return self(*args, **kwargs)

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """call(), after building at first use. `scope`: a variable scope for that."""
        return self._any_call(inputs, *args, **kwargs)

    def _any_call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """call(), after building at first use. `scope`: a variable scope for that."""
        scope = kwargs.pop("scope", None)
        given = _flatten(inputs)
        if any(each is None for each in given):
            raise TypeError(f"[{type(self).__name__}] an input is None, expected a Tensor")
        flat = self._as_inputs(given)
        others = [each for each in _flatten([*args, *kwargs.values()]) if _core.is_symbolic(each)]
        run = _Call(self, inputs, others, args, kwargs)
        name = "" if scope is None else str(getattr(scope, "name", scope))
        outputs = _core.layer_call(self, [*flat, *others], name, run)
        return _pack(run.outputs, iter(outputs))

    def _as_inputs(self, flat: list[Any]) -> list[Any]:
        """Inputs that are no tensors and need another dtype than the layer's."""
        return flat

    def _retrained(
        self, args: list[Any], kwargs: dict[str, Any], training: bool | None
    ) -> list[Any]:
        """The arguments of a replay that sets `training`, where call() takes it."""
        if training is None:
            return args
        names = list(inspect.signature(self.call).parameters)
        if "training" in names[1 : 1 + len(args)]:
            args[names.index("training") - 1] = training
        elif "training" in names:
            kwargs["training"] = training
        return args

    def add_weight(
        self,
        name: str,
        shape: ShapeLike,
        dtype: DTypeLike = None,
        initializer: Initializer = None,
        regularizer: Regularizer | None = None,
        trainable: bool = True,
        constraint: Callable[[Tensor], TensorLike] | None = None,
        use_resource: bool | None = None,
        partitioner: None = None,
    ) -> Variable:
        """A variable of the layer's scope, or the layer's own of that name.

        Defaults: the layer's dtype, glorot_uniform. use_resource has no effect: a variable is
        always what TensorFlow calls a resource. partitioner: only None.
        """
        if partitioner is not None:
            raise UnsupportedError(
                f"[add_weight] partitioner is a {type(partitioner).__name__}, expected None: "
                "variables are not partitioned"
            )
        return _core.layer_add_weight(
            self,
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
        use_resource: bool | None = None,
        partitioner: None = None,
    ) -> Variable:
        """The same as add_weight()."""
        return self.add_weight(
            name,
            shape,
            dtype,
            initializer,
            regularizer,
            trainable,
            constraint,
            use_resource,
            partitioner,
        )

    def add_loss(self, losses: Any, inputs: Any = None) -> None:
        """Adds a loss or a list of them: tensors, or functions that compute one when asked.

        `inputs` are those that the losses depend on; None: no input. They go to the collection
        REGULARIZATION_LOSSES as well.
        """
        for loss in losses if isinstance(losses, (list, tuple)) else [losses]:
            if loss is not None:
                _core.layer_add_loss(self, loss, inputs)

    def add_update(self, updates: Any, inputs: Any = None) -> None:
        """Adds a function, or a list of them, to run after a training step."""
        for update in updates if isinstance(updates, (list, tuple)) else [updates]:
            _core.layer_add_update(self, update, inputs)

    def get_losses_for(self, inputs: Any) -> list[Tensor]:
        """The losses that depend on one of `inputs`; for None those that depend on none."""
        return _core.layer_get_losses_for(self, inputs)

    def get_updates_for(self, inputs: Any) -> list[Any]:
        """The updates that depend on one of `inputs`; for None those that depend on none."""
        return _core.layer_get_updates_for(self, inputs)

    def get_input_at(self, node_index: int) -> Any:
        """The inputs of a call on symbolic tensors; a list when there are several."""
        return _core.layer_get_input_at(self, node_index)

    def get_output_at(self, node_index: int) -> Any:
        """The outputs of a call on symbolic tensors; a list when there are several."""
        return _core.layer_get_output_at(self, node_index)

    def get_input_shape_at(self, node_index: int) -> Any:
        """The shapes of get_input_at()."""
        return _core.layer_get_input_shape_at(self, node_index)

    def get_output_shape_at(self, node_index: int) -> Any:
        """The shapes of get_output_at()."""
        return _core.layer_get_output_shape_at(self, node_index)

    def get_input_mask_at(self, node_index: int) -> Any:
        """None: layers pass no masks on; a recurrent layer's call takes one."""
        return _core.layer_get_input_mask_at(self, node_index)

    def get_output_mask_at(self, node_index: int) -> Any:
        """None: layers pass no masks on; a recurrent layer's call takes one."""
        return _core.layer_get_output_mask_at(self, node_index)

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:
        """None. Raises TypeError for a mask: layers pass none on, a recurrent layer's call takes one."""
        masks = mask if isinstance(mask, (list, tuple)) else [mask]
        if any(one is not None for one in masks):
            raise TypeError(
                f"[{self.name}] a mask of type '{type(mask).__name__}', expected None: "
                "the layer does not support masking"
            )

    def compute_output_shape(self, input_shape: ShapeLike) -> tuple[int | None, ...]:
        """The shape of the output for inputs of that shape."""
        return _core.layer_compute_output_shape(self, input_shape)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments; from_config() is the inverse."""
        return {"name": self.name, "trainable": self.trainable, "dtype": self.dtype}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Layer":
        """A new layer from what get_config() returned."""
        return cls(**config)

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (type(self), self._made, _core.layer_state(self))
        return _copies.make_layer, arguments, dict(self.__dict__)

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        self.__dict__.update(attributes)
        for name, value in attributes.items():
            self._may_be_part(name, value)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        with _copies.graph_of(self):
            return _copies.deep_copy(self, memo)

    def __copy__(self) -> Any:
        return self._with_attributes(_core.layer_copy(self))

    def _with_attributes(self, made: Any) -> Any:
        made.__dict__.update(self.__dict__)
        made._install()
        return made

    def __repr__(self) -> str:
        return f"<openrnn.{type(self).__name__} '{self.name}'>"


class _Place:
    """Of a symbolic tensor among the arguments of a call."""


class _Call:
    """One call of a layer's call(), which can be repeated with other tensors.

    A recorded call holds it, and is copied and pickled with it.
    """

    def __init__(
        self, layer: Layer, inputs: Any, others: list[Any], args: Any, kwargs: dict[str, Any]
    ) -> None:
        self._layer = layer
        self._inputs = _structure_of(inputs)
        # Symbolic tensors among the other arguments get values at each replay, as the inputs do.
        self._places = [_Place() for _ in others]
        places: dict[int, Any] = dict(zip(map(id, others), self._places, strict=True))
        self._args = [_replace(each, places) for each in args]
        self._kwargs = {name: _replace(each, places) for name, each in kwargs.items()}
        self.outputs: Any = None

    def __call__(self, tensors: list[Tensor], training: bool | None) -> list[Any]:
        leaves = iter(tensors)
        x = _pack(self._inputs, leaves)
        values = {id(place): next(leaves) for place in self._places}
        args = [_replace(each, values) for each in self._args]
        kwargs = {name: _replace(each, values) for name, each in self._kwargs.items()}
        layer = self._layer
        output = layer.call(x, *layer._retrained(args, kwargs, training), **kwargs)
        if output is None or any(each is None for each in _flatten(output)):
            raise ArgumentError(f"[{layer.name}] call() returned None, expected a Tensor")
        self.outputs = _structure_of(output)
        return _flatten(output)


_core.set_layer_classes({"layer": Layer})
