"""Kept runs: what is written, what is drawn from it, what is refused."""

import json
import os
import shutil
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from peers import __main__
from peers.kept import export, machine, pages, record, tables
from peers.lines import Line, Network
from peers.report.goals import goals_of
from peers.report.results import LineResult

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "scripts/draw_benchmarks"
MACHINE = {"name": "AMD Zen 9", "model": "A processor", "cores": 2, "flags": ["avx2"]}
SETTING = {"versions": {"torch": "2.0", "tract": "not there"}, "commit": "abc", "quick": True}
SUMMARY = "<!-- bench: all summary -->\n<!-- end of bench -->\n"


def side(key, times, role="peer", native=False, **more):
    """A side as it lies in the file of results; times in ms."""
    return {
        "side": key, "role": role, "native": native, "about": f"{key} 1.0", "kernel": "k",
        "reason": "", "agrees": True, "difference": 0.0, "differs_in": "", "memory": 0,
        "rounds": [time * 1e6 for time in times],
    } | more  # fmt: skip


def result(sides, group="batches", cell="lstm", sizes=(4, 128, 64, 20), work="forward", threads=1,
           note=""):  # fmt: skip
    """A finished line."""
    line = Line(group, Network(cell, *sizes), work, threads, (), note)
    return LineResult.of(line, {"date": "2030-01-02T03:04:05", "sides": sides})


def plain(ours=2.0, peer=3.0, **more):
    """A line with ours, one peer near and one far away."""
    return result([
        side("OpenRNN", [ours] * 5, "ours"), side("OpenRNN C++", [ours / 2] * 5, "ours", True),
        side("ONNX Runtime", [peer] * 5), side("oneDNN", [9 * ours] * 5, native=True),
        side("JAX", [0.1] * 5, agrees=False),
    ], **more)  # fmt: skip


def record_of(*results):
    return export.record_of(results, goals_of(results, False), SETTING, MACHINE)


@pytest.fixture
def tree(tmp_path):
    """Folders of docs and results with one run and a page that shows it."""
    docs, results = tmp_path / "docs", tmp_path / "results"
    docs.mkdir()
    record.write(record_of(plain()), results, "zen9")
    page = f"# Page\n\n{SUMMARY}\nWords.\n\n<!-- bench: zen9 networks -->\nold\n<!-- end of bench -->\n"
    (docs / "page.md").write_text(page)
    return Namespace(docs=docs, results=results)


def draw(tree, *words):
    command = [SCRIPT, "--docs", tree.docs, "--results", tree.results, *words]
    return subprocess.run(command, text=True, capture_output=True, check=False)


def test_an_entry_has_quartiles_ratios_and_intervals():
    entry = export.entry_of(plain())
    assert entry == {
        "sides": {
            "OpenRNN": {"ms": [2, 2, 2], "peers": {"ONNX Runtime": [1.5, 1.5, 1.5]}},
            "OpenRNN C++": {"ms": [1, 1, 1], "peers": {"oneDNN": 18}},
        },
        "disagree": ["JAX"],
    }
    found = record.best(entry)
    assert (found.ours, found.peer, found.ratio, found.lost) == ("OpenRNN", "ONNX Runtime", 1.5, False)
    assert record.best(export.entry_of(plain(peer=1.9))).lost


def test_an_entry_has_what_a_group_has_besides():
    peak = side("FMA peak", [1e9 / 100 * 1e-6] * 5, "meter", True)
    gflop = Network("lstm", 4, 128, 64, 20).forward_flop * 1e-9
    ours = side("OpenRNN C++", [gflop / 50 * 1e3] * 5, "ours", True)
    assert export.entry_of(result([ours, peak]))["roof"] == 50
    math = [
        side("OpenRNN C++", [4.0] * 5, "ours", True), side("OpenRNN C++ bf16", [1.0] * 5, "own", True),
        side("oneDNN bf16", [1.2] * 5, native=True),
    ]  # fmt: skip
    assert export.entry_of(result(math, "math"))["sides"] == {"OpenRNN C++ bf16": {
        "ms": [1, 1, 1], "own": {"OpenRNN C++": [4, 4, 4]}, "peers": {"oneDNN bf16": [1.2, 1.2, 1.2]},
    }}  # fmt: skip
    memory = result([side("JAX", [], memory=12_400_000)], "memory", work="memory")
    assert export.entry_of(memory) == {"memory": {"JAX": 12}}
    errors = result([side("JAX", [1.0], errors={"y": 1.26e-7})], "accuracy")
    assert export.entry_of(errors)["errors"] == {"JAX": {"y": 1.3e-7}}
    drop_in = [side("openrnn.jax", [1.0] * 5, "ours"), side("OpenRNN", [0.9] * 5, "own"),
               side("JAX", [2.0] * 5)]  # fmt: skip
    kept = export.entry_of(result(drop_in, "dropin jax"))["sides"]["openrnn.jax"]
    assert kept["own"] == {"OpenRNN": [0.9, 0.9, 0.9]} and kept["peers"] == {"JAX": [2, 2, 2]}


