"""The same of training from Python: what each argument of train.fit and its company does."""

import numpy as np
import openrnn
from effects_of_functions import refused
from openrnn import layers, train

X = np.arange(18, dtype="float64").reshape(6, 3) / 9 - 1
Y = (X @ [[0.5], [-1.0], [2.0]]) + 0.25
SGD = train.GradientDescentOptimizer


def dense():
    layer = layers.Dense(1, dtype="float64", use_bias=False, kernel_initializer="zeros")
    layer.build((None, 3))
    return layer


def model():
    x = openrnn.Input((3,), dtype="float64")
    made = openrnn.Model(x, layers.Dense(1, dtype="float64", use_bias=False,
                                         kernel_initializer="zeros")(x))  # fmt: skip
    return made


def descent(steps, rates=None, clip=None, parts=1, order=None):
    """(losses, weights) of gradient descent in NumPy; the data in `parts` equal batches a step."""
    w, losses = np.zeros((3, 1)), []
    for step in range(steps):
        rows = np.arange(6) if order is None else order
        part = rows.reshape(parts, -1)[step % parts]
        error = X[part] @ w - Y[part]
        g = 2 * X[part].T @ error / len(part)
        if clip is not None:
            g *= min(1.0, clip / np.linalg.norm(g))
        losses.append(float((error**2).mean()))
        w = w - (0.1 if rates is None else rates(step)) * g
    return losses, w


def fitted(call="fit", **kw):
    """(history, weights) of a run over the whole data at once, unless told otherwise."""
    made = dense() if call == "fit" else model()
    kw = {"batch_size": 6, "shuffle": False, "progress": False, **kw}
    data = kw.pop("data", (X, Y))
    run = train.fit if call == "fit" else openrnn.Model.fit
    history = run(made, data, "mean_squared_error", SGD(0.1), **kw)
    return history, made.weights[0].numpy()


def called(**kw):
    seen = []
    fitted(callbacks=lambda epoch, logs: seen.append(epoch), epochs=2, **kw)
    return seen, [0, 1]


def printed(**kw):
    import contextlib
    import io

    text = io.StringIO()
    with contextlib.redirect_stderr(text):
        fitted(**kw)
    return [bool(text.getvalue())], [kw.get("progress", False)]


def events(**kw):
    import pathlib

    fitted(tensorboard="events", **kw)
    return [len(list(pathlib.Path("events").iterdir()))], [1]


def stopped(**kw):
    history, _ = fitted(epochs=9, schedule=lambda step: 0.1 if step < 2 else 9.0, early_stopping=2, **kw)
    return [history.stopped, history.epochs], ["patience", 5]


def shuffled(seed):
    order = np.random.RandomState(seed).permutation(6)
    _, w = fitted(batch_size=3, shuffle=True, seed=seed)
    return w, descent(2, parts=2, order=order)[1]


def along_axes(call="fit"):
    made = dense() if call == "fit" else model()
    run = train.fit if call == "fit" else openrnn.Model.fit
    seen = []

    def loss(y, found):
        seen.append(y.shape)
        return openrnn.reduce_mean(openrnn.square(found - openrnn.constant(y.T)))

    run(made, (X, Y.T), loss, SGD(0.1), batch_axis=(0, 1), batch_size=4, progress=False)
    return seen, [(1, 4), (1, 2)]


def endless():
    while True:
        yield X, Y


def rows_of(call):
    """Of train.fit and Model.fit alike."""
    return {
        "epochs": lambda: (fitted(call, epochs=3)[0]["loss"], descent(3)[0]),
        "validation": lambda: (fitted(call, validation=(X, Y))[0]["val_loss"], descent(2)[0][1:]),
        "callbacks": lambda: called(call=call),
        "early_stopping": lambda: stopped(call=call),
        "progress": lambda: printed(call=call, progress=True),
        "tensorboard": lambda: events(call=call),
        "micro_batches": lambda: refused(
            "micro_batches is 4 with a batch_size of 6", fitted, call, batch_size=6, micro_batches=4
        ),
        "communicator": lambda: refused("communicator is 'gloo'", fitted, call, communicator="gloo"),
        "reduction": lambda: refused("reduction is 'ring'", fitted, call, reduction="ring"),
        "clip_norm": lambda: (fitted(call, clip_norm=0.1)[1], descent(1, clip=0.1)[1]),
        "schedule": lambda: (fitted(call, schedule=0.3)[1], descent(1, lambda step: 0.3)[1]),
        "batch_size": lambda: (fitted(call, batch_size=3)[1], descent(2, parts=2)[1]),
        "seed": lambda: shuffled(5),
        "shuffle": lambda: shuffled(0),
        "batch_axis": lambda: along_axes(call),
        "steps_per_epoch": lambda: (fitted(call, data=endless(), steps_per_epoch=2)[1], descent(2)[1]),
    }  # fmt: skip


