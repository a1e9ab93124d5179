"""load and save: networks of model files as layers, and PyTorch's names against the test's own mapping."""

import json
import wave

import numpy as np
import openrnn
import pytest

from model.numpy_layout import Spec
from pytorch import torch_mapping
from tool.tool_runs import good
from tool.tool_runs import tool as run_tool

LAYERS = {
    "lstm": lambda **options: openrnn.layers.LSTM(5, 2, seed=1, **options),
    "gru": lambda **options: openrnn.layers.GRU(5, 2, seed=1, **options),
    "rnn_tanh": lambda **options: openrnn.layers.RNN(5, 2, seed=1, **options),
    "rnn_relu": lambda **options: openrnn.layers.RNN(5, 2, seed=1, activation="relu", **options),
}
X = np.random.default_rng(0).standard_normal((7, 3, 2))


def built(mode, **options):
    layer = LAYERS[mode](**options)
    layer.build([None, None, 2])
    layer.kernel.assign(np.random.default_rng(1).uniform(-0.5, 0.5, layer.kernel.shape).astype(layer.dtype))
    return layer


def output(layer):
    return layer(X.astype(layer.dtype), training=False)[0].numpy()


@pytest.mark.parametrize("mode", LAYERS)
@pytest.mark.parametrize("direction", ["unidirectional", "bidirectional"])
@pytest.mark.parametrize("ending", ["openrnn", "safetensors", "pt"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_layer_there_and_back(tmp_path, mode, direction, ending, dtype):
    layer = built(mode, direction=direction, dtype=dtype)
    path = tmp_path / f"m.{ending}"
    openrnn.save(path, layer)
    hint = {"rnn_mode": mode} if mode.startswith("rnn") and ending != "openrnn" else {}
    model = openrnn.load(path, **hint)
    assert list(model) == [""] and not model.not_understood and not model.notes
    np.testing.assert_array_equal(output(model.layer), output(layer))
    assert model.layer is model.network.layer
    run, _ = openrnn.InferenceSession(model.packed()).run(X)
    np.testing.assert_array_equal(run, output(layer))


def test_several_networks_by_name_with_their_states_slots_and_metadata(tmp_path):
    layers = {"encoder": built("lstm", dropout=0.25), "decoder.rnn": built("gru", reset_after=False)}
    openrnn.save(tmp_path / "m.openrnn", layers, values={"author": "me", "epoch": 3})
    model = openrnn.load(tmp_path / "m.openrnn")
    assert model.kind == "a file of OpenRNN" and model.metadata == {"author": "me", "epoch": 3}
    assert list(model) == ["encoder", "decoder.rnn"]
    assert model["encoder"].options["dropout"] == 0.25 and not model["decoder.rnn"].options["reset_after"]
    for name, layer in layers.items():
        np.testing.assert_array_equal(output(model[name].layer), output(layer))
    with pytest.raises(openrnn.ArgumentError, match="2 networks, expected one"):
        model.layer  # noqa: B018
    given = model["encoder"]._given
    given.update(initial_h=np.ones((2, 5), "float32"), initial_c=np.zeros((2, 5), "float32"),
                 slots={"m": given["params"] * 2})
    openrnn.save(tmp_path / "n.openrnn", model)
    again = openrnn.load(tmp_path / "n.openrnn")
    assert again.metadata == model.metadata
    np.testing.assert_array_equal(again["encoder"].initial_state[0], np.ones((2, 5)))
    np.testing.assert_array_equal(again["encoder"].slots["m"], given["params"] * 2)
    assert again["decoder.rnn"].initial_state is None


VALUES = {"none": None, "yes": True, "no": False, "whole": -3, "large": 2**62, "half": 0.5, "word": "größer",
          "wholes": [1, 2], "numbers": [0.5, 2.0], "words": ["a", "b"]}


def test_values_keep_their_kinds(tmp_path):
    openrnn.save(tmp_path / "m.openrnn", built("gru"), values=VALUES)
    found = openrnn.load(tmp_path / "m.openrnn").metadata
    assert found == VALUES and {name: type(value) for name, value in found.items()} == {
        name: type(value) for name, value in VALUES.items()}
    openrnn.save(tmp_path / "n.openrnn", openrnn.load(tmp_path / "m.openrnn"), values={})
    assert openrnn.load(tmp_path / "n.openrnn").metadata == {}


# A TensorFlow checkpoint holds what tensors can be: no lists, and nothing for None.
def test_values_in_a_tensorflow_checkpoint(tmp_path):
    openrnn.save(tmp_path / "m", built("gru"), format="tensorflow", values=VALUES)
    found = dict(openrnn.train.list_variables(tmp_path / "m"))
    kept = {name for name, value in VALUES.items() if not isinstance(value, list | None)}
    assert kept <= set(found) and not (set(VALUES) - kept) & set(found)
    for name in kept - {"word"}:
        value = openrnn.train.load_variable(tmp_path / "m", name)
        assert value == VALUES[name] and value.shape == (), name


@pytest.mark.parametrize("value", [object(), {"a": 1}, [1, "a"], 1j, 2**63, [1, -(2**63) - 1]],
                         ids=["object", "dict", "mixed", "complex", "large", "larges"])
def test_values_of_other_kinds_are_refused(tmp_path, value):
    with pytest.raises((TypeError, openrnn.ArgumentError), match="'odd'"):
        openrnn.save(tmp_path / "m.openrnn", built("gru"), values={"odd": value})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path, format, name", [
    ("m.keras", "keras", "rate"), ("m.h5", "keras_h5", "rate"), ("m.weights.h5", "keras_weights", "rate"),
    ("m.json", "rtneural", "rate"), ("m.nam", "nam", "rate"), ("m.nam", "nam", "metadata"),
])  # fmt: skip
@pytest.mark.parametrize("by", ["ending", "format"])
def test_values_that_a_file_cannot_hold_are_refused(tmp_path, path, format, name, by):
    given = {"path": tmp_path / (path if by == "ending" else "m"), "format": None if by == "ending" else format}
    with pytest.raises(openrnn.UnsupportedError) as raised:
        openrnn.save(model=built("lstm"), values={"version": "1", name: 1} if format == "nam" else {name: 1}, **given)
    assert str(raised.value) == (
        f"[save] the value '{name}' is given, which a '{format}' file cannot hold, expected another format")
    assert not list(tmp_path.iterdir())
    # Those that came with a file of another kind are left out.
    if not format.startswith("keras"):
        return
    openrnn.save(tmp_path / "m.openrnn", built("lstm"), values={"rate": 1})
    openrnn.save(model=openrnn.load(tmp_path / "m.openrnn"), **given)
    openrnn.save(model=built("lstm"), values={}, **given)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_slots_keep_a_dtype_that_is_wider_than_the_weights(tmp_path, dtype):
    openrnn.save(tmp_path / "m.openrnn", built("gru", dtype=dtype))
    model = openrnn.load(tmp_path / "m.openrnn")
    given = model.network._given
    slot = np.random.default_rng(3).standard_normal(given["params"].shape).astype("float32")
    given["slots"] = {"m": slot}
    openrnn.save(tmp_path / "n.openrnn", model)
    again = openrnn.load(tmp_path / "n.openrnn").network
    assert again.slots["m"].dtype == "float32" and again.params.dtype == dtype
    np.testing.assert_array_equal(again.slots["m"], slot)


