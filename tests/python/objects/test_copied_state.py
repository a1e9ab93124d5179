"""What a copy goes on with besides its weights: masks, names, flags, constraints, what a Saver saves of it."""

import copy
import gc
import pickle

import numpy as np
import openrnn
import pytest
from openrnn import layers, train

cells = openrnn.nn.rnn_cell
WAYS = {"deepcopy": copy.deepcopy, "pickle": lambda one: pickle.loads(pickle.dumps(one))}
X = np.random.default_rng(3).normal(size=(6, 8)).astype("float32")


@pytest.fixture(params=WAYS)
def way(request):
    return WAYS[request.param]


@pytest.fixture(autouse=True)
def own_graph():
    with openrnn.Graph().as_default():
        yield


def step(cell):
    return cell(X, cell.zero_state(6, "float32"))[0]


DRAWS = {
    "Dropout": lambda: (layers.Dropout(0.5), lambda one: one(X, training=True)),
    "Dropout of a seed": lambda: (layers.Dropout(0.5, seed=7), lambda one: one(X, training=True)),
    "DropoutWrapper": lambda: (cells.DropoutWrapper(cells.BasicRNNCell(5), 0.5), step),
    "LayerNormBasicLSTMCell": lambda: (cells.LayerNormBasicLSTMCell(5, dropout_keep_prob=0.5), step),
    "CudnnGRU": lambda: (openrnn.cudnn_rnn.CudnnGRU(2, 5, dropout=0.5), lambda one: one(X[:, None], training=True)[0]),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWS)
def test_masks_go_on(name, way):
    """After two calls of three, a copy draws the masks of the third one."""
    layer, run = DRAWS[name]()
    seen = [run(layer).numpy() for _ in range(2)]
    copied = way(layer)
    third = run(layer).numpy()
    assert all((third != one).any() for one in seen)
    np.testing.assert_array_equal(run(copied), third)
    np.testing.assert_array_equal(run(copied), run(layer))


class Both(layers.Layer):
    def build(self, input_shape):
        self.first = self.add_weight("first", [2], initializer="zeros")
        self.second = self.add_weight("second", [3], initializer="ones", trainable=False)

    def call(self, inputs):
        return inputs


def halved(value):
    return value * 0.5


def test_names_and_flags(way):
    layer = Both(name="mine", trainable=True)
    layer.stateful = True
    layer(X)
    again = way(layer)
    assert again.stateful and again.built and not way(Both(name="new")).built
    assert again.name == way(again).name == "mine"
    assert [v.name for v in again.weights] == [f"{again.scope_name}/{n}" for n in ("first", "second")]
    assert again.scope_name != layer.scope_name
    assert [v.shape for v in again.trainable_weights] == [(2,)]
    assert again.first is again.weights[0] and again.second is again.weights[1]
    frozen = Both(trainable=False)
    frozen(X)
    other = way(frozen)
    assert not other.trainable and other.trainable_weights == [] and not other.stateful
    other.trainable = True
    assert [v.shape for v in other.trainable_weights] == [(2,)]
    rnn = openrnn.cudnn_rnn.CudnnGRU(1, 3)
    with openrnn.variable_scope("outer"):
        rnn(X[None])
    twin = way(rnn)
    ours, theirs = ([spec.name for spec in one.saveable.specs] for one in (rnn, twin))
    assert len(ours) == len(theirs) == len({*ours, *theirs}) / 2
    with pytest.raises(ValueError, match=r"\b9\b.*expected|expected.*\b8\b"):
        twin(np.zeros((1, 6, 9), "float32"))


def test_in_a_graph_of_its_own_a_layer_keeps_the_names_of_its_saveable():
    rnn = openrnn.cudnn_rnn.CudnnGRU(1, 3)
    with openrnn.variable_scope("outer"):
        rnn(X[None])
    content = pickle.dumps(rnn)
    with openrnn.Graph().as_default():
        again = pickle.loads(content)
        names = [spec.name for spec in again.saveable.specs]
    assert names == [spec.name for spec in rnn.saveable.specs] and names[0].startswith("outer/")
    assert again.scope_name == rnn.scope_name and again.kernel.name == rnn.kernel.name


def test_variables_keep_what_they_are(way):
    v = openrnn.get_variable("v", (2,), initializer=openrnn.initializers.ones(), constraint=halved)
    with openrnn.variable_scope("inner"):
        again = way(v)
    assert again.name == "v_1" and again.trainable and again.device == v.device
    train.GradientDescentOptimizer(0.0).apply_gradients([([1.0, 1.0], again)])
    assert again.numpy().tolist() == [0.5, 0.5] and v.numpy().tolist() == [1.0, 1.0]
    assert way(openrnn.Variable(1.0, trainable=False)).trainable is False


