"""Modules beside their results: constructors, convert, freeze, copies, packed weights, autocast, cells."""

import copy
import pickle
import warnings

import numpy as np
import openrnn
import pytest
from numpy_torch import DTYPES, Parameter, Tensor, no_grad, told
from numpy_torch import torch as numpy_torch
from numpy_torch.modules import Own
from problems import Rows, drawn, ones

nn = numpy_torch.nn


OPTIONS = {"LSTM": {"use_peepholes": True}, "GRU": {"reset_after": False}}
SHAPES = {
    "LSTM": {"weight_ih": (16, 3), "weight_hh": (16, 4), "bias_ih": (16,), "bias_hh": (16,), "peephole": (12,)},
    "GRU": {"weight_ih": (12, 3), "weight_hh": (12, 4), "bias_ih": (12,), "bias_hh": (12,)},
}


def test_parameters_of_options(ours):
    for name, shapes in SHAPES.items():
        module = getattr(ours.torch, name)(3, 4, **OPTIONS[name])
        assert {k: v.shape for k, v in module.named_parameters()} == {f"{k}_l0": v for k, v in shapes.items()}
        assert module._flat_weights_names == list(module._parameters)
        assert module._all_weights == [module._flat_weights_names]
        (option, value), = OPTIONS[name].items()
        assert module.extra_repr() == f"what PyTorch says, {option}={value}"
        for _, parameter in module.named_parameters():
            assert 0 < abs(parameter.array).max() <= 0.5  # 1 / sqrt(hidden_size)
    both = ours.torch.LSTM(3, 4, 2, bidirectional=True, use_peepholes=True)
    assert [len(each) for each in both._all_weights] == [5] * 4
    assert both._all_weights[1][0] == "weight_ih_l0_reverse" and both._all_weights[2][4] == "peephole_l1"


def test_gains_are_one_and_biases_of_cells_zero(ours):
    module = ours.torch.LSTM(3, 4, layer_norm="products", layer_norm_cell="output")
    names = [name for name in module._parameters if not name.startswith(("weight", "bias"))]
    assert names == ["gain_ih_l0", "gain_hh_l0", "cell_gain_l0", "cell_bias_l0"]
    assert "gain_l0" in ours.torch.LSTM(3, 4, layer_norm="gates")._parameters
    for name, parameter in module.named_parameters():
        if "gain" in name:
            assert (parameter.array == 1).all(), name
        elif name.startswith("cell_bias"):
            assert not parameter.array.any(), name
        else:
            assert len(np.unique(parameter.array)) > 1, name


def test_options_draw_no_random_numbers_but_their_own(ours):
    """Parameters of PyTorch's own are drawn in PyTorch's order, with options or without."""
    made = []
    for options in ({}, {"use_peepholes": True}):
        numpy_torch.set_rng_state(7)
        made.append(ours.torch.LSTM(3, 4, **options))
        state = numpy_torch.get_rng_state()
    assert state == 7 + 4 + 5  # four of its own, then all five again
    assert made[0].options == {} and made[0].options_text == ""


def test_options_that_are_refused(ours):
    for name in ("input_dropout", "output_dropout", "drop_connect", "input_mode"):
        with pytest.raises(openrnn.UnsupportedError, match=rf"^\[LSTM\] {name} is an option of openrnn.layers"):
            ours.torch.LSTM(3, 4, **{name: 0.1})
    for name in ("num_units", "rnn_mode", "seed", "dtype_", "direction"):
        with pytest.raises((openrnn.ArgumentError, TypeError), match=name):
            ours.torch.GRU(3, 4, **{name: 1})
    for kind in ("GRU", "RNN"):
        with pytest.raises(ValueError, match="^proj_size argument is only supported for LSTM"):
            getattr(ours.torch, kind)(3, 4, proj_size=2)
    with pytest.raises(ValueError, match="^Unknown nonlinearity 'gelu'. Select from 'tanh' or 'relu'.$"):
        ours.torch.RNN(3, 4, nonlinearity="gelu")


