"""What each subcommand says of runs, files and itself."""
import re
import xml.etree.ElementTree

import pytest
from tool_runs import fault, good, small_flags, write_text

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
