"""The next twelve months of carbon dioxide in the air, forecast at once by a GRU.

The series is the one that statsmodels ships: weekly means at Mauna Loa, 1958 to 2001, made monthly.
What a forecast sees is the rise over a year in each of the last 24 months, and what it says is that
rise in the next twelve; the first 80 % of the forecasts train. The error measure is the mean
absolute error in parts per million. Two forecasts need no network: the seasonal naive one, the
value a year before, and the same plus the rise of the last year.

The trained network then lies in a checkpoint, which compatible cells read and compute alike.
"""
import argparse
import tempfile

import numpy as np
from statsmodels.datasets import co2

import openrnn
from openrnn import cudnn_rnn

SEEN, AHEAD, UNITS = 24, 12, 32


def load_rises():
    """Rises over a year: those seen [N, SEEN] and those to forecast [N, AHEAD]."""
    monthly = co2.load_pandas().data["co2"].resample("MS").mean().interpolate().to_numpy()
    rises = monthly[12:] - monthly[:-12]
    windows = np.lib.stride_tricks.sliding_window_view(rises, SEEN + AHEAD)
    return windows[:, :SEEN], windows[:, SEEN:]


class Forecaster:
    """Standardised rises [T, B, 1] to the next ones [B, AHEAD]."""

    def __init__(self):
        self.gru = cudnn_rnn.CudnnGRU(1, UNITS, seed=1)
        self.dense = openrnn.layers.Dense(AHEAD, seed=2)

    def __call__(self, inputs, training=False):
        _, (h,) = self.gru(inputs, training=training)
        return self.dense(h[0])


class CellForecaster:
    """The same network of plain cells, its variables under the same names."""

    def __init__(self):
        self.cell = cudnn_rnn.CudnnCompatibleGRUCell(UNITS)
        self.stack = openrnn.nn.rnn_cell.MultiRNNCell([self.cell])
        self.dense = openrnn.layers.Dense(AHEAD)

    def __call__(self, inputs):
        with openrnn.variable_scope("cudnn_gru"):
            _, (h,) = openrnn.nn.dynamic_rnn(self.stack, inputs, dtype="float32", time_major=True)
        return self.dense(h)


def train(model, inputs, targets, epochs, batch=32):
    """Squared error, and a penalty on large weights: the series is short."""
    optimizer = openrnn.train.AdamOptimizer(3e-3)
    shuffle = np.random.RandomState(3)
    for epoch in range(1, epochs + 1):
        order = shuffle.permutation(len(targets))
        losses = []
        for start in range(0, len(order) - batch + 1, batch):
            rows = order[start:start + batch]

            def loss():
                error = openrnn.losses.mean_squared_error(
                    targets[rows], model(inputs[:, rows], training=True))
                losses.append(float(error))
                return error + openrnn.nn.l2_loss(model.gru.kernel) * 0.01

            optimizer.minimize(loss)
        if epoch % 5 == 0:
            print(f"epoch {epoch}: loss {np.mean(losses):.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=30)
    arguments = parser.parse_args()

    seen, truth = load_rises()
    split = len(seen) * 4 // 5
    known = slice(0, split - AHEAD)  # what came true before the first held-out forecast was made
    mean, deviation = truth[known].mean(), truth[known].std()
    inputs = ((seen - mean) / deviation).T[:, :, None].astype("float32")  # [T, N, 1]
    targets = ((truth - mean) / deviation).astype("float32")

    def mae(forecasts):
        return np.abs(forecasts - truth[split:]).mean()

    print(f"{len(targets[known])} forecasts to train on, {len(truth) - split} held out")
    print(f"mean absolute error of the seasonal naive forecast: {mae(0.0):.4f} ppm")
    print(f"mean absolute error of that with the last rise: {mae(seen[split:, -1:]):.4f} ppm")
    model = Forecaster()
    train(model, inputs[:, known], targets[known], arguments.epochs)
    forecasts = model(inputs[:, split:]).numpy()
    print(f"mean absolute error of the network: {mae(forecasts * deviation + mean):.4f} ppm")

    with tempfile.TemporaryDirectory() as folder:
        prefix = openrnn.train.Saver().save(folder + "/model")
        with openrnn.Graph().as_default():
            cells = CellForecaster()
            cells(inputs[:, :1])  # the first call makes the variables
            openrnn.train.Saver().restore(prefix)
            difference = np.abs(cells(inputs[:, split:]).numpy() - forecasts).max()
    print(f"compatible cells differ by at most {difference:.1e} standard deviations")


if __name__ == "__main__":
    main()
