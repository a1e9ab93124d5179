"""The compatible cells: plain operations that read the checkpoints of the layers."""

from openrnn import _core
from openrnn._typing import DTypeLike, Initializer
from openrnn.nn._cell import _LSTM, _OneState


class CudnnCompatibleLSTMCell(_LSTM):
    """kernel [I + U, 4U] and bias [4U], column blocks i, c, f, o; no forget bias, no peepholes.

    State LSTMStateTuple(c, h), each [B, U].

    Examples
    --------
    >>> cell = openrnn.cudnn_rnn.CudnnCompatibleLSTMCell(4)
    >>> output, (c, h) = cell(np.ones((2, 3), "float32"), cell.zero_state(2, "float32"))
    >>> output.shape, [weight.shape for weight in cell.weights]
    ((2, 4), [(7, 16), (16,)])
    """

    _kind = "lstm_cell"

    def __init__(
        self,
        num_units: int,
        reuse: bool | None = None,
        *,
        name: str | None = None,
        dtype: DTypeLike = None,
        kernel_initializer: Initializer = None,
        num_proj: int | None = None,
        device: str | None = None,
    ) -> None:
        self._make_variable_cell(
            {
                "num_units": num_units,
                "name": name,
                "kernel_initializer": kernel_initializer,
                "num_proj": num_proj,
                "device": device,
            },
            dtype,
            reuse,
        )


class CudnnCompatibleGRUCell(_OneState):
    """gates/{kernel [I + U, 2U], bias [2U]}, column blocks reset and update, bias 1 at first.

    candidate/{input_projection, hidden_projection}/{kernel, bias}: the reset gate acts after the
    recurrent product. State and output are one, [B, U].

    Examples
    --------
    >>> cell = openrnn.cudnn_rnn.CudnnCompatibleGRUCell(4)
    >>> output, state = cell(np.ones((2, 3), "float32"), cell.zero_state(2, "float32"))
    >>> output.shape, len(cell.weights)
    ((2, 4), 6)
    """

    _kind = "gru_cell"

    def __init__(
        self,
        num_units: int,
        reuse: bool | None = None,
        kernel_initializer: Initializer = None,
        *,
        name: str | None = None,
        dtype: DTypeLike = None,
        device: str | None = None,
    ) -> None:
        self._make_variable_cell(
            {
                "num_units": num_units,
                "name": name,
                "kernel_initializer": kernel_initializer,
                "device": device,
            },
            dtype,
            reuse,
        )


_core.set_layer_classes(
    {
        "lstm_cell": CudnnCompatibleLSTMCell,
        "gru_cell": CudnnCompatibleGRUCell,
    }
)
