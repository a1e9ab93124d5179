"""Calls and constructors fail as torch.nn's do: types and texts."""

import openrnn.torch as ours
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

from module_pairs import MODES, make_pair


def outcome(function, *args, **options):
    try:
        result = function(*args, **options)
    except Exception as error:  # noqa: BLE001
        return type(error), str(error)
    return getattr(result[0], "shape", None) if isinstance(result, tuple) else None


def calls(mode):
    x, h = torch.randn(6, 3, 4), torch.zeros(2, 3, 5)
    pair = (lambda state: (state, state)) if mode == "LSTM" else (lambda state: state)
    packed = pack_padded_sequence(x, [6, 5, 1])
    return {
        "one dimension": (x[0, 0],),
        "four": (x[None],),
        "input size": (torch.randn(6, 3, 7),),
        "layers of states": (x, pair(torch.zeros(1, 3, 5))),
        "rank of states": (x, pair(h[:, 0])),
        "rank of states, unbatched": (x[:, 0], pair(h)),
        "float64": (x.double(),),
        "int32": (x.int(),),
        "no steps": (x[:0],),
        "float64 states": (x, pair(h.double())),
        "rows of packed states": (packed, pair(h[:, :2])),
        "a number as states": (x, 5),
        "one state": (x, (h,)),
        "no tensor": ("a",),
    }


@pytest.mark.parametrize("what", calls("LSTM"))
@pytest.mark.parametrize("mode", MODES)
def test_a_wrong_call(mode, what):
    theirs, mine = make_pair(mode, 4, 5, 2)
    args = calls(mode)[what]
    wanted = outcome(theirs, *args)
    assert isinstance(wanted[0], type) and outcome(mine, *args) == wanted


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_wrong_calls_without_gradients_after_a_right_one(mode, frozen):
    """What is kept of a call does not let a wrong one pass."""
    theirs, mine = make_pair(mode, 4, 5, 2)
    if frozen:
        ours.freeze(mine)
    x = torch.randn(6, 3, 4)
    wrong = calls(mode) | {"states with a hole": (x, (torch.zeros(2, 3, 5), None)),
                           "sparse": (x.to_sparse(),)}  # fmt: skip
    with torch.no_grad():
        for what, args in wrong.items():
            assert outcome(mine, x) == x.shape[:2] + (5,)
            assert outcome(mine, *args) == outcome(theirs, *args), what
        mine.double()
        assert outcome(mine, x) == outcome(theirs.double(), x)


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize(
    "options",
    [
        {"num_layers": 0}, {"dropout": 2}, {"proj_size": 9}, {"proj_size": 2}, {"bias": 3},
        {"hidden_size": 0}, {"input_size": 0}, {"batch_first": 1}, {"nonlinearity": "sin"},
    ],
    ids=str,
)  # fmt: skip
def test_a_wrong_constructor(name, options):
    if "nonlinearity" in options and name != "RNN":
        pytest.skip("an argument of RNN")
    given = {"input_size": 4, "hidden_size": 5, **options}
    found, wanted = (outcome(getattr(library, name), **given) for library in (ours, nn))
    # What an older PyTorch takes, this takes.
    assert found == wanted


def test_an_unknown_option_is_named():
    with pytest.raises(TypeError, match=r"LSTM\(\) got an unexpected keyword argument 'units'"):
        ours.LSTM(4, 5, units=3)
    with pytest.raises(NotImplementedError, match=r"\[GRU\] drop_connect is an option of openrnn"):
        ours.GRU(4, 5, drop_connect=0.5)


@pytest.mark.parametrize("name", ["LSTMCell", "GRUCell", "RNNCell"])
def test_a_wrong_call_of_a_cell(name):
    theirs, mine = getattr(nn, name)(4, 5), getattr(ours, name)(4, 5)
    x, h = torch.randn(3, 4), torch.zeros(3, 5)
    pair = (lambda state: (state, state)) if name == "LSTMCell" else (lambda state: state)
    wrong = [
        (x[None],), (torch.randn(3, 7),), (x, pair(h[:2])), (x, pair(h[None])), (x.double(),),
        (x, pair(torch.zeros(3, 6))),
    ]  # fmt: skip
    for args in wrong:
        wanted = outcome(theirs, *args)
        assert isinstance(wanted[0], type) and outcome(mine, *args) == wanted


def test_script_is_refused_by_name():
    with pytest.raises(NotImplementedError, match=r"\[torch.jit.script\] openrnn.torch.GRU, exp"):
        torch.jit.script(nn.Sequential(ours.GRU(3, 4)))
