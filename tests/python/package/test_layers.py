"""Layers written in Python, copies and configurations, signatures."""

import copy
import inspect

import numpy as np
import openrnn
import pytest

I, U = 4, 3  # noqa: E741


class Scaled(openrnn.layers.Layer):
    """x w, times a factor."""

    def build(self, input_shape):
        self.w = self.add_weight("w", (input_shape[-1], 2))
        super().build(input_shape)

    def call(self, x, factor=2.0):
        return openrnn.matmul(x, self.w) * factor


def draw(*shape):
    return np.random.default_rng(shape).uniform(-1, 1, shape).astype(np.float32)


def test_a_layer_written_in_python():
    layer = Scaled()
    x = draw(3, I)
    with openrnn.variable_scope("outer"), openrnn.GradientTape() as tape:
        loss = openrnn.reduce_sum(layer(x, factor=3.0))
    assert layer.name == "scaled" and layer.w.name == "outer/scaled/w" and layer.built
    wanted = np.repeat(3.0 * x.sum(0)[:, None], 2, axis=1)
    np.testing.assert_allclose(tape.gradient(loss, layer.w).numpy(), wanted, rtol=1e-5)
    layer(x)
    assert openrnn.global_variables() == [layer.w] == layer.weights


def test_it_is_recorded_as_one_node():
    layer, x = Scaled(name="mine"), openrnn.Input(batch_shape=(None, I))
    y = layer(x)
    model = openrnn.Model(x, y)
    assert layer.input is x and layer.output is y and model.layers[0] is layer
    data = draw(5, I)
    np.testing.assert_allclose(model.predict(data), 2 * data @ layer.w.numpy(), rtol=1e-5)
    assert len(layer.inbound_nodes) == 1


def test_a_failed_build_leaves_nothing():
    class Broken(openrnn.layers.Layer):
        def build(self, input_shape):
            raise KeyError("mine")

        def call(self, x):
            return x

    layer = Broken()
    with pytest.raises(KeyError, match="mine"):
        layer(draw(2, I))
    assert not layer.built and layer.weights == []


def test_configuration_round_trip():
    def own(shape, dtype=None):
        return np.full(shape, 0.5, dtype)

    layer = openrnn.cudnn_rnn.CudnnLSTM(
        2, U, "linear_input", "bidirectional", 0.25, 7, "float64", own,
        openrnn.initializers.constant(0.5), "given", num_proj=2, trainable=False,
        activity_regularizer=openrnn.regularizers.l2(0.5),
    )  # fmt: skip
    config = layer.get_config()
    assert config["kernel_initializer"] is own
    assert config["bias_initializer"] == {"class_name": "constant", "config": {"value": 0.5}}
    made = openrnn.cudnn_rnn.CudnnLSTM.from_config(config)
    assert {**made.get_config(), "name": "given"} == config
    for one in (layer, made):
        one.build((None, None, I))
        assert set(one.kernel.numpy()) == {0.5} and one.trainable_weights == []


def test_an_initializer_may_be_a_class():
    class Halves:
        def __call__(self, shape, dtype=None):
            return np.full(shape, 0.5, dtype)

    layer = openrnn.layers.Dense(2, kernel_initializer=Halves)
    layer.build((None, I))
    assert set(layer.kernel.numpy().ravel()) == {0.5}


@pytest.mark.parametrize("name", ["glorot_uniform", "random_uniform", "random_normal"])
def test_an_initializer_with_a_seed_fills_each_tensor_with_other_values(name):
    def filled():
        initializer, layer = getattr(openrnn.initializers, name)(seed=3), openrnn.layers.Layer()
        return [layer.add_weight(one, (4,), initializer=initializer).numpy() for one in "ab"]

    first, second = filled()
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(filled(), [first, second])


# No two sizes are equal, so that none can stand for another.
def test_properties_say_what_was_given():
    layer = openrnn.cudnn_rnn.CudnnLSTM(
        3, 7, "linear_input", "bidirectional", 0.25, num_proj=5, math="bf16"
    )
    layer.build((None, None, 11))
    found = [layer.num_layers, layer.num_dirs, layer.num_units, layer.num_proj, layer.input_size]
    assert found == [3, 2, 7, 5, 11]
    assert (layer.direction, layer.input_mode, layer.rnn_mode, layer.dropout, layer.math) == (
        "bidirectional", "linear_input", "lstm", 0.25, "bf16"
    )  # fmt: skip


