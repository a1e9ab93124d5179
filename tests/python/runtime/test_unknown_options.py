"""An option that a network, or a call of this kind, does not have is an error and never left out."""

import numpy as np
import openrnn
import pytest
from openrnn import cudnn_rnn, layers
from openrnn.cudnn_rnn import ops

SIZES = {"num_layers": 1, "num_units": 5, "input_size": 2}
PARAMS = np.zeros(220, "float32")
LAYER = {"num_layers": 1, "num_units": 5}
ALL = {option["name"] for option in openrnn.network_options()}


def saveable(**kw):
    variable = openrnn.Variable(PARAMS)
    return cudnn_rnn.CudnnLSTMSaveable(variable, **{**SIZES, **kw})


# What is called, and the options of a network that it does not take.
CALLS = {
    "PackedModel": (lambda **kw: openrnn.PackedModel(PARAMS, "lstm", **{**SIZES, **kw}),
                    {"dropout", "seed"}),
    "CudnnLSTMSaveable": (saveable, {"rnn_mode", "dtype"}),
    "CudnnParamsFormatConverterLSTM": (
        lambda **kw: cudnn_rnn.CudnnParamsFormatConverterLSTM(**{**SIZES, **kw}),
        {"rnn_mode", "dtype"}),
    "CudnnLSTM": (lambda **kw: cudnn_rnn.CudnnLSTM(**{**LAYER, **kw}), {"rnn_mode", "input_size"}),
    "CudnnGRU": (lambda **kw: ops.CudnnGRU(**{**SIZES, **kw}), {"rnn_mode", "num_proj"}),
    "LSTM": (lambda **kw: layers.LSTM(**{**LAYER, **kw}), {"rnn_mode", "input_size", "reset_after"}),
    "GRU": (lambda **kw: layers.GRU(**{**LAYER, **kw}),
            {"rnn_mode", "input_size", "cell_clip", "forget_bias", "output_activation",
             "use_peepholes", "coupled_gates", "layer_norm_cell"}),
    "explain": (lambda **kw: openrnn.explain(**{**SIZES, **kw}), set()),
    "Run": (lambda **kw: openrnn.train.Run("out", **kw),
            {"input_size", "direction", "weights_dtype", "rnn_mode", "num_layers", "num_units"}),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_an_unknown_option(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call, others = CALLS[name]
    for option in ("cell_clips", "units_", *sorted(others)):
        with pytest.raises(TypeError) as caught:
            call(**{option: 1})
        assert f"unexpected keyword argument '{option}'" in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_every_other_option_of_a_packed_model_is_computed_or_refused_by_its_value():
    """None of them is taken and forgotten: 'wrong' as a value is named."""
    for option in sorted(ALL - {"rnn_mode", "dropout", "seed", "num_layers", "num_units", "input_size"}):
        with pytest.raises((TypeError, ValueError)) as caught:
            openrnn.PackedModel(PARAMS, "lstm", **SIZES, **{option: object()})
        assert option in str(caught.value) or "dtype" in option, (option, str(caught.value))
