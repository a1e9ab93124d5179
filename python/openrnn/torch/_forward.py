"""The forward pass of a recurrent module of torch.nn on this engine.

It takes any module with the attributes of torch.nn.RNNBase. What the engine does not compute, and
every call that PyTorch refuses, goes to PyTorch's own forward: it has the right errors.

Where a call goes: this file decides what it is, `_calls.py` runs it on plain tensors, `_function.py`
is autograd's way there, `_ops.py` that of torch.library, `_vmap.py` has the rules of both, and
`_traced.py` takes every call that somebody looks on at. The direct way must be left for each onlooker
that PyTorch has: compilers, modes, traces, transforms, forward derivatives, autocast.
"""

# PyTorch is not there where types are checked.
# mypy: disable-error-code="import-not-found"

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn.utils.rnn import PackedSequence

from openrnn import _core
from openrnn.errors import ArgumentError
from openrnn.torch import _calls
from openrnn.torch._calls import Place
from openrnn.torch._function import Direct, Recurrent
from openrnn.torch._network import DTYPES, Network, network, text_of

OWN = {"LSTM": nn.LSTM, "GRU": nn.GRU, "RNN_TANH": nn.RNN, "RNN_RELU": nn.RNN}
# torch.nn's own, also while `enabled()` has ours in their place.
OWN_FORWARD = {mode: cls.forward for mode, cls in OWN.items()}

_READABLE = tuple(DTYPES)
_STRIDED = torch.strided
_grad_enabled = torch.is_grad_enabled
_modes = torch._C._len_torch_dispatch_stack
_transforms = torch._C._are_functorch_transforms_active
_tracing = torch._C._get_tracing_state
_autocast = torch._C._is_any_autocast_enabled


class Step:
    """A cell of torch.nn as a network of one layer; what is kept between calls is the cell's."""

    def __init__(self, cell: Any, mode: str) -> None:
        self._cell, self.mode = cell, mode
        self.input_size, self.hidden_size = cell.input_size, cell.hidden_size
        self.bias, self.training = cell.bias, cell.training
        self.num_layers, self.proj_size, self.dropout = 1, 0, 0.0
        self.batch_first, self.bidirectional, self.draws = False, False, False
        self.options_text = ""
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        self.names = self._flat_weights_names = names if cell.bias else names[:2]


def holder_of(module: Any) -> Any:
    """The module that has the parameters, and what is kept between calls."""
    return module._cell if isinstance(module, Step) else module


class Engine:
    """What a module keeps between calls. Copies and pickles of the module begin without it."""

    __slots__ = ("dropout", "frozen", "held", "names", "net", "place")

    def __init__(self, module: Any, dtype: Any, math: str | None) -> None:
        self.dropout = module.dropout
        self.net: Network = network(text_of(module, math), dtype)
        self.names = tuple(self.net.names)
        if isinstance(module, Step):
            self.names = module.names
        self.held = _core.TorchWeights(self.net.core)
        self.frozen: bool = holder_of(module).__dict__.get("_frozen", False)
        self.place = Place(self.net, 0, module.batch_first, module.training)

    def __reduce__(self) -> Any:
        return (type(None), ())

    def place_of(self, module: Any, packed: bool) -> Place:
        """Of one call; the rows of a PackedSequence are time-major whatever the module says."""
        batch_first = module.batch_first and not packed
        place = self.place
        if place.batch_first is not batch_first or place.training is not module.training:
            place = self.place = Place(self.net, 0, batch_first, module.training)
        if module.training and self.net.draws:
            seed = int(torch.randint(0, 1 << 62, (), dtype=torch.int64, device="cpu"))
            return Place(self.net, seed, batch_first, True)
        return place


def engine_of(module: Any, dtype: Any, math: str | None = None) -> Engine:
    """The engine's state of a module for tensors of that dtype, and another arithmetic."""
    state = holder_of(module).__dict__
    name = "_engine" if math is None else f"_engine_{math}"
    engine: Engine | None = state.get(name)
    if engine is None or engine.net.dtype is not dtype or engine.dropout != module.dropout:
        engine = state[name] = Engine(module, dtype, math)
    return engine


def forget(module: Any) -> None:
    """Drops what was packed."""
    for name in [name for name in module.__dict__ if name.startswith("_engine")]:
        del module.__dict__[name]


