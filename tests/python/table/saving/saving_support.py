"""Variables with a Saveable over them."""

import openrnn
from model import numpy_layout
from table.support import I, U, draw, make_spec


def make_saveable(kind, direction="unidirectional", input_mode="linear_input", dtype="float32",
                  variable_name="params", seed=3, num_proj=0, **kw):  # fmt: skip
    """(variable, spec, saveable) of L layers of U units (5 with a projection)."""
    sizes = {"input_size": U if input_mode == "skip_input" else I}
    if num_proj:
        sizes["num_units"] = 5
        kw["num_proj"] = num_proj
    spec = make_spec(kind, direction, input_mode, num_proj=num_proj, **sizes)
    buffer = draw(numpy_layout.params_size(spec), seed=seed, dtype=dtype)
    variable = openrnn.Variable(buffer, name=variable_name)
    saveable = kind.saveable(
        variable, spec.num_layers, spec.num_units, spec.input_size, input_mode, direction, **kw
    )
    return variable, spec, saveable
