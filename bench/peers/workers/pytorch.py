"""PyTorch: torch.nn.LSTM, GRU and RNN, called from Python, as they are, compiled, or converted by
openrnn.torch."""

from peers.workers import server

THREADS = server.pin()

import numpy as np  # noqa: E402
import torch  # noqa: E402
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence  # noqa: E402

from peers.workers import layout, torch_parameters  # noqa: E402

torch.set_num_threads(THREADS)
DTYPES = {"float32": torch.float32, "bf16": torch.bfloat16}


def convert(module: torch.nn.Module, frozen: bool) -> None:
    """Makes it one of openrnn.torch, which only these sides need."""
    import openrnn.torch

    openrnn.torch.convert(module)
    if frozen:
        openrnn.torch.freeze(module)


class Job:
    """One network and its input."""

    def __init__(self, task: server.Task) -> None:
        math, weights = task.text("math", "float32"), task.text("weights", "float32")
        if math not in DTYPES or weights != "float32":
            raise server.Refused("not an arithmetic of PyTorch's recurrent layers")
        # Which of the two paths of its LSTM. Of both nothing is timed, so that one process has both.
        torch.backends.mkldnn.set_flags(task.number("onednn", 1) == 1)
        self.task, dtype = task, DTYPES[math]
        self.parts = layout.parts_of(task)
        self.module = torch_parameters.MODULES[task.text("cell")](
            task.number("input"), task.number("units"), task.number("layers"),
            bidirectional=task.number("directions", 1) == 2,
        )  # fmt: skip
        torch_parameters.fill(self.module, self.parts)
        self.module.to(dtype)
        self.parameters = self.module  # a compiled one has other names
        self.drop_in = task.text("drop_in")
        if self.drop_in:
            convert(self.module, frozen=self.drop_in == "frozen")
        elif task.number("compile"):
            self.module = torch.compile(self.module)
        self.x = torch.from_numpy(np.asarray(task.array("x"), np.float32)).to(dtype)
        states = [torch.from_numpy(np.asarray(each, np.float32)).to(dtype) for each in task.states()]
        # What follows the input in a call: (h, c) of an LSTM, h of others.
        self.start = (tuple(states) if len(states) == 2 else states[0],) if states else ()
        self.lengths = None
        if task.lengths_kind == "packed":
            self.lengths = torch.from_numpy(task.array("lengths").astype(np.int64))
        elif task.lengths_kind == "given":
            raise server.Refused("lengths are given by packing alone")
        if task.training:
            self.x.requires_grad_()
            self.r = torch.from_numpy(np.asarray(task.array("r"), np.float32)).to(dtype)
        self.module.train(task.training)
        self.kernel = self._find_kernel()

    def _find_kernel(self) -> str:
        """What the forward call dispatches to."""
        if self.drop_in:
            return "openrnn.torch"
        with torch.profiler.profile() as profile, torch.inference_mode(not self.task.training):
            self._forward()
        names = {event.key for event in profile.key_averages()}
        for name, meaning in (
            ("aten::mkldnn_rnn_layer", "oneDNN (mkldnn_rnn_layer)"),
            ("aten::quantized_lstm", "quantized_lstm"),
        ):
            if name in names:
                return meaning
        return "aten cells over " + "/".join(
            sorted(n for n in names if n in ("aten::addmm", "aten::mm", "aten::linear"))
        )

    def _forward(self) -> torch.Tensor:
        if self.lengths is None:
            y, state = self.module(self.x, *self.start)
        else:
            packed = pack_padded_sequence(self.x, self.lengths, enforce_sorted=False)
            y, state = self.module(packed)
            y = pad_packed_sequence(y, total_length=self.x.shape[0])[0]
        self.y, self.state = y, state if isinstance(state, tuple) else (state,)
        return y

    def call(self) -> None:
        """Forward, or forward and backward."""
        if not self.task.training:
            with torch.inference_mode(self.drop_in != "recorded"):
                self._forward()
            return
        self.x.grad = None
        self.parameters.zero_grad(set_to_none=True)
        self._forward().backward(self.r)

    def results(self) -> dict[str, server.Array]:
        """Of the last call."""

        def host(tensor: torch.Tensor) -> server.Array:
            array: server.Array = tensor.detach().float().numpy()
            return array

        found = {"y": host(self.y)}
        found |= {name: host(value) for name, value in zip(("hn", "cn"), self.state, strict=False)}
        if self.task.training:
            dparams = torch_parameters.gradients(self.parameters, self.parts)
            found |= {"dx": host(self.x.grad), "dparams": dparams}
        return found


def make(task: server.Task) -> server.Job:
    """The job of a task."""
    if task.text("pass") == "model":
        from peers.workers.models.pytorch import Model

        return Model(task)
    return Job(task)


def about() -> str:
    """Versions of what matters."""
    config = torch.__config__.show()
    onednn = next((line.strip(" -") for line in config.splitlines() if "DNN" in line), "no oneDNN")
    return f"PyTorch {torch.__version__}, {onednn}"


if __name__ == "__main__":
    server.main(make, about)
