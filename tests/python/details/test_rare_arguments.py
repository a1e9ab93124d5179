"""Arguments and states of calls that are rarely given, by what they change."""

import copy

import numpy as np
import openrnn
import pytest
from openrnn import _messages, layers, nn, train
from openrnn.nn.rnn_cell import BasicLSTMCell, GRUCell, LSTMCell, RNNCell

X = np.arange(6, dtype="float32").reshape(2, 3)
Y = X @ [[0.5], [-1.0], [0.25]]


def dense(**kw):
    return layers.Dense(1, kernel_initializer="zeros", **kw)


def fit(data, **kw):
    optimizer = train.GradientDescentOptimizer(0.01)
    return train.fit(dense(), data, "mean_squared_error", optimizer, progress=False, **kw)["loss"]


class Both:
    """It gives batches as it is, and would as a function."""

    def __iter__(self):
        return iter([(X, Y)])

    def __call__(self):
        raise AssertionError("it is iterable")


class Dlpack:
    """An array of a library that has no more than DLPack."""

    def __init__(self, array):
        self.array, self.shape = array, array.shape

    def __dlpack__(self, **kw):
        return self.array.__dlpack__(**kw)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Arraylike:
    """An array of a library that knows NumPy alone."""

    def __init__(self, array):
        self.array, self.shape = array, array.shape

    def __array__(self, dtype=None, copy=None):
        return self.array


def test_an_iterable_is_no_function():
    assert fit(Both(), epochs=2) == fit([(X, Y)], epochs=2)


def test_axes_in_a_list_and_of_numpy():
    wanted = fit((X, Y), batch_size=1, shuffle=False)
    for axes in ([1, 0], (np.int64(1), np.int32(0))):
        transposed = openrnn.Input(batch_shape=(3, None))
        layer = dense()
        model = openrnn.Model(transposed, layer(openrnn.transpose(transposed)))
        found = model.fit((X.T, Y), "mean_squared_error", train.GradientDescentOptimizer(0.01),
                          progress=False, batch_size=1, shuffle=False, batch_axis=axes)  # fmt: skip
        assert found["loss"] == wanted
    found = fit((X, Y), batch_size=np.int64(1), epochs=np.int8(1), shuffle=False, seed=np.int64(3))
    assert found == wanted


def test_variables_and_lists_as_data():
    wanted = fit((X, Y), epochs=2)
    variables = openrnn.Variable(X), openrnn.Variable(Y.astype("float32"))
    assert fit(variables, epochs=2) == wanted
    assert fit((X.tolist(), Y.tolist()), epochs=2) == wanted


@pytest.mark.parametrize("kind", [openrnn.constant, openrnn.Variable, np.asarray, Dlpack, Arraylike])
def test_several_labels_of_a_batch(kind):
    """The first of them tells the number of samples."""
    a = openrnn.Input((3,))
    layer = dense()
    model = openrnn.Model(a, [layer(a), layer(a) * 2.0])

    def loss(y, found):
        first, second = (np.asarray(getattr(one, "array", one)) for one in y)
        assert isinstance(y, list) and second.shape == (4, 1)
        return openrnn.losses.mean_squared_error(first, found[0])

    y = Y.astype("float32")
    batches = [(X[rows], [kind(y[rows]), kind(np.zeros((4, 1), "float32"))])
               for rows in (slice(0, 2), slice(1, 2))]  # fmt: skip
    optimizer = train.GradientDescentOptimizer(0.01)
    losses = model.fit(batches, loss, optimizer, progress=False)["loss"]
    assert losses == fit([(X, y), (X[1:], y[1:])])


def test_a_pair_of_batches_is_no_pair_of_arrays():
    """Two batches of several inputs in a tuple."""
    a, b = openrnn.Input((3,)), openrnn.Input((3,))

    def losses(data):
        layer = dense()
        model = openrnn.Model([a, b], layer(a) + layer(b))
        return model.fit(data, "mean_squared_error", train.GradientDescentOptimizer(0.01),
                         progress=False, shuffle=False, batch_size=1)["loss"]  # fmt: skip

    each = tuple(([X[i : i + 1], X[i : i + 1]], Y[i : i + 1]) for i in range(2))
    wanted = losses(([X, X], Y))
    assert losses(list(each)) == wanted
    several = tuple((([one, one]), [y]) for ((one, _), y) in each)

    def loss(y, found):
        return openrnn.losses.mean_squared_error(y[0], found)

    layer = dense()
    model = openrnn.Model([a, b], layer(a) + layer(b))
    found = model.fit(several, loss, train.GradientDescentOptimizer(0.01), progress=False)
    assert found["loss"] == wanted and found.steps == 2


