"""PyTorch's side: torch.nn.LSTM and GRU over its cuDNN, timed by CUDA events.

A worker of the protocol of `peers.workers.server`; needs torch and NumPy, nothing else.
"""

import time

import numpy as np
import torch

from peers.workers import layout, server, torch_parameters

DTYPES = {"float32": torch.float32, "tf32": torch.float32, "float16": torch.float16}


def use_arithmetic(name: str) -> torch.dtype:
    """float32 is exact, as ours; TF32 only where it is asked for."""
    torch.backends.cudnn.allow_tf32 = name == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
    return DTYPES[name]


class Job:
    """One network in one arithmetic, whose call is one of three passes."""

    def __init__(self, task: server.Task) -> None:
        self.device = torch.device(task.text("device", "cuda"))
        if self.device.type == "cuda":
            if not torch.cuda.is_available():
                raise server.Refused("this PyTorch sees no GPU")
            torch.cuda.empty_cache()  # the other side needs memory too
        if task.text("arithmetic") not in DTYPES:
            raise server.Refused(f"arithmetic {task.text('arithmetic')!r} is not PyTorch's")
        dtype = use_arithmetic(task.text("arithmetic"))
        self.parts = layout.parts_of(task)
        self.module = torch_parameters.MODULES[task.text("cell")](
            task.number("input"), task.number("units"), task.number("layers")
        )
        torch_parameters.fill(self.module, self.parts)
        self.module.to(self.device, dtype)
        if self.device.type == "cuda":
            self.module.flatten_parameters()

        def given(name: str) -> torch.Tensor:
            return torch.from_numpy(np.asarray(task.array(name), np.float32)).to(self.device, dtype)

        self.x, self.r = given("x"), given("r")
        self.kernel = f"{self.device.type}, {dtype}, cuDNN {torch.backends.cudnn.version()}"
        self.pass_ = ""
        self.choose("inference")

    def choose(self, pass_: str) -> None:
        """'inference', 'forward' (for training), 'training' (with backward)."""
        if pass_ not in ("inference", "forward", "training"):
            raise ValueError(f"pass is {pass_!r}, expected inference, forward or training")
        self.pass_ = pass_
        self.module.train(pass_ != "inference")
        self.x.requires_grad_(pass_ != "inference")

    def call(self) -> None:
        """One pass; what it enqueues may still run."""
        if self.pass_ == "inference":
            with torch.inference_mode():
                self.y, state = self.module(self.x)
        else:
            self.y, state = self.module(self.x)
            if self.pass_ == "training":
                self.x.grad = None
                self.module.zero_grad(set_to_none=True)
                self.y.backward(self.r)
        self.state = state if isinstance(state, tuple) else (state,)

    def times(self, count: int, warm: int) -> list[float]:
        """Nanoseconds between the events around each call; nothing waits between the calls."""
        for _ in range(warm):
            self.call()
        if self.device.type != "cuda":
            return self._times_by_clock(count)
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
        torch.cuda.synchronize()
        marks[0].record()
        for mark in marks[1:]:
            self.call()
            mark.record()
        torch.cuda.synchronize()
        return [a.elapsed_time(b) * 1e6 for a, b in zip(marks, marks[1:], strict=False)]

    def _times_by_clock(self, count: int) -> list[float]:
        found = []
        for _ in range(count):
            begin = time.perf_counter_ns()
            self.call()
            found.append(float(time.perf_counter_ns() - begin))
        return found

    def results(self) -> dict[str, server.Array]:
        """Of the last call."""

        def host(tensor: torch.Tensor) -> server.Array:
            array: server.Array = tensor.detach().float().cpu().numpy()
            return array

        found = {"y": host(self.y)}
        found |= {name: host(value) for name, value in zip(("hn", "cn"), self.state, strict=False)}
        if self.pass_ == "training":
            dparams = torch_parameters.gradients(self.module, self.parts)
            found |= {"dx": host(self.x.grad), "dparams": dparams}
        return found


def about() -> str:
    """Versions, and the GPU."""
    gpu = torch.cuda.get_device_name(0) if torch.cuda.is_available() else "no GPU"
    return f"PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}, {gpu}"


if __name__ == "__main__":
    server.main(Job, about)
