"""What a call says of arguments that it cannot take: '[call] what was given, what was expected'."""

import inspect
import operator
import re

import numpy as np
import openrnn
import pytest
from openrnn import _messages, cudnn_rnn, layers, nn, train
from openrnn.nn import rnn_cell

MODULES = [openrnn, cudnn_rnn, cudnn_rnn.ops, nn, rnn_cell, layers, train, openrnn.losses,
           openrnn.initializers, openrnn.regularizers]  # fmt: skip
WRONG = {
    "None": None, "text": "text", "bytes": b"x", "object": object(), "float": 2.5, "negative": -1,
    "huge": 2**70, "complex": 1j, "list": [1, "a"], "dict": {"a": 1}, "array": np.zeros((2, 2)),
    "texts": np.array(["a"]), "True": True, "type": int, "function": lambda *_: None,
    "surrogate": "\ud800",
}  # fmt: skip
# Words of the binding library, of C++, and of names that are nobody's business.
RAW = ["incompatible function arguments", "Invoked with", "nanobind", "std::", "openrnn._core"]
pytestmark = pytest.mark.filterwarnings("ignore:.*num_layers=1")
X, STATE = np.zeros((2, 3, 4), "float32"), np.zeros((1, 3, 5), "float32")


def built(layer, *shape):
    layer.build(shape)
    return layer


def lstm():
    return built(cudnn_rnn.CudnnLSTM(1, 5), None, None, 4)


def gru_params():
    return np.zeros(cudnn_rnn.ops.CudnnGRU(1, 5, 4).params_size(), "float32")


def model():
    given = openrnn.Input(batch_shape=(None, 4))
    return openrnn.Model(given, layers.Dense(2)(given))


def converter():
    return cudnn_rnn.CudnnParamsFormatConverterGRU(1, 5, 4)


