"""Constructors, networks as text, what modules ask PyTorch's own classes."""

import json

import numpy as np
import openrnn
import pytest
from numpy_torch import DTYPES, Parameter, Tensor
from numpy_torch import torch as numpy_torch
from numpy_torch.modules import Own, PackedSequence
from problems import drawn, ones

nn = numpy_torch.nn


def told(module):
    return (
        module.mode, module.input_size, module.hidden_size, module.num_layers, module.bias,
        module.batch_first, module.dropout, module.bidirectional, module.proj_size, module.made_with,
    )  # fmt: skip


def test_arguments_by_position_and_their_defaults(ours):
    double = DTYPES["float64"]
    lstm = ours.torch.LSTM(3, 4, 2, False, True, 0.25, True, 2, "meta", double)
    assert told(lstm) == ("LSTM", 3, 4, 2, False, True, 0.25, True, 2, ("meta", double))
    gru = ours.torch.GRU(3, 4, 2, False, True, 0.25, True, "meta", double)
    assert told(gru) == ("GRU", 3, 4, 2, False, True, 0.25, True, 0, ("meta", double))
    rnn = ours.torch.RNN(3, 4, 2, "relu", False, True, 0.25, True, "meta", double)
    assert told(rnn) == ("RNN_RELU", 3, 4, 2, False, True, 0.25, True, 0, ("meta", double))
    for name, mode in (("LSTM", "LSTM"), ("GRU", "GRU"), ("RNN", "RNN_TANH")):
        module = getattr(ours.torch, name)(3, 4)
        assert told(module) == (mode, 3, 4, 1, True, False, 0.0, False, 0, (None, None))
        assert module.draws is False and getattr(module, "nonlinearity", "tanh") == "tanh"


@pytest.mark.parametrize("name", ["LSTM", "GRU"])
def test_parameters_of_options_are_where_the_others_are(ours, name):
    double = DTYPES["float64"]
    module = getattr(ours.torch, name)(3, 16, device="meta", dtype=double, layer_norm="products")
    gain = module._parameters["gain_hh_l0"]
    assert gain.dtype is double and gain.device == "meta" and (gain.array == 1).all()
    drawn_again = module._parameters["weight_ih_l0"].array
    assert 0.2 < abs(drawn_again).max() <= 0.25  # 1 / sqrt(hidden_size)


def test_bounds_of_parameters(ours):
    gru = ours.torch.GRU(3, 4)
    for hidden, bound in ((1, 1.0), (100, 0.1), (0, 0.0)):
        gru.hidden_size = hidden
        gru.reset_parameters()
        found = np.concatenate([each.array.ravel() for _, each in gru.named_parameters()])
        assert 0.9 * bound <= abs(found).max() <= bound
        assert found.min() <= -0.9 * bound


def test_options_that_draw(ours):
    for options, draws in (
        ({"recurrent_dropout": 0.1}, True), ({"zoneout": 0.1}, True), ({"zoneout_cell": 0.1}, True),
        ({"recurrent_dropout": 0.0}, False), ({"cell_clip": (-1.0, 1.0)}, False),
    ):  # fmt: skip
        assert ours.torch.LSTM(3, 4, **options).draws is draws


def test_networks_as_text(ours):
    from openrnn.torch._network import text_of

    lstm = ours.torch.LSTM(3, 4, 2, bias=False, dropout=0.25, bidirectional=True, proj_size=2,
                           cell_clip=(-1.0, 2.0))  # fmt: skip
    wanted = {
        "rnn_mode": "lstm", "num_layers": 2, "num_units": 4, "input_size": 3, "use_bias": False,
        "direction": "bidirectional", "dropout": 0.25, "num_proj": 2, "cell_clip": [-1.0, 2.0],
    }  # fmt: skip
    assert json.loads(text_of(lstm)) == wanted
    assert json.loads(text_of(lstm, "bf16")) == {**wanted, "math": "bf16"}
    for module, mode in ((ours.torch.GRU(3, 4), "gru"), (ours.torch.RNN(3, 4), "rnn_tanh"),
                         (ours.torch.RNN(3, 4, nonlinearity="relu"), "rnn_relu"), (nn.GRU(3, 4), "gru")):
        assert json.loads(text_of(module)) == {
            "rnn_mode": mode, "num_layers": 1, "num_units": 4, "input_size": 3, "use_bias": True,
            "direction": "unidirectional", "dropout": 0.0,
        }  # fmt: skip
    own = ours.torch.GRU(3, 4, math="bf16x3")
    assert json.loads(text_of(own, "bf16"))["math"] == "bf16x3"
    assert own.extra_repr() == "what PyTorch says, math='bf16x3'"