def test_a_loss_of_one_element_is_a_number():
    def loss(y, found):
        return openrnn.reshape(openrnn.losses.mean_squared_error(y, found), (1, 1))

    layer = dense()
    value = train.evaluate(layer, (X, Y), loss)
    assert value == train.evaluate(layer, (X, Y), "mean_squared_error")


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_a_step_may_be_a_variable(tmp_path, dtype):
    w = openrnn.Variable([1.0])
    step = openrnn.Variable(7, trainable=False, dtype=dtype)
    saver = train.Saver([w])
    assert saver.save(tmp_path / "model", step) == f"{tmp_path}/model-7"
    manager = train.CheckpointManager(saver, tmp_path)
    assert manager.save(step) == f"{tmp_path}/model.ckpt-7"
    assert (manager.directory, manager.checkpoint) == (str(tmp_path), saver)
    wrong = openrnn.Variable(7.0)
    with pytest.raises(TypeError, match=r"^\[save\] global_step is 'Variable', expected an integer$"):
        saver.save(tmp_path / "model", wrong)
    with pytest.raises(TypeError, match=r"^\[save\] checkpoint_number is 'Variable', expected an int"):
        manager.save(wrong)


@pytest.mark.parametrize("most", [None, 0])
def test_all_checkpoints_are_kept(tmp_path, most):
    saver = train.Saver([openrnn.Variable([1.0])], max_to_keep=most)
    manager = train.CheckpointManager(saver, tmp_path / "managed", max_to_keep=most)
    for step in range(7):
        saver.save(tmp_path / "model", step)
        manager.save(step)
    assert len(saver.last_checkpoints) == len(manager.checkpoints) == 7
    assert len(list((tmp_path / "managed").glob("*.index"))) == 7
    five = train.Saver([openrnn.Variable([1.0])])
    managed = train.CheckpointManager(five, tmp_path / "five")
    for step in range(7):
        managed.save(step)
    assert managed.checkpoints == [f"{tmp_path}/five/model.ckpt-{step}" for step in range(2, 7)]


def test_evaluate_takes_an_iterator_and_small_batches():
    layer = dense()
    wanted = train.evaluate(layer, (X, Y), "mean_squared_error")
    assert train.evaluate(layer, iter([(X, Y)]), "mean_squared_error") == wanted
    sizes = []

    def loss(y, found):
        sizes.append(len(y))
        return openrnn.losses.mean_squared_error(y, found)

    x = openrnn.Input((3,))
    model = openrnn.Model(x, layer(x))
    assert model.evaluate((X, Y), loss, batch_size=1) == pytest.approx(wanted)
    assert sizes == [1, 1]


def test_what_managers_and_checkpoints_refuse(tmp_path):
    with pytest.raises(TypeError) as raised:
        train.CheckpointManager(3, tmp_path)
    assert str(raised.value) == (
        "[CheckpointManager] checkpoint is a int, expected a Saver or a Checkpoint"
    )
    with pytest.raises(TypeError, match=r"^\[CheckpointManager\] directory is 'int', expected a path$"):
        train.CheckpointManager(train.Saver([openrnn.Variable(1.0)]), 3)
    checkpoint = train.Checkpoint(one=openrnn.Variable(1.0), other=openrnn.Variable(2.0))
    with pytest.raises(AttributeError) as raised:
        checkpoint.third  # noqa: B018
    assert str(raised.value) == "[Checkpoint] it has no 'third', expected one of ['one', 'other']"
    assert checkpoint.other.numpy() == 2.0
    for call, name in ((checkpoint.write, "file_prefix"), (checkpoint.save, "file_prefix"),
                       (checkpoint.read, "save_path"), (checkpoint.restore, "save_path")):  # fmt: skip
        with pytest.raises(TypeError) as raised:
            call(3)
        assert str(raised.value) == f"[{call.__name__}] {name} is 'int', expected a path"
    for call in (train.list_variables, train.describe_network):
        with pytest.raises(TypeError) as raised:
            call(3)
        assert str(raised.value) == f"[{call.__name__}] ckpt_dir_or_file is 'int', expected a path"
    with pytest.raises(TypeError, match=r"^\[load_variable\] ckpt_dir_or_file is 'int', expected a p"):
        train.load_variable(3, "w")
    for call in (train.latest_checkpoint, train.get_checkpoint_state):
        with pytest.raises(TypeError) as raised:
            call(3)
        assert str(raised.value) == f"[{call.__name__}] checkpoint_dir is 'int', expected a path"


def test_a_folder_stands_for_its_newest_checkpoint(tmp_path):
    w = openrnn.Variable([1.0, 2.0], name="w")
    saver = train.Saver([w])
    saver.save(tmp_path / "model", 1)
    w.assign([3.0, 4.0])
    saver.save(tmp_path / "model", 2)
    assert train.load_variable(tmp_path, "w").tolist() == [3.0, 4.0]
    assert train.load_variable(tmp_path / "model-1", "w").tolist() == [1.0, 2.0]
    assert train.list_variables(tmp_path) == [("w", [2])]
    assert train.describe_network(tmp_path) == ([], [])
    (tmp_path / "empty").mkdir()
    with pytest.raises(OSError, match="empty"):
        train.list_variables(tmp_path / "empty")


