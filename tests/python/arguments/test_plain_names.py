"""layers.LSTM, GRU and RNN: the Cudnn layers, with each option of a network as an argument."""

import copy
import inspect
import pickle

import numpy as np
import openrnn
import pytest
from test_network_options import OPTIONS, OTHERS
from openrnn import cudnn_rnn, layers

X = np.random.default_rng(3).normal(size=(5, 2, 3)).astype("float32")
KINDS = {
    layers.LSTM: cudnn_rnn.CudnnLSTM,
    layers.GRU: cudnn_rnn.CudnnGRU,
    layers.RNN: cudnn_rnn.CudnnRNNTanh,
}
# What a layer has beside its network.
OWN = {"kernel_initializer", "bias_initializer", "name", "trainable", "activity_regularizer",
       "device"}  # fmt: skip


def is_option_of(cls: type, name: str) -> bool:
    """Whether the network itself takes an option that is not at its default."""
    gru = cls is cudnn_rnn.CudnnGRU
    needs = name == "proj_clip" or (name == "zoneout_cell" and gru)
    others = {"num_proj": 3} if needs else {}
    if name in ("layer_norm_cell", "layer_norm_epsilon"):
        others["layer_norm"] = "products"
    value = "products" if name == "layer_norm" and gru else OTHERS[name]
    try:
        cls(**{"num_layers": 2, "num_units": 5, **others, name: value})
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("plain", KINDS)
def test_the_arguments_are_the_options_of_its_network(plain: type) -> None:
    parameters = dict(inspect.signature(plain).parameters)
    assert list(parameters)[:2] == ["num_units", "num_layers"]
    assert all(one.kind is one.KEYWORD_ONLY for one in list(parameters.values())[2:])
    named = {name for name in OTHERS if is_option_of(KINDS[plain], name)}
    assert set(parameters) == named | OWN
    for name in named - {"num_units", "activation"}:
        assert parameters[name].default == OPTIONS[name]["default"], name
    assert parameters["activation"].default == ("tanh" if plain is layers.RNN else None)


@pytest.mark.parametrize("plain", KINDS)
def test_it_is_the_layer(plain: type) -> None:
    named = {name for name in OTHERS if name in inspect.signature(plain).parameters}
    # Layer normalization goes neither with reset_after=False nor with zoneout.
    left_out = {
        "math", "weights_dtype", "input_mode", "use_bias", "layer_norm", "layer_norm_cell",
        "layer_norm_epsilon"
    }  # fmt: skip
    # A projection of a gru does not go with reset_after=False either.
    left_out |= {"num_proj", "proj_clip", "zoneout_cell"} if plain is layers.GRU else set()
    given = {name: OTHERS[name] for name in named - left_out}
    one, other = plain(**given), KINDS[plain](**given)
    x = X.astype("float64")
    one.build((None, None, 3)), other.build((None, None, 3))
    other.kernel.assign(one.kernel)
    np.testing.assert_array_equal(one(x, training=False)[0], other(x, training=False)[0])
    assert isinstance(one, cudnn_rnn._layers.CudnnRNN)
    config = one.get_config()
    assert {name: config[name] for name in given} == given
    again = type(one).from_config(config)
    assert type(again) is plain and again.get_config() == config


@pytest.mark.parametrize("plain", KINDS)
def test_its_name_is_that_of_its_variables_and_tensors(plain: type, tmp_path) -> None:
    name = plain.__name__.lower()
    with openrnn.Graph().as_default():
        layer = plain(4, 2, seed=5)
        y = np.asarray(layer(X, training=False)[0])
        assert repr(layer) == f"<openrnn.{plain.__name__} '{name}'>"
        assert layer.kernel.name == f"{name}/opaque_kernel"
        openrnn.train.Saver().save(str(tmp_path / "model"))
        assert plain(4)(X) and plain(4).name.startswith(name)
    names = [name for name, _ in openrnn.train.list_variables(str(tmp_path / "model"))]
    assert any(one.startswith(f"{name}/rnn/multi_rnn_cell/cell_1/") for one in names)
    with openrnn.Graph().as_default():
        restored = plain(4, 2)
        restored.build((None, None, 3))
        openrnn.train.Saver().restore(str(tmp_path / "model"))
        np.testing.assert_array_equal(restored(X, training=False)[0], y)
    packed = openrnn.PackedModel.from_layer(layer)
    np.testing.assert_array_equal(openrnn.InferenceSession(packed).run(X)[0], y)
    for made in (copy.copy(layer), copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)),
                 layer.with_arithmetic()):  # fmt: skip
        assert type(made) is plain
        np.testing.assert_array_equal(made(X, training=False)[0], y)


def test_the_class_of_a_layer_whose_object_is_gone() -> None:
    for plain in KINDS:
        given = openrnn.Input(batch_shape=(None, None, 3))
        model = openrnn.Model(given, plain(4)(given)[0])
        assert type(model.layers[-1]) is plain


def test_activations_of_a_plain_network() -> None:
    for activation, mode in (("tanh", "rnn_tanh"), ("relu", "rnn_relu"), ("elu(0.5)", "rnn_tanh")):
        layer = layers.RNN(4, activation=activation, seed=1)
        assert layer.rnn_mode == mode
        assert layer.get_config()["activation"] == activation
    assert layers.RNN(4, activation=None).rnn_mode == "rnn_tanh"
    linear = layers.RNN(4, activation="linear", seed=1)
    y, (h,) = linear(X, training=False)
    twice, _ = linear(2 * X, training=False)
    np.testing.assert_allclose(twice, 2 * np.asarray(y), rtol=1e-5)
    np.testing.assert_array_equal(np.asarray(y)[-1], np.asarray(h)[0])


def test_what_it_refuses() -> None:
    with pytest.raises(TypeError, match=r"GRU.__init__\(\) got an unexpected keyword .*'cell_clip'"):
        layers.GRU(4, cell_clip=1.0)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="positional"):
        layers.LSTM(4, 1, "linear_input")  # type: ignore[misc]
    with pytest.raises(ValueError, match="num_units is 0"):
        layers.RNN(0)
    with pytest.raises(TypeError, match="input_mode is 'int', expected a string"):
        layers.LSTM(4, input_mode=3)  # type: ignore[arg-type]
    with pytest.warns(UserWarning, match=r"\[LSTM\] dropout is 0.5 with num_layers=1"):
        layers.LSTM(4, dropout=0.5)
