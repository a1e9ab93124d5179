"""The same of files, packed models, saveables, op-level models, cells and training runs."""

import os

import numpy as np
import openrnn
from effects_of_functions import A, ELSEWHERE, I, T, U, X, of_device, refused
from effects_of_methods import built
from openrnn import cudnn_rnn, initializers, layers, train
from openrnn.cudnn_rnn import ops
from openrnn.nn import rnn_cell


def hinted(layer, ending, **hint):
    """What a file that leaves something open is, with a hint."""
    layer.build((None, None, I))
    openrnn.save(f"m.{ending}", layer)
    return openrnn.load(f"m.{ending}", **hint).network.options


def gates(**hint):
    return hinted(layers.LSTM(U, single_bias=True), "weights.h5", **hint).get("recurrent_activation")


def reset_after(value):
    options = hinted(layers.GRU(U, use_bias=False), "weights.h5", reset_after=value)
    return options.get("reset_after", True)


def opaque_alone(**hint):
    """A checkpoint that holds the buffer of a CudnnLSTM and nothing of its network."""
    params = np.arange(ops.CudnnLSTM(1, U, I).params_size(), dtype="float32")
    train.Saver({"encoder/opaque_kernel": openrnn.Variable(params)}).save("opaque")
    return [network.params.tolist() for network in openrnn.load("opaque", **hint).values()], params


def basic_lstm_cell(**hint):
    """The bias of a BasicLSTMCell of TensorFlow, in a checkpoint."""
    kernel, bias = np.zeros((I + U, 4 * U), "float32"), np.zeros(4 * U, "float32")
    scope = "rnn/multi_rnn_cell/cell_0/basic_lstm_cell"
    train.Saver({f"{scope}/kernel": openrnn.Variable(kernel), f"{scope}/bias": openrnn.Variable(bias)}).save("basic")
    return openrnn.load("basic", **hint).network.options["forget_bias"]


def saved(**kw):
    openrnn.save("m.any", built(), **kw)
    return openrnn.load("m.any")


def loaded():
    openrnn.save("m.openrnn", built())
    return openrnn.load("m.openrnn")


def packed(name, value, mode="lstm", input_size=U, dtype="float32"):
    """A PackedModel of a layer with that option, and what the layer gives."""
    layer = cudnn_rnn.CudnnLSTM(1, U, dtype=dtype, **({} if name == "dtype" else {name: value}))
    layer.build((None, None, input_size))
    random = np.random.default_rng(2)
    layer.kernel.assign(random.uniform(-0.6, 0.7, layer.kernel.shape).astype(dtype))
    model = openrnn.PackedModel(layer.kernel, mode, 1, U, input_size, **{name: value})
    x = random.normal(size=(T, 2, input_size)).astype(dtype)
    return openrnn.InferenceSession(model).run(x)[0], layer(x, training=False)[0]


def threads_of(count):
    params = np.zeros(ops.CudnnLSTM(1, U, I).params_size(), "float32")
    return openrnn.PackedModel(params, "lstm", 1, U, I, max_threads=count)


def saveable(kind, layer_options=None, input_size=I, **kw):
    layer = getattr(cudnn_rnn, kind)(1, U, **(layer_options or {}))
    layer.build((None, None, input_size))
    made = getattr(cudnn_rnn, kind + "Saveable")(layer.kernel, 1, U, input_size, **kw)
    return made, layer


def shapes(kind, **options):
    """Of the tensors of a saveable with those options, and of the layer's own."""
    size = U if options.get("input_mode") else I
    made, layer = saveable(kind, layer_options=options, input_size=size, **options)
    return [[tuple(spec.tensor.shape) for spec in one.specs] for one in (made, layer.saveable)]


