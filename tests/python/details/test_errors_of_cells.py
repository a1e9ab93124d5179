"""What cells and loops refuse, by all of its words."""

import numpy as np
import openrnn
import pytest
from openrnn import nn
from openrnn.nn.rnn_cell import (
    BasicLSTMCell, BasicRNNCell, DropoutWrapper, GRUCell, LayerNormBasicLSTMCell, LSTMCell,
    LSTMStateTuple, MultiRNNCell, RNNCell,
)  # fmt: skip

X, S = np.ones((2, 3), "float32"), np.ones((2, 4), "float32")
STEPS = np.ones((2, 5, 3), "float32")


class Own(RNNCell):
    """A cell whose state and result are what they are said to be."""

    output_size = 4

    def __init__(self, size, result=None):
        super().__init__(name="own")
        self.size, self.result = size, result

    @property
    def state_size(self):
        return self.size

    def call(self, inputs, state):
        return self.result if self.result is not None else (inputs, state)


class Whole(RNNCell):
    state_size = output_size = 4

    def __call__(self, inputs, state, scope=None):
        return inputs


class Nothing(RNNCell):
    state_size = output_size = 4

    def call(self, inputs, state):
        pass


class Without(RNNCell):
    state_size = output_size = 4


def lstm(**kw):
    return LSTMCell(4, name="lstm", **kw)


def run(*cells, **kw):
    return nn.stack_bidirectional_dynamic_rnn(*cells, STEPS, dtype="float32", **kw)


