"""Layers with options through files: Saver and Checkpoint restore the same bits in a fresh graph;
the names are TensorFlow's, and TensorFlow's own cells compute the same from the file."""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

import openrnn
from openrnn import cudnn_rnn

import tf1_cells
from model import package_run
from model.cells import cell_problems
from model.cells.cell_spec import CellSpec, split

# Each option alone and some together; biases are two a gate where nothing else is said.
OPTIONS = [
    ("lstm", {"use_peepholes": True}),
    ("lstm", {"coupled_gates": True}),
    ("lstm", {"cell_clip": (-0.25, 0.25)}),
    ("lstm", {"num_proj": 2, "proj_clip": (-0.25, 0.25)}),
    ("lstm", {"gate_clip": (-0.5, 0.75)}),
    ("lstm", {"forget_bias": 1.0}),
    ("lstm", {"activation": "softsign", "output_activation": "softsign"}),
    ("lstm", {"recurrent_activation": "hard_sigmoid(0.25, 0.5)"}),
    ("lstm", {"use_bias": False}),
    ("lstm", {"single_bias": True, "use_peepholes": True, "num_proj": 2}),
    ("lstm", {"layer_norm": "products", "layer_norm_cell": "output"}),
    ("lstm", {"layer_norm": "products", "single_bias": True, "use_peepholes": True}),
    ("lstm", {"layer_norm": "gates", "layer_norm_cell": "carried", "single_bias": True,
              "layer_norm_epsilon": 1e-12}),
    ("lstm", {"layer_norm": "gates", "layer_norm_cell": "carried", "layer_norm_epsilon": 1e-3}),
    ("lstm", {"layer_norm": "gates", "layer_norm_cell": "output", "use_bias": False}),
    ("gru", {"layer_norm": "products"}),
    ("gru", {"layer_norm": "split_products", "single_bias": True}),
    ("gru", {"reset_after": False}),
    ("gru", {"reset_after": False, "single_bias": True, "activation": "relu"}),
    ("gru", {"reset_after": False, "use_bias": False}),
    ("gru", {"single_bias": True}),
    ("gru", {"gate_clip": (-0.5, 0.75)}),
    ("gru", {"num_proj": 2, "proj_clip": (-0.25, 0.25)}),
    ("rnn_tanh", {"num_proj": 2, "proj_clip": (-0.25, 0.25)}),
    ("rnn_tanh", {"activation": "elu"}),
    ("rnn_relu", {"single_bias": True}),
]
CASES = [
    (mode, options, direction)
    for mode, options in OPTIONS
    for direction in ["unidirectional", "bidirectional"]
]


def make_layer(spec, params=None):
    more = dict(spec.options)
    if spec.mode != "lstm" and spec.num_proj:
        more["num_proj"] = spec.num_proj
    return package_run.make_layer(spec, np.float64, params, **more)


def outputs(layer, problem):
    states = tuple(s for s in problem.states if s is not None)
    y, last = layer(problem.x, states, training=False)
    return [np.array(each) for each in (y, *last)]


def make_case(mode, options, direction):
    spec = CellSpec(mode, 2, 5, 3, direction=direction, **options)
    return spec, cell_problems.make(spec, time=3)


def save(spec, problem, prefix):
    """What the layer computes, after a Saver and a Checkpoint have written it."""
    with openrnn.Graph().as_default():
        layer = make_layer(spec, problem.params)
        openrnn.train.Saver().save(f"{prefix}-saver")
        openrnn.train.Checkpoint(rnn=layer).write(f"{prefix}-objects")
        return outputs(layer, problem)


@pytest.mark.parametrize("mode,options,direction", CASES)
def test_a_fresh_graph_restores_the_same_bits(tmp_path, mode, options, direction):
    spec, problem = make_case(mode, options, direction)
    prefix = tmp_path / "it"
    wanted = save(spec, problem, prefix)
    for kind in ("saver", "objects"):
        with openrnn.Graph().as_default():
            layer = make_layer(spec, np.zeros_like(problem.params))
            if kind == "saver":
                openrnn.train.Saver().restore(f"{prefix}-saver")
            else:
                openrnn.train.Checkpoint(rnn=layer).read(f"{prefix}-objects")
            kernel = np.array(layer.kernel)
            if kind == "saver" or spec.biases_per_gate < 2:
                assert kernel.tobytes() == problem.params.tobytes(), kind
            # Object-based checkpoints have the sum of two biases, and give each its half.
            for one, other in zip(split(spec, kernel), split(spec, problem.params), strict=True):
                wanted_tensors = tf1_cells.tensors(spec, other)
                for name, tensor in tf1_cells.tensors(spec, one).items():
                    assert np.array_equal(tensor, wanted_tensors[name]), (kind, name)
            for ours, theirs in zip(outputs(layer, problem), wanted, strict=True):
                assert ours.tobytes() == theirs.tobytes(), kind
    names = ["y", "h", "c"][: len(wanted)]
    cell_problems.assert_close(dict(zip(names, wanted)), cell_problems.values(problem))


