"""Files between layers and the platform-independent cells, both ways, and object-based ones."""

import numpy as np
import openrnn
import pytest
from table.cells.cell_support import CELLS
from table.support import (
    B, I, KINDS, L, LSTM, T, U, array, assert_close, draw, error_text, make_layer,
)  # fmt: skip

PAIRS = pytest.mark.parametrize(
    "kind, cell_kind", list(zip(KINDS, CELLS, strict=True)), ids=[kind.mode for kind in KINDS]
)


HELD = []  # cells whose variables a test's graph still has


@pytest.fixture(autouse=True)
def own_cells():
    yield
    HELD.clear()


def run_cells(cell_kind, direction, x):
    """The cells as the documentation writes it, default scope names."""
    if direction == "unidirectional":
        cells = openrnn.nn.rnn_cell.MultiRNNCell([cell_kind.make(U) for _ in range(L)])
        HELD.append(cells)
        return openrnn.nn.dynamic_rnn(cells, x, dtype="float32", time_major=True)
    sides = [[cell_kind.make(U) for _ in range(L)] for _ in range(2)]
    HELD.append(sides)
    return openrnn.nn.stack_bidirectional_dynamic_rnn(*sides, x, dtype="float32", time_major=True)


def cell_states(found):
    """[L * D, B, U] arrays: h, and c of an lstm, from what the cells returned."""
    sides = found[1:]
    parts = zip(*sides, strict=True)  # By layer: forward, backward.
    flat = [state for pair in parts for state in pair]
    if hasattr(flat[0], "c"):
        return [np.stack([array(s.h) for s in flat]), np.stack([array(s.c) for s in flat])]
    return [np.stack([array(s) for s in flat])]


def assert_same(found, output, states):
    assert_close(found[0], array(output))
    for a, b in zip(cell_states(found), states, strict=True):
        assert_close(a, array(b))


@PAIRS
def test_layer_to_cells(kind, cell_kind, direction, tmp_path):
    """A default Saver reads what a layer's default Saver wrote."""
    x = draw(T, B, I)
    with openrnn.Graph().as_default(), openrnn.variable_scope("m1"):
        layer = make_layer(kind, direction)
        output, states = layer(x, training=False)
        prefix = openrnn.train.Saver().save(str(tmp_path / "m"))
    with openrnn.Graph().as_default():
        with openrnn.variable_scope("m1"):
            run_cells(cell_kind, direction, x)
        openrnn.train.Saver().restore(prefix)
        with openrnn.variable_scope("m1", reuse=True):
            assert_same(run_cells(cell_kind, direction, x), output, states)


@PAIRS
def test_cells_to_layer(kind, cell_kind, direction, tmp_path):
    """A Saver over the saveables alone reads what cells wrote."""
    x = draw(T, B, I)
    with openrnn.Graph().as_default():
        with openrnn.variable_scope("m1"):
            run_cells(cell_kind, direction, x)
        for k, variable in enumerate(openrnn.global_variables()):
            variable.assign(draw(*variable.shape, seed=k))
        with openrnn.variable_scope("m1", reuse=True):
            found = run_cells(cell_kind, direction, x)
        prefix = openrnn.train.Saver().save(str(tmp_path / "m"))
    with openrnn.Graph().as_default(), openrnn.variable_scope("m1"):
        layer = make_layer(kind, direction)
        saver = openrnn.train.Saver(openrnn.get_collection(openrnn.GraphKeys.SAVEABLE_OBJECTS))
        saver.restore(prefix)
        assert_same(found, *layer(x, training=False))


@PAIRS
def test_cells_have_no_opaque_kernel(kind, cell_kind, tmp_path):
    with openrnn.Graph().as_default():
        run_cells(cell_kind, "unidirectional", draw(T, B, I))
        prefix = openrnn.train.Saver().save(str(tmp_path / "m"))
    layer = make_layer(kind)
    before = array(layer.kernel).tobytes()
    message = error_text((ValueError, KeyError), lambda: openrnn.train.Saver().restore(prefix))
    assert "opaque_kernel" in message and array(layer.kernel).tobytes() == before


