"""inspect, convert and run over model files: every flag, and every line that they print."""

import json
import re

import numpy as np
import openrnn
import pytest

from model.numpy_layout import Spec, params_size
from tool.tool_runs import fault, good

X = np.random.default_rng(2).standard_normal((6, 2, 3)).astype("float32")


def built(kind=openrnn.layers.LSTM, num_layers=2, **options):
    layer = kind(4, num_layers, **options)
    layer.build([None, None, 3])
    values = np.random.default_rng(5).uniform(-0.5, 0.5, layer.kernel.shape)
    layer.kernel.assign(values.astype(layer.dtype))
    return layer


def save(path, networks, **more):
    openrnn.save(path, networks, **more)
    return path


def with_state(path, layer, slots=()):
    """A file of one network with initial states and what optimizers keep."""
    save(path, layer)
    model = openrnn.load(path)
    given = model.network._given
    random = np.random.default_rng(7)
    shapes = [shape[:1] + shape[2:] for shape in layer.state_shape(1)]
    given["initial_h"] = random.normal(size=shapes[0]).astype(layer.dtype)
    if len(shapes) == 2:
        given["initial_c"] = random.normal(size=shapes[1]).astype(layer.dtype)
    given["slots"] = {name: given["params"] * 2 for name in slots}
    save(path, model)
    return openrnn.load(path).network


def size_of(mode="lstm", **options):
    return params_size(Spec(mode, 2, 4, 3, **options))


# ---- inspect -------------------------------------------------------------------------------------


def test_inspect_says_everything_of_a_network(tmp_path):
    path = tmp_path / "m.openrnn"
    with_state(path, built(cell_clip=1.5, dtype="float64"), ["m", "v"])
    text = good("inspect", path).stdout
    lines = text.splitlines()
    size = size_of()
    assert lines[0].split() == ["tensor", "dtype", "shape", "bytes"]
    rows = [re.fullmatch(r"(\S+) +(\S+) +(\[.*\]) +(\d+)", line).groups() for line in lines[1:6]]
    sizes = {name: (dtype, shape, int(total)) for name, dtype, shape, total in rows}
    assert sizes["params"] == ("float64", f"[{size}]", 8 * size)
    # As wide as the longest name; numbers end where their title ends.
    assert len({line.index("float64") for line in lines[1:6]}) == 1
    assert len({len(line) for line in lines[:6]}) == 1
    total = 3 * 8 * size + 2 * 8 * 2 * 4
    assert sum(one for _, _, one in sizes.values()) == total
    assert lines[6] == f"5 tensors, {total} bytes in {path}, a file of OpenRNN, every checksum is right"
    (network,) = [line for line in lines if line.startswith("network")]
    assert network == (
        "network: lstm, 2 layers, 4 units, input size 3, unidirectional, float64, "
        f"cell_clip [-1.5, 1.5], two biases a gate, {size} parameters, with initial states, slots m, v"
    )
    made_from = lines[lines.index(network) + 1]
    assert made_from.startswith("  made from ") and "params" in made_from
    found = json.loads(good("inspect", path, "--json").stdout)
    (shown,) = found["networks"]
    assert (shown["initial_state"], shown["slots"], shown["scope"]) == (True, ["m", "v"], "")
    assert "network: " + shown["text"] == network
    assert shown["options"]["cell_clip"] == [-1.5, 1.5] and shown["options"]["num_units"] == 4


ALWAYS = {"rnn_mode", "num_layers", "num_units", "input_size", "input_mode", "direction", "dropout", "seed", "dtype",
          "num_proj", "math", "weights_dtype"}


