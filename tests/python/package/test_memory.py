"""What a call borrows, what it copies, and what other threads may do meanwhile."""

import resource
import sys
import threading

import numpy as np
import openrnn
import pytest

T, B, I, U = 5, 3, 4, 6  # noqa: E741


def draw(*shape, seed=3):
    return np.random.default_rng([seed, *shape]).uniform(-1, 1, shape).astype(np.float32)


def gradients_after(change):
    """Gradients of a layer's call, where `change` acts on the input between call and gradient."""
    openrnn.reset_default_graph()
    layer = openrnn.cudnn_rnn.CudnnLSTM(1, U, seed=5, name="layer")
    x, h, c = draw(T, B, I), draw(1, B, U), draw(1, B, U, seed=4)
    layer.build((None, None, I))
    with openrnn.GradientTape() as tape:
        output, states = layer(x, (h, c))
        loss = openrnn.reduce_sum(openrnn.square(output)) + openrnn.reduce_sum(states[1])
    change(x, h, c)
    return tape.gradient(loss, layer.trainable_weights)[0].numpy()


def test_changing_an_input_after_the_call_does_not_change_the_gradient():
    def spoil(*arrays):
        for array in arrays:
            array[:] = np.nan

    np.testing.assert_array_equal(gradients_after(spoil), gradients_after(lambda *a: None))


def test_a_view_that_is_released_leaves_nothing():
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()

    tensor = openrnn.constant(draw(2, 3))
    for _ in range(1000):
        memoryview(tensor).release()
    before = resident()
    for _ in range(100_000):
        memoryview(tensor).release()
    # What a view keeps, left behind, would be 14 MB.
    assert resident() - before < 6 << 20


@pytest.mark.parametrize("how", ["save", "op level"])
def test_other_calls_that_are_differentiated_copy_too(how):
    found = []
    for spoil in (False, True):
        openrnn.reset_default_graph()
        x = draw(T, B, I)
        with openrnn.GradientTape() as tape:
            if how == "save":
                layer = openrnn.cudnn_rnn.CudnnGRU(1, U, seed=5)
                output, _ = layer(x, training=False, save=True)
                kernel = layer.kernel
            else:
                model = openrnn.cudnn_rnn.ops.CudnnGRU(1, U, I)
                kernel = openrnn.Variable(draw(model.params_size()))
                h = draw(1, B, U)
                output, _ = model(x, h, kernel)
                h[:] = np.nan if spoil else h
            loss = openrnn.reduce_sum(output)
        x[:] = np.nan if spoil else x
        found.append(tape.gradient(loss, kernel).numpy())
    np.testing.assert_array_equal(*found)


def test_an_input_is_not_copied_where_nothing_is_saved():
    """The array is exported while the call computes, and let go of after it."""
    layer = openrnn.cudnn_rnn.CudnnLSTM(1, U)
    x = draw(T, B, I)
    before = sys.getrefcount(x)
    output, _ = layer(x, training=False)
    wanted = output.numpy().copy()
    assert sys.getrefcount(x) == before
    x.resize((T, B, I), refcheck=False)  # NumPy refuses while a buffer is exported
    x[:] = np.nan
    np.testing.assert_array_equal(output.numpy(), wanted)


def test_inputs_that_need_a_conversion():
    layer = openrnn.cudnn_rnn.CudnnGRU(1, U, seed=2)
    x = draw(T, B, I)
    wanted = layer(x)[0].numpy()
    wide = np.zeros((T, B, 2 * I), np.float32)
    wide[:, :, ::2] = x
    for given in (x.astype(np.float64), wide[:, :, ::2], np.asfortranarray(x), x.tolist()):
        np.testing.assert_array_equal(layer(given)[0].numpy(), wanted)


def test_assign_is_seen_by_the_next_call():
    layer = openrnn.cudnn_rnn.CudnnRNNTanh(1, U)
    x = draw(T, B, I)
    first = layer(x, training=False)[0].numpy()
    layer.kernel.assign(np.zeros(layer.count_params()))
    assert np.abs(first).max() > 0.0
    np.testing.assert_array_equal(layer(x, training=False)[0].numpy(), 0.0)
    layer.kernel.assign_add(np.full(layer.count_params(), 0.25))
    assert layer(x, training=False)[0].numpy().any()


def test_a_variable_s_array_is_a_snapshot():
    variable = openrnn.Variable([1.0, 2.0])
    array, version = variable.numpy(), variable.version
    variable.assign([3.0, 4.0])
    assert variable.version > version and array.tolist() == [1.0, 2.0]
    assert variable.numpy().tolist() == [3.0, 4.0]
    with pytest.raises(ValueError):
        array[0] = 0.0