def test_a_file_is_stable_and_read_as_it_was_written(tmp_path):
    made = record_of(plain(), plain(threads=2), plain(group="batch 1", sizes=(1, 64, 1, 100)))
    path = record.write(made, tmp_path / "deep", "zen9")
    again = record.read(path)
    assert again == made and record.text_of(again) == path.read_text()
    assert path.read_text() == record.text_of(json.loads(json.dumps(made)))
    assert (made["date"], made["commit"], made["quick"]) == ("2030-01-02", "abc", True)
    assert made["versions"] == {"torch": "2.0", "oneDNN": "1.0"}
    lines = [line for line in path.read_text().splitlines() if '"forward, ' in line]
    assert len(lines) == 3  # an entry is a line, for diffs
    assert made["goals"][0]["text"] == "lines lost" and made["goals"][0]["found"] == 0


def test_lines_of_drop_in_layers_are_a_file_of_their_own(tmp_path):
    sides = [side("openrnn.torch", [1.0] * 5, "ours"), side("PyTorch", [2.0] * 5)]
    both = [plain(), result(sides, "dropin", note="dropin")]
    goals = goals_of(both, False)
    written = export.keep(both, goals, SETTING, MACHINE, tmp_path, "zen9")
    assert [path.name for path in written] == ["zen9.json", "zen9_dropin.json"]
    found = record.read_all(tmp_path)
    assert found["zen9"]["lines"].keys() == {"batches"}
    assert found["zen9_dropin"]["lines"].keys() == {"dropin"}
    assert all(g["text"].startswith("drop-in") for g in found["zen9_dropin"]["goals"])
    table = "\n".join(tables.drop_in(found["zen9_dropin"]))
    assert "| openrnn.torch | PyTorch | 2.00 |  | 2.00, LSTM L4 U128 B64 T20, forward |" in table


@pytest.mark.parametrize("text,error", [
    ('{"format": 7}', "format 7, expected 1"), ("[1]", "format None, expected 1"),
    ("{", "expected JSON"), ('{"format": 1, "date": ""}', "lines, machine, versions missing"),
])  # fmt: skip
def test_other_files_are_refused(text, error, tmp_path, tree):
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(record.KeptError, match=f"bad.json: .*{error}"):
        record.read(path)
    shutil.copy(path, tree.results)
    assert draw(tree).returncode == 1 and error in draw(tree).stderr


def test_networks_are_in_order_with_their_columns():
    made = record_of(
        plain(sizes=(4, 1024, 64, 40)), plain(cell="gru"), plain(), plain(work="training", peer=1.5),
        plain(group="batch 1", sizes=(1, 64, 1, 100), threads=2),
        plain(group="four threads", threads=4),
    )  # fmt: skip
    assert tables.networks(made) == [
        "| network | forward, 1 thread | 2 threads | 4 threads | forward + backward, 1 thread |",
        "| --- | --- | --- | --- | --- |",
        "| LSTM L1 U64 B1 T100 |  | 2.00, **1.50** ORT |  |  |",
        "| LSTM L4 U128 B64 T20 | 2.00, **1.50** ORT |  | 2.00, **1.50** ORT | 2.00, **0.75** ORT, lost |",
        "| LSTM L4 U1024 B64 T40 | 2.00, **1.50** ORT |  |  |  |",
        "| GRU L4 U128 B64 T20 | 2.00, **1.50** ORT |  |  |  |",
    ]


