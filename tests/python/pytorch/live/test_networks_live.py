"""Files of PyTorch as networks: what torch.save wrote computes the same here, and PyTorch loads ours."""

import copy

import numpy as np
import openrnn
import pytest
import torch
from openrnn.torch import _calls, _forward

import torch_mapping
import torch_reference
from engine_check import assert_within
from model import numpy_layout
from model.error_bound import Bounded, bound
from model.numpy_layout import Spec
from model.rnn_data import make_problem

MODES = ["lstm", "gru", "rnn_tanh", "rnn_relu"]
DIRECTIONS = ["unidirectional", "bidirectional"]
FORMS = [{}, {"_use_new_zipfile_serialization": False}]


def hint_of(spec):
    return {"rnn_mode": spec.mode} if spec.mode.startswith("rnn") else {}


def error_of_y(problem):
    h0, c0 = problem.states
    return 2 * bound(
        problem.spec, problem.x.dtype, problem.params, problem.x, h0, c0, problem.lengths, None,
        problem.upstream,
    )["y"].error  # fmt: skip


def states_of(problem):
    return tuple(each for each in problem.states if each is not None)


def theirs(module, problem):
    states = tuple(map(torch.from_numpy, states_of(problem)))
    return torch_reference.call(module, torch.from_numpy(problem.x), states, None)[0].detach().numpy()


def ours(network, problem):
    return openrnn.InferenceSession(network.packed()).run(problem.x, states_of(problem))[0]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("mode,proj", [*((mode, 0) for mode in MODES), ("lstm", 3)])
def test_state_dicts_both_ways(tmp_path, mode, proj, direction, dtype, form):
    spec = Spec(mode, 2, 7, 5, direction=direction, num_proj=proj)
    problem = make_problem(spec, 5, 3, dtype)
    module = torch_reference.make_module(spec, problem.params)
    torch.save(module.state_dict(), tmp_path / "theirs.pt", **form)
    model = openrnn.load(tmp_path / "theirs.pt", **hint_of(spec))
    np.testing.assert_array_equal(model.network.params, problem.params)
    expected, error = theirs(module, problem), error_of_y(problem)
    assert_within(ours(model.network, problem), Bounded(expected, 0.0, error), "y")

    openrnn.save(tmp_path / "ours.pt", model)
    other = copy.deepcopy(module)
    for parameter in other.parameters():
        torch.nn.init.zeros_(parameter)
    other.load_state_dict(torch.load(tmp_path / "ours.pt", weights_only=True), strict=True)
    for name, tensor in module.state_dict().items():
        assert torch.equal(other.state_dict()[name], tensor), name
    np.testing.assert_array_equal(theirs(other, problem), expected)


class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(11, 5)
        self.rnn = torch.nn.LSTM(5, 7, 2, bidirectional=True)
        self.tags = torch.nn.Linear(14, 3)

    def forward(self, words):
        return self.tags(self.rnn(self.words(words))[0])


def decayed(module):
    """Weights decay, biases do not: two groups, in another order than Module.parameters()."""
    named = list(module.named_parameters())
    biases = [parameter for name, parameter in named if "bias" in name]
    weights = [parameter for name, parameter in named if "bias" not in name]
    return [{"params": biases, "weight_decay": 0.0}, {"params": weights, "weight_decay": 0.1}]


OPTIMIZERS = {
    "adam": lambda module: torch.optim.Adam(module.parameters(), lr=0.01, betas=(0.8, 0.99)),
    "adamw_amsgrad": lambda module: torch.optim.AdamW(module.parameters(), amsgrad=True),
    "sgd": lambda module: torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9),
    "rmsprop": lambda module: torch.optim.RMSprop(module.parameters(), momentum=0.5),
    "adagrad": lambda module: torch.optim.Adagrad(module.parameters()),
}


def steps_of(module, optimizer, count, seed):
    torch.manual_seed(seed)
    for _ in range(count):
        optimizer.zero_grad()
        x = torch.randn(4, 2, 5)
        module(x)[0].square().sum().backward()
        optimizer.step()


def trained_tagger(make):
    torch.manual_seed(5)
    tagger = Tagger()
    optimizer = make(tagger)
    for _ in range(3):
        optimizer.zero_grad()
        tagger(torch.randint(0, 11, (4, 2))).square().sum().backward()
        optimizer.step()
    return tagger, optimizer


@pytest.mark.parametrize("way", [["pt"], ["openrnn", "pt"], ["npz", "safetensors", "openrnn", "pt"]])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_goes_on_after_a_conversion(tmp_path, name, form, way):
    """The recurrent part of a checkpoint, with the state of its optimizer, trains on as if it had stayed."""
    tagger, optimizer = trained_tagger(OPTIMIZERS[name])
    torch.save({"model": tagger.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3,
                "config": {"units": 7, "name": "tagger"}}, tmp_path / "a.pt", **form)
    model = openrnn.load(tmp_path / "a.pt")
    assert list(model) == ["model.rnn"] and not model.notes
    for number, ending in enumerate(way):
        openrnn.save(tmp_path / f"{number}.{ending}", model)
        model = openrnn.load(tmp_path / f"{number}.{ending}")
    found = torch.load(tmp_path / f"{len(way) - 1}.pt", weights_only=True)
    assert (found["epoch"], found["config"]) == (3, {"units": 7, "name": "tagger"})
    rnn = torch.nn.LSTM(5, 7, 2, bidirectional=True)
    rnn.load_state_dict({key.removeprefix("rnn."): value for key, value in found["model"].items()}, strict=True)
    again = OPTIMIZERS[name](rnn)
    again.load_state_dict(found["optimizer"])
    # The original goes on with the same gradients: only its recurrent parameters have some.
    optimizer.zero_grad()
    steps_of(tagger.rnn, optimizer, 2, 6)
    steps_of(rnn, again, 2, 6)
    for key, value in tagger.rnn.state_dict().items():
        assert torch.equal(rnn.state_dict()[key], value), key


