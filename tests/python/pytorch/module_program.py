"""A program as users of PyTorch write them; `train` saves, `restore` reads in another process."""

import copy
import pickle
import sys

import numpy as np
import openrnn
from openrnn.cudnn_rnn import CudnnGRU, CudnnLSTM


class Net(openrnn.layers.Layer):
    def __init__(self):
        super().__init__()
        self.layers = [CudnnLSTM(1, 4), CudnnGRU(1, 3)]  # two sublayers in a list
        self.scale = openrnn.Variable(np.full(3, 0.5, "float32"), name="scale")

    def call(self, x):
        for layer in self.layers:
            x, _ = layer(np.float32(0.5) * x)  # NumPy constants on the left
        return np.full(x.shape, 1.5, "float32") * x + self.scale - 0.25


def main(command, stored, folder):
    data = np.load(stored)
    net = Net()
    if command == "restore":
        status = openrnn.train.Checkpoint(net=net).restore(f"{folder}/net-1")
        output = net(data["x"])
        status.assert_consumed()
        return np.savez(f"{folder}/restored.npz", output=output)
    net(data["x"])
    for i, layer in enumerate(net.layers):
        layer.kernel.assign(data[f"params{i}"])
    with openrnn.GradientTape() as tape:
        loss = openrnn.reduce_sum(data["weights"] * net(data["x"]))
    gradients = tape.gradient(loss, net.trainable_weights)
    found = {f"all{i}": gradient for i, gradient in enumerate(gradients)}
    net.layers[0].trainable = False  # freezing one layer
    other = pickle.loads(pickle.dumps(copy.deepcopy(net)))
    step = openrnn.train.GradientDescentOptimizer(0.1)
    step.minimize(lambda: openrnn.reduce_sum(data["weights"] * other(data["x"])),
                  var_list=other.trainable_weights)  # fmt: skip
    found.update({f"trained{i}": v.numpy() for i, v in enumerate(other.weights)})
    found.update({f"kept{i}": v.numpy() for i, v in enumerate(net.weights)})
    openrnn.train.Checkpoint(net=other).save(f"{folder}/net")
    np.savez(f"{folder}/trained.npz", loss=loss, output=other(data["x"]), **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
