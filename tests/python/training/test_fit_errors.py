"""What train.fit refuses, and by which words; nothing has changed then."""

import numpy as np
import openrnn
import pytest
from openrnn import layers, train

X, Y = np.ones((6, 3), "float32"), np.ones((6, 1), "float32")
BAD = X.copy()
BAD[4, 1] = np.nan


class Other:
    pass


@pytest.mark.parametrize(
    ("changed", "kind", "text"),
    [
        ({"data": (BAD, Y)}, ValueError,
         "[fit] the loss of step 1 is nan, expected a finite one (a lower learning rate or "
         "clip_norm may help)"),
        ({"validation": (BAD, Y)}, ValueError,
         "[fit] the loss of a batch is nan, expected a finite one (a lower learning rate or "
         "clip_norm may help)"),
        ({"data": (X, Y[:5])}, ValueError,
         "[fit] x has 6 samples along axis 0 and y 5 along axis 0, expected as many (batch_axis)"),
        ({"data": (X[:0], Y[:0])}, ValueError, "[fit] the data has no samples, expected some"),
        ({"data": []}, ValueError, "[fit] the data gave 0 batches, expected some"),
        ({"data": iter([])}, ValueError, "[fit] the data gave 0 batches, expected some"),
        ({"data": [X]}, ValueError, "[fit] a batch is a ndarray, expected a pair (x, y)"),
        ({"data": X}, TypeError, "[fit] data is one array of type ndarray, expected a pair (x, y)"),
        ({"data": 3}, TypeError,
         "[fit] data is a int, expected a pair of arrays (x, y), an iterable of such batches, or "
         "a function that returns one"),
        ({"validation": (X, Y[:5])}, ValueError,
         "[fit, validation] x has 6 samples along axis 0 and y 5 along axis 0, expected as many "
         "(batch_axis)"),
        ({"validation": (X[:0], Y[:0])}, ValueError,
         "[fit, validation] the data has no samples, expected some"),
        ({"validation": iter([(X, Y)]), "epochs": 2}, ValueError,
         "[fit, validation] the data is a list_iterator, which ends with its first epoch, and "
         "epochs is 2: expected a list of batches, a function that returns a new iterator, or for "
         "the data of training steps_per_epoch"),
        ({"data": iter([(X, Y)]), "epochs": 2}, ValueError,
         "[fit] the data is a list_iterator, which ends with its first epoch, and epochs is 2: "
         "expected a list of batches, a function that returns a new iterator, or for the data of "
         "training steps_per_epoch"),
        ({"data": [(X, Y)], "steps_per_epoch": 3}, ValueError,
         "[fit] the data gave 1 batches, expected 3, the steps of an epoch"),
        ({"data": [(X, Y, Y)]}, ValueError, "[fit] a batch is a tuple, expected a pair (x, y)"),
        ({"data": "words"}, TypeError,
         "[fit] data is a str, expected a pair of arrays (x, y), an iterable of such batches, or "
         "a function that returns one"),
        ({"data": {"x": X}}, TypeError,
         "[fit] data is a dict, expected a pair of arrays (x, y), an iterable of such batches, or "
         "a function that returns one"),
        ({"data": ([X, X[:5]], Y)}, ValueError,
         "[fit] x has [5, 6] samples, expected one number of all its arrays"),
        ({"data": (X, Y[:, 0]), "batch_axis": (0, 1)}, ValueError,
         "[fit] y has shape (6,), expected more than 1 dimensions, as batch_axis is 1"),
        ({"clip_norm": float("inf")}, ValueError,
         "[fit] clip_norm is inf, expected a finite number above 0, or None"),
        ({"steps_per_epoch": 2}, ValueError,
         "[fit] steps_per_epoch is 2 with arrays, expected it with an iterator of batches alone"),
        ({"data": [(X, Y[:0])]}, ValueError,
         "[fit] the labels of a batch have shape (0, 1), expected samples along axis 0 "
         "(batch_axis)"),
        ({"loss": "nothing"}, ValueError,
         "[fit] loss is 'nothing', expected one of ['binary_cross_entropy', 'ctc_loss', "
         "'mean_squared_error', 'sparse_softmax_cross_entropy']"),
        ({"loss": 3}, TypeError,
         "[fit] loss is a int, expected a name or a function of labels and predictions"),
        ({"loss": lambda y, p: 1.0}, TypeError,
         "[fit] the loss returned a float, expected a Tensor"),
        ({"loss": lambda y, p: p}, ValueError,
         "[fit] the loss has shape (6, 1), expected one number: the mean over the batch"),
        ({"loss": lambda y, p: p[:0, 0]}, ValueError,
         "[fit] the loss has shape (0,), expected one number: the mean over the batch"),
        ({"loss": lambda y, p: openrnn.constant(1.0)}, ValueError,
         "[fit] the loss depends on none of the weights ['dense/kernel', 'dense/bias']"),
        ({"epochs": 0}, ValueError, "[fit] epochs is 0, expected 1 or more"),
        ({"batch_size": 0}, ValueError, "[fit] batch_size is 0, expected 1 or more"),
        ({"batch_size": 2.5}, TypeError, "[fit] batch_size is 'float', expected an integer"),
        ({"micro_batches": -1}, ValueError, "[fit] micro_batches is -1, expected 1 or more"),
        ({"micro_batches": 3}, ValueError,
         "[fit] micro_batches is 3 with a batch_size of 32, expected a divisor of it"),
        ({"micro_batches": 2, "batch_axis": (2, 0), "data": [(X, Y)]}, ValueError,
         "[fit] micro_batches is 2 with x's batch_axis 2, expected an axis of 0 or 1"),
        ({"micro_batches": 2, "data": [(X, Y[:1])]}, ValueError,
         "[fit] x has 6 samples along axis 0 and y 1 along axis 0, expected as many (batch_axis)"),
        ({"clip_norm": 0.0}, ValueError,
         "[fit] clip_norm is 0.0, expected a finite number above 0, or None"),
        ({"schedule": -1.0}, ValueError,
         "[fit] schedule is -1.0, expected a finite number of at least 0"),
        ({"optimizer": Other()}, TypeError,
         "[fit] optimizer is a Other, expected one of openrnn.train"),
        ({"callbacks": [3]}, TypeError,
         "[fit] a callback is a int, expected a train.Callback or a function (epoch, logs)"),
        ({"early_stopping": 0}, ValueError, "[fit] early_stopping is 0, expected 1 or more"),
        ({"batch_axis": (0, 1, 2)}, ValueError,
         "[fit] batch_axis has 3 parts, expected one axis, or those of inputs and labels"),
        ({"batch_axis": -1}, ValueError, "[fit] batch_axis is (-1, -1), expected 0 or more"),
        ({"data": (np.array([None] * 6), Y)}, ValueError,
         "[fit] x is no array of numbers, expected one"),
        ({"data": (X, np.array([None] * 6))}, ValueError,
         "[fit] y is no array of numbers, expected one"),
        ({"data": b"words"}, TypeError,
         "[fit] data is a bytes, expected a pair of arrays (x, y), an iterable of such batches, "
         "or a function that returns one"),
        ({"data": [([X], [Y[:0], Y])]}, ValueError,
         "[fit] the labels of a batch have shape (0, 1), expected samples along axis 0 "
         "(batch_axis)"),
        ({"data": [(X, Y[:, 0])], "batch_axis": (0, 1)}, ValueError,
         "[fit] the labels of a batch have shape (6,), expected samples along axis 1 (batch_axis)"),
        ({"data": ([X, X], Y[:5])}, ValueError,
         "[fit] x has 6 samples along axis 0 and y 5 along axis 0, expected as many (batch_axis)"),
        ({"data": (X, Y.T), "batch_axis": (0, 0)}, ValueError,
         "[fit] x has 6 samples along axis 0 and y 1 along axis 0, expected as many (batch_axis)"),
        ({"data": (X.T, Y[:5].T), "batch_axis": 1}, ValueError,
         "[fit] x has 6 samples along axis 1 and y 5 along axis 1, expected as many (batch_axis)"),
        ({"validation": [(X,)]}, ValueError,
         "[fit, validation] a batch is a tuple, expected a pair (x, y)"),
        ({"validation": X}, TypeError,
         "[fit, validation] data is one array of type ndarray, expected a pair (x, y)"),
        ({"validation": 3}, TypeError,
         "[fit, validation] data is a int, expected a pair of arrays (x, y), an iterable of such "
         "batches, or a function that returns one"),
        ({"data": (BAD, Y), "batch_size": 2, "shuffle": False}, ValueError,
         "[fit] the loss of step 3 is nan, expected a finite one (a lower learning rate or "
         "clip_norm may help)"),
        ({"data": (BAD, Y), "batch_size": 2, "shuffle": False, "micro_batches": 2}, ValueError,
         "[fit] the loss of step 3 is nan, expected a finite one (a lower learning rate or "
         "clip_norm may help)"),
        ({"steps_per_epoch": 0}, ValueError, "[fit] steps_per_epoch is 0, expected 1 or more"),
        ({"seed": 1.5}, TypeError, "[fit] seed is 'float', expected an integer"),
        ({"epochs": "2"}, TypeError, "[fit] epochs is 'str', expected an integer"),
        ({"micro_batches": 2.0}, TypeError, "[fit] micro_batches is 'float', expected an integer"),
        ({"steps_per_epoch": "2"}, TypeError,
         "[fit] steps_per_epoch is 'str', expected an integer"),
        ({"clip_norm": float("nan")}, ValueError,
         "[fit] clip_norm is nan, expected a finite number above 0, or None"),
        ({"clip_norm": -1}, ValueError,
         "[fit] clip_norm is -1.0, expected a finite number above 0, or None"),
        ({"clip_norm": "1"}, TypeError, "[fit] clip_norm is 'str', expected a number"),
        ({"schedule": "fast"}, TypeError, "[fit] schedule is 'str', expected a number"),
        ({"callbacks": 3}, TypeError,
         "[fit] a callback is a int, expected a train.Callback or a function (epoch, logs)"),
        ({"early_stopping": 1.5}, TypeError,
         "[fit] early_stopping is 'float', expected an integer"),
        ({"tensorboard": 3}, TypeError, "[fit] tensorboard is 'int', expected a path"),
        ({"reduction": "sum"}, ValueError, "[fit] reduction is 'sum', expected one of exact, fast"),
        ({"communicator": 3}, TypeError,
         "[fit] communicator is a int, expected 'mpi', 'nccl', a process group of "
         "torch.distributed, a communicator of mpi4py, an object with the functions of "
         "train.Communicator, or None"),
        ({"batch_axis": (0, "1")}, TypeError, "[fit] batch_axis is 'str', expected an integer"),
        ({"batch_axis": (1, -1)}, ValueError, "[fit] batch_axis is (1, -1), expected 0 or more"),
        ({"micro_batches": 2, "data": [(X.T, Y[:4])], "batch_axis": (1, 0)}, ValueError,
         "[fit] x has 6 samples along axis 1 and y 4 along axis 0, expected as many (batch_axis)"),
        ({"batch_axis": 2}, ValueError,
         "[fit] x has shape (6, 3), expected more than 2 dimensions, as batch_axis is 2"),
    ],
)
def test_refused(changed, kind, text):
    layer = layers.Dense(1)
    layer.build((None, 3))
    before = layer.kernel.numpy().tobytes()
    given = {"data": (X, Y), "loss": "mean_squared_error", "progress": False,
             "optimizer": train.GradientDescentOptimizer(0.0), **changed}  # fmt: skip
    with pytest.raises(kind) as raised:
        train.fit(layer, **given)
    assert str(raised.value) == text
    assert layer.kernel.numpy().tobytes() == before


