"""Saveables: names, shapes, order, bias halves, restore, wrong arguments."""

import inspect

import numpy as np
import openrnn
import pytest
from model import numpy_layout
from table.saving.saving_support import make_saveable
from table.support import (
    GRU, LSTM, I, L, U, array, assert_names, draw, error_text, make_spec,
)  # fmt: skip

ARGUMENTS = [
    ("opaque_params", inspect.Parameter.empty),
    ("num_layers", inspect.Parameter.empty),
    ("num_units", inspect.Parameter.empty),
    ("input_size", inspect.Parameter.empty),
    ("input_mode", "linear_input"),
    ("direction", "unidirectional"),
    ("scope", None),
    ("name", "cudnn_rnn_saveable"),
]
DTYPES = ["float16", "bfloat16", "float32", "float64"]
INPUT_MODES = pytest.mark.parametrize("input_mode", ["linear_input", "skip_input"])


def assert_specs(saveable, wanted):
    """Names in order, exact values."""
    assert [s.name for s in saveable.specs] == [name for name, _ in wanted]
    for found, (name, value) in zip(saveable.specs, wanted, strict=True):
        assert found.slice_spec == ""
        tensor = array(found.tensor)
        assert (tensor.shape, tensor.dtype) == (value.shape, value.dtype), name
        np.testing.assert_array_equal(tensor, value, name)


