"""CudnnParamsFormatConverter*: opaque buffers to the lists of TensorFlow's cells and back."""

import inspect

import numpy as np
import pytest
from openrnn import cudnn_rnn
from model import numpy_layout
from table.support import (
    GRU, LSTM, I, L, U, array, assert_names, draw, error_text, make_spec,
)  # fmt: skip

ARGUMENTS = [
    ("num_layers", inspect.Parameter.empty),
    ("num_units", inspect.Parameter.empty),
    ("input_size", inspect.Parameter.empty),
    ("num_proj", None),
    ("input_mode", "linear_input"),
    ("direction", "unidirectional"),
    ("network", inspect.Parameter.empty),
]


def converter(kind, direction="unidirectional", **kw):
    return kind.converter(
        L, kw.pop("num_units", U), kw.pop("input_size", I), direction=direction, **kw
    )


def tf_lists(spec, buffer):
    """(weights, biases, projections) of the cells, in spec order."""
    named = numpy_layout.to_tf(spec, buffer)
    end = lambda *s: [v for n, v in named if n.endswith(s)]  # noqa: E731
    projections = end("projection/kernel") if spec.num_proj else []
    weights = [
        v for n, v in named
        if n.endswith("kernel") and not (spec.num_proj and n.endswith("projection/kernel"))
    ]  # fmt: skip
    return weights, end("bias"), projections


def assert_lists(found, wanted):
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(array(a), b)


def test_constructor_arguments(kind):
    found = inspect.signature(kind.converter).parameters.values()
    assert [(p.name, p.default) for p in found] == ARGUMENTS


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_opaque_to_tf(kind, direction, dtype):
    spec = make_spec(kind, direction)
    buffer = draw(numpy_layout.params_size(spec), dtype=dtype)
    found = converter(kind, direction).opaque_to_tf_canonical(buffer)
    assert len(found) == 2
    for a, b in zip(found, tf_lists(spec, buffer)[:2], strict=True):
        assert_lists(a, b)
        assert {array(t).dtype.name for t in a} == {dtype}


def test_tf_to_opaque_and_the_exact_round_trip(kind, direction):
    spec = make_spec(kind, direction)
    buffer = draw(numpy_layout.params_size(spec))
    one = converter(kind, direction)
    weights, biases = one.opaque_to_tf_canonical(buffer)
    halved = array(one.tf_canonical_to_opaque([*weights, *biases]))
    wanted = numpy_layout.from_tf(spec, dict(numpy_layout.to_tf(spec, buffer)))
    np.testing.assert_array_equal(halved, wanted)
    again = one.opaque_to_tf_canonical(halved)
    assert_lists(again[0], [array(w) for w in weights])
    assert_lists(again[1], [array(b) for b in biases])


def test_projection(direction):
    spec = make_spec(LSTM, direction, num_units=5, num_proj=3)
    buffer = draw(numpy_layout.params_size(spec))
    one = converter(LSTM, direction, num_units=5, num_proj=3)
    weights, biases, projections = one.opaque_to_tf_canonical(buffer)
    wanted = tf_lists(spec, buffer)
    assert_lists(weights, wanted[0])
    assert_lists(biases, wanted[1])
    assert_lists(projections, wanted[2])
    assert [array(p).shape for p in projections] == [(5, 3)] * spec.num_pseudo
    found = one.tf_canonical_to_opaque([*weights, *biases], weights_proj=projections)
    wanted = numpy_layout.from_tf(spec, dict(numpy_layout.to_tf(spec, buffer)))
    np.testing.assert_array_equal(array(found), wanted)
    stacked = np.stack([array(each) for each in projections])
    np.testing.assert_array_equal(array(one.tf_canonical_to_opaque([*weights, *biases], stacked)), wanted)


@pytest.mark.parametrize("input_mode", ["skip_input", "auto_select"])
def test_skip_input(kind, direction, input_mode):
    spec = make_spec(kind, direction, input_mode, input_size=U)
    buffer = draw(numpy_layout.params_size(spec))
    one = converter(kind, direction, input_size=U, input_mode=input_mode)
    weights, biases = one.opaque_to_tf_canonical(buffer)
    wanted = tf_lists(spec, buffer)
    assert_lists(weights, wanted[0])
    assert_lists(biases, wanted[1])
    again = one.tf_canonical_to_opaque([*weights, *biases])
    wanted = numpy_layout.from_tf(spec, dict(numpy_layout.to_tf(spec, buffer)))
    np.testing.assert_array_equal(array(again), wanted)


