"""Which call an error names, and what it says of a value that no call takes."""

import numpy as np
import openrnn
import pytest
from openrnn import cudnn_rnn, layers, nn, train
from openrnn.nn import rnn_cell

WORDS = np.array(["a"])
X, STATE = np.zeros((2, 3, 4), "float32"), np.zeros((1, 3, 5), "float32")
PARAMS, RAGGED = np.zeros(220, "float32"), [[1]]
ANY = "an array of <U1, expected float16, bfloat16, float32, float64, int32, int64, uint8 or bool"
LENGTHS = "sequence lengths are int32 of shape [1, 1], expected one integer for each row: shape [batch]"
SHAPE, FUNCTION = "'str' as a shape, expected a tuple", "'int', expected a function of a Tensor"
INTEGER, FLAG = "'str', expected an integer", "'str', expected True or False"
BOUNDS = "gate_clip is 'str', expected two numbers, or one for both sides of 0"


@pytest.fixture(autouse=True)
def own_graph():
    with openrnn.Graph().as_default():
        yield


# Functions of one array, by the name that an error gives.
UNARY = {
    "relu": nn.relu, "tanh": openrnn.tanh, "sqrt": openrnn.sqrt, "exp": openrnn.exp,
    "negative": openrnn.negative, "square": openrnn.square, "abs": openrnn.abs,
    "stop_gradient": openrnn.stop_gradient, "unstack": openrnn.unstack, "log": openrnn.log,
    "logical_not": openrnn.logical_not, "softplus": nn.softplus, "full_like": openrnn.zeros_like,
    "argmax": openrnn.argmax, "argmin": openrnn.argmin, "softmax": nn.softmax,
    "log_softmax": nn.log_softmax, "transpose": openrnn.transpose, "squeeze": openrnn.squeeze,
    "reduce_sum": openrnn.reduce_sum, "reduce_max": openrnn.reduce_max, "Tensor": openrnn.constant,
    "l1": openrnn.regularizers.l1(0.5), "l2": openrnn.regularizers.l2(0.5),
}  # fmt: skip
FUNCTIONS = [
    ("cast", lambda: openrnn.cast(WORDS, "float32"), ANY),
    ("dropout", lambda: nn.dropout(WORDS, 0.5), ANY),
    ("matmul", lambda: openrnn.matmul(WORDS, X), ANY),
    ("matmul", lambda: openrnn.matmul(X, WORDS), ANY),
    ("embedding_lookup", lambda: nn.embedding_lookup(WORDS, [1]), ANY),
    ("embedding_lookup", lambda: nn.embedding_lookup(X[0], WORDS), ANY),
    ("one_hot", lambda: openrnn.one_hot(WORDS, 3), ANY),
    ("one_hot", lambda: openrnn.one_hot([0.5], 3),
     "values of float64 that int32 does not hold, expected whole numbers in its range"),
    ("softmax_cross_entropy", lambda: openrnn.losses.sparse_softmax_cross_entropy([0], WORDS), ANY),
    ("softmax_cross_entropy", lambda: openrnn.losses.sparse_softmax_cross_entropy(WORDS, X[0]), ANY),
    ("mean_squared_error", lambda: openrnn.losses.mean_squared_error(X, WORDS), ANY),
    ("reshape", lambda: openrnn.reshape(WORDS, (1,)), ANY),
    ("reshape", lambda: openrnn.reshape(X, "a"), SHAPE),
    ("reshape", lambda: openrnn.reshape(X, (2.5,)), "'float', expected an integer"),
    ("reshape", lambda: openrnn.reshape(X, None),
     "the shape is None: its rank is unknown, expected a tuple of sizes, None for a size that is not known"),
    ("add_n", lambda: openrnn.add_n([WORDS]), ANY),
    ("add_n", lambda: openrnn.add_n(3), "'int' is given, expected a list or a tuple"),
    ("concat", lambda: openrnn.concat([WORDS], 0), ANY),
    ("stack", lambda: openrnn.stack([WORDS]), ANY),
    ("split", lambda: openrnn.split(WORDS, [1], 0), ANY),
    ("reverse_sequence", lambda: openrnn.reverse_sequence(WORDS, [1]), ANY),
    ("reverse_sequence", lambda: openrnn.reverse_sequence(X, RAGGED), LENGTHS),
    ("clip_by_global_norm", lambda: openrnn.clip_by_global_norm([WORDS], 1.0), ANY),
    ("where", lambda: openrnn.where(WORDS, X, X), ANY),
    ("clip_by_value", lambda: openrnn.clip_by_value(WORDS, 0, 1), ANY),
    ("broadcast_to", lambda: openrnn.broadcast_to(WORDS, (1,)), ANY),
    ("broadcast_to", lambda: openrnn.broadcast_to(X, "a"), SHAPE),
    ("tile", lambda: openrnn.tile(WORDS, [1]), ANY),
    ("expand_dims", lambda: openrnn.expand_dims(WORDS, 0), ANY),
    ("gather", lambda: openrnn.gather(WORDS, [0]), ANY),
    ("gather", lambda: openrnn.gather(X, WORDS), ANY),
    ("einsum", lambda: openrnn.einsum("a->a", WORDS), ANY),
    ("ctc_loss", lambda: nn.ctc_loss([[1]], WORDS), ANY),
    ("ctc_loss", lambda: nn.ctc_loss(WORDS, X), ANY),
    ("ctc_loss", lambda: nn.ctc_loss([[1]] * 3, X, label_length=RAGGED), LENGTHS),
    ("ctc_loss", lambda: nn.ctc_loss([[1]] * 3, X, logit_length=RAGGED), LENGTHS),
    ("reduce_sum", lambda: openrnn.reduce_sum(X, "a"), INTEGER),
    ("sum", lambda: openrnn.Tensor(X).sum("a"), INTEGER),
    ("max", lambda: openrnn.Variable(X).max("a"), INTEGER),
    ("reshape", lambda: openrnn.Tensor(X).reshape("a"), SHAPE),
    ("transpose", lambda: openrnn.Tensor(X).transpose("a", "b", "c"), INTEGER),
    ("assign", lambda: openrnn.Variable(1.0).assign(WORDS), "an array of <U1, expected float32"),
    ("assign_add", lambda: openrnn.Variable(np.zeros(1)).assign_add(WORDS), "an array of <U1, expected float64"),
    ("assign_sub", lambda: openrnn.Variable(1.0).assign_sub(openrnn.Input((1,))),
     "a symbolic tensor, expected one with a value"),
    ("add_to_collection", lambda: openrnn.Graph().add_to_collection("regularization_losses", "a"), ANY),
    ("get_variable", lambda: openrnn.get_variable("w", "a"), SHAPE),
    ("get_variable", lambda: openrnn.get_variable("w", (2,), regularizer=3), FUNCTION),
    ("get_variable", lambda: openrnn.get_variable("w", (2,), constraint=3), FUNCTION),
    ("Input", lambda: openrnn.Input(batch_shape="a"), SHAPE),
    ("device", lambda: openrnn.constant(1.0, device=3),
     "'int' is given, expected a name such as 'cpu' or 'gpu:0', or None"),
    ("dtype", lambda: openrnn.constant(1.0, dtype=3), "'int' is given, expected a dtype such as 'float32'"),
    ("dtype", lambda: openrnn.cast(1.0, None), "None is given, expected a dtype"),
    ("explain", lambda: openrnn.explain(num_units="a"), "num_units is 'str', expected an integer"),
    ("explain", lambda: openrnn.explain(num_units=None), "num_units is 'NoneType', expected an integer"),
    ("reverse_sequence", lambda: openrnn.reverse_sequence(X, openrnn.Input(batch_shape=(3,), dtype="int32")),
     "sequence lengths are int32 of shape [3], expected one integer for each row: shape [batch]"),
    ("explain", lambda: openrnn.explain(num_units=4, input_size=3, save="a"),
     "save is 'a', expected False, True, 'inputs' or a number of time steps"),
]  # fmt: skip


