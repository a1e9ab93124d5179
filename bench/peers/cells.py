"""The cells with options that are measured; lines are called by their names."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Cell:
    """One of cuDNN's cells and the options that make another one of it."""

    mode: str  # 'lstm', 'gru'
    options: Mapping[str, object] = field(default_factory=dict)
    vectors: int = 0  # of U elements each, after all biases of the buffer


CELLS = {
    "hard sigmoid": Cell("lstm", {"recurrent_activation": "hard_sigmoid(0.2, 0.5)"}),
    "peepholes": Cell("lstm", {"use_peepholes": True}, vectors=3),
    "cell clip": Cell("lstm", {"cell_clip": 3.0}),
    "coupled gates": Cell("lstm", {"coupled_gates": True}),
    "softsign": Cell("lstm", {"activation": "softsign", "output_activation": "softsign"}),
    "layer norm": Cell(
        "lstm",
        {"layer_norm": "gates", "layer_norm_cell": "carried", "layer_norm_epsilon": 1e-5},
        vectors=6,
    ),
    "reset before": Cell("gru", {"reset_after": False}),
}
