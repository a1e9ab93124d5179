"""What each subcommand does with a good run."""
import json
import math
import os
import re
import subprocess
import xml.etree.ElementTree

import numpy
import pytest
from tool_runs import BUILD, DATA, fault, good, small_flags, tool, write_text


@pytest.fixture(name="run", scope="module")
def fixture_run(tmp_path_factory):
    """A trained text model: folder and text."""
    folder = tmp_path_factory.mktemp("commands")
    text = write_text(folder)
    done = good(*small_flags(text, folder / "out", steps=300, lr=0.01, units=17))
    return folder / "out", text, done


def first_figure(done):
    """The number after bits_per_byte."""
    return float(re.match(r"bits_per_byte (\d+\.\d{4})\n", done.stdout).group(1))


def test_training_learns_and_reports(run):
    _, _, done = run
    bits = float(re.fullmatch(r"validation (\S+) bits per byte of the file \(step 300\)\n",
                              done.stdout).group(1))
    # Ten words drawn at random, of 3.8 letters and a gap: about 0.8 bits a byte at best.
    assert 0.7 < bits < 1.6
    assert re.search(r"^saved \S+model\.ckpt-0 \(step 0\)$", done.stderr, re.M)
    assert re.search(r"^step 300/300  +\S+ tokens/s  \d\.\d+ bits per byte  valid \d\.\d+  "
                     r"left 0:00$", done.stderr, re.M)


def test_eval_takes_a_folder_or_a_prefix(run):
    out, text, _ = run
    by_folder = good("eval", out, "--input", text)
    assert by_folder.stdout == good("eval", f"{out}/model.ckpt-300", "--input", text).stdout
    at_start = first_figure(good("eval", f"{out}/model.ckpt-0", "--input", text))
    assert first_figure(by_folder) < 1.6 < at_start < 5.0


def test_eval_counts_bytes_and_unseen_symbols(run, tmp_path):
    odd = tmp_path / "odd.txt"
    odd.write_bytes(b"the cat \xf0\x00 sat\n")
    done = good("eval", run[0], "--input", odd)
    assert "bytes 15\n" in done.stdout and 1.0 < first_figure(done) < 30.0


def test_context_counts_for_something(run, tmp_path):
    word = tmp_path / "word.txt"
    word.write_text("ts\n")
    before = tmp_path / "before.txt"
    before.write_text("the ma")
    bits = [first_figure(good("eval", run[0], "--input", word, *more))
            for more in ([], ["--context", before])]
    assert bits[0] != bits[1]


def test_generate_repeats_by_seed(run):
    out = run[0]
    one = good("generate", out, "--length", 120, "--seed", 3, "--prime", "the cat").stdout
    assert one.startswith("the cat") and len(one) == len("the cat") + 120 + 1
    again = good("generate", out, "--length", 120, "--seed", 3, "--prime", "the cat",
                 "--threads", 1)
    assert again.stdout == one
    other = good("generate", out, "--length", 120, "--seed", 4, "--prime", "the cat").stdout
    assert other != one
    greedy = good("generate", out, "--length", 60, "--temperature", 0).stdout
    assert good("generate", out, "--length", 60, "--top-k", 1, "--temperature", 9).stdout == greedy
    words = set("the cat sat on a mat while dogs ran far".split())
    drawn = one.split()[2:-1]
    assert sum(word in words for word in drawn) > len(drawn) / 2


@pytest.mark.parametrize("cell, text", [
    ("lstm", "lstm, 2 layers, 9 units, input size 5, unidirectional, float32"),
    ("gru", "gru, 2 layers, 9 units, input size 5, unidirectional, float32"),
    ("rnn_tanh", "rnn_tanh, 2 layers, 9 units, input size 5, unidirectional, float32"),
    ("rnn_relu", "rnn_relu, 2 layers, 9 units, input size 5, unidirectional, float32"),
])
def test_every_cell_is_named_and_agrees_with_the_compatible_cells(tmp_path, cell, text):
    source = write_text(tmp_path)
    out = tmp_path / "out"
    good(*small_flags(source, out, steps=40, cell=cell))
    shown = good("inspect", out).stdout
    assert f"network: {text}\n" in shown
    assert re.search(r"^cudnn_\w+/opaque_kernel +float32 ", shown, re.M)
    assert re.search(r"^global_step +int64 +\[\] +8$", shown, re.M)
    compared = good("check-cells", out, "--input", source).stdout
    assert compared.endswith("  the same numbers\n")
    share = float(re.search(r"([\d.]+) % of the bound", compared).group(1))
    assert share < 100.0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_dtypes_agree_with_the_compatible_cells(tmp_path, dtype):
    source = write_text(tmp_path)
    good(*small_flags(source, tmp_path / "out", steps=20, dtype=dtype, embedding=0))
    compared = good("check-cells", tmp_path / "out", "--input", source).stdout
    assert compared.endswith("  the same numbers\n")


