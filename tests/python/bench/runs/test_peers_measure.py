"""How a line is measured: what workers are told and asked, who takes which turn, what memory is."""

import numpy as np
import pytest

from peers import measure, problem, protocol
from peers.lines import FMA, KERAS, SMALL_WEIGHTS, Line, Network, Side, meters_of

NETWORK = Network("lstm", 1, 3, 2, 4)


class Worker:
    """Answers from a table and writes down what it is asked; NS are the times of its calls."""

    def __init__(self, ns=5e6, answers=()):
        self.ns, self.answers, self.asked, self.alive = ns, dict(answers), [], True

    def ask(self, command):
        self.asked.append(command)
        answer = self.answers.get(command.split()[0], "")
        if isinstance(answer, Exception):
            raise answer
        return answer

    def times(self, count, warm):
        self.ask(f"run {count} {warm}")
        return [self.ns * (1 + k) for k in range(count)]

    def kill(self):
        self.asked.append("kill")
        self.alive = False


class Pool:
    """Gives out one worker for each name."""

    def __init__(self, **workers):
        self.workers, self.names = workers, []

    def get(self, name):
        self.names.append(name)
        return self.workers[name.split("#")[0]]

    start = get


def run_of(folder, sides, work="forward", group="batches", network=NETWORK, pool=None, seconds=-1.0):
    return measure.LineRun(Line(group, network, work, 2, sides), pool, folder, seconds)


@pytest.mark.parametrize("side,name", [
    (Side("PyTorch", "pytorch"), "pytorch"),
    (KERAS[1], "keras_tensorflow#jit1"),
    (FMA, "openrnn_core#whatpeak"),
    (meters_of(Network("lstm", 1, 256, 1, 9), "forward")[0], "openrnn_core#alone"),
    (Side("PyTorch aten", "pytorch", options=(("onednn", "0"),)), "pytorch"),
    (Side("PyTorch packed", "pytorch", options=(("lengths", "packed"),)), "pytorch#packed"),
    (Side("ONNX Runtime lengths", "onnx_runtimes.ort", options=(("lengths", "given"),)),
     "onnx_runtimes.ort#lengths"),
    (Side("a packed", "pytorch", "ours", (("drop_in", "1"), ("lengths", "packed"))),
     "pytorch#drop_in1-packed"),
    (Side("bf16", "onednn", options=(("math", "bf16"),)), "onednn#mathbf16"),
    (Side("int8", "ort", options=(("weights", "int8"),)), "ort#weightsint8"),
    (Side("loop", "pytorch_cells", options=(("compile", "1"),)), "pytorch_cells#compile1"),
    (Side("one", "openrnn_layers", options=(("beside", "pytorch"), ("own_threads", "1"))),
     "openrnn_layers#besidepytorch-own_threads1"),
])  # fmt: skip
def test_names_of_workers(side, name):
    assert measure.worker_name(side) == name


def test_what_a_worker_is_told(tmp_path):
    network = Network("gru", 2, 5, 3, 7, directions=2)
    line = Line("cells", network, "training", 1, (), option="hard sigmoid")
    side = Side("a", "b", options=(("what", "peak"), ("bytes", "9")))
    assert measure.setup_command(line, side, tmp_path, "forward") == (
        f"setup folder={tmp_path} cell=gru layers=2 units=5 input=5 batch=3 time=7 directions=2 "
        "pass=forward option=hard_sigmoid what=peak bytes=9"
    )
    model = Line("model", network, "model", 1, ())
    plain = measure.setup_command(model, Side("a", "b"), tmp_path, "model")
    assert "input=64" in plain and plain.endswith("pass=model")


