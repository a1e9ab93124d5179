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
    worst, share = map(float, re.search(r"of a logit (\S+), (\S+) % of the bound", compared).groups())
    assert 0.0 < worst < 1e-3 and 0.0 < share < 100.0


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
    assert (root.get("width"), root.get("height")) == ("860", "480")
    assert root.get("viewBox") == "0 0 860 480"
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
        # Of 100 steps of one row, both products; backward is twice as much.
        gates, passes = (4 if "LSTM" in row["config"] else 3), (3 if "backward" in row["pass"] else 1)
        assert row["gflops"] * row["ms"] * 1e6 == pytest.approx(2 * gates * 64 * 128 * 100 * passes)
        best, = re.findall(rf"^{row['config']:<22}  {row['pass']:<16}  {row['ms']:>10.3f}  +(\S+)  {row['gflops']:>9.1f}  "
                           rf"{row['percent_of_peak']:>9.1f}(?:   its steps read .*)?$", done.stdout, re.M)
        assert 0 <= float(best) <= round(row["ms"], 3)
    assert "% of the" in done.stdout
    good("bench", "--only", "GRU L1 U256 B16", "--seconds", 0.02, "--threads", 2, "--json", figures)
    assert all(0 < row["percent_of_tiles"] for row in json.loads(figures.read_text()))
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        model = re.search(r"^model name\s*: (.*)$", info.read(), re.M)
    processor = model.group(1) if model else "an unknown processor"
    assert done.stdout.startswith(f"{processor}, 1 threads, engine ")


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
        assert row["memory_ratio"] > 1
        assert (f"{row['kind']:<12}  {row['bytes'] / 1e6:>8.0f}  {row['ms']:>9.1f}  {row['read_ms']:>9.1f}  "
                f"{row['rate_ratio']:>10.2f}  {row['memory_ratio']:>14.2f}\n") in done.stdout
    assert f"ready to run after {ready['first_ms']:.2f} ms, the next times {ready['ms']:.2f} ms\n" in done.stdout
    assert 0 < ready["ms"] and 0 < ready["first_ms"]
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


# ---- What they say -------------------------------------------------------------------------------

NETWORK = "lstm, 2 layers, 9 units, input size 5, unidirectional, float32"


@pytest.fixture(name="text", scope="module")
def fixture_text(tmp_path_factory):
    """A run of a text: folder, text, the finished call."""
    folder = tmp_path_factory.mktemp("text")
    text = write_text(folder)
    return folder / "out", text, good(*small_flags(text, folder / "out", steps=2, threads=1))


@pytest.fixture(name="series", scope="module")
def fixture_series(tmp_path_factory):
    """A run of a series that a forecast by its period has no error of."""
    folder = tmp_path_factory.mktemp("series")
    table = folder / "table.csv"
    table.write_text("up,down\n" + "".join(f"{row % 6},{(5 * row) % 6 + row % 2}\n" for row in range(240)))
    done = good("train", "--task", "series", "--input", table, "--out", folder / "out", "--steps", 2,
                "--seq-len", 12, "--units", 4)
    return folder / "out", table, done


@pytest.mark.parametrize("call", ["generate", "check-cells"])
def test_a_series_has_no_symbols(series, call):
    more = ["--input", series[1]] if call == "check-cells" else []
    assert fault(call, series[0], *more) == f"[{call}] a run of the task 'series', expected text"


@pytest.mark.parametrize("call", ["eval", "check-cells"])
def test_an_empty_text(text, tmp_path, call):
    (tmp_path / "empty").write_bytes(b"")
    assert fault(call, text[0], "--input", tmp_path / "empty") == (
        f"[{call}] '{tmp_path / 'empty'}' is empty, expected a text")


@pytest.mark.parametrize("call, words, flag", [
    ("eval", [], "--input"), ("check-cells", [], "--input"), ("eval", ["--input", __file__], "--context"),
    ("train", [], "--input"), ("train", ["--input", __file__], "--valid"),
])
def test_files_that_are_none(text, tmp_path, call, words, flag):
    run = [] if call == "train" else [text[0]]
    for path, said in ((tmp_path / "no", ": no such file, expected one"), (tmp_path, " is a folder, expected a file")):
        line = fault(call, *run, *words, flag, path, cwd=tmp_path)
        assert line == f"[openrnn] {flag} '{path}'{said}"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("size, read", [(1, 1), (255, 255), (256, 256), (257, 256), (3000, 256)])
def test_the_cells_read_the_beginning(text, tmp_path, size, read):
    (tmp_path / "part.txt").write_bytes(text[1].read_bytes()[:size])
    lines = good("check-cells", text[0], "--input", tmp_path / "part.txt").stdout.splitlines()
    assert lines[0] == f"compatible cells, {read} symbols of {tmp_path / 'part.txt'}"
    assert re.fullmatch(r"  each step from the engine's state: largest difference of a logit \S+, \S+ % of the bound",
                        lines[1])
    assert lines[2].startswith("  the whole text at once: ") and lines[3:] == ["  the same numbers"]


def test_eval_says_what_it_scored(text):
    lines = good("eval", text[0], "--input", text[1]).stdout.splitlines()
    size = text[1].stat().st_size
    each, bits = (float(line.split()[1]) for line in lines[:2])
    assert [line.split()[0] for line in lines] == ["bits_per_byte", "bits", "bytes", "symbols", "checkpoint"]
    assert lines[2:] == [f"bytes {size}", f"symbols {size}", f"checkpoint {text[0] / 'model.ckpt-2'}"]
    assert each == pytest.approx(bits / size, abs=1e-4)


