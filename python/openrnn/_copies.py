"""How deep copies and pickles of variables, layers and optimizers are made again."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from openrnn import _core
from openrnn._core import Variable


def make_variable(*state: Any) -> Variable:
    """A variable of that state in the current graph, under a name that is free."""
    return _core.copied_variable(*state)


def make_layer(cls: Any, made: tuple[str, dict[str, Any]], state: dict[str, Any]) -> Any:
    """A layer without its attributes; its weights are those in the state."""
    layer = cls.__new__(cls)
    _core.LayerBase.__init__(layer, *made)
    _core.layer_take_over(layer, state)
    layer._install()
    return layer


def make_optimizer(
    cls: Any, made: tuple[str, dict[str, Any]], state: tuple[Any, ...]
) -> Any:
    """An optimizer without its attributes; its slots belong to the variables in the state."""
    optimizer = cls.__new__(cls)
    _core.OptimizerBase.__init__(optimizer, *made)
    _core.optimizer_take_over(optimizer, *state)
    return optimizer


def deep_copy(one: Any, memo: dict[int, Any]) -> Any:
    """A copy by __reduce__(), as pickling and unpickling would make it."""
    function, arguments, attributes = one.__reduce__()
    made = function(*copy.deepcopy(arguments, memo))
    memo[id(one)] = made
    made.__dict__.update(copy.deepcopy(attributes, memo))
    return made


@contextmanager
def graph_of(layer: Any) -> Iterator[None]:
    """The layer's graph, if it has one, as the current one."""
    graph: Any = _core.layer_graph(layer)
    if graph is None:
        yield
        return
    opened = _core.OpenedGraph()
    opened.open(graph)
    try:
        yield
    finally:
        opened.close()
