"""Sizes, canonical lists and the cells' format of the package against the NumPy layout."""

from itertools import product

import numpy as np
import pytest
from openrnn import cudnn_rnn

from model import numpy_layout, package_run
from model.numpy_layout import Spec

MODES = ["lstm", "gru", "rnn_tanh", "rnn_relu"]
DIRECTIONS = ["unidirectional", "bidirectional"]
DTYPES = [np.float16, np.float32, np.float64]
SPECS = [
    Spec(mode, layers, 5, width, inputs, direction)
    for mode, direction, (layers, width, inputs) in product(
        MODES,
        DIRECTIONS,
        [
            (1, 3, "linear_input"),
            (2, 5, "skip_input"),
            (3, 5, "auto_select"),
            (2, 7, "auto_select"),
        ],
    )
] + [
    Spec("lstm", 2, 5, width, inputs, direction, 3)
    for direction, (width, inputs) in product(DIRECTIONS, [(4, "linear_input"), (5, "skip_input")])
]
specs = pytest.mark.parametrize("spec", SPECS, ids=str)
CONVERTERS = {"lstm": "LSTM", "gru": "GRU", "rnn_tanh": "Tanh", "rnn_relu": "Relu"}


def buffer_of(spec, dtype=np.float32):
    """Different everywhere, halves and sums exact in every dtype."""
    values = np.random.default_rng(3).permutation(numpy_layout.params_size(spec))
    return ((values - 512.0) / 1024.0).astype(dtype)


@specs
def test_size(spec):
    assert package_run.make_op(spec, np.float32).params_size() == numpy_layout.params_size(spec)


@specs
@pytest.mark.parametrize("dtype", DTYPES)
def test_canonical_lists(spec, dtype):
    params = buffer_of(spec, dtype)
    model = package_run.make_op(spec, dtype)
    found, wanted = model.params_to_canonical(params), numpy_layout.params_to_canonical(
        spec, params
    )
    for ours, theirs in zip(found, wanted, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            array = np.array(one)
            assert array.dtype == dtype and array.shape == other.shape
            assert np.array_equal(array, other)
    assert np.array_equal(model.canonical_to_params(*wanted), params)


@specs
def test_shapes_of_a_layer(spec):
    layer = package_run.make_layer(spec, np.float32)
    layer.build((None, None, spec.input_size))
    weights, biases = numpy_layout.params_to_canonical(spec, buffer_of(spec))
    assert layer.canonical_weight_shapes == [array.shape for array in weights]
    assert layer.canonical_bias_shapes == [list(array.shape) for array in biases]
    assert layer.count_params() == numpy_layout.params_size(spec)


def converter_of(spec):
    kind = getattr(cudnn_rnn, "CudnnParamsFormatConverter" + CONVERTERS[spec.mode])
    return kind(
        spec.num_layers, spec.num_units, spec.input_size, spec.num_proj or None, spec.input_mode,
        spec.direction,
    )  # fmt: skip


def split_projection(named):
    """(the others, projections) of named tensors."""
    rest = [tensor for name, tensor in named if "/projection/" not in name]
    return rest, [tensor for name, tensor in named if "/projection/" in name]


@specs
@pytest.mark.parametrize("dtype", DTYPES)
def test_converter(spec, dtype):
    """To the cells' format and back; there every bias comes back as half a sum."""
    params = buffer_of(spec, dtype)
    named = numpy_layout.to_tf(spec, params)
    wanted, projections = split_projection(named)
    weights, biases, *proj = converter_of(spec).opaque_to_tf_canonical(params)
    assert len(proj) == (1 if spec.num_proj else 0)
    for one, other in zip([*weights, *biases], wanted, strict=True):
        assert np.array(one).dtype == dtype and np.array_equal(one, other)
    for one, other in zip(proj[0] if proj else [], projections, strict=True):
        assert np.array_equal(one, other)
    again = converter_of(spec).tf_canonical_to_opaque(wanted, *([projections] if proj else []))
    assert np.array_equal(again, numpy_layout.from_tf(spec, dict(named)).astype(dtype))


@specs
def test_saveable(spec):
    """Names, order and tensors of a layer's own saveable; restoring gives half sums."""
    layer = package_run.make_layer(spec, np.float32, buffer_of(spec))
    named = numpy_layout.to_tf(spec, layer.get_weights()[0])
    found = layer.saveable.specs
    assert [each.name for each in found] == [name for name, _ in named]
    for each, (name, tensor) in zip(found, named, strict=True):
        assert np.array_equal(each.tensor, tensor), name
    layer.saveable.restore([tensor for _, tensor in named])
    assert np.array_equal(layer.get_weights()[0], numpy_layout.from_tf(spec, dict(named)))