def test_a_model_without_trainable_weights():
    layer = layers.Dense(1)
    layer.trainable = False
    with pytest.raises(ValueError, match=r"^\[fit\] the model has no trainable weights, expected some$"):
        train.fit(layer, (X, Y), "mean_squared_error", train.Adam(), progress=False)


def test_a_rule_that_looks_at_what_is_not_there():
    with pytest.raises(ValueError, match="early_stopping looks at 'val_loss', expected validation"):
        train.fit(layers.Dense(1), (X, Y), "mean_squared_error", train.Adam(), progress=False,
                  early_stopping=train.EarlyStopping(2, "val_loss"))  # fmt: skip


def test_gradients_that_are_not_finite_change_nothing():
    layer = layers.Dense(1, kernel_initializer="zeros")
    layer.build((None, 3))
    huge = np.full((2, 3), 1e30, "float32")

    def loss(y, found):
        return openrnn.reduce_sum(found) * 1e30

    for parts in (1, 2):
        for clip_norm in (None, 1.0):
            with pytest.raises(ValueError, match="global norm of inf at step 0"):
                train.fit(layer, (huge, Y[:2]), loss, train.Adam(), progress=False, batch_size=2,
                          micro_batches=parts, clip_norm=clip_norm)  # fmt: skip
            assert not layer.kernel.numpy().any()


