"""train.fit: histories against plain loops, and what it is given."""

import numpy as np
import openrnn
import pytest
from openrnn import layers, train

RANDOM = np.random.default_rng(5)
X = RANDOM.normal(size=(17, 3))
Y = (X @ [[0.5], [-1.0], [2.0]] + 0.3 + 0.05 * RANDOM.normal(size=(17, 1))).astype("float64")


def dense(**kw):
    layer = layers.Dense(1, dtype="float64", **kw)
    layer.build((None, 3))
    layer.kernel.assign(np.array([[0.1], [0.2], [-0.3]]))
    layer.bias.assign(np.array([0.05]))
    return layer


def fit(layer, data=(X, Y), loss="mean_squared_error", optimizer=None, **kw):
    kw.setdefault("progress", False)
    return train.fit(layer, data, loss, optimizer or train.GradientDescentOptimizer(0.1), **kw)


def by_hand(epochs, batch_size, order=None, rates=lambda step: 0.1, clip=None):
    """Losses and weights of plain gradient descent in NumPy."""
    w, b, losses, step = np.array([[0.1], [0.2], [-0.3]]), np.array([0.05]), [], 0
    for epoch in range(epochs):
        rows, total = np.arange(17) if order is None else order(), 0.0
        for at in range(0, 17, batch_size):
            part = rows[at : at + batch_size]
            error = X[part] @ w + b - Y[part]
            total += (error**2).mean() * len(part)
            dw, db = 2 * X[part].T @ error / len(part), 2 * error.mean(axis=0)
            norm = np.sqrt((dw**2).sum() + (db**2).sum())
            factor = 1.0 if clip is None else min(1.0, clip / norm)
            w, b = w - rates(step) * factor * dw, b - rates(step) * factor * db
            step += 1
        losses.append(total / 17)
    return losses, w, b


