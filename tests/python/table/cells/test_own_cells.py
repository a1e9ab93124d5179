"""Cells that users write: in loops, stacks and wrappers, on values and on symbolic tensors."""

import gc
import types
import weakref

import numpy as np
import openrnn
import pytest

T, B, I, U = 4, 3, 2, 3  # noqa: E741
rnn_cell = openrnn.nn.rnn_cell
LENGTHS = [4, 0, 2]


def draw(*shape):
    return np.random.default_rng(shape).uniform(-1, 1, shape).astype(np.float32)


class Built(rnn_cell.RNNCell):
    """h = tanh(x W + h R), weights of build()."""

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self._units = units

    state_size = property(lambda self: self._units)
    output_size = property(lambda self: self._units)

    def build(self, input_shape):
        self.w = self.add_weight("w", (input_shape[-1], self._units))
        self.r = self.add_weight("r", (self._units, self._units))

    def call(self, inputs, state):
        h = openrnn.tanh(openrnn.matmul(inputs, self.w) + openrnn.matmul(state, self.r))
        return h, h


class Called(Built):
    """The same, with variables that call() gets."""

    def build(self, input_shape):
        pass

    def call(self, inputs, state):
        self.w = openrnn.get_variable("w", (inputs.shape[-1], self._units))
        self.r = openrnn.get_variable("r", (self._units, self._units))
        return super().call(inputs, state)


class Old(Built):
    """The same with a call operator of its own, as cells were written at first."""

    def __call__(self, inputs, state, scope=None):
        with openrnn.variable_scope(scope or "old"):
            self.w = openrnn.get_variable("w", (inputs.shape[-1], self._units))
            self.r = openrnn.get_variable("r", (self._units, self._units))
            return self.call(inputs, state)


class Pair(rnn_cell.RNNCell):
    """State (c, h) of different widths; output of a third."""

    state_size = rnn_cell.LSTMStateTuple(U, 2)
    output_size = 1

    def build(self, input_shape):
        self.w = self.add_weight("w", (input_shape[-1] + 2, U))
        self.p = self.add_weight("p", (U, 2))

    def call(self, inputs, state):
        c = state.c + openrnn.matmul(openrnn.concat([inputs, state.h], 1), self.w)
        h = openrnn.matmul(openrnn.tanh(c), self.p)
        return h[:, :1], rnn_cell.LSTMStateTuple(c, h)


class Wide(openrnn.cudnn_rnn.CudnnCompatibleGRUCell):
    """A cell of the package whose output is twice as wide."""

    output_size = property(lambda self: 2 * self.num_units)

    def call(self, inputs, state):
        output, state = super().call(inputs, state)
        return openrnn.concat([output, -output], 1), state


def reference(cell, x, lengths=None):
    """Outputs and last state of Built in float64."""
    w, r = (v.numpy().astype(np.float64) for v in (cell.w, cell.r))
    h, outputs = np.zeros((x.shape[1], U)), np.zeros((*x.shape[:2], U))
    for t in range(x.shape[0]):
        now = np.tanh(x[t] @ w + h @ r)
        on = np.array([t < n for n in lengths or [T] * x.shape[1]])[:, None]
        h, outputs[t] = np.where(on, now, h), np.where(on, now, 0)
    return outputs, h


@pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["full", "lengths"])
@pytest.mark.parametrize("symbolic", [False, True], ids=["values", "symbolic"])
@pytest.mark.parametrize("kind", [Built, Called, Old])
def test_dynamic_rnn(kind, symbolic, lengths):
    cell, x = kind(U), draw(T, B, I)
    given = openrnn.Input(batch_shape=(None, None, I)) if symbolic else x
    out = openrnn.nn.dynamic_rnn(cell, given, lengths, dtype="float32", time_major=True)
    if symbolic:
        model = openrnn.Model(given, list(out))
        del given
        assert {v.name for v in model.weights} == {v.name for v in openrnn.global_variables()}
        out = model(x)
    wanted = reference(cell, x, lengths)
    np.testing.assert_allclose(out[0], wanted[0], atol=1e-6)
    np.testing.assert_allclose(out[1], wanted[1], atol=1e-6)
    names = [f"rnn/{kind.__name__.lower()}/{name}" for name in "wr"]
    assert [v.name for v in cell.weights] == names
    assert [v.name for v in openrnn.trainable_variables()] == names