def weights_of(module: Any, names: Any) -> list[Any]:
    """The parameters, as attributes give them: parametrizations, functional_call, hooks."""
    module = holder_of(module)
    if torch.compiler.is_compiling():
        return [getattr(module, name) for name in names]
    table, own = module._parameters, module.__dict__
    try:
        found = [table[name] for name in names]
    except KeyError:
        return [getattr(module, name) for name in names]
    for name in names:
        if name in own:
            return [getattr(module, name) for name in names]
    return found


def is_extended(module: Any) -> bool:
    """Whether PyTorch has no such network."""
    return bool(module.__dict__.get("options"))


def own_forward(module: Any, input: Any, hx: Any) -> Any:
    """PyTorch's result or error."""
    if isinstance(module, Step):
        return _own_step(module, input, hx)
    if not is_extended(module):
        return OWN_FORWARD[module.mode](module, input, hx)
    # It refuses what is wrong with the call, before it reads a weight.
    like = OWN[module.mode](
        module.input_size, module.hidden_size, module.num_layers, bias=module.bias,
        batch_first=module.batch_first, bidirectional=module.bidirectional,
        device="meta", dtype=input.data.dtype if isinstance(input, PackedSequence) else input.dtype,
        **({"proj_size": module.proj_size} if module.proj_size else {}),
    )  # fmt: skip
    OWN_FORWARD[module.mode](like, input, hx)
    raise ArgumentError(
        f"[{type(module).__name__}] a call that this engine does not compute, expected tensors of "
        "the parameters' dtype on the cpu"
    )


def _own_step(step: Step, input: Any, hx: Any) -> Any:
    """As (y, states) of one step."""
    function = {
        "LSTM": torch.lstm_cell,
        "GRU": torch.gru_cell,
        "RNN_TANH": torch.rnn_tanh_cell,
        "RNN_RELU": torch.rnn_relu_cell,
    }[step.mode]
    x, cell = input[0], step._cell
    if hx is None:
        zeros = x.new_zeros((x.shape[0], step.hidden_size))
        given = (zeros, zeros) if step.mode == "LSTM" else zeros
    else:
        given = tuple(state[0] for state in hx) if step.mode == "LSTM" else hx[0]
    last = function(x, given, cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)
    if step.mode == "LSTM":
        return last[0].unsqueeze(0), tuple(state.unsqueeze(0) for state in last)
    return last.unsqueeze(0), last.unsqueeze(0)


def _needs_grad(*tensors: Any) -> bool:
    return any(tensor is not None and tensor.requires_grad for tensor in tensors)


def compute(engine: Engine, module: Any, x: Any, h0: Any, c0: Any, batch_sizes: Any) -> Any:
    """(y, hn, cn) on tensors that fit, with whatever history they need."""
    place = engine.place_of(module, batch_sizes is not None)
    live = _transforms() or forward_ad._current_level >= 0
    if not live and not _grad_enabled():
        weights = None if engine.frozen else weights_of(module, engine.names)
        return _inference(engine, module, place, x, h0, c0, weights, batch_sizes)
    weights = weights_of(module, engine.names)
    if not live and not _needs_grad(x, h0, c0, *weights):
        given = None if engine.frozen else weights
        return _inference(engine, module, place, x, h0, c0, given, batch_sizes)
    function = Recurrent if live else Direct
    return function.apply(place, engine.held, batch_sizes, x, h0, c0, *weights)[:3]


def _inference(
    engine: Engine, module: Any, place: Place, x: Any, h0: Any, c0: Any, weights: Any, sizes: Any
) -> Any:
    if weights is None and not engine.held.packings:
        weights = weights_of(module, engine.names)
    return _calls.forward(place, engine.held, x, h0, c0, weights, sizes, False)[:3]


def fits(module: Any, tensor: Any, shape: Any, dtype: Any) -> bool:
    """Whether the engine can read a state."""
    return (
        isinstance(tensor, Tensor)
        and tensor.is_cpu
        and tensor.dtype is dtype
        and tensor.layout is torch.strided
        and tuple(tensor.shape) == shape
    )


def states_of(module: Any, hx: Any, rows: int, dtype: Any, packed: Any) -> Any:
    """(h0, c0), each None for zeros; None if they do not fit. Packed rows are put in order."""
    if hx is None:
        return None, None
    count = module.num_layers * (2 if module.bidirectional else 1)
    hidden = (count, rows, module.proj_size or module.hidden_size)
    if module.mode == "LSTM":
        if not isinstance(hx, (tuple, list)) or len(hx) != 2:
            return None
        pair = tuple(hx)
    else:
        pair = (hx, None)
    if not fits(module, pair[0], hidden, dtype):
        return None
    if pair[1] is not None and not fits(module, pair[1], (count, rows, module.hidden_size), dtype):
        return None
    if module.mode == "LSTM" and pair[1] is None:
        return None
    if packed is None:
        return pair
    return tuple(state if state is None else state.index_select(1, packed) for state in pair)


