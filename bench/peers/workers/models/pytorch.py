"""The same language model in PyTorch: eager, with the fused Adam."""

import numpy as np
import torch

from peers.workers.layout import parts_of
from peers.workers.server import Array, Task
from peers.workers.torch_parameters import fill

LEARNING_RATE, CLIP = 0.002, 1.0


class Model:
    """The state goes on from call to call, its history does not."""

    def __init__(self, task: Task) -> None:
        def tensor(name: str) -> torch.Tensor:
            return torch.from_numpy(np.asarray(task.array(name), np.float32))

        embedding, dense = tensor("embedding"), tensor("dense")
        self.embedding = torch.nn.Embedding.from_pretrained(embedding, freeze=False)
        self.rnn = torch.nn.LSTM(embedding.shape[1], task.number("units"), task.number("layers"))
        fill(self.rnn, parts_of(task))
        self.dense = torch.nn.Linear(*dense.shape)
        self.dense.load_state_dict({"weight": dense.T.contiguous(), "bias": tensor("bias")})
        ids = torch.from_numpy(task.array("ids").astype(np.int64))
        self.windows = [(window[:-1], window[1:]) for window in ids]
        self.state: tuple[torch.Tensor, torch.Tensor] | None = None
        layers = (self.embedding, self.rnn, self.dense)
        self.parameters = [p for layer in layers for p in layer.parameters()]
        self.optimizer = torch.optim.Adam(self.parameters, LEARNING_RATE, fused=True)
        self.losses: list[float] = []
        self.kernel = "eager, Adam(fused=True)"

    def call(self) -> None:
        """One step."""
        ids, targets = self.windows[len(self.losses) % len(self.windows)]
        self.optimizer.zero_grad(set_to_none=True)
        y, state = self.rnn(self.embedding(ids), self.state)
        logits = self.dense(y)
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, CLIP)
        self.optimizer.step()
        self.state = tuple(part.detach() for part in state)
        self.losses.append(float(loss.detach()))

    def results(self) -> dict[str, Array]:
        """The losses of the first four steps."""
        while len(self.losses) < 4:
            self.call()
        return {"losses": np.array(self.losses[:4], np.float32)}
