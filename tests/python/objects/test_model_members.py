"""Members of a Model at their edges, and the small functions that stand beside the layers."""

import copy
import pickle

import numpy as np
import openrnn
import pytest

Dense, Input, Model = openrnn.layers.Dense, openrnn.Input, openrnn.Model


def draw(*shape, dtype="float32"):
    return np.random.default_rng(shape).uniform(-1, 1, shape).astype(dtype)


def three():
    x = Input(batch_shape=(None, 3))
    layers = [Dense(4, name="a"), Dense(5, name="b"), Dense(2, name="c")]
    y = x
    for layer in layers:
        y = layer(y)
    return Model(x, y), layers


def test_get_layer_by_index():
    model, layers = three()
    for index in (-3, -2, -1, 0, 1, 2):
        assert model.get_layer(index=index) is layers[index]
    for index in (3, -4):
        with pytest.raises(openrnn.ArgumentError) as caught:
            model.get_layer(index=index)
        assert str(caught.value) == f"[get_layer] index is {index}, expected -3 to 2"
    assert model.get_layer("b", 0) is layers[0] and model.get_layer("b") is layers[1]
    with pytest.raises(openrnn.ArgumentError, match=r"name is None, expected one of \['a', 'b', 'c'\]"):
        model.get_layer()
    with pytest.raises(TypeError, match="index"):
        model.get_layer(index=0.0)


def test_inputs_of_one_in_a_list_and_alone():
    x, layer = Input(batch_shape=(None, 3)), Dense(2)
    y, data = layer(x), draw(4, 3)
    wanted = layer(data).numpy()
    for model in (Model(x, y), Model([x], y)):
        np.testing.assert_array_equal(model(data), wanted)
    np.testing.assert_array_equal(Model([x], y)([data]), wanted)
    (one,) = Model((x,), (y,))((data,))
    np.testing.assert_array_equal(one, wanted)
    assert type(Model(x, [y])(data)) is list and type(Model(x, (y,)).predict(data)) is tuple


def test_inputs_that_are_nested():
    a, b, c = (Input(batch_shape=(None, 2)) for _ in range(3))
    model = Model([a, [b, c]], a * 1.0 + b * 2.0 + c * 4.0)
    data = [draw(3, 2, dtype="float32") + k for k in range(3)]
    wanted = data[0] + 2 * data[1] + 4 * data[2]
    np.testing.assert_allclose(model([data[0], data[1:]]), wanted, rtol=1e-6)
    np.testing.assert_allclose(model((data[0], tuple(data[1:]))), wanted, rtol=1e-6)
    np.testing.assert_allclose(model(data), wanted, rtol=1e-6)  # flat, too
    np.testing.assert_allclose(model.predict([data[0], data[1:]]), wanted, rtol=1e-6)
    rows = [[[1.0, 2.0]], [[[3.0, 4.0]], [[5.0, 6.0]]]]  # values that are lists
    np.testing.assert_array_equal(model(rows), [[1 + 6 + 20, 2 + 8 + 24]])
    with pytest.raises(openrnn.ArgumentError, match="2 inputs, expected 3"):
        model([data[0], [data[1]]])


def test_values_of_another_type_become_that_of_the_input():
    x = Input(batch_shape=(None, 2), dtype="float64")
    model = Model(x, x * 2.0)
    found = model([[1, 2], [3, 4]])
    assert found.dtype == "float64"
    np.testing.assert_array_equal(found, [[2.0, 4.0], [6.0, 8.0]])


def test_weights_there_and_back(tmp_path):
    x = Input(batch_shape=(None, None, 3))
    lstm, dense = openrnn.layers.LSTM(4, seed=1), Dense(2, seed=2)
    model, data = Model(x, dense(lstm(x)[0])), draw(5, 2, 3)
    wanted = model(data).numpy()
    prefix = model.save_weights(str(tmp_path / "w"))
    names = [name for name, _ in openrnn.train.list_variables(prefix)]
    assert "dense/kernel" in names and any("lstm_cell/kernel" in name for name in names)
    for weight in model.weights:
        weight.assign(np.zeros(weight.shape, "float32"))
    assert not np.any(model(data))
    model.load_weights(prefix)
    np.testing.assert_array_equal(model(data), wanted)