def test_a_gradient_comes_out_twice(kind):
    """Two equal bias gradients are summed."""
    spec = make_spec(kind)
    weights, biases = numpy_layout.params_to_canonical(
        spec, draw(numpy_layout.params_size(spec)).copy()
    )
    gates = spec.num_gates
    for k in range(len(biases)):
        biases[k][...] = biases[(k // (2 * gates)) * 2 * gates + k % gates]
    buffer = numpy_layout.canonical_to_params(spec, weights, biases)
    found = array(converter(kind).opaque_to_tf_canonical(buffer)[1][0])
    np.testing.assert_array_equal(found[:U], 2.0 * biases[0])


# (what, change of the flat list, what the message names)
WRONG = [
    ("too few", lambda t: t[:-1], lambda t: [len(t) - 1, len(t)]),
    ("too many", lambda t: [*t, t[0]], lambda t: [len(t) + 1, len(t)]),
    ("empty", lambda t: [], lambda t: [0, len(t)]),
    ("a short kernel", lambda t: [t[0][:-1], *t[1:]], lambda t: [t[0].shape[0] - 1, t[0].shape[0]]),
    ("a long bias", lambda t: [*t[:-1], np.ones(99, "f4")], lambda t: [99, t[-1].size]),
]


@pytest.mark.parametrize("row", WRONG, ids=[row[0] for row in WRONG])
def test_wrong_tensors(kind, direction, row):
    _, change, parts = row
    spec = make_spec(kind, direction)
    weights, biases, _ = tf_lists(spec, draw(numpy_layout.params_size(spec)))
    flat = [*weights, *biases]
    one = converter(kind, direction)
    message = error_text(ValueError, one.tf_canonical_to_opaque, change(flat))
    assert_names(message, *(rf"\b{number}\b" for number in parts(flat)))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_wrong_number_of_projections(count):
    spec = make_spec(LSTM, num_units=5, num_proj=3)
    weights, biases, projections = tf_lists(spec, draw(numpy_layout.params_size(spec)))
    one = converter(LSTM, num_units=5, num_proj=3)
    given = (projections * 2)[:count]
    call = lambda: one.tf_canonical_to_opaque([*weights, *biases], weights_proj=given)  # noqa: E731
    assert_names(error_text(ValueError, call), str(count), str(L))


def test_projection_left_out():
    spec = make_spec(LSTM, num_units=5, num_proj=3)
    weights, biases, _ = tf_lists(spec, draw(numpy_layout.params_size(spec)))
    one = converter(LSTM, num_units=5, num_proj=3)
    error_text(ValueError, one.tf_canonical_to_opaque, [*weights, *biases])


@pytest.mark.parametrize("off", [-1, None], ids=["short", "rank 2"])
def test_wrong_buffer(kind, off):
    size = numpy_layout.params_size(make_spec(kind))
    given = draw(1, size) if off is None else draw(size + off)
    message = error_text(ValueError, converter(kind).opaque_to_tf_canonical, given)
    assert_names(message, *(["2|1, "] if off is None else [str(size + off), str(size)]))


@pytest.mark.parametrize(
    "changed, parts",
    [
        ({"direction": "both"}, ["both", "unidirectional", "bidirectional"]),
        ({"input_mode": "none"}, ["none", "linear_input", "skip_input", "auto_select"]),
        ({"num_units": 0}, ["0"]),
        ({"num_proj": U + 1}, ["num_proj"]),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_wrong_arguments(kind, changed, parts):
    size = numpy_layout.params_size(make_spec(kind))
    call = lambda: converter(kind, **changed).opaque_to_tf_canonical(draw(size))  # noqa: E731
    assert_names(error_text(ValueError, call), *parts)


def test_a_projection_that_is_not_of_an_lstm():
    call = lambda: converter(GRU, num_proj=1).opaque_to_tf_canonical(draw(9))  # noqa: E731
    assert_names(error_text((ValueError, NotImplementedError), call), "proj")


def test_the_base_of_the_converters_has_none():
    base = cudnn_rnn.CudnnParamsFormatConverter(1, U, I)
    for call in (lambda: base.opaque_to_tf_canonical(draw(9)), lambda: base.tf_canonical_to_opaque([])):
        with pytest.raises(NotImplementedError, match="expected one of its subclasses"):
            call()
