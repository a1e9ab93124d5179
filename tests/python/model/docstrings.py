"""Public names of a package, and the examples in their docstrings."""

import doctest
import inspect
import types

import numpy as np

# What needs no example, and why.
WITHOUT = {
    types.ModuleType: "what it holds has examples",
    str: "a constant: the name of a dtype, mode or direction, or the version",
    Exception: "it is raised, not called",
}
FLAGS = doctest.ELLIPSIS


def needs_none(found):
    """Whether it is of a kind that needs no example."""
    kinds = tuple(WITHOUT)
    return isinstance(found, kinds) or (isinstance(found, type) and issubclass(found, kinds))


def names_of(module):
    """Those in __all__; without one, what is defined there."""
    if hasattr(module, "__all__"):
        return module.__all__
    return [name for name, found in vars(module).items()
            if not name.startswith("_") and getattr(found, "__module__", "") == module.__name__]


def public_names(module, seen=None):
    """{full name: what it is} of a module and of the modules among its names.

    Of several names of one thing, the first.
    """
    seen = {} if seen is None else seen
    found = {}
    for name in names_of(module):
        one, full = getattr(module, name), f"{module.__name__}.{name}"
        if isinstance(one, types.ModuleType):
            found |= public_names(one, seen)
        elif not needs_none(one) and seen.setdefault(id(one), full) == full:
            found[full] = one
    return found


def docstrings(name, found):
    """(name, docstring) of what has a name, and of the methods that are defined in it."""
    yield name, found.__doc__ or ""
    if isinstance(found, type):
        for member, value in vars(found).items():
            text = getattr(value, "__doc__", None)
            if not member.startswith("_") and isinstance(text, str) and not inspect.isclass(value):
                yield f"{name}.{member}", text


def fault(name, found, **given):
    """What is wrong with the examples of a name; '' if nothing is.

    They run with np and `given`, in the current folder and graph.
    """
    if ">>> " not in (found.__doc__ or ""):
        return f"{name} has no example in its docstring"
    said = []
    for where, text in docstrings(name, found):
        test = doctest.DocTestParser().get_doctest(text, {"np": np, **given}, where, None, None)
        if test.examples:
            doctest.DocTestRunner(verbose=False, optionflags=FLAGS).run(test, out=said.append)
    return "".join(said)
