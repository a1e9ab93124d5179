"""openrnn forecast: the rows after a series, against the package's layers and the stored scaling."""
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios

import numpy as np
import openrnn
import pytest
from tool.tool_runs import TOOL, fault, good, small_flags, write_text

ROWS, WINDOW = 90, 7


def write_series(path, rows=ROWS, columns=("temp", "load"), header="date,"):
    with open(path, "w", encoding="utf-8") as file:
        file.write(header + ",".join(columns) + "\n")
        for i in range(rows):
            values = [f"{10 * (c + 1) + 5 * np.sin(i / (4 + c)) + 0.1 * (i % 7):.4f}"
                      for c in range(len(columns))]
            file.write((f"day {i}," if header else "") + ",".join(values) + "\n")
    return path


def train(folder, horizon, target="sequence", columns=("temp", "load")):
    series = write_series(folder / "series.csv", columns=columns)
    good("train", "--task", "series", "--input", series, "--out", folder / "out", "--units", 5,
         "--layers", 2, "--steps", 60, "--batch", 4, "--seq-len", WINDOW, "--horizon", horizon,
         "--target", target)
    return folder / "out", series


@pytest.fixture(name="runs", scope="module")
def fixture_runs(tmp_path_factory):
    """(run, series) by horizon."""
    return {horizon: train(tmp_path_factory.mktemp(f"ahead{horizon}"), horizon,
                           "sequence" if horizon == 1 else "one") for horizon in (1, 3)}


def table(text):
    """Values by column from what the tool prints."""
    lines = text[: text.index("checkpoint ")].splitlines()
    names, rows = lines[0].split()[1:], [line.split() for line in lines[1:] if line.startswith(" ")]
    assert [row[0] for row in rows] == [f"+{k + 1}" for k in range(len(rows))]
    return names, np.array([[float(one) for one in row[1:]] for row in rows])


def by_layers(run, values, horizon, steps):
    """The same by the layers of the package; a row from the window that ends `horizon` before it."""
    def stored(name):
        return np.asarray(openrnn.train.load_variable(run, name), "float64")

    with openrnn.Graph().as_default():
        rnn, dense = openrnn.cudnn_rnn.CudnnLSTM(2, 5), openrnn.layers.Dense(2)
        rnn.build((None, None, 2))
        dense.build((None, 5))
        rnn.kernel.assign(openrnn.train.load_variable(run, "cudnn_lstm/opaque_kernel"))
        dense.kernel.assign(openrnn.train.load_variable(run, "dense/kernel"))
        dense.bias.assign(openrnn.train.load_variable(run, "dense/bias"))
        rows = [np.array(row) for row in values]
        for _ in range(steps):
            end = len(rows) - horizon + 1
            x = (np.array(rows[end - WINDOW : end]) - stored("openrnn/series_mean")) / stored(
                "openrnn/series_deviation")
            output, _ = rnn(x[:, None].astype("float32"), training=False)
            change = dense(output).numpy()[-1, 0].astype("float64")
            rows.append(rows[end - 1] + change * stored("openrnn/series_change_deviation")
                        + stored("openrnn/series_change_mean"))
    return np.array(rows[len(values):])


@pytest.mark.parametrize("horizon", [1, 3])
@pytest.mark.parametrize("steps", [None, 1, 2, 17])
def test_the_rows_after_the_last(runs, horizon, steps):
    run, series = runs[horizon]
    done = good("forecast", run, "--input", series, *([] if steps is None else ["--horizon", steps]))
    names, found = table(done.stdout)
    values = np.loadtxt(series, delimiter=",", skiprows=1, usecols=(1, 2))
    wanted = by_layers(run, values, horizon, steps or horizon)
    assert names == ["temp", "load"] and found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=2e-5)
    assert done.stdout.endswith(f"checkpoint {run}/model.ckpt-60\n") and done.stderr == ""


def test_other_rows_and_fewer_of_them(runs, tmp_path):
    run, series = runs[3]
    rows = series.read_text().splitlines()
    short = tmp_path / "short.csv"
    short.write_text("\n".join(rows[: 1 + WINDOW + 2]) + "\n")
    assert table(good("forecast", run, "--input", short).stdout)[1].shape == (3, 2)
    short.write_text("\n".join(rows[: WINDOW + 2]) + "\n")
    assert fault("forecast", run, "--input", short) == (
        "[forecast_series] 8 rows, expected 9 or more: a window of 7 and the horizon of 3")