@pytest.mark.parametrize("name", ["CudnnLSTM", "CudnnGRU", "CudnnRNNTanh", "CudnnRNNRelu"])
def test_a_deep_copy_has_variables_of_its_own(name):
    layer = getattr(openrnn.cudnn_rnn, name)(1, U)
    layer(draw(2, 1, I))
    layer.mine = ["attribute"]
    made = copy.deepcopy(layer)
    assert type(made) is type(layer) and made.kernel is not layer.kernel and made is not layer
    assert made.mine == ["attribute"] and made.mine is not layer.mine
    made.trainable = False
    assert layer.trainable and layer.trainable_weights == [layer.kernel]
    np.testing.assert_array_equal(made(draw(2, 1, I))[0], layer(draw(2, 1, I))[0])


def test_signatures_can_be_inspected():
    saw = inspect.signature
    wanted = ["num_layers", "num_units", "input_mode", "direction", "dropout", "seed", "dtype",
              "kernel_initializer", "bias_initializer", "name", "num_proj", "trainable",
              "activity_regularizer", "math", "weights_dtype", "device", "network"]  # fmt: skip
    assert list(saw(openrnn.cudnn_rnn.CudnnGRU).parameters) == wanted
    assert list(saw(openrnn.Variable).parameters) == [
        "initial_value", "trainable", "name", "dtype", "device",
    ]  # fmt: skip
    for public in (openrnn.Model, openrnn.Input, openrnn.train.AdamOptimizer, openrnn.Tensor,
                   openrnn.cudnn_rnn.CudnnLSTMSaveable, openrnn.cudnn_rnn.ops.CudnnLSTM.__call__,
                   openrnn.layers.Layer.add_weight, openrnn.nn.dynamic_rnn):  # fmt: skip
        assert saw(public).parameters


def test_layers_and_cells_are_layers():
    cells = openrnn.nn.rnn_cell
    inner = openrnn.cudnn_rnn.CudnnCompatibleGRUCell(U)
    for layer in (openrnn.cudnn_rnn.CudnnGRU(1, U), inner, cells.MultiRNNCell([inner]),
                  cells.DropoutWrapper(inner), openrnn.layers.Dense(1)):  # fmt: skip
        assert isinstance(layer, openrnn.layers.Layer)


@pytest.mark.parametrize(
    "make",
    [
        lambda: openrnn.layers.Dense(3),
        lambda: openrnn.layers.Dropout(0.5),
        lambda: openrnn.cudnn_rnn.CudnnCompatibleGRUCell(3),
        lambda: openrnn.nn.rnn_cell.BasicRNNCell(3),
    ],
    ids=["Dense", "Dropout", "GRUCell", "BasicRNNCell"],
)
def test_a_deep_copy_is_a_layer_of_its_own(make):
    layer = make()
    made = copy.deepcopy(layer)
    made.trainable = False
    assert layer.trainable and type(made) is type(layer)


def test_what_a_call_adds_is_of_that_call():
    class Sums(openrnn.layers.Layer):
        def call(self, inputs):
            self.add_loss(openrnn.reduce_sum(inputs))
            self.add_update(lambda: None)
            return inputs

    layer = Sums()
    for factor in (1.0, 2.0, 3.0):
        layer(np.full((2, 3), factor, "float32"))
        assert [float(loss) for loss in layer.losses] == [6.0 * factor]
        assert len(layer.updates) == 1
    assert len(openrnn.get_collection(openrnn.GraphKeys.REGULARIZATION_LOSSES)) == 1


def test_a_model_replays_a_call_and_adds_nothing():
    class Sums(openrnn.layers.Layer):
        def build(self, input_shape):
            self.w = self.add_weight("w", (3, 3), regularizer=lambda w: openrnn.reduce_sum(w) * 0.0 + 2.5)
            super().build(input_shape)

        def call(self, inputs, given=True):
            self.add_loss(openrnn.reduce_sum(inputs), inputs=inputs if given else None)
            self.add_loss(lambda: openrnn.constant(0.25))
            self.add_update(lambda: None)
            return openrnn.matmul(inputs, self.w)

    for given in (True, False):
        openrnn.reset_default_graph()
        x, layer = openrnn.Input(batch_shape=(None, 3)), Sums()
        model = openrnn.Model(x, layer(x, given=given))
        assert len(model.losses) == 3 == len(layer.losses)
        for factor in (1.0, 2.0, 3.0):
            model(np.full((2, 3), factor, "float32"))
            assert [float(loss) for loss in model.losses] == [2.5, 6.0 * factor, 0.25]
            assert len(layer.losses) == 3 and len(layer.updates) == 1 == len(model.updates)
        assert len(openrnn.get_collection(openrnn.GraphKeys.REGULARIZATION_LOSSES)) == 3
        # A call of the layer itself adds what it always adds, after the replays too.
        layer(np.full((2, 3), 5.0, "float32"), given=given)
        assert 30.0 in [float(loss) for loss in layer.losses if not loss.is_symbolic]