def saveable_rows(kind):
    rows = {
        "input_mode": lambda: shapes(kind, input_mode="skip_input"),
        "direction": lambda: shapes(kind, direction="bidirectional"),
        "scope": lambda: (
            {spec.name.split("/")[0] for spec in saveable(kind, scope="here")[0].specs}, {"here"}),
        "name": lambda: (named(kind), "given"),
    }  # fmt: skip
    rows["num_proj"] = lambda: shapes(kind, num_proj=3)
    return rows


def named(kind):
    layer = built(getattr(cudnn_rnn, kind))
    return getattr(cudnn_rnn, kind + "Saveable")(layer.kernel, 1, U, I, name="given").name


def op(kind, training=True, input_size=U, state=U, **kw):
    """What an op-level model with an option gives, and a layer with it."""
    model = getattr(ops, kind)(2, U, input_size, **kw)
    dtype = kw.get("dtype", "float32")
    random = np.random.default_rng(1)
    params = random.uniform(-0.5, 0.7, model.params_size()).astype(dtype)
    rows = 4 if kw.get("direction") == "bidirectional" else 2
    states = [np.zeros((rows, 2, width), dtype) for width in (state, U)]
    x = random.normal(size=(T, 2, input_size)).astype(dtype)
    found = model(x, *states[: 2 if kind == "CudnnLSTM" else 1], params, is_training=training)
    layer = getattr(cudnn_rnn, kind)(2, U, **{"seed": 0, **kw})
    layer.build((None, None, input_size))
    layer.kernel.assign(params)
    return found[0], layer(x, training=training)[0]


def op_seeds(kind):
    """The mask is that of the seed: equal ones give equal outputs."""
    outputs = []
    for seed in (3, 3, 4):
        model = getattr(ops, kind)(2, U, I, dropout=0.5, seed=seed)
        params = np.linspace(-0.5, 0.7, model.params_size(), dtype="float32")
        states = [np.zeros((2, 3, U), "float32")] * (2 if kind == "CudnnLSTM" else 1)
        outputs.append(model(X, *states, params)[0].numpy())
    first, same, other = outputs
    return [np.array_equal(first, same), np.array_equal(first, other)], [True, False]


def op_rows(kind):
    rows = {
        "input_mode": lambda: op(kind, input_mode="skip_input"),
        "direction": lambda: op(kind, direction="bidirectional"),
        "dtype": lambda: op(kind, dtype="float64"),
        "dropout": lambda: op(kind, dropout=1.0),
        "seed": lambda: op_seeds(kind),
        "math": lambda: op(kind, False, math="bf16x3"),
        "weights_dtype": lambda: op(kind, False, weights_dtype="int8"),
        "device": lambda: of_device(getattr(ops, kind), 1, U, I),
    }
    if kind == "CudnnLSTM":
        rows["num_proj"] = lambda: op(kind, state=3, num_proj=3)
    return rows


def reused(make):
    """The second cell has the variables of the first."""
    names, cells = [], []
    for reuse in (None, True):
        with openrnn.variable_scope("s"):
            cell = make(name="same", reuse=reuse)
            cells.append(cell)
            cell(A, cell.zero_state(2, "float32"))
            names.append([one.name for one in cell.weights])
    return names[1], names[0]


class Own(rnn_cell.RNNCell):
    state_size = output_size = 3

    def build(self, input_shape):
        self.kernel = self.add_weight("kernel", (input_shape[-1], 3))

    def call(self, inputs, state):
        made = openrnn.matmul(inputs, self.kernel) + state
        return made, made


def own(**kw):
    cell = Own(**kw)
    cell(A.astype(cell.dtype), cell.zero_state(2, cell.dtype))
    return cell


def own_reused():
    with openrnn.variable_scope("s"):
        first = own(name="same")
    with openrnn.variable_scope("s"):
        return own(name="same", _reuse=True).kernel.name, first.kernel.name


def regularized(kind):
    layer = kind(num_layers=1, num_units=U, activity_regularizer=openrnn.regularizers.l2(2.0))
    y = layer(X)[0].numpy().astype("float64")
    return float(layer.losses[0]), float((y * y).sum())