def test_train_says_what_it_trains(text, series):
    first = text[2].stderr.splitlines()[0]
    (windows,) = map(int, re.fullmatch(
        rf"cpu, 1 threads, 2 steps, (\d+) windows an epoch, network: {NETWORK}.*", first).groups())
    # 3 streams in windows of 11 symbols; 5 % of the text, and the rest of its line, are held out.
    assert 0.9 < windows * 3 * 11 / text[1].stat().st_size <= 0.95
    assert f"saved {text[0] / 'model.ckpt-2'} (step 2)" in text[2].stderr.splitlines()
    assert re.search(r"^step 2/2  +\S+ rows/s  \S+ loss  valid ", series[2].stderr, re.M)


def test_a_run_that_goes_on_says_where(text, tmp_path):
    flags = [*small_flags(text[1], tmp_path / "out", steps=2, lr_schedule="constant", warmup=1, valid_every=1), "--resume"]
    said = good(*flags).stderr
    assert said.startswith(f"nothing to resume in '{tmp_path / 'out'}': starting afresh\n")
    said = good("train", "--out", tmp_path / "out", "--resume", "--steps", 3).stderr
    assert said.startswith(f"resumed {tmp_path / 'out' / 'model.ckpt-2'} (step 2 of 3)\n") and "afresh" not in said


def report_of(lines):
    """Figures of a report by the name of their line."""
    return {name: [float(figure) for figure in figures]
            for name, *figures in (re.split(r"  +", line) for line in lines[2:5])}


def test_the_report_of_a_series(series):
    lines = series[2].stdout.splitlines()
    assert re.split(r"  +", lines[1]) == ["column (rmse)", "model", "naive: last value", "naive: 6 rows ago"]
    rows = report_of(lines)
    assert list(rows) == ["up", "down", "all, normalised"]
    assert lines[0] == f"rmse_normalised {rows['all, normalised'][0]:.4f}"
    assert all(seasonal == 0.0 < last for _, last, seasonal in rows.values())
    # A step up is 1 or, once in 6 rows, 5 down.
    assert rows["up"][1] == pytest.approx((30 / 6) ** 0.5, rel=0.03)
    assert len(lines) == 5  # no ratio to a forecast without an error


def test_a_file_that_was_not_trained_on_has_no_season(series):
    lines = good("eval", series[0], "--input", series[1]).stdout.splitlines()
    assert re.split(r"  +", lines[1]) == ["column (rmse)", "model", "naive: last value"]
    model, last = report_of(lines)["all, normalised"]
    ratio, said = re.fullmatch(r"model / better naive forecast: (\S+) \((.*)\)", lines[5]).groups()
    assert float(ratio) == pytest.approx(model / last, abs=1e-3)
    assert said == ("the model is better" if model < last else "the naive forecast is better")
    assert lines[6:] == [f"checkpoint {series[0] / 'model.ckpt-2'}"]


@pytest.mark.parametrize("which, title, label", [
    ("text", "Text model: bits per byte", "bits per byte of the file"), ("series", "Series model: loss", "loss"),
])
def test_a_plot_says_what_it_shows(request, tmp_path, which, title, label):
    out = request.getfixturevalue(which)[0]
    assert good("plot", out, "--output", tmp_path / "x.svg").stdout == f"{tmp_path / 'x.svg'}\n"
    words = [text.text for text in xml.etree.ElementTree.parse(tmp_path / "x.svg").getroot().iter(
        "{http://www.w3.org/2000/svg}text")]
    assert {title, label, "step", "training (smoothed)", "validation"} <= set(words)


def test_company_takes_two_threads():
    assert fault("bench", "--company", "--threads", 1, "--only", "L1 U64 B1") == (
        "[bench] --company compares threads of the CPU, expected --threads 2 or more and --device cpu")


def test_a_context_counts_by_its_end(text, tmp_path):
    """A long one is read from a line on: its end has all that the score knows of it."""
    word, end, long = tmp_path / "word.txt", tmp_path / "end.txt", tmp_path / "long.txt"
    word.write_text("ts on a mat\n")
    lines = text[1].read_text().splitlines(keepends=True)
    end.write_text("".join(lines)[-700:] + "the ma")
    long.write_text("far dogs\n" * 900 + end.read_text())
    scores = [good("eval", text[0], "--input", word, "--context", context).stdout for context in (end, long)]
    assert scores[0] == scores[1] != good("eval", text[0], "--input", word).stdout
    # In one line, nothing is left out.
    long.write_text("far dogs " * 900 + end.read_text().replace("\n", " "))
    end.write_text(end.read_text().replace("\n", " "))
    scores = [good("eval", text[0], "--input", word, "--context", context).stdout for context in (end, long)]
    assert scores[0] == scores[1]


def test_a_short_curve_is_smoothed_less(tmp_path):
    out, picture = tmp_path / "out", tmp_path / "loss.svg"
    good(*small_flags(write_text(tmp_path), out, steps=200))
    good("plot", out, "--output", picture)
    curves, ticks = curve_points(picture)
    scale, start = numpy.polyfit(*zip(*ticks, strict=True), 1)
    (events,) = out.glob("events.out.tfevents.*")
    lines = subprocess.run([BUILD / "tool_events", "dump", events], capture_output=True, text=True,
                           check=True).stdout.split("\n")
    training = [float(line.split()[2]) for line in lines if " train/bits_per_byte " in line]
    mean = training[:1]
    for value in training[1:]:
        mean.append(0.8 * mean[-1] + 0.2 * value)
    assert len(mean) == 200
    assert [y for _, y in curves[0]] == pytest.approx([start + scale * value for value in mean], abs=0.3)
