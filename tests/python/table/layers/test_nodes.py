"""Inbound and outbound nodes: what they hold after symbolic calls, and nothing after eager ones."""

from operator import is_

import numpy as np
import openrnn
import pytest
from model import numpy_rnn
from table.support import (
    GRU, LSTM, B, I, L, T, U, array, assert_close, assert_names, draw, error_text, make_layer,
    make_spec, nothing_changes, oracle,
)  # fmt: skip

# (member, error without a node, what its message says)
UNCONNECTED = [
    ("input", AttributeError, "not connected|no inbound"),
    ("output", AttributeError, "not connected|no inbound"),
    ("input_shape", AttributeError, "never been called"),
    ("output_shape", AttributeError, "never been called"),
    ("input_mask", AttributeError, "never been called|not connected|no inbound"),
    ("output_mask", AttributeError, "never been called|not connected|no inbound"),
]
AT = ["input", "output", "input_shape", "output_shape", "input_mask", "output_mask"]


def symbolic(*shape):
    return openrnn.Input(batch_shape=shape)


def shapes(tensors):
    return [tensor.shape for tensor in tensors]


@pytest.mark.parametrize("member, error, text", UNCONNECTED, ids=[row[0] for row in UNCONNECTED])
@pytest.mark.parametrize("when", ["unbuilt", "built", "eager call"])
def test_unconnected(kind, member, error, text, when):
    layer = kind.layer(L, U)
    if when == "built":
        layer.build((None, None, I))
    if when == "eager call":
        layer(draw(T, B, I))
    assert layer.inbound_nodes == [] and layer.outbound_nodes == []
    with nothing_changes(layer):
        assert_names(error_text(error, getattr, layer, member), text, kind.snake)
    assert not hasattr(layer, member)


@pytest.mark.parametrize("member", AT)
@pytest.mark.parametrize("when", ["unbuilt", "eager call"])
def test_unconnected_at(kind, member, when):
    layer = kind.layer(L, U)
    if when == "eager call":
        layer(draw(T, B, I))
    with nothing_changes(layer):
        message = error_text(RuntimeError, getattr(layer, f"get_{member}_at"), 0)
        assert_names(message, "never been called", kind.snake)


@pytest.mark.parametrize("member", AT)
@pytest.mark.parametrize("index", [1, 7])
def test_node_index_beyond_the_last(kind, member, index):
    layer = kind.layer(L, U)
    layer(symbolic(None, None, I))
    with nothing_changes(layer):
        message = error_text(ValueError, getattr(layer, f"get_{member}_at"), index)
        assert_names(message, str(index), "1")


def test_one_node(kind, direction):
    layer = kind.layer(L, U, direction=direction)
    x = symbolic(None, B, I)
    output, states = layer(x)
    dirs = layer.num_dirs
    assert len(layer.inbound_nodes) == 1 and layer.outbound_nodes == []
    assert layer.input is x and layer.get_input_at(0) is x
    assert type(layer.output) is list and type(layer.get_output_at(0)) is list
    assert all(a is b for a, b in zip(layer.output, [output, *states], strict=True))
    assert all(a is b for a, b in zip(layer.get_output_at(0), [output, *states], strict=True))
    assert len(layer.output) == 1 + kind.num_states
    wanted = [(None, B, dirs * U)] + [(L * dirs, B, U)] * kind.num_states
    assert layer.input_shape == (None, B, I) and layer.get_input_shape_at(0) == (None, B, I)
    assert layer.output_shape == wanted and layer.get_output_shape_at(0) == wanted
    assert layer.input_mask is None and layer.get_input_mask_at(0) is None
    for mask in (layer.output_mask, layer.get_output_mask_at(0)):
        assert mask is None or mask == [None] * len(wanted)


def test_two_nodes(kind):
    layer = kind.layer(L, U)
    first, second = symbolic(T, B, I), symbolic(T, B, I)
    outputs = [layer(first)[0], layer(second)[0]]
    assert len(layer.inbound_nodes) == 2
    assert layer.get_input_at(0) is first and layer.get_input_at(1) is second
    assert layer.get_output_at(0)[0] is outputs[0] and layer.get_output_at(1)[0] is outputs[1]
    assert layer.input is first and layer.output[0] is outputs[0]
    assert layer.input_shape == (T, B, I)


