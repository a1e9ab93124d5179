"""What optimizers and runs refuse, by all of its words."""

import numpy as np
import openrnn
import pytest
from openrnn import train


def adam():
    return train.AdamOptimizer(0.1)


def variable(name="v", **kw):
    return openrnn.Variable([1.0, 2.0], name=name, **kw)


def loss_of(v):
    return lambda: openrnn.reduce_sum(v * v)


CASES = [
    (lambda: adam().minimize(3), TypeError,
     "[minimize] loss is a int, expected a function that returns a Tensor"),
    (lambda: adam().compute_gradients(openrnn.constant(1.0)), TypeError,
     "[compute_gradients] loss is a Tensor, expected a function that returns a Tensor"),
    (lambda: adam().compute_gradients(lambda: 1.0), TypeError,
     "[compute_gradients] loss() returned a float, expected a Tensor"),
    (lambda: adam().minimize(lambda: np.ones(1)), TypeError,
     "[minimize] loss() returned a ndarray, expected a Tensor"),
    (lambda: adam().minimize(lambda: openrnn.constant(1.0)), ValueError,
     "[minimize] there are no variables, expected some"),
    (lambda: adam().minimize(loss_of(variable()), var_list=[]), ValueError,
     "[minimize] there are no variables, expected some"),
    (lambda: adam().compute_gradients(loss_of(variable(trainable=False))), ValueError,
     "[compute_gradients] there are no variables, expected some"),
    (lambda: adam().minimize(loss_of(variable()), var_list=3), TypeError,
     "[minimize] var_list is 'int', expected a list of variables"),
    (lambda: adam().compute_gradients(loss_of(variable()), "v"), TypeError,
     "[compute_gradients] var_list is 'str', expected a list of variables"),
    (lambda: adam().minimize(lambda: openrnn.constant(1.0), var_list=[variable("a"), variable("b")]), ValueError,
     "[minimize] no gradients for any variable of ['a', 'b']"),
    (lambda: adam().minimize(loss_of(variable()), clip_norm=0), ValueError,
     "[minimize] clip_norm is 0.0, expected a number above 0, or None"),
    (lambda: adam().minimize(loss_of(variable()), clip_norm=-0.5), ValueError,
     "[minimize] clip_norm is -0.5, expected a number above 0, or None"),
    (lambda: adam().minimize(loss_of(variable()), clip_norm=float("nan")), ValueError,
     "[minimize] clip_norm is nan, expected a number above 0, or None"),
    (lambda: adam().minimize(loss_of(variable()), clip_norm="1"), TypeError,
     "[minimize] clip_norm is 'str', expected a number"),
    (lambda: adam().apply_gradients(3), TypeError,
     "[apply_gradients] grads_and_vars is 'int', expected a list of pairs"),
    (lambda: adam().apply_gradients([3]), TypeError,
     "[apply_gradients] an element is 'int', expected a list of two: gradient, variable"),
    (lambda: adam().apply_gradients([([1.0, 2.0], variable(), 3)]), ValueError,
     "[apply_gradients] an element is no pair, expected (gradient, variable)"),
    (lambda: adam().apply_gradients([([1.0, 2.0],)]), ValueError,
     "[apply_gradients] an element is no pair, expected (gradient, variable)"),
    (lambda: adam().apply_gradients([]), ValueError,
     "[apply_gradients] there are no variables, expected some"),
    (lambda: adam().apply_gradients([(None, variable("a")), (None, variable("b"))]), ValueError,
     "[apply_gradients] no gradients for any variable of ['a', 'b'], expected one"),
    (lambda: train.Run(3), TypeError, "[Run] out is 'int', expected a path"),
    (lambda: train.Run("out", input=3), TypeError, "[Run] input is 'int', expected a path"),
    (lambda: train.Run("out", input="text", valid=3), TypeError,
     "[Run] valid is 'int', expected a path"),
    (lambda: train.Run("out", input="text", columns=3), TypeError,
     "[Run] columns is 'int', expected a list of names or numbers"),
    (lambda: train.Run("out", input="text", columns=["a", 0.5]), TypeError,
     "[Run] a column is 'float', expected an integer"),
    (lambda: train.Run("out", input="text", communicator=3), TypeError,
     "[Run] communicator is a int, expected 'mpi', 'nccl', a process group of torch.distributed, "
     "a communicator of mpi4py, an object with the functions of train.Communicator, or None"),
    (lambda: train.Run("out", input="text", reduction=None), ValueError,
     "[Run] reduction is None, expected one of exact, fast"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "kind", "text"), CASES)
def test_what_training_refuses(make, kind, text):
    with pytest.raises(kind) as raised:
        make()
    assert str(raised.value) == text


def test_gradients_that_are_none_leave_their_variables():
    a, b = variable("a"), variable("b")
    train.GradientDescentOptimizer(0.5).apply_gradients(((one, v) for one, v in ((None, a), ([2.0, 4.0], b))))
    assert (a.numpy().tolist(), b.numpy().tolist()) == ([1.0, 2.0], [0.0, 0.0])
    pairs = train.GradientDescentOptimizer(0.5).compute_gradients(loss_of(a), (b, a))
    assert [pair[1].name for pair in pairs] == ["b", "a"] and pairs[0][0] is None
    assert pairs[1][0].numpy().tolist() == [2.0, 4.0]
    optimizer = train.GradientDescentOptimizer(0.5)
    value = optimizer.minimize(loss_of(a), clip_norm=1e9)
    assert value.numpy() == 5.0 and a.numpy().tolist() == [0.0, 0.0]