def test_what_is_trained_is_saved(tmp_path):
    openrnn.save(tmp_path / "a.pt", built("lstm"))
    model = openrnn.load(tmp_path / "a.pt")
    model.layer.kernel.assign(np.full(model.layer.kernel.shape, 0.125, "float32"))
    openrnn.save(tmp_path / "b.pt", model)
    assert (openrnn.load(tmp_path / "b.pt").network.params == 0.125).all()


def test_what_is_refused(tmp_path):
    with pytest.raises(openrnn.UnsupportedError, match="the network has use_peepholes true, which a state_dict"):
        openrnn.save(tmp_path / "m.pt", built("lstm", use_peepholes=True))
    with pytest.raises(openrnn.ArgumentError, match="says no format"):
        openrnn.save(tmp_path / "m.doc", built("lstm"))
    with pytest.raises(TypeError, match="'a' is a int, expected a built recurrent layer"):
        openrnn.save(tmp_path / "m.pt", {"a": 3})
    with pytest.raises(TypeError, match="the value 'a' is 'object'"):
        openrnn.save(tmp_path / "m.openrnn", built("lstm"), values={"a": object()})
    with pytest.raises(openrnn.ArgumentError):
        openrnn.save(tmp_path / "m.pt", openrnn.layers.LSTM(3))
    openrnn.save(tmp_path / "m.pt", built("rnn_relu"))
    with pytest.raises(openrnn.ArgumentError, match="the hint mode: rnn_tanh or rnn_relu"):
        openrnn.load(tmp_path / "m.pt")
    (tmp_path / "x").write_bytes(b"nothing")
    with pytest.raises(openrnn.FormatError, match="this is a text file"):
        openrnn.load(tmp_path / "x")
    assert {path.name for path in tmp_path.iterdir()} == {"m.pt", "x"}