def test_two_nodes_of_different_shapes(kind):
    layer = kind.layer(L, U)
    layer(symbolic(T, B, I))
    layer(symbolic(T + 1, 2, I))
    for member in ("input_shape", "output_shape"):
        with nothing_changes(layer):
            assert_names(error_text(AttributeError, getattr, layer, member), "shape")
    assert layer.get_input_shape_at(0) == (T, B, I)
    assert layer.get_input_shape_at(1) == (T + 1, 2, I)
    assert layer.get_output_shape_at(1)[0] == (T + 1, 2, U)


def test_eager_calls_add_no_node(kind):
    layer = kind.layer(L, U)
    layer(symbolic(None, None, I))
    layer(draw(T, B, I))
    assert len(layer.inbound_nodes) == 1


def test_running_a_model_adds_no_node(kind):
    layer = kind.layer(L, U)
    x = symbolic(None, None, I)
    model = openrnn.Model(x, layer(x)[0])
    model(draw(T, B, I))
    model(draw(T + 2, 1, I))
    assert len(layer.inbound_nodes) == 1


def test_outbound_nodes_and_a_stack():
    first, second = make_layer(LSTM, name="first"), make_layer(GRU, sizes={"input_size": U})
    x = symbolic(None, None, I)
    output, _ = second(first(x)[0])
    assert len(first.outbound_nodes) == 1 and second.outbound_nodes == []
    assert len(second.inbound_nodes) == 1
    data = draw(T, B, I)
    inner, _ = oracle(make_spec(LSTM), array(first.kernel), data)
    wanted, _ = oracle(make_spec(GRU, input_size=U), array(second.kernel), inner)
    assert_close(openrnn.Model(x, output)(data), wanted)


def test_a_mixed_call_is_symbolic(kind):
    """One symbolic argument is enough; the others may be arrays."""
    layer, spec = make_layer(kind), make_spec(kind)
    states = [draw(L, B, U, seed=k) for k in range(kind.num_states)]
    x = symbolic(T, B, I)
    output, _ = layer(x, initial_state=tuple(states))
    assert output.is_symbolic
    data = draw(T, B, I)
    assert_close(openrnn.Model(x, output)(data), oracle(spec, array(layer.kernel), data, states)[0])


def test_a_symbolic_state_makes_the_call_symbolic(kind):
    layer, spec = make_layer(kind), make_spec(kind)
    inputs = tuple(symbolic(L, B, U) for _ in range(kind.num_states))
    data, states = draw(T, B, I), [draw(L, B, U, seed=k) for k in range(kind.num_states)]
    output, _ = layer(data, initial_state=inputs)
    assert output.is_symbolic
    found = openrnn.Model(list(inputs), output)(states)
    assert_close(found, oracle(spec, array(layer.kernel), data, states)[0])


def test_symbolic_lengths(kind):
    layer = make_layer(kind)
    x, lengths = symbolic(T, B, I), openrnn.Input(batch_shape=(B,), dtype="int32")
    output, _ = layer(x, sequence_lengths=lengths)
    model = openrnn.Model([x, lengths], output)
    data = draw(T, B, I)
    for given in ([5, 2, 0], [1, 4, 3]):
        wanted, _ = oracle(make_spec(kind), array(layer.kernel), data, None, given)
        assert_close(model([data, np.asarray(given, "int32")]), wanted)


def test_model_members(kind):
    layer = make_layer(kind)
    x = symbolic(None, None, I)
    output, states = layer(x)
    model = openrnn.Model(x, (output, states[0]), name="whole")
    assert layer.name in [one.name for one in model.layers]
    assert model.get_layer(layer.name) is layer
    assert [v.name for v in model.weights] == [layer.kernel.name]
    assert [v.name for v in model.trainable_weights] == [layer.kernel.name]
    assert model.non_trainable_weights == [] and model.count_params() == layer.count_params()
    found = model(draw(T, B, I))
    assert type(found) is tuple and len(found) == 2
    predicted = model.predict(draw(T, B, I))
    assert all(isinstance(value, np.ndarray) for value in predicted)
    np.testing.assert_array_equal(predicted[0], array(found[0]))
    model.set_weights([np.zeros(layer.count_params(), "float32")])
    assert not array(layer.kernel).any() and not model.get_weights()[0].any()