def test_other_tables():
    made = record_of(
        plain(group="padding", note="half padding"), plain(group="cells", note="peepholes"),
        plain(group="model", sizes=(1, 256, 32, 64), work="model", note="language model"),
        result([side("JAX", [], memory=12_400_000)], "memory", work="memory"),
        result([side("OpenRNN", [4.0] * 5, "ours"), side("OpenRNN int8", [2.0] * 5, "own")], "weights"),
    )  # fmt: skip
    row = lambda kind: tables.KINDS[kind](made)[-1]
    assert row("padding") == "| LSTM L4 U128 B64 T20 | 2.00, **1.50** ORT |"
    assert row("cells") == "| LSTM peepholes | 2.00, **1.50** ORT |"
    assert row("model") == "| 1 | 1,020,000 | ONNX Runtime 1.50, oneDNN 18.00 |"
    assert row("memory") == "| LSTM L4 U128 B64 T20 | 12 |"
    assert row("arithmetic") == "| OpenRNN int8 | OpenRNN | 2.00 to 2.00, mean 2.00 |"
    assert tables.machine(made) == [
        "AMD Zen 9 (A processor), 2 cores, AVX2 alone; 2030-01-02, commit abc. PyTorch 2.0, oneDNN "
        "1.0. Few repetitions (`--quick`)."
    ]
    summary = tables.summary({"a": made, "b": record_of(plain(), plain(peer=1.0, threads=2))}, {"b": "b.md"})
    assert summary[2:] == [
        "| AMD Zen 9 | 2 | 2030-01-02 |  |  | 0.87 |  | 1 of 2 | [b.md](b.md) |"]  # fmt: skip


def test_a_page_is_drawn_and_a_changed_figure_is_seen(tree):
    drawn = draw(tree)
    assert drawn.returncode == 0 and "written: page.md" in drawn.stdout, drawn.stderr
    text = (tree.docs / "page.md").read_text()
    assert "old" not in text and "Words." in text
    assert "| LSTM L4 U128 B64 T20 | 2.00, **1.50** ORT |" in text
    assert "[page.md](page.md)" in text
    assert draw(tree, "--check").returncode == 0 and draw(tree).stdout == ""
    (tree.docs / "page.md").write_text(text.replace("2.00, **1.50**", "2.00, **1.60**"))
    failed = draw(tree, "--check")
    assert failed.returncode == 1 and "run scripts/draw_benchmarks" in failed.stderr
    assert "-| LSTM L4 U128 B64 T20 | 2.00, **1.60** ORT |" in failed.stdout
    assert "1.60" in (tree.docs / "page.md").read_text()  # --check writes nothing
    assert draw(tree).returncode == 0 and (tree.docs / "page.md").read_text() == text
    record.write(record_of(plain(peer=3.2)), tree.results, "zen9")
    assert draw(tree, "--check").returncode == 1


def test_a_run_that_no_page_shows_gets_a_page(tree):
    record.write(record_of(plain(), plain(threads=2)), tree.results, "zen8")
    assert draw(tree, "--check").returncode == 1
    assert "benchmarks_zen8.md" in draw(tree).stdout
    text = (tree.docs / "benchmarks_zen8.md").read_text()
    assert text.startswith("# Benchmarks on AMD Zen 9\n") and "zen8 networks" in text
    assert "zen8 padding" not in text  # nothing to show
    assert "[benchmarks_zen8.md](benchmarks_zen8.md)" in (tree.docs / "page.md").read_text()
    assert draw(tree, "--check").returncode == 0


@pytest.mark.parametrize("block,error", [
    ("<!-- bench: zen1 networks -->\n<!-- end of bench -->", "run 'zen1', expected one of zen9"),
    ("<!-- bench: zen9 speeds -->\n<!-- end of bench -->", "table 'speeds', expected one of alone"),
    ("<!-- bench: zen9 goals -->", "'zen9 goals' has no end"),
    ("<!-- end of bench -->", "expected a marker before it"),
    ("<!-- bench: zen9 goals -->\n<!-- bench: zen9 goals -->", "inside another block"),
])  # fmt: skip
def test_wrong_markers_are_refused_by_their_place(block, error, tree):
    (tree.docs / "other.md").write_text(f"# Other\n\n{block}\n")
    found = draw(tree)
    assert found.returncode == 1 and "[draw_benchmarks] other.md" in found.stderr
    assert error in found.stderr and "old" in (tree.docs / "page.md").read_text()


def test_the_table_of_all_runs_has_to_be_somewhere(tree):
    (tree.docs / "page.md").write_text("# Page\n")
    assert "no page has the block 'all summary'" in draw(tree).stderr


