"""Object-based checkpoints: tf.train.Checkpoint reads what layers here saved, and the reverse.

Slots of Adam move along: the moment of a cell's one bias is that of each of the two here."""

from itertools import product

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

import file_tools as tools
from model import numpy_layout
from model.numpy_layout import Spec

MODES = ["lstm", "gru", "rnn_tanh", "rnn_relu"]
DIRECTIONS = ["unidirectional", "bidirectional"]
SPECS = [Spec(m, n, 7, 3, direction=d) for m, n, d in product(MODES, (1, 2), DIRECTIONS)]
SPECS += [Spec("lstm", n, 7, 3, direction=d, num_proj=5) for n, d in product((1, 2), DIRECTIONS)]
SPECS += [Spec(m, 2, 7, 7, input_mode="skip_input") for m in MODES]


def name_of(spec):
    extra = "-proj" * bool(spec.num_proj) + "-skip" * spec.skip
    return f"{spec.mode}-{spec.num_layers}-{spec.direction}{extra}"


def call_objects(command, spec, prefix, names, dtype, *more):
    words = {
        "mode": spec.mode,
        "layers": spec.num_layers,
        "units": spec.num_units,
        "input": spec.input_size,
        "direction": spec.direction,
        "input_mode": spec.input_mode,
        "proj": spec.num_proj,
        "dtype": dtype,
    }
    words = [f"{key}={value}" for key, value in words.items()]
    return tools.call_tool("objects", command, prefix, names, *words, *more).strip()


def read_names(prefix):
    reader = tf.train.load_checkpoint(str(prefix))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def tensors_of(spec, dtype):
    """Canonical names to zeros of their shapes."""
    zeros = np.zeros(numpy_layout.params_size(spec), dtype)
    return {name: np.ascontiguousarray(t) for name, t in numpy_layout.to_tf(spec, zeros)}


def raw_name(spec):
    return {"lstm": "cudnn_lstm", "gru": "cudnn_gru"}.get(spec.mode, f"cudnn_{spec.mode}")


def slots_of(spec, names, suffix):
    """The tensors of a raw slot, as a cell with one bias has them."""
    tensors = dict(numpy_layout.to_tf(spec, names[f"{raw_name(spec)}/opaque_kernel/{suffix}"]))
    for name in tensors:
        if name.endswith("bias") and "candidate" not in name:
            tensors[name] = 0.5 * tensors[name]  # to_tf has added two that are alike
    return tensors


class Tree:
    """A tree of plain TensorFlow objects with the names of a layer's pieces."""

    def __init__(self, spec, dtype, rng=None):
        self.variables, nodes = {}, {}
        for name, zeros in tensors_of(spec, dtype).items():
            pseudo = next(
                p
                for p in range(spec.num_pseudo)
                if name.startswith(numpy_layout.cell_prefix(spec, p) + "/")
            )
            layer, side = divmod(pseudo, spec.num_dirs)
            cell = "cell" if spec.num_dirs == 1 else ("cells_fw", "cells_bw")[side]
            suffix = name.removeprefix(numpy_layout.cell_prefix(spec, pseudo) + "/")
            value = zeros if rng is None else rng.uniform(-0.5, 0.5, zeros.shape).astype(dtype)
            self.variables[name] = tf.Variable(value)
            nodes.setdefault(f"{cell}-{layer}", {})[suffix] = self.variables[name]
        self.net = tf.train.Checkpoint(
            **{cell: tf.train.Checkpoint(**children) for cell, children in nodes.items()}
        )
        self.x = tf.Variable(np.zeros(2))
        self.opt = tf.compat.v1.train.AdamOptimizer(0.01)

    def checkpoint(self):
        return tf.train.Checkpoint(net=self.net, x=self.x, opt=self.opt)

    def values(self):
        return {name: variable.numpy() for name, variable in self.variables.items()}

    def slots(self, slot):
        return {n: self.opt.get_slot(v, slot).numpy() for n, v in self.variables.items()}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("spec", SPECS, ids=name_of)
