"""Calling op-level models at once or through Input and Model; arrays come back."""

import numpy as np
import openrnn
import pytest
from model import numpy_layout
from table.support import B, I, L, T, U, array, draw, make_spec, make_states

EAGER_SYMBOLIC = pytest.mark.parametrize("symbolic", [False, True], ids=["eager", "symbolic"])


def make_op(kind, direction="unidirectional", input_mode="linear_input", **kw):
    """(model, spec) of L layers of U units; sizes by name."""
    sizes = {"num_layers": L, "num_units": U, "input_size": I}
    sizes.update({key: kw.pop(key) for key in list(kw) if key in sizes})
    op = kind.op(*sizes.values(), input_mode=input_mode, direction=direction, **kw)
    proj = {"num_proj": kw["num_proj"]} if "num_proj" in kw else {}
    return op, make_spec(kind, direction, input_mode, **sizes, **proj)


def make_arguments(spec, dtype="float32", time=T, batch=B, seed=0):
    """[x, h0, (c0,) params] of a spec."""
    x = draw(time, batch, spec.input_size, seed=seed, dtype=dtype)
    params = draw(numpy_layout.params_size(spec), seed=seed + 5, dtype=dtype)
    return [x, *make_states(spec, batch, seed=seed + 20, dtype=dtype), params]


def call_op(function, arguments, symbolic, **kw):
    """The outputs of function(*arguments, **kw) as arrays."""
    if not symbolic:
        return [array(value) for value in function(*arguments, **kw)]
    inputs = [openrnn.Input(batch_shape=np.shape(a), dtype=str(a.dtype)) for a in arguments]
    outputs = function(*inputs, **kw)
    assert all(output.is_symbolic for output in outputs)
    return [array(value) for value in openrnn.Model(inputs, list(outputs))(list(arguments))]
