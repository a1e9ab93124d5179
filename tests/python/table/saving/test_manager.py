"""CheckpointManager and describe_network."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import openrnn
import pytest
from openrnn import cudnn_rnn


def make_layer(kind="CudnnLSTM", **options):
    layer = getattr(cudnn_rnn, kind)(2, 4, seed=1, **options)
    layer.build((None, None, 3))
    return layer


@pytest.mark.parametrize("kind", ["Saver", "Checkpoint"])
def test_the_newest_few_are_kept(tmp_path, kind):
    layer = make_layer()
    saver = openrnn.train.Saver() if kind == "Saver" else openrnn.train.Checkpoint(net=layer)
    folder = tmp_path / "run"
    manager = openrnn.train.CheckpointManager(saver, folder, max_to_keep=2)
    assert manager.latest_checkpoint is None and manager.restore_or_initialize() is None
    assert manager.checkpoint is saver and manager.directory == str(folder)
    step = openrnn.Variable(np.int64(7), name="step")
    kernels = []
    for number in (3, 5, step):
        layer.kernel.assign(np.full(layer.kernel.shape, float(len(kernels) + 1)))
        kernels.append(layer.kernel.numpy())
        assert manager.save(number) == f"{folder}/model.ckpt-{int(number)}"
    assert manager.checkpoints == [f"{folder}/model.ckpt-5", f"{folder}/model.ckpt-7"]
    assert sorted(path.name for path in folder.glob("*.index")) == [
        "model.ckpt-5.index",
        "model.ckpt-7.index",
    ]
    assert openrnn.train.latest_checkpoint(folder) == manager.latest_checkpoint
    # A number that is kept already gets a further one.
    assert manager.save(7) == f"{folder}/model.ckpt-7-2"
    layer.kernel.assign(np.zeros(layer.kernel.shape))
    # Another manager of the folder takes them up.
    again = openrnn.train.CheckpointManager(saver, folder, None, checkpoint_name="model.ckpt")
    assert again.checkpoints == manager.checkpoints
    assert again.restore_or_initialize() == f"{folder}/model.ckpt-7-2"
    np.testing.assert_allclose(layer.kernel.numpy(), kernels[-1])


@pytest.mark.parametrize("kind", ["Saver", "Checkpoint"])
def test_several_threads_save(tmp_path, kind):
    layer = make_layer()
    saver = openrnn.train.Saver() if kind == "Saver" else openrnn.train.Checkpoint(net=layer)
    manager = openrnn.train.CheckpointManager(saver, tmp_path, max_to_keep=3)
    with ThreadPoolExecutor(4) as pool:
        saved = list(pool.map(manager.save, range(40)))
    assert len(set(saved)) == 40
    kept = manager.checkpoints
    assert len(kept) == 3 and set(kept) < set(saved)
    assert sorted(str(path)[: -len(".index")] for path in tmp_path.glob("*.index")) == sorted(kept)
    for prefix in kept:
        openrnn.train.CheckpointManager(saver, tmp_path).checkpoint.restore(prefix)


def test_manager_errors(tmp_path):
    saver = openrnn.train.Saver()
    with pytest.raises(TypeError, match=r"\[CheckpointManager\] checkpoint is a str, expected"):
        openrnn.train.CheckpointManager("saver", tmp_path)
    with pytest.raises(ValueError, match="keep -1, expected 0 or more"):
        openrnn.train.CheckpointManager(saver, tmp_path, -1)
    with pytest.raises(ValueError, match="step -3, expected 0 or more"):
        openrnn.train.CheckpointManager(saver, tmp_path).save(-3)
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="expected a folder"):
        openrnn.train.CheckpointManager(saver, tmp_path / "file")


def test_describe_network(tmp_path):
    with openrnn.variable_scope("m1"):
        layer = cudnn_rnn.CudnnGRU(2, 4, direction="bidirectional", seed=1)
        x = np.random.default_rng(0).normal(size=(5, 2, 3)).astype("float32")
        wanted, _ = layer(x, training=False)
    plain = make_layer("CudnnRNNTanh")
    saver = openrnn.train.Saver([layer.kernel, layer.saveable, plain.saveable])
    prefix = saver.save(tmp_path / "a")
    networks, remarks = openrnn.train.describe_network(tmp_path)
    assert remarks == []
    by_mode = {tuple(network.modes): network for network in networks}
    assert set(by_mode) == {("gru",), ("rnn_tanh", "rnn_relu")}
    gru = by_mode["gru",]
    assert gru.scope == "m1/cudnn_gru" and gru.raw_variable == layer.kernel.name
    assert gru.text.startswith("gru, 2 layers, 4 units, input size 3, bidirectional")
    assert gru.spec["num_layers"] == 2 and gru.spec["dtype"] == "float32"
    # A number always, and what the file says, not how it is computed.
    assert gru.spec["num_proj"] == 0 and not {"rnn_mode", "math", "dropout"} & set(gru.spec)
    # Enough to run it.
    params = openrnn.train.load_variable(prefix, gru.raw_variable)
    model = openrnn.PackedModel(params, gru.modes[0], **gru.spec)
    output, _ = openrnn.InferenceSession(model).run(x)
    np.testing.assert_array_equal(output, wanted.numpy())
    with pytest.raises(OSError, match="absent"):
        openrnn.train.describe_network(tmp_path / "absent")
