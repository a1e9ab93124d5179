"""openrnn train under mpirun with NCCL, over the stand-ins: the bits of one process, and errors."""
import subprocess
import sys

import pytest
from mpi_runs import ENVIRONMENT, command, needs_mpi, parts_flags

from tool.tool_runs import BUILD, MINUTES, TOOL, checkpoint_bytes, good, write_text

STAND_INS = BUILD / "stand_in"
OVER_STAND_INS = {**ENVIRONMENT, "OPENRNN_CUDA_LIBRARIES": str(STAND_INS), "STAND_IN_GPUS": "4"}

needs_stand_ins = pytest.mark.skipif(not (STAND_INS / "libnccl.so.2").exists(),
                                     reason="built without the GPU engine (nvcc, cudnn.h)")


@pytest.fixture(name="text", scope="module")
def fixture_text(tmp_path_factory):
    return write_text(tmp_path_factory.mktemp("text"))


def over_nccl(processes, flags, tmp_path, **settings):
    """A finished run of the tool; what the ranks say to each other passes through files there."""
    return subprocess.run(
        command(processes, TOOL, *flags, "--communicator", "nccl"), capture_output=True, text=True,
        timeout=MINUTES, check=False, env={**OVER_STAND_INS, "TMPDIR": str(tmp_path), **settings})


def complaints(done):
    assert done.returncode != 0
    return [line for line in done.stderr.splitlines() if line.startswith("openrnn: ")]


@needs_mpi
@needs_stand_ins
@pytest.mark.parametrize("reduction", ["exact", "fast"])
def test_the_bits_of_one_process(reduction, text, tmp_path):
    steps = 12
    alone = good(*parts_flags(text, tmp_path / "1", steps=steps))
    for processes in (1, 2, 4):
        out = tmp_path / f"of{processes}"
        done = over_nccl(processes, parts_flags(text, out, steps=steps, reduction=reduction), tmp_path)
        assert done.returncode == 0, done.stderr
        if reduction == "exact":
            assert checkpoint_bytes(out, steps) == checkpoint_bytes(tmp_path / "1", steps)
            assert done.stdout == alone.stdout
        assert not list(tmp_path.glob("openrnn_nccl_*")), "all have left"


@needs_mpi
@needs_stand_ins
def test_what_fails_is_said_once(text, tmp_path):
    flags = parts_flags(text, tmp_path / "out")
    done = over_nccl(2, flags, tmp_path, STAND_IN_GPUS="0")
    said = complaints(done)
    assert len(said) == 1 and said[0].endswith(
        "[nccl] NCCL cannot be used: the NVIDIA driver shows no GPU; look at nvidia-smi and "
        "CUDA_VISIBLE_DEVICES")
    done = over_nccl(2, flags, tmp_path, STAND_IN_NCCL="21306")
    assert "NCCL is of version 2.13.6, expected 2.14.0 or newer of version 2" in complaints(done)[0]
    # Both processes on one GPU.
    done = over_nccl(2, flags, tmp_path, STAND_IN_GPUS="1")
    assert done.returncode != 0 and "each rank needs a GPU of its own" in done.stderr
    # One process alone, in the middle of the run: MPI ends the others, which wait on their GPUs.
    done = over_nccl(4, flags, tmp_path, STAND_IN_NCCL_FAULT="40", STAND_IN_NCCL_RANK="2")
    assert done.returncode != 0
    assert "rank 2 of 4: NCCL answered internal error (of the stand-in)" in done.stderr


FITS = """
import os, sys
import numpy as np, openrnn
from openrnn import layers, train
random = np.random.default_rng(5)
x, y = random.normal(size=(6, 16, 3)).astype("float32"), random.normal(size=(16, 1)).astype("float32")
inputs = openrnn.Input(batch_shape=(6, None, 3))
out, _ = openrnn.cudnn_rnn.CudnnLSTM(2, 5, dropout=0.4, seed=3)(inputs)
model = openrnn.Model(inputs, layers.Dense(1, seed=4)(out[-1]))
options = {"named": {"communicator": "nccl"}, "alone": {}, "made": {}}[sys.argv[1]]
if sys.argv[1] == "made":
    from openrnn import _core
    rank = _core.mpi_communicator().rank
    options = {"communicator": train.nccl_communicator(device=f"gpu:{3 - rank}", timeout=100)}
model.fit((x, y), "mean_squared_error", train.Adam(0.05), epochs=2, batch_size=8, batch_axis=(1, 0),
          micro_batches=4, progress=False, **options)
with open("weights." + os.environ["OMPI_COMM_WORLD_RANK"], "wb") as file:
    file.write(b"".join(weight.numpy().tobytes() for weight in model.weights))
"""


@needs_mpi
@needs_stand_ins
def test_fit_in_python(tmp_path):
    def weights(processes, how):
        done = subprocess.run(command(processes, sys.executable, "-c", FITS, how), cwd=tmp_path,
                              capture_output=True, text=True, timeout=MINUTES, check=False,
                              env={**OVER_STAND_INS, "TMPDIR": str(tmp_path)})
        assert done.returncode == 0, done.stderr
        files = [tmp_path / f"weights.{rank}" for rank in range(processes)]
        found = [file.read_bytes() for file in files]
        for file in files:
            file.unlink()
        return found

    alone = weights(1, "alone")
    assert len(alone[0]) > 100
    assert weights(2, "named") == alone * 2
    assert weights(2, "made") == alone * 2
