"""The layout of the parameters against worked examples, and the conversions against themselves."""

import numpy as np
import pytest

from model.numpy_layout import (
    Spec,
    canonical_to_params,
    from_tf,
    params_size,
    params_to_canonical,
    regions,
    to_tf,
)

BI, SKIP = {"direction": "bidirectional"}, {"input_mode": "skip_input"}
# (spec, elements of weights, elements of biases)
SIZES = [
    (Spec("lstm", 1, 128, 64), 98304, 1024),
    (Spec("lstm", 2, 7, 3), 672, 112),
    (Spec("lstm", 2, 7, 3, **BI), 1736, 224),
    (Spec("lstm", 4, 200, 200, **BI), 3520000, 12800),
    (Spec("gru", 1, 100, 50), 45000, 600),
    (Spec("gru", 2, 6, 8, **BI), 1152, 144),
    (Spec("rnn_tanh", 2, 8, 4), 224, 32),
    (Spec("rnn_relu", 3, 16, 10, **BI), 3904, 192),
    (Spec("lstm", 1, 100, 100, **SKIP), 40000, 800),
    (Spec("lstm", 1, 100, 100, input_mode="auto_select"), 40000, 800),
    (Spec("gru", 2, 4, 4, **SKIP, **BI), 384, 96),
    (Spec("lstm", 2, 6, 5, num_proj=4), 456, 96),
    (Spec("lstm", 2, 6, 5, num_proj=4, **BI), 1104, 192),
    (Spec("rnn_tanh", 1, 1, 1, **SKIP), 1, 2),
]


@pytest.mark.parametrize("spec,weights,biases", SIZES)
def test_sizes(spec, weights, biases):
    found = [sum(r.size for r in part) for part in regions(spec)]
    assert found == [weights, biases]
    assert params_size(spec) == weights + biases


def offsets(spec):
    """{pseudo-layer: (weight offsets by slot, bias offsets by slot)}"""
    weights, biases = regions(spec)
    return {
        p: tuple([r.offset for r in part if r.pseudo == p] for part in (weights, biases))
        for p in range(spec.num_pseudo)
    }


def test_offsets_lstm_bidirectional():
    found = offsets(Spec("lstm", 2, 2, 3, **BI))
    assert found[0][0] == [0, 6, 12, 18, 24, 28, 32, 36]
    assert found[1][0] == [40 + each for each in found[0][0]]
    assert found[2][0] == [80, 88, 96, 104, 112, 116, 120, 124]
    assert found[3][0] == [48 + each for each in found[2][0]]
    for p in range(4):
        assert found[p][1] == [176 + 16 * p + 2 * k for k in range(8)]


def test_offsets_projection():
    weights, biases = offsets(Spec("lstm", 1, 3, 2, num_proj=2))[0]
    assert weights == [0, 6, 12, 18, 24, 30, 36, 42, 48]
    assert biases == list(range(54, 78, 3))


def test_offsets_skip():
    spec = Spec("gru", 1, 3, 3, **SKIP)
    assert offsets(spec)[0] == ([0, 0, 0, 0, 9, 18], [27, 30, 33, 36, 39, 42])
    assert [r.shape for r in regions(spec)[0]][:4] == [(3, 0)] * 3 + [(3, 3)]


@pytest.mark.parametrize("spec", [row[0] for row in SIZES if row[1] < 5000])
def test_canonical_round_trip(spec):
    buffer = np.random.default_rng(1).normal(size=params_size(spec))
    weights, biases = params_to_canonical(spec, buffer)
    assert np.array_equal(canonical_to_params(spec, weights, biases), buffer)


@pytest.mark.parametrize("spec", [row[0] for row in SIZES if row[1] < 5000])
def test_tf_round_trip_keeps_weights_and_bias_sums(spec):
    buffer = np.random.default_rng(2).normal(size=params_size(spec))
    tensors = to_tf(spec, buffer, scope="m1")
    again = from_tf(spec, dict(tensors), scope="m1")
    for (name, first), (_, second) in zip(tensors, to_tf(spec, again, scope="m1")):
        assert np.array_equal(first, second), name
    split = sum(r.size for r in regions(spec)[0])
    assert np.array_equal(buffer[:split], again[:split])


def test_tf_lstm_blocks_are_i_c_f_o():
    spec = Spec("lstm", 1, 2, 3)
    (_, kernel), (_, bias) = to_tf(spec, np.arange(params_size(spec)).astype(float))
    weights, biases = params_to_canonical(spec, np.arange(params_size(spec)).astype(float))
    for block, slot in enumerate([0, 2, 1, 3]):
        columns = slice(2 * block, 2 * block + 2)
        assert np.array_equal(kernel[:3, columns], weights[slot].T)
        assert np.array_equal(kernel[3:, columns], weights[4 + slot].T)
        assert np.array_equal(bias[columns], biases[slot] + biases[4 + slot])


def test_tf_gru_keeps_candidate_biases_apart():
    spec = Spec("gru", 1, 2, 3, direction="bidirectional")
    tensors = dict(to_tf(spec, np.arange(params_size(spec)).astype(float)))
    prefix = "stack_bidirectional_rnn/cell_0/bidirectional_rnn/bw/cudnn_compatible_gru_cell/"
    weights, biases = params_to_canonical(spec, np.arange(params_size(spec)).astype(float))
    assert tensors[prefix + "gates/kernel"].shape == (5, 4)
    assert np.array_equal(tensors[prefix + "gates/kernel"][:3, 2:], weights[6 + 1].T)
    assert np.array_equal(tensors[prefix + "candidate/input_projection/bias"], biases[6 + 2])
    assert np.array_equal(tensors[prefix + "candidate/hidden_projection/bias"], biases[6 + 5])


def test_tf_names_in_order():
    names = [
        name
        for name, _ in to_tf(
            Spec("lstm", 2, 3, 2, num_proj=2),
            np.zeros(params_size(Spec("lstm", 2, 3, 2, num_proj=2))),
        )
    ]
    cell = "rnn/multi_rnn_cell/cell_{}/cudnn_compatible_lstm_cell/{}"
    assert names == [
        cell.format(layer, suffix)
        for suffixes in (("kernel", "projection/kernel"), ("bias",))
        for layer in range(2)
        for suffix in suffixes
    ]


def test_tf_skip_kernel_has_recurrent_rows_only():
    spec = Spec("gru", 1, 3, 3, **SKIP)
    shapes = [t.shape for _, t in to_tf(spec, np.zeros(params_size(spec)))]
    assert shapes == [(3, 6), (0, 3), (3, 3), (6,), (3,), (3,)]