@pytest.mark.parametrize("what", ["variables", "canonical tensors", "both"])
def test_weights_of_other_checkpoints(what, tmp_path):
    """Canonical tensors alone do not do, and the error says what does."""
    x = Input(batch_shape=(None, None, 3))
    lstm, dense = openrnn.layers.LSTM(4, seed=1, name="lstm"), Dense(2, seed=2, name="dense")
    model, data = Model(x, dense(lstm(x)[0])), draw(5, 2, 3)
    wanted = model(data).numpy()
    saved = {"variables": model.weights, "canonical tensors": [*dense.weights, lstm.saveable],
             "both": [lstm.saveable, *model.weights]}[what]  # fmt: skip
    prefix = openrnn.train.Saver(saved).save(str(tmp_path / "w"))
    model.set_weights([np.zeros_like(one) for one in model.get_weights()])
    if what != "canonical tensors":
        model.load_weights(prefix)
        np.testing.assert_array_equal(model(data), wanted)
        return
    with pytest.raises(openrnn.ArgumentError) as refused:
        model.load_weights(prefix)
    assert str(refused.value) == (
        f"[Saver::restore] {prefix} lacks 1 of the tensors that the model expects: "
        "lstm/opaque_kernel; a Saver over saveables alone takes a network from its canonical "
        "tensors")
    assert not np.any(model(data)), "nothing was changed"


class Sum(openrnn.layers.Layer):
    """Of all that it is given, each with a factor of its own."""

    def call(self, x, second, pair, *, last, several=()):
        """x + 2 second + 4 pair[0] + 8 pair[1] + 16 last + 32, 64, .. of the several."""
        parts = [x, second, *pair, last, *several]
        return openrnn.add_n([2.0**power * part for power, part in enumerate(parts)])


def test_symbolic_tensors_among_the_arguments_keep_their_places():
    inputs = [Input(batch_shape=(None, 2), name=f"x{i}") for i in range(7)]
    x, second, a, b, last, c, d = inputs
    given = x * 1.0, second * 1.0, (a * 1.0, b), {"last": last * 1.0, "several": [c, d * 1.0]}
    y = Sum()(given[0], given[1], given[2], **given[3])
    model = Model(inputs, [y, Sum()(x, x, (second, x), last=second, several=(second, x))])
    values = [draw(3, 2, dtype="float32") + i for i in range(7)]
    wanted = [sum(2.0**i * value for i, value in enumerate(values)),
              values[0] * (1 + 2 + 8 + 64) + values[1] * (4 + 16 + 32)]  # fmt: skip
    for one in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        for times in range(1, 3):
            found = one([times * value for value in values])
            for part, right in zip(found, wanted, strict=True):
                np.testing.assert_allclose(part, times * right, rtol=1e-6)


def test_dropout_by_either_name():
    x = np.arange(1.0, 4001.0, dtype="float32").reshape(40, 100)
    np.testing.assert_array_equal(openrnn.nn.dropout(x, rate=0.0), x)
    np.testing.assert_array_equal(openrnn.nn.dropout(x, 1.0), x)
    kept = openrnn.nn.dropout(x, 0.25, seed=3).numpy()
    assert set(np.unique(kept / x)) == {0.0, 4.0} and 0.2 < np.mean(kept != 0) < 0.3
    kept = openrnn.nn.dropout(x, rate=0.2, seed=3).numpy()
    assert 0.77 < np.mean(kept != 0) < 0.83
    np.testing.assert_allclose(kept[kept != 0], x[kept != 0] / 0.8, rtol=1e-6)
    for given in ({}, {"keep_prob": 0.5, "rate": 0.5}):
        with pytest.raises(openrnn.ArgumentError) as caught:
            openrnn.nn.dropout(x, **given)
        assert str(caught.value) == "[dropout] expected one of keep_prob and rate"


