"""Every property of every public class has a row here: its value where it is not the usual one."""

import inspect

import numpy as np
import openrnn
import pytest
from effects_of_functions import A, I, U, X
from effects_of_methods import built, packed
from effects_of_runs_and_files import graph, run_of
from openrnn import cudnn_rnn, layers, train
from openrnn.cudnn_rnn import ops
from openrnn.nn import rnn_cell
from test_effects import here, same  # noqa: F401 - `here` is a fixture
from test_messages import CALLABLES, NOT_MADE_BY_USERS

WIDE = {"direction": "bidirectional", "num_proj": 3, "dropout": 0.25, "math": "bf16x3"}
# Tested where there are files of several kinds, runs and machines.
ELSEWHERE = {
    "LoadedModel", "LoadedNetwork", "EngineStatus", "Explanation", "CheckpointStatus", "StepReport",
    "SaveSpec", "PackedModelBase", "Node", "Communicator",
}  # fmt: skip


def wide():
    layer = cudnn_rnn.CudnnLSTM(2, U, **WIDE)
    layer.build((None, None, I))
    return layer


def op():
    return ops.CudnnLSTM(2, U, I, direction="bidirectional", num_proj=3, math="bf16x3")


def recorded():
    """A Dense layer that was called on an Input in a scope."""
    x = openrnn.Input(batch_shape=(7, 3))
    with openrnn.variable_scope("here"):
        layer = layers.Dense(2, name="given")
        y = layer(x)
    return layer, x, y


def model():
    x, z = (openrnn.Input(batch_shape=(None, 3)) for _ in range(2))
    first, second = layers.Dense(2), layers.Dense(2)
    return openrnn.Model([x, z], [first(x), second(z)]), x, first, second


def minimized(kind=train.AdamOptimizer, dtype="float32"):
    optimizer = kind(0.25)
    variable = openrnn.Variable(np.ones(2, dtype))
    optimizer.minimize(lambda: openrnn.reduce_sum(variable * variable), var_list=[variable])
    return optimizer


def saver():
    made = train.Saver([openrnn.Variable([1.0])], max_to_keep=2)
    for step in range(3):
        made.save("m", step)
    return made


def manager():
    made = train.CheckpointManager(train.Saver([openrnn.Variable([1.0])]), "folder", 2)
    for step in range(3):
        made.save(step)
    return made


def counted():
    made = train.Checkpoint(v=openrnn.Variable([1.0]))
    made.save("m"), made.save("m")
    return made.save_counter


def scope(name):
    with openrnn.variable_scope("a"), openrnn.variable_scope("b", reuse=True) as inner:
        return getattr(inner, name)


def of_run(name):
    with run_of(valid_every=3) as run:
        run.train()
        return getattr(run, name)


def seeded():
    openrnn.set_random_seed(7)
    return openrnn.get_default_graph().seed


