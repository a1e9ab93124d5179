"""The notebooks run from top to bottom, twice, show what they say, and are saved as they run."""

import base64
import json
import re
import shutil
import struct

import nbformat
import pytest
from example_runs import ROOT
from nbformat.v4 import new_code_cell

from model.kernels import own_folders, script

NAMES = sorted(path.stem for path in script.FOLDER.glob("*.ipynb"))

# By notebook: words of its text with a bound in them, and an expression that holds for the bound.
CLAIMS = {
    "char_model": [
        (r"needs more than (\S+) bits", "by_frequency > {}"),
        (r"the network needs less than (\S+) for windows", "by_network < {}"),
    ],
    "forecast": [
        (r"is off by less than (\S+) spots", "off['network (median)'] < {0} < sorted(off.values())[1]"),
        (r"more than (\S+) % of the truth lies inside", "{} < covered < 80"),
    ],
    "gradient_check": [
        (r"the largest error is below (\S+) of", "max(errors.values()) < {}"),
        (r"comes closer than (\S+), whatever the step", "lowest['cut, float64'] > {}"),
        (r"Its valley ends above (\S+):", "lowest['right, float32'] > {}"),
    ],
    "voice_activity": [
        (r"More than (\S+) % of the chunks are right", "100 * right > {}"),
        (r"Down to 0 dB more than (\S+) % of the decisions", "min(np.array(shares)[levels >= 0]) > {}"),
    ],
}

# Variables that somebody holds, also in graphs of runs before, what the cells have bound, and whether
# the claims hold.
PROBE = """
import gc as _gc, json as _json
_gc.collect()
_graphs = {id(one): one for one in [*globals().get("_graphs", {}).values(), openrnn.get_default_graph()]}
print(_json.dumps({"variables": sum(len(one.variables()) for one in _graphs.values()), "claims": [%s]}))
"""


def saved(name):
    return nbformat.read(script.FOLDER / f"{name}.ipynb", as_version=4)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def words(notebook):
    """The text cells, a sentence on one line."""
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    return " ".join(" ".join(cells).split())


def bound(notebook, pattern):
    """The number that the text names there."""
    found = re.findall(pattern, words(notebook))
    assert len(found) == 1, (pattern, found)
    return float(found[0])


def texts(cell):
    """What a cell prints and the texts of what it shows, but for the pictures'."""
    found = [output.get("text", "") for output in cell.outputs]
    found += [output.data["text/plain"] for output in cell.outputs
              if "data" in output and "image/png" not in output.data]  # fmt: skip
    return "".join(found)


def steady(cell):
    """Its texts; of errors as small as 1e-05, which are made of rounding, only that they are."""
    return re.sub(r"\b\d(?:\.\d+)?e-(?:0[5-9]|[1-9]\d)\b", "SMALL", texts(cell))


def pictures(cell):
    """The PNG files of a cell."""
    shown = [output.data for output in cell.outputs if "data" in output]
    return [base64.b64decode(data["image/png"]) for data in shown if "image/png" in data]


def draws(cell):
    return "plt.show()" in cell.source or "plot_history(" in cell.source


@pytest.fixture(name="folders", scope="module")
def fixture_folders(tmp_path_factory):
    with own_folders(tmp_path_factory):
        yield


@pytest.fixture(name="run", scope="module", params=NAMES)
def fixture_run(request, folders, tmp_path_factory):
    """A notebook run twice by one kernel, in a folder with what the examples ship and nothing else."""
    examples = tmp_path_factory.mktemp("of_a_user") / "examples"
    for part in ("models", "python"):
        shutil.copytree(ROOT / "examples" / part, examples / part)
    (examples / "notebooks").mkdir()
    return Run(request.param, examples / "notebooks")


class Run:
    """name; committed: the notebook; first, second: its code cells as they ran; probes: after each."""

    def __init__(self, name, folder):
        self.name, self.committed = name, saved(name)
        self.claims = [(pattern, expression.format(bound(self.committed, pattern)))
                       for pattern, expression in CLAIMS[name]]  # fmt: skip
        sources = [cell.source for cell in code_cells(self.committed)]
        probe = PROBE % ", ".join(f"bool({claim})" for _, claim in self.claims)
        cells = [new_code_cell(source) for source in 2 * [*sources, probe]]
        done = script.execute(nbformat.v4.new_notebook(cells=cells), folder).cells
        self.first, self.second = done[: len(sources)], done[len(sources) + 1 : -1]
        self.probes = [json.loads(texts(done[place])) for place in (len(sources), -1)]


