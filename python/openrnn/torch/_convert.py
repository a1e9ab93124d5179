"""Puts the modules of this package in the place of torch.nn's, and back.

A module changes its class and nothing else: parameters, optimizers' references to them, hooks,
buffers and every place that holds the module stay what they are.
"""

# PyTorch is not there where types are checked.
# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

from openrnn.errors import ArgumentError
from openrnn.torch import _cells, _forward, _modules

OURS: dict[type, type] = {
    nn.LSTM: _modules.LSTM,
    nn.GRU: _modules.GRU,
    nn.RNN: _modules.RNN,
    nn.LSTMCell: _cells.LSTMCell,
    nn.GRUCell: _cells.GRUCell,
    nn.RNNCell: _cells.RNNCell,
}
THEIRS = {ours: theirs for theirs, ours in OURS.items()}


def _base(cls: type) -> type:
    """The class that a parametrization made one of its own of."""
    if "parametrizations" in cls.__dict__ or cls.__name__.startswith("Parametrized"):
        return cls.__bases__[0]
    return cls


def _exchange(module: Any, table: dict[type, type]) -> bool:
    cls = type(module)
    base = _base(cls)
    target = table.get(base)
    if target is None:
        return False
    if base is not cls:
        # The properties that compute the parameters are members of a class of the module's own.
        members = {k: v for k, v in cls.__dict__.items() if k not in ("__dict__", "__weakref__")}
        target = type(cls.__name__, (target,), members)
    module.__class__ = target
    _forward.forget(module)
    return True


def _check(call: str, model: Any) -> None:
    if not isinstance(model, nn.Module):
        raise ArgumentError(
            f"[{call}] {type(model).__name__!r} is given, expected a torch.nn.Module"
        )


def convert(model: Any) -> Any:
    """Makes every nn.LSTM, nn.GRU, nn.RNN and cell in `model` one of this package; returns it.

    In place: parameters, optimizers, hooks and references stay. A subclass of one of them is left
    as it is, with a warning, since it may compute something else.

    Examples
    --------
    >>> model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.GRU(3, 4))
    >>> isinstance(openrnn.torch.convert(model)[1], openrnn.torch.GRU)
    True
    """
    _check("convert", model)
    for name, module in model.named_modules():
        if _exchange(module, OURS):
            module.__dict__.setdefault("options", {})
            module.__dict__.setdefault("options_text", "")
        elif isinstance(module, tuple(OURS)):
            warnings.warn(
                f"[convert] '{name}' is a {type(module).__name__}, a subclass of a module of "
                "torch.nn: left as it is",
                stacklevel=2,
            )
    return model


def revert(model: Any) -> Any:
    """The inverse of `convert`, also for modules that were made by this package; returns `model`.

    Raises ArgumentError for a module with options that torch.nn has not, before it changes one.

    Examples
    --------
    >>> model = openrnn.torch.revert(torch.nn.Sequential(openrnn.torch.GRU(3, 4)))
    >>> type(model[0]) is torch.nn.GRU
    True
    """
    _check("revert", model)
    for name, module in model.named_modules():
        if _base(type(module)) in THEIRS and module.__dict__.get("options"):
            raise ArgumentError(
                f"[revert] '{name}' has {', '.join(module.options)}, expected a network that "
                "torch.nn has"
            )
    for module in model.modules():
        if _exchange(module, THEIRS):
            module.__dict__.pop("options", None)
            module.__dict__.pop("options_text", None)
    return model


_lock = threading.Lock()
_depth = 0
_replaced: list[tuple[type, Any]] = []


@contextmanager
def enabled() -> Iterator[None]:
    """Every nn.LSTM, nn.GRU, nn.RNN and cell computes on this engine inside the block.

    Modules keep their classes. It holds for all threads; torch.compile still leaves its graph at
    those classes, so compile a converted model instead.

    Examples
    --------
    >>> lstm, x = torch.nn.LSTM(3, 4), torch.ones(5, 2, 3)
    >>> with openrnn.torch.enabled():
    ...     output, state = lstm(x)
    >>> torch.allclose(output, lstm(x)[0], atol=1e-6)
    True
    """
    global _depth
    with _lock:
        if _depth == 0:
            for theirs, ours in OURS.items():
                _replaced.append((theirs, theirs.__dict__["forward"]))
                theirs.forward = ours.forward  # type: ignore[attr-defined]
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                while _replaced:
                    theirs, forward = _replaced.pop()
                    theirs.forward = forward  # type: ignore[attr-defined]


def freeze(module: Any) -> Any:
    """Promises that the weights of the modules in `module` do not change; returns it.

    Their calls without gradients then read neither the weights nor their checksum: a change is not
    noticed, except by `.to()`, `load_state_dict` and `unfreeze`.

    Examples
    --------
    >>> lstm = openrnn.torch.freeze(openrnn.torch.LSTM(3, 4).eval())
    >>> with torch.no_grad():
    ...     output, state = lstm(torch.ones(5, 2, 3))
    >>> tuple(output.shape)
    (5, 2, 4)
    """
    _set_frozen("freeze", module, True)
    return module


def unfreeze(module: Any) -> Any:
    """Takes the promise of `freeze` back; returns the module.

    Examples
    --------
    >>> lstm = openrnn.torch.freeze(openrnn.torch.LSTM(3, 4))
    >>> openrnn.torch.unfreeze(lstm) is lstm
    True
    """
    _set_frozen("unfreeze", module, False)
    return module


def _set_frozen(call: str, model: Any, frozen: bool) -> None:
    _check(call, model)
    found = False
    for module in model.modules():
        if _base(type(module)) not in THEIRS:
            continue
        found = True
        _forward.forget(module)
        module.__dict__["_frozen"] = frozen
    if not found:
        raise ArgumentError(
            f"[{call}] a {type(model).__name__} without a module of openrnn.torch, expected one: "
            "convert(model) first"
        )
