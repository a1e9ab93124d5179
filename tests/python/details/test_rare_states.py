"""What layers, cells, converters and collections hold, where it is rarely asked for."""

import copy
import pickle

import numpy as np
import openrnn
import pytest
from openrnn import cudnn_rnn, initializers, layers, nn, train
from openrnn.nn.rnn_cell import DropoutWrapper, LSTMStateTuple, RNNCell

X = np.random.default_rng(1).normal(size=(5, 4, 3)).astype("float32")


def gru(**kw):
    layer = cudnn_rnn.CudnnGRU(2, 4, seed=1, **kw)
    layer.build((None, None, 3))
    return layer


def test_calls_with_dropout_are_counted_from_where_they_are_set():
    layer = gru(dropout=0.5)
    outputs = [layer(X)[0].numpy() for _ in range(4)]
    assert layer.dropout_calls == 4
    layer.dropout_calls = 2
    assert layer.dropout_calls == 2
    for wanted in outputs[2:]:
        np.testing.assert_array_equal(layer(X)[0], wanted)
    assert layer.dropout_calls == 4


def test_canonical_lists_as_the_layer_s_buffer():
    layer = gru()
    op = cudnn_rnn.ops.CudnnGRU(2, 4, 3)
    weights, biases = op.params_to_canonical(layer.kernel)
    np.testing.assert_array_equal(layer._canonical_to_opaque(weights, biases), layer.kernel.numpy())


def test_flags_may_be_integers():
    layer = gru()
    mask, reset = np.ones((5, 4), bool), np.zeros((5, 4), "int64")
    mask[2, 1], reset[3, 2] = False, 7
    h = np.full((2, 4, 4), 0.5, "float32")
    for zero in (False, True):
        for initial in (False, True):
            found, wanted = (
                layer(X, (h,), training=False, mask=mask, zero_output_for_mask=kind(zero),
                      reset=flags, reset_to_initial=kind(initial))[0].numpy()
                for kind, flags in ((int, reset), (bool, reset != 0))
            )  # fmt: skip
            np.testing.assert_array_equal(found, wanted)
    assert (found == 0.0).all(axis=2).sum() == 1


def test_flags_of_inputs_in_lists_and_of_unknown_sizes():
    layer, mask = gru(), np.array([[True, False, True, True]] * 5)
    wanted = layer(X, training=False, mask=mask)[0].numpy()
    np.testing.assert_array_equal(layer(X.tolist(), training=False, mask=mask.tolist())[0], wanted)
    with pytest.raises(openrnn.ArgumentError) as raised:
        layer(X.tolist(), mask=mask.T)
    assert str(raised.value) == (
        f"[{layer.name}] mask has shape [4, 5], expected [5, 4], as the inputs"
    )
    with pytest.raises(openrnn.UnsupportedError, match="mask"):
        layer(openrnn.Input(batch_shape=(None, None, 3)), mask=mask)


class Switched(layers.Layer):
    def call(self, inputs, factor=1.0, training=False):
        return inputs * factor * (2.0 if training else 1.0)


@pytest.mark.parametrize("call", [
    lambda layer, x: layer(x, 1.0, True), lambda layer, x: layer(x, training=True),
    lambda layer, x: layer(x, 1.0), lambda layer, x: layer(x)])  # fmt: skip
def test_a_replay_sets_training_however_it_was_given(call):
    x = openrnn.Input((3,))
    model, rows = openrnn.Model(x, call(Switched(), x)), X[0]
    np.testing.assert_array_equal(model(rows, training=False), rows)
    np.testing.assert_array_equal(model(rows, training=True), 2.0 * rows)


def test_a_cell_of_the_package_is_built_for_a_shape():
    cell = nn.rnn_cell.GRUCell(4)
    cell.build(None)
    assert not cell.built and cell.weights == []
    cell.build((None, 3))
    assert cell.built and [one.shape for one in cell.weights] == [(7, 8), (8,), (7, 4), (4,)]


@pytest.mark.parametrize("time_major", [False, True])
@pytest.mark.parametrize(("direction", "rows", "warns"), [
    ("unidirectional", 1, True), ("unidirectional", 2, False), ("bidirectional", 2, True),
    ("bidirectional", 4, False)])  # fmt: skip