@pytest.mark.parametrize("mode", LAYERS)
@pytest.mark.parametrize("direction", ["unidirectional", "bidirectional"])
@pytest.mark.parametrize("proj", [0, 2])
def test_pytorchs_names_against_the_mapping_of_the_tests(mode, direction, proj):
    if proj and mode != "lstm":
        return
    spec = Spec(mode, 2, 5, 3, direction=direction, num_proj=proj)
    options = {"num_layers": 2, "num_units": 5, "input_size": 3, "direction": direction, "num_proj": proj or None,
               "dtype": "float64"}
    random = np.random.default_rng(2)
    model = openrnn.cudnn_rnn.ops
    of_mode = {"lstm": model.CudnnLSTM, "gru": model.CudnnGRU, "rnn_tanh": model.CudnnRNNTanh,
               "rnn_relu": model.CudnnRNNRelu}[mode]
    ours = of_mode(2, 5, 3, direction=direction, dtype="float64", **({"num_proj": proj} if proj else {}))
    params = random.standard_normal(int(ours.params_size()))
    weights, biases = (list(map(np.asarray, part)) for part in ours.params_to_canonical(params))
    state = openrnn.torch_from_canonical(weights, biases, mode, **options)
    expected = torch_mapping.from_canonical(spec, weights, biases)
    assert set(state) == set(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(state[name], values)
    assert list(state)[:2] == ["weight_ih_l0", "weight_hh_l0"]
    back = openrnn.canonical_from_torch(state, mode, **options)
    for given, found in zip(weights + biases, back[0] + back[1], strict=True):
        np.testing.assert_array_equal(found, given)
    # The tensors go by their names, in whatever order they come.
    reordered = openrnn.canonical_from_torch(dict(reversed(state.items())), mode, **options)
    for given, found in zip(weights + biases, reordered[0] + reordered[1], strict=True):
        np.testing.assert_array_equal(found, given)
    # The buffer is PyTorch's parameters in order, all weights before all biases.
    order = sorted(state, key=lambda name: name.startswith("bias"))
    if not proj:
        np.testing.assert_array_equal(np.concatenate([state[name].ravel() for name in order]), params)
    with pytest.raises(openrnn.ArgumentError, match="'more'.*, expected"):
        openrnn.canonical_from_torch({**state, "more": state["bias_hh_l0"]}, mode, **options)
    del state["bias_hh_l0"]
    with pytest.raises(openrnn.ArgumentError, match="expected"):
        openrnn.canonical_from_torch(state, mode, **options)


OF_TORCH = {"num_layers": 2, "num_units": 4, "input_size": 4, "direction": "bidirectional",
            "num_proj": 3}  # fmt: skip


def state_of_torch():
    """Of an LSTM; input size and units are equal, so that exchanged tensors would fit."""
    network = {"rnn_mode": "lstm", **OF_TORCH}
    ours = openrnn.cudnn_rnn.ops.CudnnLSTM(**OF_TORCH)
    params = np.random.default_rng(6).standard_normal(int(ours.params_size())).astype("float32")
    weights, biases = ours.params_to_canonical(params)
    return network, weights, biases, openrnn.torch_from_canonical(weights, biases, **network)


def test_a_state_is_read_by_its_names_in_whatever_order_they_come():
    network, weights, biases, state = state_of_torch()
    rotated = [*list(state)[3:], *list(state)[:3]]
    for order in (sorted(state), sorted(state, reverse=True), rotated):
        found = openrnn.canonical_from_torch({name: state[name] for name in order}, **network)
        for part, wanted in zip(found, (weights, biases), strict=True):
            assert len(part) == len(wanted)
            for one, two in zip(part, wanted, strict=True):
                np.testing.assert_array_equal(one, two)
    back = openrnn.torch_from_canonical(*found, **network)
    assert list(back) == list(state)
    assert all(np.array_equal(back[name], state[name]) for name in state)


@pytest.mark.parametrize("what", ["less", "more", "another", "none"])
def test_names_of_a_state_that_do_not_fit_are_all_said(what):
    network, *_, state = state_of_torch()
    names, given = list(state), dict(state)
    if what in ("less", "another"):
        del given["bias_hh_l1"]
    if what in ("more", "another"):  # as many as are expected, but for one of another name
        given["bias_hr_l0"] = state["bias_hh_l1"]
    given = {} if what == "none" else given
    with pytest.raises(openrnn.ArgumentError) as refused:
        openrnn.canonical_from_torch(given, **network)
    assert str(refused.value) == (
        f"[canonical_from_torch] a state with {list(given)}, expected {names}")


def test_the_tool_converts_and_says_how_far_both_are_apart(tmp_path):
    layer = built("gru", direction="bidirectional")
    openrnn.save(tmp_path / "a.pt", {"encoder": layer})
    text = good("convert", tmp_path / "a.pt", tmp_path / "b.openrnn").stdout
    assert "network encoder: gru, 2 layers" in text and "largest difference 0 of" in text
    np.testing.assert_array_equal(openrnn.load(tmp_path / "b.openrnn")["encoder"].params, layer.kernel.numpy())
    found = json.loads(good("inspect", tmp_path / "b.openrnn", "--json").stdout)
    assert (found["kind"], found["checksums"], found["not_understood"]) == ("a file of OpenRNN", "right", [])
    network = found["networks"][0]
    assert (network["scope"], network["parameters"], network["biases_per_gate"]) == (
        "encoder", layer.kernel.shape[0], 2)
    assert network["options"]["direction"] == "bidirectional" and network["tensors"] == ["encoder/params"]
    openrnn.save(tmp_path / "c.openrnn", built("lstm", cell_clip=1.5))
    before = (tmp_path / "a.pt").read_bytes()
    assert "is the file that is read" in run_tool("convert", tmp_path / "a.pt", tmp_path / "." / "a.pt").stderr
    assert (tmp_path / "a.pt").read_bytes() == before
    refused = run_tool("convert", tmp_path / "c.openrnn", tmp_path / "d.bin", "--to", "torch")
    assert refused.returncode == 2 and "has cell_clip [-1.5, 1.5], which" in refused.stderr
    assert not (tmp_path / "d.bin").exists()


@pytest.mark.parametrize("ending", ["openrnn", "safetensors", "pt", "onnx", "keras", "h5", "index"])
def test_the_tool_compares_networks_by_name(tmp_path, ending):
    openrnn.save(tmp_path / "a.openrnn", {"second": built("lstm"), "first": built("gru")})
    lines = good("convert", tmp_path / "a.openrnn", tmp_path / f"b.{ending}").stdout.splitlines()
    assert lines[0].startswith("network second: lstm, 2 layers") and lines[1].startswith("network first: gru, 2 layers")
    assert all(float(line.split("largest difference ")[1].split()[0]) < 1e-5 for line in lines[:2])


def test_the_tool_converts_plain_networks_of_both_activations(tmp_path):
    openrnn.save(tmp_path / "a.openrnn", {"t": built("rnn_tanh"), "r": built("rnn_relu")})
    text = good("convert", tmp_path / "a.openrnn", tmp_path / "b.pt").stdout
    assert text.count("largest difference 0 of") == 2 and "rnn_relu" in text and "rnn_tanh" in text
    note = good("inspect", tmp_path / "b.pt").stdout
    assert "expected the hint mode: rnn_tanh or rnn_relu" in note
    assert "rnn_relu, 2 layers" in good("inspect", tmp_path / "b.pt", "--mode", "rnn_relu").stdout


@pytest.mark.parametrize("stream", [None, 1, 3, 100])
def test_the_tool_runs_a_network(tmp_path, stream):
    layer = built("lstm")
    openrnn.save(tmp_path / "m.pt", {"a": layer, "b": built("gru")})
    np.save(tmp_path / "x.npy", np.asfortranarray(X))
    lengths = np.array([7, 0, 4])
    np.save(tmp_path / "n.npy", lengths)
    pieces = [] if stream is None else ["--stream", stream]
    good("run", tmp_path / "m.pt", "--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy", "--network", "a",
         "--lengths", tmp_path / "n.npy", "--state", tmp_path / "s", *pieces)
    y, state = layer(X.astype("float32"), training=False, sequence_lengths=lengths)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), y.numpy())
    # The next run goes on with that state, here batch-major.
    np.save(tmp_path / "x.npy", X.swapaxes(0, 1))
    good("run", tmp_path / "m.pt", "--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy", "--network", "a",
         "--state", tmp_path / "s", "--batch-major", *pieces)
    y, _ = layer(X.astype("float32"), state, training=False)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy").swapaxes(0, 1), y.numpy())


