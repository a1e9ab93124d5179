"""Writes the files in fuzz/corpus/network_file and fuzz/corpus/npy that the tests read.

Usage: python make_own_corpus.py, with the package and NumPy.
"""

import io
import json
import pathlib
import struct
import tempfile

import numpy as np
import openrnn

CORPUS = pathlib.Path(__file__).parents[4] / "fuzz" / "corpus"


def crc32c(text):
    """Bit by bit, as the polynomial has it."""
    crc = 0xFFFFFFFF
    for byte in text:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def network(name, units, values=None):
    """An LSTM of one input as a file has it, and its tensors."""
    size = 4 * units * (1 + units + 2)
    params = np.arange(size, dtype="<f4").tobytes() if values is None else values
    spec = {"rnn_mode": "lstm", "num_layers": 1, "num_units": units, "input_size": 1, "dtype": "float32"}
    tensor = f"{name}/params" if name else "params"
    return {"name": name, "spec": spec, "crc32c": {"params": crc32c(params)}}, {tensor: ("F32", [size], params)}


def container(networks, tensors, **changed):
    text = networks if isinstance(networks, str) else json.dumps(networks)
    metadata = {"openrnn.arithmetic": "3", "openrnn.layout": "1", "openrnn.networks": text,
                "openrnn.checksum": f"{crc32c(text.encode()):08x}", **changed}
    header, data = {"__metadata__": {key: value for key, value in metadata.items() if value is not None}}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    return struct.pack("<Q", len(head)) + head + data


def files():
    one, tensors = network("", 1)
    two, others = network("decoder", 2)
    yield "good_one", container([one], tensors)
    yield "good_two", container([one, two], {**tensors, **others})
    yield "good_more_tensors", container([one], {**tensors, "more": ("I8", [3], b"abc")})
    yield "good_metadata", container([one], tensors, author="me \u00e4\"")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "m"
        layer = openrnn.layers.GRU(3, 2, direction="bidirectional", reset_after=False, seed=1, dropout=0.25)
        layer.build([None, None, 2])
        openrnn.save(path, layer, "openrnn")
        yield "good_written", path.read_bytes()
    yield "bad_checksum", container([one], {"params": ("F32", [16], b"\1" * 64)})
    yield "bad_header_checksum", container([one], tensors, **{"openrnn.checksum": "00000000"})
    yield "bad_no_checksum", container([one], tensors, **{"openrnn.checksum": None})
    yield "bad_no_networks", container([one], tensors, **{"openrnn.networks": None})
    yield "bad_layout", container([one], tensors, **{"openrnn.layout": "2"})
    yield "bad_arithmetic", container([one], tensors, **{"openrnn.arithmetic": "x"})
    yield "bad_no_tensor", container([one], {"other": tensors["params"]})
    yield "bad_twice", container([one, one], tensors)
    yield "bad_shape", container([one], {"params": ("F32", [4, 4], tensors["params"][2])})
    yield "bad_dtype", container([one], {"params": ("I32", [16], tensors["params"][2])})
    yield "bad_alignment", container([one], {"a": ("U8", [1], b"a"), **tensors})
    yield "bad_field", container([{**one, "spec": {**one["spec"], "colour": 3}}], tensors)
    yield "bad_units", container([{**one, "spec": {**one["spec"], "num_units": 1 << 22, "num_layers": 1 << 10}}], tensors)
    yield "bad_part", container([{**one, "crc32c": {**one["crc32c"], "more": 1}}], tensors)
    yield "bad_no_params", container([{**one, "crc32c": {}}], tensors)
    yield "bad_deep", container("[" * 100000, tensors)
    yield "bad_json", container("[{}]", tensors)
    whole = container([one], tensors)
    yield "bad_length", struct.pack("<Q", 1 << 60) + whole[8:]
    yield "bad_cut", whole[:-1]
    yield "bad_short", b"\1\0"
    yield "bad_hole", container([one], {**tensors}) + b"\0"


def npy(value, **options):
    file = io.BytesIO()
    np.lib.format.write_array(file, value, **options)
    return file.getvalue()


def arrays():
    yield "good_rows", npy(np.arange(6, dtype="<f4").reshape(2, 3))
    yield "good_columns", npy(np.asfortranarray(np.arange(12, dtype="<f8").reshape(2, 3, 2)))
    yield "good_scalar", npy(np.array(1.5))
    yield "good_empty", npy(np.zeros((0, 3), "<f2"))
    yield "good_version_3", npy(np.array([True, False]), version=(3, 0))
    yield "bad_objects", npy(np.array([None]), allow_pickle=True)
    yield "bad_structure", npy(np.zeros(1, [("a", "<f4")]))
    yield "bad_big_endian", npy(np.zeros(1, ">f4"))
    yield "bad_cut", npy(np.zeros(2))[:-1]
    yield "bad_overflow", npy(np.zeros(1)).replace(b"(1,)", b"(" + b"4294967296," * 3 + b")")
    yield "bad_bool", npy(np.array([True]))[:-1] + b"\2"


def wav(coding, bits, samples, channels=1, more=b"", cut=None):
    form = struct.pack("<HHIIHH", coding, channels, 8000, 8000 * channels * bits // 8, channels * bits // 8, bits) + more
    body = b"fmt " + struct.pack("<I", len(form)) + form + b"LIST" + struct.pack("<I", 3) + b"odd\0"
    body += b"data" + struct.pack("<I", len(samples)) + samples
    return (b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WAVE" + body)[:cut]


def sounds():
    yield "good_16", wav(1, 16, struct.pack("<4h", 0, 32767, -32768, 1), 2)
    yield "good_8", wav(1, 8, bytes([0, 128, 255]))
    yield "good_24", wav(1, 24, b"\0\0\x80\xff\xff\x7f")
    yield "good_32", wav(1, 32, struct.pack("<2i", -2**31, 2**30))
    yield "good_float", wav(3, 32, struct.pack("<2f", 0.5, -2.0))
    yield "good_double", wav(0xFFFE, 64, struct.pack("<2d", 0.5, -2.0), more=b"\x16\0" + bytes(6) + b"\3\0" + bytes(14))
    yield "bad_frames", wav(1, 16, bytes(6), 2)
    yield "bad_channels", wav(1, 16, bytes(6), 0)
    yield "bad_coding", wav(2, 4, bytes(6))
    yield "bad_cut", wav(1, 16, bytes(6), cut=-1)
    yield "bad_no_data", wav(1, 16, bytes(6), cut=30)
    yield "bad_riff", b"RIFX" + wav(1, 16, bytes(6))[4:]


def main():
    for folder, made in (("network_file", files()), ("npy", arrays()), ("wav", sounds())):
        (CORPUS / folder).mkdir(exist_ok=True)
        for name, content in made:
            (CORPUS / folder / name).write_bytes(content)
    assert crc32c(b"123456789") == 0xE3069283


if __name__ == "__main__":
    main()