def test_gradients():
    cell, x = Built(U), openrnn.Variable(draw(T, B, I), name="x")
    with openrnn.GradientTape() as tape:
        outputs, _ = openrnn.nn.dynamic_rnn(cell, x, LENGTHS, dtype="float32", time_major=True)
        loss = openrnn.reduce_sum(openrnn.square(outputs))
    gradient = tape.gradient(loss, cell.r).numpy()
    step = 1e-3
    for i, j in np.ndindex(U, U):
        sides = []
        for sign in (1, -1):
            moved = cell.r.numpy().astype(np.float64)
            moved[i, j] += sign * step
            fixed = types.SimpleNamespace(w=cell.w, r=openrnn.constant(moved.astype(np.float32)))
            sides.append((reference(fixed, x.numpy(), LENGTHS)[0] ** 2).sum())
        assert abs((sides[0] - sides[1]) / (2 * step) - gradient[i, j]) < 2e-3


@pytest.mark.parametrize("kind", [Built, Called, Old])
def test_stacks_and_wrappers(kind):
    x = draw(T, B, I)
    inner = [kind(U), kind(U)]
    stack = rnn_cell.MultiRNNCell([rnn_cell.DropoutWrapper(inner[0], 1.0), inner[1]])
    outputs, state = openrnn.nn.dynamic_rnn(stack, x, LENGTHS, dtype="float32", time_major=True)
    first = reference(inner[0], x, LENGTHS)
    second = reference(inner[1], first[0], LENGTHS)
    np.testing.assert_allclose(outputs, second[0], atol=1e-6)
    np.testing.assert_allclose(state[0], first[1], atol=1e-6)
    np.testing.assert_allclose(state[1], second[1], atol=1e-6)
    assert [v.name for v in stack.weights] == [
        f"rnn/multi_rnn_cell/cell_{i}/{kind.__name__.lower()}/{name}" for i in (0, 1) for name in "wr"
    ]


def test_a_dropout_wrapper_drops_what_is_no_memory():
    class Kept(rnn_cell.RNNCell):
        state_size = rnn_cell.LSTMStateTuple(50, 50)
        output_size = 50

        def call(self, inputs, state):
            return inputs, rnn_cell.LSTMStateTuple(inputs, inputs)

    cell = rnn_cell.DropoutWrapper(Kept(), 1.0, 1.0, 0.5, seed=1)
    ones = np.ones((B, 50), np.float32)
    _, state = cell(ones, cell.zero_state(B, "float32"))
    assert (state.c.numpy() == 1).all() and set(state.h.numpy().flat) == {0.0, 2.0}


def test_both_directions():
    x, cells = draw(T, B, I), [Built(U, name=name) for name in "abcd"]
    outputs, fw, bw = openrnn.nn.stack_bidirectional_dynamic_rnn(
        cells[:2], cells[2:], x, dtype="float32", sequence_length=LENGTHS, time_major=True)
    layer = x
    for i in range(2):
        back = np.zeros_like(layer)
        for row, n in enumerate(LENGTHS):
            back[:n, row] = layer[:n, row][::-1]
        forward, state_fw = reference(cells[i], layer, LENGTHS)
        backwards, state_bw = reference(cells[2 + i], back, LENGTHS)
        backward = np.zeros_like(backwards)
        for row, n in enumerate(LENGTHS):
            backward[:n, row] = backwards[:n, row][::-1]
        layer = np.concatenate([forward, backward], 2)
        np.testing.assert_allclose(fw[i], state_fw, atol=1e-6)
        np.testing.assert_allclose(bw[i], state_bw, atol=1e-6)
    np.testing.assert_allclose(outputs, layer, atol=1e-6)


@pytest.mark.parametrize("symbolic", [False, True], ids=["values", "symbolic"])
def test_a_state_of_two_and_an_output_of_another_width(symbolic):
    cell, x = Pair(), draw(T, B, I)
    given = openrnn.Input(batch_shape=(None, None, I)) if symbolic else x
    outputs, state = openrnn.nn.dynamic_rnn(cell, given, LENGTHS, dtype="float32", time_major=True)
    assert type(state) is rnn_cell.LSTMStateTuple and state.c.shape[-1] == U
    if symbolic:
        assert outputs.shape == (None, None, 1)
        outputs, *_ = openrnn.Model(given, [outputs, *state])(x)
    c, h = np.zeros((B, U)), np.zeros((B, 2))
    w, p = cell.w.numpy(), cell.p.numpy()
    for t in range(T):
        on = np.array([t < n for n in LENGTHS])[:, None]
        new = c + np.concatenate([x[t], h], 1) @ w
        out = np.tanh(new) @ p
        np.testing.assert_allclose(outputs.numpy()[t], np.where(on, out[:, :1], 0), atol=1e-5)
        c, h = np.where(on, new, c), np.where(on, out, h)


