"""The reference of the Python package as one page: every public name with signature and docstring.

Usage: python_reference.py PACKAGE OUT.html, where PACKAGE is the folder of the installed package. It
reads sources and stubs, and imports nothing. Fails when a public class or function has no docstring.
"""
import ast
import html
import pathlib
import sys

MODULES = ("openrnn", "openrnn.cudnn_rnn", "openrnn.cudnn_rnn.ops", "openrnn.nn",
           "openrnn.nn.rnn_cell", "openrnn.layers", "openrnn.initializers", "openrnn.regularizers",
           "openrnn.losses", "openrnn.train", "openrnn.onnx", "openrnn.torch", "openrnn.keras",
           "openrnn.jax")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Package:
    """Sources by module name, each parsed once."""

    def __init__(self, folder):
        self.folder, self.trees = folder, {}

    def tree(self, module):
        if module not in self.trees:
            stem = self.folder.joinpath(*module.split(".")[1:])
            paths = (stem / "__init__.py", stem.with_suffix(".py"), stem.with_suffix(".pyi"),
                     stem / "__init__.pyi")
            path = next((path for path in paths if path.is_file()), None)
            self.trees[module] = ast.parse(path.read_text(encoding="utf-8")) if path else None
        return self.trees[module]

    def public(self, module):
        """Names in __all__; without one, what is defined there."""
        for node in self.tree(module).body:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
                return [ast.literal_eval(item) for item in node.value.elts]
        return [node.name for node in self.tree(module).body
                if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and not node.name.startswith("_")]

    def find(self, module, name):
        """The nodes that define a name (overloads: several) and their module; none for a module."""
        tree, found = self.tree(module), []
        for node in tree.body if tree else ():
            if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and node.name == name:
                found.append(node)
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if name in [getattr(target, "id", None) for target in targets]:
                    found = [node]
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("openrnn"):
                for alias in node.names:
                    if name == (alias.asname or alias.name) and node.module != module:
                        return self.find(node.module, alias.name)
        return found, module

    def base_classes(self, node, module):
        for base in node.bases:
            name = ast.unparse(base).split(".")
            where = f"openrnn.{name[0]}" if len(name) > 1 else module
            nodes, found_in = self.find(where, name[-1])
            if nodes and isinstance(nodes[0], ast.ClassDef):
                yield nodes[0], found_in

    def members(self, node, module):
        """Public functions and properties of a class, those of bases that are not public themselves
        if they have a docstring, and the names of the bases that are."""
        found, bases = {}, []
        for each in node.body:
            shown = isinstance(each, FUNCTIONS) and (
                not each.name.startswith("_") or each.name in ("__init__", "__call__"))
            if shown and not any(ast.unparse(one).endswith(".setter")
                                 for one in each.decorator_list):
                found.setdefault(each.name, each)
        for base, where in self.base_classes(node, module):
            if base.name in self.public_names():
                bases.append(base.name)
                continue
            inherited, further = self.members(base, where)
            bases += further
            for name, each in inherited.items():
                is_own = name == "__init__" and where != "openrnn._core"
                if is_own or (ast.get_docstring(each) and not name.endswith("_core")):
                    found.setdefault(name, each)
        return found, bases

    def public_names(self):
        return {name for module in MODULES for name in self.public(module)}


def signature(node):
    """`name(arguments) -> result` without self; a property has its type alone."""
    arguments = node.args
    ordered = arguments.posonlyargs or arguments.args
    if ordered and ordered[0].arg in ("self", "cls"):
        ordered.pop(0)
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    if any(ast.unparse(one) == "property" for one in node.decorator_list):
        return node.name + result.replace(" -> ", ": ")
    return f"{node.name}({ast.unparse(arguments)}){result}"


class Page:
    """Collects HTML and what has no docstring."""

    def __init__(self):
        self.parts, self.missing = [], []

    def entry(self, title, text, name, depth):
        indent = f' style="margin-left:{2 * depth}em"'
        self.parts.append(f'<div class="entry" id="{html.escape(name)}"{indent}>'
                          f"<code>{html.escape(title)}</code>"
                          f"<pre>{html.escape(text or '')}</pre></div>")

    def add(self, package, module, name):
        nodes, where = package.find(module, name)
        full = f"{module}.{name}"
        for node in nodes:
            text = ast.get_docstring(node) if hasattr(node, "body") else ""
            if text is None:
                self.missing.append(full)
            if isinstance(node, ast.ClassDef):
                members, bases = package.members(node, where)
                also = f"({', '.join(bases)})" if bases else ""
                self.entry(f"class {name}{also}", text, full, 0)
                for member, each in members.items():
                    self.entry(signature(each), ast.get_docstring(each), f"{full}.{member}", 1)
            elif isinstance(node, FUNCTIONS):
                self.entry(signature(node), text, full, 0)
            else:
                self.entry(ast.unparse(node), text, full, 0)

    def html(self):
        style = ("body{font-family:sans-serif;max-width:60em;margin:2em auto}"
                 "pre{margin:.2em 0 1em 2em;white-space:pre-wrap}code{font-weight:bold}")
        return ("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">"
                f"<title>openrnn</title><style>{style}</style></head><body>\n"
                + "\n".join(self.parts) + "\n</body></html>\n")


def main():
    package, page = Package(pathlib.Path(sys.argv[1])), Page()
    for module in MODULES:
        text = ast.get_docstring(package.tree(module))
        page.parts.append(f"<h2>{module}</h2><p>{html.escape(text or '')}</p>")
        for name in package.public(module):
            page.add(package, module, name)
    pathlib.Path(sys.argv[2]).write_text(page.html(), encoding="utf-8")
    print(f"[docs] {len(page.parts)} entries")
    for name in page.missing:
        print(f"{name} has no docstring", file=sys.stderr)
    return 1 if page.missing else 0


if __name__ == "__main__":
    sys.exit(main())