def test_a_plot_within_80_columns(runs):
    run, series = runs[1]
    done = good("forecast", run, "--input", series, "--horizon", 24, "--plot")
    plots = done.stdout.split("\n\n")[1:]
    assert len(plots) == 2
    for name, plot in zip(("temp", "load"), plots):
        lines = plot.splitlines()
        assert lines[0] == f"{name}: the last 48 rows (.) and the forecast (*)"
        picture = lines[1:13]
        assert max(map(len, picture)) == 80 and all(line[10] == "|" for line in picture)
        marks = "".join(line[11:] for line in picture)
        assert marks.count(".") >= 24 and 12 <= marks.count("*") <= 24
        top, bottom = float(picture[0][:9]), float(picture[-1][:9])
        assert top > bottom


def test_many_columns_in_blocks(tmp_path):
    columns = [f"column_with_a_long_name_{i}" for i in range(7)]
    run, series = train(tmp_path, 1, columns=columns)
    done = good("forecast", run, "--input", series, "--horizon", 2)
    blocks = done.stdout.split("\n\n")
    assert len(blocks) == 2 and max(len(line) for line in done.stdout.splitlines()[:3]) == 78
    assert [len(block.splitlines()[1].split()) for block in blocks] == [6, 3]


def test_names_and_values_that_are_long(tmp_path):
    columns = ["größe_äöüäöüäöü", "debt"]
    run, series = train(tmp_path, 1, columns=columns)
    rows = [line.split(",") for line in series.read_text(encoding="utf-8").splitlines()]
    rows[1:] = [[day, one, f"{-12345 * float(two):.3f}"] for day, one, two in rows[1:]]
    series.write_text("\n".join(map(",".join, rows)) + "\n", encoding="utf-8")
    done = good("forecast", run, "--input", series, "--horizon", 2, "--plot")
    assert done.stdout.split()[1].startswith("größe") and done.stdout.split()[1].endswith("..")
    picture = done.stdout.split("\n\n")[2].splitlines()[1:13]
    assert re.match(r"-\d\.\d{3}e\+05 \|", picture[-1]) and max(map(len, picture)) == 80
    assert {line.index("|") for line in picture} == {11}


@pytest.mark.parametrize("width", [60, 132])
def test_as_wide_as_the_terminal(runs, width):
    run, series = runs[1]
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    with subprocess.Popen([TOOL, "forecast", run, "--input", series, "--horizon", "9", "--plot"],
                          stdout=slave, stdin=subprocess.DEVNULL) as process:
        os.close(slave)
        text = b""
        try:
            while part := os.read(master, 65536):
                text += part
        except OSError:  # the end of a terminal
            pass
        assert process.wait() == 0
    os.close(master)
    lines = [line for line in text.decode().replace("\r", "").splitlines() if re.search(r" \|", line)]
    assert max(map(len, lines)) == width


def test_what_it_refuses(runs, tmp_path):
    run, series = runs[1]
    assert "none.csv': no such file" in fault("forecast", run, "--input", tmp_path / "none.csv")
    assert "--horizon" in fault("forecast", run, "--input", series, "--horizon", 0)
    other = write_series(tmp_path / "other.csv", columns=("a", "b"))
    assert "temp" in fault("forecast", run, "--input", other)
    text = write_text(tmp_path)
    good(*small_flags(text, tmp_path / "text", steps=2))
    assert fault("forecast", tmp_path / "text", "--input", series) == (
        "[forecast] a run of the task 'text', expected series")


def test_names_are_cut_where_no_cell_holds_them(tmp_path):
    """Of 14 columns one is for the space in front; a cut is not inside a character."""
    columns = ["x" * 13, "y" * 14, "größe_äöüäöüäöü", "a" * 10 + "ö" + "b" * 9]
    run, series = train(tmp_path, 1, columns=columns)
    lines = good("forecast", run, "--input", series).stdout.splitlines()
    assert lines[0].split() == ["row", "x" * 13, "y" * 11 + "..", "größe_ä..", "a" * 10 + ".."]
    assert lines[0].startswith("     row " + "x" * 13 + " ") and lines[1].startswith("      +1 ")


@pytest.mark.parametrize("rows, steps, shown", [(ROWS, 3, 40), (ROWS, 20, 40), (ROWS, 21, 42), (ROWS, 60, 90), (12, 3, 12)])
def test_a_plot_shows_rows_before_the_forecast(runs, tmp_path, rows, steps, shown):
    """Half a terminal, twice the forecast if that is more, and no more than there are."""
    run, _ = runs[1]
    series = write_series(tmp_path / "series.csv", rows)
    plots = good("forecast", run, "--input", series, "--horizon", steps, "--plot").stdout.split("\n\n")[1:]
    assert [plot.splitlines()[0] for plot in plots] == [
        f"{name}: the last {shown} rows (.) and the forecast (*)" for name in ("temp", "load")]
    for plot in plots:
        # The divider is the row between both.
        line = plot.splitlines()[1]
        place = [i for i, letter in enumerate(line) if letter == "|"][1:]
        assert place == [11 + round((shown - 1) / (shown + steps - 1) * 68)] or not place
