"""A run ends with the same bits however it was saved, interrupted, killed and resumed."""
import random
import signal
import subprocess

import pytest
from tool_runs import MINUTES, TOOL, checkpoint_bytes, good, small_flags, tool, write_text

STEPS = 3000  # more than twenty short lives get through
KILLS = 20


def tiny_flags(text, out, **more):
    """Steps so short that saves are most of the time."""
    return small_flags(text, out, steps=STEPS, units=6, layers=1, batch=2, seq_len=8, **more)


def start_until_saved(arguments, **options):
    """A running process that has just said that it has saved; None if it ended before."""
    process = subprocess.Popen([TOOL, *arguments], stderr=subprocess.PIPE,
                               stdout=subprocess.DEVNULL, text=True, **options)
    for line in process.stderr:
        if line.startswith("saved "):
            return process
    process.wait(MINUTES)
    return None


def end(process, with_signal):
    """Its exit code."""
    process.send_signal(with_signal)
    process.stderr.read()
    return process.wait(MINUTES)


def test_killed_twenty_times_ends_with_the_same_bits(tmp_path):
    text = write_text(tmp_path)
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    good(*tiny_flags(text, whole))
    draw, kills = random.Random(20), 0
    for _ in range(KILLS):
        process = start_until_saved(tiny_flags(text, killed, save_steps=2) + ["--resume"])
        assert process is not None, "the run ended before all kills"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(draw.uniform(0.0, 0.15))
        assert end(process, signal.SIGKILL) == -signal.SIGKILL
        kills += 1
        loaded = good("eval", killed, "--input", text)
        assert loaded.stdout.startswith("bits_per_byte ")
    assert kills == KILLS
    good(*tiny_flags(text, killed), "--resume")
    assert checkpoint_bytes(killed, STEPS) == checkpoint_bytes(whole, STEPS)


@pytest.mark.parametrize("with_signal", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_saves_and_leaves_with_130(tmp_path, with_signal):
    text = write_text(tmp_path)
    whole, out = tmp_path / "whole", tmp_path / "out"
    good(*tiny_flags(text, whole))
    # Under nohup it would inherit an ignored hang-up.
    process = start_until_saved(tiny_flags(text, out, save_steps=2),
                                preexec_fn=lambda: signal.signal(with_signal, signal.SIG_DFL))
    assert process is not None
    assert end(process, with_signal) == 130
    state = (out / "checkpoint").read_text()
    assert 'model_checkpoint_path: "model.ckpt-' in state
    assert 'model_checkpoint_path: "model.ckpt-3000"' not in state
    resumed = good(*tiny_flags(text, out), "--resume")
    assert "resumed " in resumed.stderr
    assert checkpoint_bytes(out, STEPS) == checkpoint_bytes(whole, STEPS)


@pytest.mark.parametrize("ignored", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_was_ignored_stays_so(tmp_path, ignored):
    text = write_text(tmp_path)
    process = start_until_saved(
        small_flags(text, tmp_path / "out", units=6, layers=1, save_steps=2),
        preexec_fn=lambda: signal.signal(ignored, signal.SIG_IGN))
    assert process is not None
    assert end(process, ignored) == 0
    assert checkpoint_bytes(tmp_path / "out", 60)


def test_a_reader_that_goes_away_ends_no_run(tmp_path):
    text = write_text(tmp_path)
    process = start_until_saved(tiny_flags(text, tmp_path / "out", save_steps=500))
    process.stderr.close()
    assert process.wait(MINUTES) == 0
    assert checkpoint_bytes(tmp_path / "out", STEPS)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_threads_and_saves_change_no_bit(tmp_path, dtype):
    text = write_text(tmp_path)
    finals = []
    for number, flags in enumerate([{"threads": 1}, {"threads": 2}, {"threads": 4},
                                    {"save_steps": 7, "keep": 2}, {"save_seconds": 0}]):
        out = tmp_path / f"run{number}"
        good(*small_flags(text, out, dtype=dtype, **flags))
        finals.append(checkpoint_bytes(out, 60))
    assert all(final == finals[0] for final in finals)
    names = {path.name for path in (tmp_path / "run3").iterdir() if "ckpt" in path.name}
    assert names == {f"model.ckpt-{step}{end}" for step in (56, 60)
                     for end in (".index", ".data-00000-of-00001")}


def test_a_constant_schedule_can_be_lengthened(tmp_path):
    text = write_text(tmp_path)
    whole, out = tmp_path / "whole", tmp_path / "out"
    fixed = {"lr_schedule": "constant", "warmup": 3, "valid_every": 10}
    good(*small_flags(text, whole, steps=70, **fixed))
    good(*small_flags(text, out, steps=30, **fixed))
    resumed = good(*small_flags(text, out, steps=70, **fixed), "--resume")
    assert f"resumed {out}/model.ckpt-30 (step 30 of 70)" in resumed.stderr
    assert checkpoint_bytes(out, 70) == checkpoint_bytes(whole, 70)


def test_a_series_resumes_to_the_same_bits(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("".join(f"{row % 7},{row * row % 11}\n" for row in range(120)))
    flags = ["train", "--task", "series", "--input", str(table), "--units", "7", "--steps", "200",
             "--seq-len", "9", "--save-seconds", "0"]
    good(*flags, "--out", tmp_path / "whole")
    process = start_until_saved(flags + ["--out", str(tmp_path / "out")])
    assert process is not None
    assert end(process, signal.SIGINT) in (0, 130)
    done = tool(*flags, "--out", tmp_path / "out", "--resume")
    assert done.returncode == 0
    assert checkpoint_bytes(tmp_path / "out", 200) == checkpoint_bytes(tmp_path / "whole", 200)


def test_resume_starts_afresh_and_says_so(tmp_path):
    text = write_text(tmp_path)
    done = good(*small_flags(text, tmp_path / "out", steps=2), "--resume")
    assert f"nothing to resume in '{tmp_path / 'out'}': starting afresh" in done.stderr
    again = good("train", "--out", tmp_path / "out", "--resume")
    assert "(step 2 of 2)" in again.stderr
    assert again.stdout == done.stdout
