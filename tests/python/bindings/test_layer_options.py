"""Options of layers and what a layer says of itself, by what they change."""

import numpy as np
import openrnn
import pytest
from openrnn import cudnn_rnn, layers
from openrnn._files import _whole

X = np.arange(12, dtype="float32").reshape(4, 3)
RECURRENT = [
    cudnn_rnn.CudnnLSTM,
    cudnn_rnn.CudnnGRU,
    cudnn_rnn.CudnnRNNTanh,
    cudnn_rnn.CudnnRNNRelu,
    layers.LSTM,
    layers.GRU,
    layers.RNN,
]


def recurrent(kind, units=4, count=2, **kw):
    return kind(num_layers=count, num_units=units, **kw)


def regularizer(value):
    return openrnn.reduce_sum(value)


@pytest.mark.parametrize("kind", RECURRENT)
def test_a_layer_from_its_config_is_whole(kind):
    ones, twos = openrnn.initializers.constant(1.0), openrnn.initializers.constant(2.0)
    layer = recurrent(
        kind,
        direction="bidirectional",
        dropout=0.25,
        seed=5,
        dtype="float64",
        kernel_initializer=ones,
        bias_initializer=twos,
        name="own",
        trainable=False,
        activity_regularizer=regularizer,
        math="float32",
        device="cpu",
    )
    config = layer.get_config()
    assert config["activity_regularizer"] is regularizer
    wanted = {
        "num_layers": 2,
        "num_units": 4,
        "direction": "bidirectional",
        "dropout": 0.25,
        "seed": 5,
        "dtype": "float64",
        "name": "own",
        "trainable": False,
        "math": "float32",
        "device": "cpu",
    }
    assert {name: config[name] for name in wanted} == wanted
    made = kind.from_config(config)
    assert made.get_config() == config and made.activity_regularizer is regularizer
    made.build((None, None, 3))
    assert set(made.kernel.numpy().tolist()) == {1.0, 2.0} and not made.trainable_weights
    plain = recurrent(kind).get_config()
    assert (
        plain["activity_regularizer"] is None
        and plain["device"] is None
        and plain["trainable"] is True
    )


@pytest.mark.parametrize("batch", [None, 5])
def test_shapes_of_states(batch):
    h = [[4, batch, 4]]
    for kind in (cudnn_rnn.CudnnGRU, cudnn_rnn.CudnnRNNTanh, cudnn_rnn.CudnnRNNRelu):
        assert recurrent(kind, direction="bidirectional").state_shape(batch) == tuple(h)
    lstm = recurrent(cudnn_rnn.CudnnLSTM, direction="bidirectional", num_proj=3)
    assert lstm.state_shape(batch) == ([4, batch, 3], [4, batch, 4])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("given", ["float32", "float64", "lists"])
def test_canonical_tensors_of_any_dtype(dtype, given):
    """They are converted to the network's."""
    layer = recurrent(cudnn_rnn.CudnnGRU, units=2, count=1, dtype=dtype)
    layer.build((None, None, 3))
    op = cudnn_rnn.ops.CudnnGRU(1, 2, 3, dtype=dtype)
    size = op.params_size()
    buffer = (np.arange(size) / 8.0 - 2.0).astype(dtype)
    as_given = (
        (lambda a: np.asarray(a).tolist())
        if given == "lists"
        else (lambda a: np.asarray(a).astype(given))
    )
    weights, biases = op.params_to_canonical(as_given(buffer))
    assert {str(one.dtype) for one in weights + biases} == {dtype}
    joined = np.concatenate([np.asarray(one).ravel() for one in weights + biases])
    np.testing.assert_array_equal(joined, buffer)
    parts = [as_given(one) for one in weights], [as_given(one) for one in biases]
    for made in (op.canonical_to_params(*parts), layer._canonical_to_opaque(*parts)):
        assert str(made.dtype) == dtype
        np.testing.assert_array_equal(made, buffer)


