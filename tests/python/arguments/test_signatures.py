"""Names, order and defaults of every public call are those of signatures.txt.

OPENRNN_REGENERATE_DOCS=1 writes the file; a change in it is a change of the API.
"""

import inspect
import os
import pathlib

from test_effects import public_calls

TABLE = pathlib.Path(__file__).with_name("signatures.txt")


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