@pytest.mark.parametrize("kind, options, more", [
    ("LSTM", {}, {}), ("GRU", {}, {}), ("RNN", {}, {}), ("GRU", {"reset_after": False}, {"reset_after": False}),
    ("LSTM", {"zoneout": 0.1, "use_peepholes": True}, {"zoneout": 0.1, "use_peepholes": True}),
    ("LSTM", {"layer_norm": "gates"}, {"layer_norm": "gates"}),
    ("RNN", {"activation": "relu", "single_bias": True}, {"single_bias": True}),
])
def test_inspect_lists_the_options_that_a_network_has(tmp_path, kind, options, more):
    path = save(tmp_path / "m.openrnn", built(getattr(openrnn.layers, kind), **options))
    (network,) = json.loads(good("inspect", path, "--json").stdout)["networks"]
    shown = network["options"]
    assert set(shown) == ALWAYS | set(more) and {name: shown[name] for name in more} == more
    assert shown == dict(openrnn.load(path).network.options)
    assert network["biases_per_gate"] == (1 if options.get("single_bias") else 2)
    assert network["tensors"] == ["params"] and network["slots"] == [] and network["initial_state"] is False


def test_inspect_names_networks_values_and_the_rest(tmp_path):
    path = tmp_path / "m.openrnn"
    layers = {"enc": built(use_bias=False), "dec": built(single_bias=True)}
    save(path, layers, values={"author": "me", "note": "x" * 3})
    lines = good("inspect", path).stdout.splitlines()
    assert "author: 'me'" in lines and "note: 'xxx'" in lines
    (enc,) = [line for line in lines if line.startswith("network in enc: ")]
    (dec,) = [line for line in lines if line.startswith("network in dec: ")]
    assert ", no biases, " in enc and ", one bias a gate, " in dec
    assert "initial states" not in enc and "slots" not in enc
    assert not [line for line in lines if line.startswith("of no network")]
    path = tmp_path / "m.safetensors"
    save(path, built())
    tensors = read_safetensors(path)
    write_safetensors(path, {**tensors, "head.weight": np.zeros((2, 4), "float32")})
    text = good("inspect", path).stdout
    assert "\nof no network: head.weight\n" in text and "which has no checksums" in text
    assert json.loads(good("inspect", path, "--json").stdout)["not_understood"] == ["head.weight"]
    write_safetensors(path, {"head.weight": np.zeros((2, 4), "float32")})
    assert "note: no recurrent network among them\n" in good("inspect", path).stdout


def read_safetensors(path):
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    body = data[8 + size :]
    return {
        name: np.frombuffer(body[slice(*one["data_offsets"])], {"F32": "f4"}[one["dtype"]]).reshape(
            one["shape"])
        for name, one in header.items() if name != "__metadata__"
    }  # fmt: skip


def write_safetensors(path, tensors):
    header, body = {}, b""
    for name, values in tensors.items():
        begin = len(body)
        body += values.astype("f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [begin, len(body)]}
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)


# ---- convert -------------------------------------------------------------------------------------


def test_convert_says_what_became_of_everything(tmp_path):
    with_state(tmp_path / "a.openrnn", built(), ["exp_avg"])
    lines = good("convert", tmp_path / "a.openrnn", tmp_path / "b.openrnn").stdout.splitlines()
    values = (11 * 3 * 4) + 2 * (2 * 3 * 4)  # y, h and c of 11 steps of 3 rows
    assert lines == [
        "network: lstm, 2 layers, 4 units, input size 3, unidirectional, float32, "
        f"largest difference 0 of {values} values",
        f"a file of OpenRNN to {tmp_path / 'b.openrnn'}, openrnn",
    ]
    again = openrnn.load(tmp_path / "b.openrnn").network
    first = openrnn.load(tmp_path / "a.openrnn").network
    assert list(again.slots) == ["exp_avg"]
    np.testing.assert_array_equal(again.initial_state[1], first.initial_state[1])


