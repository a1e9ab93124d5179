"""Writes the files in fuzz/corpus/torch_file and fuzz/corpus/pickle that the tests read: made with PyTorch, and by hand.

Usage: python make_torch_corpus.py, in an environment with torch. The files of archives have a time in them, so that
they change each time.
"""

import collections
import io
import pathlib
import pickle
import struct
import zipfile

import torch

CORPUS = pathlib.Path(__file__).parents[4] / "fuzz" / "corpus"
MAGIC, VERSION = 0x1950A86A20F9469CFC6C, 1001


def saved(value, **options):
    file = io.BytesIO()
    torch.save(value, file, **options)
    return file.getvalue()


def checkpoint():
    """Nested containers, shared and strided storages, odd shapes and types."""
    torch.manual_seed(1)
    model = torch.nn.LSTM(3, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.25)
    model(torch.randn(2, 1, 3))[0].sum().backward()
    optimizer.step()
    base = torch.arange(24, dtype=torch.float64).reshape(2, 3, 4)
    tensors = {
        "transposed": base.permute(2, 0, 1), "slice": base[1, :, ::2], "base": base, "tied": base,
        "scalar": torch.tensor(7), "empty": torch.zeros(0, 3), "brain": torch.tensor([1.5, -2], dtype=torch.bfloat16),
        "mask": torch.tensor([True, False]), "half": torch.tensor([0.5], dtype=torch.float16),
        "unsigned": torch.tensor([1, 2], dtype=torch.uint16), "bytes": torch.arange(3, dtype=torch.uint8),
        "parameter": torch.nn.Parameter(torch.ones(2)), "ints": torch.arange(3, dtype=torch.int32),
        "expanded": torch.ones(1).expand(2),
    }
    return {
        "model": model.state_dict(), "optimizer": optimizer.state_dict(), "tensors": tensors, "epoch": 3, "loss": 0.5,
        "name": "LSTM ä", "none": None, "done": False, "seed": 2**64 - 1, "size": torch.Size([1, 2]),
        "mixed": [1, 2.5], "words": ("a", "b"), "several": [1, "a", {"k": torch.ones(1)}], 5: "five",
    }


def script(module):
    file = io.BytesIO()
    torch.jit.save(module, file)
    return file.getvalue()


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 1)
        self.sizes = [1, 2]

    def forward(self, x):
        return self.linear(x) + torch.tensor([0.5])


def old_form(value, storages, storage_ids=()):
    """The old form; `storages` are (key, number of elements, bytes), `storage_ids` what stands for a storage."""
    file = io.BytesIO()

    class Pickler(pickle.Pickler):
        def persistent_id(self, item):
            return storage_ids[item.number] if isinstance(item, Storage) else None

    for first in (MAGIC, VERSION, {"little_endian": True}):
        pickle.dump(first, file, protocol=2)
    Pickler(file, protocol=2).dump(value)
    pickle.dump([key for key, _, _ in storages], file, protocol=2)
    for _, elements, content in storages:
        file.write(struct.pack("<Q", elements) + content)
    return file.getvalue()


class Storage:
    def __init__(self, number):
        self.number = number


class Rebuilt:
    """Pickled as the call that makes a tensor."""

    def __init__(self, *arguments):
        self.arguments = arguments

    def __reduce__(self):
        return torch._utils._rebuild_tensor_v2, self.arguments


def archive(content, storages=(b"\0\0\x80\x3f",), byteorder=b"little", method=zipfile.ZIP_STORED, more=()):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as into:
        into.writestr("m/data.pkl", content)
        into.writestr("m/byteorder", byteorder)
        for number, bytes_ in enumerate(storages):
            into.writestr(f"m/data/{number}", bytes_)
        for name, bytes_ in more:
            into.writestr(name, bytes_)
    return file.getvalue()


def text(value):
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def number(value):
    return b"\x8a\x08" + struct.pack("<q", value)


def tensor(key="0", elements=1, first=0, shape=(1,), strides=(1,), kind="FloatStorage"):
    """The opcodes of a tensor."""
    return (b"ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + b"ctorch\n" + kind.encode() + b"\n" +
            text(key) + text("cpu") + number(elements) + b"tQ" + number(first) +
            b"(" + b"".join(map(number, shape)) + b"t(" + b"".join(map(number, strides)) + b"t\x89}tR")


