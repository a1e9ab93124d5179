"""Inference without tapes or layers: a packed model, its sessions, and pools of streams.

T time, B batch, I input size, L layers, D directions, U units; O = num_proj when projecting, else
U.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openrnn import _arguments, _core
from openrnn._typing import DTypeLike, Direction, InputMode, Math, TensorLike, WeightsDType
from openrnn.cudnn_rnn._layers import CudnnRNN
from openrnn.errors import ArgumentError

__all__ = ["InferenceSession", "PackedModel", "StreamPool"]

State = tuple[NDArray[Any], ...]


class PackedModel(_core.PackedModelBase):
    """An immutable model on the cpu, shared by any number of threads, sessions and pools.

    `params` is the opaque buffer, of which the engine makes its own packed copy: later changes have
    no effect. Its size must be that of the network. math and weights_dtype as of the layers.
    max_threads: how many threads packing, and every session and pool of the model, may use; 0 is
    set_num_threads()'s number, with 1 the model starts none.

    Raises ArgumentError for sizes, names or a buffer that do not fit; EngineError for a math that
    this machine lacks.

    Examples
    --------
    >>> lstm = openrnn.layers.LSTM(4)
    >>> lstm.build((None, None, 3))
    >>> model = openrnn.PackedModel.from_layer(lstm)
    >>> model.spec["rnn_mode"], model.spec["num_units"], model.spec["input_size"]
    ('lstm', 4, 3)
    """

    def __init__(
        self,
        params: TensorLike,
        rnn_mode: str,
        num_layers: int,
        num_units: int,
        input_size: int,
        input_mode: InputMode = "linear_input",
        direction: Direction = "unidirectional",
        dtype: DTypeLike = "float32",
        *,
        num_proj: int | None = None,
        math: Math = "float32",
        weights_dtype: WeightsDType | None = None,
        max_threads: int = 0,
        **network: Any,
    ) -> None:
        options = _arguments.of_call(locals())
        _core.require_fields(f"{type(self).__name__}.__init__", network, ["dropout", "seed"])
        super().__init__(params, options, max_threads)
        self._spec = self.spec_core

    @classmethod
    def from_layer(
        cls,
        layer: CudnnRNN,
        *,
        math: Math | None = None,
        weights_dtype: WeightsDType | None = None,
        max_threads: int = 0,
    ) -> "PackedModel":
        """The network of a built recurrent layer as it is now.

        math and weights_dtype None: those of the layer. Raises ArgumentError before build.
        """
        if not isinstance(layer, CudnnRNN):
            raise TypeError(
                f"[from_layer] layer is a {type(layer).__name__}, expected a recurrent layer, such "
                "as layers.LSTM or cudnn_rnn.CudnnLSTM"
            )
        spec = _core.spec_of_layer(layer)
        if math is not None:
            spec["math"] = math
        if weights_dtype is not None:
            spec["weights_dtype"] = weights_dtype
        return cls(layer.kernel.numpy(), **spec, max_threads=max_threads)

    @property
    def spec(self) -> dict[str, Any]:
        """The constructor's arguments after `params`, max_threads left out."""
        return dict(self._spec)

    @property
    def _dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = _core.numpy_dtype(self._spec["dtype"])
        return dtype

    @property
    def _has_cell(self) -> bool:
        """Of an lstm, and of a gru with a projection."""
        mode = self._spec["rnn_mode"]
        projected = self._hidden_size < int(self._spec["num_units"])
        return bool(mode == "lstm" or (mode == "gru" and projected))

    @property
    def _pseudo_layers(self) -> int:
        return int(self._spec["num_layers"]) * self._directions

    @property
    def _directions(self) -> int:
        return 2 if self._spec["direction"] == "bidirectional" else 1

    @property
    def _hidden_size(self) -> int:
        return int(self._spec["num_proj"] or self._spec["num_units"])

    @property
    def _output_size(self) -> int:
        return self._directions * self._hidden_size

    def _state_shapes(self, batch: int | None, time_major: bool = True) -> list[tuple[int, ...]]:
        """Of h, and of c, where there is one; batch None: of one stream."""
        widths = [self._hidden_size]
        if self._has_cell:
            widths.append(int(self._spec["num_units"]))
        rows = [self._pseudo_layers]
        if batch is not None:
            rows = [self._pseudo_layers, batch] if time_major else [batch, self._pseudo_layers]
        return [(*rows, width) for width in widths]

    def _array(self, call: str, name: str, value: TensorLike) -> NDArray[Any]:
        array = np.asarray(value)
        if array.dtype.kind not in "fiu" and array.dtype.name != "bfloat16":
            raise TypeError(f"[{call}] {name} is of dtype {array.dtype}, expected numbers")
        return np.ascontiguousarray(array, dtype=self._dtype)

    def _inputs(self, call: str, inputs: TensorLike, axes: str) -> NDArray[Any]:
        array = self._array(call, "inputs", inputs)
        if array.ndim != 3 or array.shape[2] != self._spec["input_size"]:
            raise ArgumentError(
                f"[{call}] inputs have shape {list(array.shape)}, expected {axes} with "
                f"I = {self._spec['input_size']}"
            )
        return array

    def _state(
        self, call: str, state: Any, shapes: list[tuple[int, ...]], time_major: bool = True
    ) -> list[Any]:
        """h and c of that state, None for zeros and for what the mode does not have."""
        if state is None:
            return [None, None]
        parts = _core.rnn_state_parts(state, time_major)
        if len(parts) != len(shapes):
            raise ArgumentError(
                f"[{call}] a state of {len(parts)} arrays, expected {len(shapes)}: "
                + ("(h, c)" if self._has_cell else "(h,)")
            )
        found: list[Any] = []
        for name, part, shape in zip("hc", parts, shapes, strict=False):
            array = self._array(call, name, part)
            if array.shape != shape:
                raise ArgumentError(
                    f"[{call}] {name} has shape {list(array.shape)}, expected {list(shape)}"
                )
            found.append(array)
        return found + [None] * (2 - len(found))

    def _lengths(self, call: str, lengths: TensorLike, batch: int) -> Any:
        if lengths is None:
            return None
        array = np.asarray(lengths)
        if array.dtype.kind not in "iu" or array.shape != (batch,):
            raise ArgumentError(
                f"[{call}] sequence_lengths are {array.dtype} of shape {list(array.shape)}, "
                f"expected integers of shape [{batch}]"
            )
        return np.ascontiguousarray(np.clip(array, -1, 2**31 - 1), dtype="int32")

    def _new_state(self, shapes: list[tuple[int, ...]]) -> list[Any]:
        arrays: list[Any] = [np.empty(shape, self._dtype) for shape in shapes]
        return arrays + [None] * (2 - len(arrays))

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self._spec.items())
        return f"<openrnn.PackedModel {arguments}>"


