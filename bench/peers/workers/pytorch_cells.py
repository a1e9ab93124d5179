"""Cells with options as a PyTorch user writes them: the product with the input of all steps at once,
then a loop over time, whose step may be compiled."""

from collections.abc import Callable, Mapping
from typing import Any

from peers.workers import server

THREADS = server.pin()

import numpy as np  # noqa: E402
import torch  # noqa: E402
from torch.nn import functional  # noqa: E402

from peers.cells import CELLS, Cell  # noqa: E402
from peers.workers import layout  # noqa: E402

torch.set_num_threads(THREADS)
Tensor = torch.Tensor
LSTM_OPTIONS = {
    "recurrent_activation", "activation", "output_activation", "use_peepholes", "coupled_gates",
    "cell_clip",
}  # fmt: skip
# (product with the input, state, recurrent matrix, vectors) to the next state, whose first is h.
Step = Callable[[Tensor, tuple[Tensor, ...], Tensor, Tensor], tuple[Tensor, ...]]


def activation(text: str) -> Callable[[Tensor], Tensor]:
    """By the name that an option has: 'softsign', 'hard_sigmoid(0.2, 0.5)'."""
    name, _, rest = text.partition("(")
    if name == "hard_sigmoid":
        alpha, beta = (float(number) for number in rest.removesuffix(")").split(","))
        return lambda x: torch.clamp(alpha * x + beta, 0.0, 1.0)
    return {"sigmoid": torch.sigmoid, "tanh": torch.tanh, "softsign": functional.softsign}[name]


def lstm_step(options: Mapping[str, Any]) -> Step:
    """An LSTM's, gates i f g o."""
    gate = activation(options.get("recurrent_activation", "sigmoid"))
    squash = activation(options.get("activation", "tanh"))
    squash_out = activation(options.get("output_activation", "tanh"))
    peepholes, coupled = options.get("use_peepholes", False), options.get("coupled_gates", False)
    clip = options.get("cell_clip")

    def step(
        x: Tensor, state: tuple[Tensor, ...], recurrent: Tensor, vectors: Tensor
    ) -> tuple[Tensor, ...]:
        h, c = state
        i, f, g, o = torch.addmm(x, h, recurrent.t()).chunk(4, 1)
        if peepholes:
            i, f = i + vectors[0] * c, f + vectors[1] * c
        i, g = gate(i), squash(g)
        f = 1.0 - i if coupled else gate(f)
        c = f * c + i * g
        if clip is not None:
            c = torch.clamp(c, -clip, clip)
        if peepholes:
            o = o + vectors[2] * c
        return gate(o) * squash_out(c), c

    return step


def layer_norm_step(options: Mapping[str, Any]) -> Step:
    """LayerNormBasicLSTMCell's; the biases of gates follow gains, and gain and bias of c."""
    epsilon = options["layer_norm_epsilon"]

    def step(
        x: Tensor, state: tuple[Tensor, ...], recurrent: Tensor, vectors: Tensor
    ) -> tuple[Tensor, ...]:
        h, c = state
        units = (h.shape[1],)
        sums = torch.addmm(x, h, recurrent.t()).chunk(4, 1)
        i, f, g, o = (
            functional.layer_norm(sums[k], units, vectors[k], vectors[6 + k], epsilon)
            for k in range(4)
        )
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        c = functional.layer_norm(c, units, vectors[4], vectors[5], epsilon)
        return torch.sigmoid(o) * torch.tanh(c), c

    return step


def step_of(cell: Cell) -> Step:
    """Refuses options that none of the steps has."""
    if cell.mode == "gru" and cell.options == {"reset_after": False}:
        return gru_step
    if cell.mode == "lstm" and cell.options.get("layer_norm") == "gates":
        if cell.options.keys() == {"layer_norm", "layer_norm_cell", "layer_norm_epsilon"}:
            return layer_norm_step(cell.options)
    elif cell.mode == "lstm" and cell.options.keys() <= LSTM_OPTIONS:
        return lstm_step(cell.options)
    raise ValueError(f"{cell} has no step here")


def gru_step(
    x: Tensor, state: tuple[Tensor, ...], recurrent: Tensor, vectors: Tensor
) -> tuple[Tensor, ...]:
    """A GRU's, the reset gate before the product, gates r z n."""
    (h,) = state
    units = h.shape[1]
    gates = torch.sigmoid(torch.addmm(x[:, : 2 * units], h, recurrent[: 2 * units].t()))
    r, z = gates.chunk(2, 1)
    n = torch.tanh(torch.addmm(x[:, 2 * units :], r * h, recurrent[2 * units :].t()))
    return ((1.0 - z) * n + z * h,)


class Job:
    """One layer and its input."""

    def __init__(self, task: server.Task) -> None:
        self.task = task
        cell = CELLS[task.text("option").replace("_", " ")]
        (part,) = layout.parts_of(task)
        self.states = 2 if cell.mode == "lstm" else 1
        tail = np.asarray(task.array("params"), np.float32)
        vectors = tail[tail.size - cell.vectors * task.number("units") :]
        arrays = (part.w, part.r, part.bw, part.br, vectors.reshape(-1, task.number("units")))
        self.parameters = [torch.from_numpy(array.copy()) for array in arrays]
        self.x = torch.from_numpy(np.asarray(task.array("x"), np.float32))
        if task.training:
            self.r = torch.from_numpy(np.asarray(task.array("r"), np.float32))
            for tensor in (*self.parameters, self.x):
                tensor.requires_grad_()
        self.normalized = "layer_norm" in cell.options
        self.step = step_of(cell)
        self.kernel = "a loop of steps"
        if task.number("compile"):
            self.step = torch.compile(self.step, dynamic=False)
            self.kernel = "a loop of steps under torch.compile"

    def _forward(self) -> Tensor:
        w, recurrent, bw, br, vectors = self.parameters
        batch, units = self.x.shape[1], recurrent.shape[1]
        if self.normalized:  # the biases join after it
            inputs = functional.linear(self.x, w).unbind(0)
            vectors = torch.cat([vectors, (bw + br).reshape(-1, units)])
        else:
            inputs = functional.linear(self.x, w, bw + br).unbind(0)
        self.state = tuple(torch.zeros(batch, units) for _ in range(self.states))
        outputs = []
        for each in inputs:
            self.state = self.step(each, self.state, recurrent, vectors)
            outputs.append(self.state[0])
        self.y = torch.stack(outputs)
        return self.y

    def call(self) -> None:
        """Forward, or forward and backward."""
        if not self.task.training:
            with torch.inference_mode():
                self._forward()
            return
        for tensor in (*self.parameters, self.x):
            tensor.grad = None
        self._forward().backward(self.r)

    def results(self) -> dict[str, server.Array]:
        """Of the last call."""
        found = {"y": self.y.detach().numpy()}
        found |= {n: s.detach().numpy() for n, s in zip(("hn", "cn"), self.state, strict=False)}
        if self.task.training:
            w, r, bw, br, vectors = (
                torch.zeros_like(p) if p.grad is None else p.grad for p in self.parameters
            )
            buffer = layout.buffer_of(
                [layout.Part(0, 0, w.numpy(), r.numpy(), bw.numpy(), br.numpy())]
            )
            found["dparams"] = np.concatenate([buffer, vectors.numpy().reshape(-1)])
            found["dx"] = self.x.grad.numpy()
        return found


def about() -> str:
    """The version."""
    return f"PyTorch {torch.__version__}"


if __name__ == "__main__":
    server.main(Job, about)