def lstm(dtype="float32"):
    layer = cudnn_rnn.CudnnLSTM(1, 5, name="seq", dtype=dtype)
    layer.build((None, None, 4))
    return layer


def dense(**options):
    layer = layers.Dense(2, **options)
    layer.build((None, 4))
    return layer


def own(call, **options):
    return type("Own", (layers.Layer,), {"call": call})(**options)


def model():
    x, y = openrnn.Input(batch_shape=(None, 2)), openrnn.Input(batch_shape=(None, 2), dtype="float64")
    return openrnn.Model([x, y], [x * 2.0, y * 2.0])


FLOAT32 = "an array of <U1, expected float32"
FLOAT64 = "an array of <U1, expected float64"
LAYERS = [
    ("seq", lambda: lstm("float64")(WORDS), FLOAT64),
    ("seq", lambda: lstm()(X, (WORDS, WORDS)), FLOAT32),
    ("seq", lambda: lstm()(X, training="a"), "training is " + FLAG),
    ("seq", lambda: lstm()(X, sequence_lengths=RAGGED), LENGTHS),
    ("seq", lambda: lstm()(X, sequence_lengths=[1, -2, 3]),
     "the length of row 1 is -2, expected 0 to max_time"),
    ("seq", lambda: lstm()(X, sequence_lengths=np.array([1, 2, 2**31])),
     "the length of row 2 is 2147483648, expected 0 to max_time"),
    ("seq", lambda: lstm()(X, sequence_lengths=[1.0, 2.0, 3.0]),
     "sequence lengths are float32 of shape [3], expected one integer for each row: shape [batch]"),
    ("seq", lambda: lstm()(X, save="a"), "save is 'a', expected False, True, 'inputs' or a number of time steps"),
    ("seq", lambda: lstm()(X, save=0), "save is 0, expected False, True, 'inputs' or a number of time steps"),
    ("seq", lambda: lstm()(X, ()), "an initial_state of 0 tensors, expected one tensor for each of its states"),
    ("seq", lambda: lstm()(X, 3.0), "initial_state is 'float', expecting tuple"),
    ("state_shape", lambda: lstm().state_shape("a"), INTEGER),
    ("arguments", lambda: cudnn_rnn.CudnnLSTM(1, 5, name=3), "name is 'int', expected a string"),
    ("arguments", lambda: cudnn_rnn.CudnnLSTM("a", 5), "num_layers is " + INTEGER),
    ("arguments", lambda: layers.Dense("a"), "units is " + INTEGER),
    ("arguments", lambda: layers.Dense(2, seed="a"), "seed is " + INTEGER),
    ("arguments", lambda: layers.Dense(2, name=3), "name is 'int', expected a string"),
    ("arguments", lambda: layers.Layer(trainable="a"), "trainable is " + FLAG),
    ("arguments", lambda: rnn_cell.RNNCell(trainable="a"), "trainable is " + FLAG),
    ("set_weights", lambda: lstm().set_weights(3), "'int', expected a list of arrays"),
    ("set_weights", lambda: lstm("float64").set_weights([WORDS]), FLOAT64),
    ("build", lambda: layers.Dense(2).build("a"), SHAPE),
    ("add_weight", lambda: layers.Layer().add_weight("w", "a"), SHAPE),
    ("add_weight", lambda: layers.Layer().add_weight("w", (2,), regularizer=3), FUNCTION),
    ("add_weight", lambda: layers.Layer().add_weight("w", (2,), constraint=3), FUNCTION),
    ("add_weight", lambda: layers.Layer().add_weight("w", (2,), dtype="uint8"),
     "there is no default initializer for uint8, expected one"),
    ("activity_regularizer", lambda: setattr(dense(), "activity_regularizer", 3), FUNCTION),
    ("activity_regularizer", lambda: cudnn_rnn.CudnnGRU(1, 2, activity_regularizer=3), FUNCTION),
    ("add_loss", lambda: dense(dtype="float64").add_loss(WORDS), FLOAT64),
    ("add_loss", lambda: dense().add_loss(openrnn.Tensor(1.0), inputs=WORDS), ANY),
    ("add_loss", lambda: dense().add_loss(lambda: WORDS, inputs=X), ANY),
    ("get_losses_for", lambda: dense().get_losses_for(WORDS), ANY),
    ("add_update", lambda: dense().add_update(print, inputs=WORDS), ANY),
    ("get_updates_for", lambda: dense().get_updates_for(WORDS), ANY),
    ("compute_output_shape", lambda: dense().compute_output_shape("a"), SHAPE),
    ("shown", lambda: dense(name="shown", dtype="float64")(WORDS), FLOAT64),
    ("Embedding", lambda: layers.Embedding(3, 2)(WORDS), "an array of <U1, expected int32"),
    ("shown", lambda: layers.Dropout(0.5, name="shown")(WORDS), FLOAT32),
    ("shown", lambda: layers.Dropout(0.5, name="shown")(X, training="a"), "training is " + FLAG),
    ("shown", lambda: layers.Dropout(0.5, name="shown")(X, training=2), "training is 'int', expected True or False"),
    ("shown", lambda: layers.Dropout(0.5, name="shown")(X, training=np.array([1])),
     "training is 'numpy.ndarray', expected True or False"),
    ("shown", lambda: layers.Dropout(0.5, name="shown")(X, training=openrnn.Input(batch_shape=())),
     "training is 'Tensor', expected True or False"),
    ("Dense", lambda: layers.Dense(2, activation="gelu"),
     "activation is 'gelu', expected linear, relu, tanh or sigmoid"),
    ("call", lambda: own(lambda self, x: WORDS)(X), ANY),
    ("call", lambda: own(lambda self, x: x, dtype="float64")(WORDS), FLOAT64),
    ("built", lambda: setattr(layers.Dense(2), "built", True),
     "it is set to True, expected build() or a call to change it"),
    ("built", lambda: setattr(dense(), "built", False),
     "it is set to False, expected build() or a call to change it"),
    ("Layer", lambda: setattr(layers.Layer(), "parts", {3: layers.Dense(2)}),
     "the dictionary 'parts' has the key 3 for a layer or a variable, expected a string"),
    ("Model", lambda: openrnn.Model(WORDS, WORDS), ANY),
    ("Model", lambda: openrnn.Model(WORDS, openrnn.Input(batch_shape=(2,))), ANY),
    ("Model", lambda: openrnn.Model(openrnn.Input(batch_shape=(2,)), WORDS), ANY),
    ("Model", lambda: model()([X[0, :, :2], WORDS]), FLOAT64),
    ("Model", lambda: model()([X[0, :, :2]] * 2, training="a"), "training is " + FLAG),
    ("cudnn_rnn", lambda: cudnn_rnn.ops.CudnnLSTM(1, 5, 4)(WORDS, STATE, STATE, PARAMS), FLOAT32),
    ("cudnn_rnn", lambda: cudnn_rnn.ops.CudnnLSTM(1, 5, 4)(X, STATE, STATE, PARAMS, "a"), "is_training is " + FLAG),
    ("cudnn_rnn", lambda: cudnn_rnn.ops.CudnnLSTM(1, 5, 4)(X, STATE, STATE, PARAMS, sequence_lengths=RAGGED),
     LENGTHS),
    ("cudnn_rnn", lambda: cudnn_rnn.ops.CudnnLSTM(1, 5, 4)(X, STATE, STATE, PARAMS, save="a"),
     "save is 'a', expected False, True, 'inputs' or a number of time steps"),
    ("canonical_to_params", lambda: cudnn_rnn.ops.CudnnLSTM(1, 5, 4, dtype="float64").canonical_to_params([WORDS], []),
     FLOAT64),
    ("params_to_canonical", lambda: cudnn_rnn.ops.CudnnLSTM(1, 5, 4, dtype="float64").params_to_canonical(WORDS),
     FLOAT64),
    ("CudnnLSTM", lambda: cudnn_rnn.ops.CudnnLSTM(1, 5, 4, dropout="a"), "dropout is 'str', expected a number"),
    ("cudnn_rnn", lambda: cudnn_rnn.ops.cudnn_lstm(WORDS, STATE, STATE, PARAMS, True), ANY),
    ("cudnn_rnn", lambda: cudnn_rnn.ops.cudnn_lstm(X.astype("float64"), WORDS, STATE, PARAMS, True), FLOAT64),
    ("cudnn_lstm", lambda: cudnn_rnn.ops.cudnn_lstm(X, STATE, STATE, PARAMS, "a"), "is_training is " + FLAG),
    ("cudnn_rnn", lambda: cudnn_rnn.ops.cudnn_lstm(X, STATE, STATE, PARAMS, True, sequence_lengths=RAGGED), LENGTHS),
    ("cudnn_lstm", lambda: cudnn_rnn.ops.cudnn_lstm(X, STATE, STATE, PARAMS, True, dropout="a"),
     "dropout is 'str', expected a number"),
    ("PackedModel", lambda: openrnn.PackedModel(WORDS, "lstm", 1, 5, 4, dtype="float64"), FLOAT64),
    ("PackedModel", lambda: openrnn.PackedModel(PARAMS, "lstm", 1, 5, 4, gate_clip="a"), BOUNDS),
]  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_of_one_array(name):
    with pytest.raises(TypeError) as caught:
        UNARY[name](WORDS)
    assert str(caught.value) == f"[{name}] {ANY}"


