"""openrnn.train.Run: the tool's runs in Python, bit for bit, and what it says of what does not fit."""

import gc
import inspect
import itertools
import pathlib
import re
import signal
import subprocess
import sys
import threading

import numpy
import openrnn
import pytest
from tool_runs import checkpoint_bytes, fault, good, small_flags, write_text

STEPS = 40
SMALL = {"units": 9, "layers": 2, "embedding": 5, "batch": 3, "seq_len": 11, "steps": STEPS,
         "dropout": 0.2, "seed": 7}
# What the tool's flags are that the options of a run are not.
OF_THE_TOOL = {"help", "threads"}
# Fields of a network that no run chooses, or that have another name in a run.
NO_OPTIONS = {"input_size", "direction", "weights_dtype", "rnn_mode", "num_layers", "num_units"}


def small_run(text, out, **more):
    return openrnn.train.Run(out, **{"input": text, **SMALL, **more})


def until(step):
    return lambda report: report.step < step


@pytest.fixture(name="text", scope="module")
def fixture_text(tmp_path_factory):
    return write_text(tmp_path_factory.mktemp("text"))


@pytest.fixture(name="whole", scope="module")
def fixture_whole(tmp_path_factory, text):
    """A run of the tool that nothing interrupted."""
    out = tmp_path_factory.mktemp("whole") / "out"
    good(*small_flags(text, out, steps=STEPS))
    return out


