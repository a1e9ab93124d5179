"""Callbacks, progress, events, plots and tables."""

import pickle
import sys
import types

import numpy as np
import openrnn
import pytest
from openrnn import _core, _fit_report, layers, train

X, Y = np.arange(18, dtype="float32").reshape(6, 3) / 9, np.ones((6, 1), "float32")


def fit(**kw):
    layer = layers.Dense(1, kernel_initializer="zeros")
    optimizer = train.GradientDescentOptimizer(0.05)
    return train.fit(layer, (X, Y), "mean_squared_error", optimizer, **kw)


class Recorder(train.Callback):
    def __init__(self):
        self.seen = []

    def on_train_begin(self):
        self.seen.append(("train", type(self.model).__name__, type(self.optimizer).__name__))

    def on_epoch_begin(self, epoch):
        self.seen.append(("begin", epoch))

    def on_batch_end(self, step, logs):
        self.seen.append(("batch", step, sorted(logs)))

    def on_epoch_end(self, epoch, logs):
        self.seen.append(("end", epoch, sorted(logs)))

    def on_train_end(self, history):
        self.seen.append(("done", history.epochs, history.stopped))


def test_callbacks_in_their_order():
    recorder = Recorder()
    fit(epochs=2, batch_size=4, callbacks=recorder, progress=False, validation=(X, Y))
    batch, epoch = ["learning_rate", "loss"], ["learning_rate", "loss", "val_loss"]
    assert recorder.seen == [
        ("train", "Dense", "GradientDescentOptimizer"),
        ("begin", 0), ("batch", 1, batch), ("batch", 2, batch), ("end", 0, epoch),
        ("begin", 1), ("batch", 3, batch), ("batch", 4, batch), ("end", 1, epoch),
        ("done", 2, "done"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("event", "epochs", "steps"),
    [("on_train_begin", 0, 0), ("on_epoch_begin", 0, 0), ("on_batch_end", 1, 1), ("on_epoch_end", 1, 2)],
)
def test_false_ends_the_training(event, epochs, steps):
    class Stop(train.Callback):
        pass

    setattr(Stop, event, lambda self, *arguments: False)
    history = fit(epochs=5, batch_size=4, callbacks=[Stop()], progress=False)
    assert (history.epochs, history.steps, history.stopped) == (epochs, steps, "callback")
    history = fit(epochs=5, callbacks=lambda epoch, logs: epoch < 2, progress=False)
    assert history.epochs == 3


def test_progress_in_lines_of_80_columns(capfd, monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    fit(epochs=3, validation=(X, Y))
    out, lines = capfd.readouterr()
    assert lines.endswith("\n")
    lines = lines.splitlines()
    assert out == "" and len(lines) == 3 and max(map(len, lines)) <= 80
    assert lines[1].startswith("epoch 2/3  loss 0.") and "  lr 0.05  val_loss 0." in lines[1]
    fit(epochs=3, progress=False)
    assert capfd.readouterr() == ("", "")


def test_progress_by_tqdm_where_it_is(capfd, monkeypatch):
    calls, lengths = [], []

    class Bar:
        def __init__(self, **options):
            calls.append(options)

        def set_postfix_str(self, text, refresh):
            calls.append(text[:5])
            lengths.append(len(text))
            assert refresh is False  # update() paints it

        def update(self, n):
            calls.append(n)

        def close(self):
            calls.append("closed")

    module = types.ModuleType("tqdm.auto")
    module.tqdm = Bar
    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    fit(epochs=2)
    assert calls == [{"total": 2, "unit": "epoch", "ncols": 80}, "loss ", 1, "loss ", 1, "closed"]
    progress = _fit_report.Progress(epochs=3, shown=True)
    progress.epoch(0, dict.fromkeys("abcdefghij", 0.123456))
    assert lengths[-1] == max(lengths) == 40  # half of the line is the bar's
    calls.clear()
    with pytest.raises(KeyError):  # a bar that stays open would go on over the traceback
        fit(epochs=2, callbacks=lambda epoch, logs: logs["nothing"])
    assert calls[-1] == "closed"
    assert capfd.readouterr() == ("", "")


def test_a_notebook_s_line_comes_first_and_is_written_ten_times_a_second(capfd, monkeypatch):
    shown, clock = [], [100.0]

    class Handle:
        def update(self, text):
            shown.append(str(text))

    def display(text, display_id):
        assert display_id is True
        shown.append(str(text))
        return Handle()

    python, displays = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    python.get_ipython = lambda: types.SimpleNamespace(kernel=None)
    displays.display = display
    bars = types.ModuleType("tqdm.auto")  # without a bar: asking for one fails
    for name, module in {"IPython": python, "IPython.display": displays, "tqdm.auto": bars}.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(_fit_report.time, "monotonic", lambda: clock[0])
    progress = _fit_report.Progress(epochs=25, shown=True)
    for epoch in range(25):
        progress.epoch(epoch, {"loss": 1.0 / (epoch + 1)})
        clock[0] += 0.03
    assert [text.split()[1] for text in shown] == ["1/25", "5/25", "9/25", "13/25", "17/25", "21/25", "25/25"]
    progress.epoch(23, {"loss": 0.5})
    progress.close()
    assert shown[-1].split()[:4] == ["epoch", "24/25", "loss", "0.5"]
    count = len(shown)
    progress.close()
    assert len(shown) == count
    assert capfd.readouterr() == ("", "")


def test_tensorboard_reads_the_events(tmp_path):
    history = fit(epochs=3, batch_size=4, validation=(X, Y), tensorboard=tmp_path / "new" / "run",
                  schedule=train.PiecewiseConstant([3], [0.05, 0.01]), progress=False)  # fmt: skip
    files = list((tmp_path / "new" / "run").iterdir())
    assert len(files) == 1 and "tfevents" in files[0].name
    fit(tensorboard=tmp_path / "new" / "run", progress=False)  # a folder that is there
    tf = pytest.importorskip("tensorflow")
    found = {}
    for event in tf.compat.v1.train.summary_iterator(str(files[0])):
        for value in event.summary.value:
            number = value.simple_value or float(tf.make_ndarray(value.tensor)) \
                if value.HasField("tensor") else value.simple_value
            found.setdefault(value.tag, []).append((event.step, number))
    assert sorted(found) == ["learning_rate", "train/loss", "valid/loss"]
    for tag, name in (("train/loss", "loss"), ("valid/loss", "val_loss"), ("learning_rate",) * 2):
        assert [step for step, _ in found[tag]] == [2, 4, 6]
        np.testing.assert_allclose([value for _, value in found[tag]], history[name], rtol=1e-6)


def test_the_history_as_characters(monkeypatch):
    history = fit(epochs=12, validation=(X, Y), progress=False)
    for width in (19, 40, 80, 133):
        lines = train.plot_history(history, text=True, width=width).splitlines()
        assert len(lines) == 12 and max(map(len, lines)) == width
    assert "* loss  o val_loss" == lines[-1]
    assert repr(train.plot_history(history, text=True)) == str(train.plot_history(history, text=True))
    monkeypatch.delitem(sys.modules, "openrnn._fit_figure", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert train.plot_history(history) == train.plot_history(history, text=True)
    with pytest.raises(ImportError, match="matplotlib is not installed"):
        train.plot_history(history, text=False)
    with pytest.raises(ValueError, match="the history has no epochs"):
        train.plot_history(train.History())
    with pytest.raises(ValueError, match="width is 9, expected 19 or more"):
        train.plot_history(history, text=True, width=9)
    with pytest.raises(TypeError, match="history is a list, expected a History"):
        train.plot_history([1.0])


def test_long_values_move_the_axis_and_not_the_border():
    history = train.History()
    history.history["loss"] = [3.0, -1.5e-05, -1.234e-05, -2.5e-05]
    lines = train.plot_history(history, text=True, width=40).splitlines()
    assert lines[8].startswith("-2.5e-05 |") and lines[8].endswith("*")
    history.history["loss"][-1] = -1.234e-103
    for width in (19, 40):
        lines = train.plot_history(history, text=True, width=width).splitlines()
        assert max(map(len, lines)) == width
        assert len({line.index("|") for line in lines[:9]}) == 1
    with pytest.raises(ValueError, match="width is 18, expected 19 or more"):
        train.plot_history(history, text=True, width=18)


def test_the_history_by_matplotlib():
    history = fit(epochs=9, validation=(X, Y), early_stopping=20, progress=False)
    drawn = train.plot_history(history)
    for figure in (drawn, pickle.loads(pickle.dumps(drawn))):
        (axes,) = figure.axes
        loss, val_loss, best = axes.lines
        assert [line.get_label() for line in axes.lines] == ["loss", "val_loss", "best epoch"]
        assert list(loss.get_xdata()) == list(val_loss.get_xdata()) == list(range(1, 10))
        assert list(loss.get_ydata()) == history["loss"] and list(val_loss.get_ydata()) == history["val_loss"]
        assert set(best.get_xdata()) == {history.best_epoch + 1}
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("epoch", "loss")


def test_epochs_are_whole_and_one_is_seen():
    for epochs in (1, 2, 4):
        (axes,) = train.plot_history(fit(epochs=epochs, progress=False)).axes
        assert all(float(tick).is_integer() for tick in axes.get_xticks())
        (loss,) = axes.lines
        assert (loss.get_marker() == "o") == (epochs == 1)


def test_a_history_says_what_it_is():
    history = fit(epochs=2, progress=False)
    assert repr(history).startswith("<openrnn history of 2 epochs, 2 steps: loss 0.")


def test_summary_within_80_columns():
    x = openrnn.Input(batch_shape=(None, None, 3))
    output, _ = openrnn.cudnn_rnn.CudnnLSTM(2, 4, name="a" * 60)(x)
    dense = layers.Dense(2)
    dense.trainable = False
    model = openrnn.Model(x, dense(output))
    lines = model.summary().splitlines()
    assert max(map(len, lines)) == 80 and len(lines) == 8
    assert "(CudnnLSTM" not in lines[4] and lines[4].endswith("304")
    assert lines[4][40:].split() == ["[?,", "?,", "4]", "304"]  # of several outputs the first
    assert lines[5].split() == ["dense", "(Dense)", "[?,", "?,", "2]", "10"]
    assert lines[7] == "trainable parameters 304, other 10"


def drawn(loss, val_loss=None, **more):
    history = train.History()
    history.history = {"loss": loss, **({"val_loss": val_loss} if val_loss else {}), **more}
    return "\n" + train.plot_history(history, text=True, width=30)


def test_curves_as_characters_in_full():
    """What stays the same lies in the middle; later curves lie over earlier ones."""
    assert drawn([2.0, 2.0], learning_rate=[9.0]) == """
       2 |
         |
         |
         |
         |*                  *
         |
         |
         |
       2 |
         +--------------------
          1                  2
* loss"""
    assert drawn([4.0, 1.0, 3.0], [2.5, 2.0]) == """
       4 |*
         |
         |
         |                   *
         |o
         |          o
         |
         |
       1 |          *
         +--------------------
          1                  3
* loss  o val_loss"""
    assert drawn([0.5], [1.0]) == """
       1 |o
         |
         |
         |
         |
         |
         |
         |
     0.5 |*
         +--------------------
          1                  1
* loss  o val_loss"""
    assert drawn([1.0, 1.0], [1.0, 0.0]).splitlines()[1] == "       1 |o                  *"


class Twice(layers.Layer):
    def call(self, inputs):
        return [inputs, inputs * 2.0]


def test_a_summary_in_full():
    x = openrnn.Input(batch_shape=(None, 8, 3))
    wide = layers.Dense(1200, name="wide")
    wide.trainable = False
    outputs = Twice(name="two")(layers.Dense(2, name="n" * 32)(wide(x)))
    rule = "-" * 80
    assert str(openrnn.Model(x, outputs, name="m").summary()) == f"""<openrnn.Model 'm'>
{rule}
layer                                   output                        parameters
{rule}
wide (Dense)                            [?, 8, 1200]                       4,800
{"n" * 32} (De..  [?, 8, 2]                          2,402
two (Twice)                             [?, 8, 2]                              0
{rule}
trainable parameters 2,402, other 4,800"""
    model = openrnn.Model(x, layers.Dense(1)(x), name="a" * 62)
    assert model.summary().splitlines()[0] == f"<openrnn.Model '{'a' * 62}'>"
    longer = openrnn.Model(x, layers.Dense(1)(x), name="a" * 63)
    assert longer.summary().splitlines()[0] == f"<openrnn.Model '{'a' * 62}.."
    assert repr(model.summary()) == str(model.summary())


def test_a_picture_is_png_whatever_matplotlib_saves_by_default():
    matplotlib = pytest.importorskip("matplotlib")
    with matplotlib.rc_context({"savefig.format": "svg"}):
        picture = train.plot_history(fit(epochs=2, progress=False))._repr_png_()
    assert picture.startswith(b"\x89PNG\r\n")


def test_how_a_figure_looks():
    history = train.History()
    history.history = {"loss": [float(i) for i in range(24)], "val_loss": [1.0] * 24}
    assert len(train.plot_history(history).axes[0].lines) == 2
    history.best_epoch = 0
    drawn = train.plot_history(history)
    axes = drawn.axes[0]
    assert drawn.get_size_inches().tolist() == [7.0, 4.0]
    ticks = axes.xaxis.get_major_locator().tick_values
    assert ticks(1, 7).tolist() == list(range(1, 8))
    assert ticks(1, 24).tolist() == [0, 5, 10, 15, 20, 25]
    assert ticks(1, 100).tolist() == [0, 20, 40, 60, 80, 100]
    best = axes.lines[-1]
    assert list(best.get_xdata()) == [1, 1] and best.get_linestyle() == "--"
    assert (best.get_color(), best.get_linewidth()) == ("0.6", 1)
    assert axes.get_xgridlines()[0].get_alpha() == 0.3
    assert [one.get_text() for one in axes.get_legend().get_texts()] == ["loss", "val_loss", "best epoch"]


def test_a_history_s_figures():
    history = train.History()
    history._add({"loss": 0.123456, "learning_rate": 0.5})
    history._add({"loss": 1234567.0, "learning_rate": 0.25})
    history.steps = 7
    assert repr(history) == (
        "<openrnn history of 2 epochs, 7 steps: loss 1.235e+06, learning_rate 0.25>"
    )


def test_event_writer_of_a_missing_folder(tmp_path):
    with pytest.raises(OSError, match="none"):
        _core.EventWriter(str(tmp_path / "none"))
