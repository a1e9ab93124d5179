"""Checkpoints go to and from TensorFlow itself, bit for bit and byte for byte."""

import pathlib

import ml_dtypes  # NumPy has bfloat16 by it
import numpy as np
import pytest

tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

import file_tools as tools
import openrnn

v1 = tf.compat.v1


def sample_tensors():
    """Every element type, and the shapes that trip readers up: scalar, empty, odd."""
    rng = np.random.default_rng(5)
    tensors = {
        f"net/{name}/kernel": rng.standard_normal((3, 7)).astype(name)
        for name in ("float16", "bfloat16", "float32", "float64")
    }
    every = np.arange(65536, dtype=np.uint16).view(ml_dtypes.bfloat16)
    tensors["every_bfloat16"] = every
    tensors["special"] = np.array([np.nan, np.inf, -0.0, 1e-45], np.float32)
    tensors["global_step"] = np.int64(-(2**40) - 3)
    tensors["counts"] = rng.integers(-(2**31), 2**31, (2, 1, 5)).astype(np.int32)
    tensors["bytes"] = np.arange(256, dtype=np.uint8)
    tensors["flags"] = np.array([True, False, True])
    tensors["empty"] = np.zeros((0, 4), np.float32)
    tensors["scalar"] = np.float32(0.1)
    tensors["one_text"] = np.array(b'{"cell": "lstm"}', object)
    tensors["texts"] = np.array([[b"", b"a\0b\xff\0"], [b"x" * 300, "grün".encode()]], object)
    tensors["no_texts"] = np.zeros((0,), object)
    return tensors


def save_v2(prefix, tensors):
    """TensorFlow's own writer, in the order given."""
    values = [
        tf.constant(list(value.reshape(-1)), tf.string, shape=value.shape)
        if tools.is_text(np.asarray(value))
        else tf.constant(value)
        for value in tensors.values()
    ]
    tf.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=list(tensors),
        shape_and_slices=[""] * len(tensors),
        tensors=values,
    )


def read_by_tensorflow(prefix):
    reader = tf.train.load_checkpoint(str(prefix))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def assert_same_files(prefix, other):
    for suffix in (".index", ".data-00000-of-00001"):
        found = pathlib.Path(f"{other}{suffix}").read_bytes()
        assert found == pathlib.Path(f"{prefix}{suffix}").read_bytes(), suffix


def assert_copy_is_identical(prefix):
    copy = f"{prefix}-copy"
    tools.call_tool("bundle", "copy", prefix, copy)
    assert_same_files(prefix, copy)


def test_tensorflow_reads_what_we_write(tmp_path):
    tensors = sample_tensors()
    tools.write_bundle(tmp_path / "ckpt", tensors)
    assert_same(read_by_tensorflow(tmp_path / "ckpt"), tensors)
    dtypes = tf.train.load_checkpoint(str(tmp_path / "ckpt")).get_variable_to_dtype_map()
    assert dtypes["flags"] == tf.bool and dtypes["texts"] == tf.string


def assert_same(found, expected):
    # TensorFlow gives a scalar string as bytes.
    tools.assert_same({name: np.asarray(v, object) if isinstance(v, bytes) else v
                       for name, v in found.items()}, expected)


def test_we_read_what_tensorflow_writes(tmp_path):
    save_v2(tmp_path / "ckpt", sample_tensors())
    tools.assert_same(tools.read_bundle(tmp_path / "ckpt"), sample_tensors())


def test_the_package_reads_what_tensorflow_writes(tmp_path):
    save_v2(tmp_path / "ckpt", sample_tensors())
    listed = openrnn.train.list_variables(tmp_path / "ckpt")
    assert listed == [(n, list(np.shape(v))) for n, v in sorted(sample_tensors().items())]
    found = {n: openrnn.train.load_variable(tmp_path / "ckpt", n) for n, _ in listed}
    tools.assert_same(found, sample_tensors())
    # NumPy's own arrays of bytes would lose a zero at the end.
    assert all(found[name].dtype == object for name in ("one_text", "texts", "no_texts"))


def test_both_write_the_same_files(tmp_path):
    save_v2(tmp_path / "theirs", sample_tensors())
    tools.write_bundle(tmp_path / "ours", sample_tensors())
    assert_same_files(tmp_path / "theirs", tmp_path / "ours")
    assert_copy_is_identical(tmp_path / "theirs")


