"""Closed runs, parts of batches, values in files, peers in Python, scopes inside layers."""

import numpy as np
import openrnn
import pytest
from openrnn import _core, layers, train
from table.support import error_text

CLOSED = "[Run] the run is closed, expected an open one"


def small_run():
    with open("text", "w") as file:
        file.write("to be or not to be, that is the question\n" * 50)
    return train.Run("run", input="text", units=4, steps=2, batch=2, seq_len=5)


def test_a_closed_run_says_so_of_everything():
    reports = []
    run = small_run()
    assert run.train(reports.append) == "done"
    last = reports[-1]
    metric, norm, rate = last.metric, last.gradient_norm, last.learning_rate
    assert metric > 0.0 and norm > 0.0
    run.close()
    members = [
        "step",
        "steps",
        "steps_per_epoch",
        "best",
        "best_step",
        "best_prefix",
        "metric_name",
        "resumed_from",
        "notes",
        "variables",
        "config",
        "config_json",
        "reduction_cost",
    ]
    for name in members:
        assert error_text(openrnn.StateError, lambda: getattr(run, name)) == CLOSED  # noqa: B023
    for name in ("train", "save", "validate"):
        assert error_text(openrnn.StateError, getattr(run, name)) == CLOSED
    run.close()
    for name in ("metric", "gradient_norm"):
        text = "[StepReport] its run is closed, expected an open one"
        assert error_text(openrnn.StateError, lambda: getattr(last, name)) == text  # noqa: B023
    assert (last.step, last.steps, last.best, last.learning_rate) == (2, 2, True, rate)
    with train.Run("run", resume=True) as again:
        assert (again.step, again.steps, again.resumed_from) == (2, 2, "run/model.ckpt-2")
        assert again.best == last.validation and again.best_step == 2


def test_rows_of_parts():
    for rows in range(1, 12):
        for parts in (1, 2, 4, 8):
            found = [_core.rows_of_part(rows, parts, part) for part in range(parts)]
            assert sum(found) == rows and found == sorted(found, reverse=True)
            assert found[0] - found[-1] <= 1


def test_a_part_is_entered_once():
    part = _core.PartScope(0, 2, 4, _core.new_step_of_parts())
    with part:
        text = error_text(openrnn.StateError, part.__enter__)
    assert text == "[PartScope] entered twice, expected one block"
    with part:
        pass


VALUES = {
    "none": None,
    "yes": True,
    "no": False,
    "n": -3,
    "big": 2**62,
    "x": 0.5,
    "whole": 2.0,
    "text": "a word",
    "ints": [1, 2],
    "floats": [0.5, 1.5],
    "words": ["a", "b"],
    "nothing": [],
    "mixed": [1, 2.5],
    "numpy": np.int64(4),
    "float": np.float32(0.5),
    "pair": (1, 2),
    "empty": "",
}


@pytest.mark.parametrize("ending", ["openrnn", "safetensors", "npz", "pt"])
def test_values_of_files_keep_their_types(ending):
    lstm = layers.LSTM(2)
    lstm.build((None, None, 3))
    openrnn.save(f"a.{ending}", {"n": lstm}, values=VALUES)
    found = openrnn.load(f"a.{ending}").metadata
    wanted = {**VALUES, "mixed": [1.0, 2.5], "pair": [1, 2]}
    assert found == wanted
    kinds = {name: type(value) for name, value in wanted.items()}
    kinds |= {"numpy": int, "float": float}
    assert {name: type(value) for name, value in found.items()} == kinds
    assert [type(one) for one in found["mixed"]] == [float] * 2


