"""The tool over models and networks of files: states, arithmetic and outputs that are rarely asked for."""

import json
import struct
import zipfile

import numpy as np
import openrnn
import pytest

from model_files.test_tool_model_files import built, read_safetensors, save, write_safetensors
from tool.tool_runs import fault, good

X = np.random.default_rng(4).standard_normal((6, 2, 3)).astype("float32")


@pytest.fixture(name="run")
def fixture_run(tmp_path):
    """Runs a model over X, batch-major or not; the path of its output."""
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "rows.npy", X.swapaxes(0, 1))

    def call(path, *flags, rows=False, output="y.npy", using=good):
        given = tmp_path / ("rows.npy" if rows else "x.npy")
        return using("run", path, "--input", given, "--output", tmp_path / output, *flags)

    return call


def test_a_gru_has_no_cells_to_keep(tmp_path, run):
    layer = built(openrnn.layers.GRU)
    path = save(tmp_path / "m.openrnn", layer)
    run(path, "--state", tmp_path / "s")
    y, states = layer(X, training=False)
    (h,) = read_safetensors(tmp_path / "s").items()
    assert h[0] == "h"
    np.testing.assert_array_equal(h[1], states[0].numpy())
    run(path, "--state", tmp_path / "s")
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), layer(X, states, training=False)[0].numpy())
    assert (np.load(tmp_path / "y.npy") != y.numpy()).any()


def test_a_state_names_the_part_that_does_not_fit(tmp_path, run):
    path = save(tmp_path / "m.openrnn", built())
    write_safetensors(tmp_path / "s", {"h": np.zeros((2, 2, 4)), "c": np.zeros((2, 2, 5))})
    assert run(path, "--state", tmp_path / "s", using=fault) == (
        "[run] --state has c float32 [2, 2, 5], expected float32 [2, 2, 4]")
    write_safetensors(tmp_path / "s", {"h": np.zeros((2, 2, 4))})
    assert "'c'" in run(path, "--state", tmp_path / "s", using=fault)
    assert not (tmp_path / "y.npy").exists()


def test_an_input_of_another_order_says_so(tmp_path, run):
    path = save(tmp_path / "m.openrnn", built())
    np.save(tmp_path / "x.npy", X[:, :, :2])
    for flags, axes in (([], "[T, B, I]"), (["--batch-major"], "[B, T, I]")):
        assert run(path, *flags, using=fault) == (
            f"[run] --input has shape [6, 2, 2], expected [T, I] or {axes} with I = 3")
    np.save(tmp_path / "x.npy", X[0, 0])
    assert run(path, using=fault) == "[run] --input has shape [3], expected [T, I] or [T, B, I] with I = 3"


def graph_of(layer, outputs, **options):
    """A model of one recurrent layer and a dense one."""
    dense = openrnn.layers.Dense(2, use_bias=False)
    dense.build((None, layer.num_units))
    dense.kernel.assign(np.linspace(-1, 1, 8, dtype="float32").reshape(4, 2))
    return openrnn.layers.LayerGraph(
        [{"name": "x", "kind": "input", "inputs": [], "options": {"shape": [-1, -1, 3]}},
         {"name": "r", "kind": "recurrent", "inputs": [("x", 0)], "options": {"network": "r", **options}},
         {"name": "d", "kind": "dense", "inputs": [("r", 0)], "options": {"units": 2, "use_bias": False}}],
        outputs, {"r": layer, "d": dense})  # fmt: skip


def test_outputs_are_named_by_layer_and_number(tmp_path, run):
    layer = built(num_layers=1)
    path = save(tmp_path / "m.openrnn", graph_of(layer, [("d", 0), ("r", 2), ("r", 0)], return_state=True))
    out = tmp_path / "y.safetensors"
    assert run(path, rows=True, output="y.safetensors").stdout == (
        f"output d float32 [2, 6, 2] in {out}\noutput r.2 float32 [2, 4] in {out}\noutput r float32 [2, 6, 4] in {out}\n")
    y, states = layer(X, training=False)
    found = read_safetensors(out)
    np.testing.assert_array_equal(found["r"], y.numpy().swapaxes(0, 1))
    np.testing.assert_array_equal(found["r.2"], states[1].numpy()[0])


def test_a_whole_model_in_another_arithmetic(tmp_path, run):
    layer = built(num_layers=1)
    path = save(tmp_path / "m.openrnn", graph_of(layer, [("r", 0)]))
    outputs = {}
    for flags in ((), ("--math", "float32"), ("--math", "bf16")):
        run(path, *flags, rows=True)
        outputs[flags] = np.load(tmp_path / "y.npy")
    wanted = layer.with_arithmetic(math="bf16")(X, training=False)[0].numpy().swapaxes(0, 1)
    np.testing.assert_array_equal(outputs["--math", "bf16"], wanted)
    np.testing.assert_array_equal(outputs["--math", "float32"], outputs[()])
    assert (outputs[()] != wanted).any()


def test_convert_repeats_the_notes_of_what_it_read(tmp_path):
    layer = built(num_layers=1)
    values = layer.kernel.numpy().copy()
    values[:3] = np.nan, np.inf, np.nan
    layer.kernel.assign(values)
    path = save(tmp_path / "a.openrnn", layer)
    note = f"note: the network has 2 NaN and 1 infinite of {values.size} values in params"
    lines = good("convert", path, tmp_path / "b.openrnn").stdout.splitlines()
    assert lines[1:] == [note, f"a file of OpenRNN to {tmp_path / 'b.openrnn'}, openrnn"]
    assert note in good("inspect", path).stdout.splitlines()


@pytest.mark.parametrize("part", ["initial_h", "initial_c"])
def test_inspect_sees_one_initial_state(tmp_path, part):
    path = save(tmp_path / "m.openrnn", built())
    model = openrnn.load(path)
    model.network._given[part] = np.full((2, 4), 0.5, "float32")
    save(path, model)
    (network,) = json.loads(good("inspect", path, "--json").stdout)["networks"]
    assert network["initial_state"] is True and network["tensors"] == ["params", part]
    assert ", with initial states\n" in good("inspect", path).stdout


def test_a_file_that_opens_in_no_way_is_named(tmp_path):
    """Also where its ending says what it should be."""
    (tmp_path / "m.keras").write_bytes(b"\x00\x01nothing")
    line = fault("inspect", tmp_path / "m.keras")
    assert line == (f"[inspect] '{tmp_path / 'm.keras'}' is a file of no known kind, expected a model file, "
                    "the output folder of a run or a checkpoint's prefix")


def test_an_archive_of_keras_without_checksums(tmp_path):
    """As some writers leave them: 0 of every entry. One that is there is right, or said to be wrong."""
    path = save(tmp_path / "m.keras", built(), format="keras")
    assert "every checksum is right" in good("inspect", path).stdout
    with zipfile.ZipFile(path) as archive:
        heads = [(entry.header_offset, entry.CRC) for entry in archive.infolist()]
    data = bytearray(path.read_bytes())
    at = data.index(b"PK\x01\x02")
    for offset, crc in heads:
        assert struct.unpack_from("<I", data, offset + 14)[0] == struct.unpack_from("<I", data, at + 16)[0] == crc != 0
        struct.pack_into("<I", data, offset + 14, 0)
        struct.pack_into("<I", data, at + 16, 0)
        at += 46 + sum(struct.unpack_from("<3H", data, at + 28))
    path.write_bytes(data)
    said = good("inspect", path).stdout
    assert "which has no checksums" in said and "lstm, 2 layers" in said