PROPERTIES = {
    "Graph": {"seed": lambda: (seeded(), 7)},
    "InferenceSession": {"model": lambda: (type(openrnn.InferenceSession(packed()).model).__name__,
                                           "PackedModel")},
    "StreamPool": {"model": lambda: (type(openrnn.StreamPool(packed()).model).__name__,
                                     "PackedModel")},
    "PackedModel": {"spec": lambda: (
        {key: openrnn.PackedModel.from_layer(wide()).spec[key] for key in ("direction", "num_proj", "math")},
        {"direction": "bidirectional", "num_proj": 3, "math": "bf16x3"})},
    "Model": {
        "inputs": lambda: (len(model()[0].inputs), 2),
        "outputs": lambda: ([one.shape for one in model()[0].outputs], [(None, 2)] * 2),
        "layers": lambda: ([len(model()[0].layers), type(model()[0].layers[1]).__name__], [2, "Dense"]),
    },
    "LayerGraph": {
        "inputs": lambda: (graph().inputs, [("float32", (None, 3))]),
        "outputs": lambda: (graph().outputs, [("float32", (None, 2))]),
        "layers": lambda: (list(graph().layers), ["head", "drop"]),
    },
    "Tensor": {
        "T": lambda: (openrnn.Tensor(A).T, A.T),
        "size": lambda: (openrnn.Tensor(A).size, 6),
        "device": lambda: (openrnn.Tensor(A).cpu().device, "cpu"),
        "dtype": lambda: (openrnn.Tensor(A, "float16").dtype, "float16"),
        "is_symbolic": lambda: ([openrnn.Input((2,)).is_symbolic, openrnn.Tensor(A).is_symbolic],
                                [True, False]),
        "is_tracked": lambda: (tracked(), [False, True]),
        "ndim": lambda: (openrnn.Tensor(A).ndim, 2),
        "shape": lambda: (openrnn.Tensor(A).shape, (2, 3)),
    },
    "Variable": {
        "T": lambda: (openrnn.Variable(A).T, A.T),
        "size": lambda: (openrnn.Variable(A).size, 6),
        "device": lambda: (openrnn.Variable(A).device, "cpu"),
        "dtype": lambda: (openrnn.Variable(A, dtype="float16").dtype, "float16"),
        "name": lambda: (openrnn.Variable(A, name="v").name, "v"),
        "ndim": lambda: (openrnn.Variable(A).ndim, 2),
        "shape": lambda: (openrnn.Variable(A).shape, (2, 3)),
        "trainable": lambda: (openrnn.Variable(A, trainable=False).trainable, False),
        "version": lambda: (raised(), True),
    },
    "VariableScope": {
        "name": lambda: (scope("name"), "a/b"),
        "original_name_scope": lambda: (scope("original_name_scope"), "a/b/"),
        "reuse": lambda: (scope("reuse"), True),
    },
    "_Compatible": {"num_units": lambda: (rnn_cell.GRUCell(3).num_units, 3)},
    "RNNCell": {
        "output_size": lambda: (rnn_cell.LSTMCell(4, num_proj=3).output_size, 3),
        "state_size": lambda: (tuple(rnn_cell.LSTMCell(4, num_proj=3).state_size), (4, 3)),
    },
    "DropoutWrapper": {"wrapped_cell": lambda: (
        rnn_cell.DropoutWrapper(rnn_cell.GRUCell(3)).wrapped_cell.num_units, 3)},
    "MultiRNNCell": {"cells": lambda: (
        [one.num_units for one in rnn_cell.MultiRNNCell([rnn_cell.GRUCell(n) for n in (3, 2)]).cells],
        [3, 2])},
    "Dense": {
        "kernel": lambda: (recorded()[0].kernel.shape, (3, 2)),
        "bias": lambda: ([recorded()[0].bias.shape, layers.Dense(2).bias], [(2,), None]),
    },
    "Dropout": {"rate": lambda: (layers.Dropout(0.25).rate, 0.25)},
    "Embedding": {"embeddings": lambda: (looked_up().embeddings.shape, (5, 3))},
    "OptimizerBase": {
        "learning_rate": lambda: (minimized().learning_rate, 0.25),
        "loss_scale": lambda: ([minimized().loss_scale, minimized(dtype="float16").loss_scale > 1.0],
                               [1.0, True]),
        "name": lambda: ([minimized().name, train.GradientDescentOptimizer(1.0).name],
                         ["Adam", "GradientDescent"]),
    },
    "CheckpointBase": {"save_counter": lambda: (int(counted()), 2)},
    "CheckpointManager": {
        "checkpoint": lambda: (type(manager().checkpoint).__name__, "Saver"),
        "directory": lambda: (manager().directory, "folder"),
    },
    "CheckpointManagerBase": {
        "checkpoints": lambda: (manager().checkpoints,
                                ["folder/model.ckpt-1", "folder/model.ckpt-2"]),
        "latest_checkpoint": lambda: (manager().latest_checkpoint, "folder/model.ckpt-2"),
    },
    "SaverBase": {"last_checkpoints": lambda: (saver().last_checkpoints, ["m-1", "m-2"])},
    "OpModel": {
        "device": lambda: (op().device, None), "direction": lambda: (op().direction, "bidirectional"),
        "input_mode": lambda: (ops.CudnnGRU(1, U, U, "skip_input").input_mode, "skip_input"),
        "input_size": lambda: (op().input_size, I), "math": lambda: (op().math, "bf16x3"),
        "math_kind": lambda: (ops.CudnnGRU(1, U, I, weights_dtype="int8").math_kind, "int8"),
        "num_layers": lambda: (op().num_layers, 2), "num_proj": lambda: (op().num_proj, 3),
        "num_units": lambda: (op().num_units, U), "rnn_mode": lambda: (op().rnn_mode, "lstm"),
        "weights_dtype": lambda: (ops.CudnnGRU(1, U, I, weights_dtype="int8").weights_dtype, "int8"),
    },
    "CudnnRNN": {
        "canonical_bias_shapes": lambda: (wide().canonical_bias_shapes, [[U]] * 32),
        "canonical_weight_shapes": lambda: (
            wide().canonical_weight_shapes,
            ([(U, I)] * 4 + [(U, 3)] * 4 + [(3, U)]) * 2 + ([(U, 6)] * 4 + [(U, 3)] * 4 + [(3, U)]) * 2),
        "direction": lambda: (wide().direction, "bidirectional"),
        "dropout": lambda: (wide().dropout, 0.25),
        "dropout_calls": lambda: (called_twice(), 2),
        "input_mode": lambda: (cudnn_rnn.CudnnGRU(1, U, "skip_input").input_mode, "skip_input"),
        "input_size": lambda: (wide().input_size, I),
        "kernel": lambda: (wide().kernel.name, "cudnn_lstm/opaque_kernel"),
        "math": lambda: (wide().math, "bf16x3"),
        "math_kind": lambda: (cudnn_rnn.CudnnGRU(1, U, weights_dtype="int8").math_kind, "int8"),
        "num_dirs": lambda: (wide().num_dirs, 2), "num_layers": lambda: (wide().num_layers, 2),
        "num_proj": lambda: (wide().num_proj, 3), "num_units": lambda: (wide().num_units, U),
        "rnn_mode": lambda: (layers.RNN(3, activation="relu").rnn_mode, "rnn_relu"),
        "saveable": lambda: (wide().saveable.name, "cudnn_lstm/opaque_kernel_saveable"),
        "weights_dtype": lambda: (cudnn_rnn.CudnnGRU(1, U, weights_dtype="int8").weights_dtype, "int8"),
    },
    "SaveableObject": {
        "name": lambda: (wide().saveable.name, "cudnn_lstm/opaque_kernel_saveable"),
        "op": lambda: (wide().saveable.op.name, "cudnn_lstm/opaque_kernel"),
        "specs": lambda: (len(wide().saveable.specs), 2 * 2 * 3),
    },
    "Run": {
        "config": lambda: (configured(), 5),
        "reduction_cost": lambda: (tuple(of_run("reduction_cost")), (0, 0, 0.0, 0.0, 0.0)),
    },
    "RunBase": {
        "best": lambda: (0.0 < of_run("best") < 10.0, True),
        "best_prefix": lambda: (of_run("best_prefix"), "out/best"),
        "best_step": lambda: (of_run("best_step"), 6),
        "config_json": lambda: (of_run("config_json")[0], "{"),
        "metric_name": lambda: (of_run("metric_name"), "bits per byte"),
        "notes": lambda: (of_run("notes"), []),
        "resumed_from": lambda: (resumed(), "out/model.ckpt-6"),
        "step": lambda: (of_run("step"), 6), "steps": lambda: (of_run("steps"), 6),
        "steps_per_epoch": lambda: (of_run("steps_per_epoch") > 10, True),
        "variables": lambda: (
            [one.name for one in of_run("variables")],
            ["embedding/embeddings", "cudnn_lstm/opaque_kernel", "dense/kernel", "dense/bias"]),
    },
    "LayerBase": {
        "activity_regularizer": lambda: (regular().activity_regularizer.scale, 0.5),
        "built": lambda: ([recorded()[0].built, layers.Dense(2).built], [True, False]),
        "device": lambda: (recorded()[0].device, "cpu"),
        "dtype": lambda: (layers.Dense(2, dtype="float64").dtype, "float64"),
        "graph": lambda: (recorded()[0].graph is openrnn.get_default_graph(), True),
        "inbound_nodes": lambda: (len(recorded()[0].inbound_nodes), 1),
        "outbound_nodes": lambda: (followed(), [1, 0]),
        "input": lambda: (recorded()[0].input.shape, (7, 3)),
        "output": lambda: (recorded()[0].output.shape, (7, 2)),
        "input_shape": lambda: (recorded()[0].input_shape, (7, 3)),
        "output_shape": lambda: (recorded()[0].output_shape, (7, 2)),
        "input_mask": lambda: (recorded()[0].input_mask, None),
        "output_mask": lambda: (recorded()[0].output_mask, None),
        # Of the output and of its state.
        "losses": lambda: (len(regular(True).losses), 2),
        "updates": lambda: (len(updated().updates), 1),
        "name": lambda: (recorded()[0].name, "given"),
        "scope_name": lambda: (recorded()[0].scope_name, "here/given"),
        "stateful": lambda: (updated().stateful, True),
        "trainable": lambda: (layers.Dense(2, trainable=False).trainable, False),
        **{name: (lambda name=name, count=count: (len(getattr(frozen(), name)), count))
           for name, count in (("trainable_weights", 0), ("trainable_variables", 0), ("weights", 2),
                               ("non_trainable_weights", 2), ("non_trainable_variables", 2),
                               ("variables", 2))},
    },
    "Layer": {"input_spec": lambda: (tuple(recorded()[0].input_spec), (None, {-1: 3}))},
}  # fmt: skip


