"""What the pages say of names, arguments and defaults is what the package has."""

import ast
import inspect
import pathlib
import re

import openrnn
import pytest
import snippets

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGES = [page for page in snippets.pages(ROOT) if page != "docs/embedding.md"]
# Where a name without a module is looked for.
SPACES = (openrnn.cudnn_rnn, openrnn.nn, openrnn.nn.rnn_cell, openrnn.train, openrnn,
          openrnn.cudnn_rnn.CudnnLSTM, openrnn.cudnn_rnn.CudnnLSTMSaveable,
          openrnn.cudnn_rnn.CudnnParamsFormatConverterLSTM, openrnn.train.AdamOptimizer)
SIGNATURE = re.compile(r"`([A-Za-z_.]\w*(?:[.\w]*)(?:\s*\|\s*\w+)*)\s*\(([^`()]*)\)`")
# What calls on the pages are calls of.
CALLED = {
    ("docs/layers.md", "layer"): openrnn.cudnn_rnn.CudnnLSTM.__call__,
    ("docs/cells.md", "cell"): openrnn.cudnn_rnn.CudnnCompatibleLSTMCell.__call__,
    ("docs/ops.md", "model"): openrnn.cudnn_rnn.ops.CudnnLSTM.__call__,
    ("docs/graph.md", "model"): openrnn.Model.__call__,
    ("docs/training.md", "save"): openrnn.train.Saver.save,
}
OP_PAGE = "docs/ops.md"


def prose(page):
    """A page without its snippets."""
    return re.sub(r"```.*?```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)


def names_of(framework):
    """The public names of openrnn.torch and the like, for which those need not be there."""
    source = (pathlib.Path(openrnn.__file__).parent / framework / "__init__.py").read_text("utf-8")
    assigned = [node for node in ast.parse(source).body if isinstance(node, ast.Assign)]
    return set(ast.literal_eval(assigned[-1].value))


@pytest.mark.parametrize("page", PAGES)
def test_dotted_names_exist(page):
    for name in re.findall(r"`(openrnn(?:\.[A-Za-z_]\w*)+)", prose(page)):
        if name.endswith((".h", ".cc", ".lock")):
            continue
        if name.startswith(("openrnn.torch", "openrnn.keras", "openrnn.jax")):
            _, framework, *names = name.split(".")
            assert set(names) <= names_of(framework), f"{page}: {name}"
            continue
        found = openrnn
        for part in name.split(".")[1:]:
            assert hasattr(found, part), f"{page}: {name}"
            found = getattr(found, part)


def look_up(name, page):
    if (page, name) in CALLED:
        return CALLED[page, name]
    spaces = (openrnn.cudnn_rnn.ops, *SPACES) if page == OP_PAGE else SPACES
    for space in spaces:
        found = space
        for part in name.split("."):
            found = getattr(found, part, None)
        if callable(found):
            return found
    return None


def documented(page):
    """(name, callable, parsed arguments) of each signature with arguments in the prose."""
    for names, arguments in SIGNATURE.findall(prose(page)):
        arguments = re.sub(r",?\s*\.\.\.", "", " ".join(arguments.split()))
        try:
            parsed = ast.parse(f"def f({arguments}): pass").body[0].args
        except SyntaxError:
            continue
        every = [name.strip() for name in names.split("|")]
        family = re.match(r"CudnnParamsFormatConverter", every[0])
        for name in every:
            if family and not name.startswith(family[0]):
                name = family[0] + name
            found = look_up(name, page)
            if (page, name) == (OP_PAGE, "model") and "input_c" not in arguments:
                found = openrnn.cudnn_rnn.ops.CudnnGRU.__call__
            if found is not None:
                yield name, found, parsed


def parameters(found):
    try:
        given = list(inspect.signature(found).parameters.values())
    except ValueError:  # of a compiled function
        return None
    return given[1:] if given and given[0].name == "self" else given


def check(name, real, parsed):
    """Documented arguments are the first ones, or keywords, under those names and defaults."""
    real = {one.name: one for one in real}
    positional = [one.name for one in real.values() if one.kind is one.POSITIONAL_OR_KEYWORD]
    written = [one.arg for one in parsed.args]
    keywords = [one.arg for one in parsed.kwonlyargs]
    if "num_proj" in written and "num_proj" not in real:  # of lstm alone
        written.remove("num_proj")
    assert written == positional[: len(written)], name
    defaults = dict(zip([one.arg for one in parsed.args][-len(parsed.defaults):],
                        parsed.defaults)) if parsed.defaults else {}
    defaults |= dict(zip(keywords, parsed.kw_defaults))
    for key, value in defaults.items():
        if key in written or key in keywords:
            assert real[key].default == ast.literal_eval(value), f"{name}: {key}"
    for key in [one for one in written if one not in defaults]:
        assert real[key].default is inspect.Parameter.empty, f"{name}: {key}"
    for key in keywords:
        assert real[key].kind is inspect.Parameter.KEYWORD_ONLY, f"{name}: {key}"


def test_signatures():
    checked = []
    for page in PAGES:
        for name, found, parsed in documented(page):
            real = parameters(found)
            # Without a default a function may be shown as it is called.
            if real is not None and (name[0].isupper() or parsed.defaults or parsed.kw_defaults):
                check(name, real, parsed)
                checked.append(name)
    classes = {"CudnnLSTMSaveable", "CudnnParamsFormatConverterGRU", "CudnnCompatibleGRUCell",
               "MultiRNNCell", "AdamOptimizer", "nn.dynamic_rnn", "CudnnLSTM", "layer", "model"}
    assert classes <= set(checked)


def test_a_wrong_signature_is_found():
    for text in ("rate", "learning_rate=0.5", "learning_rate, beta1"):
        parsed = ast.parse(f"def f({text}): pass").body[0].args
        with pytest.raises(AssertionError):
            check("AdamOptimizer", parameters(openrnn.train.AdamOptimizer), parsed)
