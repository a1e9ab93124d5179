"""Whole models in one file: every recorded call, its layers with their options, and the weights.

The content is a pickle that is read without running anything of the file's choice: only names of
the package, of NumPy's arrays and those that the caller gives are looked up.
"""

import io
import os
import pickle
import sys
from collections.abc import Mapping
from typing import Any

from openrnn import _arguments
from openrnn.errors import ArgumentError, FormatError, UnsupportedError

_MAGIC = b"OpenRNN model 1\n"
_NUMPY = {
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy.core.multiarray", "scalar"),
    ("numpy._core.numeric", "_frombuffer"),
    ("numpy.core.numeric", "_frombuffer"),
    ("ml_dtypes", "bfloat16"),
}


def _is_own(module: str, name: str) -> bool:
    """Classes of layers, and the functions by which copies are made."""
    from openrnn import _copies, _core
    from openrnn._layer import Layer

    if module.split(".")[0] != "openrnn" or "." in name:  # a dot would lead to what it imports
        return False
    found = getattr(sys.modules.get(module), name, None)
    if getattr(found, "__module__", None) != module:
        return False
    if module == _copies.__name__:
        return name.startswith("make_")
    layers = isinstance(found, type) and issubclass(found, (Layer, _core.LayerBase, tuple))
    return layers or module in ("openrnn.initializers", "openrnn.regularizers", "openrnn._layer")


class _Reader(pickle.Unpickler):
    def __init__(self, path: str, content: bytes, custom: Mapping[str, Any]) -> None:
        super().__init__(io.BytesIO(content))
        self._path, self._custom = path, custom

    def find_class(self, module: str, name: str) -> Any:
        if name in self._custom:
            return self._custom[name]
        if (module, name) in _NUMPY or _is_own(module, name):
            return super().find_class(module, name)
        raise UnsupportedError(
            f"[load_model] '{self._path}' needs '{module}.{name}', expected it in custom_objects"
        )


def save_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Writes the model beside the file and renames it: a failure leaves the old one."""
    to = _arguments.as_path("save", "path", path)
    try:
        content = _MAGIC + pickle.dumps(model, protocol=4)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise UnsupportedError(
            f"[save] '{model.name}' holds what no file can ({error}), expected layers, and functions "
            "and classes at the top of a module"
        ) from error
    beside = f"{to}.new"
    try:
        with open(beside, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, to)
    finally:
        if os.path.exists(beside):
            os.remove(beside)


def load_model(
    path: str | os.PathLike[str], *, custom_objects: Mapping[str, Any] | None = None
) -> Any:
    """The model that Model.save() wrote, with new variables of its weights.

    Parameters
    ----------
    path : of the file.
    custom_objects : your own classes of layers, and functions, by their names; no other code than
        these and the package's is run.

    Raises
    ------
    FormatError
        The file is none of Model.save(), or is broken.
    UnsupportedError
        It needs a class or function that custom_objects lacks (naming it).

    Examples
    --------
    >>> x = openrnn.Input((3,))
    >>> model = openrnn.Model(x, openrnn.layers.Dense(2)(x))
    >>> model.save("dense.model")
    >>> ones = np.ones((1, 3), "float32")
    >>> bool((openrnn.load_model("dense.model").predict(ones) == model.predict(ones)).all())
    True
    """
    name = _arguments.as_path("load_model", "path", path)
    custom = {} if custom_objects is None else _arguments.as_dict(
        "load_model", "custom_objects", custom_objects, "classes and functions"
    )  # fmt: skip
    with open(name, "rb") as file:
        content = file.read()
    if not content.startswith(_MAGIC):
        raise FormatError(f"[load_model] '{name}' at byte 0: expected a file of Model.save()")
    from openrnn._model import Model

    reader = _Reader(name, content[len(_MAGIC) :], custom)
    try:
        model = reader.load()
    except UnsupportedError:
        raise
    except Exception as error:  # whatever a broken pickle leads to
        raise FormatError(f"[load_model] '{name}' is broken: {error}") from error
    if not isinstance(model, Model):
        raise ArgumentError(
            f"[load_model] '{name}' holds a {type(model).__name__}, expected a Model"
        )
    return model