def test_a_cell_of_the_package_with_another_output():
    cell, x = Wide(U), draw(T, B, I)
    outputs, state = openrnn.nn.dynamic_rnn(cell, x, dtype="float32", time_major=True)
    plain = openrnn.cudnn_rnn.CudnnCompatibleGRUCell(U, name="plain")
    openrnn.nn.dynamic_rnn(plain, x, dtype="float32", time_major=True)
    plain.set_weights(cell.get_weights())
    wanted, last = openrnn.nn.dynamic_rnn(plain, x, dtype="float32", time_major=True)
    np.testing.assert_array_equal(outputs, np.concatenate([wanted, -wanted.numpy()], 2))
    np.testing.assert_array_equal(state, last)
    step, _ = cell(x[0], cell.zero_state(B, "float32"))
    np.testing.assert_array_equal(step, outputs.numpy()[0])
    empty, _ = openrnn.nn.dynamic_rnn(cell, x[:0], dtype="float32", time_major=True)
    assert empty.shape == (0, B, 2 * U)


def test_a_zero_state_of_its_own_starts_the_loop():
    class Ones(Built):
        def zero_state(self, batch_size, dtype):
            return super().zero_state(batch_size, dtype) + 1.0

    cell, x = Ones(U), draw(T, B, I)
    outputs, _ = openrnn.nn.dynamic_rnn(cell, x, dtype="float32", time_major=True)
    wanted, _ = openrnn.nn.dynamic_rnn(cell, x, initial_state=np.ones((B, U), np.float32),
                                       time_major=True)  # fmt: skip
    np.testing.assert_array_equal(outputs, wanted)


def test_wrappers_start_where_their_cells_do():
    class Ones(Built):
        def zero_state(self, batch_size, dtype):
            return super().zero_state(batch_size, dtype) + 1.0

    class Sized(rnn_cell.MultiRNNCell):
        state_size = property(lambda self: (U, 2 * U))

    first, last = Ones(U), rnn_cell.BasicLSTMCell(U)
    stack = rnn_cell.MultiRNNCell([rnn_cell.DropoutWrapper(first, state_keep_prob=0.5), last])
    ones, (c, h) = stack.zero_state(B, "float64")
    np.testing.assert_array_equal(ones, np.ones((B, U)))
    np.testing.assert_array_equal([c, h], np.zeros((2, B, U)))
    assert ones.dtype == c.dtype == "float64"
    assert [part.shape for part in Sized([first, last]).zero_state(B, "float32")] == [(B, U), (B, 2 * U)]
    x = draw(T, B, I)
    plain = rnn_cell.MultiRNNCell([first, last])
    outputs, _ = openrnn.nn.dynamic_rnn(plain, x, dtype="float32", time_major=True)
    start = (np.ones((B, U), np.float32), rnn_cell.LSTMStateTuple(*np.zeros((2, B, U), np.float32)))
    wanted, _ = openrnn.nn.dynamic_rnn(plain, x, initial_state=start, time_major=True)
    np.testing.assert_array_equal(outputs, wanted)


def test_a_direct_call_and_saving(tmp_path):
    cell, x = Built(U), draw(B, I)
    h = draw(B, U)
    out, state = cell(x, h)
    np.testing.assert_allclose(out, np.tanh(x @ cell.w.numpy() + h @ cell.r.numpy()), atol=1e-6)
    assert state.shape == (B, U) and cell.built
    assert [v.name for v in cell.weights] == ["built/w", "built/r"]
    saved = openrnn.train.Saver(cell.weights).save(str(tmp_path / "cell"))
    cell.set_weights([np.zeros((I, U), np.float32), np.zeros((U, U), np.float32)])
    openrnn.train.Saver(cell.weights).restore(saved)
    np.testing.assert_array_equal(cell(x, h)[0], out)


def test_float64():
    cell = Built(U)
    x = draw(T, B, I).astype(np.float64)
    outputs, _ = openrnn.nn.dynamic_rnn(cell, x, dtype="float64", time_major=True)
    assert outputs.dtype == "float64" and cell.w.dtype == "float64"
    np.testing.assert_allclose(outputs, reference(cell, x)[0], atol=1e-12)


@pytest.mark.parametrize("make", [lambda reuse: Built(U, _reuse=reuse),
                                  lambda reuse: openrnn.cudnn_rnn.CudnnCompatibleGRUCell(U, reuse),
                                  lambda reuse: rnn_cell.BasicRNNCell(U, reuse=reuse)])  # fmt: skip
