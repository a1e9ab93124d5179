"""Names, order and defaults of every public call are those of signatures.txt, and what else the
modules and classes show is what tests/golden/public_names.txt says.

OPENRNN_REGENERATE_DOCS=1 writes signatures.txt, OPENRNN_REGENERATE_GOLDEN=1 the other file; a
change in one is a change of the API.
"""

import importlib
import inspect
import os
import pathlib

from test_effects import public_calls

TABLE = pathlib.Path(__file__).with_name("signatures.txt")
GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "golden" / "public_names.txt"
MODULES = ["openrnn", *(f"openrnn.{name}" for name in (
    "cudnn_rnn", "cudnn_rnn.ops", "errors", "initializers", "layers", "losses", "nn",
    "nn.rnn_cell", "onnx", "regularizers", "train"))]  # fmt: skip
# What Python gives a class by itself differs between its versions.
MADE_BY_PYTHON = {"__annotate__", "__annotate_func__", "__class_getitem__", "__getnewargs__",
                  "__init_subclass__", "__replace__", "__subclasshook__"}  # fmt: skip


def text_of(call):
    """'(a, b=1, *, c=None)' without annotations."""
    parameters = inspect.signature(call).parameters.values()
    plain = [one.replace(annotation=one.empty) for one in parameters if one.name != "self"]
    return str(inspect.Signature(plain))


def signatures():
    """Of each call, a method where it is defined."""
    found, seen = {}, set()
    for name, call in public_calls():
        function = call.__init__ if isinstance(call, type) else call
        place = getattr(function, "__qualname__", name), getattr(function, "__module__", "")
        if "." in name and place in seen:
            continue
        seen.add(place)
        try:
            found[name] = text_of(call)
        except ValueError:  # of the compiled module, without a signature
            continue
    return "".join(f"{name}{found[name]}\n" for name in sorted(found))


def test_signatures():
    found = signatures()
    if os.environ.get("OPENRNN_REGENERATE_DOCS"):
        TABLE.write_text(found)
    assert found == TABLE.read_text()


# ---- What is beside the calls -------------------------------------------------------------------


def is_ours(value):
    return str(getattr(value, "__module__", "")).startswith("openrnn")


def compiled(call):
    """Every overload of a compiled call, with the defaults that its text leaves open."""
    texts = [(" ".join(text.split()), defaults) for text, _, defaults in call.__nb_signature__]
    return " | ".join(f"{text} {list(defaults)}" if defaults else text for text, defaults in texts)


def shown(value):
    """What a name stands for, in one line."""
    if isinstance(value, (staticmethod, classmethod)):
        return f"{type(value).__name__} {shown(value.__func__)}"
    if isinstance(value, property):
        parts = {"get": value.fget, "set": value.fset, "delete": value.fdel}
        return " ".join(name for name, part in parts.items() if part is not None)
    if isinstance(value, type):
        return f"class({', '.join(base.__name__ for base in value.__bases__)})"
    if hasattr(value, "__nb_signature__"):
        return compiled(value)
    if inspect.isfunction(value):
        return text_of(value)
    plain = isinstance(value, (str, int, float, tuple, list, set, frozenset, dict, type(None)))
    return f"= {value!r}" if plain else type(value).__name__


def is_shown(name, value):
    """A public member, or a special one that was written."""
    if name.startswith("__") and name.endswith("__"):
        written = inspect.isfunction(value) or hasattr(value, "__nb_signature__")
        return written and name not in MADE_BY_PYTHON
    return not name.startswith("_")


def members(name, cls, seen):
    """Those of a class and of the classes of this package that it stands on, each class once."""
    for base in cls.__mro__:
        if is_ours(base) and base not in seen:
            seen.add(base)
            at = name if base is cls else f"({base.__module__}.{base.__qualname__})"
            for member, value in sorted(vars(base).items()):
                if is_shown(member, value):
                    yield f"{at}.{member} {shown(value)}"


def public_names():
    """Each name of each module, what it is, and the members of its classes."""
    lines, seen = [], set()
    for place in MODULES:
        module = importlib.import_module(place)
        here = [name for name, value in vars(module).items()
                if name[0] != "_" and getattr(value, "__module__", None) == place]  # fmt: skip
        for name in sorted(getattr(module, "__all__", here)):
            value = getattr(module, name)
            lines.append(f"{place}.{name} {'' if name == '__version__' else shown(value)}".rstrip())
            if isinstance(value, type) and is_ours(value):
                lines.extend(members(f"{place}.{name}", value, seen))
    return lines


def test_names_constants_and_members():
    found = public_names()
    if os.environ.get("OPENRNN_REGENERATE_GOLDEN"):
        GOLDEN.write_text("".join(f"{line}\n" for line in found), encoding="utf-8")
    assert found == GOLDEN.read_text(encoding="utf-8").splitlines()