INSTANCES = {
    "Tensor": lambda: openrnn.Tensor([1.0, 2.0]),
    "symbolic": lambda: openrnn.Input(batch_shape=(None, 4)),
    "Variable": lambda: openrnn.Variable([1.0, 2.0]),
    "GradientTape": openrnn.GradientTape,
    "Graph": openrnn.Graph,
    "Model": model,
    "CudnnLSTM": lstm,
    "CudnnRNNTanh": lambda: cudnn_rnn.CudnnRNNTanh(1, 5),
    "ops.CudnnLSTM": lambda: cudnn_rnn.ops.CudnnLSTM(1, 5, 4),
    "ops.CudnnGRU": lambda: cudnn_rnn.ops.CudnnGRU(1, 5, 4),
    "CudnnLSTMSaveable": lambda: lstm().saveable,
    "converter": converter,
    "CudnnCompatibleLSTMCell": lambda: cudnn_rnn.CudnnCompatibleLSTMCell(5),
    "CudnnCompatibleGRUCell": lambda: cudnn_rnn.CudnnCompatibleGRUCell(5),
    "BasicRNNCell": lambda: rnn_cell.BasicRNNCell(5),
    "MultiRNNCell": lambda: rnn_cell.MultiRNNCell([rnn_cell.BasicRNNCell(5)]),
    "DropoutWrapper": lambda: rnn_cell.DropoutWrapper(rnn_cell.BasicRNNCell(5)),
    "Dense": lambda: built(layers.Dense(2), None, 4),
    "Embedding": lambda: built(layers.Embedding(4, 2), None),
    "Dropout": lambda: layers.Dropout(0.5),
    "Layer": lambda: type("Own", (layers.Layer,), {"call": lambda self, inputs: inputs})(),
    "Saver": lambda: train.Saver([openrnn.Variable([1.0])]),
    "Checkpoint": lambda: train.Checkpoint(v=openrnn.Variable([1.0])),
    "AdamOptimizer": train.AdamOptimizer,
    "random_normal": openrnn.initializers.random_normal,
    "l2": lambda: openrnn.regularizers.l2(0.5),
}
# Calls that work, of which one argument at a time is made wrong.
GOOD = {
    openrnn.set_num_threads: {"n": 1},
    openrnn.set_spread_threads: {"spread": True},
    openrnn.math_kind: {"math": "bf16", "weights_dtype": None, "dtype": "float32", "device": "cpu"},
    openrnn.Tensor: {"value": 1.0, "dtype": "float32", "device": "cpu"},
    openrnn.Variable: {"initial_value": 1.0, "trainable": True, "name": "v", "dtype": "float32"},
    openrnn.constant: {"value": 1.0, "dtype": "float32", "device": "cpu"},
    openrnn.cast: {"x": 1.0, "dtype": "float64"},
    openrnn.add: {"x": [1.0], "y": [2.0]},
    openrnn.matmul: {"a": X[0], "b": X[0].T, "transpose_a": False, "transpose_b": False},
    openrnn.reshape: {"tensor": X, "shape": (24,)},
    openrnn.concat: {"values": [X, X], "axis": 0},
    openrnn.split: {"value": X, "num_or_size_splits": [1, 1], "axis": 0},
    openrnn.slice: {"input_": X[0], "begin": [0, 1], "size": [1, -1]},
    openrnn.stack: {"values": [X, X]},
    openrnn.add_n: {"inputs": [X, X]},
    openrnn.one_hot: {"indices": [0, 1], "depth": 3, "dtype": "float32"},
    openrnn.reverse_sequence: {"input": X, "seq_lengths": [1, 2, 0], "time_major": True},
    openrnn.clip_by_global_norm: {"t_list": [X, None], "clip_norm": 1.0},
    openrnn.Input: {"shape": (4,), "batch_size": 3, "name": "x", "dtype": "float32"},
    openrnn.Model: {"inputs": [], "outputs": [], "name": "m"},
    openrnn.set_random_seed: {"seed": 1},
    openrnn.variable_scope: {"name": "a", "reuse": None},
    openrnn.get_variable: {"name": "w", "shape": (2,), "dtype": "float32", "initializer": None,
                           "regularizer": None, "trainable": True, "constraint": None},
    openrnn.from_dlpack: {"device": None, "copy": None},
    openrnn.losses.sparse_softmax_cross_entropy: {"labels": [0, 1, 2], "logits": X[0]},
    cudnn_rnn.CudnnLSTM: {"num_layers": 2, "num_units": 3, "input_mode": "linear_input",
                          "direction": "unidirectional", "dropout": 0.5, "seed": 1,
                          "dtype": "float32", "kernel_initializer": None, "name": "a",
                          "bias_initializer": None, "num_proj": 2, "trainable": True,
                          "activity_regularizer": None, "math": "float32", "device": "cpu"},
    cudnn_rnn.ops.CudnnGRU: {"num_layers": 2, "num_units": 3, "input_size": 3, "seed": 1,
                             "input_mode": "linear_input", "direction": "unidirectional",
                             "dtype": "float32", "dropout": 0.5, "math": "float32"},
    cudnn_rnn.ops.cudnn_gru: {"inputs": X, "input_h": STATE, "params": gru_params(),
                              "is_training": True, "input_mode": "linear_input", "seed": 1,
                              "direction": "unidirectional", "dropout": 0.0, "time_major": True,
                              "sequence_lengths": [1, 2, 0], "math": "float32"},
    cudnn_rnn.ops.cudnn_rnn_opaque_params_size: {"rnn_mode": "lstm", "num_layers": 1,
                                                 "num_units": 2, "input_size": 2},
    cudnn_rnn.CudnnGRUSaveable: {"opaque_params": gru_params(), "num_layers": 1, "num_units": 5,
                                 "input_size": 4, "scope": None, "name": "s"},
    cudnn_rnn.CudnnParamsFormatConverterLSTM: {"num_layers": 1, "num_units": 2, "input_size": 2},
    cudnn_rnn.CudnnCompatibleLSTMCell: {"num_units": 2, "reuse": None, "name": "c",
                                        "dtype": "float32", "num_proj": 1},
    rnn_cell.BasicRNNCell: {"num_units": 2, "activation": "tanh", "dtype": "float32"},
    rnn_cell.DropoutWrapper: {"cell": rnn_cell.BasicRNNCell(2), "input_keep_prob": 0.5,
                              "output_keep_prob": 0.5, "state_keep_prob": 0.5, "seed": 1},
    nn.dynamic_rnn: {"cell": rnn_cell.BasicRNNCell(5), "inputs": X, "dtype": "float32",
                     "sequence_length": [1, 2], "time_major": False, "scope": "s"},
    layers.Dense: {"units": 2, "activation": "tanh", "use_bias": True, "name": "d", "seed": 1,
                   "kernel_initializer": "zeros", "dtype": "float32", "trainable": True},
    layers.Embedding: {"input_dim": 2, "output_dim": 2, "name": "e", "dtype": "float32"},
    layers.Dropout: {"rate": 0.5, "seed": 1, "name": "d"},
    train.AdamOptimizer: {"learning_rate": 0.1, "beta1": 0.9, "beta2": 0.9, "epsilon": 1e-8},
    train.RMSPropOptimizer: {"learning_rate": 0.1, "decay": 0.9, "centered": False},
    train.Saver: {"var_list": [openrnn.Variable([1.0])], "max_to_keep": 2},
    openrnn.initializers.random_normal: {"mean": 0.0, "stddev": 1.0, "seed": 1},
    openrnn.regularizers.l2: {"scale": 0.5},
}  # fmt: skip
METHODS = {
    "CudnnLSTM": {
        "__call__": {"inputs": X, "initial_state": (STATE, STATE), "training": True,
                     "sequence_lengths": [1, 2, 0], "time_major": True, "save": False,
                     "return_all": False, "scope": None},
        "add_weight": {"name": "w", "shape": (2,), "dtype": "float32", "initializer": "zeros",
                       "trainable": True},
        "set_weights": {"weights": []}, "build": {"input_shape": (None, None, 4)},
        "state_shape": {"batch_size": 2}, "get_input_at": {"node_index": 0},
        "with_arithmetic": {"math": "float32", "weights_dtype": None},
    },
    "ops.CudnnLSTM": {"__call__": {"input_data": X, "input_h": STATE, "input_c": STATE,
                                   "params": np.zeros(220, "float32"), "is_training": True,
                                   "sequence_lengths": [1, 2, 0], "time_major": True}},
    "CudnnCompatibleLSTMCell": {
        "__call__": {"inputs": X[0], "state": (STATE[0], STATE[0]), "scope": "s"},
        "zero_state": {"batch_size": 3, "dtype": "float32"}},
    "Model": {"__call__": {"inputs": X[0], "training": True}, "predict": {"x": X[0]},
              "get_layer": {"name": "dense", "index": None}},
    "Dropout": {"__call__": {"inputs": X, "training": True}},
    "GradientTape": {"watch": {"tensor": openrnn.Tensor(1.0)},
                     "gradient": {"target": openrnn.Tensor(1.0), "sources": [openrnn.Tensor(1.0)],
                                  "output_gradients": None}},
    "AdamOptimizer": {"minimize": {"loss": lambda: openrnn.Tensor(1.0), "global_step": None,
                                   "var_list": [openrnn.Variable(1.0)], "clip_norm": 1.0},
                      "apply_gradients": {"grads_and_vars": [(1.0, openrnn.Variable(1.0))]}},
}  # fmt: skip