def test_convert_names_what_a_file_has_no_place_for(tmp_path):
    save(tmp_path / "a.openrnn", built())
    model = openrnn.load(tmp_path / "a.openrnn")
    given = model.network._given
    given["slots"] = {"exp_avg": given["params"], "exp_avg_sq": given["params"]}
    save(tmp_path / "a.openrnn", model)
    lines = good("convert", tmp_path / "a.openrnn", tmp_path / "b.onnx").stdout.splitlines()
    assert lines[1:] == [
        "left out: optimizer slot exp_avg, for which such a file has no place",
        "left out: optimizer slot exp_avg_sq, for which such a file has no place",
        f"a file of OpenRNN to {tmp_path / 'b.onnx'}, onnx",
    ]
    save(tmp_path / "c.safetensors", built())
    tensors = read_safetensors(tmp_path / "c.safetensors")
    write_safetensors(tmp_path / "c.safetensors",
                      {**tensors, "head.bias": np.zeros(2), "head.weight": np.zeros((2, 4))})
    text = good("convert", tmp_path / "c.safetensors", tmp_path / "d.bin", "--to", "torch").stdout
    assert "left out: 2 tensors of no network: head.bias, head.weight\n" in text
    assert text.endswith(f"to {tmp_path / 'd.bin'}, torch\n")


@pytest.mark.parametrize("values, said", [
    ({}, []), ({"epoch": 3}, ["left out: 1 value: epoch"]),
    ({"epoch": 3, "loss": 0.5}, ["left out: 2 values: epoch, loss"]),
])
def test_convert_names_the_values_that_are_lost(tmp_path, values, said):
    path = save(tmp_path / "a.openrnn", built(num_layers=1, single_bias=True), values=values)
    for ending, kind, lost in (("json", "rtneural", said), ("h5", "keras_h5", said), ("openrnn", "openrnn", []),
                               ("safetensors", "safetensors", []), ("onnx", "onnx", []), ("npz", "npz", []),
                               ("pt", "torch", [])):
        lines = good("convert", path, tmp_path / f"b.{ending}").stdout.splitlines()
        assert lines[1:-1] == lost, ending
        assert lines[-1] == f"a file of OpenRNN to {tmp_path / 'b'}.{ending}, {kind}"
        if not lost:
            assert values.keys() <= openrnn.load(tmp_path / f"b.{ending}").metadata.keys(), ending


def test_convert_leaves_the_file_that_it_reads(tmp_path):
    path = save(tmp_path / "a.safetensors", built())
    before = path.read_bytes()
    (tmp_path / "link").symlink_to(path)
    for out in (path, tmp_path / "link"):
        assert fault("convert", path, out, "--to", "openrnn").startswith(
            f"[convert] out '{out}' is the file that is read, expected another")
    assert path.read_bytes() == before


def test_convert_refuses_what_it_cannot_write(tmp_path):
    path = tmp_path / "a.safetensors"
    write_safetensors(path, {"head.weight": np.zeros((2, 4))})
    line = fault("convert", path, tmp_path / "b.pt")
    assert line.startswith(f"[convert] '{path}' has no recurrent network, expected one")
    assert "in 'none.pt': no such file" in fault("convert", "none.pt", tmp_path / "b.pt", cwd=tmp_path).replace(
        str(tmp_path) + "/", "")
    save(path, built())
    assert "'any', expected one of openrnn, safetensors, torch" in fault(
        "convert", path, tmp_path / "b", "--to", "any")
    assert not (tmp_path / "b").exists() and not (tmp_path / "b.pt").exists()


# ---- Hints ---------------------------------------------------------------------------------------


@pytest.fixture(name="plain")
def fixture_plain(tmp_path):
    """A plain network whose file does not say its activation."""
    return save(tmp_path / "plain.pt", built(openrnn.layers.RNN, activation="relu"))


def run(model, out, *more):
    np.save(out.parent / "x.npy", X)
    good("run", model, "--input", out.parent / "x.npy", "--output", out, *more)
    return np.load(out)


