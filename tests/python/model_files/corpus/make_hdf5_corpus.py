"""Writes the files in fuzz/corpus/hdf5 and fuzz/corpus/keras_archive that the tests read: made with h5py, and changed by hand.

Files named good_by_hand_* are not made here: they are blocks of tests/formats/hdf5, of forms that h5py does not write small.

Usage: python make_hdf5_corpus.py, in an environment with numpy, ml_dtypes and h5py.
"""

import io
import json
import pathlib
import struct
import zipfile

import h5py
import ml_dtypes
import numpy as np

CORPUS = pathlib.Path(__file__).parents[4] / "fuzz" / "corpus"


def made(fill, **how):
    memory = io.BytesIO()
    with h5py.File(memory, "w", **how) as file:
        fill(file)
    return memory.getvalue()


def legacy(file):
    """As Keras 2 writes a model."""
    file.attrs["keras_version"] = b"2.2.4"
    file.attrs["backend"] = b"tensorflow"
    file.attrs["model_config"] = json.dumps({"class_name": "Sequential", "config": {"layers": []}}).encode()
    weights = file.create_group("model_weights")
    weights.attrs["layer_names"] = [b"dropout_1", b"lstm_1"]
    weights.attrs["keras_version"] = "2.2.4"
    weights.create_group("dropout_1").attrs["weight_names"] = []
    layer = weights.create_group("lstm_1")
    names = ["lstm_1/kernel:0", "lstm_1/recurrent_kernel:0", "lstm_1/bias:0"]
    layer.attrs["weight_names"] = [name.encode() for name in names]
    random = np.random.default_rng(1)
    for name, shape in zip(names, [(3, 8), (2, 8), (8,)]):
        layer[name] = random.standard_normal(shape).astype(np.float32)


def weights_of_keras_3(file):
    for path, name in (("vars", "sequential"), ("layers/gru/vars", "gru"), ("layers/gru/cell/vars", "gru_cell")):
        file.create_group(path).attrs["name"] = name
    cell = file["layers/gru/cell/vars"]
    for number, shape in enumerate([(2, 9), (3, 9), (2, 9)]):
        cell[str(number)] = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    brain = cell.create_dataset("3", data=np.array([1, -2.5], ml_dtypes.bfloat16))
    brain.attrs["dtype"] = "bfloat16"


def types(file):
    for dtype in ("f2", "f4", "f8", "i1", "i4", "i8", "u1", "u8", ">f4", ">i4", "c8", "?", "S3"):
        file[f"data/{dtype.replace('>', 'big_').replace('?', 'bool')}"] = np.array([1, 0]).astype(dtype)
    file["scalar"] = np.float32(3)
    file["empty"] = np.zeros((0, 3), np.float32)
    file["words"] = ["a", "bcd"]
    file.create_dataset("nothing", (3,), "f4")
    file["text"] = "one"
    attributes = {"int": -7, "unsigned": np.uint8(200), "half": np.float16(0.5), "float": 0.25, "yes": True, "ints": [1, 2],
                  "floats": [0.5, 1.5], "texts": ["ab", "c", ""], "spaces": "", "none": h5py.Empty("f4"),
                  "record": np.zeros(1, [("a", "i4")])}
    for name, value in attributes.items():
        file.attrs[name] = value


def chunked(file):
    values = np.arange(15 * 7, dtype=np.float32).reshape(15, 7)
    file.create_dataset("gzip", data=values, chunks=(4, 3), compression="gzip", shuffle=True)
    file.create_dataset("shuffle", data=values.astype(np.float64), chunks=(15, 7), shuffle=True)
    file.create_dataset("plain", data=values[0], chunks=(5,))
    file.create_dataset("lzf", data=values, chunks=(8, 7), compression="lzf")
    file.create_dataset("part", (6,), "f4", chunks=(3,))[:3] = 1