def test_options_are_computed(ours):
    """The option reaches the network: against a layer of the package with the same parameters."""
    module = ours.torch.GRU(3, 4, reset_after=False).eval()
    plain = ours.torch.GRU(3, 4).eval()
    plain._parameters.update(module._parameters)
    x = drawn(5, 2, 3)
    y = module(x)[0].numpy()
    assert abs(y - plain(x)[0].numpy()).max() > 1e-3
    with told(compiling=True):
        np.testing.assert_array_equal(module(x)[0].numpy(), y)
    clipped = ours.torch.LSTM(3, 4, cell_clip=(-0.01, 0.02))
    assert clipped.options == {"cell_clip": [-0.01, 0.02]}
    c = clipped(x)[1][1].numpy()
    assert c.min() >= np.float32(-0.01) and c.max() <= np.float32(0.02)


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "RNNCell"])
def test_convert_and_back(ours, name):
    theirs, mine = getattr(nn, name), getattr(ours.torch, name)
    model = nn.Sequential(nn.Sequential(theirs(3, 4)), nn.Module())
    inner = model[0][0]
    held = dict(inner._parameters)
    assert ours.torch.convert(model) is model
    assert type(inner) is mine and inner._parameters == held
    x = ones(2, 3) if name.endswith("Cell") else ones(5, 2, 3)
    y = inner(x)
    assert not isinstance(y, Own)
    assert ours.torch.revert(model) is model
    assert type(inner) is theirs and isinstance(inner(x), Own)
    assert not {"options", "options_text", "_engine"} & set(inner.__dict__)
    with ours.torch.enabled():
        assert not isinstance(inner(x), Own)
        with ours.torch.enabled():
            pass
        again = inner(x)
        assert type(inner) is theirs and not isinstance(again, Own)
    assert isinstance(inner(x), Own)


def test_enabled_ends_with_an_error(ours):
    gru = nn.GRU(3, 4)
    with pytest.raises(KeyError), ours.torch.enabled():
        raise KeyError
    assert isinstance(gru(ones(5, 2, 3)), Own)


def test_what_convert_and_revert_refuse(ours):
    class Louder(nn.GRU):
        pass

    model = nn.Sequential(Louder(3, 4), nn.LSTM(3, 4))
    with pytest.warns(UserWarning, match=r"^\[convert\] '0' is a Louder, a subclass of a module of torch.nn") as found:
        ours.torch.convert(model)
    assert found[0].filename == __file__
    assert type(model[0]) is Louder and type(model[1]) is ours.torch.LSTM
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours.torch.convert(nn.Sequential(ours.torch.GRU(3, 4)))
    for name in ("convert", "revert", "freeze", "unfreeze"):
        with pytest.raises(openrnn.ArgumentError, match=rf"^\[{name}\] 'dict' is given, expected a torch.nn.Module$"):
            getattr(ours.torch, name)({})
    model = nn.Sequential(ours.torch.LSTM(3, 4), ours.torch.LSTM(3, 4, use_peepholes=True, cell_clip=(-1.0, 1.0)))
    with pytest.raises(openrnn.ArgumentError, match=r"^\[revert\] '1' has use_peepholes, cell_clip, expected a"):
        ours.torch.revert(model)
    assert type(model[0]) is ours.torch.LSTM
    with pytest.raises(openrnn.ArgumentError, match=r"^\[freeze\] a Sequential without a module of openrnn.torch"):
        ours.torch.freeze(nn.Sequential(nn.GRU(3, 4)))
    for name in ("LSTM", "GRUCell"):
        with pytest.raises(openrnn.UnsupportedError, match=rf"^\[torch.jit.script\] openrnn.torch.{name}, "):
            getattr(ours.torch, name)(3, 4).__prepare_scriptable__()