OPTIMIZERS = {
    "Adam": lambda: train.AdamOptimizer(0.1),
    "AdamW": lambda: train.AdamW(0.1, weight_decay=0.2),
    "Momentum": lambda: train.MomentumOptimizer(0.1, 0.9),
    "RMSProp": lambda: train.RMSPropOptimizer(0.1, 0.8, momentum=0.7, centered=True),
    "Adagrad": lambda: train.AdagradOptimizer(0.1),
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_go_on(name, dtype, way):
    """With two variables, and a rate that was changed: the same bits as without the copy."""
    optimizer = OPTIMIZERS[name]()
    a, b = (openrnn.Variable(openrnn.cast(value, dtype), name="w") for value in ([1.0, -2.0], [3.0]))

    def go(optimizer, a, b, by):
        optimizer.apply_gradients([(np.array([by, 2 * by], "float32"), a), (np.array([-by], "float32"), b)])

    for by in (1.0, 0.5):
        go(optimizer, a, b, by)
    optimizer.learning_rate = 0.25
    held = way({"optimizer": optimizer, "a": a, "b": b})
    assert held["optimizer"].learning_rate == 0.25
    for one in ((optimizer, a, b), (held["optimizer"], held["a"], held["b"])):
        go(*one, 0.125)
        go(*one, -1.0)
    for mine, other in ((a, held["a"]), (b, held["b"])):
        assert mine is not other
        np.testing.assert_array_equal(mine, other)
        for slot in optimizer.get_slot_names():
            np.testing.assert_array_equal(optimizer.get_slot(mine, slot), held["optimizer"].get_slot(other, slot))
    ours, theirs = (sorted(one.variables(), key=lambda v: (v.shape, v.numpy().tolist())) for one in (optimizer, held["optimizer"]))
    for mine, other in zip(ours, theirs, strict=True):
        assert mine is not other and mine.dtype == other.dtype
        np.testing.assert_array_equal(mine, other)


def names_of(prefix):
    return {name for name, _ in train.list_variables(prefix)}


def test_a_saver_saves_what_it_is_given(tmp_path):
    gru = openrnn.cudnn_rnn.CudnnGRU(1, 3)
    gru.build((None, None, 2))
    v, w = openrnn.Variable([1.0], name="v"), openrnn.Variable([2.0], name="w")
    parts = {spec.name for spec in gru.saveable.specs}
    for given, wanted in (([v], {"v"}), ((v,), {"v"}), ([gru.saveable], parts), ((gru.saveable, w), {*parts, "w"}),
                          ({"a": v, "b": w}, {"a", "b"})):
        assert names_of(train.Saver(given).save(str(tmp_path / "m"))) == wanted
    assert names_of(train.Saver().save(str(tmp_path / "all"))) == {"v", "w", gru.kernel.name, *parts}


def test_a_checkpoint_of_containers(tmp_path):
    v, w, u = (openrnn.Variable([float(n)]) for n in range(3))
    inner = train.Checkpoint(w=w)
    prefix = train.Checkpoint(pair=(v, u), inner=inner, deep={"list": [w]}).write(str(tmp_path / "m"))
    suffix = "/.ATTRIBUTES/VARIABLE_VALUE"
    found = {name.removesuffix(suffix) for name in names_of(prefix) if name.endswith(suffix)}
    assert {"pair/0", "pair/1"} <= found and found & {"inner/w", "deep/list/0"}
    for one in (v, w, u):
        one.assign([9.0])
    train.Checkpoint(pair=[v, u], inner={"w": w}).restore(prefix)
    assert [float(one.numpy()[0]) for one in (v, w, u)] == [0.0, 1.0, 2.0]


def test_a_saver_keeps_its_graph():
    with openrnn.Graph().as_default():
        saver = train.Saver([openrnn.Variable([1.0])])
    gc.collect()
    assert saver.last_checkpoints == []


def test_a_manager_of_another_name(tmp_path):
    v = openrnn.Variable([1.0], name="v")
    for saver in (train.Saver([v]), train.Checkpoint(v=v)):
        manager = train.CheckpointManager(saver, tmp_path / type(saver).__name__, 1, checkpoint_name="other")
        for number in (3, 4):
            assert manager.save(number) == f"{manager.directory}/other-{number}"
        assert manager.checkpoints == [manager.latest_checkpoint] == [f"{manager.directory}/other-4"]


def test_the_latest_need_not_be_the_last(tmp_path):
    for name in "ab":
        train.Saver([openrnn.Variable([1.0], name=name)]).save(str(tmp_path / name))
    (tmp_path / "checkpoint").write_text(
        'model_checkpoint_path: "a"\nall_model_checkpoint_paths: "a"\nall_model_checkpoint_paths: "b"\n'
    )
    assert train.latest_checkpoint(tmp_path) == str(tmp_path / "a")


def made_in_scopes():
    """One that build() made inside a scope, whose saveable is named by that scope alone."""
    with openrnn.variable_scope("outer"):
        built, called, named = (
            openrnn.cudnn_rnn.CudnnGRU(1, 3),
            openrnn.cudnn_rnn.CudnnGRU(1, 3),
            openrnn.cudnn_rnn.CudnnLSTM(1, 3, name="mine"),
        )
        built.build((None, None, 8))
        called(X[None])
        named.build((None, None, 8))
    frozen = layers.Dense(2, trainable=False)
    frozen.activity_regularizer = halved
    frozen(X)
    frozen.stateful = True
    return {"built": built, "called": called, "named": named, "frozen": frozen,
            "new": layers.Dense(3, name="new"), "both": Both()}  # fmt: skip


def whole_state(layer):
    """What the extension tells of a layer, values in place of variables."""
    state = {**openrnn._core.layer_state(layer)}
    state["weights"] = [(v.name, v.trainable, v.numpy().tolist()) for v in state["weights"]]
    return state


@pytest.mark.parametrize("name", ["built", "called", "named", "frozen", "new", "both"])
def test_in_a_graph_of_its_own_a_copy_has_the_whole_state(name):
    layer = made_in_scopes()[name]
    wanted, content = whole_state(layer), pickle.dumps(layer)
    assert wanted["saveable_scope"] != wanted["scope"] or name not in ("built", "named")
    with openrnn.Graph().as_default():
        again = pickle.loads(content)
        assert whole_state(again) == wanted
        twice = pickle.loads(pickle.dumps(again))
        for key in ("trainable", "stateful", "built", "input_shape", "weight_names", "named"):
            assert whole_state(twice)[key] == wanted[key]
    if name in ("built", "called", "named"):
        names = [spec.name for spec in again.saveable.specs]
        assert names == [spec.name for spec in layer.saveable.specs]
        assert names[0].startswith("outer/")
