"""Every option of a network is a flag of the tool and an option of train.Run, by one table."""
import re

import openrnn
import pytest
from tool_runs import checkpoint_bytes, fault, good, small_flags, write_text

STEPS = 30
# Not chosen by a run: the data or the task says them.
NO_OPTIONS = {"input_size", "direction", "weights_dtype"}
NAMES = {"rnn_mode": "cell", "num_layers": "layers", "num_units": "units"}
OPTIONS = [option for option in openrnn.network_options() if option["name"] not in NO_OPTIONS]
OWN = ["--forget-bias", "1", "--cell-clip", "-0.25,0.125"]


def other_value(option):
    """A value that is neither the default nor that of the run below, as a flag has it."""
    before = option["default"]
    if option["choices"]:
        return next(choice for choice in option["choices"] if choice != (before or "none"))
    return {"bool": "false" if before else "true", "int": "6", "float": "0.5", "dtype": "float64",
            "(float, float)": "-0.5,1.5", "activation": "leaky_relu(0.25)"}[option["type"]]


@pytest.fixture(name="text", scope="module")
def fixture_text(tmp_path_factory):
    return write_text(tmp_path_factory.mktemp("text"))


@pytest.fixture(name="plain", scope="module")
def fixture_plain(tmp_path_factory, text):
    out = tmp_path_factory.mktemp("plain") / "out"
    good(*small_flags(text, out, steps=STEPS))
    return out


@pytest.fixture(name="own", scope="module")
def fixture_own(tmp_path_factory, text):
    """A run with options of its network that nothing interrupted."""
    out = tmp_path_factory.mktemp("own") / "out"
    good(*small_flags(text, out, steps=STEPS), *OWN)
    return out


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option["name"])
def test_each_is_a_flag_and_is_compared_on_resume(plain, option):
    name = NAMES.get(option["name"], option["name"])
    flag = "--" + name.replace("_", "-")
    assert f"  {flag} " in good("train", "--help").stdout
    value = other_value(option)
    for given in ([flag, value], [f"{flag}={value}"]):
        line = fault("train", "--out", plain, "--resume", *given)
        assert line.startswith(f"[train] {flag} {value} contradicts the run to resume, expected ")
        assert line.endswith(f"no {flag}") or f"expected {flag} " in line


@pytest.mark.parametrize(
    "option", [option for option in OPTIONS if option["type"] == "bool"],
    ids=lambda option: option["name"])
def test_a_flag_alone_is_true(plain, option):
    flag = "--" + option["name"].replace("_", "-")
    assert f"  {flag} [true|false]" in good("train", "--help").stdout
    if option["default"]:
        good("train", "--out", plain, flag, "--resume")
    else:
        line = fault("train", "--out", plain, flag, "--resume")
        assert line == f"[train] {flag} true contradicts the run to resume, expected {flag} false"
    assert fault("train", "--out", plain, "--resume", flag, "maybe") == (
        f"[train] {flag} 'maybe', expected one of true, false")


