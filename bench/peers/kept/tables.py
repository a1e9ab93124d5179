"""Tables of docs/ from kept runs. Needs no package."""

import math
import re
from collections.abc import Callable, Iterable, Sequence

from peers.kept.record import Record, best, comparisons
from peers.markdown import head, row

LIBRARIES = {
    "torch": "PyTorch", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO", "tract": "tract",
    "keras": "Keras", "tensorflow-cpu": "TensorFlow", "jax": "JAX", "oneDNN": "oneDNN",
}  # fmt: skip
ISA = (("amx_bf16", "AMX"), ("avx512f", "AVX-512"), ("avx2", "AVX2 alone"))
NETWORK = re.compile(r"(LSTM|GRU|RNN) L(\d+) U(\d+) B(\d+) T(\d+)(.*)")
CELLS = ("LSTM", "GRU", "RNN")
WORKS = ("forward", "forward for training", "forward + backward", "model")
PLAIN = ("batch 1", "streaming", "server", "batches", "four threads")
MEANS = (  # groups, pass, title
    (("batch 1", "streaming"), "forward", "batch 1, forward"),
    (("batch 1", "streaming"), "forward + backward", "forward + backward"),
    (("batches",), "forward", "batches, forward"),
    (("batches",), "forward + backward", "forward + backward"),
)
Cell = Callable[[Record], str]


def significant(value: float) -> str:
    """Three significant digits, without an exponent."""
    digits = 2 - math.floor(math.log10(value)) if value > 0 else 0
    return f"{value:.{max(0, digits)}f}"


def number(value: float) -> str:
    """Two places, none of a count."""
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.2f}"


def mean(values: Sequence[float]) -> str:
    """Geometric."""
    if not values:
        return ""
    return f"{math.exp(sum(map(math.log, values)) / len(values)):.2f}"


def network_order(name: str) -> tuple[object, ...]:
    """LSTM before GRU, then by sizes as numbers."""
    found = NETWORK.fullmatch(name)
    assert found, name
    cell, *sizes, note = found.groups()
    return (CELLS.index(cell), *map(int, sizes), note)


def call_order(call: str) -> tuple[int, int]:
    """Forward before forward + backward, one thread before two."""
    work, threads = call.rsplit(", ", 1)
    return WORKS.index(work), int(threads)


def call_titles(calls: Iterable[str]) -> list[str]:
    """'forward, 1 thread', '2 threads', 'forward + backward, 1 thread': the pass where it changes."""
    found, before = [], ""
    for call in calls:
        work, threads = call.rsplit(", ", 1)
        plural = "s" if threads != "1" else ""
        found.append(f"{'' if work == before else work + ', '}{threads} thread{plural}")
        before = work
    return found


def ratio_cell(entry: Record) -> str:
    """'0.104, **1.14** ORT': our median in ms, the best peer's time over it, who that is."""
    found = best(entry)
    if found is None:
        return ""
    peer = found.peer.replace("ONNX Runtime", "ORT")
    lost = ", lost" if found.lost else ""
    return f"{significant(found.ms)}, **{found.ratio:.2f}** {peer}{lost}"


def roof_cell(entry: Record) -> str:
    """Percent of the roofline."""
    return f"{entry['roof']:.0f} %" if "roof" in entry else ""


def same(name: str) -> str:
    """A network's name as it is."""
    return name


def by_network(
    run: Record, groups: Sequence[str], cell: Cell, title: Callable[[str], str] = same,
    first: str = "network",
) -> list[str]:  # fmt: skip
    """A row a network, a column a pass and number of threads; rows without a cell are left out."""
    rows: dict[str, dict[str, str]] = {}
    for group in groups:
        networks = run["lines"].get(group, {})
        for name in sorted(networks, key=network_order):
            cells = {call: cell(entry) for call, entry in networks[name].items()}
            found = {call: text for call, text in cells.items() if text}
            if found:
                rows.setdefault(title(name), {}).update(found)
    calls = sorted({call for cells in rows.values() for call in cells}, key=call_order)
    lines = head([first, *call_titles(calls)])
    return lines + [row([name, *(c.get(call, "") for call in calls)]) for name, c in rows.items()]


def networks(run: Record) -> list[str]:
    """Every plain network against its best peer."""
    return by_network(run, PLAIN, ratio_cell)


def padding(run: Record) -> list[str]:
    """The same with half padding."""
    return by_network(run, ("padding",), ratio_cell, lambda name: name.removesuffix(", half padding"))


def cells(run: Record) -> list[str]:
    """Cells with options against loops; all networks have the same sizes."""

    def title(name: str) -> str:
        cell, _, option = name.partition(" ")
        return f"{cell} {option.partition(', ')[2]}"

    return by_network(run, ("cells",), ratio_cell, title, "cell")


def roofline(run: Record) -> list[str]:
    """Percent of the FMA peak in large networks, of the read bandwidth at batch 1."""
    return by_network(run, ("batch 1", "batches"), roof_cell)


def alone(run: Record) -> list[str]:
    """Ours without peers: median ms, percent of the FMA peak, in batches also of bare tiles."""

    def cell(entry: Record) -> str:
        ((_, median, _),) = (side["ms"] for side in entry["sides"].values())
        tiles = f" ({entry['tiles']:.0f} %)" if "tiles" in entry else ""
        return f"{significant(median)}, {entry['roof']:.0f} %{tiles}"

    return by_network(run, ("alone",), cell)