def test_model_trains_what_was_recorded(kind):
    layer = make_layer(kind)
    x = symbolic(None, None, I)
    model = openrnn.Model(x, layer(x)[0])
    optimizer = openrnn.train.GradientDescentOptimizer(0.005)
    data, wanted = draw(T, B, I), draw(T, B, U, seed=2)
    losses = []

    def loss():
        return openrnn.losses.mean_squared_error(wanted, model(data))

    for _ in range(5):
        losses.append(float(array(loss())))
        optimizer.minimize(loss, var_list=model.trainable_weights)
    assert all(later < earlier for earlier, later in zip(losses, losses[1:], strict=False))


@pytest.mark.parametrize("direct", [False, True], ids=["model", "layer"])
def test_gradients_of_a_model_are_those_of_the_layer(kind, direct):
    layer, spec = make_layer(kind, dtype="float64"), make_spec(kind)
    x = openrnn.Input(batch_shape=(None, None, I), dtype="float64")
    model = openrnn.Model(x, layer(x)[0])
    data = openrnn.constant(draw(T, B, I, dtype="float64"))
    with openrnn.GradientTape() as tape:
        tape.watch(data)
        output = layer(data)[0] if direct else model(data)
        loss = openrnn.reduce_sum(openrnn.square(output))
    found = tape.gradient(loss, [data, layer.kernel])
    y, _, _, saved = numpy_rnn.forward(spec, array(layer.kernel), array(data))
    dx, _, _, dparams = numpy_rnn.backward(saved, 2.0 * y)
    assert_close(found[0], dx, 1e-12)
    assert_close(found[1], dparams, 1e-12)


def test_no_tensor_for_a_model(kind):
    layer = make_layer(kind)
    x = symbolic(T, B, I)
    output, _ = layer(x)
    other = symbolic(T, B, I)
    with nothing_changes(layer):
        error_text(ValueError, openrnn.Model, other, output)
    with nothing_changes(layer):
        error_text((TypeError, ValueError), openrnn.Model, x, draw(T, B, I))


def test_a_symbolic_tensor_has_no_value():
    error_text((TypeError, ValueError, AttributeError, RuntimeError), symbolic(T, B, I).numpy)


def model_of_two(kind):
    layer = make_layer(kind)
    inputs = [symbolic(None, None, I), *(symbolic(L, None, U) for _ in range(kind.num_states))]
    output, _ = layer(inputs[0], initial_state=tuple(inputs[1:]))
    return layer, openrnn.Model(inputs, output)


# (what, change of the good values of a model, what the message names)
WRONG_VALUES = [
    ("too few", lambda v: v[:-1], lambda v: [len(v) - 1, len(v)]),
    ("too many", lambda v: [*v, v[0]], lambda v: [len(v) + 1, len(v)]),
    ("depth", lambda v: [draw(T, B, I + 1), *v[1:]], lambda v: [I + 1, I]),
    ("rank", lambda v: [draw(T, I), *v[1:]], lambda v: [f"{T}, *{I}", "3|None|-1|[?]"]),
    ("batch", lambda v: [draw(T, B + 1, I), *v[1:]], lambda v: [B + 1, B]),
    ("dtype", lambda v: [openrnn.constant(v[0].astype("f8")), *v[1:]],
     lambda v: ["float64", "float32"]),
]  # fmt: skip


@pytest.mark.parametrize("row", WRONG_VALUES, ids=[row[0] for row in WRONG_VALUES])
def test_model_refuses(kind, row):
    _, change, parts = row
    layer, model = model_of_two(kind)
    values = [draw(T, B, I), *(draw(L, B, U, seed=k) for k in range(kind.num_states))]
    before = array(model(values))
    with nothing_changes(layer):
        assert_names(error_text(ValueError, model, change(values)), *map(str, parts(values)))
    np.testing.assert_array_equal(array(model(values)), before)