def test_training_a_model_with_losses_of_a_call():
    class Loses(openrnn.layers.Layer):
        def build(self, input_shape):
            self.w = self.add_weight("w", (1, 1), initializer="ones")
            super().build(input_shape)

        def call(self, inputs):
            outputs = openrnn.matmul(inputs, self.w)
            self.add_loss(openrnn.reduce_sum(outputs * 2.0), inputs=inputs)
            return outputs

    x = openrnn.Input(batch_shape=(None, 1))
    layer = Loses()
    model = openrnn.Model(x, layer(x))
    for _ in range(3):
        with openrnn.GradientTape() as tape:
            y = model(np.float32([[0.5], [1.0]]))
            loss = openrnn.reduce_sum(y) + openrnn.add_n(model.losses)
        np.testing.assert_array_equal(tape.gradient(loss, layer.w), [[1.5 + 3.0]])


def test_a_constraint_that_raises_leaves_a_whole_step():
    def refuse(value):
        raise RuntimeError("no such value")

    first = openrnn.get_variable("first", (2,), constraint=refuse)
    second = openrnn.get_variable("second", (2,))
    step = openrnn.train.get_or_create_global_step()
    optimizer = openrnn.train.AdamOptimizer(0.1)
    before = second.numpy().copy()
    with pytest.raises(RuntimeError, match="no such value"):
        optimizer.minimize(
            lambda: openrnn.reduce_sum(first) + openrnn.reduce_sum(second),
            global_step=step,
            var_list=[first, second],
        )
    assert int(step.numpy()) == 1 and np.all(second.numpy() != before)


@pytest.mark.parametrize("name", ["", "/z", "x//y", "x/"])
def test_a_variable_has_a_name_that_files_can_carry(name):
    with pytest.raises(ValueError, match="words that single slashes separate"):
        openrnn.Variable([1.0], name=name)


@pytest.mark.parametrize("activation", [3, 0, 1.5, ["relu"], b"relu"])
def test_an_activation_is_a_name_or_a_function(activation):
    with pytest.raises(TypeError, match=r"\[Dense\] activation is a (int|float|list|bytes)"):
        openrnn.layers.Dense(2, activation)


def test_an_activation_that_no_layer_has():
    with pytest.raises(ValueError, match=r"\[Dense\] activation is 'selu', expected linear, relu"):
        openrnn.layers.Dense(2, "selu")


class Mirror(openrnn.layers.Layer):
    """What it is given."""

    def call(self, inputs):
        return inputs


def test_inputs_of_a_layer_get_its_dtype_and_tensors_keep_theirs():
    for dtype in ("float64", "float16", np.float64):
        layer = Mirror(dtype=dtype)
        for given in (1.0, np.ones(2, "float32"), np.ones(2, "int32")):
            assert layer(given).dtype == np.dtype(dtype).name
    assert Mirror(dtype="float64")(openrnn.Tensor([1.0])).dtype == "float32"
    assert Mirror(dtype=None).dtype == Mirror().dtype == "float32"
    assert Mirror(dtype=None)(np.ones(2)).dtype == "float32"


def test_inputs_in_a_tuple_come_as_a_tuple():
    layer, a, b = Mirror(), draw(2, 3), draw(4, 1)
    for nest in ((a, b), [a, (b, a)], (a, [b])):
        found = layer(nest)
        assert type(found) is type(nest) and type(found[1]) is type(
            nest[1] if isinstance(nest[1], (list, tuple)) else found[0]
        )
        np.testing.assert_array_equal(found[0], a)


def test_a_loss_that_is_a_number_has_the_layer_s_dtype():
    for dtype in ("float32", "float64"):
        layer = Mirror(dtype=dtype)
        layer.add_loss([3.0, np.float32(0.5), None, np.ones(())])
        layer.add_loss(lambda: openrnn.constant(0.25, dtype))
        assert [loss.dtype for loss in layer.losses] == [dtype] * 4
        assert [float(loss) for loss in layer.losses] == [3.0, 0.5, 1.0, 0.25]


