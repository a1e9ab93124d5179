"""npz archives against NumPy itself: its files are read here, ours by it; networks by their tensors' names."""

import numpy as np
import openrnn
import pytest

from files.file_tools import call_tool, from_line, run_tool, to_line
from tool.tool_runs import good

DTYPES = ["float16", "float32", "float64", "int32", "int64", "uint8", "bool"]
SHAPES = [(), (1,), (0,), (7,), (3, 5), (2, 0, 3), (1, 17, 1, 2)]


def arrays():
    random = np.random.default_rng(1)
    made = {}
    for i, (dtype, shape) in enumerate((dtype, shape) for dtype in DTYPES for shape in SHAPES):
        bits = random.integers(0, 2 if dtype == "bool" else 256, (*shape, np.dtype(dtype).itemsize), np.uint8)
        made[f"layer/t{i}.ä"] = np.frombuffer(bits.tobytes(), dtype).reshape(shape)
    return made


def read(path):
    return dict(map(from_line, call_tool("model_file", "dump", path).splitlines()))


def assert_equal(found, expected):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape), name
        assert found[name].tobytes() == np.ascontiguousarray(array).tobytes(), name


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("order", [np.ascontiguousarray, np.asfortranarray])
def test_we_read_what_numpy_writes(tmp_path, save, order):
    named = {name: order(array).reshape(array.shape, order="A") for name, array in arrays().items()}
    save(tmp_path / "m.npz", **named)
    assert_equal(read(tmp_path / "m.npz"), named)
    shown = good("inspect", tmp_path / "m.npz").stdout
    assert "an npz archive of NumPy, every checksum is right" in shown


def test_numpy_reads_what_we_write(tmp_path):
    named = arrays()
    lines = [to_line(name, array) for name, array in named.items()] + ["author\ttext\tÅsa", "tags\ttexts\ta\tbc"]
    call_tool("model_file", "npz", tmp_path / "m.npz", stdin="\n".join(lines) + "\n")
    with np.load(tmp_path / "m.npz") as found:
        assert set(found) == {*named, "author", "tags", "openrnn.values"}
        assert_equal({name: found[name] for name in named}, named)
        assert (found["author"][()], found["tags"].tolist()) == ("Åsa", ["a", "bc"])
        assert found["openrnn.values"].tolist() == ["author", "tags"]
    assert_equal(read(tmp_path / "m.npz"), named)


def test_large_arrays_that_are_deflated(tmp_path):
    random = np.random.default_rng(2)
    named = {"a": random.integers(0, 9, (300, 401)).astype("float32"), "b": np.asfortranarray(random.random((90, 77)))}
    np.savez_compressed(tmp_path / "m.npz", **named)
    assert_equal(read(tmp_path / "m.npz"), named)


def test_pickled_objects_are_listed_and_not_read(tmp_path):
    class Nothing:
        def __reduce__(self):
            return print, ("never printed",)

    np.savez(tmp_path / "m.npz", w=np.ones(3), config=np.array([Nothing()], object))
    assert "config  object" in good("inspect", tmp_path / "m.npz").stdout
    done = run_tool("model_file", "dump", tmp_path / "m.npz")
    assert "never printed" not in done.stdout


def torch_names(random, suffix=""):
    return {f"encoder.{name}": random.uniform(-1, 1, shape).astype("float32") for name, shape in (
        ("weight_ih_l0", (12, 3)), ("weight_hh_l0", (12, 4)), ("bias_ih_l0", (12,)), ("bias_hh_l0", (12,)))}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_pytorchs_names_are_a_network(tmp_path, save):
    state = torch_names(np.random.default_rng(3))
    save(tmp_path / "m.npz", **state, epoch=3, loss=0.5, done=True, author="me")
    model = openrnn.load(tmp_path / "m.npz")
    assert model.kind == "an npz archive of NumPy" and list(model) == ["encoder"]
    assert model.metadata == {"author": "me", "epoch": 3, "loss": 0.5, "done": True}
    assert not model.not_understood and not model.notes
    expected = np.concatenate([state[f"encoder.{name}_l0"].ravel()
                               for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")])
    np.testing.assert_array_equal(model.network.params, expected)


def test_names_of_tensorflows_variables_are_a_network(tmp_path):
    random = np.random.default_rng(4)
    kernel = random.uniform(-1, 1, (3, 16)).astype("float32")
    np.savez(tmp_path / "m.npz", **{
        "lstm/lstm_cell/kernel": kernel, "lstm/lstm_cell/recurrent_kernel": random.random((4, 16)).astype("float32"),
        "lstm/lstm_cell/bias": random.random(16).astype("float32"), "dense/kernel": random.random((4, 2))})
    model = openrnn.load(tmp_path / "m.npz")
    assert model.not_understood == ["dense/kernel"] and model.network.options["num_units"] == 4
    # The first gate is i in both.
    np.testing.assert_array_equal(model.network.params[:12].reshape(4, 3), kernel[:, :4].T)


def test_a_layer_there_and_back(tmp_path):
    layer = openrnn.layers.GRU(5, 2, direction="bidirectional", seed=1, dtype="float64")
    layer.build([None, None, 2])
    openrnn.save(tmp_path / "m.npz", {"net": layer}, values={"epoch": 3, "rates": [0.5, 0.25], "none": None})
    model = openrnn.load(tmp_path / "m.npz")
    assert model.metadata == {"epoch": 3, "rates": [0.5, 0.25], "none": None}
    np.testing.assert_array_equal(model["net"].params, layer.kernel.numpy())
    with np.load(tmp_path / "m.npz") as found:
        assert found["net.weight_ih_l1_reverse"].shape == (15, 10)
    with pytest.raises(openrnn.UnsupportedError, match="is bfloat16, which NumPy's files have no name for"):
        openrnn.save(tmp_path / "n.npz", openrnn.load(tmp_path / "m.npz")["net"].__class__(
            {**model["net"]._given, "options": {**model["net"].options, "dtype": "bfloat16"}}))