def biased():
    layer = layers.Dense(2, bias_initializer=initializers.constant(3.0))
    layer.build((None, 3))
    return layer.bias, np.full(2, 3.0)


def graph(rate=0.5, name=None):
    """Dense layers around a Dropout, as the model of a file."""
    made = {"head": layers.Dense(2, seed=1), "drop": layers.Dropout(rate)}
    made["head"].build((None, 3))
    return layers.LayerGraph(
        [
            {"name": "x", "kind": "input", "inputs": [], "options": {"shape": [-1, 3], "dtype": "float32"}},
            {"name": "head", "kind": "dense", "inputs": [("x", 0)], "options": {"units": 2}},
            {"name": "drop", "kind": "dropout", "inputs": [("head", 0)], "options": {"rate": rate}},
        ],
        [("drop", 0)], made, name=name,
    )  # fmt: skip


def dropped(call):
    y = getattr(graph(1.0), call)(np.ones((4, 3), "float32"), training=True)
    return float(np.abs(y.numpy()).sum()), 0.0


def texts():
    with open("t.txt", "w") as file:
        file.write("the cat sat on a mat.\n" * 60)
    with open("v.txt", "w") as file:
        file.write("a mat sat on the cat.\n" * 9)
    with open("s.csv", "w") as file:
        file.write("a,b,c\n" + "".join(f"{i % 7},{i % 3},{i % 5}\n" for i in range(90)))


def run_of(**kw):
    texts()
    if kw.get("task") == "series":
        kw = {"input": "s.csv", **kw}
    kw = {"input": "t.txt", "units": 4, "embedding": 3, "batch": 2, "seq_len": 5, **kw}
    if kw.get("task") == "series":
        kw.pop("embedding")
    if "epochs" not in kw:
        kw = {"steps": 6, **kw}
    return train.Run("out", **kw)


def configured(path, **kw):
    """What a run's configuration says at a path."""
    with run_of(**kw) as run:
        found = run.config
    for key in path.split("."):
        found = found[key]
    return found


def checkpoints():
    return sorted(int(name[11:-6]) for name in os.listdir("out") if name.endswith(".index"))


def trained(**kw):
    with run_of(**{"save_seconds": 0, "valid_every": 0, **kw}) as run:
        run.train()
    return checkpoints()


def recomputed():
    """Less is kept: the bits are the same."""
    values = []
    for recompute in (0, 32):
        with run_of(seq_len=70, recompute=recompute) as run:
            run.train()
            values.append([one.numpy() for one in run.variables])
        for name in os.listdir("out"):
            os.remove(os.path.join("out", name))
    return values[1], values[0]


def resumed():
    trained()
    with train.Run("out", resume=True) as run:
        return [run.step, run.config["seq_len"]], [6, 5]


def refused_resume():
    trained()
    return refused("out", train.Run, "out", input="t.txt")


def called_back():
    seen = []
    with run_of() as run:
        said = run.train(callback=lambda report: seen.append(report.step) or len(seen) < 3)
    return [said, seen], ["callback", [1, 2, 3]]


def saved_step(**kw):
    v = openrnn.Variable([1.0], name="v")
    return os.path.basename(train.Saver([v]).save("m", **kw))


def kept(make, **kw):
    """How many of four checkpoints stay."""
    v = openrnn.Variable([1.0], name="v")
    saver = make(v, **kw)
    for step in range(4):
        saver(step)
    return sum(name.endswith(".index") for name in os.listdir("."))


def by_saver(v, **kw):
    saver = train.Saver([v], **kw)
    return lambda step: saver.save("m", step)


def by_manager(v, **kw):
    manager = train.CheckpointManager(train.Saver([v]), ".", **kw)
    return manager.save


