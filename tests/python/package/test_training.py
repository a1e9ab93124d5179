"""Tapes, variables, scopes, optimizers and savers."""

import gc

import numpy as np
import openrnn
import pytest

I, U = 3, 2  # noqa: E741


def draw(*shape, seed=3):
    return np.random.default_rng([seed, *shape]).uniform(-1, 1, shape).astype(np.float32)


def test_the_op_level_workflow(tmp_path):
    ops = openrnn.cudnn_rnn.ops
    model = ops.CudnnLSTM(num_layers=1, num_units=4, input_size=I)
    params = openrnn.Variable(draw(model.params_size()), name="params")
    x, zeros = draw(5, 2, I), np.zeros((1, 2, 4), np.float32)
    with openrnn.GradientTape() as tape:
        output, _, _ = model(x, zeros, zeros, params)
        loss = openrnn.reduce_sum(output)
    gradient = tape.gradient(loss, params)
    saveable = openrnn.cudnn_rnn.CudnnLSTMSaveable(params, 1, 4, I)
    saver = openrnn.train.Saver([saveable])
    prefix = saver.save(tmp_path / "model")
    assert gradient.shape == params.shape and np.abs(gradient.numpy()).max() > 0.0
    wanted = saveable.specs[0].tensor.numpy()
    params.assign(np.zeros(model.params_size()))
    saver.restore(prefix)
    np.testing.assert_array_equal(saveable.specs[0].tensor.numpy(), wanted)
    weights, biases = model.params_to_canonical(params)
    np.testing.assert_array_equal(model.canonical_to_params(weights, biases).numpy(), params)
    names = [name for name, _ in openrnn.train.list_variables(prefix)]
    cell = "rnn/multi_rnn_cell/cell_0/cudnn_compatible_lstm_cell"
    assert names == [f"{cell}/bias", f"{cell}/kernel"]


def test_structures_of_gradients():
    a, b = openrnn.Variable(2.0), openrnn.Variable(3.0)
    unused = openrnn.Variable(1.0)
    with openrnn.GradientTape() as tape:
        x = openrnn.constant(5.0)
        tape.watch(x)
        product = a * b * x
        total = a + x
    assert float(tape.gradient(product, a)) == 15.0
    nested = tape.gradient([product, total], [a, (b, [x, unused])])
    assert isinstance(nested[1], tuple) and nested[1][1][1] is None
    assert [float(nested[0]), float(nested[1][0]), float(nested[1][1][0])] == [16.0, 10.0, 7.0]
    weighted = tape.gradient([product, total], [a], output_gradients=[2.0, None])
    assert float(weighted[0]) == 31.0
    assert tape.gradient(openrnn.constant(1.0), [a, b]) == [None, None]
    with pytest.raises(ValueError, match="output_gradients"):
        tape.gradient([product, total], a, output_gradients=[1.0])
    with pytest.raises(TypeError, match="expected a Variable or a Tensor"):
        tape.gradient(product, np.ones(1))


def test_nothing_is_recorded_outside_a_tape():
    a = openrnn.Variable(2.0)
    before = a * 3.0
    with openrnn.GradientTape() as tape:
        inside = a * 3.0
    after = a * 3.0
    found = [tape.gradient(one, a) for one in (before, inside, after)]
    assert found[0] is None and float(found[1]) == 3.0 and found[2] is None
    frozen = openrnn.Variable(2.0, trainable=False)
    with openrnn.GradientTape() as tape:
        product = frozen * a
    assert tape.gradient(product, [frozen, a])[0] is None


def test_a_tape_knows_what_it_recorded_itself():
    a = openrnn.Variable(2.0)
    with openrnn.GradientTape() as outer:
        squared = openrnn.square(a)
        with openrnn.GradientTape() as inner:
            cubed = squared * a
    assert float(inner.gradient(cubed, a)) == 4.0 and float(outer.gradient(cubed, a)) == 12.0
    assert inner.gradient(squared, a) is None


