"""What is measured on a GPU: networks, arithmetics and passes."""

from collections.abc import Iterator
from dataclasses import dataclass

from peers.lines import GATE_SIZES, Network

ARITHMETICS = ("float32", "float16", "tf32")
PASSES = ("inference", "forward", "training")
LABELS = {
    "inference": "inference", "forward": "training forward", "training": "forward + backward",
}  # fmt: skip
LARGE_BATCH = 256
# The same walk through the program at sizes that a stand-in computes in no time.
REDUCED_SIZES = ((1, 16, 1, 5), (2, 8, 3, 4))


@dataclass(frozen=True)
class Group:
    """A network in one arithmetic: what is set up once; its lines are the passes."""

    network: Network
    arithmetic: str

    @property
    def name(self) -> str:
        """'LSTM L4 U1024 B64 T40, tf32'."""
        return f"{self.network.name}, {self.arithmetic}"

    def line(self, pass_: str) -> str:
        """'LSTM L4 U1024 B64 T40, tf32, forward + backward'."""
        return f"{self.name}, {LABELS[pass_]}"


def sizes_of(reduced: bool) -> list[tuple[int, int, int, int]]:
    """L, U, B, T: the ten of the CPU's benchmark, and the batched ones of them at batch 256."""
    if reduced:
        return list(REDUCED_SIZES)
    large = [(l, u, LARGE_BATCH, t) for l, u, b, t in GATE_SIZES if b > 1]
    return [*GATE_SIZES, *large]


def groups(reduced: bool = False) -> Iterator[Group]:
    """All of them; those of one network stand together, since they share its files."""
    for sizes in sizes_of(reduced):
        for cell in ("lstm", "gru"):
            for arithmetic in ARITHMETICS:
                yield Group(Network(cell, *sizes), arithmetic)