def check(name, call, text):
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert str(caught.value) == f"[{name}] {text}"


def ids(rows):
    return [f"{n} {name}" for n, (name, _, _) in enumerate(rows)]


@pytest.mark.parametrize("name, call, text", FUNCTIONS, ids=ids(FUNCTIONS))
def test_of_functions(name, call, text):
    check(name, call, text)


@pytest.mark.parametrize("name, call, text", LAYERS, ids=ids(LAYERS))
def test_of_layers(name, call, text):
    check(name, call, text)


def cell(dtype="float32"):
    return rnn_cell.BasicRNNCell(5, name="unit", dtype=dtype)


def stacked(inputs=X, dtype="float32", **options):
    return nn.stack_bidirectional_dynamic_rnn([cell(dtype)], [cell(dtype)], inputs, dtype=dtype, **options)


def converter(**options):
    return cudnn_rnn.CudnnParamsFormatConverterGRU(1, 5, 4, **options)


def saveable(**options):
    return cudnn_rnn.CudnnLSTMSaveable(openrnn.Variable(PARAMS), 1, 5, 4, **options)


def step(call, dtype="float32"):
    """A cell of the user's own whose step gives what `call` does."""
    kind = type("Own", (rnn_cell.RNNCell,), {"state_size": 5, "output_size": 5, "call": call})
    made = kind(name="own", dtype=dtype)
    return made(X[0], X[0, :, :1].repeat(5, 1))