def resumed():
    of_run("step")
    with train.Run("out", resume=True) as run:
        return run.resumed_from


def regular(call=False):
    layer = cudnn_rnn.CudnnGRU(1, U, activity_regularizer=openrnn.regularizers.l2(0.5))
    if call:
        layer(X)
    return layer


def followed():
    first, _, y = recorded()
    last = layers.Dense(4)
    last(y)
    return [len(first.outbound_nodes), len(last.outbound_nodes)]


def updated():
    layer = layers.Dense(2)
    layer.stateful = True
    layer.add_update(lambda: None)
    return layer


def frozen():
    layer = layers.Dense(2, trainable=False)
    layer(A)
    return layer


def configured():
    with run_of() as run:
        return run.config["seq_len"]


def tracked():
    x = openrnn.Tensor(A)
    with openrnn.GradientTape() as tape:
        tape.watch(x)
        return [openrnn.Tensor(A).is_tracked, (x * 2.0).is_tracked]


def raised():
    made = openrnn.Variable(A)
    before = made.version
    made.assign(A)
    return made.version > before


def looked_up():
    made = layers.Embedding(5, 3)
    made([1])
    return made


def called_twice():
    layer = built(num_layers=2, dropout=0.5)
    layer(X), layer(X), layer(X, training=False)
    return layer.dropout_calls


CASES = [(cls, name) for cls, rows in PROPERTIES.items() for name in rows]


@pytest.mark.parametrize("cls, name", CASES)
def test_what_a_property_says(cls, name):
    same(*PROPERTIES[cls][name]())


def properties():
    classes = [one for one in CALLABLES.values() if isinstance(one, type)]
    for cls in [*classes, *NOT_MADE_BY_USERS]:
        for base in cls.__mro__:
            for name, value in vars(base).items() if base.__module__.startswith("openrnn") else ():
                if isinstance(value, property) and not name.startswith("_"):
                    yield base.__qualname__, name


def test_every_property_has_a_row():
    rows = {cls: set(found) for cls, found in PROPERTIES.items()}
    missing = {(cls, name) for cls, name in properties()
               if cls not in ELSEWHERE and name not in rows.get(cls, ())}  # fmt: skip
    assert not missing, sorted(missing)