SAVEABLES = {
    "lstm": cudnn_rnn.CudnnLSTMSaveable,
    "gru": cudnn_rnn.CudnnGRUSaveable,
    "rnn_tanh": cudnn_rnn.CudnnRNNTanhSaveable,
    "rnn_relu": cudnn_rnn.CudnnRNNReluSaveable,
}
CONVERTERS = {
    "lstm": cudnn_rnn.CudnnParamsFormatConverterLSTM,
    "gru": cudnn_rnn.CudnnParamsFormatConverterGRU,
    "rnn_tanh": cudnn_rnn.CudnnParamsFormatConverterTanh,
    "rnn_relu": cudnn_rnn.CudnnParamsFormatConverterRelu,
}


@pytest.mark.parametrize("mode,options,direction", CASES)
def test_saveables_and_converters_made_by_hand(mode, options, direction):
    spec, problem = make_case(mode, options, direction)
    with openrnn.Graph().as_default():
        layer = make_layer(spec, problem.params)
        wanted = [(s.name, np.array(s.tensor)) for s in layer.saveable.specs]
        sizes = (spec.num_layers, spec.num_units, spec.input_size)
        saveable = SAVEABLES[mode](layer.kernel, *sizes, direction=direction, **options)
        for found, (name, tensor) in zip(saveable.specs, wanted, strict=True):
            assert name.endswith(found.name)
            assert np.array_equal(found.tensor, tensor), name
        converter = CONVERTERS[mode](*sizes, direction=direction, **options)
        weights, biases, *projections = converter.opaque_to_tf_canonical(layer.kernel)
        projections = projections[0] if projections else []
        assert sorted(a.numpy().tobytes() for a in [*weights, *biases, *projections]) == sorted(
            tensor.tobytes() for _, tensor in wanted
        )
        again = converter.tf_canonical_to_opaque([*weights, *biases], projections)
        saveable.restore([tensor for _, tensor in wanted])
        assert again.numpy().tobytes() == layer.kernel.numpy().tobytes()


@pytest.mark.parametrize("cls,more", [
    (cudnn_rnn.CudnnGRUSaveable, (openrnn.Variable(np.zeros(3, "float32"), name="v"),)),
    (cudnn_rnn.CudnnParamsFormatConverterGRU, ()),
])  # fmt: skip
def test_what_is_no_option_of_a_saveable_is_refused(cls, more):
    for name in ("sine", "dtype", "rnn_mode"):
        with pytest.raises(TypeError, match=f"got an unexpected keyword argument '{name}'"):
            cls(*more, 1, 4, 3, **{name: "float32"})
    with pytest.raises(ValueError, match="use_peepholes is set for gru"):
        cls(*more, 1, 4, 3, use_peepholes=True)


# TensorFlow has no gru that resets after the product; docs/saveables.md names its tensors.
@pytest.mark.parametrize(
    "mode,options,direction", [c for c in CASES if c[0] != "gru" or "reset_after" in c[1]]
)
def test_tensors_have_tensorflow_s_names(tmp_path, mode, options, direction):
    spec, problem = make_case(mode, options, direction)
    save(spec, problem, tmp_path / "it")
    reader = tf.train.load_checkpoint(str(tmp_path / "it-saver"))
    found = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
    found = {name: value for name, value in found.items() if "opaque_kernel" not in name}
    wanted = {
        f"{scope}/{name}": tensor
        for scope, parts in zip(tf1_cells.scopes(spec), split(spec, problem.params))
        for name, tensor in tf1_cells.tensors(spec, parts).items()
    }
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        assert np.array_equal(found[name], value), name


@pytest.mark.parametrize(
    "mode,options,direction",
    [
        ("lstm", {
            "use_peepholes": True, "cell_clip": (-0.25, 0.25), "num_proj": 2, "forget_bias": 0.5,
            "proj_clip": (-0.25, 0.25),
        }, "unidirectional"),
        ("lstm", {"use_peepholes": True}, "bidirectional"),
        ("lstm", {
            "layer_norm": "gates", "layer_norm_cell": "carried", "layer_norm_epsilon": 1e-12,
            "forget_bias": 1.0,
        }, "bidirectional"),
        ("gru", {"reset_after": False}, "unidirectional"),
        ("gru", {"reset_after": False, "single_bias": True}, "bidirectional"),
        ("rnn_tanh", {"activation": "elu"}, "unidirectional"),
    ],
)  # fmt: skip
def test_tensorflow_s_cells_compute_the_same_from_it(tmp_path, mode, options, direction):
    spec, problem = make_case(mode, options, direction)
    ours = save(spec, problem, tmp_path / "it")
    theirs = tf1_cells.run(spec, problem, tmp_path / "it-saver")
    names = ["y", "h", "c"][: len(ours)]
    cell_problems.assert_close(dict(zip(names, ours)), theirs, names=names)
    assert sum("w_i_diag" in name for name in theirs) == spec.use_peepholes * spec.num_pseudo