def test_copies_of_optimizers_keep_what_was_noted_on_them():
    optimizer = train.AdamW(0.5)
    optimizer.note = [1]
    copied = copy.deepcopy(optimizer)
    assert copied.note == [1] and copied.note is not optimizer.note
    shared = copy.deepcopy([optimizer, optimizer])
    assert shared[0] is shared[1]


class Shown(RNNCell):
    state_size = output_size = 2

    def build(self, input_shape):
        self.shape = tuple(input_shape)
        self.scale = self.add_weight("scale", (), initializer="ones")

    def call(self, inputs, state):
        return inputs * self.scale, state


def test_a_cell_is_built_for_a_shape_or_by_its_first_call():
    early, late, unknown = Shown(), Shown(), Shown()
    early.build((None, 2))
    assert early.built and early.shape == (None, 2)
    late(np.ones((3, 2), "float32"), np.zeros((3, 2), "float32"))
    assert late.built and late.shape == (3, 2)
    unknown.build(None)
    assert unknown.built and unknown.shape == ()


def test_split_and_slice_at_their_bounds():
    (whole,) = openrnn.split(X, 1, 1)
    np.testing.assert_array_equal(whole, X)
    assert [one.shape for one in openrnn.split(X, 3, -1)] == [(2, 1)] * 3
    assert [one.shape for one in openrnn.split(X, 2, -2)] == [(1, 3)] * 2
    assert [one.shape for one in openrnn.split(X, np.int64(2))] == [(1, 3)] * 2
    steps = openrnn.Input(batch_shape=(None, 3))
    for begin, size, wanted in [
        ((1, 0), (1, -1), X[1:]), ((0, 0), (-1, -1), X), ((0, 1), (-1, 2), X[:, 1:]),
        ((0, 0), (1, 3), X[:1]), ((1, 2), (1, 1), X[1:, 2:]), ((0, 0), (2, 2), X[:, :2]),
    ]:  # fmt: skip
        model = openrnn.Model(steps, openrnn.slice(steps, begin, size))
        np.testing.assert_array_equal(model(X), wanted)
        np.testing.assert_array_equal(openrnn.slice(X, begin, size), wanted)
    np.testing.assert_array_equal(openrnn.slice(X, (1, 0), (-1, -1)), X[1:])
    with pytest.raises(openrnn.ArgumentError, match=r"^\[slice\] begin is 1 and size -1, expected "):
        openrnn.slice(steps, (1, 0), (-1, -1))  # how many steps that is, is not known


def test_sizes_may_be_zero():
    assert openrnn.zeros((0, 3)).shape == (0, 3) and openrnn.ones([2, 0]).shape == (2, 0)
    assert openrnn.zeros(2).shape == (2,) and openrnn.ones(()).numpy() == 1.0
    assert not openrnn.zeros((2, 3)).numpy().any() and openrnn.ones((2,), "int64").numpy().sum() == 2


def test_integers_of_many_digits_are_not_written_out():
    few, many = 10**40 - 1, 10**40
    for given, shown in ((few, str(few)), (-few, str(-few)), (many, "an integer of many digits"),
                         (-many, "an integer of many digits")):  # fmt: skip
        assert _messages._given(given, "int") == shown
    assert _messages._given(True, "int") == "'bool'"


@pytest.mark.parametrize("kind", [BasicLSTMCell, LSTMCell])
def test_both_states_in_one_tensor(kind):
    """Whatever it is in, its gradient passes, and its parts are c and h."""
    one, other = kind(2, name="one"), kind(2, name="other", state_is_tuple=False)
    c, h = np.full((3, 2), 0.5, "float32"), np.full((3, 2), -0.25, "float32")
    x, both = np.ones((3, 4), "float32"), np.concatenate([c, h], 1)
    wanted, (wanted_c, wanted_h) = one(x, (c, h))
    other(x, both)
    other.set_weights(one.get_weights())
    wanted, (wanted_c, wanted_h) = one(x, (c, h))
    assert other.state_size == 4 and one.state_size == (2, 2)
    state = openrnn.Variable(both)
    for given in (both, memoryview(both), openrnn.constant(both), state):
        output, new = other(x, given)
        np.testing.assert_array_equal(output, wanted)
        np.testing.assert_array_equal(new, np.concatenate([wanted_c, wanted_h], 1))
    with openrnn.GradientTape() as tape:
        output, _ = other(x, state)
    assert np.count_nonzero(tape.gradient(output, state).numpy()) > 0


def test_a_length_of_its_own_for_each_row():
    cell, x = GRUCell(3, name="gru"), np.ones((2, 4, 3), "float32")
    whole, _ = nn.dynamic_rnn(cell, x, dtype="float32")
    steps, state = nn.static_rnn(cell, list(x.swapaxes(0, 1)), sequence_length=[4, 2], dtype="float32")
    np.testing.assert_array_equal(steps[1], whole.numpy()[:, 1])
    assert not steps[2].numpy()[1].any() and steps[2].numpy()[0].any()
    np.testing.assert_array_equal(state.numpy()[1], whole.numpy()[1, 1])