NOT_MADE_BY_USERS = (
    openrnn.EngineStatus,
    openrnn.Explanation,
    train.CheckpointStatus,
    train.StepReport,
    cudnn_rnn.CudnnOpaqueParamsSaveable,
)


def public_callables():
    found = {}
    for module in MODULES:
        for name in getattr(module, "__all__", [n for n in dir(module) if n[0] != "_"]):
            value = getattr(module, name)
            raises = isinstance(value, type) and issubclass(value, Exception)
            if value in NOT_MADE_BY_USERS or raises or not callable(value):
                continue
            if value.__module__.startswith("openrnn"):
                found[f"{module.__name__}.{name}"] = value
    return found


CALLABLES = public_callables()


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    """Files, names and switches of a wrong call stay here."""
    monkeypatch.chdir(tmp_path)
    threads, device = openrnn.get_num_threads(), openrnn.get_default_device()
    openrnn.reset_default_graph()
    yield
    openrnn.reset_default_graph()
    openrnn.set_num_threads(threads)
    openrnn.set_spread_threads(True)
    openrnn.set_default_device(device)


def check(call, *args, **kw):
    """The call works, or fails in the words of this package or of Python."""
    try:
        result = call(*args, **kw)
        if inspect.isgenerator(result):
            list(result)
    except Exception as error:  # noqa: BLE001 - of any class: the message is what is looked at
        text = str(error)
        where = f"{getattr(call, '__name__', call)}{args}{kw}: {text}"
        assert not any(raw in text for raw in RAW), where
        assert not isinstance(error, (SyntaxError, SystemError, AssertionError)), where