def test_dropout_of_one_layer_warns_whatever_the_layout(recwarn, time_major, direction, rows, warns):
    ops = cudnn_rnn.ops
    count = rows // 2 if direction == "bidirectional" else rows
    params = np.zeros(ops.cudnn_rnn_opaque_params_size("gru", count, 4, 3, direction=direction), "f")
    h = np.zeros((rows, 4, 4) if time_major else (4, rows, 4), "f")
    x = X if time_major else X.swapaxes(0, 1)
    ops.cudnn_gru(x, h, params, dropout=0.5, direction=direction, time_major=time_major)
    assert [str(one.message).split("]")[0] for one in recwarn] == (["[cudnn_gru"] if warns else [])


def test_sessions_take_layouts_as_integers_and_say_which_call_it_was():
    model = openrnn.PackedModel.from_layer(gru())
    session, pool = openrnn.InferenceSession(model), openrnn.StreamPool(model, streams=2, time=5)
    wanted = session.run(X)[0]
    np.testing.assert_array_equal(session.run(X, time_major=1)[0], wanted)
    swapped = np.ascontiguousarray(X.swapaxes(0, 1))
    np.testing.assert_array_equal(session.run(swapped, time_major=0)[0].swapaxes(0, 1), wanted)
    ids = [pool.join(), pool.join()]
    np.testing.assert_array_equal(pool.step(ids, X[:, :2], time_major=1), wanted[:, :2])
    for one in ids:
        pool.reset(one)
    found = pool.step(ids, swapped[:2], time_major=0)
    np.testing.assert_array_equal(found.swapaxes(0, 1), wanted[:, :2])
    bad = np.ones((2, 5), "float32")
    for call, name in ((lambda: pool.join((bad,)), "join"), (lambda: pool.reset(ids[0], (bad,)), "reset")):
        with pytest.raises(openrnn.ArgumentError) as raised:
            call()
        assert str(raised.value) == f"[{name}] h has shape [2, 5], expected [2, 4]"
    with pytest.raises(openrnn.ArgumentError) as raised:
        session.run(X, (bad, bad))
    assert str(raised.value) == "[run] a state of 2 arrays, expected 1: (h,)"
    with pytest.raises(openrnn.ArgumentError) as raised:
        pool.step(ids, X[:, :2, :1])
    assert str(raised.value) == "[step] inputs have shape [5, 2, 1], expected [T, B, I] with I = 3"
    for run, text in ((session.run, "run"), (lambda x, **kw: pool.step(ids, x, **kw), "step")):
        with pytest.raises(openrnn.ArgumentError) as raised:
            run(X[0], time_major=False)
        assert str(raised.value) == f"[{text}] inputs have shape [4, 3], expected [B, T, I] with I = 3"
        with pytest.raises(openrnn.ArgumentError) as raised:
            run(X[:, :2], sequence_lengths=[1.0, 2.0])
        assert str(raised.value) == (
            f"[{text}] sequence_lengths are float64 of shape [2], expected integers of shape [2]"
        )
    model.spec["num_units"] = 9
    assert model.spec["num_units"] == 4
    assert repr(model).startswith("<openrnn.PackedModel rnn_mode='gru', num_layers=2, num_units=4, ")


class Nested(RNNCell):
    """c of two tensors, which dropout leaves alone, and h."""

    state_size, output_size = LSTMStateTuple((2, [3]), 4), 4

    def call(self, inputs, state):
        return inputs, state


def test_dropout_leaves_every_part_of_c_alone():
    cell = DropoutWrapper(Nested(), state_keep_prob=0.25, seed=1)
    ones = [np.ones((50, width), "float32") for width in (2, 3, 4)]
    _, state = cell(np.ones((50, 4), "float32"), LSTMStateTuple((ones[0], [ones[1]]), ones[2]))
    assert isinstance(state, LSTMStateTuple)
    (first, (second,)), h = state
    assert (first.numpy() == 1.0).all() and (second.numpy() == 1.0).all()
    assert set(np.unique(h.numpy())) == {0.0, 4.0}
    assert cell.state_size == Nested.state_size


class Plain(RNNCell):
    """Its own __call__() takes no scope."""

    state_size = output_size = 4
    given = ()

    def __call__(self, inputs, state, *more):
        type(self).given = more
        return inputs, state


def test_a_scope_is_handed_on_where_there_is_one():
    cell, x = Plain(), np.ones((2, 5, 4), "float32")
    outputs, _ = nn.dynamic_rnn(cell, x, dtype="float32")
    assert Plain.given == () and outputs.shape == (2, 5, 4)