def test_the_hint_of_a_mode(tmp_path, plain):
    layer = built(openrnn.layers.RNN, activation="relu")
    for mode in ("rnn_relu", "rnn_tanh"):
        assert f"network: {mode}, " in good("inspect", plain, "--mode", mode).stdout
        other = built(openrnn.layers.RNN, activation=mode.removeprefix("rnn_"))
        other.kernel.assign(layer.kernel)
        wanted = other(X, training=False)[0].numpy()
        np.testing.assert_array_equal(run(plain, tmp_path / "y.npy", "--mode", mode), wanted)
        good("convert", plain, tmp_path / "b.openrnn", "--mode", mode)
        assert openrnn.load(tmp_path / "b.openrnn").network.options["rnn_mode"] == mode
    assert fault("inspect", plain, "--mode", "tanh").startswith("[")


def test_the_hint_of_reset_after(tmp_path):
    path = tmp_path / "m.weights.h5"
    save(path, built(openrnn.layers.GRU, num_layers=1, use_bias=False))
    assert "expected the hint reset_after" in good("inspect", path).stdout
    assert ", reset_after false" not in good("inspect", path, "--reset-after", "true").stdout
    assert ", reset_after false" in good("inspect", path, "--reset-after", "false").stdout
    for value in (True, False):
        good("convert", path, tmp_path / "b.openrnn", "--reset-after", str(value).lower())
        options = openrnn.load(tmp_path / "b.openrnn").network.options
        assert options.get("reset_after", True) is value


def test_the_hint_of_a_recurrent_activation(tmp_path):
    path = save(tmp_path / "m.weights.h5", built(num_layers=1, single_bias=True))
    hint = ["--recurrent-activation", "hard_sigmoid(0.2, 0.5)"]
    assert ", recurrent_activation hard_sigmoid(0.2, 0.5)," in good("inspect", path, *hint).stdout
    y = run(path, tmp_path / "y.npy", *hint)
    layer = built(num_layers=1, single_bias=True, recurrent_activation="hard_sigmoid(0.2, 0.5)")
    np.testing.assert_array_equal(y, layer(X, training=False)[0].numpy())


def test_the_hint_of_a_forget_bias(tmp_path):
    scope, random = "rnn/multi_rnn_cell/cell_0/basic_lstm_cell", np.random.default_rng(3)
    kernel, bias = random.normal(size=(7, 16)).astype("float32"), random.normal(size=16).astype("float32")
    openrnn.train.Saver({f"{scope}/kernel": openrnn.Variable(kernel), f"{scope}/bias": openrnn.Variable(bias)}).save(
        str(tmp_path / "m"))
    outputs = {}
    for value in (0.0, 0.5, 1.0):
        hint = ["--forget-bias", value]
        assert (f", forget_bias {value:g}" in good("inspect", tmp_path / "m", *hint).stdout) == (value > 0)
        outputs[value] = run(tmp_path / "m", tmp_path / "y.npy", *hint)
    assert "TensorFlow's default for a basic_lstm_cell is taken, 1" in good("inspect", tmp_path / "m").stdout
    np.testing.assert_array_equal(run(tmp_path / "m", tmp_path / "y.npy"), outputs[1.0])
    assert np.abs(outputs[0.0] - outputs[0.5]).max() > 1e-3
    assert fault("inspect", tmp_path / "m", "--forget-bias", "nan").startswith("[inspect] --forget-bias nan, expected")