def test_nodes_are_equal_when_they_are_one_call():
    layer = openrnn.layers.Dense(2)
    for _ in range(2):
        layer(openrnn.Input(batch_shape=(None, 3)))
    first, second = layer.inbound_nodes
    again = layer.inbound_nodes[0]
    assert first == again and hash(first) == hash(again) and first != second
    for other in (None, 3, "node", layer):
        assert first != other and not first == other and first not in [other]
    assert [None, first].index(again) == 1


def test_nodes_are_equal_where_they_are_of_one_call():
    """Each look at a layer makes new objects of the same calls."""
    x = symbolic(None, 3)
    layer = openrnn.layers.Dense(3)
    y = layer(x)
    layer(y)
    first, second = layer.inbound_nodes
    assert first == layer.inbound_nodes[0] and hash(first) == hash(layer.inbound_nodes[0])
    assert first == layer.outbound_nodes[0].inbound_layers[0].inbound_nodes[0]
    assert first != second and first != 3 and first != None  # noqa: E711
    assert {first, second, *layer.inbound_nodes} == {first, second}


@pytest.mark.parametrize("member", AT)
def test_each_member_names_itself_where_there_is_no_node(member):
    layer = openrnn.layers.Dense(2, name="alone")
    layer.build((None, 3))
    assert error_text(AttributeError, getattr, layer, member) == (
        f"[{member}] the layer 'alone' is not connected: it has no inbound nodes as it has never "
        "been called on a symbolic tensor, expected a call on an Input"
    )
    at = getattr(layer, f"get_{member}_at")
    assert error_text(RuntimeError, at, 0) == (
        f"[get_{member}_at] the layer 'alone' has never been called on a symbolic tensor and has "
        "no node, expected a call on an Input before"
    )
    layer(symbolic(None, 3))
    layer(symbolic(4, 3))
    for wrong in (2, -1):
        assert error_text(ValueError, at, wrong) == (
            f"[get_{member}_at] node_index is {wrong}, expected 0 to 1 as the layer 'alone' has 2 "
            "inbound nodes"
        )
    text = (
        f"[{member}] the layer 'alone' has 2 inbound nodes of different "
        f"{member.replace('_', ' ')}s, expected one; ask get_{member}_at(node_index)"
    )
    if member.endswith("shape"):
        assert error_text(AttributeError, getattr, layer, member) == text


class TwoOfTwo(openrnn.layers.Layer):
    """Two inputs, two outputs of other shapes."""

    def call(self, inputs):
        a, b = inputs
        return [openrnn.concat([a, b], 1), a * 2.0]


def test_every_member_of_several_inputs_and_outputs():
    a, b, c, d = symbolic(None, 3), symbolic(None, 5), symbolic(4, 3), symbolic(4, 5)
    layer = TwoOfTwo(name="two")
    first, second = layer([a, b]), layer([c, d])
    last = openrnn.layers.Dense(2, name="last")
    last(first[1])
    last(second[1])
    for n, (inputs, outputs) in enumerate((([a, b], first), ([c, d], second))):
        assert same_tensors(layer.get_input_at(n), inputs)
        assert same_tensors(layer.get_output_at(n), outputs)
        assert layer.get_input_shape_at(n) == shapes(inputs)
        assert layer.get_output_shape_at(n) == shapes(outputs)
        assert layer.get_input_mask_at(n) is None and layer.get_output_mask_at(n) is None
        node = layer.inbound_nodes[n]
        assert same_tensors(node.input_tensors, inputs)
        assert same_tensors(node.output_tensors, outputs)
        assert node.input_shapes == shapes(inputs) and node.output_shapes == shapes(outputs)
        assert node.outbound_layer is layer and node.inbound_layers == []
        behind = layer.outbound_nodes[n]
        assert behind.outbound_layer is last and behind.inbound_layers == [layer]
        assert behind == last.inbound_nodes[n] and last.get_input_at(n) is outputs[1]
        assert last.get_input_shape_at(n) == outputs[1].shape
        assert last.get_output_shape_at(n) == (outputs[1].shape[0], 2)
    assert same_tensors(layer.input, [a, b]) and same_tensors(layer.output, first)
    assert first[0].shape == (None, 8) and second[1].shape == (4, 3)
    assert last.input is first[1] and last.output is last.get_output_at(0)


def same_tensors(found, wanted):
    return type(found) is list and len(found) == len(wanted) and all(map(is_, found, wanted))
