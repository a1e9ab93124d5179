"""What fit() and plot_history() show in the kernel of a notebook, where stderr is red and a page long."""

import base64

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from model.kernels import own_folders, script

SETUP = """
import numpy as np
import openrnn
from openrnn import layers, train

x, y = np.arange(18, dtype="float32").reshape(6, 3) / 9, np.ones((6, 1), "float32")

def fit(**kw):
    layer = layers.Dense(1, kernel_initializer="zeros")
    return train.fit(layer, (x, y), "mean_squared_error", train.AdamW(0.01), **kw)
"""


@pytest.fixture(name="shown", scope="module")
def fixture_shown(tmp_path_factory):
    """A function: the outputs of the last of these cells."""
    with own_folders(tmp_path_factory):

        def shown(*cells):
            notebook = new_notebook(cells=[new_code_cell(cell) for cell in (SETUP, *cells)])
            return script.execute(notebook, tmp_path_factory.mktemp("cells")).cells[-1].outputs

        yield shown


def test_progress_is_one_line_that_stays(shown):
    """Not one line an epoch, no widget, no warning that a widget is missing."""
    (output,) = shown("history = fit(epochs=300, validation=(x, y))")
    assert output.output_type == "display_data"
    assert list(output.data) == ["text/plain"] and len(output.data["text/plain"]) <= 80
    assert output.data["text/plain"].startswith("epoch 300/300  loss ")
    assert shown("history = fit(epochs=3, progress=False)") == []


def test_progress_of_a_training_that_fails_is_that_of_its_last_epoch(shown):
    outputs = shown("""
def stop(epoch, logs):
    if epoch == 41:
        raise KeyError("stop")

try:
    fit(epochs=100, callbacks=stop)
except KeyError:
    print("stopped")
""")
    assert outputs[0].data["text/plain"].startswith("epoch 42/100  ")
    assert [one.get("text") for one in outputs[1:]] == ["stopped\n"]


@pytest.mark.parametrize("before", [
    "", "import matplotlib.pyplot as plt", "import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()",
], ids=["nothing", "pyplot", "a plot"])  # fmt: skip
def test_a_history_is_a_picture_whatever_was_drawn_before(shown, before):
    (output,) = shown("history = fit(epochs=7, progress=False)", before, "train.plot_history(history)")
    picture = base64.b64decode(output.data["image/png"])
    assert output.output_type == "execute_result" and picture.startswith(b"\x89PNG")
    assert 5_000 < len(picture) < 60_000