def test_the_hint_of_an_opaque_network(tmp_path):
    layer = built()
    openrnn.train.Saver({"encoder/opaque_kernel": openrnn.Variable(layer.kernel.numpy())}).save(str(tmp_path / "m"))
    assert "which network it belongs to" in good("inspect", tmp_path / "m").stdout
    hint = ["--opaque-network", json.dumps({"rnn_mode": "lstm", "num_layers": 2, "num_units": 4, "input_size": 3})]
    assert "network in encoder: lstm, 2 layers, 4 units, input size 3" in good("inspect", tmp_path / "m", *hint).stdout
    np.testing.assert_array_equal(run(tmp_path / "m", tmp_path / "y.npy", *hint), layer(X, training=False)[0].numpy())
    good("convert", tmp_path / "m", tmp_path / "b.pt", *hint)
    np.testing.assert_array_equal(openrnn.load(tmp_path / "b.pt").network.params, layer.kernel.numpy())
    wrong = json.dumps({"rnn_mode": "lstm", "num_layers": 2, "num_units": 5, "input_size": 3})
    assert "float32 of 440 elements of the hint network" in fault("run", tmp_path / "m", "--input", tmp_path / "x.npy",
                                                                  "--output", tmp_path / "y.npy", "--opaque-network", wrong)
    assert "'units' is no field, expected one of rnn_mode, " in fault("inspect", tmp_path / "m", "--opaque-network", '{"units": 3}')
    with pytest.raises(TypeError, match="unexpected keyword argument 'units'"):
        openrnn.load(tmp_path / "m", network={"units": 3})
    with pytest.raises(TypeError, match="network is 'int', expected a dictionary of options"):
        openrnn.load(tmp_path / "m", network=3)


def test_values_of_hints_that_are_none(plain):
    assert fault("inspect", plain, "--reset-after", "yes") == (
        "[inspect] --reset-after 'yes', expected true or false")
    assert "'none_such'" in fault("inspect", plain, "--recurrent-activation", "none_such")


# ---- run -----------------------------------------------------------------------------------------


def test_run_prints_what_it_wrote(tmp_path):
    model, out = save(tmp_path / "m.openrnn", built()), tmp_path / "y.npy"
    np.save(tmp_path / "x.npy", X)
    done = good("run", model, "--input", tmp_path / "x.npy", "--output", out, "--threads", 1)
    assert done.stdout == f"output float32 [6, 2, 4] in {out}\n"
    np.save(tmp_path / "x.npy", X[:, 0])
    done = good("run", model, "--input", tmp_path / "x.npy", "--output", out)
    assert done.stdout == f"output float32 [6, 4] in {out}\n"
    # One sequence has no axis to be exchanged.
    single = np.load(out)
    good("run", model, "--input", tmp_path / "x.npy", "--output", out, "--batch-major")
    np.testing.assert_array_equal(np.load(out), single)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "float16", "float64"])
def test_run_takes_numbers_of_every_dtype(tmp_path, dtype):
    layer = built()
    model = save(tmp_path / "m.openrnn", layer)
    x = (np.arange(36).reshape(6, 2, 3) % 7).astype(dtype)
    np.save(tmp_path / "x.npy", x)
    good("run", model, "--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy")
    wanted = layer(x.astype("float32"), training=False)[0].numpy()
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), wanted)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_run_writes_the_dtype_of_the_network(tmp_path, dtype):
    layer = built(dtype=dtype)
    y = run(save(tmp_path / "m.openrnn", layer), tmp_path / "y.npy")
    wanted = layer(X.astype(dtype), training=False)[0].numpy()
    assert y.dtype == ("float32" if dtype == "bfloat16" else dtype)
    np.testing.assert_array_equal(y, wanted.astype(y.dtype))


def test_run_with_another_arithmetic(tmp_path):
    layer = built()
    model = save(tmp_path / "m.openrnn", layer)
    y = run(model, tmp_path / "y.npy", "--math", "bf16")
    wanted = layer.with_arithmetic(math="bf16")(X, training=False)[0].numpy()
    np.testing.assert_array_equal(y, wanted)
    assert (y != layer(X, training=False)[0].numpy()).any()


def test_run_begins_with_the_states_of_the_file(tmp_path):
    layer = built()
    network = with_state(tmp_path / "m.openrnn", layer)
    start = tuple(np.repeat(part[:, None], 2, axis=1) for part in network.initial_state)
    y = run(tmp_path / "m.openrnn", tmp_path / "y.npy", "--state", tmp_path / "s")
    wanted, states = layer(X, start, training=False)
    np.testing.assert_array_equal(y, wanted.numpy())
    # The file of states comes before them.
    y = run(tmp_path / "m.openrnn", tmp_path / "y.npy", "--state", tmp_path / "s")
    np.testing.assert_array_equal(y, layer(X, states, training=False)[0].numpy())
    np.save(tmp_path / "x.npy", X[:, :1])
    line = fault("run", tmp_path / "m.openrnn", "--input", tmp_path / "x.npy", "--output",
                 tmp_path / "y.npy", "--state", tmp_path / "s")
    assert line == "[run] --state has h float32 [2, 2, 4], expected float32 [2, 1, 4]"