def is_readable(x: Any) -> bool:
    return bool(x.is_cpu and x.layout is torch.strided and x.dtype in _READABLE)


def packed_call(module: Any, given: Any, hx: Any, run: Any) -> Any:
    """A call on a PackedSequence."""
    x, batch_sizes, order, back = given
    count = len(batch_sizes)
    good = is_readable(x) and x.dim() == 2 and x.shape[-1] == module.input_size > 0 and count > 0
    rows = int(batch_sizes[0]) if count else 0
    states = states_of(module, hx, rows, x.dtype, order) if good else None
    if states is None or weights_of(module, module._flat_weights_names[:1])[0].dtype != x.dtype:
        return own_forward(module, given, hx)
    y, hn, cn = run(x, *states, batch_sizes)
    if back is not None:
        hn = hn.index_select(1, back)
        cn = cn if cn is None else cn.index_select(1, back)
    return PackedSequence(y, batch_sizes, order, back), hn if cn is None else (hn, cn)


def plain_call(module: Any, input: Any, hx: Any, run: Any) -> Any:
    """A call on a tensor, batched or not."""
    if not isinstance(input, Tensor) or input.dim() not in (2, 3) or not is_readable(input):
        return own_forward(module, input, hx)
    batched = input.dim() == 3
    axis = 0 if module.batch_first else 1
    x = input if batched else input.unsqueeze(axis)
    if not batched and hx is not None:
        alone = hx if module.mode == "LSTM" else (hx,)
        if not isinstance(alone, (tuple, list)) or any(
            not isinstance(state, Tensor) or state.dim() != 2 for state in alone
        ):
            return own_forward(module, input, hx)
        raised = tuple(state.unsqueeze(1) for state in alone)
        states = states_of(
            module, raised if module.mode == "LSTM" else raised[0], x.shape[axis], x.dtype, None
        )
    else:
        states = states_of(module, hx, x.shape[axis], x.dtype, None)
    first = weights_of(module, module._flat_weights_names[:1])[0]
    good = states is not None and x.shape[2] == module.input_size > 0 and x.shape[1 - axis] > 0
    if not good or not isinstance(first, Tensor) or first.dtype != x.dtype:
        return own_forward(module, input, hx)
    y, hn, cn = run(x, *states, None)
    if not batched:
        y, hn = y.squeeze(axis), hn.squeeze(1)
        cn = cn if cn is None else cn.squeeze(1)
    return y, hn if cn is None else (hn, cn)


def usual_call(engine: Engine, module: Any, x: Any, hx: Any) -> Any:
    """What most calls without gradients are, without a look at the rest; None for any other."""
    net = engine.net
    if x.dim() != 3 or x.dtype is not net.dtype or not x.is_cpu or x.layout is not _STRIDED:
        return None
    first, second, width = x.shape
    batch_first, training = module.batch_first, module.training
    place = engine.place
    if (
        width != module.input_size
        or first == 0
        or second == 0
        or (training and net.draws)
        or place.batch_first is not batch_first
        or place.training is not training
        or engine.dropout != module.dropout
    ):
        return None
    states = states_of(module, hx, first if batch_first else second, net.dtype, None)
    if states is None:
        return None
    h0, c0 = states
    weights = None
    if not engine.frozen or not engine.held.packings:
        weights = weights_of(module, engine.names)
        if getattr(weights[0], "dtype", None) is not net.dtype:
            return None
    y, hn, cn = _inference(engine, module, place, x, h0, c0, weights, None)
    return y, hn if cn is None else (hn, cn)


def forward(module: Any, input: Any, hx: Any = None) -> Any:
    """The module's result."""
    if torch.compiler.is_compiling() or _modes() or _tracing() is not None or _autocast():
        from openrnn.torch import _traced  # it registers operations

        return _traced.forward(module, input, hx)

    if type(input) is Tensor and not _grad_enabled() and not _transforms():
        engine = module.__dict__.get("_engine")
        if engine is not None and forward_ad._current_level < 0:
            found = usual_call(engine, module, input, hx)
            if found is not None:
                return found

    def run(x: Any, h0: Any, c0: Any, batch_sizes: Any) -> Any:
        return compute(engine_of(module, x.dtype), module, x, h0, c0, batch_sizes)

    if isinstance(input, PackedSequence):
        return packed_call(module, input, hx, run)
    return plain_call(module, input, hx, run)