def test_reuse_in_a_loop(make):
    x = draw(T, B, I)
    first, second = make(None), make(True)
    wanted, _ = openrnn.nn.dynamic_rnn(first, x, dtype="float32", time_major=True)
    got, _ = openrnn.nn.dynamic_rnn(second, x, dtype="float32", time_major=True)
    np.testing.assert_array_equal(got, wanted)
    assert second.weights == first.weights and openrnn.global_variables() == first.weights


def test_a_layer_takes_reuse():
    class Own(openrnn.layers.Layer):
        def build(self, input_shape):
            self.w = self.add_weight("w", (1,))

        def call(self, x):
            return x + self.w

    first, second = Own(), Own(_reuse=True)
    first(draw(B, 1)), second(draw(B, 1))
    assert second.w is first.w and second.name == "own"


def broken(**members):
    return type("Broken", (Built,), members)(U)


@pytest.mark.parametrize(
    "cell, error, text",
    [
        (broken(call=lambda self, x, h: None), ValueError, r"call\(\) returned None, expected \(out"),
        (broken(call=lambda self, x, h: (x, (h, h))), ValueError, "a tuple of 2, expected one ten"),
        (rnn_cell.RNNCell(), NotImplementedError, "state_size"),
    ],
    ids=["none", "structure", "nothing"],
)
def test_errors(cell, error, text):
    with pytest.raises(error, match=text):
        openrnn.nn.dynamic_rnn(cell, draw(T, B, I), dtype="float32")


def test_build_without_a_shape():
    class Ready(Built):
        def build(self, input_shape):
            self.w = self.add_weight("w", (I, U))
            self.r = self.add_weight("r", (U, U))

    for cell in (openrnn.cudnn_rnn.CudnnCompatibleLSTMCell(U), Ready(U)):
        cell.build(None)
        assert cell.built == isinstance(cell, Ready)
        openrnn.nn.dynamic_rnn(cell, draw(T, B, I), dtype="float32")
        assert cell.built
    assert openrnn.global_variables()[0].name == "rnn/cudnn_compatible_lstm_cell/kernel"


def test_it_lives_as_long_as_something_runs_it_and_no_longer(held):
    def recorded():
        x = openrnn.Input(batch_shape=(None, None, I))
        cell = Built(U)
        cell.mine = 2.0
        return openrnn.Model(x, openrnn.nn.dynamic_rnn(cell, x, dtype="float32")[0]), cell.w

    model, w = recorded()
    held.clear()
    gc.collect()
    assert model(draw(B, T, I)).shape == (B, T, U) and model.weights[0] is w
    cell = Built(U)
    openrnn.nn.dynamic_rnn(cell, draw(B, T, I), dtype="float32", scope="other")
    gone = weakref.ref(cell)
    held.clear()
    del cell
    gc.collect()
    assert gone() is None


class Sum(rnn_cell.RNNCell):
    state_size = output_size = 3

    def call(self, inputs, state):
        return state + inputs, state + inputs


class SumInTuple(Sum):
    state_size = (3,)

    def call(self, inputs, state):
        return state[0] + inputs, (state[0] + inputs,)


def test_a_list_of_one_is_no_tensor():
    x = np.ones((2, 3), "float32")
    for cell, given, text in (
        (Sum(), [x], r"the state is a list of 1, expected one tensor as state_size$"),
        (SumInTuple(), x, r"the state is a ndarray, expected a tuple of 1 as state_size$"),
        (SumInTuple(), None, r"the state is None, expected a tuple of 1 as state_size$"),
    ):
        with pytest.raises(openrnn.ArgumentError, match=text):
            cell(x, given)
    assert SumInTuple()(x, [x])[0].numpy().tolist() == (2 * x).tolist()


def test_reuse_and_scopes_are_as_given():
    for reuse in (True, False, None):
        cell = rnn_cell.BasicLSTMCell(4, reuse=reuse)
        assert cell.get_config()["reuse"] is reuse
        assert type(cell).from_config(cell.get_config()).get_config()["reuse"] is reuse
    x = np.ones((2, 3), "float32")
    names = []
    for by_name in (True, False):
        with openrnn.Graph().as_default():
            cell = rnn_cell.BasicLSTMCell(4)
            with openrnn.variable_scope("outer") as scope:
                pass
            cell(x, cell.zero_state(2, "float32"), scope="outer" if by_name else scope)
            names.append([variable.name for variable in cell.weights])
    assert names[0] == names[1] and names[0][0].startswith("outer/")