def test_inputs_of_a_line():
    network = Network("gru", 3, 4, 5, 6, directions=2)
    rows = 3 * 4
    assert problem.weights_size(network) == 2 * rows * (4 + 4) + 2 * 2 * rows * (8 + 4)
    assert problem.params_size(network) == problem.weights_size(network) + 3 * 2 * 2 * rows
    arrays = problem.arrays_of(Line("batches", network, "training", 1, ()))
    shapes = {name: value.shape for name, value in arrays.items()}
    assert shapes == {"params": (problem.params_size(network),), "x": (6, 5, 4), "r": (6, 5, 8)}
    for name, most in (("params", 0.5), ("x", 1.0), ("r", 1.0)):
        assert arrays[name].dtype == np.float32
        assert 0.9 * most < arrays[name].max() <= most and -most <= arrays[name].min() < -0.9 * most
    again = problem.arrays_of(Line("batches", network, "forward", 2, ()))
    assert all((again[name] == value).all() for name, value in arrays.items())
    padded = problem.arrays_of(Line("padding", network, "training", 1, (), padded=True))
    lengths = padded["lengths"]
    assert lengths.dtype == np.int32 and lengths[0] == 6 and lengths.sum() == 15
    for row, length in enumerate(lengths):
        assert padded["r"][:length, row].all() and not padded["r"][length:, row].any()


@pytest.mark.parametrize("cell,states", [("lstm", {"h0", "c0"}), ("gru", {"h0"})])
def test_single_steps_begin_with_given_states(cell, states):
    network = Network(cell, 3, 4, 5, 1, directions=2)
    line = Line("server", network, "forward", 1, ())
    assert line.carries_state
    arrays = problem.arrays_of(line)
    assert arrays.keys() == {"params", "x", "r"} | states
    for name in states:
        assert arrays[name].shape == (6, 5, 4) and arrays[name].dtype == np.float32
        assert np.unique(arrays[name]).size == 120 and 0.9 < np.abs(arrays[name]).max() <= 1
    plain = problem.arrays_of(Line("dropin", network, "forward", 1, ()))
    assert plain.keys() == {"params", "x", "r"}
    assert all((plain[name] == arrays[name]).all() for name in plain)
    longer = Network(cell, 3, 4, 5, 2)
    for other in (Line("server", network, "training", 1, ()), Line("server", longer, "forward", 1, ())):
        assert not other.carries_state and "h0" not in problem.arrays_of(other)


def test_inputs_of_rare_lines():
    network = Network("lstm", 1, 4, 2, 3)
    small = problem.arrays_of(Line("accuracy", network, "training", 1, (), weights=SMALL_WEIGHTS))
    cut = problem.weights_size(network)
    assert 0 < np.abs(small["params"][:cut]).max() <= np.float32(SMALL_WEIGHTS)
    assert (small["params"][cut:] == 1).all() and small["params"].size > cut
    for option, vectors in (("peepholes", 3), ("layer norm", 6), ("softsign", 0)):
        found = problem.arrays_of(Line("cells", network, "forward", 1, (), option=option))
        assert found["params"].size == problem.params_size(network) + vectors * 4


def test_the_folder_of_inputs_is_made_anew(tmp_path):
    folder = tmp_path / "deep" / "work"
    three = Network("lstm", 1, 3, 3, 4)
    problem.write(Line("padding", three, "forward", 1, (), padded=True), folder)
    assert {path.stem for path in folder.iterdir()} == {"params", "x", "r", "lengths"}
    problem.write(Line("batches", NETWORK, "forward", 1, ()), folder)
    assert {path.stem for path in folder.iterdir()} == {"params", "x", "r"}
    problem.write(Line("model", NETWORK, "model", 1, ()), folder)
    assert "ids" in {path.stem for path in folder.iterdir()}


@pytest.mark.parametrize("call_ns,calls,warm", [
    (1e3, 1000, 100), (1e5, 150, 30), (1e6, 15, 3), (1e7, 1, 1), (3e7, 1, 1), (3.1e7, 1, 0),
])  # fmt: skip
def test_calls_of_a_turn(call_ns, calls, warm, tmp_path):
    run = run_of(tmp_path, (Side("a", "a"),))
    worker = run.workers["a"] = Worker(ns=100.0)
    (entry,) = run.entries
    entry.call_ns = call_ns
    run._turn(entry)
    assert worker.asked == [f"run {calls} {warm}"]
    median = np.median(100.0 * np.arange(1, calls + 1))
    assert entry.rounds == [median] and entry.call_ns == median


