"""The `checkpoint` state file and TensorBoard's event files, to and from TensorFlow itself."""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

import file_tools as tools

NAMES = ["model-1", "odd name #2", "quote\"'s", "back\\slash", "grün-3", "tab\there", "model-9"]


def test_tensorflow_reads_our_state(tmp_path):
    tools.call_tool("checkpoint_state", "write", tmp_path, *[tmp_path / name for name in NAMES])
    state = tf.train.get_checkpoint_state(str(tmp_path))
    assert state.model_checkpoint_path == str(tmp_path / NAMES[-1])
    assert list(state.all_model_checkpoint_paths) == [str(tmp_path / name) for name in NAMES]
    assert list(state.all_model_checkpoint_timestamps) == [1700000000.125] * len(NAMES)
    assert state.last_preserved_timestamp == 1600000000.5


def test_we_read_tensorflows_state(tmp_path):
    paths = [str(tmp_path / name) for name in NAMES] + ["/elsewhere/model-10"]
    tf.compat.v1.train.update_checkpoint_state(str(tmp_path), paths[-1], paths)
    assert tools.call_tool("checkpoint_state", "dump", tmp_path).splitlines() == paths[-1:] + paths


def test_both_write_the_same_state(tmp_path, monkeypatch):
    names = [name for name in NAMES if name.isascii()]  # the rest is escaped here and not there
    tools.call_tool("checkpoint_state", "write", tmp_path, *[tmp_path / name for name in names])
    ours = (tmp_path / "checkpoint").read_bytes()
    monkeypatch.chdir(tmp_path)
    tf.compat.v1.train.update_checkpoint_state(
        ".", names[-1], names, all_model_checkpoint_timestamps=[1700000000.125] * len(names),
        last_preserved_timestamp=1600000000.5)
    assert (tmp_path / "checkpoint").read_bytes() == ours


def test_tensorflow_reads_our_events(tmp_path):
    path = tools.call_tool("events", "write", tmp_path).strip()
    events = list(tf.compat.v1.train.summary_iterator(path))
    assert events[0].file_version == "brain.Event:2"
    assert all(event.wall_time > 1.6e9 for event in events)
    found = [(event.step, value.tag, value.simple_value)
             for event in events for value in event.summary.value]
    assert found == [(0, "loss", 2.5), (7, "loss", 0.5), (7, "validation/bits", -0.25)]


def test_we_read_tensorflows_events(tmp_path):
    with tf.Graph().as_default():
        writer = tf.compat.v1.summary.FileWriter(str(tmp_path))
        for step, value in ((1, 0.5), (300, -4.0)):
            writer.add_summary(tf.compat.v1.Summary(value=[
                {"tag": "a", "simple_value": value}, {"tag": "b c", "simple_value": value * 2},
                {"tag": "picture", "histo": {"min": 1.0}}]), step)
        writer.close()
    (path,) = tmp_path.glob("*tfevents*")
    assert tools.call_tool("events", "dump", path).splitlines() == [
        "1 a 0.5", "1 b c 1", "300 a -4", "300 b c -8"]


def test_flipped_bit_in_events_is_found(tmp_path):
    path = tools.call_tool("events", "write", tmp_path).strip()
    data = np.fromfile(path, np.uint8)
    data[len(data) // 2] ^= 4
    data.tofile(path)
    done = tools.run_tool("events", "dump", path)
    assert done.returncode == 1 and "a record has checksum" in done.stderr
