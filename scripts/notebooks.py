"""Runs the notebooks of examples/notebooks/ from top to bottom and saves them with what they show.

Usage: .venv/bin/python scripts/notebooks.py [NAME ...]

What is saved says nothing of the machine or the moment: no times, no versions, cells counted from 1.
"""

import base64
import copy
import pathlib
import struct
import sys
import tempfile

import nbformat
from nbclient import NotebookClient
from traitlets.config import Config

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "examples" / "notebooks"
SECONDS = 300  # for one cell: a bound for a hung kernel, far above what any takes
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def execute(notebook, folder):
    """The notebook with its outputs, run by a new kernel in that folder; a cell that fails raises."""
    made = copy.deepcopy(notebook)
    with tempfile.TemporaryDirectory() as sockets:
        # Of two kernels that start at once both may pick one port; a folder is one kernel's own.
        reached = {"transport": "ipc", "ip": f"{sockets}/kernel"}
        NotebookClient(
            made, timeout=SECONDS, kernel_name="python3", record_timing=False,
            resources={"metadata": {"path": str(folder)}}, config=Config({"KernelManager": reached}),
        ).execute()  # fmt: skip
    return tidy(made)


def without_texts(picture):
    """A PNG file without its chunks of text, which name the library that drew it and its version."""
    kept, at = picture[:8], 8
    while at < len(picture):
        end = at + 12 + struct.unpack(">I", picture[at : at + 4])[0]
        if picture[at + 4 : at + 8] not in (b"tEXt", b"iTXt", b"zTXt"):
            kept += picture[at:end]
        at = end
    return kept


def tidy(notebook):
    """Without what differs from run to run."""
    notebook.metadata = nbformat.from_dict(METADATA)
    count = 0
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({})
        if cell.cell_type != "code":
            continue
        count += 1
        cell.execution_count = count
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = count
            if "metadata" in output:
                output.metadata = nbformat.from_dict({})
            if "image/png" in output.get("data", {}):
                picture = without_texts(base64.b64decode(output.data["image/png"]))
                output.data["image/png"] = base64.b64encode(picture).decode()
    return notebook


def main():
    names = sys.argv[1:] or sorted(path.stem for path in FOLDER.glob("*.ipynb"))
    for name in names:
        path = FOLDER / f"{name.removesuffix('.ipynb')}.ipynb"
        nbformat.write(execute(nbformat.read(path, as_version=4), FOLDER), path)
        print(f"{path.relative_to(FOLDER.parents[1])}: {path.stat().st_size // 1024} kB")


if __name__ == "__main__":
    main()