def test_a_long_call_lets_other_threads_run():
    """The other thread stops the call's loop only by making progress during a call."""
    layer = openrnn.cudnn_rnn.CudnnLSTM(2, 256)
    x = draw(60, 16, 64)
    layer.build((None, None, 64))
    inside, seen = threading.Event(), threading.Event()
    interval = sys.getswitchinterval()

    def watch():
        inside.wait()
        seen.set()

    other = threading.Thread(target=watch)
    other.start()
    sys.setswitchinterval(1000.0)  # no thread loses the interpreter lock but by giving it away
    try:
        inside.set()
        for _ in range(200):
            layer(x, training=False)
            if seen.is_set():
                break
        assert seen.is_set()
    finally:
        sys.setswitchinterval(interval)
        other.join()


@pytest.mark.parametrize("built", [False, True])
def test_threads_that_share_a_layer(built):
    calls = []

    def initializer(shape, dtype=None):
        calls.append(shape)
        return draw(*shape)

    layer = openrnn.cudnn_rnn.CudnnLSTM(2, U, dropout=0.5, kernel_initializer=initializer)
    x = draw(T, B, I)
    if built:
        layer.build((None, None, I))
    found, errors = [], []

    def work():
        try:
            for _ in range(20):
                layer(x)
                found.append(layer(x, training=False)[0].numpy())
        except BaseException as error:  # noqa: BLE001 - the main thread says what it was
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == [] and len(found) == 80 and len(calls) == 16
    for array in found:
        np.testing.assert_array_equal(array, found[0])
    assert layer.dropout_calls == 80


def test_errors_of_python_callables_come_through():
    class OwnError(Exception):
        pass

    def fail(shape, dtype=None):
        raise OwnError(shape)

    layer = openrnn.cudnn_rnn.CudnnGRU(1, U, kernel_initializer=fail)
    with pytest.raises(OwnError):
        layer(draw(T, B, I))
    assert not layer.built and openrnn.global_variables() == []
    wrong = openrnn.cudnn_rnn.CudnnGRU(1, U, kernel_initializer=lambda shape, dtype: draw(2))
    with pytest.raises(ValueError, match=r"\[initializer\].*expected float32 of shape"):
        wrong(draw(T, B, I))


def spoil(array):
    array.fill(np.nan if array.dtype.kind == "f" else 0)


@pytest.mark.parametrize("kind", ["layer", "op level"])
@pytest.mark.parametrize("place", range(5))
def test_a_recorded_call_keeps_copies(place, kind):
    """Of everything beside the one argument that is symbolic."""
    model = openrnn.cudnn_rnn.ops.CudnnLSTM(1, U, I)
    layer = openrnn.cudnn_rnn.CudnnLSTM(1, U, seed=5)
    layer.build((None, None, I))
    if kind == "layer" and place == 3:
        return
    arrays = [draw(T, B, I), draw(1, B, U), draw(1, B, U, seed=4), draw(model.params_size()),
              np.array([5, 2, 3], "int32")]  # fmt: skip

    def call(x, h, c, params, lengths):
        if kind == "layer":
            return layer(x, (h, c), sequence_lengths=lengths, training=False)[0]
        return model(x, h, c, params, is_training=False, sequence_lengths=lengths)[0]

    wanted = call(*arrays).numpy()
    given = [array.copy() for array in arrays]
    given[place] = openrnn.Input(batch_shape=arrays[place].shape, dtype=arrays[place].dtype)
    made = openrnn.Model(given[place], call(*given))
    for n, array in enumerate(given):
        if n != place:
            spoil(array)
    np.testing.assert_array_equal(made(arrays[place]), wanted)


@pytest.mark.parametrize("kind", ["layer", "op level"])
def test_a_differentiated_call_keeps_copies_of_every_array(kind):
    model = openrnn.cudnn_rnn.ops.CudnnLSTM(1, U, I)
    found = []
    for change in (lambda array: None, spoil):
        openrnn.reset_default_graph()
        layer = openrnn.cudnn_rnn.CudnnLSTM(1, U, seed=5)
        layer.build((None, None, I))
        x, h, c = draw(T, B, I), draw(1, B, U), openrnn.Variable(draw(1, B, U, seed=4))
        params = draw(model.params_size())
        with openrnn.GradientTape() as tape:
            if kind == "layer":
                output = layer(x, (h, c), training=False, save=True)[0]
            else:
                output = model(x, h, c, params)[0]
            loss = openrnn.reduce_sum(openrnn.square(output))
        for array in (x, h, params):
            change(array)
        found.append(tape.gradient(loss, c).numpy())
    assert np.abs(found[0]).max() > 1e-3
    np.testing.assert_array_equal(*found)
