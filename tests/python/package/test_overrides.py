"""A subclass of a layer that the package has: its call() and build() are what runs."""

import gc
import weakref

import numpy as np
import openrnn
import pytest

T, B, I, U = 5, 3, 4, 2  # noqa: E741


def draw(*shape):
    return np.random.default_rng(shape).uniform(-1, 1, shape).astype(np.float32)


class Doubled(openrnn.cudnn_rnn.CudnnLSTM):
    """Twice the output; reads what it is called with."""

    def call(self, inputs, *args, **kwargs):
        self.calls = getattr(self, "calls", 0) + 1
        output, state = super().call(inputs, *args, **kwargs)
        return 2.0 * output, state


class Scaled(openrnn.cudnn_rnn.CudnnGRU):
    """Makes a variable of its own beside the network's."""

    def build(self, input_shape):
        super().build(input_shape)
        self.scale = self.add_weight("scale", (U,), initializer=openrnn.initializers.constant(3.0))

    def call(self, x, initial_state=None):
        output, (h,) = super().call(x, initial_state)
        return output + self.scale, h


def plain(layer):
    """The class's own layer with the same weights."""
    base = next(c for c in type(layer).__mro__ if c.__module__.startswith("openrnn"))
    made = base.from_config(base.get_config(layer))
    made.build((None, None, I))
    made.set_weights(layer.get_weights()[:1])
    return made


def test_call_of_a_recurrent_layer():
    layer, x = Doubled(1, U, name="own"), draw(T, B, I)
    output, (h, c) = layer(x)
    wanted, (wanted_h, wanted_c) = plain(layer)(x)
    np.testing.assert_array_equal(output, 2 * wanted.numpy())
    np.testing.assert_array_equal(h, wanted_h)
    np.testing.assert_array_equal(c, wanted_c)
    assert layer.calls == 1 and layer.kernel.name == "own/opaque_kernel"
    np.testing.assert_array_equal(layer(x, (h, c), training=False)[0],
                                  2 * plain(layer)(x, (h, c))[0].numpy())  # fmt: skip
    assert layer.calls == 2


def test_call_on_symbolic_inputs_is_one_node():
    layer, data = Doubled(1, U), draw(T, B, I)
    x, h0 = openrnn.Input(batch_shape=(None, None, I)), openrnn.Input(batch_shape=(1, None, U))
    output, state = layer(x, initial_state=(h0, h0))
    model = openrnn.Model([x, h0], [output, *state])
    assert len(layer.inbound_nodes) == 1 and model.layers == [layer]
    start = draw(1, B, U)
    wanted = layer(data, (start, start))
    got = model([data, start])
    np.testing.assert_array_equal(got[0], wanted[0])
    np.testing.assert_array_equal(got[0], 2 * plain(layer)(data, (start, start))[0].numpy())
    np.testing.assert_array_equal(got[2], wanted[1][1])
    assert model.weights == [layer.kernel]


@pytest.mark.parametrize("call", [
    lambda layer, x, h: layer(x, (h,)), lambda layer, x, h: layer(x, initial_state=(h,))])  # fmt: skip
