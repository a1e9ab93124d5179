"""A character model in data parallel: torch.distributed, and the modules of openrnn.torch.

    python ddp.py [FILE] [--processes 2] [--steps 50] [--dtype float32]

Each process trains on its rows of the batch; DistributedDataParallel averages the gradients, so the
losses are those of one process with the whole batch. FILE is any text; without one the program
reads itself. Prints the loss of each step.
"""

import argparse
import os
import socket
from pathlib import Path

import openrnn.torch as ort
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

BATCH, TIME = 8, 24


class Characters(nn.Module):
    """Byte in, logits of the next byte out."""

    def __init__(self, units: int = 32) -> None:
        super().__init__()
        self.embed = nn.Embedding(256, 16)
        self.lstm = ort.LSTM(16, units, num_layers=2, batch_first=True)
        self.head = nn.Linear(units, 256)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(self.embed(x))[0])


def batches(text: bytes, steps: int) -> list[torch.Tensor]:
    """[B, T + 1] bytes for each step, the same in every process."""
    data = torch.tensor(list(text), dtype=torch.int64)
    generator = torch.Generator().manual_seed(1)
    starts = torch.randint(0, len(data) - TIME - 1, (steps, BATCH), generator=generator)
    return [torch.stack([data[s : s + TIME + 1] for s in step.tolist()]) for step in starts]


def train(rank: int, processes: int, args: argparse.Namespace) -> list[float]:
    """The losses of the whole batch, step by step."""
    torch.manual_seed(0)
    model: nn.Module = Characters().to(getattr(torch, args.dtype))
    if processes > 1:
        model = DistributedDataParallel(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    text = Path(args.file).read_bytes()
    rows = slice(rank * BATCH // processes, (rank + 1) * BATCH // processes)
    losses = []
    for batch in batches(text, args.steps):
        mine = batch[rows]
        logits = model(mine[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), mine[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = loss.detach().clone()
        if processes > 1:
            dist.all_reduce(total)
        losses.append(total.item() / processes)
    return losses


def worker(rank: int, port: int, args: argparse.Namespace) -> None:
    """One process of several."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=args.processes)
    losses = train(rank, args.processes, args)
    if rank == 0:
        report(losses)
    dist.destroy_process_group()


def report(losses: list[float]) -> None:
    for step, loss in enumerate(losses):
        print(f"step {step} loss {loss:.12f}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("file", nargs="?", default=__file__)
    parser.add_argument("--processes", type=int, default=2, choices=[1, 2, 4, 8])
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--dtype", default="float32", choices=["float32", "float64"])
    args = parser.parse_args()
    if args.processes == 1:
        report(train(0, 1, args))
        return
    torch.multiprocessing.spawn(worker, args=(free_port(), args), nprocs=args.processes)


if __name__ == "__main__":
    main()