def test_collections_that_the_library_fills_take_more():
    def update():
        return None

    layer, graph = gru(), openrnn.get_default_graph()
    openrnn.add_to_collection("update_ops", update)
    openrnn.add_to_collection("regularization_losses", openrnn.constant(2.0))
    for _ in range(2):
        updates = openrnn.get_collection("update_ops")
        losses = openrnn.get_collection("regularization_losses")
        assert updates == graph.get_collection("update_ops") == [update]
        assert [float(one) for one in losses] == [2.0]
        updates.clear()
        losses.clear()
    saveables = openrnn.get_collection("saveable_objects")
    assert saveables == [layer.saveable]
    with openrnn.Graph().as_default() as other:
        other.add_to_collection("saveable_objects", layer.saveable)
        assert other.get_collection("saveable_objects") == [layer.saveable]
        assert other.get_collection("variables") == []
    assert openrnn.get_collection("variables") == openrnn.global_variables() == [layer.kernel]
    assert openrnn.get_collection("trainable_variables") == [layer.kernel]


def test_a_seed_that_is_not_given_is_0():
    for make in (initializers.glorot_uniform, initializers.random_normal, initializers.random_uniform):
        plain = make()([3]).numpy()
        assert plain.tobytes() == make(seed=0)([3]).numpy().tobytes()
        assert make(seed=-1)([3]).numpy().tobytes() == make(seed=2**64 - 1)([3]).numpy().tobytes()
        assert plain.tobytes() != make(seed=1)([3]).numpy().tobytes()


def test_a_checkpoint_without_objects_says_so():
    with pytest.raises(AttributeError, match=r"^\[Checkpoint\] it has no 'w', expected one of \[\]$"):
        train.Checkpoint.__new__(train.Checkpoint).w  # noqa: B018


def test_no_projections_are_none():
    converter = cudnn_rnn.CudnnParamsFormatConverterTanh(1, 4, 3)
    weights, biases = converter.opaque_to_tf_canonical(np.arange(36, dtype="float32"))
    wanted = converter.tf_canonical_to_opaque([*weights, *biases]).numpy()
    for none in ([], (), None):
        found = converter.tf_canonical_to_opaque([*weights, *biases], none)
        np.testing.assert_array_equal(found, wanted)


def test_configurations_of_models_and_predictions_of_one_batch():
    x = openrnn.Input((3,))
    model = openrnn.Model(x, (layers.Dense(2)(x), layers.Dense(1)(x)), name="named")
    config = model.get_config()
    assert config["name"] == "named" and config["inputs"] is x and len(config["outputs"]) == 2
    one, other = model.predict(X[0]), model.predict(X[0], 4)
    assert isinstance(other, tuple)
    for each, wanted in zip(other, one, strict=True):
        np.testing.assert_array_equal(each, wanted)


def test_a_loss_of_unknown_size_is_no_number():
    x = openrnn.Input((3,))
    layer = layers.Dense(1)
    with pytest.raises(openrnn.ArgumentError) as raised:
        train.evaluate(layer, (X[0], X[0]), lambda y, found: x)
    assert str(raised.value) == (
        "[evaluate] the loss has shape (None, 3), expected one number: the mean over the batch"
    )


def test_no_dropout_is_no_reason_to_warn(recwarn):
    cudnn_rnn.CudnnGRU(1, 4)
    cudnn_rnn.ops.CudnnGRU(1, 4, 3)
    cudnn_rnn.CudnnGRU(2, 4, dropout=0.5)
    assert len(recwarn) == 0
    cudnn_rnn.CudnnGRU(1, 4, dropout=0.5)
    assert len(recwarn) == 1


def test_lists_are_inputs_of_models():
    a, b = openrnn.Input((3,)), openrnn.Input((3,))
    one, two = openrnn.Model(a, a * 2.0), openrnn.Model([a, b], a - b)
    np.testing.assert_array_equal(one([[1.0, 2.0, 3.0]]), [[2.0, 4.0, 6.0]])
    np.testing.assert_array_equal(two([[[1.0, 2.0, 3.0]], [[1.0, 1.0, 1.0]]]), [[0.0, 1.0, 2.0]])
    np.testing.assert_array_equal(two((X[0], X[1])), X[0] - X[1])
    with pytest.raises(openrnn.ArgumentError):
        two([X[0]])


class Scaled(layers.Layer):
    def build(self, input_shape):
        self.scale = self.add_weight("scale", input_shape[-1:], initializer="ones")

    def call(self, inputs):
        return inputs * self.scale


def test_copies_of_layers_that_are_not_built_build_themselves():
    for copied in (copy.deepcopy(Scaled()), copy.copy(Scaled()), pickle.loads(pickle.dumps(Scaled()))):
        assert not copied.built
        np.testing.assert_array_equal(copied(X[0]), X[0])
        assert copied.scale.shape == (3,) and len(copied.weights) == 1