def test_a_carried_state_begins_anew():
    """Gradients of a window stop at its first step, and nothing of earlier windows is kept."""
    layer = openrnn.cudnn_rnn.CudnnLSTM(1, U, seed=5)
    windows = [draw(4, 2, I, seed=k) for k in range(3)]

    def gradients(carry):
        found, state = [], None
        for x in windows:
            with openrnn.GradientTape() as tape:
                output, state = layer(x, initial_state=state)
                loss = openrnn.reduce_sum(openrnn.square(output))
            found.append(tape.gradient(loss, layer.kernel).numpy())
            state = carry(state)
        return found

    carried = gradients(lambda state: state)
    for one, other in zip(
        carried, gradients(lambda s: tuple(openrnn.stop_gradient(part) for part in s)), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_names_and_identity_of_variables():
    assert [openrnn.Variable(0.0).name for _ in range(3)] == ["Variable", "Variable_1", "Variable_2"]
    with openrnn.variable_scope("outer") as scope:
        inner = openrnn.Variable([1, 2], name="v")
        assert scope.name == "outer" and inner.name == "outer/v" and inner.dtype == "int32"
        made = openrnn.get_variable("w", (2, 2), initializer=openrnn.initializers.ones())
    with openrnn.variable_scope(scope, reuse=True):
        assert openrnn.get_variable("w", (2, 2)) is made
    with pytest.raises(ValueError, match="exists already"), openrnn.variable_scope("outer"):
        openrnn.get_variable("w", (2, 2))
    assert openrnn.global_variables()[-1] is made and inner in openrnn.trainable_variables()
    assert openrnn.get_variable_scope().name == ""


def test_graphs_are_apart():
    first = openrnn.Graph()
    with first.as_default() as graph:
        kept = openrnn.Variable(1.0, name="v")
        assert openrnn.get_default_graph() is graph is first
    openrnn.Variable(2.0, name="v")
    assert [float(v) for v in first.variables()] == [1.0] and kept.name == "v"
    openrnn.add_to_collection("mine", 3)
    assert openrnn.get_collection("mine") == [3] and first.get_collection("mine") == []
    openrnn.reset_default_graph()
    assert openrnn.global_variables() == [] and openrnn.get_collection("mine") == []


def test_a_layer_outlives_its_graph_object():
    graph = openrnn.Graph()
    with graph.as_default():
        layer = openrnn.cudnn_rnn.CudnnGRU(1, U)
        layer(draw(2, 1, I))
    del graph
    gc.collect()
    assert layer.graph.variables() == [layer.kernel]


@pytest.mark.parametrize(
    "name, arguments, slots",
    [("GradientDescentOptimizer", (0.1,), []), ("MomentumOptimizer", (0.1, 0.9), ["momentum"]),
     ("AdagradOptimizer", (0.1,), ["accumulator"]), ("AdamOptimizer", (0.1,), ["m", "v"]),
     ("RMSPropOptimizer", (0.01,), ["momentum", "rms"])],
)  # fmt: skip
def test_optimizers(name, arguments, slots):
    layer = openrnn.cudnn_rnn.CudnnLSTM(1, 4, seed=1)
    x = draw(4, 2, I)
    optimizer = getattr(openrnn.train, name)(*arguments)
    step = openrnn.train.get_or_create_global_step()

    def loss():
        return openrnn.reduce_mean(openrnn.square(layer(x)[0] - 0.5))

    losses = [float(optimizer.minimize(loss, global_step=step)) for _ in range(5)]
    assert losses[-1] < losses[0] and int(step) == 5 and step.dtype == "int64"
    assert sorted(optimizer.get_slot_names()) == slots
    for slot in slots:
        assert optimizer.get_slot(layer.kernel, slot).shape == layer.kernel.shape
    assert optimizer.get_slot(layer.kernel, "none such") is None
    scalars = 2 if name == "AdamOptimizer" else 0
    assert len(optimizer.variables()) == len(slots) + scalars
    (gradient, variable), = optimizer.compute_gradients(loss)
    assert variable is layer.kernel and gradient.shape == variable.shape
    optimizer.apply_gradients([(gradient.numpy(), variable)], global_step=step)
    assert int(step) == 6
    with pytest.raises(ValueError, match="no gradients"):
        optimizer.apply_gradients([(None, variable)])
    with pytest.raises(TypeError, match="expected a function"):
        optimizer.minimize(loss())


def test_minimize_writes_variables_where_they_lie():
    weights = openrnn.Variable(draw(5, 5), name="weights")
    optimizer = openrnn.train.GradientDescentOptimizer(0.1)

    def loss():
        # The second product keeps the weights for the gradient of the first one's output: an update
        # copies them while a tape lives.
        return openrnn.reduce_sum(openrnn.matmul(openrnn.matmul(draw(3, 5), weights), weights))

    def place():
        return weights.read_value().numpy().__array_interface__["data"][0]

    optimizer.minimize(loss)
    before = place()
    optimizer.minimize(loss)
    assert place() == before
    with openrnn.GradientTape() as tape:
        value = loss()
    wanted = tape.gradient(value, weights).numpy()
    optimizer.minimize(loss)
    assert place() != before
    np.testing.assert_array_equal(tape.gradient(value, weights).numpy(), wanted)


def test_saver_of_everything_with_steps(tmp_path):
    layer = openrnn.cudnn_rnn.CudnnGRU(1, U)
    layer.build((None, None, I))
    other = openrnn.Variable([1.0, 2.0], name="other")
    saver = openrnn.train.Saver(max_to_keep=2)
    prefixes = [saver.save(tmp_path / "model", global_step=step) for step in (1, 2, 3)]
    assert prefixes[-1] == f"{tmp_path}/model-3" and saver.last_checkpoints == prefixes[1:]
    assert sorted(p.name for p in tmp_path.glob("model-1.*")) == []
    assert openrnn.train.latest_checkpoint(tmp_path) == prefixes[-1]
    state = openrnn.train.get_checkpoint_state(tmp_path)
    assert state.model_checkpoint_path == prefixes[-1]
    assert state.all_model_checkpoint_paths == prefixes[1:]
    kernel = layer.kernel.numpy()
    layer.kernel.assign(np.zeros(kernel.shape))
    other.assign([0.0, 0.0])
    saver.restore(openrnn.train.latest_checkpoint(tmp_path))
    np.testing.assert_array_equal(layer.kernel, kernel)
    np.testing.assert_array_equal(openrnn.train.load_variable(tmp_path, "other"), other)


def test_the_latest_checkpoint_need_not_be_the_last_of_all(tmp_path):
    (tmp_path / "checkpoint").write_text(
        'model_checkpoint_path: "a"\n'
        'all_model_checkpoint_paths: "a"\n'
        'all_model_checkpoint_paths: "b"\n'
    )
    state = openrnn.train.get_checkpoint_state(tmp_path)
    assert state.model_checkpoint_path == f"{tmp_path}/a"
    assert state.all_model_checkpoint_paths == [f"{tmp_path}/a", f"{tmp_path}/b"]


def test_saver_with_other_names(tmp_path):
    a, b = openrnn.Variable([1.0], name="a"), openrnn.Variable([2.0], name="b")
    prefix = openrnn.train.Saver({"x/y": a, "b": b}).save(tmp_path / "renamed")
    assert openrnn.train.list_variables(prefix) == [("b", [1]), ("x/y", [1])]
    openrnn.train.Saver({"b": a}).restore(prefix)
    assert a.numpy().tolist() == [2.0]
    with pytest.raises(ValueError, match="a"):
        openrnn.train.Saver([a]).restore(prefix)
    with pytest.raises(OSError, match="expected|no such|cannot"):
        openrnn.train.Saver([b]).restore(tmp_path / "absent")
    (tmp_path / "broken.index").write_bytes(b"nothing of the kind")
    (tmp_path / "broken.data-00000-of-00001").write_bytes(b"")
    with pytest.raises(openrnn.FormatError):
        openrnn.train.Saver([b]).restore(tmp_path / "broken")
    with pytest.raises(TypeError, match="expected a Variable or a saveable"):
        openrnn.train.Saver([1.0])


def test_object_based_checkpoint(tmp_path):
    layer = openrnn.cudnn_rnn.CudnnLSTM(1, U)
    optimizer = openrnn.train.AdamOptimizer()
    optimizer.minimize(lambda: openrnn.reduce_sum(layer(draw(3, 2, I))[0]))
    checkpoint = openrnn.train.Checkpoint(layer=layer, optimizer=optimizer)
    prefix = checkpoint.save(tmp_path / "objects")
    kernel, moment = layer.kernel.numpy(), optimizer.get_slot(layer.kernel, "m").numpy()
    layer.kernel.assign(np.ones(kernel.shape))
    optimizer.get_slot(layer.kernel, "m").assign(np.ones(kernel.shape))
    checkpoint.restore(prefix).assert_consumed()
    # The file holds sums of the two biases, of which each gets a half.
    weights = kernel.size - 8 * U
    np.testing.assert_array_equal(layer.kernel.numpy()[:weights], kernel[:weights])
    np.testing.assert_array_equal(optimizer.get_slot(layer.kernel, "m").numpy(), moment)
    assert checkpoint.layer is layer


def test_models_save_and_load_their_weights(tmp_path):
    x = openrnn.Input(batch_shape=(None, None, I))
    model = openrnn.Model(x, openrnn.layers.Dense(1)(openrnn.cudnn_rnn.CudnnGRU(1, U)(x)[0]))
    data = draw(4, 2, I)
    wanted = model.predict(data)
    prefix = model.save_weights(str(tmp_path / "weights"))
    model.set_weights([np.zeros(v.shape) for v in model.weights])
    np.testing.assert_array_equal(model.predict(data), 0.0)
    model.load_weights(prefix)
    np.testing.assert_array_equal(model.predict(data), wanted)
    assert [type(layer).__name__ for layer in model.layers] == ["CudnnGRU", "Dense"]
    assert model.get_layer("dense") is model.layers[1]


def test_no_checkpoint_restores_nothing(tmp_path):
    """latest_checkpoint() of an empty folder is None."""
    variable = openrnn.Variable([1.0, 3.0])
    checkpoint = openrnn.train.Checkpoint(v=variable)
    assert openrnn.train.latest_checkpoint(tmp_path) is None
    checkpoint.restore(openrnn.train.latest_checkpoint(tmp_path))
    assert variable.numpy().tolist() == [1.0, 3.0]
    assert checkpoint.save(tmp_path / "model") == f"{tmp_path}/model-1"


@pytest.mark.parametrize("most", [None, 0])
def test_saver_that_keeps_all(tmp_path, most):
    variable = openrnn.Variable([1.0], name="kept")
    saver = openrnn.train.Saver(max_to_keep=most)
    prefixes = [saver.save(tmp_path / "model", global_step=step) for step in range(8)]
    assert saver.last_checkpoints == prefixes
    assert all(openrnn.train.load_variable(prefix, variable.name) == 1.0 for prefix in prefixes)


def test_get_layer_by_index():
    x = openrnn.Input((3,))
    model = openrnn.Model(x, openrnn.layers.Dense(2)(openrnn.layers.Dense(4)(x)))
    assert model.get_layer(index=1) is model.layers[1]
    assert model.get_layer(index=-2) is model.layers[0]
    for index in (2, -3):
        with pytest.raises(ValueError, match=f"index is {index}"):
            model.get_layer(index=index)
