"""Calls that keep inputs alone and compute the rest again in the backward pass."""

import numpy as np
import openrnn
import pytest
from openrnn import cudnn_rnn, layers

T, B, I, U = 70, 3, 5, 7
SAVES = ["inputs", 1, 64, 10**9]


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def results(save: object, kind: str, training: bool = True, **call: object) -> list[np.ndarray]:
    openrnn.reset_default_graph()
    rate = {"input_dropout": 0.2, "output_dropout": 0.1, "drop_connect": 0.3, "zoneout": 0.2,
            "zoneout_cell": 0.1, "recurrent_dropout": 0.2} if kind == "masks" else {}
    direction = "bidirectional" if kind == "both" else "unidirectional"
    layer = layers.LSTM(U, 2, direction=direction, dropout=0.3, seed=3, **rate)
    x = openrnn.constant(draw(T, B, I))
    with openrnn.GradientTape() as tape:
        tape.watch(x)
        y, (h, c) = layer(x, None, training, save=save, **call)
        loss = openrnn.reduce_sum(y * draw(*y.shape, seed=1))
        loss = loss + openrnn.reduce_sum(openrnn.square(c))
    found = [y, h, c, *tape.gradient(loss, [x, layer.kernel])]
    return [value.numpy().copy() for value in found]


@pytest.mark.parametrize("kind", ["one", "both", "masks"])
@pytest.mark.parametrize("save", SAVES)
def test_the_bits_are_those_of_a_call_that_keeps_all(kind: str, save: object) -> None:
    lengths = {"sequence_lengths": [T, 0, 33]}
    for wanted, found in zip(results(True, kind, **lengths), results(save, kind, **lengths)):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("kind", ["one", "both"])
def test_with_masked_steps_and_resets(kind: str) -> None:
    random = np.random.default_rng(5)
    call = {"mask": random.random((T, B)) < 0.8, "reset": random.random((T, B)) < 0.03}
    for wanted, found in zip(results(True, kind, **call), results("inputs", kind, **call)):
        np.testing.assert_array_equal(found, wanted)


def test_without_dropout_it_saves_too() -> None:
    for wanted, found in zip(results(True, "one", False), results("inputs", "one", False)):
        np.testing.assert_array_equal(found, wanted)


def test_of_op_level_models() -> None:
    model = cudnn_rnn.ops.CudnnGRU(1, U, I)
    found = []
    for save in (True, "inputs", 32):
        kernel = openrnn.constant(draw(model.params_size()))
        with openrnn.GradientTape() as tape:
            tape.watch(kernel)
            y, _ = model(draw(T, B, I), draw(1, B, U), kernel, False, save=save)
            loss = openrnn.reduce_sum(y)
        found.append(tape.gradient(loss, kernel).numpy())
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


def test_recorded_calls_keep_it() -> None:
    found = []
    for save in (True, "inputs"):
        openrnn.reset_default_graph()
        layer = cudnn_rnn.CudnnLSTM(1, U, seed=2)
        inputs = openrnn.Input(batch_shape=(T, B, I))
        model = openrnn.Model(inputs, layer(inputs, save=save)[0])
        with openrnn.GradientTape() as tape:
            loss = openrnn.reduce_sum(model(draw(T, B, I)))
        found.append(tape.gradient(loss, layer.kernel).numpy())
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("save", [0, -3, "all", None, 1.5])
def test_other_values_are_refused(save: object) -> None:
    layer = cudnn_rnn.CudnnLSTM(1, U)
    with pytest.raises(ValueError, match=r"save is .*, expected False, True, 'inputs' or a number"):
        layer(draw(T, B, I), save=save)


def test_other_engines_refuse_it(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = cudnn_rnn.CudnnLSTM(1, U)
    monkeypatch.setenv("OPENRNN_ENGINE", "reference")
    refused = pytest.raises(NotImplementedError, match="engine 'reference' keeps all")
    with openrnn.GradientTape(), refused:
        layer(draw(T, B, I), save="inputs")
    dropping = layers.GRU(U, 2, dropout=0.5, output_dropout=0.5)
    with openrnn.GradientTape(), refused:
        dropping(draw(T, B, I), save=64)
    assert dropping.dropout_calls == 0
    layer(draw(T, B, I), training=False, save="inputs")  # nothing records


def test_explain_tells_the_bytes() -> None:
    network = {"num_units": U, "input_size": I, "max_time": 4096, "batch": B}
    kept = [openrnn.explain(save=save, **network).saved_bytes for save in (True, "inputs", 32)]
    assert kept[0] == openrnn.explain(**network).saved_bytes
    assert kept[1] < kept[2] < kept[0] / 3