def test_a_meters_turn_is_its_best_call(tmp_path):
    run = run_of(tmp_path, (FMA,))
    run.workers[FMA.key] = Worker(ns=100.0)
    (entry,) = run.entries
    entry.call_ns = 5e6
    run._turn(entry)
    assert entry.rounds == [100.0]


def set_up(folder, side, worker, work="forward", group="batches", network=NETWORK):
    run = run_of(folder, (side,), work, group, network, Pool(**{side.worker: worker}))
    run._set_up(run.entries[0])
    assert run.workers == {side.key: worker}
    return run.entries[0], [command.split()[0] for command in worker.asked]


def test_a_side_is_set_up_and_looked_at(tmp_path):
    answers = {"about": "A 1.0", "setup": "its kernel"}
    entry, asked = set_up(tmp_path, Side("a side", "a"), Worker(4e6, answers))
    assert asked == ["about", "setup", "output", "run"] and entry.call_ns == 4e6
    assert (entry.about, entry.kernel) == ("A 1.0", "its kernel")
    worker = Worker(2.9e6)
    entry, asked = set_up(tmp_path, Side("a side", "a"), worker)
    assert worker.asked[2:] == [f"output {tmp_path / 'out' / 'a_side'}", "run 1 0", "run 5 3"]
    assert worker.asked[1].endswith(" pass=forward")
    for side in (FMA, Side("steps alone", "a", "own", (("skip_input", "1"),))):
        assert set_up(tmp_path, side, Worker())[1] == ["about", "setup", "run"]
    bound = Side("one", "a", "bound", (("what", "storage"),))
    assert set_up(tmp_path, bound, Worker())[1] == ["about", "setup", "output", "run"]
    untimed = set_up(tmp_path, Side("a", "a"), Worker(), group="accuracy")
    assert untimed[1] == ["about", "setup", "output"] and untimed[0].call_ns == 0


def test_results_lie_in_folders_without_blanks(tmp_path):
    run = run_of(tmp_path, (Side("a b c", "a"), Side("d", "d"), Side("e", "e")))
    for name in ("a_b_c", "d"):
        (tmp_path / "out" / name).mkdir(parents=True)
    assert run._folders() == {"a b c": tmp_path / "out" / "a_b_c", "d": tmp_path / "out" / "d"}


def test_a_long_call_is_guessed(tmp_path):
    """100 flop a nanosecond and thread; forward and backward are three forward passes."""
    network = Network("lstm", 4, 1024, 64, 100)
    guess = 3 * network.forward_flop / (100 * 2)
    assert guess > 1e9
    entry, asked = set_up(tmp_path, Side("a", "a"), Worker(), "training", network=network)
    assert asked == ["about", "setup", "output"] and entry.call_ns == pytest.approx(guess)
    short = Network("lstm", 4, 1024, 64, 40)
    assert short.forward_flop / 200 < 1e9 < 3 * short.forward_flop / 200
    assert set_up(tmp_path, Side("a", "a"), Worker(), "forward", network=short)[1][-1] == "run"


def test_who_goes_on(tmp_path):
    sides = (
        Side("OpenRNN", "openrnn_layers", "ours"), Side("own", "openrnn_layers", "own"), FMA,
        Side("Keras", "keras_torch"), Side("JAX", "jax_scan"), Side("PyTorch", "pytorch"),
        Side("gone", "pytorch"), Side("new", "pytorch"),
    )  # fmt: skip
    run = run_of(tmp_path, sides)
    for entry in run.entries:
        entry.rounds = [9e9] * 2 if entry.side.key != "OpenRNN" else [1e9] * 2
    run.entries[6].reason = "refused"
    run.entries[7].rounds = []
    keys = lambda number: [entry.side.key for entry in run._still_running(number)]
    all_there = ["OpenRNN", "own", "FMA peak", "Keras", "JAX", "PyTorch", "new"]
    assert keys(0) == keys(1) == all_there
    assert keys(2) == ["OpenRNN", "own", "FMA peak", "PyTorch", "new"]  # one round less
    assert keys(3) == ["OpenRNN", "own", "FMA peak", "new"]
    for entry in run.entries[3:6]:
        entry.rounds = [3e9, 2.9e9, None]
    run.entries[5].rounds = [3e9]
    assert keys(3) == ["OpenRNN", "own", "FMA peak", "PyTorch", "new"]  # three times is near enough
    for entry in run.entries[3:5]:
        entry.rounds = [1e9]
    assert keys(3) == all_there  # no more than a second