def test_the_tool_runs_one_sequence_of_csv_and_says_what_does_not_fit(tmp_path):
    layer = built("gru", direction="bidirectional", dtype="float64")
    openrnn.save(tmp_path / "m.openrnn", layer)
    (tmp_path / "x.csv").write_text("a,b\n" + "\n".join(f"{a!r},{b!r}" for a, b in X[:, 0].tolist()) + "\n")
    run = ["run", tmp_path / "m.openrnn", "--output", tmp_path / "y.npy"]
    good(*run, "--input", tmp_path / "x.csv")
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), output(layer)[:, 0])
    np.save(tmp_path / "x.npy", X[:, :, :1])
    np.save(tmp_path / "x2.npy", X)
    np.save(tmp_path / "n.npy", np.array([8, 0, 0]))
    for more, message in (
            (["--input", tmp_path / "x.npy"], "--input has shape [7, 3, 1], expected [T, I] or [T, B, I] with I = 2"),
            (["--input", tmp_path / "x2.npy", "--network", "b"], "--network 'b', expected none: "),
            (["--input", tmp_path / "x2.npy", "--stream", 2], "--stream with a bidirectional network"),
            (["--input", tmp_path / "x2.npy", "--lengths", tmp_path / "n.npy"], "--lengths has 8 at 0, expected 0 to T"),
            (["--input", tmp_path / "x2.npy", "--lengths", tmp_path / "x2.npy"], "--lengths is float64 [7, 3, 2]"),
            (["--input", tmp_path / "none.npy"], "no such file")):
        refused = run_tool(*run, *more)
        assert refused.returncode == 2 and message in refused.stderr, refused.stderr


