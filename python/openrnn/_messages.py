"""The message of a call of the compiled module whose arguments fit none of its bindings."""

import ast
import operator
import re
import sys
from collections.abc import Iterable
from types import FunctionType
from typing import Any

from openrnn import _core

_WORDS = {"int": "an integer", "float": "a number", "bool": "True or False", "str": "a string"}


def _is_integer(value: Any) -> bool:
    try:
        return -(2**63) <= operator.index(value) < 2**63
    except TypeError:
        return False


def _is_utf8(text: str) -> bool:
    try:
        return bool(text.encode()) or not text
    except UnicodeEncodeError:  # half of a pair of surrogates
        return False


def _fits(value: Any, wanted: str) -> bool:
    """Whether a value matches the annotation of a binding; True if in doubt."""
    if " | " in wanted and "[" not in wanted:
        return any(_fits(value, one) for one in wanted.split(" | "))
    if wanted == "None":
        return value is None
    if wanted == "bool":
        return isinstance(value, bool)
    if wanted == "int":
        return _is_integer(value)
    if wanted == "float":
        return hasattr(value, "__float__") and not isinstance(value, (str, type))
    if wanted == "str":
        return isinstance(value, str) and _is_utf8(value)
    found = re.fullmatch(r"(?:.*\.)?(Sequence|list)\[(.*)\]", wanted)
    if found:
        return isinstance(value, (list, tuple)) and all(_fits(one, found[2]) for one in value)
    cls = getattr(_core, wanted.split(".")[-1], None)
    return not isinstance(cls, type) or isinstance(value, cls)


def _given(value: Any, wanted: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and "int" in wanted:
        return str(value) if abs(value) < 10**40 else "an integer of many digits"
    found = re.fullmatch(r"(?:.*\.)?(Sequence|list)\[(.*)\]", wanted)
    if found and isinstance(value, (list, tuple)):
        wrong = next(one for one in value if not _fits(one, found[2]))
        return f"a {type(value).__name__} with {_given(wrong, found[2])}"
    if isinstance(value, str) and not _is_utf8(value):
        return "a string that is no UTF-8"
    return repr(type(value).__name__)


def _expected(wanted: str) -> str:
    plain = re.sub(r"\b(openrnn\._core|collections\.abc|typing)\.", "", wanted)
    plain = re.sub(r"\b(\w+)Base\b", r"\1", plain)  # of a class that Python derives
    return " or ".join(_WORDS.get(one, one) for one in plain.split(" | "))


def _parameters(function: Any) -> ast.arguments:
    # Defaults that are no literals are written as \0, \1 and so on.
    signature = re.sub(r"\\\d+", "...", function.__nb_signature__[0][0])
    signature = signature.replace("def (", "def _(", 1)  # what sets a property has no name
    parsed = ast.parse(signature + ": ...").body[0]
    assert isinstance(parsed, ast.FunctionDef)
    return parsed.args


def _call(function: Any, args: Any) -> str:
    """The function that the user called: the outermost of the package, or the binding."""
    found, of = function.__name__, args[0] if args else None
    frame = sys._getframe(2)
    while frame is not None and re.match(r"openrnn(\.|$)", frame.f_globals.get("__name__", "")):
        if not frame.f_code.co_name.startswith("<"):
            found = frame.f_code.co_name
            of = frame.f_locals.get("self")
        frame = frame.f_back  # type: ignore[assignment]
    if found.startswith("__") and of is not None:
        return type(of).__name__
    if found:
        return str(found)
    names = _parameters(function).args  # what sets a property
    return names[-1].arg if names else "call"


def _misfit(parameters: ast.arguments, args: Any, kwargs: dict[str, Any]) -> str:
    """The first argument that does not fit, or '' if each one seems to."""
    positional = [*parameters.posonlyargs, *parameters.args]
    every = [*positional, *parameters.kwonlyargs]
    names = [one.arg for one in every if one.arg != "self"]
    for key in kwargs:
        if key not in names:
            return f"an unexpected keyword {key!r} is given, expected {_listed(names)}"
    if len(args) > len(positional):
        extra = len(args) - len(positional)
        return f"{extra} arguments too many are given, expected {_listed(names)}"
    given = {one.arg: value for one, value in zip(positional, args, strict=False)}
    for key, value in kwargs.items():
        if key in given:
            return f"{key} is given twice, expected once"
        given[key] = value
    for one in every:
        wanted = ast.unparse(one.annotation) if one.annotation else "object"
        if one.arg in given and not _fits(given[one.arg], wanted):
            found = _given(given[one.arg], wanted)
            return f"{one.arg} is {found}, expected {_expected(wanted)}"
    optional = positional[len(positional) - len(parameters.defaults) :]
    optional += [
        one
        for one, default in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True)
        if default is not None
    ]
    missing = [one.arg for one in every if one.arg not in given and one not in optional]
    if missing:
        return f"no {missing[0]} is given, expected {_listed(names)}"
    # Some take None as an object; where nothing else is wrong, it is what this one does not take.
    none = [name for name, value in given.items() if value is None and name in names]
    return f"{none[0]} is None, expected a value" if len(none) == 1 else ""


def _listed(names: Iterable[str]) -> str:
    return "(" + ", ".join(names) + ")"


def reword(function: Any, args: Any, kwargs: dict[str, Any]) -> str:
    """'[call] what was given, what was expected' for a binding and its arguments."""
    for one in args[:1]:
        if isinstance(one, _core.LayerBase) and "_made" not in vars(one):
            return (
                f"[{type(one).__name__}] its __init__() has not called super().__init__(), "
                "expected it before any use of the layer"
            )
    parameters = _parameters(function)
    text = _misfit(parameters, args, kwargs)
    if not text:
        given = [repr(one) if isinstance(one, int) else type(one).__name__
                 for one in (*args, *kwargs.values())]  # fmt: skip
        text = f"{_listed(given)} is given, expected ({_expected(ast.unparse(parameters))})"
    return f"[{_call(function, args)}] {text}"


def own_constructor(cls: type) -> None:
    """Gives a class that inherits its constructor one that Python's own errors name after it."""
    inherited = cls.__init__  # type: ignore[misc]
    if "__init__" in cls.__dict__ or not isinstance(inherited, FunctionType):
        return
    made = FunctionType(
        inherited.__code__,
        inherited.__globals__,
        inherited.__name__,
        inherited.__defaults__,
        inherited.__closure__,
    )
    for name in ("__kwdefaults__", "__annotations__", "__doc__", "__module__"):
        setattr(made, name, getattr(inherited, name))
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    setattr(cls, "__init__", made)


_core.set_reword(reword)