def test_what_networks_say_of_themselves(ours):
    from openrnn.torch._network import network, text_of

    modules = [
        ours.torch.LSTM(3, 4, 2, bidirectional=True, proj_size=2), ours.torch.LSTM(3, 4, 3),
        ours.torch.GRU(3, 4, 2, dropout=0.5), ours.torch.GRU(3, 4, zoneout=0.1),
        ours.torch.RNN(3, 4, activation="softsign"),
    ]  # fmt: skip
    made = [network(text_of(module), DTYPES["float64"]) for module in modules]
    told = [(net.input_size, net.units, net.hidden, net.states, net.output, net.has_cell, net.draws)
            for net in made]  # fmt: skip
    assert told == [(3, 4, 2, 4, 4, True, False), (3, 4, 4, 3, 4, True, False), (3, 4, 4, 2, 4, False, True),
                    (3, 4, 4, 1, 4, False, True), (3, 4, 4, 1, 4, False, False)]  # fmt: skip
    for net, module in zip(made, modules, strict=True):
        assert net.text == text_of(module) and net.dtype is DTYPES["float64"]
        shapes = [parameter.shape for _, parameter in module.named_parameters()]
        assert net.names == list(module._parameters) and [piece[0] for piece in net.pieces] == shapes
        assert net.size == sum(np.prod(shape) for shape in shapes) and net.rows is True
        assert network(net.text, DTYPES["float32"]) is not net
        params = Tensor(np.arange(net.size, dtype="float64"))
        pieces = net.split(params)
        assert [piece.shape for piece in pieces] == shapes
        np.testing.assert_array_equal(net.joined(pieces, params).numpy(), params.numpy())
        pieces[0] = None
        kept = net.joined(pieces, params).numpy()
        assert (kept == 0).sum() == np.prod(shapes[0]) + (params.array[0] in pieces[1].array)
    dtypes = r"^\[openrnn.torch\] a network of torch.uint8, expected float32, float64, float16 or bfloat16$"
    with pytest.raises(openrnn.UnsupportedError, match=dtypes):
        network(made[0].text, DTYPES["uint8"])


def test_every_option_of_pytorch_s_is_refused(ours):
    """What a constructor names otherwise, or a module decides at each call."""
    from openrnn.torch._network import check_options

    for name in ("rnn_mode", "num_layers", "num_units", "input_size", "direction", "dtype", "num_proj",
                 "use_bias", "dropout", "seed", "leaves"):  # fmt: skip
        with pytest.raises((openrnn.ArgumentError, TypeError), match=rf"\[?GRU\]?.*{name}"):
            check_options("GRU", {name: 1})
    for name in ("input_dropout", "output_dropout", "drop_connect", "input_mode"):
        text = rf"^\[GRU\] {name} is an option of openrnn.layers, expected modules of torch.nn around this one$"
        with pytest.raises(openrnn.UnsupportedError, match=text):
            check_options("GRU", {name: 1})


def test_what_is_asked_of_pytorch_s_classes(ours):
    """Other packages call these members of a module."""
    for name in ("LSTM", "GRU", "RNN"):
        module = getattr(ours.torch, name)(3, 4)
        kind = name if name == "LSTM" else "base"
        assert module.permute_hidden("hx", "order") == (kind, "permute", ("hx", "order"))
        assert module.get_expected_cell_size("input", "sizes") == ("LSTM", "cell", ("input", "sizes"))
        with pytest.raises(TypeError) as raised:
            module.check_forward_args("input", "hidden", "sizes")
        assert raised.value.args == (kind, (module, "input", "hidden", "sizes")[1:])


