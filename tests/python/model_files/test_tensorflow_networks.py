"""Networks in files that TensorFlow wrote: outputs as TensorFlow's own, from every kind of file."""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from files import tf_rnn_cells as judge
from files.file_tools import call_tool, from_line, to_line
from tool.tool_runs import good

v1 = tf.compat.v1
TIME, BATCH, INPUTS, UNITS = 6, 4, 3, 5
CLOSE = {"rtol": 0, "atol": 2e-6}


def x_of(dtype=np.float32):
    return np.random.default_rng(1).normal(size=(TIME, BATCH, INPUTS)).astype(dtype)


def outputs(path, inputs, *hint):
    lines = "".join(to_line(name, x) + "\n" for name, x in inputs.items())
    return dict(map(from_line, call_tool("model_file", "run_named", path, *hint, stdin=lines).splitlines()))


def described(path, *hint):
    return [line.split("\t") for line in call_tool("model_file", "describe", path, *hint).splitlines()]


def save_frozen(session, path, outputs):
    graph = v1.graph_util.convert_variables_to_constants(
        session, session.graph.as_graph_def(), [outputs.op.name])
    path.write_bytes(graph.SerializeToString())


def save_all(session, folder, x, y):
    """The same variables in every kind of file."""
    v1.train.Saver().save(session, str(folder / "v2"), write_meta_graph=False)
    v1.train.Saver(write_version=v1.train.SaverDef.V1).save(
        session, str(folder / "v1"), write_meta_graph=False)
    save_frozen(session, folder / "frozen.pb", y)
    v1.saved_model.simple_save(session, str(folder / "model"), {"x": x}, {"y": y})
    return ["v2", "v2.index", "v1", "frozen.pb", "model"]


def run_and_save(build, folder, seed=3, dtype=np.float32):
    """(what build(x) gives with random variables, the files of these)."""
    rng = np.random.default_rng(seed)
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(dtype, [TIME, BATCH, INPUTS])
        y = build(x)
        session.run(v1.global_variables_initializer())
        for variable in v1.global_variables():
            value = rng.uniform(-0.7, 0.7, variable.shape.as_list())
            variable.load(value.astype(dtype), session)
        return session.run(y, {x: x_of(dtype)}), save_all(session, folder, x, y)


def one_cell(make):
    return lambda x: v1.nn.dynamic_rnn(make(), x, dtype=x.dtype, time_major=True)[0]


