"""Nodes without layers, cells without members, groups of threads, threads of other libraries."""

import copy
import ctypes
import gc
import pickle
import subprocess
import sys
import threading

import numpy as np
import openrnn
import pytest
from openrnn import _core, cudnn_rnn, layers
from openrnn.nn import rnn_cell
from table.support import error_text

SECONDS = 120  # after which a thread that waits for others is lost


def test_a_cell_that_says_nothing_of_itself():
    class Bare(rnn_cell.RNNCell):
        pass

    cell, ones = Bare(name="bare"), np.ones((2, 3), "float32")
    for what, call in (
        ("output_size", lambda: cell.output_size),
        ("state_size", lambda: cell.state_size),
        ("state_size", lambda: cell.zero_state(2, "float32")),
        ("state_size", lambda: cell(ones, ones)),
    ):
        assert error_text(openrnn.UnsupportedError, call) == (
            f"[bare] its class has no {what}, expected a subclass that has one"
        )


def test_nodes_are_compared_by_their_calls():
    x, dense = openrnn.Input((3,)), layers.Dense(2)
    outputs = [dense(x), dense(x)]
    one, other = dense.inbound_nodes
    again = dense.inbound_nodes[0]
    assert one == again and hash(one) == hash(again) and not one != again
    assert one != other and one != 3 and one != None and not one == "one"  # noqa: E711
    assert one.output_tensors[0] is outputs[0] and one.output_tensors[0] is not outputs[1]
    assert [node.input_tensors for node in (one, other)] == [[x], [x]]


def test_a_node_whose_layer_is_gone():
    x, dense = openrnn.Input((3,)), layers.Dense(2, name="d")
    dense(x)
    (node,) = dense.inbound_nodes
    held = node.output_tensors[0]
    del dense
    gc.collect()
    assert node.outbound_layer is not None and node.output_tensors[0] is held, "an output keeps it"
    del held
    gc.collect()
    assert node.outbound_layer is None and node.output_shapes == [(None, 2)]
    text = (
        "[Model] the recorded call of 'd' is to be copied or pickled, expected one that can be: "
        "its layer is gone"
    )
    assert (
        error_text(TypeError, lambda: pickle.dumps(node))
        == error_text(TypeError, lambda: copy.deepcopy(node))
        == text
    )
    model = openrnn.Model(x, node.output_tensors[0])
    assert error_text(openrnn.StateError, lambda: model(np.ones((1, 3)))) == (
        "[Model] the layer 'd' is gone, expected it to outlive the tensors that it made "
        "(one made by std::make_shared does)"
    )


def test_a_saveable_is_made_once():
    layer = cudnn_rnn.CudnnLSTM(2, 2)
    assert layer.saveable is None
    assert error_text(openrnn.StateError, layer._create_saveable) == (
        "[CudnnLSTM] create_saveable of 'cudnn_lstm' before the input shape is known, expected a "
        "build or a call before"
    )
    layer.build((None, None, 3))
    assert layer.saveable is layer.saveable
    assert error_text(openrnn.StateError, layer._create_saveable) == (
        "Cudnn saveable already created [cudnn_lstm], expected a layer without"
    )
    assert layer._canonical_weight_shape(0) == [(2, 3)] * 4 + [(2, 2)] * 4
    assert layer._canonical_weight_shape(1) == [(2, 2)] * 8
    assert layer.canonical_weight_shapes == layer._canonical_weight_shape(
        0
    ) + layer._canonical_weight_shape(1)
    assert layer.canonical_bias_shapes == [[2]] * 16


def test_no_copy_on_the_device_where_an_array_lies():
    array = np.array([1.5, 2.5], "float32")
    for device in (None, "cpu"):
        assert np.shares_memory(
            array, np.asarray(openrnn.from_dlpack(array, device=device, copy=False))
        )
        apart = openrnn.from_dlpack(array, device=device, copy=True)
        assert not np.shares_memory(array, np.asarray(apart)) and apart.device == "cpu"


def test_a_group_of_threads():
    group = _core.thread_communicators(3)
    assert [(one.rank, one.size) for one in group] == [(0, 3), (1, 3), (2, 3)]
    order = []

    def meet(one):
        if one.rank == 0:
            order.append("first")
        one.barrier()
        order.append("after")
        one.barrier()

    threads = [threading.Thread(target=meet, args=(one,), daemon=True) for one in group]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert order == ["first", "after", "after", "after"]
    group[0].abort("why not")
    assert error_text(openrnn.EngineError, group[1].barrier) == "[Communicator] rank 0 gave up: why not"


def test_parts_that_each_number_of_processes_expects():
    for processes, parts in ((1, 1), (2, 2), (2, 4), (4, 8)):
        assert _core.expected_parts(parts, processes) == ""
    for parts in (1, 3):
        assert _core.expected_parts(parts, 2) == (
            "that many times a power of two, so that each computes a subtree of the sum: 2, 4, 8, .."
        )


PROGRAM = """
import ctypes, sys
import numpy as np
from openrnn import _core

def is_loaded():
    with open("/proc/self/maps") as maps:
        return "libgomp" in maps.read()

before = is_loaded()
assert _core.find_torch_threads("libgomp.so.1") == before == is_loaded(), "it loads nothing"
library = ctypes.CDLL("libgomp.so.1")
options = {"rnn_mode": "lstm", "num_units": 64, "input_size": 48, "single_bias": True}
cell = _core.KerasCell({**options, "dtype": "float64"})
draw = np.random.default_rng(1).normal
shapes = [(96, 12, 48), (96, 64), (96, 64), (48, 256), (64, 256), (256,)]
arrays = [draw(size=shape) / 4 for shape in shapes]

def run(threads):
    made = [np.zeros((96, 12, 64)), np.zeros((96, 64)), np.zeros((96, 64))]
    saved = cell.forward(arrays, None, (False, True, False), True, made, threads)
    back = [np.zeros_like(one) for one in arrays]
    saved.backward(made, back)
    return made + back

before = run(3)
assert not _core.find_torch_threads("nothing.so") and not _core.find_torch_threads("libm.so.6")
assert _core.find_torch_threads("libgomp.so.1")
for threads in (0, 1, 2, 3, 5):
    for one, other in zip(before, run(threads), strict=True):
        np.testing.assert_array_equal(one, other)
assert all(np.abs(one).max() > 0 for one in before)
print("the same")
"""


def test_threads_of_openmp_compute_the_same_bits():
    try:
        ctypes.CDLL("libgomp.so.1")
    except OSError:
        pytest.skip("there is no libgomp.so.1")
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert (found.returncode, found.stdout) == (0, "the same\n"), found.stderr
