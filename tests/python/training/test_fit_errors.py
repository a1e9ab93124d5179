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
        ({"data": (BAD, Y)}, ValueError, "[fit] the loss of step 1 is nan, expected a finite one"),
        ({"validation": (BAD, Y)}, ValueError, "[fit] the loss of a batch is nan"),
        ({"data": (X, Y[:5])}, ValueError, "[fit] x has 6 samples along axis 0 and y 5 along"),
        ({"data": (X[:0], Y[:0])}, ValueError, "[fit] the data has no samples"),
        ({"data": []}, ValueError, "[fit] the data gave 0 batches, expected some"),
        ({"data": iter([])}, ValueError, "[fit] the data gave 0 batches, expected some"),
        ({"data": [X]}, ValueError, "[fit] a batch is a ndarray, expected a pair (x, y)"),
        ({"data": X}, TypeError, "[fit] data is one array of type ndarray, expected a pair"),
        ({"data": 3}, TypeError, "[fit] data is a int, expected a pair of arrays"),
        ({"validation": (X, Y[:5])}, ValueError, "[fit, validation] x has 6 samples along axis 0"),
        ({"validation": (X[:0], Y[:0])}, ValueError, "[fit, validation] the data has no samples"),
        ({"validation": iter([(X, Y)]), "epochs": 2}, ValueError, "[fit, validation] the data is a l"),
        ({"data": iter([(X, Y)]), "epochs": 2}, ValueError, "[fit] the data is a list_iterator"),
        ({"data": [(X, Y)], "steps_per_epoch": 3}, ValueError, "[fit] the data gave 1 batches"),
        ({"data": [(X, Y, Y)]}, ValueError, "[fit] a batch is a tuple, expected a pair (x, y)"),
        ({"data": "words"}, TypeError, "[fit] data is a str, expected a pair of arrays"),
        ({"data": {"x": X}}, TypeError, "[fit] data is a dict, expected a pair of arrays"),
        ({"data": ([X, X[:5]], Y)}, ValueError, "[fit] x has [5, 6] samples, expected one number of"),
        ({"data": (X, Y[:, 0]), "batch_axis": (0, 1)}, ValueError,
         "[fit] y has shape (6,), expected more than 1 dimensions, as batch_axis is 1"),
        ({"clip_norm": float("inf")}, ValueError, "[fit] clip_norm is inf, expected a finite number"),
        ({"steps_per_epoch": 2}, ValueError, "[fit] steps_per_epoch is 2 with arrays"),
        ({"data": [(X, Y[:0])]}, ValueError, "[fit] the labels of a batch have shape (0, 1)"),
        ({"loss": "nothing"}, ValueError, "[fit] loss is 'nothing', expected one of ["),
        ({"loss": 3}, TypeError, "[fit] loss is a int, expected a name or a function"),
        ({"loss": lambda y, p: 1.0}, TypeError, "[fit] the loss returned a float, expected a Te"),
        ({"loss": lambda y, p: p}, ValueError, "[fit] the loss has shape (6, 1), expected one nu"),
        ({"loss": lambda y, p: openrnn.constant(1.0)}, ValueError, "[fit] the loss depends on none"),
        ({"epochs": 0}, ValueError, "[fit] epochs is 0, expected 1 or more"),
        ({"batch_size": 0}, ValueError, "[fit] batch_size is 0, expected 1 or more"),
        ({"batch_size": 2.5}, TypeError, "[fit] batch_size is 'float', expected an integer"),
        ({"micro_batches": -1}, ValueError, "[fit] micro_batches is -1, expected 1 or more"),
        ({"micro_batches": 3}, ValueError,
         "[fit] micro_batches is 3 with a batch_size of 32, expected a divisor of it"),
        ({"micro_batches": 2, "batch_axis": (2, 0), "data": [(X, Y)]}, ValueError,
         "[fit] micro_batches is 2 with x's batch_axis 2, expected an axis of 0 or 1"),
        ({"micro_batches": 2, "data": [(X, Y[:1])]}, ValueError,
         "[fit] x has "),
        ({"clip_norm": 0.0}, ValueError, "[fit] clip_norm is 0.0, expected a finite number above 0"),
        ({"schedule": -1.0}, ValueError, "[fit] schedule is -1.0, expected a finite number"),
        ({"optimizer": Other()}, TypeError, "[fit] optimizer is a Other, expected one of openrnn"),
        ({"callbacks": [3]}, TypeError, "[fit] a callback is a int, expected a train.Callback"),
        ({"early_stopping": 0}, ValueError, "[fit] early_stopping is 0, expected 1 or more"),
        ({"batch_axis": (0, 1, 2)}, ValueError, "[fit] batch_axis has 3 parts, expected one axis"),
        ({"batch_axis": -1}, ValueError, "[fit] batch_axis is (-1, -1), expected 0 or more"),
        ({"batch_axis": 2}, ValueError, "[fit] x has shape (6, 3), expected more than 2 dimensions"),
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
    assert text in str(raised.value)
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
        (lambda: train.ExponentialDecay(0.1, 0, 0.5), "decay_steps is 0, expected 1 or more"),
        (lambda: train.ExponentialDecay(0.1, 3, 1.5), "decay_rate is 1.5, expected more than 0"),
        (lambda: train.CosineDecay(float("nan"), 3), "learning_rate is nan, expected a finite"),
        (lambda: train.CosineDecay(0.1, 3, 2.0), "alpha is 2.0, expected 0 to 1"),
        (lambda: train.PiecewiseConstant([3], [1.0]), "1 values, expected 2, one more than"),
        (lambda: train.PiecewiseConstant([3, 3], [1, 1, 1]), "boundaries are [3, 3], expected asc"),
        (lambda: train.WarmUp(0.1, 0), "steps is 0, expected 1 or more"),
        (lambda: train.EarlyStopping(3, "acc"), "monitor is 'acc', expected 'val_loss', 'loss'"),
        (lambda: train.EarlyStopping(0), "patience is 0, expected 1 or more"),
        (lambda: train.EarlyStopping(3, min_delta=float("inf")), "min_delta is inf, expected a finite"),
        (lambda: train.ConstantSchedule(float("inf")), "learning_rate is inf, expected a finite"),
        (lambda: train.WarmUp(-0.1, 3), "schedule is -0.1, expected a finite number of at least 0"),
        (lambda: train.EarlyStopping(3, min_delta=-1), "min_delta is -1.0, expected a finite"),
        (lambda: train.AdamW(weight_decay=-0.1), "weight_decay -0.1, expected a finite number"),
        (lambda: train.Adam(beta1=1.0), "beta1 1, expected 0 to below 1"),
    ],
)
def test_refused_constructors(make, text):
    with pytest.raises(ValueError) as raised:
        make()
    assert text in str(raised.value)