def test_constructor_arguments(kind):
    found = list(inspect.signature(kind.saveable).parameters.values())
    positional = [p for p in found if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert [(p.name, p.default) for p in positional] == ARGUMENTS
    newer = {p.name: p.default for p in found if p.kind is p.KEYWORD_ONLY}
    assert newer == {"num_proj": None}
    assert [p.name for p in found if p.kind is p.VAR_KEYWORD] == ["network"]


@pytest.mark.parametrize("scope", [None, "", "enc", "a/b"], ids=str)
def test_names_shapes_and_values(kind, direction, scope):
    variable, spec, saveable = make_saveable(kind, direction, scope=scope)
    assert_specs(saveable, numpy_layout.to_tf(spec, array(variable), scope or ""))


@INPUT_MODES
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_and_input_mode(kind, direction, input_mode, dtype):
    variable, spec, saveable = make_saveable(kind, direction, input_mode, dtype)
    assert_specs(saveable, numpy_layout.to_tf(spec, array(variable)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_projection(direction, dtype):
    variable, spec, saveable = make_saveable(LSTM, direction, dtype=dtype, num_proj=3)
    wanted = numpy_layout.to_tf(spec, array(variable))
    assert any(name.endswith("projection/kernel") for name, _ in wanted)
    assert_specs(saveable, wanted)


def test_name_op_and_scope_object(kind):
    variable, _, saveable = make_saveable(kind)
    assert saveable.name == "cudnn_rnn_saveable"
    assert saveable.op is variable or saveable.op.name == variable.name
    assert make_saveable(kind, name="mine")[2].name == "mine"
    with openrnn.variable_scope("outer") as scope:
        pass
    _, spec, scoped = make_saveable(kind, scope=scope)
    names = [name for name, _ in numpy_layout.to_tf(spec, array(scoped.op), "outer")]
    assert [s.name for s in scoped.specs] == names


def test_specs_follow_the_variable(kind):
    variable, spec, saveable = make_saveable(kind)
    other = draw(array(variable).size, seed=44)
    variable.assign(other)
    assert_specs(saveable, numpy_layout.to_tf(spec, other))


@INPUT_MODES
@pytest.mark.parametrize("dtype", DTYPES)
def test_restore(kind, direction, input_mode, dtype):
    """Weights exact; each bias half is half of the saved sum, and sums are exact."""
    variable, spec, saveable = make_saveable(kind, direction, input_mode, dtype)
    before = array(variable).copy()
    saved = [array(s.tensor).copy() for s in saveable.specs]
    variable.assign(np.zeros_like(before))
    saveable.restore(saved, None)
    names = dict(numpy_layout.to_tf(spec, before))
    np.testing.assert_array_equal(array(variable), numpy_layout.from_tf(spec, names))
    for found, value in zip(saveable.specs, saved, strict=True):
        np.testing.assert_array_equal(array(found.tensor), value)


def test_restore_takes_shapes_and_ignores_them(kind):
    variable, _, saveable = make_saveable(kind)
    saved = [array(s.tensor).copy() for s in saveable.specs]
    saveable.restore(saved)
    first = array(variable).copy()
    saveable.restore(saved, [(1, 1)] * len(saved))
    np.testing.assert_array_equal(array(variable), first)


def test_candidate_biases_stay_apart(direction):
    """The candidate of a GRU keeps its two biases, the gates share theirs."""
    variable, spec, saveable = make_saveable(GRU, direction)
    before = numpy_layout.params_to_canonical(spec, array(variable).copy())[1]
    saveable.restore([array(s.tensor).copy() for s in saveable.specs])
    after = numpy_layout.params_to_canonical(spec, array(variable))[1]
    for k, (a, b) in enumerate(zip(before, after, strict=True)):
        if k % 6 in (2, 5):
            np.testing.assert_array_equal(a, b)
        else:
            other = before[k + 3 if k % 6 < 3 else k - 3]
            np.testing.assert_array_equal(b, np.float32(0.5) * (a + other))


# (what, change of the list of tensors, what the message names)
WRONG = [
    ("too few", lambda t: t[:-1], lambda t: [len(t) - 1, len(t)]),
    ("too many", lambda t: [*t, t[0]], lambda t: [len(t) + 1, len(t)]),
    ("none", lambda t: [], lambda t: [0, len(t)]),
    ("transposed", lambda t: [t[0].T, *t[1:]], lambda t: [f"{t[0].shape[1]}, *{t[0].shape[0]}"]),
    ("short bias", lambda t: [*t[:-1], t[-1][1:]], lambda t: [len(t[-1]) - 1, len(t[-1])]),
]


@pytest.mark.parametrize("row", WRONG, ids=[row[0] for row in WRONG])
def test_restore_of_wrong_tensors(kind, row):
    _, change, parts = row
    variable, _, saveable = make_saveable(kind)
    saved = [array(s.tensor).copy() for s in saveable.specs]
    before = array(variable).tobytes(), variable.version
    message = error_text(ValueError, saveable.restore, change(saved))
    assert_names(message, *map(str, parts(saved)))
    assert (array(variable).tobytes(), variable.version) == before


@pytest.mark.parametrize("off", [-1, None], ids=["short", "rank 2"])
def test_wrong_variable(kind, off):
    size = numpy_layout.params_size(make_spec(kind))
    value = draw(1, size) if off is None else draw(size + off)
    variable = openrnn.Variable(value)
    message = error_text(ValueError, kind.saveable, variable, L, U, I)
    assert_names(message, *(["2|1, "] if off is None else [str(size + off), str(size)]))


@pytest.mark.parametrize(
    "changed, parts",
    [
        ({"direction": "both"}, ["both", "unidirectional", "bidirectional"]),
        ({"input_mode": "none"}, ["none", "linear_input", "skip_input", "auto_select"]),
        ({"num_layers": 0}, ["0"]),
        ({"num_units": -2}, ["-2"]),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_wrong_arguments(kind, changed, parts):
    variable = openrnn.Variable(draw(numpy_layout.params_size(make_spec(kind))))
    given = {"num_layers": L, "num_units": U, "input_size": I, **changed}
    assert_names(error_text(ValueError, lambda: kind.saveable(variable, **given)), *parts)


def test_not_a_variable(kind):
    size = numpy_layout.params_size(make_spec(kind))
    error_text((TypeError, ValueError), kind.saveable, draw(size), L, U, I)