def one(**options):
    return archive(b"\x80\x02}" + text("a") + tensor(**options) + b"s.")


def good():
    torch.manual_seed(0)
    model = torch.nn.GRU(2, 3)
    yield "state_dict", saved(model.state_dict())
    yield "old_form", saved(model.state_dict(), _use_new_zipfile_serialization=False)
    yield "checkpoint", saved(checkpoint())
    yield "old_checkpoint", saved({key: value for key, value in checkpoint().items() if key != "tensors"},
                                  _use_new_zipfile_serialization=False)
    for protocol in (4, 5):
        yield f"protocol_{protocol}", saved({"a": torch.ones(2), "bytes": b"\0\xff"}, pickle_protocol=protocol)
    yield "tensor_alone", saved(torch.arange(3.0))
    yield "script", script(torch.jit.script(Small()))
    yield "traced", script(torch.jit.trace(Small(), torch.zeros(1, 2)))
    torch.serialization.set_crc32_options(False)
    yield "without_checksums", saved(model.state_dict())
    torch.serialization.set_crc32_options(True)
    # A storage that is a part of another one, as PyTorch wrote before version 0.4.
    part = ("storage", torch.FloatStorage, "k", "cpu", 4, ("v", 1, 2))
    yield "old_view", old_form({"a": Rebuilt(Storage(0), 0, (2,), (1,), False, collections.OrderedDict())},
                               [("k", 4, struct.pack("<4f", 1, 2, 3, 4))], [part])
    # Python 2's form of an OrderedDict, and its strings.
    yield "pairs", archive(b"\x80\x02ccollections\nOrderedDict\n(](](U\1a" + tensor() + b"eetR.")
    yield "many_elements", one(shape=(1 << 40,), strides=(0,))


