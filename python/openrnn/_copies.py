"""How deep copies and pickles of variables, layers and optimizers are rebuilt."""

import copy
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from openrnn import _core
from openrnn._core import Node, OpModelState, Tensor, Variable


def make_variable(*state: Any) -> Variable:
    """A variable of that state in the current graph, under a free name."""
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


def make_model(cls: Any) -> Any:
    """An empty model: its parts may refer to it."""
    return cls.__new__(cls)


def make_node(*state: Any) -> Node:
    """A recorded call of that state, recorded in the current graph."""
    return _core.made_node(*state)


def make_symbolic(node: Node, index: int, layout: int) -> Tensor:
    """An output of a recorded call."""
    return _core.node_output(node, index, layout)


def make_state(state: Tensor, layout: int) -> Tensor:
    """A state that a call returned, in the layout of that call."""
    return _core.state_in_layout(state, layout)


def make_op_model_state(seed: int, calls: int) -> OpModelState:
    """What the recorded calls of one op-level model share."""
    return _core.op_model_state(seed, calls)


def deep_copy(one: Any, memo: dict[int, Any]) -> Any:
    """A copy by __reduce__(), as pickling and unpickling would make it."""
    function, arguments, state = one.__reduce__()
    made = function(*copy.deepcopy(arguments, memo))
    memo[id(one)] = made
    copied = copy.deepcopy(state, memo)
    if hasattr(made, "__setstate__"):
        made.__setstate__(copied)
    else:
        made.__dict__.update(copied)
    return made


def deep_copy_node(node: Node, memo: dict[int, Any]) -> Any:
    """The same of a recorded call, whose layer may hold its outputs."""
    with opened(_core.node_graph(node)):
        function, arguments = node.__reduce__()
        copied = copy.deepcopy(arguments, memo)
        return memo.get(id(node)) or function(*copied)


def graph_of(layer: Any) -> AbstractContextManager[None]:
    """The layer's graph, if it has one, as the current one; a failed copy leaves it unchanged."""
    return opened(_core.layer_graph(layer))


@contextmanager
def opened(graph: Any) -> Iterator[None]:
    """The same of a graph."""
    if graph is None:
        yield
        return
    context = _core.OpenedGraph()
    context.open(graph)
    undo = _core.GraphUndo()
    try:
        yield
        undo.keep()
    finally:
        undo.undo()
        context.close()