def test_a_parametrized_module_keeps_its_class_of_its_own(ours):
    gru = nn.GRU(3, 4)
    weight = gru._parameters.pop("weight_hh_l0")
    doubled = property(lambda self: Tensor(2 * weight.array))
    gru.__class__ = type("ParametrizedGRU", (nn.GRU,), {"weight_hh_l0": doubled, "parametrizations": ()})
    ours.torch.convert(gru)
    assert type(gru).__bases__ == (ours.torch.GRU,) and type(gru).__name__ == "ParametrizedGRU"
    plain = ours.torch.GRU(3, 4)
    plain._parameters.update(gru._parameters, weight_hh_l0=Parameter(Tensor(2 * weight.array)))
    x = drawn(5, 2, 3)
    np.testing.assert_array_equal(gru(x)[0].numpy(), plain(x)[0].numpy())
    ours.torch.revert(gru)
    assert type(gru).__bases__ == (nn.GRU,)


def test_weights_as_attributes(ours):
    """What stands in a module's dictionary goes before its parameter, as functional_call has it."""
    gru, other = ours.torch.GRU(3, 4), ours.torch.GRU(3, 4)
    x = drawn(5, 2, 3)
    with no_grad():
        gru(x)
        gru.__dict__["weight_ih_l0"] = other.weight_ih_l0
        found = gru(x)[0].numpy()
        del gru.__dict__["weight_ih_l0"]
        gru._parameters["weight_ih_l0"] = other.weight_ih_l0
        np.testing.assert_array_equal(gru(x)[0].numpy(), found)


def test_frozen_weights_are_not_read(ours):
    gru = ours.torch.GRU(3, 4).eval()
    x = drawn(5, 2, 3)
    with no_grad():
        first = gru(x)[0].numpy()
        gru.weight_ih_l0.array[...] += 1
        second = gru(x)[0].numpy()
        assert abs(first - second).max() > 1e-3
        assert ours.torch.freeze(gru) is gru
        for _ in range(2):
            np.testing.assert_array_equal(gru(x)[0].numpy(), second)
        gru.weight_ih_l0.array[...] -= 1
        np.testing.assert_array_equal(gru(x)[0].numpy(), second)
        alone = gru(x[:, 0])[0].numpy()  # not the most usual call
        np.testing.assert_allclose(alone, second[:, 0], atol=1e-6)
        assert gru._engine.held.packings == 1
    for parameter in gru._parameters.values():
        parameter.requires_grad = False
    np.testing.assert_allclose(gru(x)[0].numpy(), second, atol=1e-6)
    for parameter in gru._parameters.values():
        parameter.requires_grad = True
    y = gru(x)[0]  # with gradients weights are read
    assert y.requires_grad and abs(y.numpy() - second).max() > 1e-3
    with no_grad():
        np.testing.assert_allclose(gru(x)[0].numpy(), first, atol=1e-6)
        state = {name: Tensor(p.array.copy()) for name, p in gru.named_parameters()}
        state["weight_ih_l0"].array[...] += 1
        gru.load_state_dict(state)
        np.testing.assert_allclose(gru(x)[0].numpy(), second, atol=1e-6)
        gru.weight_ih_l0.array[...] -= 1
        assert ours.torch.unfreeze(gru) is gru
        np.testing.assert_allclose(gru(x)[0].numpy(), first, atol=1e-6)
        gru.weight_ih_l0.array[...] += 1
        np.testing.assert_allclose(gru(x)[0].numpy(), second, atol=1e-6)


@pytest.mark.parametrize("name", ["GRU", "GRUCell"])
def test_frozen_weights_that_are_moved(ours, name):
    """What `.to()` and the like make of parameters is read."""
    module = ours.torch.freeze(getattr(ours.torch, name)(3, 4).eval())
    x = drawn(2, 3) if name == "GRUCell" else drawn(5, 2, 3)
    of = lambda found: (found[0] if isinstance(found, tuple) else found).numpy()
    with no_grad():
        first = of(module(x))
        module._apply(lambda parameter: Tensor(parameter.array + 1))
        second = of(module(x))
        assert abs(second - first).max() > 1e-3
        np.testing.assert_array_equal(of(ours.torch.unfreeze(module)(x)), second)