ADAM = train.AdamOptimizer
GRAPH = openrnn.Graph()
with GRAPH.as_default():
    VARIABLE = openrnn.Variable([1.0, 2.0], name="v")
OBJECT = "expected a Variable, layer, optimizer, saveable, list or dict"
OTHERS = [
    ("unit", lambda: cell("float64")(WORDS, X[0]), FLOAT64),
    ("unit", lambda: cell("float64")(X[0], WORDS), FLOAT64),
    ("own", lambda: step(lambda self, x, state: (WORDS, state)), FLOAT32),
    ("own", lambda: step(lambda self, x, state: (x, WORDS)), FLOAT32),
    ("own", lambda: step(lambda self, x, state: (WORDS, state), "float64"), FLOAT64),
    ("own", lambda: step(lambda self, x, state: (x, WORDS), "float64"), FLOAT64),
    ("dynamic_rnn", lambda: nn.dynamic_rnn(cell(), WORDS), FLOAT32),
    ("dynamic_rnn", lambda: nn.dynamic_rnn(cell(), X, RAGGED, dtype="float32"), LENGTHS),
    ("initial_state", lambda: nn.dynamic_rnn(cell("float64"), X, initial_state=WORDS), FLOAT64),
    ("bidirectional_dynamic_rnn",
     lambda: nn.bidirectional_dynamic_rnn(cell(), cell(), WORDS, dtype="float32"), FLOAT32),
    ("bidirectional_dynamic_rnn",
     lambda: nn.bidirectional_dynamic_rnn(cell(), cell(), X, RAGGED, dtype="float32"), LENGTHS),
    ("static_rnn", lambda: nn.static_rnn(cell(), [WORDS], dtype="float32"), FLOAT32),
    ("static_rnn", lambda: nn.static_rnn(cell(), [X[0]], dtype="float32", sequence_length=RAGGED), LENGTHS),
    ("stack_bidirectional_dynamic_rnn", lambda: stacked(WORDS), FLOAT32),
    ("stack_bidirectional_dynamic_rnn", lambda: stacked(sequence_length=RAGGED), LENGTHS),
    ("initial_states", lambda: stacked(dtype="float64", initial_states_fw=[WORDS]), FLOAT64),
    ("MultiRNNCell", lambda: rnn_cell.MultiRNNCell([3]), "'int' is given, expected an RNN cell"),
    ("DropoutWrapper", lambda: rnn_cell.DropoutWrapper(3), "'int' is given, expected an RNN cell"),
    *((name, lambda name=name: getattr(rnn_cell, name)(2, activation=3), FUNCTION) for name in
      ("LSTMCell", "BasicLSTMCell", "GRUCell", "BasicRNNCell", "LayerNormBasicLSTMCell")),
    ("arguments", lambda: rnn_cell.LSTMCell("a"), "num_units is " + INTEGER),
    ("arguments", lambda: rnn_cell.LSTMCell(2, forget_bias="a"), "forget_bias is 'str', expected a number"),
    ("arguments", lambda: rnn_cell.LSTMCell(2, cell_clip="a"), "cell_clip is 'str', expected a number"),
    ("arguments", lambda: rnn_cell.LSTMCell(2, use_peepholes="a"), "use_peepholes is " + FLAG),
    ("tf_canonical_to_opaque", lambda: converter().tf_canonical_to_opaque([WORDS]), ANY),
    ("opaque_to_tf_canonical", lambda: converter().opaque_to_tf_canonical(WORDS), ANY),
    ("CudnnParamsFormatConverterGRU", lambda: converter(gate_clip="a"), BOUNDS),
    ("restore", lambda: lstm("float64").saveable.restore([WORDS]), FLOAT64),
    ("Saveable", lambda: saveable(scope=3), "scope is 'int', expected a string or a variable scope"),
    ("CudnnLSTMSaveable", lambda: saveable(gate_clip="a"), BOUNDS),
    ("Saver", lambda: train.Saver([3]), "an item is 'int', expected a Variable or a saveable"),
    ("Saver", lambda: train.Saver(3), "var_list is 'int', expected a list, a dict or None"),
    ("arguments", lambda: train.Saver({3: VARIABLE}), "a name of var_list is 'int', expected a string"),
    ("Checkpoint", lambda: train.Checkpoint(a=3), "an object is 'int', " + OBJECT),
    ("compute_gradients", lambda: ADAM().compute_gradients(lambda: VARIABLE * 1.0, [3]),
     "'int' is given, expected a Variable"),
    ("prepare", lambda: ADAM().prepare(3), "'int' is given, expected a list of Variables"),
    ("apply_gradients", lambda: ADAM().apply_gradients([(WORDS, VARIABLE)]), FLOAT32),
    ("apply_gradients", lambda: ADAM().apply_gradients([(1.0, 3)]), "'int' is given, expected a Variable"),
    ("minimize", lambda: ADAM().minimize(lambda: openrnn.reduce_sum(VARIABLE * 1.0), 3, [VARIABLE]),
     "global_step is 'int', expected a Variable"),
    ("arguments", lambda: ADAM("a"), "learning_rate is 'str', expected a number"),
    ("gradient", lambda: openrnn.GradientTape().gradient(openrnn.Tensor(1.0), [3]),
     "a source is 'int', expected a Variable or a Tensor"),
    ("watch", lambda: openrnn.GradientTape().watch(3), "'int', expected a Tensor"),
    ("Run", lambda: train.Run("run", input="x", resume="a"), "resume is " + FLAG),
    ("Run", lambda: train.Run("run", input="x", overlap="a"), "overlap is " + FLAG),
    ("Run", lambda: train.Run("run", input="x", units="a"), "units is " + INTEGER),
    *(("arguments", lambda name=name: train.Run("run", input="x", **{name: "a"}), f"{name} is {INTEGER}")
      for name in ("save_steps", "keep", "recompute")),
    ("arguments", lambda: train.Run("run", input="x", save_seconds="a"), "save_seconds is 'str', expected a number"),
]  # fmt: skip


