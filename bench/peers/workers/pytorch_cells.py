"""Cells with options as a PyTorch user writes them: the product with the input of all steps at once,
then a loop over time, whose step may be compiled."""

from collections.abc import Callable

from peers.workers import server

THREADS = server.pin()

import numpy as np  # noqa: E402
import torch  # noqa: E402
from torch.nn import functional  # noqa: E402

from peers.cells import CELLS  # noqa: E402
from peers.workers import layout  # noqa: E402

torch.set_num_threads(THREADS)
Tensor = torch.Tensor
EPSILON = 1e-5
# (product with the input, state, recurrent matrix, vectors) to the next state, whose first is h.
Step = Callable[[Tensor, tuple[Tensor, ...], Tensor, Tensor], tuple[Tensor, ...]]


def lstm_step(option: str) -> Step:
    """An LSTM's, gates i f g o."""
    gate = torch.sigmoid
    if option == "hard sigmoid":
        gate = lambda x: torch.clamp(0.2 * x + 0.5, 0.0, 1.0)
    squash = functional.softsign if option == "softsign" else torch.tanh

    def step(
        x: Tensor, state: tuple[Tensor, ...], recurrent: Tensor, vectors: Tensor
    ) -> tuple[Tensor, ...]:
        h, c = state
        i, f, g, o = torch.addmm(x, h, recurrent.t()).chunk(4, 1)
        if option == "peepholes":
            i, f = i + vectors[0] * c, f + vectors[1] * c
        i, g = gate(i), squash(g)
        f = 1.0 - i if option == "coupled gates" else gate(f)
        c = f * c + i * g
        if option == "cell clip":
            c = torch.clamp(c, -3.0, 3.0)
        if option == "peepholes":
            o = o + vectors[2] * c
        return gate(o) * squash(c), c

    return step


def layer_norm_step(
    x: Tensor, state: tuple[Tensor, ...], recurrent: Tensor, vectors: Tensor
) -> tuple[Tensor, ...]:
    """The step of LayerNormBasicLSTMCell; the biases of gates follow gains, and gain and bias of c."""
    h, c = state
    units = (h.shape[1],)
    sums = torch.addmm(x, h, recurrent.t()).chunk(4, 1)
    i, f, g, o = (
        functional.layer_norm(sums[k], units, vectors[k], vectors[6 + k], EPSILON) for k in range(4)
    )
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    c = functional.layer_norm(c, units, vectors[4], vectors[5], EPSILON)
    return torch.sigmoid(o) * torch.tanh(c), c


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
        self.task, option = task, task.text("option").replace("_", " ")
        cell = CELLS[option]
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
        self.normalized = option == "layer norm"
        self.step: Step = lstm_step(option) if cell.mode == "lstm" else gru_step
        if self.normalized:
            self.step = layer_norm_step
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
