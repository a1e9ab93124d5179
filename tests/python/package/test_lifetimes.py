"""What outlives what: graphs, layers, open scopes, and arrays that a recorded call keeps."""

import copy
import gc
import threading
import weakref

import numpy as np
import openrnn
import pytest

CudnnLSTM = openrnn.cudnn_rnn.CudnnLSTM


def ones(*shape):
    return np.ones(shape, np.float32)


def built_in_a_graph_of_its_own():
    with openrnn.Graph().as_default() as graph:
        layer = CudnnLSTM(1, 4, name="layer")
        layer.build((None, None, 3))
    return layer, weakref.ref(graph)


def test_a_copy_keeps_the_graph():
    layer, graph = built_in_a_graph_of_its_own()
    made = copy.deepcopy(layer)
    del layer
    gc.collect()
    assert made.graph is graph() is not None
    assert made.graph.variables() == made.weights  # those of the first layer are gone


def test_a_layer_keeps_the_graph_that_it_was_built_in_not_one_where_that_failed():
    layer = CudnnLSTM(1, 4)
    with openrnn.Graph().as_default(), pytest.raises(ValueError, match="expected ndim=3"):
        layer(ones(2, 3))
    with openrnn.Graph().as_default() as graph:
        layer(ones(2, 2, 3))
    kept = weakref.ref(graph)
    del graph
    gc.collect()
    assert layer.graph is kept() is not None


class Plain(openrnn.layers.Layer):
    def call(self, inputs):
        return 2.0 * inputs


@pytest.mark.parametrize("make", [
    Plain, lambda: openrnn.layers.Dropout(0.5), lambda: openrnn.layers.Dense(2),
    lambda: openrnn.layers.Embedding(4, 2),
], ids=["own", "dropout", "dense", "embedding"])  # fmt: skip
def test_a_layer_keeps_the_graph_of_its_first_call(make):
    layer = make()
    with openrnn.Graph().as_default() as graph:
        layer(np.ones((2, 3), "int32" if isinstance(layer, openrnn.layers.Embedding) else "f4"))
    kept = weakref.ref(graph)
    del graph
    gc.collect()
    assert layer.graph is kept() is not None


def test_the_cells_of_a_stack_keep_the_graph():
    cells = [openrnn.nn.rnn_cell.BasicRNNCell(4) for _ in range(2)]
    with openrnn.Graph().as_default() as graph:
        openrnn.nn.stack_bidirectional_dynamic_rnn(
            cells[:1], cells[1:], ones(2, 3, 4), dtype="float32"
        )
    kept = weakref.ref(graph)
    del graph
    gc.collect()
    assert cells[0].graph is cells[1].graph is kept() is not None


def test_a_layer_found_through_its_tensors_keeps_the_graph_too():
    with openrnn.Graph().as_default():
        output, _ = CudnnLSTM(1, 4)(openrnn.Input(batch_shape=(None, 2, 3)))
        after = openrnn.layers.Dense(2)
        after(output)
    (layer,) = after.inbound_nodes[0].inbound_layers
    kept = weakref.ref(layer.graph)
    del output, after
    gc.collect()
    assert layer.graph is kept() is not None


@pytest.mark.parametrize("level", ["layer", "op"])
@pytest.mark.parametrize("symbolic", ["input", "state"])
def test_a_recorded_call_keeps_the_values_that_it_was_given(level, symbolic):
    given = {"input": ones(2, 2, 3), "state": ones(1, 2, 4)}
    source = openrnn.Input(batch_shape=given[symbolic].shape)
    x, h = (source if symbolic == name else given[name] for name in ("input", "state"))
    c = ones(1, 2, 4)
    if level == "layer":
        layer = CudnnLSTM(1, 4, seed=3)
        layer.build((None, None, 3))
        output = layer(x, (h, c))[0]
    else:
        op = openrnn.cudnn_rnn.ops.CudnnLSTM(1, 4, 3)
        output = op(x, h, c, np.linspace(-1, 1, op.params_size(), dtype=np.float32))[0]
    model = openrnn.Model(source, output)
    value = given[symbolic].copy()
    before = model(value).numpy().copy()
    for array in (*given.values(), c):
        array[:] = 9
    np.testing.assert_array_equal(model(value).numpy(), before)


def test_a_scope_is_closed_by_the_thread_that_opened_it():
    scope, found = openrnn.variable_scope("a"), []
    scope.__enter__()

    def close():
        try:
            scope.__exit__(None, None, None)
        except openrnn.StateError as error:
            found.append(str(error))

    thread = threading.Thread(target=close)
    thread.start()
    thread.join()
    assert found == [
        "[variable_scope] it is closed on another thread than the one that opened it, "
        "expected with statements of one thread that nest"
    ]
    assert openrnn.get_variable_scope().name == "a"
    scope.__exit__(None, None, None)
    assert openrnn.get_variable_scope().name == ""


def test_graphs_are_closed_the_innermost_first():
    found = []

    def run():
        outer, inner = openrnn.Graph().as_default(), openrnn.Graph().as_default()
        outer.__enter__()
        graph = inner.__enter__()
        with pytest.raises(openrnn.StateError, match="while one that was opened later is open"):
            outer.__exit__(None, None, None)
        found.append(openrnn.get_default_graph() is graph)
        inner.__exit__(None, None, None)
        del outer, inner, graph
        gc.collect()
        found.append(isinstance(openrnn.get_default_graph(), openrnn.Graph))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [True, True]


def test_a_scope_outlives_the_names_of_its_graph():
    graph = openrnn.Graph()
    with graph.as_default():
        scope = openrnn.variable_scope("a")
        scope.__enter__()
    kept = weakref.ref(graph)
    del graph
    gc.collect()
    assert kept() is not None
    scope.__exit__(None, None, None)
    gc.collect()
    assert kept() is None


def test_a_node_knows_its_cell_after_the_cell_took_another_dtype():
    for _ in range(20):
        taken = [openrnn.nn.rnn_cell.BasicRNNCell(4) for _ in range(5)]
        for cell in taken:
            cell(np.ones((2, 3), np.float16), np.zeros((2, 4), np.float16))
        later = [openrnn.nn.rnn_cell.BasicRNNCell(4) for _ in range(12)]
        del taken, cell
        for one in later:
            one(openrnn.Input(batch_shape=(2, 4)), openrnn.Input(batch_shape=(2, 4)))
            assert one.inbound_nodes[0].outbound_layer is one
    x = openrnn.Input(batch_shape=(2, 4), dtype="float16")
    half = openrnn.nn.rnn_cell.BasicRNNCell(4)
    half(x, x)
    assert half.inbound_nodes[0].outbound_layer is half


def test_what_a_collection_holds_may_hold_the_graph():
    graph = openrnn.Graph()
    graph.add_to_collection("mine", [graph, lambda: graph])
    with graph.as_default():
        openrnn.add_to_collection("mine", 5)
    assert graph.get_collection("mine")[1] == 5
    gone = weakref.ref(graph)
    del graph
    gc.collect()
    assert gone() is None
