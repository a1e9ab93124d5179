"""fit() and Run in several processes, here threads, by a communicator in Python: the bits of one."""
import re
import threading

import numpy as np
import openrnn
import pytest
from openrnn import layers, train

from tool.tool_runs import checkpoint_bytes, write_text

SECONDS = 120  # after which a thread that waits for others is lost


class Place:
    """Where the ranks of one test meet."""

    def __init__(self, size):
        self.size, self.barrier, self.shown = size, threading.Barrier(size), [None] * size


class Threads:
    """One rank, with the functions of train.Communicator and nothing of the library."""

    def __init__(self, place, rank):
        self.place, self.rank, self.size, self.bytes = place, rank, place.size, 0

    def _exchange(self, data):
        self.place.shown[self.rank] = data
        self.place.barrier.wait(SECONDS)
        everyone = [np.array(each) for each in self.place.shown]
        self.place.barrier.wait(SECONDS)
        self.bytes += data.nbytes
        return everyone

    def all_to_all(self, send, receive):
        assert not send.flags.writeable and send.dtype == np.uint8
        parts = [each.reshape(self.size, -1)[self.rank] for each in self._exchange(send)]
        receive[:] = np.concatenate(parts)

    def all_gather(self, send, receive):
        receive[:] = np.concatenate(self._exchange(send))

    def all_reduce(self, values):
        values[:] = np.sum(self._exchange(values), axis=0, dtype=values.dtype)

    def broadcast(self, data, root):
        data[:] = self._exchange(data)[root]

    def barrier(self):
        self.place.barrier.wait(SECONDS)

    def abort(self, why):
        self.place.barrier.abort()


def on_ranks(size, work):
    """What `work(communicator)` returns or raises in each of `size` threads."""
    place, found = Place(size), [None] * size

    def one(rank):
        try:
            found[rank] = work(Threads(place, rank))
        except Exception as error:  # noqa: BLE001 - the test looks at it
            found[rank] = error

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    return found


def data(samples=19):
    random = np.random.default_rng(5)
    return (random.normal(size=(6, samples, 3)).astype("float32"),
            random.normal(size=(samples, 1)).astype("float32"))


def fitted(communicator=None, *, callbacks=None, dtype="float32", reduction="exact", **more):
    """(weights, losses, held-out losses) of a model with masks; its last batch has 3 samples."""
    with openrnn.Graph().as_default():
        inputs = openrnn.Input(batch_shape=(6, None, 3), dtype=dtype)
        out, _ = openrnn.cudnn_rnn.CudnnLSTM(2, 5, dropout=0.4, seed=3, dtype=dtype)(inputs)
        model = openrnn.Model(inputs, layers.Dense(1, seed=4, dtype=dtype)(
            layers.Dropout(0.3, seed=5)(out[-1])))  # fmt: skip
        x, y = data()
        history = model.fit((x.astype(dtype), y.astype(dtype)), "mean_squared_error",
                            train.Adam(0.05), epochs=3, batch_size=8, batch_axis=(1, 0),
                            micro_batches=4, clip_norm=0.5, progress=False, callbacks=callbacks,
                            validation=data(7) if dtype == "float32" else None,
                            communicator=communicator, reduction=reduction, **more)  # fmt: skip
        weights = [weight.numpy().tobytes() for weight in model.weights]
        held_out = history["val_loss"] if dtype == "float32" else None
        return weights, history["loss"], held_out, history.steps


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [2, 4])
def test_fit_has_the_bits_of_one_process(size, dtype):
    alone = fitted(dtype=dtype)
    assert on_ranks(size, lambda one: fitted(one, dtype=dtype)) == [alone] * size


def test_one_process_sends_nothing():
    sent = []

    def work(one):
        found = fitted(one)
        sent.append(one.bytes)
        return found

    assert on_ranks(1, work) == [fitted()]
    assert sent == [0]


def test_fast_is_near():
    found = on_ranks(2, lambda one: fitted(one, dtype="float64", reduction="fast"))
    assert found[0] == found[1]
    np.testing.assert_allclose(found[0][1], fitted(dtype="float64")[1], rtol=1e-9)


def test_callbacks_of_one_rank_end_all():
    def work(one):
        return fitted(one, callbacks=[lambda epoch, logs: one.rank != 1])

    found = on_ranks(2, work)
    assert [each[3] for each in found] == [3, 3]  # of 9 steps
    assert found[0] == found[1]


def test_an_exception_of_one_rank_ends_all():
    def work(one):
        def callback(epoch, logs):
            if one.rank == 2 and epoch == 1:
                raise OSError("no room left")

        return fitted(one, callbacks=callback)

    found = on_ranks(4, work)
    assert isinstance(found[2], OSError) and str(found[2]) == "no room left"
    for rank in (0, 1, 3):
        assert isinstance(found[rank], openrnn.EngineError)
        assert str(found[rank]) == "[Group] rank 2 of 4 has failed: no room left"


def test_a_communicator_that_fails_ends_all():
    class Broken(Threads):
        def all_to_all(self, send, receive):
            if self.rank == 1:
                raise ConnectionError("the cable")
            super().all_to_all(send, receive)

    found = on_ranks(2, lambda one: fitted(Broken(one.place, one.rank)))
    assert isinstance(found[1], ConnectionError)
    assert isinstance(found[0], threading.BrokenBarrierError)