def arithmetic(run: Record) -> list[str]:
    """Other arithmetics and smaller weights over our float32, and over a peer's: least to most."""
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    for group in ("math", "weights"):
        for entries in run["lines"].get(group, {}).values():
            for call, entry in entries.items():
                for kind in ("own", "peers"):
                    for pair in comparisons(entry, kind):
                        ratios = found.setdefault((pair.ours, pair.peer), {})
                        ratios.setdefault(call, []).append(pair.ratio)
    calls = sorted({call for values in found.values() for call in values}, key=call_order)
    lines = head(["ours", "over", *call_titles(calls)])
    for (ours, over), ratios in sorted(found.items()):
        spans = [ratios.get(call, []) for call in calls]
        texts = [f"{min(v):.2f} to {max(v):.2f}, mean {mean(v)}" if v else "" for v in spans]
        lines.append(row([ours, over, *texts]))
    return lines


def drop_in(run: Record) -> list[str]:
    """Converted layers over what they replace."""
    lines = head(["ours", "over", "forward", "forward + backward", "worst line"])
    found: dict[tuple[str, str, str], dict[str, list[tuple[float, str]]]] = {}
    for group, members in run["lines"].items():
        if not group.startswith("dropin"):
            continue
        for name, entries in members.items():
            for call, entry in entries.items():
                work = call.rsplit(", ", 1)[0]
                for pair in comparisons(entry):
                    works = found.setdefault((group, pair.ours, pair.peer), {})
                    works.setdefault(work, []).append((pair.ratio, f"{name.split(',')[0]}, {work}"))
    for (group, ours, over), works in sorted(found.items()):
        on = group.removeprefix("dropin").removeprefix(" jax").replace(" keras ", " on ")
        worst = min(pair for pairs in works.values() for pair in pairs)
        means = [mean([ratio for ratio, _ in works.get(work, [])]) for work in ("forward", "forward + backward")]
        lines.append(row([ours, over + on, *means, f"{worst[0]:.2f}, {worst[1]}"]))
    return lines


def memory(run: Record) -> list[str]:
    """MB of a training step."""
    found = run["lines"].get("memory", {})
    rows = {name: next(iter(entries.values()))["memory"] for name, entries in found.items()}
    keys = sorted({key for cells in rows.values() for key in cells}, key=lambda k: (k[:4] != "Open", k))
    lines = head(["training step, MB", *keys])
    for name in sorted(rows, key=network_order):
        lines.append(row([name, *(str(rows[name].get(key, "-")) for key in keys)]))
    return lines


def model(run: Record) -> list[str]:
    """The language model's training step: tokens a second, and the peers' times over ours."""
    lines = head(["threads", "OpenRNN, tokens a second", "peers' times over ours"])
    for name, entries in run["lines"].get("model", {}).items():
        sizes = NETWORK.fullmatch(name)
        assert sizes
        tokens = int(sizes[4]) * int(sizes[5])
        for call in sorted(entries, key=call_order):
            found = sorted(comparisons(entries[call]), key=lambda pair: pair.ratio)
            rate = f"{float(f'{tokens / found[0].ms * 1e3:.3g}'):,.0f}" if found else "-"
            peers = ", ".join(f"{pair.peer} {pair.ratio:.2f}" for pair in found)
            lines.append(row([call.rsplit(", ", 1)[1], rate, peers]))
    return lines


def goals(run: Record) -> list[str]:
    """Every goal that could be measured."""
    lines = head(["goal", "wanted", "found", "lines", ""])
    for goal in run.get("goals", []):
        wanted = f"{'at most ' if goal['most'] else ''}{goal['wanted']:g}"
        cells = (goal["text"], wanted, number(goal["found"]), str(goal["lines"]), goal["state"])
        lines.append(row(cells))
    return lines


def machine(run: Record) -> list[str]:
    """One paragraph: the processor, the day, the versions."""
    found, versions = run["machine"], run["versions"]
    isa = next((text for flag, text in ISA if flag in found["flags"]), "no AVX2")
    libraries = [f"{LIBRARIES[k]} {versions[k]}" for k in LIBRARIES if k in versions]
    commit = f", commit {run['commit']}" if run.get("commit") else ""
    text = (
        f"{found['name']} ({found['model']}), {found['cores']} cores, {isa}; {run['date']}{commit}."
    )
    if libraries:
        text += f" {', '.join(libraries)}."
    if run.get("quick"):
        text += " Few repetitions (`--quick`)."
    if not run.get("whole", True):
        text += " Of this run medians and best peers alone were kept."
    return [text]


def summary(runs: dict[str, Record], pages: dict[str, str]) -> list[str]:
    """A row for each run that has plain networks: geometric means over the best peers, its page."""
    titles = [title for _, _, title in MEANS]
    lines = head(["processor", "cores", "date", *titles, "lost", "tables"])
    for name, run in runs.items():
        kept = [e for g in PLAIN for n in run["lines"].get(g, {}).values() for e in n.values()]
        if not kept:
            continue
        means = [
            mean([
                found.ratio for group in groups for calls in run["lines"].get(group, {}).values()
                for call, entry in calls.items()
                if call.rsplit(", ", 1)[0] == work and (found := best(entry)) is not None
            ])
            for groups, work, _ in MEANS
        ]  # fmt: skip
        pairs = [found for entry in kept if (found := best(entry)) is not None]
        lost = "" if all(p.high is None for p in pairs) else f"{sum(p.lost for p in pairs)} of {len(pairs)}"
        page = pages.get(name, "")
        cells = [run["machine"]["name"], str(run["machine"]["cores"]), run["date"], *means, lost]
        lines.append(row([*cells, f"[{page}]({page})" if page else ""]))
    return lines


KINDS: dict[str, Callable[[Record], list[str]]] = {
    "alone": alone, "arithmetic": arithmetic, "cells": cells, "dropin": drop_in, "goals": goals,
    "machine": machine, "memory": memory, "model": model, "networks": networks,
    "padding": padding, "roofline": roofline,
}  # fmt: skip
