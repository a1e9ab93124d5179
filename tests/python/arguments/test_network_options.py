"""Every option of a network reaches layers, models and configurations by its name."""

import numpy as np
import openrnn
import pytest
from openrnn import cudnn_rnn
from openrnn.cudnn_rnn import ops

OTHERS = {
    "num_layers": 2,
    "num_units": 6,
    "input_mode": "auto_select",
    "direction": "bidirectional",
    "dropout": 0.25,
    "seed": -3,
    "dtype": "float64",
    "num_proj": 4,
    "cell_clip": (-0.5, 1.5),
    "forget_bias": 1.0,
    "reset_after": False,
    "activation": "leaky_relu(0.25)",
    "recurrent_activation": "hard_sigmoid(0.1875, 0.5)",
    "output_activation": "softsign",
    "use_peepholes": True,
    "coupled_gates": True,
    "proj_clip": (-2.0, 3.0),
    "gate_clip": (-4.0, 5.0),
    "use_bias": False,
    "single_bias": True,
    "layer_norm": "gates",
    "layer_norm_cell": "carried",
    "layer_norm_epsilon": 0.125,
    "zoneout": 0.0625,
    "zoneout_cell": 0.25,
    "input_dropout": 0.125,
    "output_dropout": 0.375,
    "drop_connect": 0.5,
    "recurrent_dropout": 0.75,
    "recurrent_dropout_form": "candidate",
    "math": "bf16x3",
    "weights_dtype": "int8",
}
OPTIONS = {option["name"]: option for option in openrnn.network_options()}


def test_the_table_says_what_there_is() -> None:
    assert set(OPTIONS) == {*OTHERS, "rnn_mode", "input_size"}
    for name, option in OPTIONS.items():
        assert option["help"] and option["type"], name
        assert option["default"] in (*option["choices"], option["default"])
    assert OPTIONS["direction"]["choices"] == ["unidirectional", "bidirectional"]
    assert OPTIONS["seed"]["default"] is None
    assert OPTIONS["dropout"]["default"] == 0.0


@pytest.mark.parametrize("name", OTHERS)
def test_a_layer_takes_it_and_gives_it_back(name: str) -> None:
    plain = {"num_layers": 2, "num_units": 5}
    if name == "proj_clip":
        plain["num_proj"] = 3
    if name in ("layer_norm_cell", "layer_norm_epsilon"):
        plain["layer_norm"] = "products"
    kind = cudnn_rnn.CudnnGRU if name == "reset_after" else cudnn_rnn.CudnnLSTM
    layer = kind(**{**plain, name: OTHERS[name]})
    config = layer.get_config()
    assert config[name] == OTHERS[name]
    assert type(layer).from_config(config).get_config() == config
    default = kind(**plain).get_config()
    assert (name in default) == OPTIONS[name]["always"]
    if name in default and name not in plain:
        assert default[name] == OPTIONS[name]["default"]


def test_one_that_no_signature_names_is_computed() -> None:
    x = 3.0 * np.ones((4, 2, 3), np.float32)
    layer = cudnn_rnn.CudnnLSTM(1, 5, seed=2, cell_clip=(-0.01, 0.02))
    _, _, every = layer(x, return_all=True)
    cells = np.asarray(every.cells[0])
    assert cells.min() >= np.float32(-0.01) and cells.max() <= np.float32(0.02)
    assert (cells == np.float32(0.02)).any()
    model = openrnn.PackedModel.from_layer(layer)
    assert model.spec["cell_clip"] == (-0.01, 0.02)
    y, _ = openrnn.InferenceSession(model).run(x)
    np.testing.assert_array_equal(y, np.asarray(layer(x, training=False)[0]))
    op = ops.CudnnLSTM(1, 5, 3, cell_clip=(-0.01, 0.02))
    zeros = np.zeros((1, 2, 5), np.float32)
    np.testing.assert_array_equal(np.asarray(op(x, zeros, zeros, layer.kernel)[0]), y)


def test_a_forget_bias_is_one_more_bias() -> None:
    x = np.linspace(-1, 1, 24, dtype=np.float64).reshape(4, 2, 3)
    plain = cudnn_rnn.CudnnLSTM(1, 5, seed=2, dtype="float64")
    raised = cudnn_rnn.CudnnLSTM(1, 5, dtype="float64", forget_bias=0.75)
    raised.build((None, None, 3))
    y = np.asarray(plain(x)[0])
    raised.kernel.assign(plain.kernel)
    assert np.abs(np.asarray(raised(x)[0]) - y).max() > 1e-3
    lowered = np.array(plain.kernel)
    forget = slice(-7 * 5, -6 * 5)  # the second of eight biases, in the order i f c o
    lowered[forget] -= 0.75
    raised.kernel.assign(lowered)
    np.testing.assert_allclose(np.asarray(raised(x)[0]), y, rtol=1e-14)


@pytest.mark.parametrize("name", ["rnn_mode", "input_size", "cell_clips"])
def test_what_is_no_option_of_a_layer_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
        cudnn_rnn.CudnnLSTM(1, 5, **{name: 3})
    if name != "input_size":
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
            ops.CudnnGRU(1, 5, 3, **{name: 3})


def test_a_value_that_does_not_fit_is_named() -> None:
    with pytest.raises(TypeError, match="cell_clip is 'str', expected two numbers, or one for both"):
        cudnn_rnn.CudnnLSTM(1, 5, cell_clip="3")
    with pytest.raises(TypeError, match="activation is 'function', expected the name of an activ"):
        cudnn_rnn.CudnnLSTM(1, 5, activation=lambda a: a)
    with pytest.raises(ValueError, match="activation is 'tan', expected one of 'sigmoid', 'tanh'"):
        cudnn_rnn.CudnnLSTM(1, 5, activation="tan")
    with pytest.raises(ValueError, match=r"cell_clip is \[1, -1\], expected low <= high"):
        cudnn_rnn.CudnnLSTM(1, 5, cell_clip=(1.0, -1.0))
    with pytest.raises(ValueError, match="cell_clip is set for gru, expected it for lstm only"):
        cudnn_rnn.CudnnGRU(1, 5, cell_clip=(-1.0, 1.0))
