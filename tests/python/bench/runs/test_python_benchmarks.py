"""The programs of python/benchmarks: what they measure and print, on small data."""

import importlib.util
import json
import re
import sys
from pathlib import Path

import numpy as np
import openrnn
import pytest

ROOT = Path(__file__).resolve().parents[4]
CHOICES = ["float32", "bf16", "bf16x3", "weights float16", "weights bfloat16", "weights int8"]


def program(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "python" / "benchmarks" / f"{name}.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.fixture
def accuracy():
    openrnn.reset_default_graph()
    yield program("accuracy")
    openrnn.reset_default_graph()


def test_calls_from_python_and_from_cpp(monkeypatch, capsys):
    overhead = program("call_overhead")
    before = openrnn.get_num_threads()
    monkeypatch.setattr(sys, "argv", ["call_overhead", "--calls", "3", "--rounds", "2"])
    try:
        overhead.main()
        assert openrnn.get_num_threads() == 1
    finally:
        openrnn.set_num_threads(before)
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["layer", "python", "C++"]
    rows = [re.fullmatch(r"(\w+ U64 B1 T1 \w+) +([\d.]+) +([\d.]+) +(-?[\d.]+)", line) for line in lines]
    assert [row[1] for row in rows] == [
        f"{layer} U64 B1 T1 {what}" for layer in ("CudnnLSTM", "CudnnGRU")
        for what in ("inference", "training")]  # fmt: skip
    for row in rows:
        outside, inside, above = (float(row[n]) for n in (2, 3, 4))
        assert outside > 0 and inside > 0 and above == pytest.approx(outside - inside, abs=0.016)


def test_the_best_of_several_rounds():
    overhead, calls = program("call_overhead"), []
    found = iter([3.0, 1.0, 2.0, 0.5])
    assert overhead.best(3, lambda: next(found)) == 1.0 and next(found) == 0.5
    assert 0 <= overhead.python_seconds(lambda: calls.append(1), 5) < 1 and len(calls) == 5


@pytest.mark.parametrize("training,counted", [(True, 3), (False, 0), (None, 3)])
def test_the_loop_in_cpp_calls_the_layer(training, counted):
    layer = openrnn.cudnn_rnn.CudnnGRU(2, 4, dropout=0.5, seed=1)
    x = np.ones((2, 1, 3), "float32")
    layer(x, training=False)
    more = () if training is None else (training,)
    assert openrnn._core.rnn_seconds_per_call(layer, x, 3, *more) > 0
    assert layer.dropout_calls == counted


def test_the_flags_of_the_demo(accuracy):
    flags = accuracy.demo_flags()
    script = (ROOT / "scripts" / "demo").read_text()
    assert flags[:2] == ["--cell", "lstm"] and "--valid-every" in flags
    assert f"model=({' '.join(flags[:8])})" in script and f"fit=({' '.join(flags[8:])})" in script


def test_rows_of_the_text(accuracy, tmp_path):
    """What the tool is asked, of a program that writes it down."""
    tool = tmp_path / "tool"
    tool.write_text(f"""#!{sys.executable}
import json, sys
with open({str(tmp_path / "asked")!r}, "a") as file:
    print(json.dumps(sys.argv[1:]), file=file)
print("bits_per_byte 1.5 and more")
""")
    tool.chmod(0o755)
    rows = list(accuracy.text_rows(str(tool), tmp_path / "demo"))
    assert rows == [(math, name, "1.5") for math in ("float32", "bf16") for name in CHOICES]
    asked = [json.loads(line) for line in (tmp_path / "asked").read_text().splitlines()]
    train, valid = str(tmp_path / "demo" / "train.txt"), str(tmp_path / "demo" / "valid.txt")
    for first, math, run in ((asked[0], "float32", "run"), (asked[7], "bf16", "run-bf16")):
        assert first[:12] == ["train", "--task", "text", "--input", train, "--valid", valid, "--out",
                              str(tmp_path / "demo" / run), "--resume", "--math", math]  # fmt: skip
        assert first[12:] == accuracy.demo_flags()
    flags = ["--math=float32", "--math=bf16", "--math=bf16x3", "--weights-dtype=float16",
             "--weights-dtype=bfloat16", "--weights-dtype=int8"]  # fmt: skip
    for run, lines in (("run", asked[1:7]), ("run-bf16", asked[8:])):
        assert lines == [["eval", str(tmp_path / "demo" / run), "--input", valid, "--context", train, flag]
                         for flag in flags]  # fmt: skip


def test_rows_of_the_digits(accuracy, monkeypatch):
    pytest.importorskip("sklearn")
    images, labels = accuracy.digits()
    assert images.shape == (8, 1797, 8) and images.dtype == np.float32 and labels.dtype == np.int32
    assert images.min() == 0 and images.max() == 1 and labels[:10].tolist() == list(range(10))
    monkeypatch.setattr(accuracy, "digits", lambda: (images[:, :800], labels[:800]))
    rows = list(accuracy.digits_rows(2))
    assert [row[:2] for row in rows] == [(m, name) for m in ("float32", "bf16") for name in CHOICES]
    figures = np.array([[float(figure) for figure in row[2].split(", ")] for row in rows])
    assert (figures[:, 0] < 2.0).all() and (figures[:, 1] > 0.4).all()  # of ten digits
    assert np.ptp(figures[:6, 0]) < 0.05
    assert (figures[1:6, 0] != figures[0, 0]).any()


def test_a_layer_learns_with_the_arithmetic_that_is_asked_for(accuracy):
    pytest.importorskip("sklearn")
    images, labels = accuracy.digits()
    gru, logits = accuracy.train_digits("bf16", images[:, :64], labels[:64], 1)
    assert (gru.math, gru.num_layers, gru.num_units, gru.direction) == ("bf16", 2, 64, "bidirectional")
    assert gru.dropout_calls == 2  # of 64 images in batches of 32
    assert logits(images[:, :5], gru).shape == (5, 10)
    np.testing.assert_array_equal(logits(images[:, :5], gru), logits(images[:, :5], gru))


@pytest.mark.parametrize("only,models", [([], ["text", "digits"]), (["--only", "text"], ["text"]),
                                         (["--only", "digits"], ["digits"])])  # fmt: skip
def test_the_table(accuracy, only, models, monkeypatch, capsys):
    asked = []

    def rows(*given):
        asked.append(given)
        return ((math, name, f"{math}/{name}") for math in ("float32", "bf16") for name in CHOICES)

    monkeypatch.setattr(accuracy, "text_rows", rows)
    monkeypatch.setattr(accuracy, "digits_rows", rows)
    monkeypatch.setattr(sys, "argv", ["accuracy", "--tool", "t", "--demo", "d", "--epochs", "7", *only])
    accuracy.main()
    wanted = {"text": ("t", Path("d")), "digits": (7,)}
    assert asked == [wanted[model] for model in models]
    kinds, _, head, rule, *lines = capsys.readouterr().out.splitlines()
    assert kinds.startswith("computed here as float32: float32, bf16: ") and "weights int8: int8" in kinds
    assert head == f"| model | trained with | {' | '.join(CHOICES)} |" and rule == "|" + "---|" * 8
    assert lines == [f"| {model} | {math} | {' | '.join(f'{math}/{name}' for name in CHOICES)} |"
                     for model in models for math in ("float32", "bf16")]  # fmt: skip
