"""Files and configurations are plain Keras's; install(), uninstall(), convert()."""

import json
import os
import subprocess
import sys
import zipfile

import keras
import numpy as np
import openrnn
import openrnn.keras as ours
import pytest
from framework import count_calls, numpy_of, tensor_of

NAMES = ("LSTM", "GRU", "SimpleRNN")
PLAIN = {name: getattr(keras.layers, name) for name in NAMES}


def build(place, seed=5):
    keras.utils.set_random_seed(seed)
    return keras.Sequential([
        keras.Input((5, 3)),
        place.Bidirectional(place.LSTM(4, return_sequences=True, activation="softsign")),
        place.GRU(3, return_sequences=True, reset_after=False),
        place.SimpleRNN(2),
    ])


def inputs():
    return np.random.default_rng(7).normal(size=(2, 5, 3)).astype("float32")


def without_names(value):
    if isinstance(value, dict):
        return {k: without_names(v) for k, v in value.items() if k not in ("name", "keras_history", "shared_object_id")}
    return [without_names(each) for each in value] if isinstance(value, list) else value


def test_what_is_written_is_plain(tmp_path):
    configs = []
    for n, place in enumerate((ours, keras.layers)):
        model = build(place)
        model.save(tmp_path / f"{n}.keras")
        with zipfile.ZipFile(tmp_path / f"{n}.keras") as file:
            configs.append(without_names(json.loads(file.read("config.json"))))
    assert configs[0] == configs[1]


def test_files_both_ways(tmp_path):
    path, x = tmp_path / "model.keras", tensor_of(inputs())
    for place, other in ((ours, keras.layers), (keras.layers, ours)):
        model = build(place)
        right = numpy_of(model(x))
        model.save(path)
        loaded = keras.models.load_model(path)
        assert type(loaded.layers[1]) is keras.layers.GRU
        np.testing.assert_allclose(numpy_of(loaded(x)), right, rtol=0, atol=1e-6)
        ours.convert(loaded)
        assert type(loaded.layers[1]) is ours.GRU
        assert type(loaded.layers[0]) is ours.Bidirectional
        assert type(loaded.layers[0].forward_layer) is ours.LSTM
        np.testing.assert_allclose(numpy_of(loaded(x)), right, rtol=0, atol=1e-6)
        model.save_weights(tmp_path / "model.weights.h5")
        again = build(other, seed=6)
        again.load_weights(tmp_path / "model.weights.h5")
        np.testing.assert_allclose(numpy_of(again(x)), right, rtol=0, atol=1e-6)


def test_keras_alone_reads_a_file(tmp_path):
    path = tmp_path / "model.keras"
    model = build(ours)
    model.save(path)
    np.save(tmp_path / "x.npy", inputs())
    program = (
        "import sys, numpy, keras; folder = sys.argv[1]; "
        "model = keras.models.load_model(folder + '/model.keras'); "
        "assert 'openrnn' not in sys.modules; "
        "y = model(numpy.load(folder + '/x.npy')); "
        "numpy.save(folder + '/y.npy', keras.ops.convert_to_numpy(y))"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, env=os.environ)
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), numpy_of(model(tensor_of(inputs()))),
                               rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_configurations(name):
    layer = getattr(ours, name)(3, dropout=0.1, go_backwards=True, bias_regularizer="l1")
    plain = PLAIN[name].from_config(layer.get_config())
    assert plain.get_config() == layer.get_config()
    again = getattr(ours, name).from_config(plain.get_config())
    assert type(again) is getattr(ours, name) and again.get_config() == layer.get_config()
    assert keras.layers.serialize(layer) == keras.layers.serialize(plain)
    cloned = keras.models.clone_model(build(ours))
    assert type(cloned.layers[1]) is ours.GRU
    assert type(cloned.layers[0].backward_layer) is ours.LSTM


def test_install(monkeypatch):
    calls = count_calls(monkeypatch)
    x = tensor_of(inputs())
    own = {name: cls.__dict__.get("inner_loop") for name, cls in PLAIN.items()}
    model = build(keras.layers)
    right = numpy_of(model(x))
    assert not calls
    with ours.install():
        with ours.install():  # a second one changes nothing, nor does its end
            pass
        found = numpy_of(model(x))
        assert [place.directions for place in calls] == [2, 1, 1]
        made_inside = keras.layers.LSTM(3)
        made_inside.supports_jit  # noqa: B018
        np.testing.assert_allclose(numpy_of(build(keras.layers)(x)), right, rtol=0, atol=1e-6)
        assert isinstance(numpy_of(ours.LSTM(2)(x)), np.ndarray)
    np.testing.assert_allclose(found, right, rtol=0, atol=1e-6)
    count = len(calls)
    np.testing.assert_array_equal(numpy_of(model(x)), right)
    made_inside(x)
    assert made_inside.supports_jit in (True, False)
    assert len(calls) == count
    assert {name: cls.__dict__.get("inner_loop") for name, cls in PLAIN.items()} == own
    assert not any("supports_jit" in cls.__dict__ for cls in PLAIN.values())
    ours.uninstall()  # nothing to undo
    ours.install()
    ours.install()
    ours.uninstall()
    assert {name: cls.__dict__.get("inner_loop") for name, cls in PLAIN.items()} == own


def test_convert_refuses_what_is_no_model():
    with pytest.raises(openrnn.ArgumentError, match=r"\[convert\] a dict, expected a model"):
        ours.convert({})


def test_no_backend_of_ours(monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "openvino")
    assert "backend is openvino" in ours.why_not(ours.LSTM(3))
