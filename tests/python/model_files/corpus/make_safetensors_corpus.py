"""Writes the files in fuzz/corpus/safetensors that the tests read: made with the safetensors package, and by hand.

Usage: python make_safetensors_corpus.py, in an environment with numpy, ml_dtypes and safetensors.
"""

import json
import pathlib

import ml_dtypes
import numpy as np
from safetensors.numpy import save

CORPUS = pathlib.Path(__file__).parents[4] / "fuzz" / "corpus" / "safetensors"


def by_hand(header, data=b""):
    """A file with this header: a string, or what becomes JSON."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def good():
    random = np.random.default_rng(1)
    named = {
        "rnn.weight_ih_l0": random.standard_normal((4, 3)).astype(np.float32),
        "rnn.bias_ih_l0": random.standard_normal(4),
        "half": random.standard_normal(5).astype(np.float16),
        "brain": random.standard_normal(3).astype(ml_dtypes.bfloat16),
        "step": np.array(7, np.int64), "empty": np.zeros((0, 3), np.float32),
        "bytes": np.arange(5, dtype=np.uint8), "short": np.arange(3, dtype=np.int16),
        "ids": np.arange(3, dtype=np.int32), "mask": np.array([True, False, True]),
    }
    yield "package", save(named, {"format": "np"})
    yield "no_tensors", save({})
    # No padding, tensors in any order, types that are listed and not read.
    yield "unaligned", by_hand({
        "b": entry("F32", [1], 3, 7), "a": entry("I8", [3], 0, 3), "z": entry("F8_E4M3", [2, 1], 7, 9),
        "s": entry("F4", [3, 2], 9, 12), "new": entry("Q7", [100], 12, 13)}, bytes(range(13)))
    shard = save({"a": np.arange(3, dtype=np.float32)}, {"format": "np"})
    index = {"metadata": {"total_size": 12, "nested": {"x": [1, {}]}}, "weight_map": {"a": "m-1.safetensors"}}
    yield "index", json.dumps(index).encode() + b"\0" + shard


def bad():
    yield "empty", b""
    yield "cut_length", b"\x10\0\0"
    yield "long_header", (1 << 63).to_bytes(8, "little") + b"{}"
    yield "header_beyond_end", (100).to_bytes(8, "little") + b"{}"
    yield "no_json", by_hand(b"{a}")
    yield "array", by_hand(b"{\"a\": [1]}")
    yield "deep", by_hand(b"{\"a\":" + b"[" * 1000 + b"]" * 1000 + b"}")
    yield "twice", by_hand(b"{\"a\":%s,\"a\":%s}" % ((json.dumps(entry("U8", [0], 0, 0)).encode(),) * 2))
    yield "no_dtype", by_hand({"a": {"shape": [], "data_offsets": [0, 0]}})
    yield "extra_field", by_hand({"a": entry("U8", [0], 0, 0) | {"x": 1}})
    yield "metadata_number", by_hand({"__metadata__": {"a": 1}})
    yield "overlap", by_hand({"a": entry("U8", [2], 0, 2), "b": entry("U8", [2], 1, 3)}, bytes(3))
    yield "hole", by_hand({"a": entry("U8", [1], 0, 1), "b": entry("U8", [1], 2, 3)}, bytes(3))
    yield "reversed", by_hand({"a": entry("U8", [1], 1, 0)}, bytes(1))
    yield "beyond_end", by_hand({"a": entry("U8", [2], 0, 2)}, bytes(1))
    yield "trailing", by_hand({"a": entry("U8", [1], 0, 1)}, bytes(2))
    yield "offset_that_wraps", by_hand({"a": entry("U8", [1], 2**64 - 1, 0)}, bytes(1))
    yield "size", by_hand({"a": entry("F32", [2], 0, 4)}, bytes(4))
    yield "shape_overflow", by_hand({"a": entry("F32", [2**62, 2**62, 16], 0, 0)})
    yield "size_overflow", by_hand({"a": entry("F32", [2**62], 0, 0)})
    yield "negative", by_hand({"a": entry("U8", [-1], 0, 0)})
    yield "half_byte", by_hand({"a": entry("F4", [3], 0, 2)}, bytes(2))
    yield "bool", by_hand({"a": entry("BOOL", [1], 0, 1)}, b"\2")
    yield "control_character", by_hand({"a\x1b[2J": entry("U8", [0], 0, 0)})
    yield "index_path", b'{"weight_map": {"a": "../m"}}'
    yield "index_without_shard", b'{"weight_map": {"a": "m"}}\0' + by_hand({"b": entry("U8", [0], 0, 0)})
    yield "index_number", b'{"weight_map": {"a": 1}}'
    yield "index_twice", b'{"weight_map": {"a": "m", "a": "m"}}'


def main():
    CORPUS.mkdir(parents=True, exist_ok=True)
    for kind, files in (("good", good()), ("bad", bad())):
        for name, content in files:
            (CORPUS / f"{kind}_{name}").write_bytes(content)


if __name__ == "__main__":
    main()