def test_packed_weights_are_used_again(ours):
    gru, x = ours.torch.GRU(3, 4).eval(), drawn(5, 2, 3)
    with no_grad():
        for _ in range(3):
            gru(x)
        assert gru._engine.held.packings == 1
        gru.weight_hh_l0.array[1, 2] += 1
        gru(x)
        assert gru._engine.held.packings == 2
    for way in ({}, {"transforms": True}):  # packed for training, once
        with told(**way):
            gru(x), gru(x)
    assert gru._engine.held.packings == 3


def test_what_is_kept_is_not_copied(ours):
    lstm, x = ours.torch.LSTM(3, 4, cell_clip=(-1.0, 1.0)), drawn(5, 2, 3)
    y = lstm(x)[0].numpy()
    for other in (copy.deepcopy(lstm), pickle.loads(pickle.dumps(lstm))):
        assert other.__dict__["_engine"] is None
        assert other.options == lstm.options and other.options_text == lstm.options_text
        np.testing.assert_array_equal(other(x)[0].numpy(), y)
    assert "_engine" not in lstm._replicate_for_data_parallel().__dict__ and lstm._engine
    old = ours.torch.GRU(3, 4)
    state = {k: v for k, v in old.__dict__.items() if not k.startswith("options")}
    new = ours.torch.GRU.__new__(ours.torch.GRU)
    new.__setstate__(state)
    assert new.options == {} and new.options_text == ""
    double = ours.torch.GRU(3, 4)
    double(ones(5, 2, 3))
    double.to(DTYPES["float64"])
    assert double(ones(5, 2, 3, dtype="float64"))[0].dtype.name == "float64"


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_half_precision(ours, name):
    gru = ours.torch.GRU(3, 4, dtype=DTYPES[name])
    exact = ours.torch.GRU(3, 4)
    for key, parameter in gru.named_parameters():
        exact._parameters[key] = Parameter(parameter.to(DTYPES["float32"]))
    y = gru(drawn(5, 2, 3).to(DTYPES[name]))[0]
    right = exact(drawn(5, 2, 3).to(DTYPES[name]).to(DTYPES["float32"]))[0]
    assert y.dtype is DTYPES[name]
    np.testing.assert_allclose(y.numpy().astype("float32"), right.numpy(), atol=0.02)
    with pytest.raises(openrnn.UnsupportedError, match=r"^\[openrnn.torch\] a network of torch.int64, expected float32"):
        from openrnn.torch._network import network

        network("{}", DTYPES["int64"])