def bad_pickles():
    yield "os_system", archive(b"\x80\x02cos\nsystem\n" + text("true") + b"\x85R.")
    yield "stack_global", archive(b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R.")
    yield "module", saved(torch.nn.LSTM(1, 1))
    yield "opcode", archive(b"\x80\x02I1\n.")
    yield "protocol_0", archive(pickle.dumps({"a": 1}, protocol=0))
    yield "cycle", archive(b"\x80\x02]q\0h\0a.")
    yield "deep", archive(b"\x80\x02" + b"]" * 100 + text("a") + b"a" * 100 + b".")
    laughs = b"\x80\x02]q\0(NNNNNNNN" + text("x") + b"e0" + b"".join(
        b"]q" + bytes([level]) + b"(" + (b"h" + bytes([level - 1])) * 10 + b"e0" for level in range(1, 20))
    yield "laughs", archive(laughs + b"h\x13.")
    pairs = b"\x80\x02](" + b"".join(b"(K\1K\2t" for _ in range(200)) + b"e\x85q\0ccollections\nOrderedDict\nq\1" + b"0"
    yield "pairs", archive(b"\x80\x02]" + pairs[2:] + b"(" + b"h\1h\0R" * 1000 + b"t.")
    yield "empty_stack", archive(b"\x80\x020.")
    yield "no_mark", archive(b"\x80\x02e.")
    yield "memo", archive(b"\x80\x02h\5.")
    yield "memo_index", archive(b"\x80\x02Nr\xff\xff\xff\xff.")
    yield "text_length", archive(b"\x80\x02\x8d" + b"\xff" * 8 + b".")
    yield "two_values", archive(b"\x80\x02NN.")
    yield "no_end", archive(b"\x80\x02N")
    yield "elements_overflow", one(elements=2**62)
    yield "outside", one(first=1)
    yield "outside_by_stride", one(shape=(2,), strides=(1,))
    yield "shape_overflow", one(shape=(2**62, 2**62), strides=(0, 0))
    yield "stride_overflow", one(shape=(3, 2), strides=(2**62, 2**62))
    yield "negative_stride", one(strides=(-1,))
    yield "negative_size", one(shape=(-1,))
    yield "ranks", one(shape=(1,), strides=(1, 1))
    yield "many_ranks", one(shape=(1,) * 65, strides=(1,) * 65)
    yield "no_class", one(kind="Size")
    yield "same_names", archive(b"\x80\x02}" + text("a.b") + b"N" + b"s" + text("a") + b"}" + text("b") + b"Nss.")
    yield "control_character", archive(b"\x80\x02}" + text("\x1b[2J") + b"Ns.")
    yield "bare_storage", archive(b"\x80\x02(" + text("storage") + b"tQ.")


def bad_archives():
    yield "no_storage", one(key="7")
    yield "storage_size", one(elements=2)
    yield "bool", archive(b"\x80\x02}" + text("a") + tensor(kind="BoolStorage") + b"s.", [b"\2"])
    yield "big_endian", archive(b"\x80\x02}.", byteorder=b"big")
    yield "deflated", archive(b"\x80\x02}.", method=zipfile.ZIP_DEFLATED)
    yield "deflated_storage", archive(b"\x80\x02}" + text("a") + tensor(elements=25000) + b"s.", [bytes(100000)],
                                      method=zipfile.ZIP_DEFLATED)
    yield "no_pickle", archive(b"", more=[("n/data.pkl", b"")])
    whole = one()
    yield "checksum", whole.replace(b"\0\0\x80\x3f", b"\0\0\x81\x3f")
    yield "same_entries", archive(b"\x80\x02}.", more=[("m/data/0", b"")])
    directory = whole.index(b"PK\1\2")
    size = struct.unpack_from("<I", whole, directory + 20)[0] + 40
    yield "overlap", whole[:directory + 20] + struct.pack("<II", size, size) + whole[directory + 28:]
    yield "local_name", whole.replace(b"m/data.pkl", b"n/data.pkl", 1)
    yield "entry_size", whole[:directory + 20] + b"\xff\xff\xff\x7f" * 2 + whole[directory + 28:]
    yield "zip64_field", whole[:directory + 20] + b"\xff\xff\xff\xff" * 2 + whole[directory + 28:]
    end = whole.index(b"PK\5\6")
    yield "entry_count", whole[:end + 8] + b"\4\0\4\0" + whole[end + 12:]
    yield "directory_size", whole[:end + 12] + b"\xff\xff\xff\x7f" + whole[end + 16:]
    yield "zip64_end", whole[:end + 16] + b"\xff\xff\xff\xff" + whole[end + 20:]
    yield "no_directory", whole[:directory]
    ones = struct.pack("<2f", 1, 1)
    stored = Rebuilt(Storage(0), 0, (2,), (1,), False, {})
    whole_id = ("storage", torch.FloatStorage, "k", "cpu", 2, None)
    yield "old_elements", old_form({"a": stored}, [("k", 2**62, ones)], [whole_id])
    yield "old_trailing", old_form({"a": stored}, [("k", 2, ones + b"\0")], [whole_id])
    yield "old_key", old_form({"a": stored}, [("l", 2, ones)], [whole_id])
    yield "old_same_keys", old_form({"a": stored}, [("k", 2, ones), ("k", 2, ones)], [whole_id])
    yield "old_view", old_form({"a": stored}, [("k", 2, ones)], [(*whole_id[:5], ("v", 1, 2))])
    yield "old_no_storages", old_form({"a": stored}, [], [whole_id])
    yield "old_version", pickle.dumps(MAGIC, protocol=2) + pickle.dumps(1, protocol=2)


def pickle_of(content):
    """That of an archive."""
    with zipfile.ZipFile(io.BytesIO(content)) as held:
        return held.read(next(name for name in held.namelist() if name.endswith("/data.pkl")))


def main():
    for folder in ("torch_file", "pickle"):
        (CORPUS / folder).mkdir(parents=True, exist_ok=True)
    for kind, files, has_pickle in (("good", good(), True), ("bad", bad_pickles(), True), ("bad", bad_archives(), False)):
        for name, content in files:
            (CORPUS / "torch_file" / f"{kind}_{name}").write_bytes(content)
            # A checksum of the archive keeps most changes of a fuzzer from its pickle.
            if has_pickle and content.startswith(b"PK") and name != "without_checksums":
                (CORPUS / "pickle" / f"{kind}_{name}").write_bytes(pickle_of(content))


if __name__ == "__main__":
    main()