def keeps_names_of_parameters():
    try:
        optimizer = torch.optim.Adam(torch.nn.Linear(1, 1).named_parameters())
    except TypeError:  # PyTorch 2.4 takes no names
        return False
    return "param_names" in optimizer.state_dict()["param_groups"][0]


def test_groups_in_another_order_need_names(tmp_path):
    tagger, optimizer = trained_tagger(lambda module: torch.optim.AdamW(decayed(module)))
    torch.save({"model": tagger.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "a.pt")
    model = openrnn.load(tmp_path / "a.pt")
    assert not model.network.slots and "does not tell which parameters they are of" in model.notes[0]
    if not keeps_names_of_parameters():
        pytest.skip("this PyTorch keeps no names of parameters")
    named = [{"params": [(name, parameter) for name, parameter in tagger.named_parameters() if ("bias" in name) == first],
              "weight_decay": 0.0 if first else 0.1} for first in (True, False)]
    optimizer = torch.optim.AdamW(named)
    steps_of(tagger.rnn, optimizer, 2, 7)
    torch.save({"model": tagger.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "a.pt")
    openrnn.save(tmp_path / "b.pt", openrnn.load(tmp_path / "a.pt"))
    found = torch.load(tmp_path / "b.pt", weights_only=True)
    rnn = torch.nn.LSTM(5, 7, 2, bidirectional=True)
    rnn.load_state_dict({key.removeprefix("rnn."): value for key, value in found["model"].items()})
    again = torch.optim.AdamW(decayed(rnn))
    again.load_state_dict(found["optimizer"])
    steps_of(tagger.rnn, optimizer, 2, 8)
    steps_of(rnn, again, 2, 8)
    for key, value in tagger.rnn.state_dict().items():
        assert torch.equal(rnn.state_dict()[key], value), key


@pytest.mark.parametrize("mode", MODES)
def test_torchscript(tmp_path, mode):
    spec = Spec(mode, 2, 7, 5, direction="bidirectional")
    problem = make_problem(spec, 4, 3, np.float64)
    module = torch_reference.make_module(spec, problem.params)
    torch.jit.save(torch.jit.script(module), tmp_path / "m.pt")
    # The mode of a plain network is in the program of the script, which nobody reads.
    network = openrnn.load(tmp_path / "m.pt", **hint_of(spec)).network
    assert network.options["rnn_mode"] == mode
    np.testing.assert_array_equal(network.params, problem.params)
    expected = Bounded(theirs(module, problem), 0.0, error_of_y(problem))
    assert_within(ours(network, problem), expected, "y")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("form", FORMS)
def test_narrow_types(tmp_path, dtype, form):
    torch.manual_seed(9)
    module = torch.nn.LSTM(5, 7, 2, dtype=dtype)
    torch.save(module.state_dict(), tmp_path / "a.pt", **form)
    model = openrnn.load(tmp_path / "a.pt")
    assert model.network.options["dtype"] == str(dtype).removeprefix("torch.")
    openrnn.save(tmp_path / "b.pt", model)
    found = torch.load(tmp_path / "b.pt", weights_only=True)
    for name, tensor in module.state_dict().items():
        assert found[name].dtype == dtype and torch.equal(found[name], tensor), name


@pytest.mark.parametrize("form", FORMS)
def test_shared_storages_and_strides(tmp_path, form):
    """All parameters are parts of one storage, a matrix is a transposed one, and two modules share theirs."""
    spec = Spec("gru", 2, 7, 5)
    problem = make_problem(spec, 4, 3, np.float32)
    module = torch_reference.make_module(spec, problem.params)
    storage = torch.cat([torch.ones(3)] + [value.flatten() for value in module.state_dict().values()])
    state, at = {}, 3
    for name, value in module.state_dict().items():
        state[f"a.{name}"] = storage[at : at + value.numel()].view(value.shape)
        at += value.numel()
    state |= {f"b.{name[2:]}": value for name, value in list(state.items())}
    state["a.weight_hh_l0"] = state["a.weight_hh_l0"].T.contiguous().T
    torch.save(state, tmp_path / "m.pt", **form)
    model = openrnn.load(tmp_path / "m.pt")
    assert list(model) == ["a", "b"]
    for network in model.values():
        np.testing.assert_array_equal(network.params, problem.params)
        expected = Bounded(theirs(module, problem), 0.0, error_of_y(problem))
        assert_within(ours(network, problem), expected, "y")


def test_the_mapping_of_the_tests_is_pytorchs():
    spec = Spec("lstm", 2, 3, 2, direction="bidirectional")
    problem = make_problem(spec, 2, 1, np.float64)
    module = torch_reference.make_module(spec, problem.params)
    named = torch_mapping.from_canonical(spec, *numpy_layout.params_to_canonical(spec, problem.params))
    assert set(named) == set(module.state_dict())


def test_a_c_without_an_h_is_read():
    module, x, c = openrnn.torch.LSTM(3, 4), torch.randn(5, 2, 3), torch.randn(1, 2, 4)
    engine = _forward.engine_of(module, torch.float32)
    weights = _forward.weights_of(module, engine.names)

    def call(h0, c0):
        place = engine.place_of(module, False)
        return _calls.forward(place, engine.held, x, h0, c0, weights, None, False)[0]

    with torch.no_grad():
        assert torch.equal(call(None, c), call(torch.zeros(1, 2, 4), c))
        assert not torch.equal(call(None, c), call(None, None))