@pytest.mark.parametrize("state", ["h", "c"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_states_and_slots_of_networks_in_files(state, dtype):
    lstm = layers.LSTM(3, num_proj=2, dtype=dtype)
    lstm.build((None, None, 3))
    openrnn.save("a.openrnn", {"n": lstm})
    network = openrnn.load("a.openrnn")["n"]
    assert network.initial_state is None and network.slots == {}
    description = {
        "name": "n", "options": {**_core.network_of_layer(lstm)}, "params": lstm.kernel.numpy(),
        "initial_h": None, "initial_c": None, "slots": {"m": np.arange(lstm.count_params()) / 4.0},
    }  # fmt: skip
    shape = (1, 2) if state == "h" else (1, 3)
    description[f"initial_{state}"] = np.arange(np.prod(shape)).reshape(shape) + 0.5
    _core.save_networks("b.openrnn", [description], {}, None, 0, [], [])
    (found,) = _core.load_networks("b.openrnn", None, None, None, None, None)["networks"]
    given, other = found[f"initial_{state}"], found[f"initial_{'c' if state == 'h' else 'h'}"]
    np.testing.assert_array_equal(given, description[f"initial_{state}"])
    assert given.dtype == dtype and other is None and found["params"].dtype == dtype
    np.testing.assert_array_equal(found["params"], lstm.kernel.numpy())
    np.testing.assert_array_equal(found["slots"]["m"], description["slots"]["m"])
    assert found["slots"]["m"].dtype == "float64" and list(found["slots"]) == ["m"]
    assert found["options"] == description["options"] and found["name"] == "n"
    for array in (given, found["params"], found["slots"]["m"]):
        assert not array.flags.writeable


def test_what_an_onnx_program_takes():
    gru = layers.GRU(4)
    gru.build((None, None, 3))
    openrnn.save("gru.onnx", gru)
    program = openrnn.onnx.load("gru.onnx")
    x = np.random.default_rng(1).normal(size=(2, 1, 3)).astype("float32")
    wanted, (h,) = gru(x, training=False)
    for given in (x, x.tolist(), x.astype("float64"), openrnn.constant(x), openrnn.Variable(x)):
        found = program({"x": given})
        assert list(found) == ["y", "h"] and found["y"].dtype == "float32"
        np.testing.assert_array_equal(np.asarray(found["y"]).reshape(wanted.shape), wanted)
        np.testing.assert_array_equal(np.asarray(found["h"]).reshape(h.shape), h)
    for given, error, text in (
        ({3: x}, TypeError, "[arguments] a name of inputs is 'int', expected a string"),
        ({"y": x}, openrnn.ArgumentError, "[run] 'y' is given, expected inputs of the graph"),
        ({}, openrnn.ArgumentError, "[run] 'x' is not given, expected it"),
        (
            {"x": openrnn.constant(x.astype("float64"))},
            openrnn.ArgumentError,
            "[run] 'x' is float64, expected float32",
        ),
    ):
        assert error_text(error, lambda: program(given)) == text  # noqa: B023


def test_variables_that_a_layer_gets_in_scopes_are_its_weights():
    class Scoped(layers.Layer):
        def build(self, input_shape):
            get, scope = openrnn.get_variable, openrnn.variable_scope
            found = [get("a", (1,))]
            with scope("inner") as inner:
                found.append(get("b", (2,)))
                with scope("deep"):
                    found.append(get("c", (3,)))
            with scope(openrnn.get_variable_scope()):
                found.append(get("d", (4,)))
            with scope(""):
                found.append(get("e", (5,), trainable=False))
            with scope(inner):
                found.append(get("f", (6,)))
            self.found = tuple(found)

        def call(self, inputs):
            return inputs

    layer = Scoped(name="b")
    layer(np.ones((1, 1), "float32"))
    names = ["b/a", "b/inner/b", "b/inner/deep/c", "b/d", "b/inner/f", "b/e"]
    assert [w.name for w in layer.weights] == names, "those that are trainable first"
    assert [w.name for w in layer.trainable_weights] == names[:-1]
    assert {w.shape for w in layer.weights} == {(n,) for n in range(1, 7)}


def test_weights_that_are_no_floats_begin_as_zeros():
    layer = layers.Layer(name="plain", dtype="float64")
    for dtype in ("int32", "int64", "bool"):
        weight = layer.add_weight(dtype, (2, 3), dtype, trainable=False)
        assert weight.dtype == dtype and weight.shape == (2, 3) and not weight.numpy().any()
    ones = layer.add_weight("ones", (2,), "int32", initializer=np.ones, trainable=False)
    assert ones.numpy().tolist() == [1, 1] and layer.add_weight("w", (2,)).dtype == "float64"
    layer.set_weights([[1.5, 2.5], np.ones((2, 3)), np.full((2, 3), 7), np.eye(2, 3), [3, 4]])
    assert [w.numpy().ravel().tolist() for w in layer.weights] == [
        [1.5, 2.5], [1] * 6, [7] * 6, [True, False, False, False, True, False], [3, 4],
    ]  # fmt: skip


class Peer:
    """A communicator in Python that notes what it is asked."""

    def __init__(self):
        self.notes = []

    def barrier(self):
        self.notes.append("barrier")

    def abort(self, why):
        self.notes.append(why)


def test_a_communicator_in_python_is_asked():
    peer = Peer()
    made = _core.python_communicator(peer, 1, 3)
    assert (made.rank, made.size, peer.notes) == (1, 3, [])
    made.barrier()
    made.abort("why")
    assert peer.notes == ["barrier", "why"]


def test_every_engine_is_listed():
    engines = {each.name: each for each in openrnn.list_engines()}
    assert list(engines) == ["cudnn", "cpu", "reference"]
    for name, each in engines.items():
        word = "available" if each.available else "not available"
        assert repr(each) == f"<openrnn engine '{name}', {word}: {each.detail}>" and each.detail
    assert engines["cpu"].available and engines["reference"].available
    assert engines["cpu"].detail.startswith("cpu with ")


@pytest.mark.parametrize(
    "network",
    [
        {"rnn_mode": "gru", "num_units": 8, "input_size": 3},
        {"num_units": 8, "input_size": 3, "math": "tf32"},
    ],
)
def test_an_explanation_is_one_line_for_each(network):
    found = openrnn.explain(max_time=5, batch=4, **network)
    runs = "math" not in network
    assert bool(found.engine) == (found.saved_bytes is not None) == runs
    some = [f"engine       {found.engine or 'none'}"]
    if runs:
        some += [
            f"runs on      {found.description}",
            f"kernels      {found.kernels}",
            f"arithmetic   {found.math_kind}",
            "same bits    at every run, thread count and processor of this arithmetic",
        ]
    some += [f"parameters   {found.params_bytes} bytes"]
    if runs:
        some += [f"saved        {found.saved_bytes} bytes in training"]
        assert found.saved_bytes != found.params_bytes
    some += [f"not {name}: {why}" for name, why in found.others]
    assert str(found) == "\n".join(some) + "\n"
    op = (
        openrnn.cudnn_rnn.ops.CudnnGRU if "rnn_mode" in network else openrnn.cudnn_rnn.ops.CudnnLSTM
    )
    assert found.params_bytes == 4 * op(1, 8, 3).params_size()