def one_saved():
    v, w = openrnn.Variable([1.0], name="v"), openrnn.Variable([2.0], name="w")
    train.Saver({"other": w}).save("m")
    return [train.list_variables("m"), v.name], [[("other", [1])], "v"]


def stepping(method):
    v, step = openrnn.Variable([1.0]), train.get_or_create_global_step()
    optimizer = train.GradientDescentOptimizer(0.5)
    if method == "minimize":
        optimizer.minimize(lambda: openrnn.reduce_sum(v), global_step=step)
    else:
        optimizer.apply_gradients([([1.0], v)], global_step=step)
    return [int(step), float(v.numpy()[0])], [1, 0.5]


def only(method):
    v, w = openrnn.Variable([1.0]), openrnn.Variable([1.0])
    optimizer, loss = train.GradientDescentOptimizer(0.5), lambda: openrnn.reduce_sum(v * w)
    if method == "minimize":
        optimizer.minimize(loss, var_list=[w])
        return [float(v.numpy()[0]), float(w.numpy()[0])], [1.0, 0.5]
    return [one.name for _, one in optimizer.compute_gradients(loss, var_list=[w])], [w.name]


def clipped():
    v = openrnn.Variable([3.0, 4.0])
    train.GradientDescentOptimizer(1.0).minimize(
        lambda: openrnn.reduce_sum(v * v), clip_norm=1.0)  # fmt: skip
    return v.numpy(), np.array([3.0 - 0.6, 4.0 - 0.8], "float32")


RUN = {
    "resume": resumed,
    "task": lambda: (configured("task", task="series"), "series"),
    "input": lambda: (configured("input", input="v.txt", valid_fraction=0.4), "v.txt"),
    "valid": lambda: (configured("valid", valid="v.txt"), "v.txt"),
    "valid_fraction": lambda: (configured("valid_fraction", valid_fraction=0.4), 0.4),
    "level": lambda: (configured("level", level="char"), "char"),
    "columns": lambda: (configured("columns", task="series", columns=["c", 1]), ["c", "a"]),
    "horizon": lambda: (configured("horizon", task="series", horizon=2), 2),
    "target": lambda: (configured("to_sequence", task="series", target="one"), False),
    "cell": lambda: (configured("rnn_mode", cell="gru"), "gru"),
    "layers": lambda: (configured("model.num_layers", layers=2), 2),
    "units": lambda: (configured("model.num_units", units=3), 3),
    "embedding": lambda: (configured("model.embedding", embedding=2), 2),
    "dropout": lambda: (configured("model.dropout", dropout=0.25, layers=2), 0.25),
    "dtype": lambda: (configured("model.dtype", dtype="float64"), "float64"),
    "math": lambda: (configured("model.math", math="bf16"), "bf16"),
    "seed": lambda: (configured("model.seed", seed=9), 9),
    "batch": lambda: (configured("batch", batch=3), 3),
    "seq_len": lambda: (configured("seq_len", seq_len=4), 4),
    "epochs": lambda: (configured("epochs", epochs=3), 3),
    "steps": lambda: (configured("fit.steps", steps=7), 7),
    "optimizer": lambda: (configured("optimizer", optimizer="momentum"), "momentum"),
    "lr": lambda: (configured("fit.learning_rate", lr=0.25), 0.25),
    "lr_schedule": lambda: (configured("fit.schedule", lr_schedule="constant"), "constant"),
    "warmup": lambda: (configured("fit.warmup_steps", warmup=2), 2),
    "clip_norm": lambda: (configured("fit.clip_norm", clip_norm=0.5), 0.5),
    "micro_batches": lambda: (configured("fit.micro_batches", batch=4, micro_batches=2), 2),
    "valid_every": lambda: (configured("fit.validate_every", valid_every=4), 4),
    "patience": lambda: (configured("fit.patience", patience=5), 5),
    "save_steps": lambda: (trained(save_steps=2), [0, 2, 4, 6]),
    "save_seconds": lambda: (trained(save_seconds=1e-9), [2, 3, 4, 5, 6]),
    "keep": lambda: (trained(save_steps=1, keep=2), [5, 6]),
    "recompute": recomputed,
    "device": lambda: refused(ELSEWHERE, run_of, device=ELSEWHERE),
    "communicator": lambda: refused("communicator is 'gloo'", run_of, communicator="gloo"),
    "overlap": lambda: refused("overlap is 'str'", run_of, overlap="yes"),
    "reduction": lambda: refused("reduction is 'ring'", run_of, reduction="ring"),
}



