"""A model trained in several processes, with the bits of one.

    mpirun -n 4 python mpi_train.py

Each process has all of the data and computes its share of every step's four parts. They talk by
mpi4py where it is installed, else by the library's own module for MPI; alone, by nothing. Rank 0
prints the losses and a fingerprint of the weights, which is the same for 1, 2 and 4 processes.
"""

import hashlib

import numpy as np
import openrnn
from openrnn import layers, train


def communicator():
    """What `communicator=` takes, and whether this process speaks."""
    try:
        from mpi4py import MPI
    except ImportError:
        import os

        several = int(os.environ.get("OMPI_COMM_WORLD_SIZE", os.environ.get("PMI_SIZE", 1))) > 1
        rank = int(os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK", 0)))
        return ("mpi" if several else None), rank == 0
    return MPI.COMM_WORLD, MPI.COMM_WORLD.Get_rank() == 0


def data(samples=96, steps=20):
    """Sums of noisy sequences: x [T, B, 2], y [B, 1]."""
    random = np.random.default_rng(0)
    x = random.normal(size=(steps, samples, 2)).astype("float32")
    return x, x[:, :, :1].sum(axis=0) / steps**0.5


def main() -> None:
    """Trains and prints."""
    processes, speaks = communicator()
    inputs = openrnn.Input(batch_shape=(20, None, 2))
    outputs, _ = openrnn.cudnn_rnn.CudnnLSTM(1, 16, seed=1)(inputs)
    model = openrnn.Model(inputs, layers.Dense(1, seed=2)(outputs[-1]))
    history = model.fit(data(), "mean_squared_error", train.Adam(0.01), epochs=5, batch_size=16,
                        batch_axis=(1, 0), micro_batches=4, progress=False,
                        communicator=processes)  # fmt: skip
    if speaks:
        for epoch, loss in enumerate(history["loss"], 1):
            print(f"epoch {epoch}: {loss:.6f}")
        bits = b"".join(weight.numpy().tobytes() for weight in model.weights)
        print("weights:", hashlib.sha256(bits).hexdigest()[:16])


if __name__ == "__main__":
    main()