def test_a_state_named_c_and_h():
    """(c, h) of a cell is taken by name, by a layer and by a session."""
    lstm = recurrent(cudnn_rnn.CudnnLSTM, count=1)
    x = np.random.default_rng(1).normal(size=(3, 2, 3)).astype("float32")
    h, c = (np.random.default_rng(n).normal(size=(1, 2, 4)).astype("float32") for n in (2, 3))
    wanted, _ = lstm(x, (h, c), training=False)
    named = openrnn.nn.rnn_cell.LSTMStateTuple(c, h)
    np.testing.assert_array_equal(lstm(x, named, training=False)[0], wanted)
    model = openrnn.PackedModel.from_layer(lstm)
    session = openrnn.InferenceSession(model)
    for state in (
        named,
        (h, c),
        [h, c],
        (openrnn.constant(h), openrnn.constant(c)),
        openrnn.nn.rnn_cell.LSTMStateTuple(openrnn.constant(c), openrnn.constant(h)),
    ):
        np.testing.assert_array_equal(session.run(x, state)[0], wanted)
    pool = openrnn.StreamPool(model, streams=2)
    ids = [pool.join(openrnn.nn.rnn_cell.LSTMStateTuple(c[:, b], h[:, b])) for b in range(2)]
    np.testing.assert_array_equal(pool.step(ids, x[:1]), wanted.numpy()[:1])


def test_inputs_of_a_file_s_model_take_each_their_own_dtype():
    table = np.arange(8, dtype="float32").reshape(4, 2)
    described = [
        {
            "name": "words",
            "kind": "input",
            "inputs": [],
            "options": {"shape": [-1, -1], "dtype": "int32"},
        },
        {
            "name": "row",
            "kind": "embedding",
            "inputs": [("words", 0)],
            "options": {"vocabulary": 4, "dim": 2},
            "weights": {"embeddings": table},
        },
        {"name": "numbers", "kind": "input", "inputs": [], "options": {"shape": [-1, 2]}},
        {
            "name": "dense",
            "kind": "dense",
            "inputs": [("numbers", 0)],
            "options": {"units": 1, "use_bias": False},
            "weights": {"kernel": np.array([[1.0], [2.0]], "float32")},
        },
    ]
    graph = _whole.make_graph(
        [{"weights": {}, **one} for one in described], [("row", 0), ("dense", 0)], lambda name: None
    )
    assert [dtype for dtype, _ in graph.inputs] == ["int32", "float32"]
    for words, numbers in (
        ([[1, 3]], [[0.5, 0.25]]),
        (np.array([[1, 3]], "int64"), np.array([[0.5, 0.25]])),
    ):
        rows, dense = graph.predict([words, numbers])
        np.testing.assert_array_equal(rows, table[[[1, 3]]])
        np.testing.assert_array_equal(dense, [[1.0]])


def test_inputs_of_a_model_take_each_their_own_dtype():
    words, numbers = (
        openrnn.Input((2,), dtype="int32", name="words"),
        openrnn.Input((2,), name="numbers"),
    )
    embedding = layers.Embedding(4, 2)
    model = openrnn.Model([words, numbers], [embedding(words), numbers * 2.0])
    rows, doubled = model([np.array([[1, 3]], "int64"), np.array([[0.5, 0.25]])])
    np.testing.assert_array_equal(rows, embedding.embeddings.numpy()[[[1, 3]]])
    np.testing.assert_array_equal(doubled, [[1.0, 0.5]])
    assert str(doubled.dtype) == "float32"


def test_the_name_of_an_input_names_its_call():
    made = openrnn.Input((2,), name="words")
    doubled = made * 2.0
    model = openrnn.Model(made, doubled)
    calls = model.__reduce__()[2][0][0]
    assert calls[0].__reduce__()[1][0] == "words"


class Both(layers.Layer):
    def call(self, inputs):
        return inputs[0] * inputs[1] + inputs[2]


def test_inbound_layers_beside_constants():
    x = openrnn.Input(batch_shape=(4, 3))
    first, second = layers.Dense(3, name="first"), layers.Dense(3, name="second")
    both = Both()
    both([openrnn.constant(X), first(x), second(x)])
    (node,) = both.inbound_nodes
    assert node.inbound_layers == [first, second] and node.outbound_layer is both
    assert node.input_shapes == [(4, 3)] * 3 and node.output_shapes == [(4, 3)]
    assert first.outbound_nodes == second.outbound_nodes == [node]
    assert [one.is_symbolic for one in node.input_tensors] == [False, True, True]
    again = Both()
    again([first(x), X, x])
    assert again.inbound_nodes[0].inbound_layers == [first]