@pytest.mark.parametrize("name, call, text", OTHERS, ids=ids(OTHERS))
def test_of_cells_files_and_training(name, call, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check(name, call, text)


def test_a_keyword_that_a_saveable_says_itself():
    for name, value in (("rnn_mode", "gru"), ("dtype", "float32"), ("leaves", 3)):
        with pytest.raises(TypeError, match=rf"^CudnnLSTMSaveable.__init__\(\) got an unexpected keyword argument '{name}'$"):
            saveable(**{name: value})
    with pytest.raises(TypeError, match=r"^explain\(\) got an unexpected keyword argument 'leaves'$"):
        openrnn.explain(leaves=3)


NAMES = ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"]


@pytest.mark.parametrize("kind, given", [("torch", dict.fromkeys(NAMES, WORDS)), ("keras", [WORDS]), ("onnx", [WORDS])])
def test_of_conversions(kind, given):
    options = {"rnn_mode": "gru", "num_layers": 1, "num_units": 2, "input_size": 3}
    into, back = f"canonical_from_{kind}", f"{kind}_from_canonical"
    for call, arrays in ((into, (given,)), (back, ([WORDS], [])), (back, ([], [WORDS]))):
        function = getattr(openrnn, call)
        check(call, lambda: function(*arrays, dtype="float64", **options), FLOAT64)  # noqa: B023
        wrong = {**options, "num_units": "a"}
        first = "torch" if call == "canonical_from_torch" else call  # it asks for the names of its tensors
        check(first, lambda: function(*arrays, **wrong), "num_units is " + INTEGER)  # noqa: B023