def test_what_the_text_claims_holds(run):
    assert len(run.claims) > 1
    for probe in run.probes:
        wrong = [claim for claim, holds in zip(run.claims, probe["claims"], strict=True) if not holds]
        assert wrong == []


def test_running_it_again_piles_nothing_up(run):
    before, after = run.probes
    assert before["variables"] == after["variables"]
    assert (before["variables"] > 0) == (run.name != "voice_activity")
    assert [texts(cell) for cell in run.first] == [texts(cell) for cell in run.second]


def test_pictures(run):
    """Each cell that draws shows one picture, of a size that a page has room for; no other cell does."""
    # Another version of matplotlib may draw larger ones.
    for cells, most in ((run.first, 100_000), (run.second, 100_000), (code_cells(run.committed), 60_000)):
        assert sum(map(draws, cells)) >= 1
        for cell in cells:
            found = pictures(cell)
            assert len(found) == draws(cell), cell.source
            for picture in found:
                assert picture.startswith(b"\x89PNG") and 5_000 < len(picture) <= most
                width, height = struct.unpack(">II", picture[16:24])
                assert 600 <= width <= 1000 and 250 <= height <= 650


def test_axes_have_names():
    for name in NAMES:
        for cell in code_cells(saved(name)):
            drawn = "plt.show()" in cell.source
            assert ("set_xlabel(" in cell.source and "set_ylabel(" in cell.source) == drawn, cell.source


def test_the_outputs_are_those_of_the_code(run):
    """The texts that are committed are the texts of a run; pictures differ from version to version."""
    old, new = code_cells(run.committed), run.first
    if run.name == "char_model" and texts(old[1]) != texts(new[1]):
        pytest.skip("the licences of this system are others")
    for before, after in zip(old, new, strict=True):
        assert steady(before) == steady(after)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_saved_says_nothing_of_the_machine(name):
    notebook, raw = saved(name), (script.FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
    assert notebook.metadata == script.METADATA
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert all(cell.metadata == {} for cell in notebook.cells)
    kinds = {(output.output_type, output.get("name")) for cell in cells for output in cell.outputs}
    assert kinds <= {("stream", "stdout"), ("display_data", None), ("execute_result", None)}
    texts_of_it = re.sub(r'"image/png": "[^"]*"', "", raw)
    assert not re.search(r"Warning|Traceback|0x[0-9a-f]{6}|/(?:work|root|home|tmp)/|\b20\d\d-\d\d-\d\d", texts_of_it)
    assert not any(b"Software" in picture for cell in cells for picture in pictures(cell))
    assert nbformat.writes(notebook) + "\n" == raw


@pytest.mark.parametrize("name", NAMES)
def test_pages_link_to_it(name):
    for page in ("examples/README.md", "docs/fit.md"):
        assert f"notebooks/{name}.ipynb)" in (ROOT / page).read_text(encoding="utf-8"), page


@pytest.mark.parametrize(("name", "figures"), [
    ("char_model", [r"by frequencies (\S+) bits", r"by the network (\S+) bits"]),
    ("forecast", [r"median\) +(\S+) spots", r"years before +(\S+) spots", r"test +(\d+ %)"]),
    ("voice_activity", [r"chunks, (\S+ %) of the decisions"]),
    ("gradient_check", [r"right, float64 +(\S+) at", r"right, float32 +(\S+) at"]),
])  # fmt: skip
def test_the_page_has_their_figures(name, figures):
    """The examples' page says what the committed notebook shows."""
    page = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    (line,) = [line for line in page.splitlines() if line.startswith(f"| [{name}](")]
    shown = "\n".join(texts(cell) for cell in code_cells(saved(name)))
    for figure in figures:
        assert re.search(figure, shown)[1] in line, figure