class InferenceSession(_core.InferenceSessionBase):
    """One caller's workspace over a shared PackedModel.

    After prepare() a run allocates only its results. Calls release the interpreter
    lock, so that sessions of several threads run at once; calls of one session wait for each other.
    max_threads: how many threads a run may use, no more than the model's; 0: as many as those.

    Examples
    --------
    >>> gru = openrnn.layers.GRU(4)
    >>> gru.build((None, None, 3))
    >>> session = openrnn.InferenceSession(openrnn.PackedModel.from_layer(gru))
    >>> x = np.ones((5, 2, 3), "float32")
    >>> output, state = session.run(x[:3])
    >>> output, state = session.run(x[3:], state)
    >>> np.allclose(output, gru(x, training=False)[0].numpy()[3:])
    True
    """

    def __init__(self, model: PackedModel, max_threads: int = 1) -> None:
        super().__init__(model, max_threads)
        self._model = model

    @property
    def model(self) -> PackedModel:
        """The shared model."""
        return self._model

    def run(
        self,
        inputs: TensorLike,
        initial_state: Any = None,
        sequence_lengths: TensorLike = None,
        time_major: bool = True,
    ) -> tuple[NDArray[Any], State]:
        """(output, state) of inputs [T, B, I], or [B, T, I] when not time_major.

        output [T, B, D*O] or [B, T, D*O]; state (h [L*D, B, O],), of an LSTM and of a GRU
        with num_proj (h, c [L*D, B, U]), when not time_major [B, L*D, .]. initial_state as the
        state, None for zeros; an LSTMStateTuple is taken by name, a state that a layer's call
        returned is transposed if that call had the other layout, and any other array is read as
        time_major says.
        sequence_lengths [B], each in 0..T; past a row's length the output is 0 and the state is
        unchanged. The arrays are new ones. Raises ArgumentError for a shape or length that does not
        fit.
        """
        model = self._model
        x = model._inputs("run", inputs, "[T, B, I]" if time_major else "[B, T, I]")
        max_time, batch = x.shape[:2] if time_major else x.shape[1::-1]
        shapes = model._state_shapes(batch, time_major)
        h0, c0 = model._state("run", initial_state, shapes, bool(time_major))
        y = np.empty((*x.shape[:2], model._output_size), model._dtype)
        hn, cn = model._new_state(shapes)
        arrays = {"x": x, "y": y, "h0": h0, "c0": c0, "hn": hn, "cn": cn}
        lengths = model._lengths("run", sequence_lengths, batch)
        self.run_core(arrays, lengths, max_time, batch, bool(time_major))
        return y, (hn,) if cn is None else (hn, cn)


