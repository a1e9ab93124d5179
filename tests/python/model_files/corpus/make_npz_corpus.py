"""Writes the files in fuzz/corpus/npz: made with NumPy, and by hand. Usage: python make_npz_corpus.py"""

import io
import pathlib
import struct
import zipfile
import zlib

import numpy as np

CORPUS = pathlib.Path(__file__).parents[4] / "fuzz" / "corpus" / "npz"


def saved(save, **arrays):
    file = io.BytesIO()
    save(file, **arrays)
    return file.getvalue()


def npy(array):
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def archive(entries, method=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as out:
        for name, data in entries:
            out.writestr(zipfile.ZipInfo(name), data, method)
    return file.getvalue()


def network():
    random = np.random.default_rng(1)
    shapes = {"weight_ih_l0": (8, 3), "weight_hh_l0": (8, 2), "bias_ih_l0": (8,), "bias_hh_l0": (8,)}
    return {f"rnn.{name}": random.uniform(-1, 1, shape).astype("float32") for name, shape in shapes.items()}


def of_everything():
    return {"half": np.ones(3, "float16"), "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
            "scalar": np.array(7), "empty": np.zeros((0, 2), "float32"), "mask": np.array([True, False]),
            "text": np.array("words ä"), "texts": np.array(["a", "bc"]), "bytes": np.array(b"\x80x"),
            "complex": np.ones(2, "complex64"), "big": np.ones(2, ">f4"), "small": np.arange(3, dtype="int8"),
            "fields": np.zeros(2, [("a", "<f4"), ("b", "<i2")]), "none": np.array(None, object)}


def deflated_as(data, size):
    """A member that says another number of bytes than its stream has."""
    whole = archive([("a.npy", data)], zipfile.ZIP_DEFLATED)
    return whole.replace(struct.pack("<I", len(data)), struct.pack("<I", size))


def main():
    CORPUS.mkdir(parents=True, exist_ok=True)
    named, other = network(), of_everything()
    stored = saved(np.savez, **named)
    packed = saved(np.savez_compressed, **named)
    values = archive([("w.npy", npy(np.zeros(2))), ("epoch.npy", npy(np.array(3))),
                      ("rates.npy", npy(np.array([0.5, 0.25]))), ("none.npy", npy(np.zeros(0, bool))),
                      ("openrnn.values.npy", npy(np.array(["epoch", "rates", "none"])))])
    one = npy(np.arange(4.0))
    zeros = npy(np.zeros(1 << 21))
    files = {
        "good_network": stored, "good_network_compressed": packed, "good_values": values,
        "good_of_everything": saved(np.savez, **other), "good_of_everything_compressed": saved(np.savez_compressed, **other),
        "bad_cut": stored[:-7], "bad_checksum": stored.replace(named["rnn.bias_ih_l0"].tobytes(), bytes(32)),
        "bad_checksum_compressed": packed.replace(struct.pack("<I", zlib.crc32(npy(named["rnn.bias_ih_l0"]))), b"abcd"),
        "bad_no_header": archive([("a.npy", b"\x93NUMPY\x01\x00")]), "bad_no_array": archive([("a.npy", b"words" * 9)]),
        "bad_size": archive([("a.npy", one[:-1])]), "bad_shape": archive([("a.npy", one.replace(b"(4,)", b"(9,)"))]),
        "bad_bool": archive([("a.npy", npy(np.array([True]))[:-1] + b"\x02")]),
        "bad_name": archive([("a\x01.npy", one)]), "bad_no_name": archive([(".npy", one)]),
        "bad_character": archive([("a.npy", npy(np.array("ab")).replace(b"a\0\0\0", b"\xff\xff\xff\xff"))]),
        "bad_values": archive([("a.npy", one), ("openrnn.values.npy", one)]),
        "bad_bomb": archive([("a.npy", zeros)], zipfile.ZIP_DEFLATED),
        "bad_bombs": archive([(f"{i}.npy", zeros[:400000].replace(b"(2097152,)", b"(49984,)  ")) for i in range(9)],
                             zipfile.ZIP_DEFLATED),
        "bad_method": archive([("a.npy", one)], zipfile.ZIP_BZIP2), "bad_longer": deflated_as(one, len(one) - 4),
        "bad_shorter": deflated_as(one.replace(b"(4,)", b"(5,)"), len(one) + 8),
        "bad_long_header": archive([("a.npy", one[:8] + b"\xff\xff" + one[10:])]),
    }
    for name, data in files.items():
        (CORPUS / name).write_bytes(data)


if __name__ == "__main__":
    main()