def test_a_run_is_stopped_and_resumed_with_the_same_bits(tmp_path, text, plain, own):
    assert checkpoint_bytes(own, STEPS) != checkpoint_bytes(plain, STEPS)
    sizes = {"units": 9, "layers": 2, "embedding": 5, "batch": 3, "seq_len": 11, "steps": STEPS,
             "dropout": 0.2, "seed": 7}
    with openrnn.train.Run(tmp_path / "out", input=text, forget_bias=1.0, cell_clip=(-0.25, 0.125),
                           **sizes) as run:
        assert run.train(lambda report: report.step < STEPS // 2) == "callback"
        assert run.config["model"]["forget_bias"] == 1.0
        assert run.config["model"]["cell_clip"] == [-0.25, 0.125]
    good("train", "--out", tmp_path / "out", "--resume", "--forget-bias", "1.0")
    assert checkpoint_bytes(tmp_path / "out", STEPS) == checkpoint_bytes(own, STEPS)


@pytest.mark.parametrize("flags", [
    ["--recurrent-dropout", 0.5, "--drop-connect", 0.25], ["--zoneout", 0.25, "--zoneout-cell", 0.5],
    ["--recurrent-dropout", 0.25, "--recurrent-dropout-form", "candidate", "--zoneout", 0.125],
    ["--cell", "gru", "--num-proj", 4, "--zoneout-cell", 0.25],
])
def test_masks_inside_the_steps_go_on_where_a_run_stopped(tmp_path, text, plain, flags):
    """The number of the call names the masks: a resumed run has those that it would have had."""
    whole, out = tmp_path / "whole", tmp_path / "out"
    good(*small_flags(text, whole, steps=STEPS), *flags)
    assert checkpoint_bytes(whole, STEPS) != checkpoint_bytes(plain, STEPS)
    options = {flag.lstrip("-").replace("-", "_"): value
               for flag, value in zip(flags[::2], flags[1::2])}
    sizes = {"units": 9, "layers": 2, "embedding": 5, "batch": 3, "seq_len": 11, "steps": STEPS,
             "dropout": 0.2, "seed": 7}
    with openrnn.train.Run(out, input=text, **options, **sizes) as run:
        assert run.train(lambda report: report.step < STEPS // 2) == "callback"
    good("train", "--out", out, "--resume")
    assert checkpoint_bytes(out, STEPS) == checkpoint_bytes(whole, STEPS)


def test_another_value_is_named_with_that_of_the_run(own):
    with pytest.raises(openrnn.ArgumentError) as raised:
        openrnn.train.Run(own, resume=True, forget_bias=2.5)
    assert str(raised.value) == ("[Run] forget_bias 2.5 contradicts the run to resume, "
                                 "expected forget_bias 1")
    assert fault("train", "--out", own, "--resume", "--cell-clip=-3,3") == (
        "[train] --cell-clip -3,3 contradicts the run to resume, expected --cell-clip -0.25,0.125")


def test_eval_scores_as_the_run_did(tmp_path, text):
    """Without its options the model would score otherwise."""
    valid = tmp_path / "valid.txt"
    valid.write_text("far dogs ran while a cat sat on the mat\n" * 12)
    out = tmp_path / "out"
    trained = good(*small_flags(text, out, steps=STEPS, valid=valid), *OWN).stdout
    score = good("eval", out, "--input", valid).stdout.split()[1]
    assert trained == f"validation {score} bits per byte of the file (step {STEPS})\n"
    assert len(good("generate", out, "--length", 40).stdout) == 41
    assert "\noptions: cell_clip -0.25,0.125, forget_bias 1\n" in good("inspect", out).stdout


def go_back_to_step_10(out):
    """A run of 20 steps as if it had been killed on the way."""
    for name in ("model.ckpt-20.index", "model.ckpt-20.data-00000-of-00001", "checkpoint"):
        (out / name).unlink()
    state = 'model_checkpoint_path: "model.ckpt-10"\nall_model_checkpoint_paths: "model.ckpt-10"\n'
    (out / "checkpoint").write_text(state)


def test_a_cell_with_options(tmp_path, text):
    """One of every type: a truth, an activation, one number for two."""
    flags = ["--use-peepholes", "--activation", "leaky_relu(0.25)", "--gate-clip", 3,
             "--single-bias", "true"]
    good(*small_flags(text, tmp_path / "whole", steps=20), *flags)
    good(*small_flags(text, tmp_path / "out", steps=20), *flags, "--save-steps", 10)
    go_back_to_step_10(tmp_path / "out")
    again = good("train", "--out", tmp_path / "out", "--resume", "--gate-clip=-3,3")
    assert "(step 10 of 20)" in again.stderr and "use_peepholes true" in again.stderr
    assert checkpoint_bytes(tmp_path / "out", 20) == checkpoint_bytes(tmp_path / "whole", 20)
    assert ("options: activation leaky_relu(0.25), use_peepholes true, gate_clip -3,3, "
            "single_bias true\n") in good("inspect", tmp_path / "out").stdout
    line = fault(*small_flags(text, tmp_path / "gru", cell="gru"), "--use-peepholes")
    assert line.startswith("[RnnSpec] use_peepholes is ") and line.endswith("expected it for lstm only")
    line = fault(*small_flags(text, tmp_path / "no"), "--activation", "sine")
    assert line.startswith("[activation] activation is 'sine', expected one of 'sigmoid', 'tanh'")


@pytest.mark.parametrize("cell,flags,shown", [
    ("lstm", ["--layer-norm", "products", "--layer-norm-cell", "output"],
     "layer_norm products, layer_norm_cell output"),
    ("lstm", ["--layer-norm", "gates", "--layer-norm-cell", "carried", "--layer-norm-epsilon",
              "1e-12"], "layer_norm gates, layer_norm_cell carried, layer_norm_epsilon 1e-12"),
    ("lstm", ["--layer-norm", "products", "--layer-norm-cell", "carried", "--layer-norm-epsilon",
              "1e-3"], "layer_norm products, layer_norm_cell carried, layer_norm_epsilon 0.001"),
    ("lstm", ["--layer-norm", "gates", "--layer-norm-cell", "carried"],
     "layer_norm gates, layer_norm_cell carried"),
    ("gru", ["--layer-norm", "split_products"], "layer_norm split_products"),
])
def test_layer_normalization_trains_and_resumes(tmp_path, text, cell, flags, shown):
    good(*small_flags(text, tmp_path / "whole", steps=20, cell=cell), *flags)
    good(*small_flags(text, tmp_path / "out", steps=20, cell=cell), *flags, "--save-steps", 10)
    go_back_to_step_10(tmp_path / "out")
    good("train", "--out", tmp_path / "out", "--resume")
    assert checkpoint_bytes(tmp_path / "out", 20) == checkpoint_bytes(tmp_path / "whole", 20)
    inspected = good("inspect", tmp_path / "out").stdout
    assert f"options: {shown}\n" in inspected and "note:" not in inspected
    # What the tensors say, and their names, agrees.
    assert re.search(rf"^network.*: {cell}, .*, {re.escape(shown)}$", inspected, re.M)


def test_inspect_is_silent_where_all_are_at_their_defaults(plain):
    assert "options:" not in good("inspect", plain).stdout


def test_the_compatible_cells_do_not_have_them(text, own):
    assert fault("check-cells", own, "--input", text) == (
        "[check-cells] a run with cell_clip [-0.25, 0.125], which the compatible cells do not have, "
        "expected None")


def test_a_projection_and_skipped_inputs(tmp_path, text):
    out = tmp_path / "out"
    good(*small_flags(text, out, steps=3, embedding=9, input_mode="skip_input", num_proj=4))
    shown = good("inspect", out).stdout
    assert "options: input_mode skip_input, num_proj 4\n" in shown
    assert good("eval", out, "--input", text).stdout.startswith("bits_per_byte ")
    line = fault(*small_flags(text, tmp_path / "other"), "--input-mode", "skip_input")
    assert line == "[RnnSpec] input_size is 5 under skip_input, expected num_units = 9"