def names_of(call):
    try:
        return [
            one.name for one in inspect.signature(call).parameters.values()
            if one.name != "self" and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        ]  # fmt: skip
    except ValueError:
        return ["x", "y"]


def check_all(call):
    names = names_of(call)
    for wrong in WRONG.values():
        for count in range(len(names) + 2):
            check(call, *[wrong] * count)
        for name in names:
            check(call, **{name: wrong})
    check(call, no_such_argument=1)


@pytest.mark.parametrize("name", CALLABLES)
def test_every_argument_wrong(name):
    check_all(CALLABLES[name])


@pytest.mark.parametrize("call", GOOD, ids=lambda call: call.__name__)
def test_one_argument_wrong(call):
    one_wrong(call, GOOD[call])


def one_wrong(call, good):
    for name in good:
        for wrong in WRONG.values():
            check(call, **{**good, name: wrong})
    check(call, **good, no_such_argument=1)


SKIPPED = {"__class__", "__init__", "__new__", "__init_subclass__", "__subclasshook__", "__dir__",
           "__getattribute__", "__setattr__", "__delattr__", "__reduce_ex__", "__sizeof__",
           "__format__", "__doc__", "__dict__", "__getstate__", "__eq__", "__ne__",
           "__array_ufunc__", "__array_function__", "__deepcopy__", "__copy__"}  # fmt: skip


@pytest.mark.parametrize("name", INSTANCES)
def test_members(name):
    """Methods, operators, and properties that are set."""
    made = INSTANCES[name]()
    for member in sorted(set(dir(made)) - SKIPPED):
        if member.startswith("_") and not member.startswith("__"):
            continue
        for wrong in WRONG.values():
            if isinstance(inspect.getattr_static(made, member), property):
                check(setattr, made, member, wrong) if is_set(made, member) else None
        try:
            value = getattr(made, member)
        except Exception:  # noqa: BLE001 - not before a call
            continue
        if callable(value) and not isinstance(value, type):
            check_all(value)


def is_set(made, member):
    return inspect.getattr_static(made, member).fset is not None


@pytest.mark.parametrize("name", METHODS)
def test_one_argument_of_a_method_wrong(name):
    for method, good in METHODS[name].items():
        one_wrong(getattr(INSTANCES[name](), method), good)


def text_of(call, *args, **kw):
    with pytest.raises(TypeError) as caught:
        call(*args, **kw)
    return str(caught.value)