def test_characters_are_scored_by_the_byte(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("größer als ñandú, ж и €\n" * 150, encoding="utf-8")
    out = tmp_path / "out"
    good(*small_flags(text, out, steps=60, level="char", lr=0.02))
    done = good("eval", out, "--input", text)
    symbols = int(re.search(r"symbols (\d+)", done.stdout).group(1))
    assert symbols == len(text.read_text(encoding="utf-8"))
    bits = float(re.search(r"bits ([\d.]+)", done.stdout).group(1))
    assert math.isclose(first_figure(done), bits / len(text.read_bytes()), abs_tol=1e-4)
    assert good("generate", out, "--length", 30).stdout


def test_a_series_beats_its_naive_baseline(tmp_path):
    out = tmp_path / "out"
    done = good("train", "--task", "series", "--input", DATA / "sunspots.csv", "--out", out)
    model, last, seasonal = map(float, re.search(
        r"^sunspots +(\S+) +(\S+) +(\S+)$", done.stdout, re.M).groups())
    assert model < 0.8 * min(last, seasonal)
    assert "(the model is better)" in done.stdout
    scored = good("eval", out, "--input", DATA / "sunspots.csv")
    assert scored.stdout.startswith("rmse_normalised ")


@pytest.mark.parametrize("more", [["--target", "one"], ["--horizon", 3, "--cell", "gru"],
                                  ["--dtype", "float16"]])
def test_other_forecasts(tmp_path, more):
    table = tmp_path / "table.csv"
    rows = [f"{math.sin(t / 3):.5f};{math.cos(t / 3) * 5 + 2:.5f}" for t in range(300)]
    table.write_text("a;b\n" + "\n".join(rows) + "\n")
    done = good("train", "--task", "series", "--input", table, "--out", tmp_path / "out",
                "--steps", 200, *more)
    assert "(the model is better)" in done.stdout


def test_plot_is_a_picture(run, tmp_path):
    picture = tmp_path / "loss.svg"
    good("plot", run[0], "--output", picture)
    root = xml.etree.ElementTree.parse(picture).getroot()
    lines = root.findall("{http://www.w3.org/2000/svg}polyline")
    assert len(lines) == 2
    for line in lines:
        points = [tuple(map(float, point.split(","))) for point in line.get("points").split()]
        assert len(points) >= 20 and points == sorted(points)
        assert all(0 <= x <= 860 and y <= 480 for x, y in points)
        assert 70 <= points[0][0] < points[-1][0] <= 836  # the frame
        assert points[-1][1] > 48  # inside the frame, which the first steps may leave
    assert points[0][1] < points[-1][1]  # the loss falls: y grows downwards


def curve_points(picture):
    """Points of each curve of a picture, [curve][point][x, y], and its ticks of y: value, place."""
    svg = "{http://www.w3.org/2000/svg}"
    root = xml.etree.ElementTree.parse(picture).getroot()
    curves = [[tuple(map(float, point.split(","))) for point in line.get("points").split()]
              for line in root.findall(f"{svg}polyline")]
    ticks = [(float(text.text), float(text.get("y")) - 4) for text in root.findall(f"{svg}text")
             if text.get("text-anchor") == "end"]
    return curves, ticks


def test_plot_smooths_the_training_curve_alone(run, tmp_path):
    """A running mean of what was recorded; what its first twentieth lies above is cut off."""
    picture = tmp_path / "loss.svg"
    good("plot", run[0], "--output", picture)
    curves, ticks = curve_points(picture)
    scale, start = numpy.polyfit(*zip(*ticks, strict=True), 1)
    (events,) = run[0].glob("events.out.tfevents.*")
    lines = subprocess.run([BUILD / "tool_events", "dump", events], capture_output=True, text=True,
                           check=True).stdout.split("\n")
    records = [line.split() for line in lines if "bits_per_byte" in line]
    training, validation = ([float(value) for _, tag, value in records if tag.startswith(kind)]
                            for kind in ("train/", "valid/"))
    mean = training[:1]
    for value in training[1:]:
        mean.append(0.97 * mean[-1] + 0.03 * value)
    for curve, values in zip(curves, (mean, validation), strict=True):
        expected = [start + scale * value for value in values]
        assert [y for _, y in curve] == pytest.approx(expected, abs=0.3)
    # The frame is 5 % higher and lower than what it shows.
    top, bottom = 48, 480 - 56
    assert curves[0][len(mean) // 20][1] == pytest.approx(top + (bottom - top) * 0.05 / 1.1, abs=0.3)


def test_plot_draws_what_a_resumed_run_wrote_later(run, tmp_path):
    (events,) = run[0].glob("events.out.tfevents.*")
    old, new = tmp_path / "events.out.tfevents.2", tmp_path / "events.out.tfevents.1"
    other = tmp_path / "other"
    good(*small_flags(run[1], other, steps=60, valid_every=15))
    new.write_bytes(events.read_bytes())
    good("plot", tmp_path, "--output", tmp_path / "alone.svg")
    old.write_bytes(next(other.glob("events.out.tfevents.*")).read_bytes())
    os.utime(old, (1e9, 1e9))
    good("plot", tmp_path, "--output", tmp_path / "both.svg")
    assert (tmp_path / "both.svg").read_bytes() == (tmp_path / "alone.svg").read_bytes()
    os.utime(new, (0.9e9, 0.9e9))
    good("plot", tmp_path, "--output", tmp_path / "swapped.svg")
    assert (tmp_path / "swapped.svg").read_bytes() != (tmp_path / "alone.svg").read_bytes()


def test_doctor_says_what_there_is():
    shown = good("doctor").stdout
    assert re.search(r"^  cpu +ready +", shown, re.M)
    assert re.search(r"^  reference +ready +", shown, re.M)
    assert re.search(r"^instruction set: \w+ ", shown, re.M)
    assert re.search(r"^threads: [1-9]", shown, re.M)
    assert re.search(r"^  \S*libstdc\+\+\S*$", shown, re.M)


def test_doctor_says_what_became_of_the_tiles_of_amx():
    """An instruction set without them has no need to ask."""
    def said(isa):
        shown = good("doctor", env={**os.environ, "OPENRNN_ISA": isa}).stdout
        return re.search(r"^tiles of AMX: (.*)$", shown, re.M).group(1)

    if said("").endswith("has no tiles"):
        assert said("scalar") == said("")
    else:
        assert said("") == "granted" or said("").startswith("refused: ")
        assert said("scalar") == "not asked yet"


def test_bench_writes_what_it_measures(tmp_path):
    figures = tmp_path / "bench.json"
    done = good("bench", "--only", "L1 U64 B1", "--seconds", 0.02, "--threads", 1, "--json",
                figures)
    rows = json.loads(figures.read_text())
    assert [(row["config"], row["pass"]) for row in rows] == [
        (config, kind) for config in ("LSTM L1 U64 B1 T100", "GRU L1 U64 B1 T100")
        for kind in ("forward", "forward_training", "forward_backward")]
    for row in rows:
        assert set(row) == {"config", "device", "pass", "threads", "math", "weights_dtype", "math_kind",
                            "ms", "gflops", "percent_of_peak"}
        assert row["math"] == row["math_kind"] == "float32" and row["weights_dtype"] == "none"
        assert row["device"] == "cpu" and row["threads"] == 1 and row["ms"] > 0 and row["gflops"] > 0
        assert row["percent_of_peak"] > 0
    assert "% of the" in done.stdout


def test_bench_of_loading_leaves_the_folder_as_it_was(tmp_path):
    kept = tmp_path / "kept"
    kept.write_text("x")
    figures = tmp_path / "load.json"
    done = good("bench", "--load", tmp_path, "--megabytes", 1, "--json", figures)
    ready, *rows = json.loads(figures.read_text())
    assert ready["kind"] == "ready" and 0 < ready["ms"]
    assert [row["kind"] for row in rows] == [
        "OpenRNN", "safetensors", "PyTorch", "npz", "ONNX", "Keras .h5", "Keras 3", "TensorFlow"]
    for row in rows:
        assert 0.9e6 < row["bytes"] < 1.3e6 and row["ms"] > 0 and row["read_ms"] > 0
        assert row["rate_ratio"] == pytest.approx(row["read_ms"] / row["ms"])
        assert row["memory_ratio"] > 1 and row["kind"] in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "load.json"]
    one = good("bench", "--load", tmp_path, "--megabytes", 2, "--only", "npz")
    assert re.search(r"^npz +2 ", one.stdout, re.MULTILINE) and "ONNX" not in one.stdout
    assert "names no kind of file" in fault("bench", "--load", tmp_path, "--megabytes", 1, "--only", "xyz")
    assert "--megabytes requires --load" in fault("bench", "--megabytes", 1)
    assert "--seconds excludes --load" in fault("bench", "--load", tmp_path, "--seconds", 1)


def test_help_and_version():
    assert "train" in good("--help").stdout
    assert "--lr-schedule" in good("train", "--help").stdout
    assert tool("--version").stdout.startswith("openrnn ")