@pytest.mark.parametrize("batch_size", [1, 5, 17, 40])
def test_history_and_weights_of_a_plain_loop(batch_size):
    layer = dense()
    history = fit(layer, epochs=3, batch_size=batch_size, shuffle=False)
    losses, w, b = by_hand(3, batch_size)
    np.testing.assert_allclose(history["loss"], losses, rtol=1e-12)
    np.testing.assert_allclose(layer.kernel.numpy(), w, rtol=1e-12)
    np.testing.assert_allclose(layer.bias.numpy(), b, rtol=1e-12)
    assert history.epochs == 3 and history.steps == 3 * -(-17 // batch_size)
    assert history["learning_rate"] == [0.1] * 3 and history.stopped == "done"


def test_shuffled_by_the_seed():
    layer, random = dense(), np.random.RandomState(7)
    history = fit(layer, epochs=2, batch_size=4, seed=7)
    losses, w, _ = by_hand(2, 4, lambda: random.permutation(17))
    np.testing.assert_allclose(history["loss"], losses, rtol=1e-12)
    np.testing.assert_allclose(layer.kernel.numpy(), w, rtol=1e-12)


def test_clipped_and_scheduled():
    rates = train.WarmUp(train.CosineDecay(0.2, 7, 0.1), 3)
    layer = dense()
    history = fit(layer, epochs=2, batch_size=4, shuffle=False, schedule=rates, clip_norm=0.5)
    losses, w, _ = by_hand(2, 4, rates=rates, clip=0.5)
    np.testing.assert_allclose(history["loss"], losses, rtol=1e-12)
    np.testing.assert_allclose(layer.kernel.numpy(), w, rtol=1e-12)
    assert history["learning_rate"] == [rates(4), rates(9)]


def network():
    x = openrnn.Input(batch_shape=(None, None, 3))
    output, _ = openrnn.cudnn_rnn.CudnnLSTM(2, 4, dropout=0.3, seed=11)(x, training=True)
    y = layers.Dropout(0.2, seed=4)(layers.Dense(2, seed=3)(output), training=True)
    return openrnn.Model(x, y)


def test_the_same_bits_again():
    x = RANDOM.normal(size=(4, 9, 3)).astype("float32")
    y = RANDOM.normal(size=(4, 9, 2)).astype("float32")
    found = []
    for seed in (3, 3, 4):
        with openrnn.Graph().as_default():
            model = network()
            for variable in model.weights:
                values = np.random.default_rng(1).normal(size=variable.shape)
                variable.assign(values.astype("float32"))
            history = model.fit((x, y), "mean_squared_error", train.AdamW(0.01), 3, progress=False,
                                batch_size=2, batch_axis=1, seed=seed, clip_norm=1.0)  # fmt: skip
            found.append((history["loss"], [v.numpy().tobytes() for v in model.weights]))
    assert found[0] == found[1]
    assert found[0] != found[2]


@pytest.mark.parametrize("batch_size, parts", [(12, 3), (5, 5), (17, 1), (16, 4), (40, 8)])
@pytest.mark.parametrize("clip_norm", [None, 0.7])
def test_updates_in_parts_are_those_of_whole_batches(batch_size, parts, clip_norm):
    one, several = dense(), dense()
    a = fit(one, batch_size=batch_size, epochs=3, clip_norm=clip_norm, optimizer=train.Adam(0.05))
    b = fit(several, batch_size=batch_size, epochs=3, clip_norm=clip_norm,
            optimizer=train.Adam(0.05), micro_batches=parts)  # fmt: skip
    assert a.steps == b.steps
    np.testing.assert_allclose(a["loss"], b["loss"], rtol=1e-12)
    np.testing.assert_allclose(one.kernel.numpy(), several.kernel.numpy(), rtol=0, atol=1e-12)


def masked_network(batch_first):
    """Masks of every kind, in layers and cells."""
    x = openrnn.Input(batch_shape=(None, None, 3), dtype="float64")
    steps = layers.Dropout(0.2, seed=4)(layers.Dense(5, seed=3, dtype="float64")(x), training=True)
    if batch_first:
        steps = openrnn.transpose(steps, (1, 0, 2))
    lstm = openrnn.cudnn_rnn.CudnnLSTM(2, 4, dropout=0.3, seed=11, dtype="float64", zoneout=0.2,
                                       recurrent_dropout=0.2, input_dropout=0.2, output_dropout=0.2,
                                       drop_connect=0.2)  # fmt: skip
    last = lstm(steps, training=True)[0][-1]
    y = layers.Dense(2, seed=3, dtype="float64")(layers.Dropout(0.4, seed=8)(last, training=True))
    return openrnn.Model(x, y)


def dropped_sequences(batch_first):
    """Masks of sequences of the other layout than x."""
    x = openrnn.Input(batch_shape=(None, None, 3), dtype="float64")
    transposed = openrnn.transpose(layers.Dense(5, seed=3, dtype="float64")(x), (1, 0, 2))
    steps = layers.Dropout(0.5, seed=4)(transposed, training=True)
    return openrnn.Model(x, layers.Dense(2, seed=3, dtype="float64")(
        openrnn.reduce_mean(steps, axis=0 if batch_first else 1)))  # fmt: skip


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("kind", ["arrays", "iterable", "tensors", "transposed"])
def test_masks_do_not_depend_on_the_parts(batch_first, kind):
    axis = 0 if batch_first else 1
    x = RANDOM.normal(size=(10, 5, 3) if batch_first else (5, 10, 3))
    y = RANDOM.normal(size=(10, 2))
    found = []
    for parts in (1, 2, 4):
        with openrnn.Graph().as_default():
            network = dropped_sequences if kind == "transposed" else masked_network
            model, data = network(batch_first), (x, y)
            more = {"batch_size": 4}
            if kind in ("iterable", "tensors"):
                made = openrnn.constant if kind == "tensors" else np.asarray
                cuts = [slice(0, 4), slice(4, 7), slice(7, 10)]
                data = [(made(x[cut] if batch_first else x[:, cut]), made(y[cut])) for cut in cuts]
                more = {}
            history = model.fit(data, "mean_squared_error", train.Adam(0.01), 3, progress=False,
                                batch_axis=(axis, 0), micro_batches=parts, clip_norm=1.0, **more)  # fmt: skip
            found.append((history["loss"], [v.numpy() for v in model.weights]))
    for losses, weights in found[1:]:
        np.testing.assert_allclose(losses, found[0][0], rtol=1e-11)
        for a, b in zip(weights, found[0][1], strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-11)


def test_float16_in_parts():
    # Gradients below 2, so that none overflows with the loss scale 2^15 and is skipped.
    x, y = X[:16].astype("float16"), (Y[:16] / 8).astype("float16")
    kernels = []
    for parts in (1, 4):
        layer = layers.Dense(1, dtype="float16", kernel_initializer="zeros")
        history = fit(layer, (x, y), batch_size=8, epochs=4, micro_batches=parts)
        assert history["loss"][-1] < history["loss"][0]
        kernels.append(layer.kernel.numpy().astype("float64"))
    np.testing.assert_allclose(*kernels, rtol=0, atol=5e-3)


def test_early_stopping_restores_the_best_bits():
    layer, seen = dense(), []

    def keep(epoch, logs):
        seen.append((logs["val_loss"], layer.kernel.numpy().tobytes(), layer.bias.numpy().tobytes()))

    # A rate at which the loss falls and then grows.
    rates = lambda step: 0.1 if step < 5 else 1.5  # noqa: E731
    history = fit(layer, epochs=30, batch_size=17, schedule=rates, validation=(X[:6], Y[:6]),
                  early_stopping=3, callbacks=keep)  # fmt: skip
    best = min(range(len(seen)), key=lambda i: seen[i][0])
    assert history.stopped == "patience" and history.best_epoch == best == history.epochs - 4
    assert (layer.kernel.numpy().tobytes(), layer.bias.numpy().tobytes()) == seen[best][1:]
    assert train.evaluate(layer, (X[:6], Y[:6]), "mean_squared_error") == history["val_loss"][best]

    layer, seen = dense(), []
    rule = train.EarlyStopping(2, "loss", restore_best=False)
    history = fit(layer, epochs=30, batch_size=17, schedule=rates, early_stopping=rule,
                  validation=(X, Y), callbacks=keep)  # fmt: skip
    assert layer.kernel.numpy().tobytes() == seen[-1][1] and len(seen) == history.best_epoch + 3


def test_the_best_epoch_counts_however_the_training_ends():
    """Weights are restored before on_train_end; where the loss stays, the first epoch was the best."""
    seen = []

    class Watch(train.Callback):
        def on_epoch_end(self, epoch, logs):
            seen.append((logs["loss"], self.model.kernel.numpy().tobytes()))
            return epoch < 8

        def on_train_end(self, history):
            seen.append(self.model.kernel.numpy().tobytes())

    rates = lambda step: 0.1 if step < 5 else 1.5  # noqa: E731
    for epochs, stopped in ((30, "callback"), (8, "done")):
        seen.clear()
        history = fit(dense(), epochs=epochs, batch_size=17, schedule=rates, early_stopping=20,
                      callbacks=[Watch()])  # fmt: skip
        *each, last = seen
        best = min(range(len(each)), key=lambda i: each[i][0])
        assert (history.best_epoch, history.stopped) == (best, stopped) and 0 < best < len(each) - 1
        assert last == each[best][1] != each[-1][1]
    history = fit(dense(), epochs=9, schedule=0.0, early_stopping=2, shuffle=False)
    assert (history.epochs, history.best_epoch, history.stopped) == (3, 0, "patience")
    assert history["learning_rate"] == [0.0] * 3
    assert train.EarlyStopping(2, restore_best=0).restore_best is False


def test_a_seed_is_taken_by_its_last_32_bits():
    losses = [fit(dense(), batch_size=4, seed=seed)["loss"] for seed in (7, 7 + 2**32, 7 - 2**32, 7 + 2**31)]
    assert losses[0] == losses[1] == losses[2] != losses[3]


class Scaled(layers.Layer):
    """Of time-major x and one number a sample."""

    def call(self, inputs):
        x, scale = inputs
        return openrnn.reduce_sum(x, axis=0) * openrnn.expand_dims(scale, 1)


def test_numbers_of_samples_lie_along_their_only_axis():
    x, scale = RANDOM.normal(size=(4, 5, 3)), np.arange(5.0)
    whole = (x * scale[:, None]).sum(axis=0)
    layer = Scaled(dtype="float64")
    a, b = openrnn.Input(batch_shape=(4, None, 3), dtype="float64"), openrnn.Input((), dtype="float64")
    model = openrnn.Model([a, b], layer([a, b]))
    np.testing.assert_allclose(model.predict([x, scale], 2, batch_axis=(1, 0)), whole)


def test_tuples_that_are_no_batches():
    """Two tuples are a pair (x, y), unless each is a pair of arrays."""
    a, b, c = (openrnn.Input((1,)) for _ in range(3))
    model = openrnn.Model([a, b, c], openrnn.concat([a, b, c], axis=1))
    columns = tuple(np.array_split(X[:, :3], 3, axis=1))
    labels = tuple(column * 2 for column in columns)

    def loss(y, found):
        wanted = np.concatenate(y, axis=1, dtype="float32")
        return openrnn.reduce_mean(openrnn.square(wanted - found * 3.0))

    found = train.evaluate(model, (columns, labels), loss)
    assert found == pytest.approx((X[:, :3] ** 2).mean(), rel=1e-5)
    rows = lambda array: tuple(map(tuple, array[:2].tolist()))
    found = train.evaluate(dense(), (rows(X), rows(Y)), "mean_squared_error")
    assert found == train.evaluate(dense(), (X[:2], Y[:2]), "mean_squared_error")


def test_min_delta_counts_small_steps_as_none():
    rule = train.EarlyStopping(2, min_delta=1e6)
    history = fit(dense(), epochs=9, early_stopping=rule)
    assert (history.epochs, history.best_epoch, history.stopped) == (3, 0, "patience")


def batches(size=5):
    for at in range(0, 17, size):
        yield X[at : at + size], Y[at : at + size]


@pytest.mark.parametrize(
    "source",
    [lambda: list(batches()), lambda: batches, lambda: tuple(batches(9)), lambda: batches()],
    ids=["list", "function", "tuple", "generator"],
)
def test_batches_from_what_gives_them(source):
    given = source()
    size = 9 if isinstance(given, tuple) else 5
    epochs = 1 if hasattr(given, "__next__") else 3
    history = fit(dense(), given, epochs=epochs)
    np.testing.assert_allclose(history["loss"], by_hand(epochs, size)[0], rtol=1e-12)


def test_steps_of_an_endless_generator():
    def endless():
        while True:
            yield from batches(17)

    history = fit(dense(), endless(), epochs=2, steps_per_epoch=2)
    np.testing.assert_allclose(history["loss"], np.reshape(by_hand(4, 17)[0], (2, 2)).mean(axis=1))
    assert history.steps == 4


def test_several_inputs_and_a_function_as_loss():
    a, b = openrnn.Input((2,), dtype="float64"), openrnn.Input((3,), dtype="float64")
    outputs = [layers.Dense(1, dtype="float64")(a), layers.Dense(2, dtype="float64")(b)]
    model = openrnn.Model([a, b], outputs)
    x = [X[:, :2], X]

    def loss(y, found):
        assert [one.shape[1] for one in found] == [1, 2]
        return openrnn.reduce_mean(openrnn.square(found[0] - y)) + openrnn.reduce_mean(
            openrnn.square(found[1])
        )

    history = model.fit((x, Y), loss, train.Adam(0.1), 20, batch_size=6, progress=False)
    assert history["loss"][-1] < 0.5 * history["loss"][0]
    parts = model.predict(x, 4)
    for one, other in zip(parts, model.predict(x), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("kind", [np.ma.masked_array, openrnn.constant])
def test_a_loss_is_given_plain_arrays(kind):
    def loss(labels, predictions):
        assert type(labels) is np.ndarray
        return openrnn.losses.mean_squared_error(labels, predictions)

    wanted = fit(dense(), batch_size=5)["loss"]
    assert fit(dense(), (kind(X), kind(Y)), loss, batch_size=5)["loss"] == wanted


def test_predict_in_batches_along_their_axes():
    x = openrnn.Input(batch_shape=(None, None, 3))
    output, state = openrnn.cudnn_rnn.CudnnGRU(1, 4, seed=2)(x)
    model, given = openrnn.Model(x, (output, state)), RANDOM.normal(size=(3, 7, 3)).astype("float32")
    whole, parts = model.predict(given), model.predict(given, 3, batch_axis=(1, 1))
    assert parts[0].shape == (3, 7, 4) and parts[1][0].shape == (1, 7, 4)
    np.testing.assert_array_equal(whole[0], parts[0])  # rows do not depend on others
    np.testing.assert_array_equal(whole[1][0], parts[1][0])


def test_evaluate_is_a_mean_over_samples():
    layer = dense()
    error = X @ layer.kernel.numpy() + layer.bias.numpy() - Y
    for size in (1, 4, 17):
        value = train.evaluate(layer, (X, Y), "mean_squared_error", batch_size=size)
        np.testing.assert_allclose(value, (error**2).mean(), rtol=1e-13)


def test_losses_of_layers_are_trained_on():
    x = openrnn.Input((3,), dtype="float64")
    layer = layers.Dense(1, dtype="float64", use_bias=False)
    model = openrnn.Model(x, layer(x))
    layer.add_loss(lambda: openrnn.reduce_sum(openrnn.square(layer.kernel)))
    layer.kernel.assign(np.array([[1.0], [2.0], [3.0]]))
    history = model.fit((np.zeros((4, 3)), np.zeros((4, 1))), "mean_squared_error",
                        train.GradientDescentOptimizer(0.25), progress=False)  # fmt: skip
    assert history["loss"] == [14.0]
    assert layer.kernel.numpy().ravel().tolist() == [0.5, 1.0, 1.5]
    assert model.evaluate((np.zeros((4, 3)), np.zeros((4, 1))), "mean_squared_error") == 0.0


@pytest.mark.parametrize("patience, losses, stops", [
    (2, [5, 6, 4, 5, 3, 4, 4, 1], 6), (2, [5, 6, 6, 1], 2), (1, [5, 4, 4, 3], 2),
    (3, [5, 6, 6, 4, 5, 5, 3, 4, 4, 4], 9), (2, [3, 2, 1, 0], None),
])
def test_epochs_without_progress_are_counted_anew_after_each_best(patience, losses, stops):
    from openrnn._fit_callbacks import Best

    best = Best(train.EarlyStopping(patience), False, [])
    goes_on = [best.goes_on(epoch, {"loss": loss}) for epoch, loss in enumerate(losses)]
    assert (goes_on.index(False) if False in goes_on else None) == stops
    assert (best.value, best.epoch) == (min(losses), losses.index(min(losses)))


@pytest.mark.parametrize("batch_size", [None, 2, 3])
def test_a_prediction_in_batches_drops_nothing(batch_size):
    x = openrnn.Input((40,))
    model = openrnn.Model(x, layers.Dropout(0.5, seed=1)(x, training=True))
    ones = np.ones((7, 40), "float32")
    np.testing.assert_array_equal(model.predict(ones, batch_size), ones)
    assert (model(ones).numpy() == 0.0).any()