@pytest.fixture(name="stopped")
def fixture_stopped(tmp_path, text):
    """A run that was stopped half way."""
    with small_run(text, tmp_path / "out") as run:
        assert run.train(until(STEPS // 2)) == "callback"
    return tmp_path / "out"


def test_has_the_bits_of_the_tool(tmp_path, text, whole):
    with small_run(text, tmp_path / "out") as run:
        assert (run.step, run.steps, run.resumed_from) == (0, STEPS, None)
        assert run.train() == "done"
        assert run.step == STEPS
    assert checkpoint_bytes(tmp_path / "out", STEPS) == checkpoint_bytes(whole, STEPS)


def test_paths_may_be_paths(tmp_path, text):
    held_out = tmp_path / "held_out.txt"
    held_out.write_bytes(pathlib.Path(text).read_bytes()[:500])
    with small_run(pathlib.Path(text), tmp_path / "a", valid=held_out) as run:
        config, found = run.config, run.validate()
    with small_run(str(text), str(tmp_path / "b"), valid=str(held_out)) as other:
        assert other.config == config and other.validate() == found
    with small_run(text, tmp_path / "a", resume=True, valid=held_out) as again:
        assert again.step == 0  # the folder is free again


def test_is_stopped_half_way_and_resumed_by_another_process(stopped, whole):
    program = f"""
import openrnn
run = openrnn.train.Run({str(stopped)!r}, resume=True)
assert run.resumed_from.endswith("/model.ckpt-{STEPS // 2}") and run.step == {STEPS // 2}
assert run.train() == "done" and run.notes == []
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)
    assert checkpoint_bytes(stopped, STEPS) == checkpoint_bytes(whole, STEPS)


def test_the_tool_resumes_it(stopped, whole):
    good("train", "--out", stopped, "--resume")
    assert checkpoint_bytes(stopped, STEPS) == checkpoint_bytes(whole, STEPS)


def test_it_resumes_the_tool(tmp_path, text):
    fixed = {"lr_schedule": "constant", "warmup": 3, "valid_every": 10}
    good(*small_flags(text, tmp_path / "tool", steps=STEPS, **fixed))
    good(*small_flags(text, tmp_path / "out", steps=STEPS // 2, **fixed))
    with openrnn.train.Run(tmp_path / "out", resume=True, steps=STEPS) as run:
        assert run.train() == "done"
    assert checkpoint_bytes(tmp_path / "out", STEPS) == checkpoint_bytes(tmp_path / "tool", STEPS)


@pytest.mark.parametrize("option, given, of_run", [
    ("units", 10, 9), ("cell", "gru", "lstm"), ("lr", 0.5, 0.004), ("dtype", "float64", "float32"),
    ("seq_len", 12, 11), ("lr_schedule", "constant", "cosine"), ("steps", 50, STEPS),
    ("seed", 8, 7), ("task", "series", "text"),
])
def test_another_option_is_named_with_both_values(stopped, option, given, of_run):
    with pytest.raises(openrnn.ArgumentError) as raised:
        openrnn.train.Run(stopped, resume=True, **{option: given})
    assert str(raised.value) == (f"[Run] {option} {given} contradicts the run to resume, "
                                 f"expected {option} {of_run}")


def test_a_folder_in_use_says_so(stopped):
    with openrnn.train.Run(stopped, resume=True) as run:
        with pytest.raises(openrnn.StateError, match="is in use by another run of this process"):
            openrnn.train.Run(stopped, resume=True)
        line = fault("train", "--out", stopped, "--resume")
        assert re.search(r"is in use by process \d+ on .*, expected one run at a time", line)
        assert run.train() == "done"
    good("train", "--out", stopped, "--resume")
    with pytest.raises(openrnn.ArgumentError, match="holds a run .*, or resume to go on"):
        openrnn.train.Run(stopped)


@pytest.mark.parametrize("options, sentence", [
    ({"units": 0}, "units 0, expected 1 or more"), ({"units": "9"}, "units is 'str'"),
    ({"cell": "transformer"}, "transformer"), ({"task": "speech"}, "task 'speech', expected one of"),
    ({"target": "one"}, "target with task text, expected it with task series alone"),
    ({"epochs": 1}, "steps and epochs, expected one of the two"), ({"columns": "a"}, "columns is"),
    ({"forget_bias": "1"}, "[Run] forget_bias is 'str', expected a number"),
    ({"cell_clip": (3.0, -3.0)}, "cell_clip is [3, -3], expected low <= high"),
    ({"num_units": 3}, "Run.__init__() got an unexpected keyword argument 'num_units'"),
    ({"input": "/no/file"}, "input '/no/file': no such file"), ({"save_seconds": -1.0}, "save_seconds"),
])
def test_options_that_do_not_fit(tmp_path, text, options, sentence):
    with pytest.raises((ValueError, TypeError), match=re.escape(sentence)):
        small_run(text, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_reports_and_validations(tmp_path, text):
    reports = []
    with small_run(text, tmp_path / "out", valid_every=10) as run:
        run.train(lambda report: reports.append(
            (report.step, report.steps, report.learning_rate > 0.0, report.gradient_norm > 0.0,
             report.metric > 0.0, report.validation, report.best)))
        best = min(report[5] for report in reports if report[5] is not None)
        assert (run.best, run.metric_name) == (best, "bits per byte")
        assert run.validate() == reports[-1][5]  # all of this text is as much as its quick part
        assert run.config["model"]["num_units"] == 9 and run.config["task"] == "text"
        assert 0 < run.steps_per_epoch < 200
    assert [report[:5] for report in reports] == [
        (step, STEPS, True, True, True) for step in range(1, STEPS + 1)]
    assert [report[0] for report in reports if report[5] is not None] == [10, 20, 30, 40]
    assert [report[0] for report in reports if report[6]][-1] == run_best_step(tmp_path / "out")


def test_the_best_validation_is_not_the_last(tmp_path, text):
    found = []
    with small_run(text, tmp_path / "out", steps=12, valid_every=1, lr=0.3, lr_schedule="constant",
                   warmup=0, patience=50) as run:
        assert (run.best, run.best_step) == (None, 0)
        run.train(lambda report: found.append((report.validation, report.step, report.best)))
        best = min(found)
        assert best[1] < run.step == 12
        assert (run.best, run.best_step) == best[:2]
        assert run.best_prefix == str(tmp_path / "out" / "best")
    least = float("inf")
    for validation, step, is_best in found:
        assert is_best == (validation < least), step
        least = min(least, validation)


@pytest.mark.parametrize("clip_norm", [0.0, 0.01])
def test_a_report_has_the_rate_and_the_norm_of_its_step(tmp_path, text, clip_norm):
    """Of plain gradient descent, whose step is the rate times the gradients."""
    steps = []

    def keep(report):
        now = numpy.concatenate([variable.numpy().ravel() for variable in run.variables])
        steps.append((report.step, report.learning_rate, report.gradient_norm, now))

    with small_run(text, tmp_path / "out", optimizer="sgd", lr=0.5, lr_schedule="constant", warmup=4, steps=6,
                   clip_norm=clip_norm, dropout=0.0) as run:
        run.train(keep)
        assert run.metric_name == "bits per byte"
    assert [step[:2] for step in steps] == [(n, pytest.approx(0.5 * min(n, 4) / 4)) for n in range(1, 7)]
    for (*_, before), (_, rate, norm, now) in itertools.pairwise(steps):
        assert norm > 0.01
        assert numpy.linalg.norm(now - before) == pytest.approx(rate * (clip_norm or norm), rel=1e-3)


def run_best_step(out):
    with openrnn.train.Run(out, resume=True) as run:
        return run.best_step


def test_what_a_callback_raises_ends_a_run_that_is_saved(tmp_path, text, whole):
    def broken(report):
        if report.step == 5:
            raise KeyError("mine")

    with small_run(text, tmp_path / "out") as run:
        with pytest.raises(KeyError, match="mine"):
            run.train(broken)
        with pytest.raises(TypeError, match="the result of callback"):
            run.train(lambda report: "go on")
        assert run.step == 6
        assert openrnn.train.latest_checkpoint(tmp_path / "out").endswith("model.ckpt-6")
        assert run.train() == "done"
    assert checkpoint_bytes(tmp_path / "out", STEPS) == checkpoint_bytes(whole, STEPS)


def test_an_interrupt_ends_a_run_that_is_saved(tmp_path, text):
    with small_run(text, tmp_path / "out", steps=100000, valid_every=0, save_seconds=0) as run:
        threading.Timer(0.5, signal.raise_signal, [signal.SIGINT]).start()
        with pytest.raises(KeyboardInterrupt):
            run.train()
        assert 0 < run.step < 100000
        assert openrnn.train.latest_checkpoint(tmp_path / "out").endswith(f"-{run.step}")


def test_it_leaves_the_graph_alone_and_ends_with_its_block(tmp_path, text):
    openrnn.reset_default_graph()
    seen = []
    with small_run(text, tmp_path / "out") as run:
        graph = openrnn.get_default_graph()
        run.train(lambda report: seen.append((report, openrnn.get_default_graph() is graph)))
        variables = run.variables
    assert openrnn.global_variables() == [] and all(mine for _, mine in seen)
    assert [variable.name for variable in variables] == [
        "embedding/embeddings", "cudnn_lstm/opaque_kernel", "dense/kernel", "dense/bias"]
    for call in (run.train, run.save, run.validate, lambda: run.step, lambda: run.config,
                 lambda: seen[0][0].metric):
        with pytest.raises(openrnn.StateError, match="closed, expected an open one"):
            call()
    run.close()
    del run
    gc.collect()
    assert all(abs(variable.numpy()).max() > 0.0 for variable in variables)


def test_a_series_by_numbers_of_columns(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("a,b,c\n" + "".join(f"{row % 7},{row % 3},{row % 5}\n" for row in range(90)))
    with openrnn.train.Run(tmp_path / "out", task="series", input=table, columns=[3, "a"],
                           steps=5) as run:
        assert run.train() == "done" and run.metric_name == "loss"
        assert run.config["columns"] == ["c", "a"] and 0.0 < run.validate() < 100.0
    score = good("eval", tmp_path / "out", "--input", table).stdout.splitlines()[0]
    assert score.startswith("rmse_normalised ")


def test_its_options_are_the_flags_of_the_tool():
    shown = good("train", "--help").stdout
    flags = {flag.replace("-", "_") for flag in re.findall(r"^ +(?:-h,\s*)?--([a-z-]+)", shown, re.M)}
    options = inspect.signature(openrnn.train.Run).parameters
    of_the_network = {option["name"] for option in openrnn.network_options()} - NO_OPTIONS
    assert (set(options) - {"network"}) | of_the_network == flags - OF_THE_TOOL
    described = inspect.getdoc(openrnn.train.Run)
    assert not [name for name in options if not re.search(rf"\b{name}\b", described)]