def test_the_tool_runs_on_sound(tmp_path):
    layer = built("gru")
    openrnn.save(tmp_path / "m.openrnn", layer)
    samples = np.random.default_rng(3).integers(-2**15, 2**15, (9, 2), dtype=np.int16)
    with wave.open(str(tmp_path / "x.wav"), "wb") as file:
        file.setparams((2, 2, 8000, 0, "NONE", ""))
        file.writeframes(samples.tobytes())
    good("run", tmp_path / "m.openrnn", "--input", tmp_path / "x.wav", "--output", tmp_path / "y.npy")
    y, _ = layer((samples / 32768).astype("float32")[:, None], training=False)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), y.numpy()[:, 0])


@pytest.mark.parametrize("direction", ["unidirectional", "bidirectional"])
def test_onnxs_inputs_there_and_back(direction):
    options = {"num_layers": 2, "num_units": 5, "input_size": 3, "direction": direction, "dtype": "float64"}
    dirs = 1 if direction == "unidirectional" else 2
    ours = openrnn.cudnn_rnn.ops.CudnnLSTM(2, 5, 3, direction=direction, dtype="float64")
    params = np.random.default_rng(4).standard_normal(int(ours.params_size()))
    weights, biases = (list(map(np.asarray, part)) for part in ours.params_to_canonical(params))
    inputs = openrnn.onnx_from_canonical(weights, biases, "lstm", **options)
    assert [array.shape for array in inputs] == [
        (dirs, 20, 3), (dirs, 20, 5), (dirs, 40), (dirs, 20, dirs * 5), (dirs, 20, 5), (dirs, 40)]
    # ONNX's gates are i o f c, ours i f c o.
    for gate, slot in enumerate((0, 3, 1, 2)):
        np.testing.assert_array_equal(inputs[0][0, 5 * gate : 5 * gate + 5], weights[slot])
        np.testing.assert_array_equal(inputs[2][0, 5 * gate : 5 * gate + 5], biases[slot])
    back = openrnn.canonical_from_onnx(inputs, "lstm", **options)
    for given, found in zip(weights + biases, back[0] + back[1], strict=True):
        np.testing.assert_array_equal(found, given)
    with pytest.raises(openrnn.ArgumentError):
        openrnn.canonical_from_onnx(inputs[:-1], "lstm", **options)


def test_any_tensor_of_the_file_by_its_name(tmp_path):
    """Those of the networks, and those that nothing was made of; each in its own dtype."""
    layer, head = built("lstm"), np.arange(10, dtype=np.float64).reshape(2, 5)
    openrnn.save(tmp_path / "m.npz", layer)
    arrays = dict(np.load(tmp_path / "m.npz"))
    np.savez(tmp_path / "m.npz", **arrays, **{"head.weight": head})
    model = openrnn.load(tmp_path / "m.npz")
    assert model.not_understood == ["head.weight"]
    for name, array in {**arrays, "head.weight": head}.items():
        found = model.tensor(name)
        assert found.dtype == array.dtype and np.array_equal(found, array), name
    with pytest.raises(openrnn.errors.ArgumentError, match="'tail.weight' is not in"):
        model.tensor("tail.weight")
    (tmp_path / "m.npz").unlink()
    with pytest.raises(OSError, match="m.npz"):
        model.tensor("head.weight")