def test_index_of_many_blocks(tmp_path):
    # Over 256 KiB of entries, so that the table has several data blocks.
    tensors = {f"{i:05d}/{'long' * 20}/kernel": np.float32(i) for i in range(9000)}
    save_v2(tmp_path / "ckpt", tensors)
    assert (tmp_path / "ckpt.index").stat().st_size > 2 * 262144
    tools.assert_same(tools.read_bundle(tmp_path / "ckpt"), tensors)
    assert_copy_is_identical(tmp_path / "ckpt")


def test_graph_saver_and_back(tmp_path):
    expected = {"a/kernel": np.arange(6, dtype=np.float32).reshape(2, 3), "n": np.int64(11)}
    with tf.Graph().as_default(), v1.Session() as session:
        variables = [v1.get_variable(name, initializer=v) for name, v in expected.items()]
        session.run(v1.global_variables_initializer())
        saver = v1.train.Saver(variables)
        prefix = saver.save(session, str(tmp_path / "model"), global_step=3)
        tools.assert_same(tools.read_bundle(prefix), expected)
        assert_copy_is_identical(prefix)
        changed = {name: v + v.dtype.type(1) for name, v in expected.items()}
        tools.write_bundle(tmp_path / "ours", changed)
        saver.restore(session, str(tmp_path / "ours"))
        tools.assert_same(dict(zip(changed, session.run(variables))), changed)


def test_object_checkpoint(tmp_path):
    weight = tf.Variable([[1.5, -2.0]], dtype=tf.float64)
    prefix = tf.train.Checkpoint(weight=weight).write(str(tmp_path / "object"))
    found = tools.read_bundle(prefix)
    assert found["weight/.ATTRIBUTES/VARIABLE_VALUE"].tolist() == [[1.5, -2.0]]
    assert found["_CHECKPOINTABLE_OBJECT_GRAPH"].item().startswith(b"\n")
    assert_copy_is_identical(prefix)


def test_several_data_files(tmp_path):
    first, second = {"a": np.arange(5.0)}, {"b": np.arange(3), "text": np.array([b"x"], object)}
    save_v2(tmp_path / "part0", first)
    save_v2(tmp_path / "part1", second)
    tf.raw_ops.MergeV2Checkpoints(
        checkpoint_prefixes=[str(tmp_path / "part0"), str(tmp_path / "part1")],
        destination_prefix=str(tmp_path / "whole"),
    )
    assert (tmp_path / "whole.data-00001-of-00002").exists()
    tools.assert_same(tools.read_bundle(tmp_path / "whole"), first | second)


def save_parts(prefix, value, cuts):
    """A partitioned variable 'big', cut along its columns, beside a plain one."""
    edges = [0, *cuts, value.shape[1]]
    slices = [f"7 {value.shape[1]} -:{lo},{hi - lo}" for lo, hi in zip(edges, edges[1:])]
    tf.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=["plain"] + ["big"] * len(slices),
        shape_and_slices=[""] + slices,
        tensors=[np.int32(4)] + [value[:, lo:hi] for lo, hi in zip(edges, edges[1:])],
    )


# Starts and lengths around 64 and 8192, where the encoding of the slices' keys grows by a byte.
@pytest.mark.parametrize("columns,cuts", [(5, [2]), (130, [63, 64, 129]), (8400, [8191, 8192])])
def test_partitioned_variable(tmp_path, columns, cuts):
    value = np.random.default_rng(1).standard_normal((7, columns)).astype(np.float32)
    save_parts(tmp_path / "parts", value, cuts)
    assert tools.list_bundle(tmp_path / "parts")["big"] == ("float32", f"7,{columns}")
    tools.assert_same(tools.read_bundle(tmp_path / "parts"), {"big": value, "plain": np.int32(4)})


def test_other_types_are_listed_and_refused(tmp_path):
    types = ["int8", "uint16", "complex64", "uint64", "float8_e5m2"]
    tensors = {name: tf.cast(tf.constant([[1, 2]], tf.float32), name) for name in types}
    tf.raw_ops.SaveV2(prefix=str(tmp_path / "odd"), tensor_names=types,
                      shape_and_slices=[""] * len(types), tensors=list(tensors.values()))
    assert tools.list_bundle(tmp_path / "odd") == {name: (name, "1,2") for name in types}
    done = tools.run_tool("bundle", "dump", tmp_path / "odd")
    assert done.returncode == 1
    assert "[read] tensor 'complex64' has element type complex64, expected float16, bfloat16" in done.stderr