def test_run_says_which_network(tmp_path):
    np.save(tmp_path / "x.npy", X)
    rest = ["--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy"]
    two = save(tmp_path / "m.openrnn", {"a": built(), "b": built(num_layers=1)})
    assert fault("run", two, *rest) == "[run] --network '', expected one of: a, b"
    good("run", two, *rest, "--network", "b")
    wanted = built(num_layers=1)(X, training=False)[0].numpy()
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), wanted)
    write_safetensors(tmp_path / "n.safetensors", {"head.weight": np.zeros((2, 4))})
    assert fault("run", tmp_path / "n.safetensors", *rest).startswith(
        f"[run] '{tmp_path / 'n.safetensors'}' has no recurrent network, expected one")
    assert re.search(r"--input '.*none.npy': no such file", fault(
        "run", two, "--network", "a", "--input", tmp_path / "none.npy", "--output", tmp_path / "y.npy"))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_lengths_of_a_run(tmp_path, dtype):
    layer = built()
    np.save(tmp_path / "n.npy", np.array([6, 2], dtype))
    y = run(save(tmp_path / "m.openrnn", layer), tmp_path / "y.npy", "--lengths", tmp_path / "n.npy")
    wanted = layer(X, training=False, sequence_lengths=[6, 2])[0].numpy()
    np.testing.assert_array_equal(y, wanted)
    for wrong, text in (([7, 1], "has 7 at 0, expected 0 to T = 6"),
                        ([1, -1], "has -1 at 1, expected 0 to T = 6"),
                        ([1], f"is {dtype} [1], expected int32 or int64 [2]")):
        np.save(tmp_path / "n.npy", np.array(wrong, dtype))
        assert fault("run", tmp_path / "m.openrnn", "--input", tmp_path / "x.npy", "--output",
                     tmp_path / "y.npy", "--lengths", tmp_path / "n.npy") == f"[run] --lengths {text}"
    np.save(tmp_path / "n.npy", np.array([6.0, 2.0]))
    assert fault("run", tmp_path / "m.openrnn", "--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy",
                 "--lengths", tmp_path / "n.npy") == "[run] --lengths is float64 [2], expected int32 or int64 [2]"


def test_run_takes_a_table_of_tabs(tmp_path):
    layer = built()
    save(tmp_path / "m.openrnn", layer)
    np.savetxt(tmp_path / "x.tsv", X[:, 0], "%.9g", "\t")
    good("run", tmp_path / "m.openrnn", "--input", tmp_path / "x.tsv", "--output", tmp_path / "y.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), layer(X[:, :1], training=False)[0].numpy()[:, 0])


def test_a_state_of_another_dtype(tmp_path):
    save(tmp_path / "m.openrnn", built(dtype="float64"))
    np.save(tmp_path / "x.npy", X)
    write_safetensors(tmp_path / "s", {name: np.zeros((2, 2, 4)) for name in "hc"})
    assert fault("run", tmp_path / "m.openrnn", "--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy",
                 "--state", tmp_path / "s") == "[run] --state has h float32 [2, 2, 4], expected float64 [2, 2, 4]"


def test_convert_of_weights_that_are_no_numbers(tmp_path):
    layer = built()
    layer.kernel.assign(np.full(layer.kernel.shape, np.nan, "float32"))
    lines = good("convert", save(tmp_path / "a.openrnn", layer), tmp_path / "b.openrnn").stdout
    assert "largest difference 0 of" in lines
