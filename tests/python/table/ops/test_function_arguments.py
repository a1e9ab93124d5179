"""Every argument of a function does what it does for the model of the same name."""

import numpy as np
import openrnn
import pytest
from table.ops.op_support import EAGER_SYMBOLIC, call_op, make_arguments, make_op
from table.support import I, U, array, draw

ARGUMENTS = {
    "nothing": ({}, {}),
    "skip_input": ({"input_mode": "skip_input", "input_size": U}, {}),
    "bidirectional": ({"direction": "bidirectional"}, {}),
    "dropout": ({"dropout": 0.5}, {}),
    "dropout of all": ({"dropout": 1.0}, {}),
    "dropout and seed": ({"dropout": 0.5, "seed": 7}, {}),
    "dropout and a negative seed": ({"dropout": 0.5, "seed": -7}, {}),
    "dropout off": ({"dropout": 0.5}, {"is_training": False}),
    "bf16": ({"math": "bf16"}, {"is_training": False}),
    "int8": ({"weights_dtype": "int8"}, {"is_training": False}),
    "lengths": ({}, {"sequence_lengths": [5, 0, 2]}),
    "batch-major": ({}, {"time_major": False}),
}
DIFFERENT = [name for name in ARGUMENTS if name not in ("nothing", "dropout off")]


def run(kind, name, symbolic=False, function=True):
    of_model, of_call = ARGUMENTS[name]
    op, spec = make_op(kind, **of_model)
    given = make_arguments(spec)
    if name == "batch-major":
        given = [*(np.swapaxes(one, 0, 1).copy() for one in given[:-1]), given[-1]]
    if not function:
        return call_op(op, given, symbolic, **of_call)
    arguments = {key: value for key, value in of_model.items() if key != "input_size"}
    return call_op(kind.function, given, symbolic, **arguments, **of_call)


@EAGER_SYMBOLIC
@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_function_is_a_model_called_once(kind, name, symbolic):
    found, wanted = run(kind, name, symbolic), run(kind, name, function=False)
    for one, two in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("name", DIFFERENT)
def test_each_argument_changes_the_output(kind, name):
    assert not np.array_equal(run(kind, name)[0], run(kind, "nothing")[0])


def test_seeds_differ(kind):
    names = ("dropout", "dropout and seed", "dropout and a negative seed")
    first, second, third = (run(kind, name)[0] for name in names)
    assert not np.array_equal(first, second) and not np.array_equal(second, third)


def test_dtype_of_the_converters(kind):
    """The buffer's dtype, and the weights', is that of what comes out."""
    size = openrnn.cudnn_rnn.ops.cudnn_rnn_opaque_params_size(kind.mode, 2, U, I)
    params = draw(size, dtype="float64")
    weights, biases = openrnn.cudnn_rnn.ops.cudnn_rnn_opaque_params_to_canonical(
        kind.mode, 2, U, I, params
    )
    assert {str(one.dtype) for one in (*weights, *biases)} == {"float64"}
    again = openrnn.cudnn_rnn.ops.cudnn_rnn_canonical_to_opaque_params(
        kind.mode, 2, U, I, weights, biases
    )
    assert again.dtype == "float64"
    np.testing.assert_array_equal(array(again), params)


NAMES = {
    "lstm": "CudnnLSTM", "gru": "CudnnGRU", "rnn_tanh": "CudnnRNNTanh", "rnn_relu": "CudnnRNNRelu",
}  # fmt: skip
OTHERS = (lambda a: a.astype("float64"), lambda a: a.astype("float16"), np.ndarray.tolist)


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("mode", NAMES)
def test_every_operand_takes_the_dtype_of_the_inputs(mode, recorded):
    """One array at a time is wider, narrower or a list; the model's own dtype rules its calls."""
    ops = openrnn.cudnn_rnn.ops
    model, random = getattr(ops, NAMES[mode])(1, 3, 2), np.random.default_rng(2)
    function = getattr(ops, f"cudnn_{mode}")
    shapes = [(4, 2, 2), (1, 2, 3), *[(1, 2, 3)] * (mode == "lstm"), (model.params_size(),)]
    arrays = [(np.round(random.normal(size=shape) * 64) / 64).astype("float32") for shape in shapes]
    calls = {
        function: lambda given: function(*given, is_training=False),
        model: lambda given: model(*given, is_training=False),
    }
    for call, run in calls.items():
        wanted = run(arrays)
        for place in range(call is function, len(arrays)):
            for kind in OTHERS:
                given = list(arrays)
                given[place] = kind(arrays[place])
                if recorded:
                    other = 0 if place else 1
                    symbol = openrnn.Input(batch_shape=arrays[other].shape)
                    values = given[other]
                    given[other] = symbol
                    found = openrnn.Model(symbol, list(run(given)))(values)
                else:
                    found = run(given)
                for one, right in zip(found, wanted, strict=True):
                    assert one.dtype == "float32"
                    np.testing.assert_array_equal(one.numpy(), right.numpy())
    wide = [arrays[0].astype("float64"), *arrays[1:]]
    assert all(one.dtype == "float64" for one in calls[function](wide))
    assert all(one.dtype == "float32" for one in calls[model](wide))