CASES = [
    # A state of another structure.
    (lambda: lstm()(X, S), ValueError, "[lstm] the state is ndarray, expected length 2: (c, h)"),
    (lambda: lstm()(X, (S, S, S)), ValueError, "[lstm] the state is 3, expected length 2: (c, h)"),
    (lambda: lstm()(X, [S]), ValueError, "[lstm] the state is 1, expected length 2: (c, h)"),
    (lambda: lstm()(X, None), ValueError,
     "[lstm] the state is NoneType, expected length 2: (c, h)"),
    (lambda: lstm(state_is_tuple=False)(X, (S, S)), ValueError,
     "[lstm] the state is a tuple of 2, expected one tensor as state_is_tuple is False"),
    (lambda: lstm(state_is_tuple=False)(X, [S]), ValueError,
     "[lstm] the state is a list of 1, expected one tensor as state_is_tuple is False"),
    (lambda: lstm(state_is_tuple=False)(X, S), ValueError,
     "[lstm] the state has shape (2, 4), expected [batch, 8]"),
    (lambda: lstm(state_is_tuple=False, num_proj=3)(X, np.ones((2, 8), "float32")), ValueError,
     "[lstm] the state has shape (2, 8), expected [batch, 7]"),
    (lambda: lstm(state_is_tuple=False)(X, np.ones(8, "float32")), ValueError,
     "[lstm] the state has shape (8,), expected [batch, 8]"),
    (lambda: lstm(state_is_tuple=False)(X, openrnn.ones((3, 2, 8))), ValueError,
     "[lstm] the state has shape (3, 2, 8), expected [batch, 8]"),
    (lambda: lstm(state_is_tuple=False)(X, openrnn.Variable(np.ones((2, 9), "float32"))), ValueError,
     "[lstm] the state has shape (2, 9), expected [batch, 8]"),
    (lambda: GRUCell(4, name="gru")(X, (S,)), ValueError,
     "[gru] the state is a tuple of 1, expected one tensor"),
    (lambda: GRUCell(4, name="gru")(X, [S, S]), ValueError,
     "[gru] the state is a list of 2, expected one tensor"),
    (lambda: MultiRNNCell([GRUCell(4)])(X, S), ValueError,
     "[MultiRNNCell] the state is a ndarray, expected a tuple of 1"),
    (lambda: MultiRNNCell([GRUCell(4)])(X, [S]), ValueError,
     "[MultiRNNCell] the state is a list of 1, expected a tuple of 1"),
    (lambda: MultiRNNCell([GRUCell(4), GRUCell(4)])(X, (S,)), ValueError,
     "[MultiRNNCell] the state is a tuple of 1, expected a tuple of 2"),
    (lambda: MultiRNNCell([GRUCell(4, name="gru"), lstm()])(X, (S, S)), ValueError,
     "[lstm] the state is ndarray, expected length 2: (c, h)"),
    (lambda: DropoutWrapper(lstm())(X, (S,)), ValueError,
     "[lstm] the state is 1, expected length 2: (c, h)"),
    # Your own cells.
    (lambda: Own((4, (4, 4)))(X, (S, S)), ValueError,
     "[own] the state is a tuple of 2, expected a tuple of 3 as state_size"),
    (lambda: Own((4, 4))(X, S), ValueError,
     "[own] the state is a ndarray, expected a tuple of 2 as state_size"),
    (lambda: Own(4)(X, (S,)), ValueError,
     "[own] the state is a tuple of 1, expected one tensor as state_size"),
    (lambda: Own(LSTMStateTuple(4, 4))(X, [S]), ValueError,
     "[own] the state is a list of 1, expected a tuple of 2 as state_size"),
    (lambda: Own(4)(X, None), TypeError, "[own] an array of object, expected float32"),
    (lambda: Own((4, 4))(X, None), ValueError,
     "[own] the state is None, expected a tuple of 2 as state_size"),
    (lambda: Own(4, X)(X, S), ValueError,
     "[own] call() returned a ndarray, expected (output, state)"),
    (lambda: Nothing(name="nothing")(X, S), ValueError,
     "[nothing] call() returned None, expected (output, state)"),
    (lambda: Own(4, (X, S, S))(X, S), ValueError,
     "[own] call() returned a tuple of 3, expected (output, state)"),
    (lambda: Own(4, [X])(X, S), ValueError,
     "[own] call() returned a list of 1, expected (output, state)"),
    (lambda: Own(4, (X, (S, S)))(X, S), ValueError,
     "[own] the state is a tuple of 2, expected one tensor as state_size"),
    (lambda: nn.dynamic_rnn(Whole(name="whole"), STEPS, dtype="float32"), ValueError,
     "[whole] __call__() returned a Tensor, expected (output, state)"),
    (lambda: Without()(X, S), NotImplementedError,
     "[without] its class has no call(), expected a subclass that has one"),
    (lambda: Without().call(X, S), NotImplementedError, "[Without] it has no call(), expected one"),
    # What a constructor takes.
    (lambda: BasicRNNCell(4, "elu"), ValueError,
     "[BasicRNNCell] activation is 'elu', expected ['linear', 'relu', 'sigmoid', 'tanh']"),
    (lambda: BasicLSTMCell(4, activation="elu"), ValueError,
     "[BasicLSTMCell] activation is 'elu', expected ['linear', 'relu', 'sigmoid', 'tanh']"),
    (lambda: lstm(num_unit_shards=2), NotImplementedError,
     "[LSTMCell] num_unit_shards is 2, expected None: variables are not partitioned"),
    (lambda: lstm(num_proj_shards=3), NotImplementedError,
     "[LSTMCell] num_proj_shards is 3, expected None: variables are not partitioned"),
    (lambda: LayerNormBasicLSTMCell(4, input_size=3), NotImplementedError,
     "[LayerNormBasicLSTMCell] input_size is 3, expected None: the first input tells it"),
    (lambda: LayerNormBasicLSTMCell(4, norm_gain="1"), TypeError,
     "[LayerNormBasicLSTMCell] norm_gain is 'str', expected a number"),
    (lambda: LayerNormBasicLSTMCell(4, norm_shift=None), TypeError,
     "[LayerNormBasicLSTMCell] norm_shift is 'NoneType', expected a number"),
    (lambda: LayerNormBasicLSTMCell(4, forget_bias="1"), TypeError,
     "[LayerNormBasicLSTMCell] forget_bias is 'str', expected a number"),
    (lambda: LayerNormBasicLSTMCell(4, dropout_keep_prob="1"), TypeError,
     "[LayerNormBasicLSTMCell] dropout_keep_prob is 'str', expected a number"),
    (lambda: MultiRNNCell({"a": GRUCell(4)}), TypeError,
     "[MultiRNNCell] cells is a dict, expected a list or tuple"),
    (lambda: MultiRNNCell(GRUCell(4)), TypeError,
     "[MultiRNNCell] cells is a GRUCell, expected a list or tuple"),
    (lambda: MultiRNNCell([]), ValueError, "[MultiRNNCell] no cells, expected at least one"),
    (lambda: MultiRNNCell([GRUCell(4)], state_is_tuple=False), ValueError,
     "[MultiRNNCell] state_is_tuple is False, expected True"),
    (lambda: DropoutWrapper(GRUCell(4), input_keep_prob="1"), TypeError,
     "[DropoutWrapper] input_keep_prob is 'str', expected a number"),
    (lambda: DropoutWrapper(GRUCell(4), state_keep_prob=None), TypeError,
     "[DropoutWrapper] state_keep_prob is 'NoneType', expected a number"),
    (lambda: GRUCell(4).zero_state(2.5, "float32"), TypeError,
     "[zero_state] batch_size is 'float', expected an integer"),
    # The loops.
    (lambda: nn.dynamic_rnn(openrnn.layers.Dense(4), STEPS), TypeError,
     "[dynamic_rnn] cell is a Dense, expected an RNN cell"),
    (lambda: nn.bidirectional_dynamic_rnn(GRUCell, GRUCell(4), STEPS), TypeError,
     "[bidirectional_dynamic_rnn] cell_fw is a nb_type, expected an RNN cell"),
    (lambda: nn.bidirectional_dynamic_rnn(GRUCell(4), 3, STEPS), TypeError,
     "[bidirectional_dynamic_rnn] cell_bw is a int, expected an RNN cell"),
    (lambda: nn.bidirectional_dynamic_rnn(lstm(), GRUCell(4, name="gru"), STEPS, initial_state_fw=S), ValueError,
     "[lstm] the state is ndarray, expected length 2: (c, h)"),
    (lambda: nn.bidirectional_dynamic_rnn(GRUCell(4), lstm(), STEPS, initial_state_bw=S), ValueError,
     "[lstm] the state is ndarray, expected length 2: (c, h)"),
    (lambda: nn.static_rnn(None, [X]), TypeError,
     "[static_rnn] cell is a NoneType, expected an RNN cell"),
    (lambda: nn.static_rnn(GRUCell(4), STEPS), TypeError,
     "[static_rnn] inputs is a ndarray, expected a list"),
    (lambda: nn.static_rnn(GRUCell(4), []), ValueError,
     "[static_rnn] no inputs, expected one for each time step"),
    (lambda: run([GRUCell(4)], (GRUCell(4),)), ValueError,
     "[stack_bidirectional_dynamic_rnn] cells_bw is (<openrnn.GRUCell 'gru_cell'>,), expected a "
     "list of cells that is not empty"),
    (lambda: run([], [GRUCell(4)]), ValueError,
     "[stack_bidirectional_dynamic_rnn] cells_fw is [], expected a list of cells that is not "
     "empty"),
    (lambda: run([3], [GRUCell(4)]), TypeError,
     "[stack_bidirectional_dynamic_rnn] an element of cells_fw is a int, expected an RNN cell"),
    (lambda: run([GRUCell(4)], [GRUCell(4), GRUCell]), TypeError,
     "[stack_bidirectional_dynamic_rnn] an element of cells_bw is a nb_type, expected an RNN cell"),
    (lambda: run([GRUCell(4)] * 2, [GRUCell(4)]), ValueError,
     "[stack_bidirectional_dynamic_rnn] 2 forward and 1 backward cells, expected as many"),
    (lambda: run([GRUCell(4)], [GRUCell(4)], initial_states_fw=S), ValueError,
     "[stack_bidirectional_dynamic_rnn] initial_states_fw is a ndarray, expected a list of 1, one "
     "state a layer"),
    (lambda: run([GRUCell(4)], [GRUCell(4)], initial_states_bw=(S, S)), ValueError,
     "[stack_bidirectional_dynamic_rnn] initial_states_bw is a tuple of 2, expected a list of 1, "
     "one state a layer"),
    (lambda: run([GRUCell(4)], [GRUCell(4)], initial_states_bw=[S, S, S]), ValueError,
     "[stack_bidirectional_dynamic_rnn] initial_states_bw is a list of 3, expected a list of 1, "
     "one state a layer"),
    (lambda: run([GRUCell(4)], [lstm()], initial_states_fw=[S], initial_states_bw=[S]), ValueError,
     "[lstm] the state is ndarray, expected length 2: (c, h)"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "kind", "text"), CASES)
def test_what_cells_refuse(make, kind, text):
    with pytest.raises(kind) as raised:
        make()
    assert str(raised.value) == text