def test_microarchitectures():
    of = lambda vendor, family, model: machine.microarchitecture({
        "vendor_id": vendor, "cpu family": str(family), "model": str(model), "model name": "Own"})  # fmt: skip
    assert of("AuthenticAMD", 25, 17) == "AMD Zen 4" and of("AuthenticAMD", 25, 1) == "AMD Zen 3"
    assert of("AuthenticAMD", 26, 2) == "AMD Zen 5" and of("AuthenticAMD", 25, 97) == "AMD Zen 4"
    assert of("GenuineIntel", 6, 143) == "Intel Sapphire Rapids"
    assert of("GenuineIntel", 6, 207) == "Intel Emerald Rapids"
    assert of("GenuineIntel", 6, 1) == "Own" and of("Other", 25, 17) == "Own"
    assert machine.microarchitecture({}) == "unknown"
    about = machine.describe({"model name": "Own", "flags": "sse avx2 amx_bf16"})
    assert about == {"name": "Own", "model": "Own", "flags": ["avx2", "amx_bf16"],
                     "cores": len(os.sched_getaffinity(0))}  # fmt: skip


def test_an_unfinished_run_is_not_kept(tmp_path, capsys):
    done = plain().line
    lines = [done, plain(threads=2).line]
    options = Namespace(results=tmp_path, keep="zen9")
    setting = {**SETTING, "flags": []}
    sides = [side("OpenRNN", [2.0] * 5, "ours"), side("JAX", [3.0] * 5)]
    found = [{"line": done.name, "date": "2030-01-02T03:04:05", "sides": sides}]
    assert __main__.keep(lines, found, setting, options) == 1
    assert "1 of 2 lines are measured, expected all" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
    assert __main__.keep([done], found, setting, options) == 0
    assert "lstm" in record.read(tmp_path / "zen9.json")["lines"]["batches"].popitem()[0].lower()


def test_figures_of_our_layers_alone(tmp_path, monkeypatch, tree):
    def figure(way, threads, ms):
        return {"config": "LSTM L1 U64 B1 T100", "pass": way, "threads": threads, "ms": ms,
                "gflops": 61.237, "percent_of_peak": 17.884}  # fmt: skip

    (tmp_path / "1.json").write_text(json.dumps([figure("forward", 1, 0.10702)]))
    two = [{**figure("forward_backward", 2, 0.36), "percent_of_tiles": 87.51},
           figure("forward_training", 2, 0.2)]  # fmt: skip
    (tmp_path / "2.json").write_text(json.dumps(two))
    command = [sys.executable, "-S", "-m", "peers.kept", "zen9", tmp_path / "1.json"]
    keep = lambda *more: subprocess.run(
        [*command, *more], text=True, capture_output=True, check=False, cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT / "bench"), "PATH": os.environ["PATH"]},
    )  # fmt: skip
    assert keep(tmp_path / "2.json").returncode == 0
    path = tmp_path / "bench/results/zen9_alone.json"
    assert tables.alone(record.read(path)) == [
        "| network | forward, 1 thread | forward for training, 2 threads | forward + backward, 2 threads |",
        "| --- | --- | --- | --- |",
        "| LSTM L1 U64 B1 T100 | 0.107, 18 % | 0.200, 18 % | 0.360, 18 % (88 %) |",
    ]
    shutil.copy(path, tree.results)
    assert draw(tree).returncode == 0
    page = (tree.docs / "benchmarks_zen9_alone.md").read_text()
    assert "of `make bench`. [performance.md]" in page and "| 0.107, 18 % |" in page
    assert "zen9_alone" not in (tree.docs / "page.md").read_text()  # no ratios to sum up
    (tmp_path / "2.json").write_text('[{"pass": "cells"}]')
    assert "expected figures of plain `openrnn bench" in keep(tmp_path / "2.json").stderr


def test_names_of_runs(monkeypatch):
    assert record.checked_name("zen_4") == "zen_4"
    for name in ("Zen4", "a/b", "../a", "a__b", ""):
        with pytest.raises(record.KeptError, match="expected lower-case words"):
            record.checked_name(name)
    monkeypatch.setattr(sys, "argv", ["peers", "--keep", "../x", "--report"])
    with pytest.raises(SystemExit, match="--keep '../x': expected lower-case words"):
        __main__.main()


def test_the_docs_show_the_kept_runs():
    found = subprocess.run([SCRIPT, "--check"], text=True, capture_output=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    for path in (ROOT / "bench/results").glob("*.json"):
        assert path.stat().st_size < 100_000
        assert record.text_of(record.read(path)) == path.read_text(), path.name


def test_the_script_needs_no_package():
    command = [sys.executable, "-S", "-I", SCRIPT, "--check"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    assert pages.MOST_LINES == 220