class Alone(train.Communicator):
    """One process."""

    rank, size = 0, 1

    def all_gather(self, send, receive):
        receive[:] = send


OTHERS = {
    "openrnn.load": {
        "rnn_mode": lambda: (
            [hinted(layers.RNN(U), "pt", rnn_mode=mode)["rnn_mode"]
             for mode in ("rnn_tanh", "rnn_relu")], ["rnn_tanh", "rnn_relu"]),
        "reset_after": lambda: ([reset_after(value) for value in (True, False)], [True, False]),
        "recurrent_activation": lambda: (
            [gates(), gates(recurrent_activation="hard_sigmoid(0.2, 0.5)")],
            [None, "hard_sigmoid(0.2, 0.5)"]),
        "forget_bias": lambda: (
            [basic_lstm_cell(), basic_lstm_cell(forget_bias=0.25)], [1.0, 0.25]),
        "network": lambda: (
            [opaque_alone()[0], *opaque_alone(network={"rnn_mode": "lstm", "num_units": U, "input_size": I})[0]],
            [[], opaque_alone()[1].tolist()]),
    },
    "openrnn.save": {
        "format": lambda: (saved(format="torch").kind, "a PyTorch file"),
        "values": lambda: (
            saved(format="openrnn", values={"author": "me"}).metadata, {"author": "me"}),
    },
    "openrnn.LoadedModel.packed": {
        "max_threads": lambda: refused("max_threads is -1", loaded().packed, max_threads=-1),
    },
    "openrnn.LoadedNetwork.packed": {
        "max_threads": lambda: refused("max_threads is -1", loaded().network.packed, max_threads=-1),
    },
    "openrnn.PackedModel": {
        "input_mode": lambda: packed("input_mode", "skip_input"),
        "direction": lambda: packed("direction", "bidirectional"),
        "dtype": lambda: packed("dtype", "float64", dtype="float64"),
        "num_proj": lambda: packed("num_proj", 3),
        "math": lambda: packed("math", "bf16x3"),
        "weights_dtype": lambda: packed("weights_dtype", "int8"),
        "max_threads": lambda: refused("max_threads is -1", threads_of, -1),
    },
    **{f"openrnn.cudnn_rnn.{kind}Saveable": saveable_rows(kind)
       for kind in ("CudnnLSTM", "CudnnGRU", "CudnnRNNTanh", "CudnnRNNRelu")},
    **{f"openrnn.cudnn_rnn.ops.{kind}": op_rows(kind)
       for kind in ("CudnnLSTM", "CudnnGRU", "CudnnRNNTanh", "CudnnRNNRelu")},
    **{f"openrnn.cudnn_rnn.{kind.__name__}": {"reuse": lambda kind=kind: reused(
        lambda **kw: kind(3, **kw))}
       for kind in (cudnn_rnn.CudnnCompatibleLSTMCell, cudnn_rnn.CudnnCompatibleGRUCell)},
    **{f"openrnn.nn.rnn_cell.{kind.__name__}": {"reuse": lambda kind=kind: reused(
        lambda **kw: kind(3, **kw))}
       for kind in (rnn_cell.BasicLSTMCell, rnn_cell.BasicRNNCell, rnn_cell.GRUCell)},
    "openrnn.nn.rnn_cell.LSTMCell": {
        "reuse": lambda: reused(lambda **kw: rnn_cell.LSTMCell(3, **kw)),
        "num_unit_shards": lambda: refused("num_unit_shards is 2", rnn_cell.LSTMCell, 3, num_unit_shards=2),
        "num_proj_shards": lambda: refused("num_proj_shards is 2", rnn_cell.LSTMCell, 3, num_proj_shards=2),
    },
    "openrnn.nn.rnn_cell.LayerNormBasicLSTMCell": {
        "reuse": lambda: reused(lambda **kw: rnn_cell.LayerNormBasicLSTMCell(3, **kw)),
        "input_size": lambda: refused("input_size is 2", rnn_cell.LayerNormBasicLSTMCell, 3, input_size=2),
    },
    "openrnn.nn.rnn_cell.MultiRNNCell": {
        "state_is_tuple": lambda: refused("state_is_tuple is False", rnn_cell.MultiRNNCell,
                                          [rnn_cell.GRUCell(2)], state_is_tuple=False),
    },
    "openrnn.nn.rnn_cell.RNNCell": {
        "trainable": lambda: (own(trainable=False).kernel.trainable, False),
        "name": lambda: (own(name="given").name, "given"),
        "dtype": lambda: (own(dtype="float64").kernel.dtype, "float64"),
        "device": lambda: of_device(Own),
        "_reuse": own_reused,
    },
    **{f"openrnn.cudnn_rnn.{kind.__name__}": {
        "activity_regularizer": lambda kind=kind: regularized(kind)}
       for kind in (cudnn_rnn.CudnnLSTM, cudnn_rnn.CudnnGRU, cudnn_rnn.CudnnRNNTanh,
                    cudnn_rnn.CudnnRNNRelu)},
    **{f"openrnn.layers.{kind.__name__}": {
        "activity_regularizer": lambda kind=kind: regularized(kind)}
       for kind in (layers.LSTM, layers.GRU, layers.RNN)},
    "openrnn.layers.Dense": {"bias_initializer": biased},
    "openrnn.layers.LayerGraph": {"name": lambda: (graph(name="given").name, "given")},
    **{f"openrnn.layers.LayerGraph.{call}": {"training": lambda call=call: dropped(call)}
       for call in ("call", "__call__")},
    "openrnn.train.nccl_communicator": {
        "bootstrap": lambda: refused("bootstrap is 'nccl'", train.nccl_communicator, "nccl"),
        "device": lambda: refused(
            "device is 'cpu'", train.nccl_communicator, Alone(), device="cpu"),
        "timeout": lambda: refused("timeout of -1 s", train.nccl_communicator, Alone(), timeout=-1),
    },
    "openrnn.train.Saver": {
        "var_list": one_saved, "max_to_keep": lambda: (kept(by_saver, max_to_keep=2), 2),
    },
    "openrnn.train.Saver.save": {"global_step": lambda: (saved_step(global_step=7), "m-7")},
    "openrnn.train.CheckpointManager": {
        "max_to_keep": lambda: (kept(by_manager, max_to_keep=2), 2),
        "checkpoint_name": lambda: (
            by_manager(openrnn.Variable([1.0]), checkpoint_name="other")(3), "other-3"
        ),
    },
    "openrnn.train.Optimizer.compute_gradients": {"var_list": lambda: only("compute")},
    "openrnn.train.Optimizer.apply_gradients": {"global_step": lambda: stepping("apply")},
    "openrnn.train.Optimizer.minimize": {
        "global_step": lambda: stepping("minimize"), "var_list": lambda: only("minimize"),
        "clip_norm": clipped,
    },
    "openrnn.train.Run": RUN,
    "openrnn.train.Run.train": {"callback": called_back},
    "openrnn.initializers.ones.__call__": {
        "dtype": lambda: (initializers.ones()((2,), dtype="float64").dtype, "float64"),
    },
}  # fmt: skip