def test_rounds_begin_with_another_side_each(tmp_path):
    run = run_of(tmp_path, tuple(Side(name, name) for name in "abcd"))
    taken = []

    def turn(entry):
        taken.append(entry.side.key)
        if entry.side.key == "c" and len(taken) > 3:
            raise protocol.WorkerError("it ended")
        entry.rounds.append(1.0)

    run._turn = turn
    run.entries[3].reason = "refused"
    run._rounds()
    assert "".join(taken) == "abc" + "bca" + "ab"
    assert [entry.rounds for entry in run.entries] == [
        [1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, None, None], [None, None, None]]  # fmt: skip
    assert run.entries[2].reason == "failed: it ended"


def test_rounds_end_with_the_time_or_after_sixty(tmp_path):
    for seconds, rounds in ((-1.0, 3), (1e6, 60)):
        run = run_of(tmp_path, (Side("a", "a"),), seconds=seconds)
        run._turn = lambda entry: entry.rounds.append(2.0)
        run._rounds()
        assert run.entries[0].rounds == [2.0] * rounds


def test_a_worker_that_cannot_release_ends():
    worker = Worker(answers={"release": protocol.WorkerError("no")})
    measure.release(worker)
    assert worker.asked == ["release", "kill"]
    measure.release(worker := Worker())
    assert worker.asked == ["release"] and worker.alive


def test_an_entry_in_the_file():
    entry = measure.Entry(Side("oneDNN", "onednn", "peer"), rounds=[1.0, None])
    assert entry.as_json() == {
        "side": "oneDNN", "role": "peer", "native": True, "about": "", "kernel": "", "reason": "",
        "agrees": True, "difference": 0.0, "differs_in": "", "memory": 0, "errors": {},
        "rounds": [1.0, None],
    }  # fmt: skip
    assert not measure.Entry(Side("JAX", "jax_scan", "own")).as_json()["native"]
    assert entry.present and not measure.Entry(entry.side, reason="no").present


def test_memory_is_that_of_a_second_call_in_a_fresh_process(tmp_path):
    line = Line("memory", NETWORK, "memory", 2, (
        Side("good", "good"), Side("no", "no"), Side("bad", "bad", options=(("jit", "1"),)),
    ))  # fmt: skip
    workers = {
        "good": Worker(answers={"setup": "its kernel", "memory": "bytes 12345"}),
        "no": Worker(answers={"setup": protocol.Refusal("float32 alone")}),
        "bad": Worker(answers={"reset": protocol.WorkerError("it ended")}),
    }
    told, pool = [], Pool(**workers)
    good, refused, failed = measure.measure_memory(line, pool, tmp_path, told.append)
    assert (good.memory, good.kernel, good.reason) == (12345, "its kernel", "")
    assert refused.reason == "float32 alone" and failed.reason == "failed: it ended"
    assert pool.names == ["good", "no", "bad#jit1"]
    assert told == ["memory of good", "memory of no", "memory of bad"]
    asked = workers["good"].asked
    assert asked[0].startswith(f"setup folder={tmp_path / 'small'} cell=lstm layers=1 units=16 ")
    assert "batch=2 time=3 " in asked[0] and asked[0].endswith("pass=training")
    assert asked[1:4] == ["run 1 1", "release", "mark"]
    assert asked[4].startswith(f"setup folder={tmp_path / 'large'} cell=lstm layers=1 units=3 ")
    assert asked[4].endswith("pass=training single=1")
    assert asked[5:] == ["run 1 0", "reset", "run 2 0", "memory", "kill"]
    assert workers["no"].asked[-1] == workers["bad"].asked[-1] == "kill"
    for name, units in (("small", 16), ("large", 3)):
        assert np.load(tmp_path / name / "x.npy").shape[2] == units