def test_dropout_is_of_training(ours):
    gru, x = ours.torch.GRU(3, 4, 2, dropout=0.5), drawn(5, 2, 3)
    first, second = gru(x)[0].numpy(), gru(x)[0].numpy()
    assert abs(first - second).max() > 1e-3
    gru.eval()
    plain = gru(x)[0].numpy()
    np.testing.assert_array_equal(gru(x)[0].numpy(), plain)
    with no_grad():
        np.testing.assert_array_equal(gru(x)[0].numpy(), plain)
        gru.train()
        assert abs(gru(x)[0].numpy() - plain).max() > 1e-3
        assert abs(gru(x)[0].numpy() - gru(x)[0].numpy()).max() > 1e-3
        gru.dropout = 0.0
        for _ in range(2):
            np.testing.assert_array_equal(gru(x)[0].numpy(), plain)
        gru.dropout = 0.5
        assert abs(gru(x)[0].numpy() - plain).max() > 1e-3
        with told(compiling=True):
            gru.dropout = 0.5
            assert abs(gru(x)[0].numpy() - gru(x)[0].numpy()).max() > 1e-3
            np.testing.assert_array_equal(gru.eval()(x)[0].numpy(), plain)
    numpy_torch.set_rng_state(3)
    zoned = ours.torch.LSTM(3, 4, zoneout=0.5)
    assert zoned.draws and not ours.torch.LSTM(3, 4, zoneout=0.0).draws
    for way in ({}, {"compiling": True}):
        with told(**way):
            assert abs(zoned(x)[0].numpy() - zoned(x)[0].numpy()).max() > 1e-3


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
def test_autocast(ours, name, packed):
    """Products of bfloat16; results as PyTorch has them: of the states' dtype, or the input's."""
    module = getattr(ours.torch, name)(3, 4)
    x, half = drawn(5, 2, 3), DTYPES["bfloat16"]
    states = [drawn(1, 2, 4)] * (2 if name == "LSTM" else 1)
    hx = tuple(states) if name == "LSTM" else states[0]
    plain = module(x, hx)[0].numpy()
    input = Rows([5, 5], 5).packed(Tensor(x.array.reshape(10, 3))) if packed else x
    given = input._replace(data=input.data.to(half)) if packed else x.to(half)
    with told(autocast=half):
        y, last = module(given, hx)
        alone, _ = module(given)
        assert not packed or all(a is b for a, b in zip(y[1:], given[1:], strict=True))
        judge = module(input, hx)[0]
        halves = [each.to(half) for each in states]
        assert module(input, tuple(halves) if name == "LSTM" else halves[0])[0].data.dtype is half
    y, alone, judge = (getattr(each, "data", each) if packed else each for each in (y, alone, judge))
    last = last if isinstance(last, tuple) else (last,)
    assert name == "RNN" or abs(judge.numpy().reshape(plain.shape) - plain).max() > 1e-6
    of_states = half if name == "RNN" else DTYPES["float32"]
    assert {each.dtype for each in (y, *last)} == {of_states} and alone.dtype is half
    assert judge.dtype is of_states
    y = y.numpy().astype("float32").reshape(plain.shape)
    assert 1e-6 < abs(y - plain).max() < 0.05
    exact = getattr(ours.torch, name)(3, 4, math="bf16x3")  # a choice of the module's own
    exact._parameters.update(module._parameters)
    with told(autocast=half):
        chosen = exact(input, hx)[1]
    chosen = (chosen if isinstance(chosen, tuple) else (chosen,))[0].numpy()
    right = exact(input, hx)[1]
    right = (right if isinstance(right, tuple) else (right,))[0].to(last[0].dtype).numpy()
    np.testing.assert_array_equal(chosen, right)
    with told(autocast=DTYPES["int64"]):
        if name == "RNN":  # its results would be integers
            assert isinstance(module(x), Own)


def test_onlookers_that_pytorch_serves(ours):
    module = ours.torch.LSTM(3, 4)
    x = ones(5, 2, 3)
    for onlooker in ({"tracing": object()}, {"onnx": True, "compiling": True}):
        with told(**onlooker):
            assert isinstance(module(x), Own)
    with told(onnx=True, compiling=True):
        assert not isinstance(ours.torch.LSTM(3, 4, use_peepholes=True)(x), Own)
    with told(tracing=object(), compiling=True):
        assert not isinstance(module(x), Own)