@PAIRS
def test_cells_cannot_load_a_layer_that_skips(kind, cell_kind, tmp_path):
    """Cells have no such mode, and nobody writes an identity block silently."""
    layer = make_layer(kind, input_mode="skip_input", sizes={"input_size": U})
    prefix = openrnn.train.Saver([layer.saveable]).save(str(tmp_path / "m"))
    openrnn.reset_default_graph()
    run_cells(cell_kind, "unidirectional", draw(T, B, U))
    before = [array(v).tobytes() for v in openrnn.global_variables()]
    message = error_text(ValueError, lambda: openrnn.train.Saver().restore(prefix))
    assert "rnn/multi_rnn_cell/cell_0" in message
    assert [array(v).tobytes() for v in openrnn.global_variables()] == before


@pytest.mark.parametrize("layers", [1, 2])
def test_object_based_round_trip(kind, direction, layers, tmp_path):
    layer = make_layer(kind, direction, sizes={"num_layers": layers})
    checkpoint = openrnn.train.Checkpoint(rnn=layer)
    x = draw(T, B, I)
    before = array(layer(x, training=False)[0])
    prefix = checkpoint.save(str(tmp_path / "ckpt"))
    layer.set_weights([np.zeros(layer.count_params(), "float32")])
    checkpoint.restore(prefix)
    assert_close(layer(x, training=False)[0], before, 1e-6)


def test_children_of_an_object_based_checkpoint(tmp_path):
    layer = make_layer(LSTM)
    prefix = openrnn.train.Checkpoint(rnn=layer).write(str(tmp_path / "ckpt"))
    names = {name for name, *_ in openrnn.train.list_variables(prefix)}
    values = {n for n in names if n.endswith("VARIABLE_VALUE")}
    wanted = {
        f"rnn/cell-{k}/{part}/.ATTRIBUTES/VARIABLE_VALUE"
        for k in range(L)
        for part in ("kernel", "bias")
    }
    assert {n for n in values if n.startswith("rnn/")} == wanted
    assert not any("opaque" in name for name in names)


def test_object_based_layer_to_cells(tmp_path):
    x = draw(T, B, I)
    layer = make_layer(LSTM)
    output, _ = layer(x, training=False)
    prefix = openrnn.train.Checkpoint(rnn=layer).write(str(tmp_path / "ckpt"))
    cells = openrnn.nn.rnn_cell.MultiRNNCell([CELLS[0].make(U) for _ in range(L)])
    run = lambda: openrnn.nn.dynamic_rnn(cells, x, dtype="float32", time_major=True)[0]  # noqa: E731
    run()
    openrnn.train.Checkpoint(rnn=cells).read(prefix)
    assert_close(run(), array(output))


def test_object_based_single_layer_to_a_bare_cell(tmp_path):
    x = draw(T, B, I)
    layer = make_layer(LSTM, sizes={"num_layers": 1})
    output, _ = layer(x, training=False)
    prefix = openrnn.train.Checkpoint(rnn=layer).write(str(tmp_path / "ckpt"))
    cell = CELLS[0].make(U)
    run = lambda: openrnn.nn.dynamic_rnn(cell, x, dtype="float32", time_major=True)[0]  # noqa: E731
    run()
    openrnn.train.Checkpoint(rnn=cell).read(prefix)
    assert_close(run(), array(output))


def test_object_based_of_another_network_changes_nothing(tmp_path):
    small = make_layer(LSTM)
    large = make_layer(LSTM, sizes={"num_units": U + 1}, name="large")
    prefix = openrnn.train.Checkpoint(rnn=small).write(str(tmp_path / "ckpt"))
    before = array(large.kernel).tobytes()
    error_text(ValueError, lambda: openrnn.train.Checkpoint(rnn=large).read(prefix))
    assert array(large.kernel).tobytes() == before