def test_a_call_of_an_extended_module_is_refused_as_pytorch_does(ours, monkeypatch):
    """By a module of PyTorch's of the same sizes, which has no weights."""
    from openrnn.torch import _forward

    asked = []

    def refuse(like, input, hx):
        asked.append((told(like), input, hx))
        raise ValueError("PyTorch's own")

    for mode in _forward.OWN_FORWARD:
        monkeypatch.setitem(_forward.OWN_FORWARD, mode, refuse)
    double, half = DTYPES["float64"], DTYPES["float16"]
    lstm = ours.torch.LSTM(3, 4, 2, False, True, 0.25, True, 2, dtype=double, cell_clip=(-1.0, 1.0))
    gru = ours.torch.GRU(3, 4, reset_after=False)
    x, hx = ones(2, 5, 7, dtype="float64"), object()
    for module, given in ((lstm, x), (gru, x.to(half))):
        with pytest.raises(ValueError, match="PyTorch's own"):
            module(given, hx)
        like, input, states = asked.pop()
        assert input is given and states is hx
        assert like == (*told(module)[:6], 0.0, *told(module)[7:9], ("meta", given.dtype))
    with pytest.raises(ValueError, match="PyTorch's own"):
        gru(PackedSequence(x, Tensor(np.array([2, 2]))), hx)
    assert asked.pop()[0][-1] == ("meta", x.dtype)
    rnn = ours.torch.RNN(3, 4, nonlinearity="relu", zoneout=0.5)
    with pytest.raises(ValueError, match="PyTorch's own"):
        rnn(x, hx)
    assert asked.pop()[0][1:] == (*told(rnn)[1:6], 0.0, *told(rnn)[7:9], ("meta", x.dtype))
    text = r"^\[GRU\] a call that this engine does not compute, expected tensors of the parameters' dtype on the cpu$"
    monkeypatch.setitem(_forward.OWN_FORWARD, "GRU", lambda *args: None)
    with pytest.raises(openrnn.ArgumentError, match=text):
        gru(x)


@pytest.mark.parametrize("dtype", ["int64", "uint8"])
def test_a_call_in_a_dtype_that_the_engine_lacks_is_pytorch_s(ours, dtype):
    """Also where the weights are of it, too: no network is asked for."""
    x = ones(5, 2, 3, dtype=dtype)
    packed = PackedSequence(ones(4, 3, dtype=dtype), Tensor(np.array([2, 2])))
    for name in ("LSTM", "GRU", "RNN"):
        module = getattr(ours.torch, name)(3, 4).to(DTYPES[dtype])
        cell = getattr(ours.torch, f"{name}Cell")(3, 4).to(DTYPES[dtype])
        for given in (x, x[:, 0], packed):
            found = module(given)
            assert isinstance(found, Own) and found.input is given, name
        found = cell(x[0])
        assert isinstance(found, Own) and found.kind == f"{name}Cell", name


def test_names_of_the_package(ours):
    names = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNCell", "convert", "enabled", "freeze", "revert",
             "unfreeze"]  # fmt: skip
    assert ours.torch.__all__ == names and all(callable(getattr(ours.torch, name)) for name in names)


def test_classes_that_parametrizations_made(ours):
    """By their members, or by their names."""
    for name, members in (("GRU", {"parametrizations": ()}), ("ParametrizedGRU", {})):
        gru = nn.GRU(3, 4)
        gru.__class__ = type(name, (nn.GRU,), {**members, "more": 5})
        ours.torch.convert(gru)
        assert type(gru).__bases__ == (ours.torch.GRU,) and gru.more == 5 and type(gru).__name__ == name
        assert gru.options == {} and gru.options_text == ""


def test_all_that_was_packed_is_dropped(ours):
    """Also what another arithmetic packed."""
    from numpy_torch import no_grad
    from numpy_torch import told as onlooker

    from openrnn.torch import _forward

    def run(module):
        with no_grad():
            module(drawn(5, 2, 3))
            with onlooker(autocast=DTYPES["bfloat16"]):
                module(drawn(5, 2, 3))
        assert {"_engine", "_engine_bf16"} <= set(module.__dict__)
        assert module._engine.net.text == _forward.text_of(module)
        assert '"math": "bf16"' in module._engine_bf16.net.text

    gru = ours.torch.GRU(3, 4)
    for way in (ours.torch.freeze, ours.torch.unfreeze, lambda m: m.to(DTYPES["float32"]),
                lambda m: m.load_state_dict(dict(m.named_parameters())), ours.torch.revert):
        run(gru)
        way(gru)
        assert not [name for name in gru.__dict__ if name.startswith("_engine")]
    gru.__dict__["_engine"] = 5  # of a call inside enabled()
    ours.torch.convert(gru)
    assert "_engine" not in gru.__dict__
    assert isinstance(gru.weight_ih_l0, Parameter)


def test_where_pytorch_s_threads_are_looked_for(ours, monkeypatch):
    import importlib

    from openrnn import _core, _torch_threads

    asked = []
    monkeypatch.setattr(_core, "find_torch_threads", lambda path: asked.append(path) or "found")
    assert importlib.reload(_torch_threads).FOUND == "found"
    assert asked == ["/nowhere/torch/lib/libtorch_cpu.so"]
    assert _torch_threads.count is numpy_torch.get_num_threads
    monkeypatch.undo()
    assert importlib.reload(_torch_threads).FOUND is not None