@pytest.mark.parametrize("way", [{}, {"grad": False}, {"compiling": True}], ids=str)
@pytest.mark.parametrize("nonlinearity", ["tanh", "relu"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
def test_cells_are_modules_of_one_step(ours, name, bias, nonlinearity, way):
    more = {"nonlinearity": nonlinearity} if name == "RNN" else {}
    cell = getattr(ours.torch, f"{name}Cell")(3, 4, bias=bias, **more)
    module = getattr(ours.torch, name)(3, 4, bias=bias, **more)
    for key, parameter in cell.named_parameters():
        if parameter is not None:
            module._parameters[f"{key}_l0"] = parameter
    x, states = drawn(2, 3), [drawn(2, 4), Tensor(drawn(2, 4).array + 1)][: 2 if name == "LSTM" else 1]
    hx = (lambda each: tuple(each) if name == "LSTM" else each[0])
    right = module(x.unsqueeze(0), hx([each.unsqueeze(0) for each in states]))[1]
    zeros = module(x.unsqueeze(0))[1]
    of = lambda last: [each.numpy() for each in (last if isinstance(last, tuple) else (last,))]
    with told(**way):
        found, alone, none = cell(x, hx(states)), cell(x[1], hx([each[1] for each in states])), cell(x)
    for a, b, c, d, e in zip(of(found), of(alone), of(right), of(none), of(zeros), strict=True):
        np.testing.assert_array_equal(a, c[0])
        np.testing.assert_allclose(b, c[0, 1], atol=1e-6)
        np.testing.assert_array_equal(d, e[0])


def test_what_a_cell_leaves_to_pytorch(ours):
    lstm, gru = ours.torch.LSTMCell(3, 4), ours.torch.GRUCell(3, 4)
    x, h = ones(2, 3), ones(2, 4)
    for cell, *args in (
        (gru, ones(2, 5)), (gru, ones(1, 2, 3)), (gru, ones(2, 3, dtype="float64")), (gru, x.array),
        (gru, ones(2, 3, dtype="int64")), (gru, x, (h,)), (gru, x, ones(3, 4)), (gru, x, ones(2, 3)),
        (gru, x, ones(4)), (gru, x, ones(2, 4, dtype="float64")), (lstm, x, h), (lstm, x, (h, h, h)),
        (lstm, x, (h, ones(2, 3))), (lstm, ones(3), (h, h)), (lstm, x, (h, None)),
    ):  # fmt: skip
        found = cell(*args)
        assert isinstance(found, Own) and found.kind == type(cell).__name__ and found.input is args[0]
    rnn = ours.torch.RNNCell(3, 4)
    rnn.nonlinearity = "gelu"
    assert isinstance(rnn(x), Own)


def test_what_a_network_says_of_its_weights(ours):
    from openrnn.torch import _calls
    from openrnn.torch._network import network, text_of

    lstm = ours.torch.LSTM(3, 4)
    net = network(text_of(lstm), DTYPES["float32"])
    assert network(text_of(lstm), DTYPES["float32"]) is net
    weights = list(lstm._parameters.values())
    for given, text in (
        (weights[:2], "2 parameters, expected 4: weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0"),
        ([*weights[:3], None], "bias_hh_l0 is None, expected a tensor"),
        ([*weights[:3], ones(15)], r"bias_hh_l0 is torch.float32 of shape \(15,\) on cpu, expected "
         r"torch.float32 of shape \(16,\) on the cpu"),
        ([*weights[:3], ones(16, dtype="float64")], "bias_hh_l0 is torch.float64 of shape"),
    ):  # fmt: skip
        with pytest.raises(openrnn.ArgumentError, match=rf"^\[openrnn.torch\] {text}"):
            _calls.readable(net, given)
    mixed = ones(16)
    mixed.is_cpu = False
    with pytest.raises(openrnn.ArgumentError, match="bias_hh_l0"):
        _calls.readable(net, [*weights[:3], mixed])


def test_weights_of_another_dtype_are_noticed(ours):
    gru, x = ours.torch.GRU(3, 4), drawn(5, 2, 3)
    with no_grad():
        gru(x)
        for name, parameter in list(gru.named_parameters()):  # past what a module notices
            gru._parameters[name] = Parameter(parameter.to(DTYPES["float64"]))
        assert isinstance(gru(x), Own)


def test_a_program_keeps_what_its_gradient_needs(ours):
    from openrnn import _core

    module = ours.torch.GRU(3, 4)
    before = _core.torch_saved_calls()
    with told(compiling=True):
        kept = module(drawn(5, 2, 3))
        assert _core.torch_saved_calls() == before + 1 and kept[0].requires_grad
        with no_grad():
            module(drawn(5, 2, 3))
    assert _core.torch_saved_calls() == before + 1