def test_words():
    """The call is the one that the user made, the argument the one that is wrong."""
    tensor, layer = openrnn.Tensor([1.0, 2.0]), lstm()
    assert text_of(openrnn.set_num_threads, 2.0) == (
        "[set_num_threads] n is 'float', expected an integer")
    assert text_of(openrnn.set_num_threads, 1, 2).startswith("[set_num_threads] 1 argument")
    assert text_of(openrnn.set_num_threads).startswith("[set_num_threads] no n is given")
    assert text_of(openrnn.Variable, 1.0, foo=2) == (
        "[Variable] an unexpected keyword 'foo' is given, expected (initial_value, trainable, "
        "name, dtype, device)")
    assert text_of(openrnn.matmul, tensor, tensor, "yes") == (
        "[matmul] transpose_a is 'str', expected True or False")
    assert "[gradient]" in text_of(openrnn.GradientTape().gradient, np.zeros(2), [tensor])
    assert "'ndarray'" in text_of(openrnn.GradientTape().gradient, np.zeros(2), [tensor])
    assert text_of(operator.add, tensor, None) == "[Tensor] other is None, expected a value"
    assert text_of(openrnn.Variable, 1.0, name="half a pair \ud800") == (
        "[Variable] name is a string that is no UTF-8, expected a string or None")
    assert text_of(openrnn.Variable, [1.0], initial_value=2.0) == (
        "[Variable] initial_value is given twice, expected once")
    assert text_of(layer.with_arithmetic, math=3).startswith("[with_arithmetic] math is 'int'")
    assert text_of(layer, X, time_major=3) == (
        "[CudnnLSTM] time_major is 'int', expected True or False")
    with pytest.raises(TypeError, match=r"CudnnGRU.__init__\(\) got an unexpected keyword"):
        cudnn_rnn.CudnnGRU(1, 2, foo=3)
    with pytest.raises(TypeError, match=r"Own.__init__\(\) got an unexpected keyword"):
        type("Own", (cudnn_rnn.CudnnLSTM,), {})(1, 2, foo=3)
    with pytest.raises(TypeError, match=r"CudnnRNNTanh.__init__\(\) got an unexpected keyword"):
        cudnn_rnn.ops.CudnnRNNTanh(1, 2, 3, foo=3)
    for cls in (cudnn_rnn.CudnnGRU, type("Own", (cudnn_rnn.CudnnLSTM,), {}), cudnn_rnn.ops.CudnnRNNTanh,
                cudnn_rnn.CudnnParamsFormatConverterGRU):
        with pytest.raises(TypeError, match=rf"^{cls.__name__}.__init__\(\) missing"):
            cls()


def test_words_leave_out_what_has_a_default():
    """Neither what has a default nor two that may be None is said to be missing or wrong."""
    make, variable = openrnn.Variable.__init__, openrnn.Variable([1.0])

    def words(*args, **kw):
        return _messages.reword(make, (variable, *args), kw)

    assert words().endswith("no initial_value is given, expected (initial_value, trainable, name, "
                            "dtype, device)")
    assert words(None).endswith("] initial_value is None, expected a value")
    assert "] (Variable, NoneType, NoneType) is given, expected (" in words(None, name=None)
    assert "] (Variable, list) is given, expected (" in words([1.0])


@pytest.mark.parametrize("wanted,values,others", [
    ("int", [0, 2**63 - 1, -(2**63), np.int8(3)], [2**63, -(2**63) - 1, 1.0, "1"]),
    ("float", [1.5, 2, np.float32(0.5)], ["1.5", [1.5], float, None]),
    ("str", ["", "text"], ["\ud800", b"text", 1]),
    ("float | None", [None, 1.0], ["", float]),
    ("collections.abc.Sequence[int]", [[], (1, 2)], [1, [1, 2.0], [2**63]]),
])  # fmt: skip
def test_words_blame_what_does_not_fit(wanted, values, others):
    assert all(_messages._fits(value, wanted) for value in values)
    assert not any(_messages._fits(value, wanted) for value in others)


def test_integers_of_many_digits():
    for sign in (1, -1):
        assert _messages._given(sign * (10**40 - 1), "int") == str(sign * (10**40 - 1))
        assert _messages._given(sign * 10**40, "int") == "an integer of many digits"
    text = text_of(openrnn.set_num_threads, 2**63)
    assert text == "[set_num_threads] n is 9223372036854775808, expected an integer"


