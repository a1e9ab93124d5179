"""PackedModel, InferenceSession and StreamPool give what the layers give."""

import threading

import numpy as np
import openrnn
import pytest
from openrnn import cudnn_rnn

T, B, I, U = 5, 3, 4, 6
KINDS = ["CudnnLSTM", "CudnnGRU", "CudnnRNNTanh", "CudnnRNNRelu"]


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def make_layer(kind="CudnnLSTM", **options):
    layer = getattr(cudnn_rnn, kind)(2, U, seed=1, **options)
    layer.build((None, None, I))
    return layer


@pytest.mark.parametrize("direction", ["unidirectional", "bidirectional"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_session_gives_the_bits_of_the_layer(kind, direction):
    layer = make_layer(kind, direction=direction)
    model = openrnn.PackedModel.from_layer(layer)
    x, lengths = draw(T, B, I), [5, 0, 3]
    state = [draw(*shape, seed=2) for shape in model._state_shapes(B)]
    wanted, wanted_state = layer(x, tuple(state), sequence_lengths=lengths, training=False)
    session = openrnn.InferenceSession(model)
    session.prepare(B, T)
    output, new_state = session.run(x, state, lengths)
    np.testing.assert_array_equal(output, wanted.numpy())
    assert len(new_state) == len(wanted_state)
    for ours, theirs in zip(new_state, wanted_state, strict=True):
        np.testing.assert_array_equal(ours, theirs.numpy())
    transposed = [part.swapaxes(0, 1) for part in state]
    batch_major, other_state = session.run(x.swapaxes(0, 1), transposed, lengths, time_major=False)
    np.testing.assert_array_equal(batch_major.swapaxes(0, 1), output)
    for ours, theirs in zip(other_state, new_state, strict=True):
        assert ours.shape[:2] == (B, model._state_shapes(B)[0][0])
        np.testing.assert_array_equal(ours.swapaxes(0, 1), theirs)
    output[:] = 0.0  # the caller's own


def test_states_are_taken_by_name_and_layout():
    layer, x = make_layer(), draw(T, 2, I)
    session = openrnn.InferenceSession(openrnn.PackedModel.from_layer(layer))
    h, c = draw(2, 2, U, seed=3), draw(2, 2, U, seed=4)
    named = openrnn.nn.rnn_cell.LSTMStateTuple(c, h)
    np.testing.assert_array_equal(session.run(x, named)[0], session.run(x, (h, c))[0])
    pool = openrnn.StreamPool(session._model, streams=2)
    by_name = pool.join(openrnn.nn.rnn_cell.LSTMStateTuple(c[:, 0], h[:, 0]))
    for ours, given in zip(pool.read(by_name), (h, c), strict=True):
        np.testing.assert_array_equal(ours, given[:, 0])
    # As many rows as layers: the shape does not tell, the state does.
    _, state = layer(x, training=False)
    wanted = session.run(x, [part.numpy() for part in state])[0]
    output, _ = session.run(x.swapaxes(0, 1), state, time_major=False)
    np.testing.assert_array_equal(output.swapaxes(0, 1), wanted)


def test_arguments_are_those_of_the_network():
    layer = make_layer("CudnnLSTM", num_proj=3)
    spec = {"num_layers": 2, "num_units": U, "input_size": I, "num_proj": 3}
    model = openrnn.PackedModel(layer.kernel, "lstm", **spec)
    assert model.spec.items() >= {"rnn_mode": "lstm", "direction": "unidirectional"}.items()
    assert model.spec.items() >= spec.items()
    again = openrnn.PackedModel(layer.kernel.numpy(), **model.spec)
    x = draw(T, B, I)
    output, (h, c) = openrnn.InferenceSession(again).run(x)
    np.testing.assert_array_equal(output, layer(x, training=False)[0].numpy())
    assert (h.shape, c.shape) == ((2, B, 3), (2, B, U))
    # It has a copy: later values of the variable change nothing.
    layer.kernel.assign(np.zeros(layer.kernel.shape))
    np.testing.assert_array_equal(openrnn.InferenceSession(again).run(x)[0], output)
    assert "rnn_mode='lstm'" in repr(model)
    # A number always, where a layer says None.
    plain = make_layer("CudnnGRU")
    assert plain.num_proj is None
    assert openrnn.PackedModel.from_layer(plain).spec["num_proj"] == 0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_dtypes_and_lists(dtype):
    layer = make_layer("CudnnGRU", dtype=dtype)
    x = np.arange(2 * 1 * I).reshape(2, 1, I) / 8
    session = openrnn.InferenceSession(openrnn.PackedModel.from_layer(layer))
    output, _ = session.run(x.tolist())
    assert output.dtype == dtype and output.flags.writeable
    np.testing.assert_array_equal(output, layer(x.astype(dtype), training=False)[0].numpy())


def test_weights_of_fewer_bits():
    layer = make_layer()
    x = draw(T, B, I)
    exact = openrnn.InferenceSession(openrnn.PackedModel.from_layer(layer)).run(x)[0]
    small = openrnn.PackedModel.from_layer(layer, weights_dtype="int8")
    assert small.spec["weights_dtype"] == "int8"
    rounded = openrnn.InferenceSession(small).run(x)[0]
    assert 0.0 < abs(rounded - exact).max() < 0.05


def test_sequences_may_be_cut_and_empty():
    session = openrnn.InferenceSession(openrnn.PackedModel.from_layer(make_layer()))
    x = draw(T, B, I)
    whole, last = session.run(x)
    first, state = session.run(x[:2])
    second, state = session.run(x[2:], state)
    np.testing.assert_array_equal(np.concatenate([first, second]), whole)
    np.testing.assert_array_equal(state[1], last[1])
    assert session.run(x[:, :0])[0].shape == (T, 0, U)
    output, same = session.run(x[:0], state)
    assert output.shape == (0, B, U)
    np.testing.assert_array_equal(same[0], state[0])


def test_threads_share_a_model():
    model = openrnn.PackedModel.from_layer(make_layer())
    inputs = [draw(T, B, I, seed=seed) for seed in range(4)]
    wanted = [openrnn.InferenceSession(model).run(x)[0] for x in inputs]
    shared, found = openrnn.InferenceSession(model), {}

    def work(i):
        own = openrnn.InferenceSession(model)
        found[i] = [one.run(inputs[i])[0] for _ in range(20) for one in (own, shared)]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, outputs in found.items():
        assert all(np.array_equal(output, wanted[i]) for output in outputs)


def test_threads_share_a_pool():
    """Calls of one pool wait for each other: each thread's stream has the bits that it has alone."""
    layer = cudnn_rnn.CudnnGRU(2, 64, seed=1)
    layer.build((None, None, I))
    model, steps = openrnn.PackedModel.from_layer(layer), 16
    inputs = [draw(steps, 1, I, seed=seed) for seed in range(4)]
    wanted = [openrnn.InferenceSession(model).run(x) for x in inputs]
    pool, found = openrnn.StreamPool(model, streams=4, time=steps), {}

    def work(i):
        x, wanted_state, found[i] = inputs[i], wanted[i][1][0][:, 0], []
        stream = pool.join()
        for turn in range(60):
            found[i].append(pool.step([stream], x))
            np.testing.assert_array_equal(pool.read(stream)[0], wanted_state)
            if turn % 2:
                pool.reset(stream)
            else:
                pool.leave(stream)
                stream = pool.join()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(pool) == 4
    for i, outputs in found.items():
        assert len(outputs) == 60
        assert all(np.array_equal(output, wanted[i][0]) for output in outputs)


@pytest.mark.parametrize("kind", ["CudnnLSTM", "CudnnGRU"])
def test_streams_step_as_if_alone(kind):
    model = openrnn.PackedModel.from_layer(make_layer(kind))
    session = openrnn.InferenceSession(model)
    pool = openrnn.StreamPool(model, streams=3, batch=2, time=2)
    x = draw(4, 3, I)
    start = tuple(draw(*shape, seed=3) for shape in model._state_shapes(None))
    a, b, c = pool.join(), pool.join(start), pool.join()
    assert len({a, b, c}) == 3 and len(pool) == 3 and a in pool and pool.model is model
    np.testing.assert_array_equal(pool.read(b)[0], start[0])
    with pytest.raises(openrnn.StateError):
        pool.join()
    first = pool.step([b, a], x[:2, [1, 0]])
    second = pool.step([a, b], x[2:, [0, 1]].swapaxes(0, 1), time_major=False)
    alone, state = session.run(x[:, :1])
    np.testing.assert_array_equal(np.concatenate([first[:, 1], second[0]]), alone[:, 0])
    for ours, theirs in zip(pool.read(a), state, strict=True):
        np.testing.assert_array_equal(ours, theirs[:, 0])
    of_b, _ = session.run(x[:, 1:2], [part[:, None] for part in start])
    np.testing.assert_array_equal(np.concatenate([first[:, 0], second[1]]), of_b[:, 0])
    assert pool.step([c], x[:2, 2:], sequence_lengths=[0]).shape == (2, 1, U)
    assert not pool.read(c)[0].any()
    pool.reset(b)
    assert not any(part.any() for part in pool.read(b))
    pool.reset(b, start)
    for ours, theirs in zip(pool.read(b), start, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    pool.leave(a)
    assert a not in pool and len(pool) == 2


def message(kind, call):
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


def test_errors():
    model = openrnn.PackedModel.from_layer(make_layer())
    session, pool = openrnn.InferenceSession(model), openrnn.StreamPool(model, streams=2)
    x = draw(T, B, I)
    bad = ValueError
    assert message(bad, lambda: session.run(x[..., :2])) == (
        "[run] inputs have shape [5, 3, 2], expected [T, B, I] with I = 4"
    )
    assert message(bad, lambda: session.run(x, [draw(2, B, U)])) == (
        "[run] a state of 1 arrays, expected 2: (h, c)"
    )
    assert message(bad, lambda: session.run(x, [draw(2, B, U), draw(2, 1, U)])) == (
        "[run] c has shape [2, 1, 6], expected [2, 3, 6]"
    )
    assert message(bad, lambda: session.run(x, None, [1, 2])).startswith(
        "[run] sequence_lengths are int64 of shape [2], expected integers of shape [3]"
    )
    assert "expected" in message(bad, lambda: session.run(x, None, [1, 2, 6]))
    assert "expected" in message(bad, lambda: session.run(x, None, [1, -2, 5]))
    assert message(TypeError, lambda: session.run(np.array([[["a"] * I]]))).startswith(
        "[run] inputs is of dtype"
    )
    assert "expected" in message(bad, lambda: session.prepare(-1, 2))
    assert message(bad, lambda: pool.step([1, 2], x[:1])) == (
        "[step] inputs for 3 streams, expected 2, as ids"
    )
    stream = pool.join()
    assert "not open" in message(bad, lambda: pool.step([stream + 1], x[:1, :1]))
    assert "expected" in message(bad, lambda: pool.step([stream], x[:2, :1]))
    assert "not open" in message(bad, lambda: pool.leave(99))
    assert "expected" in message(bad, lambda: openrnn.StreamPool(model, streams=0))
    for made in (
        lambda: openrnn.InferenceSession(model, max_threads=-1),
        lambda: openrnn.PackedModel.from_layer(make_layer(), max_threads=-1),
    ):
        assert "max_threads is -1, expected 0 or more" in message(bad, made)
    threads = message(bad, lambda: openrnn.StreamPool(model, streams=1, max_threads=-1))
    assert "and -1 threads, expected" in threads
    sizes = {"num_layers": 1, "num_units": U, "input_size": I}
    assert "expected" in message(bad, lambda: openrnn.PackedModel(draw(7), "lstm", **sizes))
    assert "expected" in message(
        bad, lambda: openrnn.PackedModel(draw(7), "lstm", **sizes, direction="sideways")
    )
    with pytest.raises(ValueError, match="build"):
        openrnn.PackedModel.from_layer(cudnn_rnn.CudnnLSTM(1, U))
    assert message(TypeError, lambda: openrnn.PackedModel.from_layer(openrnn.layers.Dense(1))) == (
        "[from_layer] layer is a Dense, expected a recurrent layer, such "
        "as layers.LSTM or cudnn_rnn.CudnnLSTM"
    )
    assert message(TypeError, lambda: openrnn.InferenceSession(None)) == (
        "[InferenceSession] model is 'NoneType', expected PackedModel"
    )
    assert message(TypeError, lambda: pool.step(1, x[:1])) == (
        "[step] ids is 'int', expected a list of streams"
    )


@pytest.mark.parametrize("length", [2**32 + 1, 1 - 2**32])
def test_lengths_beyond_32_bits_are_refused(length):
    session = openrnn.InferenceSession(openrnn.PackedModel.from_layer(make_layer()))
    text = message(ValueError, lambda: session.run(draw(T, 1, I), sequence_lengths=np.array([length])))
    shown = 2**31 - 1 if length > 0 else -1  # the nearest that an int32 holds, or any that is below 0
    assert text == f"[run] sequence_lengths[0] is {shown}, expected 0 to {T}"
    text = message(ValueError, lambda: session.run(draw(T, 1, I), sequence_lengths=np.array([T, T])))
    assert text == "[run] sequence_lengths are int64 of shape [2], expected integers of shape [1]"


def test_a_stream_joins_with_the_state_of_a_projected_network():
    layer, x = make_layer(num_proj=3), draw(1, 1, I)
    h, c = draw(2, 3), draw(2, U, seed=1)
    pool = openrnn.StreamPool(openrnn.PackedModel.from_layer(layer))
    stream = pool.join((h, c))
    wanted, states = layer(x, (h[:, None], c[:, None]), training=False)
    np.testing.assert_array_equal(pool.step([stream], x), wanted.numpy())
    for ours, theirs in zip(pool.read(stream), states, strict=True):
        np.testing.assert_array_equal(ours, theirs.numpy()[:, 0])


def test_states_that_may_only_be_read():
    """What a stream or a call begins with is not written to."""
    layer, x = make_layer(), draw(2, 1, I)
    h, c = draw(2, U), draw(2, U, seed=1)
    h.flags.writeable = c.flags.writeable = False
    model = openrnn.PackedModel.from_layer(layer)
    wanted = layer(x, (h[:, None], c[:, None]), training=False)[0].numpy()
    pool = openrnn.StreamPool(model, time=2)
    stream = pool.join((h, c))
    for _ in range(2):
        np.testing.assert_array_equal(pool.step([stream], x), wanted)
        pool.reset(stream, (h, c))
    found = openrnn.InferenceSession(model).run(x, (h[:, None], c[:, None]))[0]
    np.testing.assert_array_equal(found, wanted)
