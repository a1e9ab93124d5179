"""The C++ layout and conversions against the NumPy ones."""

from itertools import product

import ml_dtypes
import numpy as np
import pytest

from model import numpy_layout
import rnn_capi
from model.numpy_layout import Spec
from test_numpy_layout import SIZES

SPECS = [row[0] for row in SIZES] + [
    Spec(mode, layers, 5, 5 if inputs == "skip_input" else 4, inputs, direction)
    for mode, layers, inputs, direction in product(
        ["lstm", "gru", "rnn_tanh", "rnn_relu"],
        [1, 3],
        ["linear_input", "skip_input", "auto_select"],
        ["unidirectional", "bidirectional"],
    )
]


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_layout(spec):
    assert rnn_capi.params_size(spec) == numpy_layout.params_size(spec)
    weights, biases = numpy_layout.regions(spec)
    wanted = [
        (int(part is biases), *divmod(r.pseudo, spec.num_dirs), r.slot, *r.shape[:1],
         r.shape[1] if len(r.shape) == 2 else 1, r.offset)
        for part in (weights, biases)
        for r in part
    ]  # fmt: skip
    assert rnn_capi.layout(spec) == wanted


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize("spec", SPECS[5:], ids=str)
def test_canonical_both_ways(spec, dtype):
    params = np.random.default_rng(3).normal(size=numpy_layout.params_size(spec)).astype(dtype)
    found = rnn_capi.params_to_canonical(spec, params)
    wanted = numpy_layout.params_to_canonical(spec, params)
    for found_part, wanted_part in zip(found, wanted):
        assert [a.shape for a in found_part] == [a.shape for a in wanted_part]
        assert all(np.array_equal(a, b) for a, b in zip(found_part, wanted_part))
    assert np.array_equal(rnn_capi.canonical_to_params(spec, *found), params)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize("spec", SPECS[5:], ids=str)
def test_tf_format_both_ways(spec, dtype):
    params = np.random.default_rng(4).normal(size=numpy_layout.params_size(spec)).astype(dtype)
    wanted = numpy_layout.to_tf(spec, params)
    assert rnn_capi.tf_tensors(spec) == [(name, tensor.shape) for name, tensor in wanted]
    for (name, found), (_, tensor) in zip(rnn_capi.to_tf(spec, params), wanted):
        assert np.array_equal(found, tensor), name
    again = rnn_capi.from_tf(spec, [tensor for _, tensor in wanted])
    assert np.array_equal(again, numpy_layout.from_tf(spec, dict(wanted)))


@pytest.mark.parametrize(
    "spec,message",
    [
        (Spec("lstm", 0, 3, 2), "num_layers.*0"),
        (Spec("lstm", 1, 0, 2), "num_units.*0"),
        (Spec("lstm", 1, 3, -1), "input_size.*-1"),
        (Spec("gru", 1, 3, 2, "skip_input"), "skip_input"),
        (Spec("gru", 1, 3, 2, num_proj=4), "num_proj.*4"),
        (Spec("lstm", 1, 3, 2, num_proj=4), "num_proj.*4"),
        (Spec("lstm", 1, 3, 2, "skipping"), "skipping.*linear_input.*skip_input.*auto_select"),
        (Spec("lstm", 1, 3, 2, direction="up"), "up.*unidirectional.*bidirectional"),
        (Spec("rnn", 1, 3, 2), "rnn_relu.*rnn_tanh.*lstm.*gru"),
        (Spec("lstm", 1, 2**31, 2**31), "."),
    ],
    ids=lambda value: str(value),
)
def test_bad_specs_are_refused(spec, message):
    with pytest.raises(rnn_capi.CallError, match=message) as error:
        rnn_capi.params_size(spec)
    assert error.value.kind == "ArgumentError"
    assert str(error.value).startswith("[")