def test_states_by_position_and_by_name_get_values_at_each_replay(call):
    layer, data = Scaled(1, U), draw(T, B, I)
    x, h0 = openrnn.Input(batch_shape=(None, None, I)), openrnn.Input(batch_shape=(1, None, U))
    model = openrnn.Model([x, h0], call(layer, x, h0))
    for start in (draw(1, B, U), np.ones((1, B, U), np.float32)):
        for got, wanted in zip(model([data, start]), call(layer, data, start), strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_gradients_and_regularizers_see_one_call():
    layer, x = Doubled(1, U, activity_regularizer=openrnn.regularizers.l2(1.0)), draw(T, B, I)
    with openrnn.GradientTape() as tape:
        loss = openrnn.reduce_sum(layer(x)[0])
    assert len(layer.losses) == 3
    other = plain(layer)
    with openrnn.GradientTape() as again:
        reference = openrnn.reduce_sum(other(x)[0])
    np.testing.assert_allclose(tape.gradient(loss, layer.kernel),
                               2 * again.gradient(reference, other.kernel).numpy(), rtol=1e-5)  # fmt: skip


def test_build_of_a_recurrent_layer():
    layer, x = Scaled(1, U), draw(T, B, I)
    output, h = layer(x)
    assert [v.name for v in layer.weights] == ["cudnn_gru/opaque_kernel", "cudnn_gru/scale"]
    assert layer.scale in openrnn.trainable_variables() and layer.saveable is not None
    np.testing.assert_allclose(output, 3 + plain(layer)(x)[0].numpy(), rtol=1e-6)
    explicit = Scaled(1, U)
    explicit.build((None, None, I))
    assert explicit.built and len(explicit.weights) == 2
    model_x = openrnn.Input(batch_shape=(None, None, I))
    model = openrnn.Model(model_x, layer(model_x)[0])
    np.testing.assert_array_equal(model(x), output)


def test_a_build_that_leaves_out_its_class_says_so():
    class Empty(openrnn.cudnn_rnn.CudnnGRU):
        def build(self, input_shape):
            pass

    with pytest.raises(RuntimeError, match="build.. of its class has not run"):
        Empty(1, U)(draw(T, B, I))


def test_dense_dropout_embedding_and_model():
    class Shifted(openrnn.layers.Dense):
        def build(self, input_shape):
            super().build(input_shape)
            self.shift = self.add_weight("shift", (U,), initializer=openrnn.initializers.constant(5.0))

        def call(self, inputs):
            return super().call(inputs) + self.shift

    class Twice(openrnn.layers.Dropout):
        def call(self, inputs, training=False):
            return 2.0 * super().call(inputs, training)

    class Negated(openrnn.layers.Embedding):
        def call(self, inputs):
            return -super().call(inputs)

    class Third(openrnn.Model):
        def call(self, inputs, training=None):
            return super().call(inputs, training) / 3.0

    x, ids = draw(B, I), np.array([1, 0, 2])
    dense, dropout, embedding = Shifted(U), Twice(0.5), Negated(3, U)
    np.testing.assert_allclose(dense(x), x @ dense.kernel.numpy() + 5, rtol=1e-5)
    assert [v.name for v in dense.weights] == ["dense/kernel", "dense/bias", "dense/shift"]
    np.testing.assert_array_equal(dropout(x), 2 * x)
    assert set(np.round(dropout(np.ones(99, "float32"), training=True).numpy())) == {0.0, 4.0}
    np.testing.assert_array_equal(embedding(ids), -embedding.embeddings.numpy()[ids])
    given, indices = openrnn.Input(batch_shape=(None, I)), openrnn.Input((), dtype="int32")
    model = Third(given, dropout(dense(given)))
    np.testing.assert_allclose(model(x), 2 / 3 * dense(x).numpy(), rtol=1e-6)
    recorded = openrnn.Model(indices, embedding(indices))
    np.testing.assert_array_equal(recorded(ids.astype("int32")), embedding(ids))


def test_a_replay_without_training_reaches_call():
    class Noisy(openrnn.layers.Dropout):
        def call(self, inputs, training=True):
            return super().call(inputs, training)

    x = openrnn.Input(batch_shape=(None, I))
    model = openrnn.Model(x, Noisy(0.5)(x))
    data = np.ones((50, I), np.float32)
    np.testing.assert_array_equal(model(data, training=False), data)
    assert (model(data).numpy() == 0).any()


def test_build_of_a_model():
    class Own(openrnn.Model):
        def build(self, input_shape):
            super().build(input_shape)
            self.extra = self.add_weight("extra", (input_shape[-1],))

    x = openrnn.Input(batch_shape=(None, I))
    model = Own(x, openrnn.layers.Dense(U)(x))
    model(draw(B, I))
    assert model.built and model.extra.shape == (I,)


@pytest.mark.parametrize("base", [openrnn.cudnn_rnn.CudnnLSTM, openrnn.layers.Dense])
def test_a_call_that_returns_nothing_is_an_error(base):
    class Silent(base):
        def call(self, inputs):
            super().call(inputs)

    layer = Silent(1, U) if base is openrnn.cudnn_rnn.CudnnLSTM else Silent(U)
    with pytest.raises(ValueError, match=r"\[(cudnn_lstm|dense)\] call\(\) returned None"):
        layer(draw(T, B, I))


def test_a_call_that_returns_none_beside_a_tensor_is_an_error():
    class Half(openrnn.layers.Layer):
        def call(self, inputs):
            return inputs, [None]

    for inputs in (draw(B, I), openrnn.Input(batch_shape=(None, I))):
        with pytest.raises(ValueError, match=r"\[half\] call\(\) returned None, expected a Tensor"):
            Half(name="half")(inputs)


def test_builds_of_a_line_of_classes_all_run():
    class First(openrnn.layers.Layer):
        def build(self, input_shape):
            self.a = self.add_weight("a", (1,))
            super().build(input_shape)

        def call(self, x):
            return x + self.a

    class Mixed:
        def build(self, input_shape):
            self.c = self.add_weight("c", (1,))
            super().build(input_shape)

    class Second(Mixed, First):
        def build(self, input_shape):
            self.b = self.add_weight("b", (1,))
            super().build(input_shape)

    layer = Second()
    layer(draw(B, 1))
    assert [v.name for v in layer.weights] == ["second/b", "second/c", "second/a"]


def test_super_of_a_call_operator_reaches_call():
    class Logged(openrnn.cudnn_rnn.CudnnGRU):
        def __call__(self, inputs, *args, **kwargs):
            self.seen = True
            return super().__call__(inputs, *args, **kwargs)

    class Halved(Logged):
        def call(self, inputs):
            return super().call(inputs)[0] / 2.0

    layer, x = Halved(1, U), draw(T, B, I)
    np.testing.assert_array_equal(layer(x), plain(layer)(x)[0].numpy() / 2)
    assert layer.seen


def test_a_call_operator_hands_on_what_it_was_given():
    class Logged(openrnn.cudnn_rnn.CudnnGRU):
        def __call__(self, inputs, **switches):
            return super().__call__(inputs, **switches)

        def call(self, inputs, initial_state=None, training=False):
            self.training = training
            return super().call(inputs, initial_state, training)

    layer, x = Logged(1, U), draw(T, B, I)
    for given in (True, False):
        layer(x, training=given)
        assert layer.training is given
    layer(x)
    assert layer.training is False


def test_predict_of_a_call_without_training():
    class Shifted(openrnn.Model):
        def call(self, inputs):
            return super().call(inputs) + 1.0

    given = openrnn.Input(batch_shape=(None, I))
    outputs, x = openrnn.layers.Dense(2)(given), draw(B, I)
    wanted = openrnn.Model(given, outputs).predict(x) + 1.0
    np.testing.assert_array_equal(Shifted(given, outputs).predict(x), wanted)


def test_it_is_freed():
    layer = Doubled(1, U)
    layer(draw(T, B, I))
    gone = weakref.ref(layer)
    del layer
    gc.collect()
    assert gone() is None


def test_an_embedding_of_ones_own_takes_arrays_of_indices():
    class Twice(openrnn.layers.Embedding):
        def call(self, inputs):
            return 2.0 * super().call(inputs)

    layer, indices = Twice(5, 3), np.array([[4, 0], [1, 4]])
    output = layer(indices).numpy()
    np.testing.assert_array_equal(output, 2.0 * layer.embeddings.numpy()[indices])


def test_a_replay_replaces_training_that_was_given_by_position():
    class Louder(openrnn.layers.Layer):
        def call(self, inputs, training=False):
            return inputs * (2.0 if training else 1.0)

    x, data = openrnn.Input((3,)), draw(2, 3)
    model = openrnn.Model(x, Louder()(x, True))
    np.testing.assert_array_equal(model(data), 2.0 * data)
    np.testing.assert_array_equal(model(data, training=False), data)


def test_an_input_that_is_none_is_an_error():
    class Both(openrnn.layers.Layer):
        def call(self, inputs):
            return inputs[0] + inputs[1]

    x = draw(B, I)
    for given in (None, [x, None], [None, x], (openrnn.Input(batch_shape=(None, I)), None)):
        with pytest.raises(TypeError, match=r"\[Both\] an input is None, expected a Tensor"):
            Both()(given)
    np.testing.assert_array_equal(Both()([x, x]), 2 * x)


@pytest.mark.parametrize("result", [lambda s: (s, None), lambda s: (None, s)])
def test_a_cell_that_returns_none_for_a_tensor_is_an_error(result):
    class Half(openrnn.nn.rnn_cell.RNNCell):
        state_size = output_size = U

        def call(self, inputs, state):
            return result(state)

    state = draw(B, U)
    with pytest.raises(TypeError, match=r"\[half\] an array of object, expected float32"):
        Half(name="half")(draw(B, I), state)
    with pytest.raises(TypeError, match=r"\[half\] an array of object, expected float32"):
        openrnn.nn.dynamic_rnn(Half(name="half"), draw(B, T, I), dtype="float32")


@pytest.mark.parametrize("result, shown", [
    (lambda s: s, "a Tensor"), (lambda s: None, "None"), (lambda s: (s, s, s), "a tuple of 3"),
    (lambda s: [s], "a list of 1"), (lambda s: (), "a tuple of 0"),
])  # fmt: skip
def test_a_cell_returns_an_output_and_a_state(result, shown):
    class Odd(openrnn.nn.rnn_cell.RNNCell):
        state_size = output_size = U

        def call(self, inputs, state):
            return result(state)

    text = rf"\[odd\] call\(\) returned {shown}, expected \(output, state\)"
    with pytest.raises(ValueError, match=text):
        Odd(name="odd")(draw(B, I), draw(B, U))
    with pytest.raises(ValueError, match=text):
        openrnn.nn.dynamic_rnn(Odd(name="odd"), draw(B, T, I), dtype="float32")


def test_the_state_of_a_cell_has_the_structure_of_its_state_size():
    class Two(openrnn.nn.rnn_cell.RNNCell):
        state_size, output_size = (U, 2), U

        def call(self, inputs, state):
            return state[0], [state[0] * 2.0, state[1] * 3.0]

    a, b = draw(B, U), draw(B, 2)
    for given in ((a, b), [a, b]):
        _, state = Two()(draw(B, I), given)
        assert type(state) is tuple
        np.testing.assert_array_equal(state[0], 2 * a)
        np.testing.assert_array_equal(state[1], 3 * b)
    for wrong, shown in [(a, "a ndarray"), ((a, b, b), "a tuple of 3"), ([a], "a list of 1")]:
        with pytest.raises(ValueError, match=f"the state is {shown}, expected a tuple of 2"):
            Two()(draw(B, I), wrong)