def early(file):
    """Chunks that are all allocated at once have no index."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((2, 2))
    plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    space = h5py.h5s.create_simple((3, 5))
    dataset = h5py.h5d.create(file.id, b"early", h5py.h5t.IEEE_F32LE, space, plist)
    h5py.Dataset(dataset)[...] = np.arange(15).reshape(3, 5)


def new_groups(file):
    chunked(file)
    early(file)
    group = file.create_group("few", track_order=True)
    for name in ("b", "a"):
        group.create_group(name)
    many = file.create_group("many")
    for i in range(40):
        many.create_group(f"g{i:02}")
        many.attrs[f"a{i:02}"] = f"value {i}"


def many(file):
    for i in range(30):
        file[f"data_{i}"] = np.int32(i)


def archive(method):
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", method) as file:
        file.writestr("metadata.json", json.dumps({"keras_version": "3.0.0"}))
        file.writestr("config.json", json.dumps({"class_name": "Sequential"}))
        file.writestr("model.weights.h5", made(weights_of_keras_3))
    return memory.getvalue()


def good():
    yield "legacy", made(legacy)
    yield "keras_3", made(weights_of_keras_3)
    yield "archive", archive(zipfile.ZIP_STORED)
    yield "archive_deflated", archive(zipfile.ZIP_DEFLATED)
    yield "types", made(types)
    yield "types_latest", made(types, libver="latest")
    yield "chunked", made(chunked)
    yield "latest", made(new_groups, libver="latest")
    yield "superblock_2", made(new_groups, libver=("v108", "v108"))
    yield "many", made(many)
    yield "ordered", made(legacy, track_order=True)


def linked(link):
    def fill(file):
        file["a"] = np.float32(1)
        file.create_group("g")["b"] = link(file)

    return fill


def put(data, at, form, *values):
    return data[:at] + struct.pack(form, *values) + data[at + struct.calcsize(form) :]


def bad():
    small = made(lambda file: file.create_dataset("abc", data=np.arange(6, dtype=np.float32)))
    latest = made(lambda file: file.create_dataset("abc", data=np.arange(6, dtype=np.float32)), libver="latest")
    gzip = made(lambda file: file.create_dataset("z", data=np.zeros(4000, np.float32), chunks=(4000,), compression="gzip"))
    tree, heap, table, data = (small.index(mark) for mark in (b"TREE", b"HEAP", b"SNOD", np.arange(6, dtype="f4").tobytes()))
    layout = small.index(struct.pack("<BBQQ", 3, 1, data, 24))
    yield "cut", small[:-1]
    yield "signature_alone", small[:8]
    yield "superblock_9", put(small, 8, "B", 9)
    yield "offsets_of_4", put(small, 13, "B", 4)
    yield "user_block", put(small, 24, "<Q", 512)
    yield "root_outside", put(small, 64, "<Q", 1 << 40)
    yield "root_wraps", put(small, 64, "<Q", (1 << 64) - 4)
    yield "root_is_superblock", put(small, 64, "<Q", 0)
    yield "header_size", put(small, struct.unpack_from("<Q", small, 64)[0] + 8, "<I", 0xFFFFFFF0)
    yield "tree_level", put(small, tree + 5, "B", 3)
    yield "tree_of_chunks", put(small, tree + 4, "B", 1)
    yield "tree_entries", put(small, tree + 6, "<H", 0xFFFF)
    yield "tree_cycle", put(put(small, tree + 5, "B", 1), tree + 32, "<Q", tree)
    yield "heap_size", put(small, heap + 8, "<Q", 1 << 50)
    yield "heap_in_tree", put(small, heap + 24, "<Q", tree)
    yield "table_entries", put(small, table + 6, "<H", 9000)
    yield "name_outside", put(small, table + 8, "<Q", 1 << 33)
    yield "object_is_tree", put(small, table + 16, "<Q", tree)
    yield "object_is_root", put(small, table + 16, "<Q", struct.unpack_from("<Q", small, 64)[0])
    yield "data_outside", put(small, layout + 2, "<Q", len(small) - 8)
    yield "data_wraps", put(small, layout + 2, "<Q", (1 << 64) - 8)
    yield "data_in_heap", put(small, layout + 2, "<Q", heap)
    yield "data_size", put(small, layout + 10, "<Q", 20)
    yield "rank", put(small, small.index(struct.pack("<BBBxxxxxQ", 1, 1, 1, 6)) + 1, "B", 200)
    yield "shape_overflow", put(small, small.index(struct.pack("<BBBxxxxxQ", 1, 1, 1, 6)) + 8, "<Q", 1 << 62)
    yield "element_of_0", put(small, small.index(b"\x11\x20\x1f\0") + 4, "<I", 0)
    yield "checksum", put(latest, 30, "B", latest[30] ^ 1)
    header = latest.index(b"OHDR")
    yield "header_checksum", put(latest, header + 8, "B", latest[header + 8] ^ 1)
    yield "soft_link", made(linked(lambda file: h5py.SoftLink("/a")))
    yield "soft_link_latest", made(linked(lambda file: h5py.SoftLink("/a")), libver="latest")
    yield "external_link", made(linked(lambda file: h5py.ExternalLink("other.h5", "/a")))
    yield "linked_twice", made(linked(lambda file: file["a"]))
    yield "cycle", made(linked(lambda file: file["/"]))
    yield "cycle_latest", made(linked(lambda file: file["/"]), libver="latest")
    stream = gzip.index(b"\x78\x5e") if b"\x78\x5e" in gzip else gzip.index(b"\x78\x01")
    yield "gzip_stream", put(gzip, stream + 4, "B", gzip[stream + 4] ^ 0x55)
    chunk = gzip.index(struct.pack("<BBB", 3, 2, 2))
    yield "chunk_of_0", put(gzip, chunk + 11, "<I", 0)
    yield "chunk_element", put(gzip, chunk + 15, "<I", 8)
    yield "archive_cut", archive(zipfile.ZIP_DEFLATED)[:-30]
    deflated = archive(zipfile.ZIP_DEFLATED)
    inside = deflated.index(b"model.weights.h5") + 16 + 20
    yield "archive_stream", put(deflated, inside, "B", deflated[inside] ^ 0x7F)
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("config.json", "{}")
        file.writestr("model.weights.h5", bytes(1 << 22))
    yield "archive_bomb", memory.getvalue()


def main():
    for kind, files in (("good", good()), ("bad", bad())):
        for name, data in files:
            folder = CORPUS / ("keras_archive" if name.startswith("archive") else "hdf5")
            folder.mkdir(exist_ok=True)
            (folder / f"{kind}_{name}").write_bytes(data)


if __name__ == "__main__":
    main()