def test_tensorflow_reads_ours(tmp_path, spec, dtype):
    prefix = call_objects("save", spec, tmp_path / "ck", tmp_path / "names", dtype)
    assert prefix == str(tmp_path / "ck-1") == tf.train.latest_checkpoint(str(tmp_path))
    names = read_names(tmp_path / "names")
    tree = Tree(spec, dtype)
    checkpoint = tree.checkpoint()
    status = checkpoint.restore(prefix)
    # TensorFlow makes an optimizer's variables, with the values it has waiting, at the first step.
    tree.opt._create_slots(list(tree.variables.values()))
    status.assert_consumed()
    assert int(checkpoint.save_counter) == 1
    assert list(tree.x.numpy()) == [1.5, -2.5]
    tools.assert_same(tree.values(), {name: names[name] for name in tree.variables})
    for slot, suffix in (("m", "Adam"), ("v", "Adam_1")):
        found = tree.slots(slot)
        tools.assert_same(found, slots_of(spec, names, suffix))
        assert all(array.any() for array in found.values() if array.size), slot
    powers = [value.numpy() for value in tree.opt._get_beta_accumulators()]
    assert powers == [names["beta1_power"], names["beta2_power"]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("spec", SPECS, ids=name_of)
def test_ours_reads_tensorflow(tmp_path, spec, dtype):
    rng = np.random.default_rng(5)
    tree = Tree(spec, dtype, rng)
    tree.x.assign([3.0, 0.25])
    gradients = [
        (rng.uniform(-1, 1, variable.shape).astype(dtype), variable)
        for variable in tree.variables.values()
    ]
    tree.opt.apply_gradients([(tf.constant(gradient), v) for gradient, v in gradients])
    prefix = tree.checkpoint().save(str(tmp_path / "tf"))
    assert call_objects("restore", spec, prefix, tmp_path / "names", dtype) == "1"
    names = read_names(tmp_path / "names")
    assert list(names["x"]) == [3.0, 0.25]
    tools.assert_same({name: names[name] for name in tree.variables}, tree.values())
    for slot, suffix in (("m", "Adam"), ("v", "Adam_1")):
        tools.assert_same(slots_of(spec, names, suffix), tree.slots(slot))
    powers = [value.numpy() for value in tree.opt._get_beta_accumulators()]
    assert powers == [names["beta1_power"], names["beta2_power"]]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("spec", SPECS[::3], ids=name_of)
def test_16_bits(tmp_path, spec, dtype):
    """They have float32 slots and a master copy here, so that only the weights are exchanged."""
    prefix = call_objects("save", spec, tmp_path / "ck", tmp_path / "names", dtype)
    tree = Tree(spec, dtype)
    status = tf.train.Checkpoint(net=tree.net, x=tree.x).restore(prefix)
    status.assert_existing_objects_matched().expect_partial()
    names = read_names(tmp_path / "names")
    tools.assert_same(tree.values(), {name: names[name] for name in tree.variables})


def real_cells(spec, rng):
    """TensorFlow's own cells, which share their object names with the compatible ones."""
    legacy = pytest.importorskip("tensorflow.python.keras.layers.legacy_rnn.rnn_cell_impl")
    make = {
        "lstm": lambda: legacy.LSTMCell(spec.num_units, num_proj=spec.num_proj or None),
        "rnn_tanh": lambda: legacy.BasicRNNCell(spec.num_units),
    }[spec.mode]
    cells = [make() for _ in range(spec.num_layers)]
    stack = legacy.MultiRNNCell(cells)
    stack(tf.ones([2, spec.input_size]), stack.zero_state(2, tf.float32))
    for variable in stack.variables:
        variable.assign(rng.uniform(-0.5, 0.5, variable.shape).astype(np.float32))
    return cells, stack


def real_values(spec, cells):
    values = {}
    for layer, cell in enumerate(cells):
        for variable in cell.variables:
            inner = variable.name.removesuffix(":0")
            suffix = "projection/kernel" if "projection" in inner else inner.rsplit("/", 1)[-1]
            values[f"{numpy_layout.cell_prefix(spec, layer)}/{suffix}"] = variable.numpy()
    return values


REAL = [s for s in SPECS if s.num_dirs == 1 and not s.skip and s.mode in ("lstm", "rnn_tanh")]
CELLS = [(spec, False) for spec in REAL] + [(spec, True) for spec in REAL if spec.num_layers == 1]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("spec,bare", CELLS)
def test_cells_of_tensorflow(tmp_path, spec, bare):
    """MultiRNNCell both ways; a layer of one layer also stands for a bare cell."""
    cells, stack = real_cells(spec, np.random.default_rng(2))
    net = cells[0] if bare else stack
    wanted = real_values(spec, cells)
    x = tf.Variable([2.0, 1.0], dtype=tf.float64)
    prefix = tf.train.Checkpoint(net=net, x=x).save(str(tmp_path / "tf"))
    call_objects("restore", spec, prefix, tmp_path / "names", "float32", "optimizer=0")
    names = read_names(tmp_path / "names")
    tools.assert_same({name: names[name] for name in wanted}, wanted)

    saved = call_objects("save", spec, tmp_path / "ck", tmp_path / "saved", "float32")
    status = tf.train.Checkpoint(net=net, x=x).restore(saved)
    status.assert_existing_objects_matched().expect_partial()
    names = read_names(tmp_path / "saved")
    tools.assert_same(real_values(spec, cells), {name: names[name] for name in wanted})
    assert list(x.numpy()) == [1.5, -2.5]