def scored(call, **kw):
    made = dense() if call == "fit" else model()
    run = train.evaluate if call == "fit" else openrnn.Model.evaluate
    return run(made, (X, Y), "mean_squared_error", **kw)


def scored_along(call):
    made = dense() if call == "fit" else model()
    run = train.evaluate if call == "fit" else openrnn.Model.evaluate
    return run(made, (X, Y.T), lambda y, found: openrnn.reduce_mean(openrnn.square(
        found - openrnn.constant(y.T))), batch_axis=(0, 1))  # fmt: skip


LOSS = float((Y**2).mean())
TRAINING = {
    "openrnn.train.fit": rows_of("fit"),
    "openrnn.Model.fit": rows_of("model"),
    "openrnn.Model.evaluate": {
        "batch_size": lambda: (scored("model", batch_size=4), LOSS),
        "batch_axis": lambda: (scored_along("model"), LOSS),
    },
    "openrnn.Model.predict": {
        "batch_size": lambda: (model().predict(X, 4), np.zeros((6, 1))),
        "batch_axis": lambda: refused("more than 2 dimensions", model().predict, X, 4, batch_axis=2),
    },
    "openrnn.train.evaluate": {
        "batch_size": lambda: (scored("fit", batch_size=4), LOSS),
        "batch_axis": lambda: (scored_along("fit"), LOSS),
    },
    "openrnn.load_model": {"custom_objects": lambda: loaded()},
    "openrnn.train.plot_history": {
        "text": lambda: ([type(plotted(text=True)).__name__], ["Text"]),
        "width": lambda: ([max(map(len, plotted(text=True, width=44).splitlines()))], [44]),
    },
    "openrnn.train.EarlyStopping": {
        "monitor": lambda: ([train.EarlyStopping(4, "loss").monitor], ["loss"]),
        "min_delta": lambda: ([train.EarlyStopping(4, min_delta=0.5).min_delta], [0.5]),
        "restore_best": lambda: ([train.EarlyStopping(4, restore_best=False).restore_best], [False]),
    },
    "openrnn.train.ExponentialDecay": {
        "staircase": lambda: ([train.ExponentialDecay(0.5, 4, 0.5, True)(7)], [0.25]),
    },
    "openrnn.train.CosineDecay": {"alpha": lambda: ([train.CosineDecay(0.5, 4, 0.5)(9)], [0.25])},
    "openrnn.train.Adam": {
        "learning_rate": lambda: (stepped(train.Adam, learning_rate=0.5), 1 - 0.5),
        "beta1": lambda: (stepped(train.Adam, 2, beta1=0.0), 1 - 2e-3),
        "beta2": lambda: (stepped(train.Adam, 2, beta2=0.0), 1 - 2e-3),
        "epsilon": lambda: (stepped(train.Adam, epsilon=3.0), 1 - 0.5e-3),
    },
    "openrnn.train.AdamW": {
        "learning_rate": lambda: (stepped(train.AdamW, learning_rate=0.5), 0.995 - 0.5),
        "beta1": lambda: (stepped(train.AdamW, beta1=0.0), (1 - 1e-5) - 1e-3),
        "beta2": lambda: (stepped(train.AdamW, beta2=0.0), (1 - 1e-5) - 1e-3),
        "epsilon": lambda: (stepped(train.AdamW, epsilon=3.0), (1 - 1e-5) - 0.5e-3),
        "weight_decay": lambda: (stepped(train.AdamW, weight_decay=0.5), 0.9995 - 1e-3),
    },
}


def stepped(kind, steps=1, **kw):
    """1 after steps with a gradient of 3."""
    w = openrnn.Variable(np.ones(1), dtype="float64")
    optimizer = kind(**kw)
    for _ in range(steps):
        optimizer.apply_gradients([([3.0], w)])
    return float(w.numpy()[0])


def plotted(**kw):
    return train.plot_history(fitted(epochs=3)[0], **kw)


class Own(layers.Layer):
    def call(self, inputs):
        return inputs * 2.0


def loaded():
    x = openrnn.Input((3,), dtype="float64")
    openrnn.Model(x, Own(dtype="float64")(x)).save("own.model")
    return openrnn.load_model("own.model", custom_objects={"Own": Own}).predict(X), 2 * X