def test_dropout_follows_its_seed():
    ones = np.ones((2, 100), "float32")

    def mask(seed, graph_seed=3):
        with openrnn.Graph().as_default():
            openrnn.set_random_seed(graph_seed)
            layer = layers.Dropout(0.5, seed=seed)
            assert layer.get_config()["seed"] == seed
            return layer(ones, training=True).numpy()

    np.testing.assert_array_equal(mask(7), mask(7))
    assert (mask(7) != mask(8)).any()
    first, second = layers.Dropout(0.5, seed=7), layers.Dropout(0.5, seed=7)
    np.testing.assert_array_equal(first(ones, training=True), second(ones, training=True))


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("given", [None, False, True])
def test_training_of_a_model_inside_a_model(recorded, given):
    """Of an op-level network with dropout between its layers."""
    op = cudnn_rnn.ops.CudnnRNNTanh(2, 8, 3, dropout=0.5, seed=4)
    params = np.random.default_rng(2).normal(size=op.params_size()).astype("float32")
    states = np.zeros((2, 2, 8), "float32")
    x, y = (openrnn.Input(batch_shape=(4, 2, 3)) for _ in range(2))
    inner = openrnn.Model(x, op(x, states, params, is_training=recorded)[0])
    outer = openrnn.Model(y, inner(y, training=given))
    numbers = np.random.default_rng(1).normal(size=(4, 2, 3)).astype("float32")
    plain = outer(numbers, training=False).numpy()
    drops = recorded if given is None else given
    assert np.array_equal(outer(numbers), plain) != drops
    assert not np.array_equal(outer(numbers, training=True), plain)


SEEDED = [
    (lambda **kw: layers.Dense(5, use_bias=False, **kw), (None, 3)),
    (lambda **kw: layers.Embedding(5, 3, **kw), (None, None)),
    (lambda **kw: cudnn_rnn.CudnnGRU(1, 4, **kw), (None, None, 3)),
]


@pytest.mark.parametrize("make, shape", SEEDED, ids=["dense", "embedding", "gru"])
def test_first_weights_follow_the_seed(make, shape):
    def weights(seed):
        with openrnn.Graph().as_default():
            openrnn.set_random_seed(3)
            layer = make(seed=seed)
            layer.build(shape)
            return layer.get_weights()[0]

    np.testing.assert_array_equal(weights(7), weights(7))
    assert (weights(7) != weights(8)).any()


def test_every_option_of_simple_layers():
    dense = layers.Dense(
        2,
        "relu",
        True,
        "ones",
        lambda shape, dtype: np.full(shape, -3.0, dtype),
        "own",
        dtype="float64",
        trainable=False,
        device="cpu",
    )
    np.testing.assert_array_equal(dense([[1.0, 1.5], [2.0, 4.0]]), [[0.0, 0.0], [3.0, 3.0]])
    assert (dense.name, dense.dtype, dense.device, dense.trainable) == (
        "own",
        "float64",
        "cpu",
        False,
    )
    assert (
        dense.bias.numpy().tolist() == [-3.0, -3.0]
        and dense.kernel.numpy().tolist() == [[1.0, 1.0]] * 2
    )
    embedding = layers.Embedding(
        3, 2, "ones", "table", dtype="float64", trainable=False, device="cpu"
    )
    assert embedding([[0, 2]]).numpy().tolist() == [[[1.0, 1.0], [1.0, 1.0]]]
    assert (embedding.name, embedding.dtype, embedding.device) == ("table", "float64", "cpu")
    assert not embedding.trainable and embedding.embeddings.shape == (3, 2)
    dropout = layers.Dropout(0.25, name="drop")
    assert (dropout.name, dropout.rate) == ("drop", 0.25)
    for name, function in (
        ("tanh", np.tanh),
        ("sigmoid", lambda x: 1 / (1 + np.exp(-x))),
        ("linear", lambda x: x),
        ("relu", lambda x: np.maximum(x, 0)),
    ):
        layer = layers.Dense(1, name, kernel_initializer="ones", dtype="float64")
        np.testing.assert_allclose(
            layer([[0.5], [-0.25]]), function(np.array([[0.5], [-0.25]])), rtol=1e-15
        )