@pytest.mark.parametrize("call", [train.fit, train.evaluate])
def test_what_is_no_model(call):
    more = {} if call is train.evaluate else {"optimizer": train.Adam()}
    with pytest.raises(TypeError, match=r"model is a function, expected a layer or a Model"):
        call(lambda x: x, (X, Y), "mean_squared_error", **more)


def test_outputs_without_the_samples_of_a_batch():
    x = openrnn.Input((3,))
    for outputs, axes, text in [
        (layers.Dense(1)(x), (0, 1), r"an output of 2 samples has shape \(2, 1\), expected them along"),
        (openrnn.reduce_mean(x), 0, r"an output of 2 samples has shape \(\), expected them along axis 0"),
    ]:
        with pytest.raises(ValueError, match=text):
            openrnn.Model(x, outputs).predict(X, 2, batch_axis=axes)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: train.ExponentialDecay(0.1, 0, 0.5),
         "[ExponentialDecay] decay_steps is 0, expected 1 or more"),
        (lambda: train.ExponentialDecay(0.1, 3, 1.5),
         "[ExponentialDecay] decay_rate is 1.5, expected more than 0 and at most 1"),
        (lambda: train.CosineDecay(float("nan"), 3),
         "[CosineDecay] learning_rate is nan, expected a finite number of at least 0"),
        (lambda: train.CosineDecay(0.1, 3, 2.0), "[CosineDecay] alpha is 2.0, expected 0 to 1"),
        (lambda: train.PiecewiseConstant([3], [1.0]),
         "[PiecewiseConstant] 1 values, expected 2, one more than boundaries"),
        (lambda: train.PiecewiseConstant([10], [1, 2, 3]),
         "[PiecewiseConstant] 3 values, expected 2, one more than boundaries"),
        (lambda: train.PiecewiseConstant([3, 3], [1, 1, 1]),
         "[PiecewiseConstant] boundaries are [3, 3], expected ascending ones"),
        (lambda: train.WarmUp(0.1, 0), "[WarmUp] steps is 0, expected 1 or more"),
        (lambda: train.EarlyStopping(3, "acc"),
         "[EarlyStopping] monitor is 'acc', expected 'val_loss', 'loss' or None"),
        (lambda: train.EarlyStopping(0), "[EarlyStopping] patience is 0, expected 1 or more"),
        (lambda: train.EarlyStopping(3, min_delta=float("inf")),
         "[EarlyStopping] min_delta is inf, expected a finite number of at least 0"),
        (lambda: train.ConstantSchedule(float("inf")),
         "[ConstantSchedule] learning_rate is inf, expected a finite number of at least 0"),
        (lambda: train.WarmUp(-0.1, 3),
         "[WarmUp] schedule is -0.1, expected a finite number of at least 0"),
        (lambda: train.EarlyStopping(3, min_delta=-1),
         "[EarlyStopping] min_delta is -1.0, expected a finite number of at least 0"),
        (lambda: train.AdamW(weight_decay=-0.1),
         "[AdamWOptimizer] weight_decay -0.1, expected a finite number of at least 0"),
        (lambda: train.ExponentialDecay(0.1, 3, 0.0),
         "[ExponentialDecay] decay_rate is 0.0, expected more than 0 and at most 1"),
        (lambda: train.ExponentialDecay("a", 3, 0.5),
         "[ExponentialDecay] learning_rate is 'str', expected a number"),
        (lambda: train.ExponentialDecay(0.1, 3, None),
         "[ExponentialDecay] decay_rate is 'NoneType', expected a number"),
        (lambda: train.ExponentialDecay(-0.5, 3, 0.5),
         "[ExponentialDecay] learning_rate is -0.5, expected a finite number of at least 0"),
        (lambda: train.ExponentialDecay(0.1, 1.5, 0.5),
         "[ExponentialDecay] decay_steps is 'float', expected an integer"),
        (lambda: train.CosineDecay(0.1, 0), "[CosineDecay] decay_steps is 0, expected 1 or more"),
        (lambda: train.CosineDecay(0.1, 3, -0.5), "[CosineDecay] alpha is -0.5, expected 0 to 1"),
        (lambda: train.CosineDecay(0.1, 3, "a"), "[CosineDecay] alpha is 'str', expected a number"),
        (lambda: train.PiecewiseConstant([5, 3], [1, 1, 1]),
         "[PiecewiseConstant] boundaries are [5, 3], expected ascending ones"),
        (lambda: train.PiecewiseConstant([3.5], [1, 1]),
         "[PiecewiseConstant] a boundary is 'float', expected an integer"),
        (lambda: train.PiecewiseConstant(3, [1, 1]),
         "[PiecewiseConstant] boundaries is 'int', expected a list of steps"),
        (lambda: train.PiecewiseConstant([3], 0.5),
         "[PiecewiseConstant] values is 'float', expected a list of rates"),
        (lambda: train.PiecewiseConstant([3], [0.5, -1]),
         "[PiecewiseConstant] a value is -1.0, expected a finite number of at least 0"),
        (lambda: train.PiecewiseConstant([3], [0.5, "a"]),
         "[PiecewiseConstant] a value is 'str', expected a number"),
        (lambda: train.EarlyStopping(3, min_delta="a"),
         "[EarlyStopping] min_delta is 'str', expected a number"),
        (lambda: train.EarlyStopping(2.5),
         "[EarlyStopping] patience is 'float', expected an integer"),
        (lambda: train.WarmUp("a", 2), "[WarmUp] schedule is 'str', expected a number"),
        (lambda: train.WarmUp(0.1, 2.5), "[WarmUp] steps is 'float', expected an integer"),
        (lambda: train.ConstantSchedule(b"1"),
         "[ConstantSchedule] learning_rate is 'bytes', expected a number"),
        (lambda: train.ConstantSchedule(bytearray(b"1")),
         "[ConstantSchedule] learning_rate is 'bytearray', expected a number"),
        (lambda: train.ExponentialDecay(0.1, 3, 0.5)(-2),
         "[ExponentialDecay] step is -2, expected 0 or more"),
        (lambda: train.CosineDecay(0.1, 3)(-2), "[CosineDecay] step is -2, expected 0 or more"),
        (lambda: train.PiecewiseConstant([3], [0.5, 1])(-2),
         "[PiecewiseConstant] step is -2, expected 0 or more"),
        (lambda: train.WarmUp(0.1, 3)(-2), "[WarmUp] step is -2, expected 0 or more"),
        (lambda: train.WarmUp(0.1, 3)(1.5), "[WarmUp] step is 'float', expected an integer"),
        (lambda: train.Adam(beta1=1.0), "[AdamWOptimizer] beta1 1, expected 0 to below 1"),
    ],
)
def test_refused_constructors(make, text):
    with pytest.raises((ValueError, TypeError)) as raised:
        make()
    assert str(raised.value) == text
