"""A process that is killed at any moment of a save leaves a checkpoint that can be loaded."""

import random
import resource
import subprocess
import time

import file_tools as tools


def run_until_killed(folder, delay):
    """The lines of a saving loop that is killed `delay` seconds after its first save."""
    process = subprocess.Popen(
        [tools.BUILD_DIR / "tool_checkpoint", "loop", folder],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    lines = [process.stdout.readline(), process.stdout.readline()]
    time.sleep(delay)
    process.kill()
    # Not communicate(): it misses what readline() has read ahead.
    lines += process.stdout.readlines()
    assert process.stderr.read() == ""
    process.wait(60)
    return [line.split() for line in lines]


def test_every_kill_leaves_a_loadable_checkpoint(tmp_path):
    """Each process begins where the one before was, or one save further on: the one whose line was
    not printed any more."""
    delays = random.Random(3)
    last = 0
    for _ in range(20):
        lines = run_until_killed(tmp_path, delays.uniform(0, 0.05))
        assert lines[0][0] == "restored"
        assert int(lines[0][1]) - last in (0, 1)
        steps = [int(line[1]) for line in lines]
        assert steps == list(range(steps[0], steps[0] + len(steps)))
        last = steps[-1]
    assert last >= 20
    # What was kept, what the last save was at, its leftovers, and the lock's file; not one pair for
    # each kill.
    assert len(list(tmp_path.iterdir())) <= 2 * 5 + 3


def test_a_full_disk_leaves_the_old_checkpoints(tmp_path):
    run_until_killed(tmp_path, 0.02)
    before = {path.name for path in tmp_path.iterdir()}
    before = {name for name in before if not name.endswith((".new", ".lock"))}

    def limit_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    full = subprocess.run(
        [tools.BUILD_DIR / "tool_checkpoint", "loop", tmp_path],
        preexec_fn=limit_files,
        restore_signals=False,  # Python ignores SIGXFSZ, and so must the tool
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert full.returncode == 1
    assert full.stderr.count("\n") == 1 and "File too large" in full.stderr
    assert before <= {path.name for path in tmp_path.iterdir()}
    restored = int(full.stdout.split()[1])
    assert run_until_killed(tmp_path, 0)[0] == ["restored", str(restored)]


def test_readers_in_a_loop_end_no_run(tmp_path):
    """What reads a run's folder, or one prefix of it, beside a saver that never fails."""
    saver = subprocess.Popen(
        [tools.BUILD_DIR / "tool_checkpoint", "loop", tmp_path],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while not (tmp_path / "checkpoint").exists():
            time.sleep(0.01)
        for _ in range(15):
            seen = subprocess.run(
                [tools.BUILD_DIR / "openrnn", "inspect", tmp_path],
                capture_output=True,
                text=True,
                timeout=60,
            )
            assert (seen.returncode, seen.stderr) == (0, "")
            assert "weights" in seen.stdout
            assert saver.poll() is None
    finally:
        saver.kill()
        errors = saver.communicate(timeout=60)[1]
    assert errors == ""


def test_a_second_run_in_the_folder_names_the_first(tmp_path):
    first = subprocess.Popen(
        [tools.BUILD_DIR / "tool_checkpoint", "loop", tmp_path],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        for _ in range(2):
            first.stdout.readline()
        second = subprocess.run(
            [tools.BUILD_DIR / "tool_checkpoint", "loop", tmp_path],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert second.returncode == 1
        assert f"is in use by process {first.pid} on " in second.stderr
    finally:
        first.kill()
        first.communicate(timeout=60)
    lines = run_until_killed(tmp_path, 0)
    assert lines[0][0] == "restored"


def test_a_folder_whose_latest_is_gone_shows_the_newest_there(tmp_path):
    """As a reader finds it that was slower than two saves."""
    run_until_killed(tmp_path, 0.05)
    state = tmp_path / "checkpoint"
    first, rest = state.read_text().split("\n", 1)
    assert first.startswith("model_checkpoint_path: ")
    state.write_text('model_checkpoint_path: "model.ckpt-999999"\n' + rest)
    seen = subprocess.run(
        [tools.BUILD_DIR / "openrnn", "inspect", tmp_path],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (seen.returncode, seen.stderr) == (0, "") and "weights" in seen.stdout