def test_values_of_a_model_get_the_dtype_of_their_input():
    tokens = openrnn.Input(batch_shape=(None, 2), dtype="int32")
    x = openrnn.Input(batch_shape=(None, 2, 3), dtype="float64")
    table = openrnn.layers.Embedding(5, 3, dtype="float64")
    model = openrnn.Model([tokens, x], (table(tokens) + x, openrnn.tanh(x)))
    ids, values = [[1, 4]], draw(1, 2, 3)
    first, second = model([ids, values])
    assert first.dtype == second.dtype == "float64"
    wanted = table.embeddings.numpy()[ids] + values.astype("float64")
    np.testing.assert_array_equal(first, wanted)
    np.testing.assert_array_equal(model.predict([ids, values.tolist()])[0], wanted)
    with pytest.raises(ValueError, match="values of float64 that int32 does not hold"):
        model([[[0.5, 1.0]], values])


@pytest.mark.parametrize("cls", [
    openrnn.layers.LSTM, openrnn.layers.GRU, openrnn.layers.RNN, openrnn.cudnn_rnn.CudnnLSTM,
    openrnn.cudnn_rnn.CudnnGRU,
])  # fmt: skip
@pytest.mark.parametrize("trainable", [False, True])
def test_another_arithmetic_is_trained_as_the_layer_is(cls, trainable):
    layer = cls(num_layers=1, num_units=U, trainable=trainable)
    layer.build((None, None, I))
    made = layer.with_arithmetic(weights_dtype="int8")
    assert type(made) is cls and made.trainable is trainable and made.kernel is layer.kernel
    assert made.trainable_weights == ([layer.kernel] if trainable else [])
    assert {**made.get_config(), "weights_dtype": None} == layer.get_config()


def test_integers_do_not_join():
    for parts in ([[1], [2]], [np.ones(2, "int64")], [[True], [False]]):
        with pytest.raises(ValueError, match=r"\[concat\] parts\[0\] is .*floating tensor"):
            openrnn.concat(parts, 0)
    with pytest.raises(ValueError, match=r"\[concat\] parts\[1\] is int32 of shape"):
        openrnn.concat([[1.0], [2]], 0)


def test_a_model_replays_what_a_call_adds_this_time():
    class Penalized(openrnn.layers.Layer):
        def build(self, input_shape):
            self.w = self.add_weight("w", (2, 2), initializer="ones")
            super().build(input_shape)

        def call(self, inputs, training=False):
            if training:
                self.add_loss(openrnn.reduce_sum(inputs), inputs=inputs)
                self.add_update(lambda: None)
            self.add_loss(openrnn.reduce_sum(self.w * self.w))
            return openrnn.matmul(inputs, self.w)

    x = openrnn.Input(batch_shape=(None, 2))
    layer = Penalized()
    model = openrnn.Model(x, layer(x))
    values = np.float32([[1.0, 2.5]])
    for factor in (1.0, 3.0):
        layer.w.assign(np.full((2, 2), factor, "float32"))
        for training in (False, True, False):
            with openrnn.GradientTape() as tape:
                model(values, training=training)
                loss = openrnn.add_n(model.losses)
            expected = [3.5] * training + [4.0 * factor**2]
            assert [float(one) for one in model.losses] == expected
            assert [float(one) for one in layer.losses] == expected
            assert len(model.updates) == int(training)
            np.testing.assert_array_equal(tape.gradient(loss, layer.w), np.full((2, 2), 2 * factor))


def test_a_shared_layer_adds_its_losses_once_for_each_call():
    class Sums(openrnn.layers.Layer):
        def call(self, inputs):
            self.add_loss(openrnn.reduce_sum(inputs))
            return inputs * 2.0

    x = openrnn.Input(batch_shape=(None, 2))
    layer = Sums()
    model = openrnn.Model(x, layer(layer(x)))
    assert len(model.losses) == 2
    for made in (model, copy.deepcopy(model)):
        for factor in (1.0, 2.0):
            made(np.full((1, 2), factor, "float32"))
            assert [float(one) for one in made.losses] == [2 * factor, 4 * factor]


def test_a_replayed_call_of_itself_adds_its_losses_once():
    class Twice(openrnn.layers.Layer):
        inside = False

        def call(self, inputs):
            if not self.inside:
                self.inside = True
                try:
                    return self(inputs)
                finally:
                    self.inside = False
            self.add_loss(openrnn.reduce_sum(inputs), inputs=inputs)
            return inputs * 2.0

    x = openrnn.Input(batch_shape=(None, 2))
    layer = Twice()
    model = openrnn.Model(x, layer(x))
    for factor in (1.0, 2.0, 3.0):
        model(np.full((1, 2), factor, "float32"))
        for one in (model, layer):
            assert [float(loss) for loss in one.losses] == [2 * factor]
