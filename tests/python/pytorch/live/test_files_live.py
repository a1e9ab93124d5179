"""Files of PyTorch: what torch.save writes is read with the same bits, and torch.load reads ours."""

import io
import os
import pathlib
import subprocess

import numpy as np
import pytest
import torch

from files.file_tools import call_tool, from_line, to_line

TOOL = pathlib.Path(os.environ["OPENRNN_BUILD_DIR"]) / "openrnn"
DTYPES = [torch.float16, torch.float32, torch.float64, torch.int32, torch.int64, torch.uint8, torch.bool]
SHAPES = [(), (1,), (0,), (7,), (3, 5), (2, 0, 3), (1, 17, 1, 2)]


def random_tensor(dtype, shape):
    if dtype == torch.bool:
        return torch.randint(0, 2, shape).bool()
    size = torch.empty((), dtype=dtype).element_size()
    bits = torch.randint(0, 256, (*shape, size), dtype=torch.uint8)
    return bits.view(dtype).reshape(shape)


def tensors():
    torch.manual_seed(1)
    return {f"t{i}.ä": random_tensor(dtype, shape)
            for i, (dtype, shape) in enumerate((d, s) for d in DTYPES for s in SHAPES)}


def read(path):
    return dict(map(from_line, call_tool("model_file", "dump", path).splitlines()))


def assert_equal(found, expected):
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        array = tensor.detach().numpy()
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape), name
        assert found[name].tobytes() == array.tobytes(), name


FORMS = [{}, {"pickle_protocol": 4}, {"pickle_protocol": 5}, {"_use_new_zipfile_serialization": False}]


@pytest.mark.parametrize("form", FORMS)
def test_every_dtype_and_shape(tmp_path, form):
    named = tensors()
    torch.save(named, tmp_path / "m", **form)
    assert_equal(read(tmp_path / "m"), named)


@pytest.mark.parametrize("form", FORMS)
def test_strides_and_shared_storages(tmp_path, form):
    torch.manual_seed(2)
    base = torch.randn(4, 6, 3)
    named = {"base": base, "t": base.permute(2, 1, 0), "part": base[1:3, ::2], "last": base[..., -1], "tied": base, "one": base[2, 3, 1],
             "none": base[:0], "columns": base.reshape(24, 3)[:, 1:].T}
    torch.save(named, tmp_path / "m", **form)
    assert_equal(read(tmp_path / "m"), named)


@pytest.mark.parametrize("cell", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_state_dicts_and_optimizers(tmp_path, cell, bidirectional, form):
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Embedding(5, 3), getattr(torch.nn, cell)(3, 7, 3, bidirectional=bidirectional))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.zeros(2, 1, dtype=torch.int64))[0].sum().backward()
    optimizer.step()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 1}, tmp_path / "m", **form)
    expected = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    for number, slots in optimizer.state_dict()["state"].items():
        expected |= {f"optimizer.state.{number}.{slot}": tensor for slot, tensor in slots.items()}
    assert_equal(read(tmp_path / "m"), expected)


def test_what_a_script_holds(tmp_path):
    model = torch.nn.LSTM(3, 2, 2)
    torch.jit.save(torch.jit.script(model), tmp_path / "m")
    found = read(tmp_path / "m")
    for name, tensor in model.state_dict().items():
        assert found[name].tobytes() == tensor.numpy().tobytes()


def test_torch_loads_what_we_write(tmp_path):
    named = tensors()
    lines = [to_line(name, tensor.numpy()) for name, tensor in named.items()]
    call_tool("model_file", "torch", tmp_path / "m", stdin="\n".join(lines) + "\n")
    for options in ({}, {"mmap": True}):
        back = torch.load(tmp_path / "m", weights_only=True, **options)
        assert list(back) == list(named)
        for name, tensor in named.items():
            assert (back[name].dtype, back[name].shape) == (tensor.dtype, tensor.shape)
            assert back[name].numpy().tobytes() == tensor.numpy().tobytes()
    assert_equal(read(tmp_path / "m"), named)


def test_a_module_loads_what_we_write(tmp_path):
    torch.manual_seed(4)
    model, other = torch.nn.LSTM(3, 5, 2), torch.nn.LSTM(3, 5, 2)
    lines = [to_line(name, tensor.numpy()) for name, tensor in model.state_dict().items()]
    call_tool("model_file", "torch", tmp_path / "m", stdin="\n".join(lines) + "\n")
    other.load_state_dict(torch.load(tmp_path / "m", weights_only=True))
    x = torch.randn(4, 2, 3)
    assert torch.equal(model(x)[0], other(x)[0])


def test_whole_modules_are_refused_by_name(tmp_path):
    torch.save(torch.nn.GRU(1, 1), tmp_path / "m")
    done = subprocess.run([TOOL, "inspect", tmp_path / "m"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "the pickle names torch.nn.modules.rnn.GRU, expected only names of tensors" in done.stderr


def saves_unsigned():
    try:
        torch.save(torch.zeros(1, dtype=torch.uint32), io.BytesIO())
    except KeyError:  # PyTorch 2.4
        return False
    return True


def test_element_types_that_are_listed(tmp_path):
    named = {"b": torch.zeros(3, dtype=torch.bfloat16), "c": torch.zeros(2, dtype=torch.complex64),
             "f": torch.zeros(2).to(torch.float8_e5m2)}
    wanted = {"b": "bfloat16", "c": "complex64", "f": "float8_e5m2"}
    if saves_unsigned():
        named["u"], wanted["u"] = torch.zeros(2, dtype=torch.uint32), "uint32"
    torch.save(named, tmp_path / "m")
    shown = subprocess.run([TOOL, "inspect", tmp_path / "m"], capture_output=True, text=True, check=True).stdout
    rows = {line.split()[0]: line.split()[1] for line in shown.splitlines()[1 : len(wanted) + 1]}
    assert rows == wanted