def run_of(text, out, communicator=None, **more):
    with train.Run(out, input=text, units=6, layers=2, dropout=0.25, batch=8, seq_len=7, steps=12,
                   micro_batches=4, save_seconds=0, communicator=communicator, **more) as run:  # fmt: skip
        seen = []
        said = run.train(lambda report: seen.append(report.step))
        cost = run.reduction_cost
        if not more.get("overlap"):
            assert cost.seconds_overlapped == 0.0 and cost.seconds_waited >= 0.0
            assert (cost.bytes > 0) == (cost.seconds > 0.0) == (cost.steps > 0)
        return said, run.step, len(seen), cost.steps


def test_runs_have_the_checkpoints_of_one_process(tmp_path):
    text = write_text(tmp_path)
    assert run_of(text, tmp_path / "one") == ("done", 12, 12, 0)
    for size in (2, 4):
        out = tmp_path / str(size)
        assert on_ranks(size, lambda one: run_of(text, out, one)) == [("done", 12, 12, 12)] * size
        assert checkpoint_bytes(out, 12) == checkpoint_bytes(tmp_path / "one", 12)


def test_a_callback_that_raises_saves_and_ends_all(tmp_path):
    text = write_text(tmp_path)

    def work(one):
        with train.Run(tmp_path / "out", input=text, units=6, batch=4, seq_len=7, steps=12,
                       micro_batches=2, communicator=one, save_seconds=0) as run:  # fmt: skip
            return run.train(lambda report: 1 / (report.step - 5) if one.rank == 1 else True)

    found = on_ranks(2, work)
    assert found[0] == "callback" and isinstance(found[1], TypeError | ZeroDivisionError)
    assert train.latest_checkpoint(tmp_path / "out") is not None


def test_what_is_refused(tmp_path):
    for given in ("gloo", 3, object()):
        with pytest.raises(TypeError, match="communicator is .*, expected 'mpi', 'nccl', a process group of"):
            fitted(given)
    with pytest.raises(openrnn.ArgumentError, match="reduction is 'ring', expected one of exact, fast"):
        fitted(reduction="ring")
    with pytest.raises(openrnn.ArgumentError, match="reduction is 'ring'"):
        train.Run(tmp_path / "out", input="none", reduction="ring")
    found = on_ranks(3, fitted)
    expected = "[fit] micro_batches is 4 with 3 processes, expected that many times a power of two"
    assert all(isinstance(each, openrnn.ArgumentError) and str(each).startswith(expected)
               for each in found)  # fmt: skip


def test_other_weights_are_refused():
    def work(one):
        layer = layers.Dense(1, seed=one.rank)
        layer.build((None, 3))
        x = np.ones((4, 3), "float32")
        return train.fit(layer, (x, x[:, :1]), "mean_squared_error", train.Adam(), progress=False,
                         batch_size=4, micro_batches=2, communicator=one)  # fmt: skip

    found = on_ranks(2, work)
    assert isinstance(found[1], openrnn.StateError)
    text = r"\[fit\] rank 1 of 2 has weights of fingerprint [0-9a-f]{16}, "
    assert re.match(text, str(found[1]))
    assert str(found[0]).startswith("[Group] rank 1 of 2 has failed: [fit] rank 1 of 2 has weights ")


def test_only_the_first_validates():
    def work(one):
        asked = []

        def held_out():
            asked.append(one.rank)
            return iter([(np.ones((2, 3), "float32"), np.ones((2, 1), "float32"))])

        layer, x = layers.Dense(1, kernel_initializer="zeros"), np.ones((4, 3), "float32")
        layer.build((None, 3))
        history = train.fit(layer, (x, x[:, :1]), "mean_squared_error", train.Adam(), 3, progress=False,
                            batch_size=4, micro_batches=2, communicator=one, validation=held_out)  # fmt: skip
        return len(asked), history["val_loss"]

    first, second = on_ranks(2, work)
    assert (first[0], second[0]) == (3, 0) and first[1] == second[1]


@pytest.mark.parametrize("size", [1, 2])
def test_nccl_that_is_missing_is_named_by_all(size, monkeypatch):
    monkeypatch.setenv("OPENRNN_CUDA_LIBRARIES", "/nowhere")
    found = on_ranks(size, train.nccl_communicator)
    if not isinstance(found[0], openrnn.EngineError):
        pytest.skip("NCCL and a GPU are here")
    texts = [str(each) for each in found]
    assert any(each.startswith("[nccl] NCCL cannot be used: ") for each in texts), texts
    assert all("NCCL cannot be used: " in each for each in texts)


def test_what_nccl_refuses():
    found = on_ranks(2, lambda one: train.nccl_communicator(one, timeout=-2.0 * one.rank - 1))
    assert str(found[0]).endswith("[nccl_communicator] a timeout of -1 s, expected more than 0")
    for given in ("cpu", "gpu:", "gpu:x", 0):
        with pytest.raises(openrnn.ArgumentError, match="device is .*, expected 'gpu:N' or None"):
            train.nccl_communicator(device=given)
    for given in ("nccl", "gloo", None, 3):
        with pytest.raises(TypeError, match=r"bootstrap is .*, expected 'mpi', a process group"):
            train.nccl_communicator(given)