class StreamPool(_core.StreamPoolBase):
    """The states of many streams over a shared PackedModel.

    Streams join and leave between steps; a step runs those that it names as one batch, and each
    gets the same bits as alone. At most `streams` are open at once, a step has at most `batch` of
    them (0: all) and `time` steps. A call that raises changes nothing. Calls of one pool wait
    for each other; a step releases the interpreter lock. max_threads as of a session. `len(pool)`
    is the number of open streams, `id in pool` says whether one is open.

    Examples
    --------
    >>> gru = openrnn.layers.GRU(4)
    >>> gru.build((None, None, 3))
    >>> pool = openrnn.StreamPool(openrnn.PackedModel.from_layer(gru), streams=8)
    >>> first, second = pool.join(), pool.join()
    >>> pool.step([second, first], np.ones((1, 2, 3), "float32")).shape
    (1, 2, 4)
    >>> pool.leave(first)
    >>> len(pool), first in pool
    (1, False)
    """

    def __init__(
        self,
        model: PackedModel,
        streams: int = 1,
        batch: int = 0,
        time: int = 1,
        max_threads: int = 1,
    ) -> None:
        super().__init__(model, streams, batch, time, max_threads)
        self._model = model

    @property
    def model(self) -> PackedModel:
        """The shared model."""
        return self._model

    def join(self, initial_state: Any = None) -> int:
        """Opens a stream and returns its id, which is never reused.

        initial_state: (h [L*D, O],), for an LSTM (h, c [L*D, U]) or an LSTMStateTuple; None for
        zeros. Raises StateError when the maximum is open.
        """
        shapes = self._model._state_shapes(None)
        return self.join_core(*self._model._state("join", initial_state, shapes))

    def reset(self, id: int, initial_state: Any = None) -> None:
        """Sets the state as join() does. Raises ArgumentError for a stream that is not open."""
        shapes = self._model._state_shapes(None)
        self.reset_core(id, *self._model._state("reset", initial_state, shapes))

    def read(self, id: int) -> State:
        """A copy of the state, as join() takes it."""
        h, c = self._model._new_state(self._model._state_shapes(None))
        self.read_core(id, h, c)
        return (h,) if c is None else (h, c)

    def step(
        self,
        ids: Sequence[int],
        inputs: TensorLike,
        sequence_lengths: TensorLike = None,
        time_major: bool = True,
    ) -> NDArray[Any]:
        """Runs those streams, in any order: inputs [T, B, I] to the output [T, B, D*O].

        B is their number; [B, T, I] to [B, T, D*O] when not time_major. Raises ArgumentError for a
        stream that is not open or named twice, and for more streams or steps than the limits.
        """
        model = self._model
        x = model._inputs("step", inputs, "[T, B, I]" if time_major else "[B, T, I]")
        max_time, batch = x.shape[:2] if time_major else x.shape[1::-1]
        streams = _arguments.as_list("step", "ids", ids, "streams")
        if batch != len(streams):
            raise ArgumentError(
                f"[step] inputs for {batch} streams, expected {len(streams)}, as ids"
            )
        y = np.empty((*x.shape[:2], model._output_size), model._dtype)
        lengths = model._lengths("step", sequence_lengths, batch)
        self.step_core(streams, x, y, lengths, max_time, bool(time_major))
        return y
