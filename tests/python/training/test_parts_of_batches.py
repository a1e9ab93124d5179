"""fit() in micro-batches: what a part is given, and what cannot be computed in parts."""

import pickle

import keras
import numpy as np
import openrnn
import pytest
from openrnn import layers, train
from openrnn.nn import dropout

RANDOM = np.random.default_rng(8)
X, Y = RANDOM.normal(size=(8, 3)), RANDOM.normal(size=(8, 1))


def zeros(**kw):
    return layers.Dense(1, dtype="float64", kernel_initializer="zeros", **kw)


def trained(model, data=(X, Y), loss="mean_squared_error", parts=2, **kw):
    options = {"batch_size": 4, "epochs": 2, "shuffle": False, "progress": False, **kw}
    optimizer = train.GradientDescentOptimizer(0.1)
    history = train.fit(model, data, loss, optimizer, micro_batches=parts, **options)
    return history["loss"], [weight.numpy() for weight in model.weights]


def same(a, b):
    np.testing.assert_allclose(a[0], b[0], rtol=1e-12)
    for one, other in zip(a[1], b[1], strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


def test_a_dropout_that_cannot_tell_its_rows_is_refused():
    x = openrnn.Input(batch_shape=(None, 2, 3), dtype="float64")
    transposed = openrnn.transpose(x, (1, 0, 2))
    dropped = layers.Dropout(0.5, seed=4)(transposed, training=True)
    model = openrnn.Model(x, zeros()(openrnn.reduce_mean(dropped, axis=0)))
    data = (RANDOM.normal(size=(8, 2, 3)), Y)
    with pytest.raises(ValueError, match=r"x has shape \[2, 2, 3\] in a part of 2 rows of a batch, "
                       "expected them along one of the axes 0 and 1, not both: another number"):  # fmt: skip
        trained(model, data)
    trained(model, data, parts=4)


def test_losses_of_calls_are_refused_and_those_of_weights_count_once():
    def model():
        x = openrnn.Input(batch_shape=(None, None, 3), dtype="float64")
        lstm = openrnn.cudnn_rnn.CudnnGRU(1, 4, seed=1, dtype="float64",
                                          activity_regularizer=openrnn.regularizers.l2(0.1))  # fmt: skip
        return openrnn.Model(x, zeros()(lstm(x)[0][-1]))

    x = RANDOM.normal(size=(5, 8, 3))
    with pytest.raises(NotImplementedError, match="a layer adds a loss of its call .* micro_batches 1"):
        trained(model(), (x, Y), batch_axis=(1, 0))
    trained(model(), (x, Y), batch_axis=(1, 0), parts=1)

    class Own(layers.Layer):
        def __init__(self):
            super().__init__(dtype="float64")
            self.dense = zeros()

        def call(self, x):
            y = self.dense(x)
            self.add_loss(openrnn.reduce_mean(openrnn.square(y)), x)
            return y

    with pytest.raises(NotImplementedError, match="add_loss"):
        trained(Own())

    def regularized():
        layer = zeros()
        layer.build((None, 3))
        layer.add_loss(lambda: openrnn.reduce_sum(openrnn.square(layer.kernel - 0.7)))
        return layer

    runs = [trained(regularized(), parts=parts) for parts in (1, 2, 4)]
    same(runs[0], runs[1])
    same(runs[0], runs[2])
    assert abs(runs[0][1][0] - trained(zeros())[1][0]).max() > 0.1


def test_functions_with_a_key_of_their_own():
    x = openrnn.Input(batch_shape=(None, 3), dtype="float64")

    def recorded(parts):
        with openrnn.Graph().as_default():
            x = openrnn.Input(batch_shape=(None, 3), dtype="float64")
            return trained(openrnn.Model(x, zeros()(dropout(x, rate=0.5, seed=3))), parts=parts)

    model = openrnn.Model(x, dropout(x, rate=0.5, seed=3))
    first, second = model(X).numpy(), model(X).numpy()
    assert not np.array_equal(first == 0.0, second == 0.0)

    class Own(layers.Layer):
        def __init__(self):
            super().__init__(dtype="float64")
            self.dense = zeros()

        def call(self, x):  # a mask of a shape that has no rows of the batch
            y = dropout(openrnn.reshape(x, (-1,)), rate=0.25, seed=4)
            return self.dense(openrnn.reshape(y, tuple(x.shape)))

    assert np.isfinite(trained(Own())[0]).all()
    assert np.isfinite(recorded(2)[0]).all()


def test_masks_of_recorded_functions_are_those_of_the_whole_batch():
    # Every graph begins with the same keys of a seed, but functions count their calls.
    x = openrnn.Input(batch_shape=(None, 3), dtype="float64")
    y = dropout(x, rate=0.5, seed=3)
    copies = pickle.dumps(openrnn.Model(x, zeros()(y)))
    runs = [trained(pickle.loads(copies), parts=parts) for parts in (1, 2, 4)]
    same(runs[0], runs[1])
    same(runs[0], runs[2])


def test_stateful_layers_are_refused(tmp_path):
    L = keras.layers
    model = keras.Sequential([keras.Input((4, 3), batch_size=2), L.LSTM(5, stateful=True), L.Dense(1)])
    model.save(tmp_path / "m.keras")
    loaded = openrnn.load(tmp_path / "m.keras").model
    x, y = RANDOM.normal(size=(8, 4, 3)).astype("float32"), Y.astype("float32")
    with pytest.raises(NotImplementedError, match="2 rows of a batch of 4 with a stateful layer, "
                       "expected the whole batch"):  # fmt: skip
        trained(loaded, (x, y))
    trained(loaded, (x, y), batch_size=2, parts=1)


def of_lengths():
    x = openrnn.Input(batch_shape=(None, None, 3), dtype="float64")
    lengths = openrnn.Input(batch_shape=(None,), dtype="int32")
    lstm = openrnn.cudnn_rnn.CudnnLSTM(1, 4, seed=1, dtype="float64")
    return openrnn.Model([x, lengths], zeros()(lstm(x, sequence_lengths=lengths)[1][0][0]))


@pytest.mark.parametrize("kind", ["arrays", "batches"])
def test_lengths_beside_time_major_sequences(kind):
    x, lengths = RANDOM.normal(size=(5, 8, 3)), np.array([5, 3, 1, 4, 2, 5, 3, 4], "int32")
    data = ([x, lengths], Y)
    if kind == "batches":
        data = [([x[:, cut], lengths[cut]], Y[cut]) for cut in (slice(0, 4), slice(4, 8))]
    runs = []
    for parts in (1, 2):
        with openrnn.Graph().as_default():
            runs.append(trained(of_lengths(), data, parts=parts, batch_axis=(1, 0)))
    same(*runs)


def test_a_part_has_the_types_of_its_batch():
    seen = []

    def loss(y, outputs):
        seen.append((type(y), tuple(y.shape)))
        return openrnn.losses.mean_squared_error(y, outputs)

    for made in (openrnn.constant, np.asarray):
        seen.clear()
        batches = [(made(X[:4]), made(Y[:4])), (made(X[4:]), made(Y[4:]))]
        for parts in (1, 2):
            trained(zeros(), batches, loss, parts=parts, epochs=1)
        assert {kind for kind, _ in seen} == {type(made(Y))}
        assert [shape for _, shape in seen] == [(4, 1)] * 2 + [(2, 1)] * 4


def test_a_scope_is_entered_once():
    scope = openrnn._core.PartScope(0, 2, 4, openrnn._core.new_step_of_parts())
    with scope:
        with pytest.raises(RuntimeError, match="entered twice, expected one block"):
            scope.__enter__()
    with scope:
        pass