def test_words_of_the_package_itself():
    """Where Python's own word would name neither the call nor the argument."""
    cell = rnn_cell.BasicRNNCell(2)
    optimizer, saver = train.AdamOptimizer(), train.Saver([openrnn.Variable([1.0])])
    for call, given, start in [
        (openrnn.split, (X, None), "[split] num_or_size_splits is 'NoneType', expected a list"),
        (openrnn.slice, (X, 1, [0, 0, 0]), "[slice] begin is 'int', expected a list of numbers"),
        (openrnn.slice, (X, ["a"], [1]), "[slice] an element of begin is 'str', expected an int"),
        (openrnn.Input, (5,), "[Input] shape is 'int', expected a list of sizes"),
        (cell.zero_state, ("a", "float32"), "[zero_state] batch_size is 'str', expected an int"),
        (rnn_cell.DropoutWrapper, (cell, "a"), "[DropoutWrapper] input_keep_prob is 'str', exp"),
        (nn.dropout, (X, []), "[dropout] keep_prob is 'list', expected a number"),
        (nn.stack_bidirectional_dynamic_rnn, ([1], [cell], X), "[stack_bidirectional_dynamic_rnn]"),
        (openrnn.regularizers.l2, ("0.5",), "[l2] scale is 'str', expected a number"),
        (openrnn.initializers.ones().fill, ("a", "float32", 0), "[initializer] 'str' as a shape"),
        (openrnn.initializers.glorot_uniform, (0.5,), "[glorot_uniform] seed is 'float', expect"),
        (model().get_layer, (None, "a"), "[get_layer] index is 'str', expected an integer"),
        (optimizer.apply_gradients, (1,), "[apply_gradients] grads_and_vars is 'int', expected"),
        (optimizer.apply_gradients, ([1],), "[apply_gradients] an element is 'int', expected"),
        (optimizer.compute_gradients, (1,), "[compute_gradients] loss is a int, expected a func"),
        (saver.save, (1,), "[save] save_path is 'int', expected a path"),
        (saver.save, ("a", 1.5), "[save] global_step is 'float', expected an integer"),
        (saver.save, ("a", "1"), "[save] global_step is 'str', expected an integer"),
        (train.CheckpointManager, (saver, 1), "[CheckpointManager] directory is 'int', expected a"),
        (saver.restore, (None,), "[restore] save_path is 'NoneType', expected a path"),
        (train.latest_checkpoint, (1,), "[latest_checkpoint] checkpoint_dir is 'int', expected a"),
        (train.load_variable, (1, "a"), "[load_variable] ckpt_dir_or_file is 'int', expected a"),
    ]:
        assert text_of(call, *given).startswith(start)


@pytest.mark.filterwarnings("ignore:nanobind")
def test_a_constructor_that_leaves_out_its_base():
    class Unfinished(layers.Layer):
        def __init__(self):
            self.units = 3

    for use in (lambda: Unfinished()(X), lambda: Unfinished().weights):
        assert text_of(use).startswith("[Unfinished] its __init__() has not called super()")


def test_a_new_axis_is_none():
    tensor = openrnn.Tensor([[1.0, 2.0, 3.0]])
    for held in (tensor, openrnn.Variable(tensor)):
        with openrnn.GradientTape() as tape:
            if held is tensor:
                tape.watch(tensor)
            parts = [held[None], held[:, None], held[0, None, 1:], held[None, 0, None]]
            loss = openrnn.add_n([openrnn.reduce_sum(part) for part in parts])
        assert [part.shape for part in parts] == [(1, 1, 3), (1, 1, 3), (1, 2), (1, 1, 3)]
        assert tape.gradient(loss, held).numpy().tolist() == [[3.0, 4.0, 4.0]]
    with pytest.raises(IndexError):
        tensor[None, 0, 0, 0]


def test_memory_that_is_not_there_says_how_much():
    with pytest.raises(MemoryError, match=rf"\[allocate\] {4 * 2**58} bytes"):
        openrnn.get_variable("w", [2**58])


def test_a_gradient_of_an_inference_call_names_the_switch():
    layer = lstm()
    with openrnn.GradientTape() as tape:
        loss = openrnn.reduce_sum(layer(X, training=False)[0])
    with pytest.raises(ValueError, match="save=True"):
        tape.gradient(loss, layer.kernel)
