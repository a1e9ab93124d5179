"""Queries on the classes that users derive from layers."""

import functools
import re
from collections.abc import Callable
from typing import Any, TypeVar, cast

from openrnn import _core

_Method = TypeVar("_Method", bound=Callable[..., Any])


def snake_case(name: str) -> str:
    spaced = re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", spaced).lower()


def is_overridden(cls: type, name: str) -> bool:
    """Whether a class has the member from a class that is not the package's."""
    owner = next(base for base in cls.__mro__ if name in base.__dict__)
    return owner.__module__.split(".")[0] != "openrnn"


def built_in_scope(build: Callable[..., None]) -> Callable[..., None]:
    """A user's build(), wrapped: opens the layer's scope and marks the layer as built."""

    @functools.wraps(build)
    def wrapped(self: Any, input_shape: Any) -> None:
        if _core.layer_building(self):
            build(self, input_shape)
        else:
            unknown = self._steps and input_shape is None
            _core.layer_build(self, () if unknown else input_shape)

    setattr(wrapped, "_in_scope", True)
    return wrapped


def or_own_call(method: _Method) -> _Method:
    """A __call__() that gives its arguments, as they are given, to the call() of a subclass."""

    @functools.wraps(method)
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 - messages name it
        return (self._any_call if self._overrides_call else method.__get__(self))(*args, **kwargs)

    return cast(_Method, __call__)