CELLS = {
    "basic_lstm": ("BasicLSTMCell", {}, "lstm"),
    "lstm": ("LSTMCell", {}, "lstm"),
    "peepholes": ("LSTMCell", {"use_peepholes": True}, "lstm"),
    "projection": ("LSTMCell", {"num_proj": 2}, "lstm"),
    "gru": ("GRUCell", {}, "gru"),
    "basic": ("BasicRNNCell", {}, "rnn_tanh"),
    "layer_norm": ("LayerNormBasicLSTMCell", {}, "lstm"),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", CELLS)
def test_a_cell_in_every_kind_of_file(case, dtype, tmp_path):
    name, options, mode = CELLS[case]
    wanted, files = run_and_save(one_cell(lambda: judge.make(name, UNITS, **options)), tmp_path, dtype=dtype)
    hint = ["mode=" + mode] if mode.startswith("rnn") else []
    for file in files:
        found = outputs(tmp_path / file, {"": x_of(dtype)}, *hint)
        np.testing.assert_allclose(found[""], wanted, **CLOSE, err_msg=file)
        others = [line for line in described(tmp_path / file, *hint) if line[0] == "other"]
        assert file == "frozen.pb" or not others


def stacked(x):
    cells = [judge.make(n, UNITS) for n in ["LSTMCell"] * 3]
    return v1.nn.dynamic_rnn(judge.make("MultiRNNCell", cells), x, dtype=x.dtype, time_major=True)[0]


def both_ways(x):
    found = v1.nn.bidirectional_dynamic_rnn(
        judge.make("GRUCell", UNITS), judge.make("GRUCell", UNITS), x, dtype=x.dtype, time_major=True)[0]
    return tf.concat(found, 2)


def scoped(x):
    with v1.variable_scope("encoder"):
        return stacked(x)


@pytest.mark.parametrize("build,name", [(stacked, ""), (both_ways, ""), (scoped, "encoder")])
def test_stacks_and_directions(build, name, tmp_path):
    wanted, files = run_and_save(build, tmp_path)
    for file in files:
        np.testing.assert_allclose(outputs(tmp_path / file, {name: x_of()})[name], wanted, **CLOSE, err_msg=file)


def test_slots_and_partitions(tmp_path):
    with v1.Graph().as_default(), v1.Session() as session:
        with v1.variable_scope("", partitioner=v1.fixed_size_partitioner(2)):
            y = one_cell(lambda: judge.make("LSTMCell", UNITS))(tf.constant(x_of()))
        train = v1.train.AdamOptimizer(0.01).minimize(tf.reduce_sum(y * y), v1.train.get_or_create_global_step())
        session.run(v1.global_variables_initializer())
        session.run(train)
        wanted = session.run(y)
        for version in (v1.train.SaverDef.V1, v1.train.SaverDef.V2):
            v1.train.Saver(write_version=version).save(session, str(tmp_path / f"v{version}"), write_meta_graph=False)
    for version in (v1.train.SaverDef.V1, v1.train.SaverDef.V2):
        path = tmp_path / f"v{version}"
        np.testing.assert_allclose(outputs(path, {"": x_of()})[""], wanted, **CLOSE)
        lines = described(path)
        assert lines[0][2:] == ["Adam", "Adam_1"]
        assert not [line for line in lines if line[0] == "other"]


def keras_model(seed=5):
    import keras

    keras.utils.set_random_seed(seed)
    layers = keras.layers
    model = keras.Sequential([
        keras.Input((TIME, INPUTS)),
        layers.Bidirectional(layers.LSTM(UNITS, return_sequences=True), name="both"),
        layers.GRU(4, return_sequences=True, name="gru"),
        layers.GRU(3, reset_after=False, return_sequences=True, name="before"),
        layers.Dense(2),
    ])  # fmt: skip
    model.compile(optimizer="adam", loss="mse")
    for variable in model.trainable_variables:
        variable.assign(np.random.default_rng(len(variable.path)).uniform(-0.6, 0.6, variable.shape))
    model.fit(np.ones((2, TIME, INPUTS), "f"), np.ones((2, TIME, 2), "f"), verbose=0)
    return model, keras


def test_keras_models(tmp_path):
    model, keras = keras_model()
    model.export(str(tmp_path / "exported"), verbose=False)
    tf.saved_model.save(model, str(tmp_path / "saved"))
    tf.train.Checkpoint(model=model).write(str(tmp_path / "objects"))
    x = np.swapaxes(x_of(), 0, 1)
    parts = [keras.Model(model.inputs, layer.output)(x).numpy() for layer in model.layers]
    steps = [np.swapaxes(part, 0, 1) for part in [x, *parts]]
    for file in ("exported", "saved", "objects"):
        lines = {line[0]: line for line in described(tmp_path / file)}
        names = [name for name in lines if name not in ("note", "other")]
        assert sorted(name.split("/")[-1] for name in names) == ["before", "both", "gru"]
        for name in names:
            layer = ["both", "gru", "before"].index(name.split("/")[-1])
            found = outputs(tmp_path / file, {name: np.ascontiguousarray(steps[layer])})[name]
            np.testing.assert_allclose(found, steps[layer + 1], **CLOSE, err_msg=f"{file} {name}")
            assert lines[name][2:] == ([] if file == "exported" else ["momentum", "velocity"])


def test_the_tool_inspects_converts_and_runs_every_kind_of_file(tmp_path):
    wanted, files = run_and_save(one_cell(lambda: judge.make("LSTMCell", UNITS)), tmp_path)
    np.save(tmp_path / "x.npy", x_of())
    for file in files:
        text = good("inspect", tmp_path / file.removesuffix(".index")).stdout
        assert "lstm" in text and "5 units" in text, (file, text)
        assert "largest difference 0 of" in good("convert", tmp_path / file, tmp_path / "a.openrnn").stdout
        for model in (file, "a.openrnn"):
            good("run", tmp_path / model, "--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy")
            np.testing.assert_allclose(np.load(tmp_path / "y.npy"), wanted, **CLOSE, err_msg=file)
