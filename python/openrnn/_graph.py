"""Graphs, variable scopes, collections and GradientTape."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, TypeAlias, overload

from openrnn import _core
from openrnn._core import Graph as _CoreGraph
from openrnn._core import Tensor, Variable
from openrnn._structure import flatten as _flatten
from openrnn._structure import pack as _pack
from openrnn._typing import DTypeLike, Initializer, Regularizer, ShapeLike, Source, TensorLike

_SourceList: TypeAlias = list[Source] | list[Tensor] | list[Variable]


class GraphKeys:
    """Names of the collections that the library itself fills.

    Examples
    --------
    >>> w = openrnn.Variable(1.0)
    >>> w in openrnn.get_collection(openrnn.GraphKeys.TRAINABLE_VARIABLES)
    True
    """

    GLOBAL_VARIABLES = "variables"
    TRAINABLE_VARIABLES = "trainable_variables"
    SAVEABLE_OBJECTS = "saveable_objects"
    REGULARIZATION_LOSSES = "regularization_losses"
    UPDATE_OPS = "update_ops"


class Graph(_CoreGraph):
    """The registry that variables, scopes and collections live in.

    Examples
    --------
    >>> graph = openrnn.Graph()
    >>> with graph.as_default():
    ...     w = openrnn.get_variable("w", [2])
    >>> [one.name for one in graph.variables()], openrnn.global_variables()
    (['w'], [])
    """

    def __init__(self) -> None:
        super().__init__()

    @contextmanager
    def as_default(self) -> Iterator["Graph"]:
        """Makes this graph current on this thread inside a `with` statement."""
        opened = _core.OpenedGraph()
        opened.open(self)
        try:
            yield self
        finally:
            opened.close()

    def get_collection(self, key: str) -> list[Any]:
        """The values of that collection, as a new list.

        Examples
        --------
        >>> graph = openrnn.Graph()
        >>> graph.add_to_collection("seen", 3)
        >>> graph.get_collection("seen"), graph.get_collection("other")
        ([3], [])
        """
        return _collection(self, key)

    def add_to_collection(self, key: str, value: Any) -> None:
        """Adds to a collection: one of GraphKeys except those of variables, or any other name."""
        _add(self, key, value)


# Held for ever, so that the process-wide graph is always this object.
_process_wide = _core.adopt_default_graph(Graph)
_reset = threading.local()


def get_default_graph() -> Graph:
    """The graph that is current on this thread.

    Examples
    --------
    >>> graph = openrnn.Graph()
    >>> with graph.as_default():
    ...     openrnn.get_default_graph() is graph
    True
    """
    graph = _core.current_graph()
    assert isinstance(graph, Graph)
    return graph


def reset_default_graph() -> None:
    """Makes a new, empty graph the default of this thread. Not inside `as_default`.

    Examples
    --------
    >>> openrnn.reset_default_graph()
    >>> openrnn.global_variables()
    []
    """
    opened = getattr(_reset, "opened", None)
    if opened is not None:
        opened.close()
    _reset.graph = Graph()
    _reset.opened = _core.OpenedGraph()
    _reset.opened.open(_reset.graph)


def set_random_seed(seed: int | None) -> None:
    """The graph's random seed, from which operations and layers without one derive theirs.

    Examples
    --------
    >>> openrnn.set_random_seed(7)
    >>> openrnn.get_default_graph().seed
    7
    """
    _core.current_graph().seed = seed


def global_variables() -> list[Variable]:
    """All variables of the current graph, in order of creation.

    Examples
    --------
    >>> w = openrnn.get_variable("w", [2])
    >>> rate = openrnn.get_variable("rate", [], trainable=False)
    >>> [one.name for one in openrnn.global_variables()]
    ['w', 'rate']
    """
    return _core.current_graph().variables()


def trainable_variables() -> list[Variable]:
    """Those that are trainable.

    Examples
    --------
    >>> w = openrnn.get_variable("w", [2])
    >>> rate = openrnn.get_variable("rate", [], trainable=False)
    >>> [one.name for one in openrnn.trainable_variables()]
    ['w']
    """
    return _core.current_graph().trainable_variables()


def _collection(graph: Any, key: str) -> list[Any]:
    readers: dict[str, Callable[[], list[Any]]] = {
        GraphKeys.GLOBAL_VARIABLES: graph.variables,
        GraphKeys.TRAINABLE_VARIABLES: graph.trainable_variables,
        GraphKeys.SAVEABLE_OBJECTS: graph.saveables,
        GraphKeys.REGULARIZATION_LOSSES: graph.regularization_losses,
        GraphKeys.UPDATE_OPS: graph.updates,
    }
    return list(readers[key]()) if key in readers else graph.get_collection_core(key)


def _add(graph: Any, key: str, value: Any) -> None:
    writers: dict[str, Callable[[Any], None]] = {
        GraphKeys.SAVEABLE_OBJECTS: graph.add_saveable,
        GraphKeys.REGULARIZATION_LOSSES: graph.add_regularization_loss,
        GraphKeys.UPDATE_OPS: graph.add_update,
    }
    if key in writers:
        writers[key](value)
        return
    graph.add_to_collection_core(key, value)


def get_collection(key: str) -> list[Any]:
    """The values of that collection of the current graph, as a new list.

    Examples
    --------
    >>> openrnn.add_to_collection("seen", 3)
    >>> openrnn.get_collection("seen")
    [3]
    """
    return _collection(_core.current_graph(), key)


def add_to_collection(key: str, value: Any) -> None:
    """Adds to a collection of the current graph.

    Examples
    --------
    >>> openrnn.add_to_collection("layers", "first")
    >>> openrnn.add_to_collection("layers", "second")
    >>> openrnn.get_collection("layers")
    ['first', 'second']
    """
    _add(_core.current_graph(), key, value)


class VariableScope:
    """An open variable scope: its name, and whether existing variables are used.

    Examples
    --------
    >>> with openrnn.variable_scope("model") as scope:
    ...     scope, scope.original_name_scope
    (<openrnn.VariableScope 'model' reuse=False>, 'model/')
    """

    def __init__(self, name: str, reuse: bool) -> None:
        self._name = name
        self._reuse = reuse

    @property
    def name(self) -> str:
        """The full name; '' at the top."""
        return self._name

    @property
    def original_name_scope(self) -> str:
        """The name with a slash behind it."""
        return self._name + "/" if self._name else ""

    @property
    def reuse(self) -> bool:
        """Whether get_variable returns what exists."""
        return self._reuse

    def __repr__(self) -> str:
        return f"<openrnn.VariableScope '{self._name}' reuse={self._reuse}>"


class variable_scope:  # noqa: N801 - TensorFlow's name
    """Inside a `with` statement, names of variables get the prefix `name/`.

    `reuse=True` makes get_variable, and layers of a known name, use the existing variables; None
    inherits. Yields a VariableScope.

    Examples
    --------
    >>> with openrnn.variable_scope("model"):
    ...     w = openrnn.get_variable("w", [2])
    >>> with openrnn.variable_scope("model", reuse=True):
    ...     again = openrnn.get_variable("w", [2])
    >>> w.name, again is w
    ('model/w', True)
    """

    def __init__(self, name: "str | VariableScope", reuse: bool | None = None) -> None:
        self._given = name
        self._reuse = reuse
        self._opened = _core.OpenedScope()

    def __enter__(self) -> VariableScope:
        name = self._given
        outer, outer_reuse = _core.current_scope()
        if isinstance(name, VariableScope):
            reuse = name.reuse if self._reuse is None else self._reuse
            self._opened.open_again(name.name, reuse or outer_reuse)
        elif name == "":
            self._opened.open_again(outer, bool(self._reuse) or outer_reuse)
        else:
            self._opened.open(name, bool(self._reuse))
        return get_variable_scope()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._opened.close()


def get_variable_scope() -> VariableScope:
    """The scope that is open on this thread.

    Examples
    --------
    >>> with openrnn.variable_scope("outer"), openrnn.variable_scope("inner"):
    ...     openrnn.get_variable_scope().name
    'outer/inner'
    """
    name, reuse = _core.current_scope()
    return VariableScope(name, reuse)


def get_variable(
    name: str,
    shape: ShapeLike,
    dtype: DTypeLike = "float32",
    initializer: Initializer = None,
    regularizer: Regularizer | None = None,
    trainable: bool = True,
    constraint: Callable[[Tensor], TensorLike] | None = None,
    *,
    device: str | None = None,
) -> Variable:
    """A variable of the current scope: a new one, or with reuse the existing one.

    Raises ArgumentError when it exists without reuse, is missing with reuse, or has another shape,
    dtype or device. The default initializer is glorot_uniform.

    Examples
    --------
    >>> w = openrnn.get_variable("w", [2], initializer=openrnn.initializers.ones())
    >>> w.name, w.numpy().tolist()
    ('w', [1.0, 1.0])
    """
    return _core.get_variable(
        name, shape, dtype, initializer, regularizer, trainable, constraint, device
    )


class GradientTape:
    """Records, inside a `with` statement, what gradients need.

    Operations of this thread on watched tensors and trainable variables are recorded. Gradients
    may be asked any number of times, inside and after the statement: all tapes are persistent.
    What a tape's own gradients compute, only other open tapes record: they have gradients of
    gradients.

    Examples
    --------
    >>> w = openrnn.Variable([1.0, -2.0])
    >>> with openrnn.GradientTape() as tape:
    ...     loss = openrnn.reduce_sum(openrnn.square(w))
    >>> tape.gradient(loss, w).numpy().tolist()
    [2.0, -4.0]
    """

    def __init__(self, persistent: bool = True) -> None:
        self._tape = _core.Tape()

    def __enter__(self) -> "GradientTape":
        self._tape.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._tape.close()

    def watch(self, tensor: Any) -> None:
        """Makes that tensor, or those in a list, a source of gradients."""
        for one in _flatten(tensor):
            self._tape.watch(one)

    @overload
    def gradient(
        self, target: Any, sources: Source, output_gradients: Any = ...
    ) -> Tensor | None: ...

    @overload
    def gradient(
        self, target: Any, sources: _SourceList, output_gradients: Any = ...
    ) -> list[Tensor | None]: ...

    @overload
    def gradient(
        self, target: Any, sources: tuple[Source, ...], output_gradients: Any = ...
    ) -> tuple[Tensor | None, ...]: ...

    @overload
    def gradient(self, target: Any, sources: Any, output_gradients: Any = ...) -> Any: ...

    def gradient(
        self, target: Any, sources: Any, output_gradients: Any | Sequence[Any] | None = None
    ) -> Any:
        """d target / d sources, in the structure of `sources`.

        `target` and `sources` are tensors or variables, or nested lists or tuples of them; several
        targets count as their sum. `output_gradients` are the gradients of the targets, ones by
        default. None where no gradient flows. Calling twice gives the same bits.

        While another tape is open on this thread, it records the gradients, and its own gradient
        may be asked for: UnsupportedError names an operation that has no second derivative, or was
        computed before that tape was entered.
        """
        targets = [_value_of(one) for one in _flatten(target)]
        starts = [None] * len(targets) if output_gradients is None else _flatten(output_gradients)
        if len(starts) != len(targets):
            from openrnn.errors import ArgumentError

            raise ArgumentError(
                f"[gradient] {len(starts)} output_gradients, expected {len(targets)}, one a target"
            )
        return _pack(sources, iter(self._tape.gradient(targets, _flatten(sources), starts)))

    def per_sample_norms(self, target: Any, sources: Any, axis: int = 0) -> Tensor:
        """The 2-norm of each row's own gradient: [B], float64.

        Row b's loss is the sum of the elements of `target` at b along `axis`: losses [B], or
        [T, B] with axis=1. Its gradient is that by all `sources` together; squares are summed in
        double. It takes about the time of a gradient, and memory for a few rows' gradients, not
        for all. On the cpu only.

        UnsupportedError names an operation through which the rows of the batch cannot be told
        apart, such as a mean over them; ArgumentError says that `target` has no such axis.
        """
        return self._tape.per_sample_norms(_value_of(target), _flatten(sources), axis)

    @overload
    def per_sample_gradients(
        self, target: Any, sources: Source, axis: int = ...
    ) -> Tensor | None: ...

    @overload
    def per_sample_gradients(
        self, target: Any, sources: _SourceList, axis: int = ...
    ) -> list[Tensor | None]: ...

    @overload
    def per_sample_gradients(
        self, target: Any, sources: tuple[Source, ...], axis: int = ...
    ) -> tuple[Tensor | None, ...]: ...

    @overload
    def per_sample_gradients(self, target: Any, sources: Any, axis: int = ...) -> Any: ...

    def per_sample_gradients(self, target: Any, sources: Any, axis: int = 0) -> Any:
        """Each row's own gradient, in the structure of `sources`: [B, shape of the source...].

        Their sum over the rows is gradient(target, sources), up to rounding. None where no
        gradient flows. Rows, losses and errors as in per_sample_norms().
        """
        found = self._tape.per_sample_gradients(_value_of(target), _flatten(sources), axis)
        return _pack(sources, iter(found))


def _value_of(target: Any) -> Any:
    return target.read_value() if isinstance(target, Variable) else target