def test_initializers_by_name():
    get = openrnn.initializers.get
    assert get({"class_name": "ones"}).get_config() == get("ones").get_config()
    assert get({"class_name": "constant", "config": {"value": 0.5}}).get_config() == {"value": 0.5}
    assert get(None) is None and get(len) is len
    with pytest.raises(openrnn.ArgumentError, match=r"\[initializers\] the class is 'one', expected one of \['constant'"):
        get("one")
    with pytest.raises(openrnn.ArgumentError, match="the class is None, expected one of"):
        get({"config": {}})
    assert openrnn.initializers.serialize(len) is len


def test_second_derivatives_at_their_edges():
    x, v = draw(3, dtype="float64"), draw(3, dtype="float64") * 3
    outputs, tangents = openrnn.jvp(
        lambda a: [openrnn.constant(np.ones((2, 1))), a * a], [x], [v]
    )  # fmt: skip
    assert [one.shape for one in tangents] == [(2, 1), (3,)] and tangents[0].dtype == "float64"
    np.testing.assert_array_equal(tangents[0], np.zeros((2, 1)))
    np.testing.assert_allclose(tangents[1], 2 * x * v, rtol=1e-12)
    np.testing.assert_array_equal(outputs[1], x * x)
    cube, none = openrnn.hvp(lambda a, b: openrnn.reduce_sum(a * a * a) + openrnn.reduce_sum(b), [x, x], [v, v])
    np.testing.assert_allclose(cube, 6 * x * v, rtol=1e-12)
    np.testing.assert_array_equal(none, np.zeros(3))
    (found,) = openrnn.hvp(lambda a: openrnn.reshape(openrnn.reduce_sum(a * a), [1, 1]), [x], [v])
    np.testing.assert_allclose(found, 2 * v, rtol=1e-12)
    for call, text in [
        (lambda: openrnn.hvp(lambda a: a, [x], [v]), "[hvp] the function returned shape (3,), expected one element"),
        (lambda: openrnn.hvp(lambda a: a, [x], [v, v]), "[hvp] 2 vectors, expected 1, one a primal"),
        (lambda: openrnn.jvp(lambda a: a, [x], [v[:2]]),
         "[jvp] tangents[0] has shape (2,), expected (3,) as its primal"),
    ]:  # fmt: skip
        with pytest.raises(openrnn.ArgumentError) as caught:
            call()
        assert str(caught.value) == text


def test_predict_is_without_training():
    x, data = Input(batch_shape=(None, 50)), np.ones((40, 50), "float32")
    model = Model(x, openrnn.layers.Dropout(0.5)(x, training=True))
    np.testing.assert_array_equal(model.predict(data), data)
    assert set(np.unique(model(data))) == {0.0, 2.0} == set(np.unique(model(data, training=True)))
    np.testing.assert_array_equal(model(data, training=False), data)


class OneMoreInTraining(openrnn.layers.Layer):
    def call(self, x, training=None):
        return x + (2.0 if training else 1.0)


def nested(recorded, asked):
    """A model over a model, whose layers were recorded with one `training` and the model called
    with another."""
    x, y = Input((None, 50)), Input((None, 50))
    recurrent = openrnn.cudnn_rnn.CudnnLSTM(2, 50, dropout=0.5, seed=2)
    dropped = openrnn.layers.Dropout(0.5, seed=1)(x, training=recorded)
    parts = [dropped, recurrent(x, training=recorded)[0], OneMoreInTraining()(x, training=recorded)]
    return Model(y, Model(x, parts)(y, training=asked))


def which_train(model, **options):
    x = np.ones((4, 3, 50), "float32")
    dropped, recurrent, one_more = (part.numpy() for part in model(x, **options))
    without = model(x, training=False)[1].numpy()
    return [bool((dropped == 0).any()), bool((recurrent != without).any()), one_more.max() == 3]


@pytest.mark.parametrize("recorded", [True, False])
def test_a_model_called_inside_another_keeps_its_training(recorded):
    for asked in (None, True, False):
        openrnn.reset_default_graph()
        model = nested(recorded, asked)
        trains = recorded if asked is None else asked
        for each in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            assert which_train(each) == [trains] * 3
            assert which_train(each, training=True) == [True] * 3
            assert which_train(each, training=False) == [False] * 3
