"""Mutations of the Python package: each module is written again with switches around what may slip."""
import ast
import copy

import places

SWITCHES = "from openrnn_mutation import on as _mutation_on, minus as _mutation_minus"
SWAPPED = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}


def is_text(statement):
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def can_be_left_out(statement):
    """Is the program still one without this statement?"""
    if isinstance(statement, ast.Expr):
        return not isinstance(statement.value, (ast.Constant, ast.Yield, ast.YieldFrom))
    if isinstance(statement, ast.Assign):
        return all(isinstance(t, (ast.Attribute, ast.Subscript)) for t in statement.targets)
    return isinstance(statement, (ast.AugAssign, ast.Break, ast.Continue, ast.Delete))


class Switches(ast.NodeTransformer):
    """Puts a switch at each place of one module; `found` gets the mutations."""

    def __init__(self, file, source, found):
        self.file, self.source, self.found, self.in_function = file, source, found, False

    def text(self, node):
        return " ".join((ast.get_source_segment(self.source, node) or "").split())[:120]

    def on(self, kind, node, text):
        number = places.FIRST_PYTHON + len(self.found)
        self.found.append({"kind": kind, "file": self.file, "line": node.lineno, "text": text})
        return ast.Call(ast.Name("_mutation_on", ast.Load()), [ast.Constant(number)], [])

    def off(self, kind, node, text):
        return ast.UnaryOp(ast.Not(), self.on(kind, node, text))

    def statements(self, block):
        result = []
        for statement in block:
            if is_text(statement):
                result.append(statement)
                continue
            switch = None
            if self.in_function and can_be_left_out(statement):
                switch = self.off("without", statement, "without " + self.text(statement))
            changed = self.visit(statement)
            result.append(ast.If(switch, [changed], []) if switch else changed)
        return result

    def blocks(self, node):
        for name in ("body", "orelse", "finalbody"):
            if getattr(node, name, None):
                setattr(node, name, self.statements(getattr(node, name)))
        for part in [*getattr(node, "handlers", []), *getattr(node, "cases", [])]:
            part.body = self.statements(part.body)
        return node

    def visit_Module(self, node):
        self.blocks(node)
        first = 0
        while first < len(node.body) and (is_text(node.body[first]) or
                                          getattr(node.body[first], "module", "") == "__future__"):
            first += 1
        node.body[first:first] = ast.parse(SWITCHES).body
        return node

    def visit_ClassDef(self, node):
        outer, self.in_function = self.in_function, False
        self.blocks(node)
        self.in_function = outer
        return node

    def visit_FunctionDef(self, node):
        node.args.defaults = [self.visit(value) for value in node.args.defaults]
        node.args.kw_defaults = [value and self.visit(value) for value in node.args.kw_defaults]
        outer, self.in_function = self.in_function, True
        self.blocks(node)
        self.in_function = outer
        return node

    def visit_If(self, node):
        switch = self.off("never", node.test, "never if " + self.text(node.test))
        node.test = ast.BoolOp(ast.And(), [switch, self.visit(node.test)])
        return self.blocks(node)

    def visit_For(self, node):
        node.iter = self.visit(node.iter)
        return self.blocks(node)

    def visit_While(self, node):
        node.test = self.visit(node.test)
        return self.blocks(node)

    def visit_With(self, node):
        node.items = [self.visit(item) for item in node.items]
        return self.blocks(node)

    visit_Try = visit_Match = blocks

    def visit_AnnAssign(self, node):
        node.value = node.value and self.visit(node.value)
        return node

    def visit_JoinedStr(self, node):
        return node

    def visit_IfExp(self, node):
        switch = self.on("swapped", node, "swapped " + self.text(node))
        self.generic_visit(node)
        truth = ast.Call(ast.Name("bool", ast.Load()), [node.test], [])
        node.test = ast.Compare(switch, [ast.IsNot()], [truth])
        return node

    def visit_BoolOp(self, node):
        whole, values = self.text(node), []
        for value in node.values:
            text = f"without `{self.text(value)}` of {whole}"
            if isinstance(node.op, ast.And):
                values.append(ast.BoolOp(ast.Or(), [self.on("part", value, text), self.visit(value)]))
            else:
                values.append(ast.BoolOp(ast.And(), [self.off("part", value, text), self.visit(value)]))
        node.values = values
        return node

    def visit_Compare(self, node):
        if len(node.ops) != 1 or type(node.ops[0]) not in SWAPPED:
            return self.generic_visit(node)
        switch = self.on("bound", node, "other bound: " + self.text(node))
        other = copy.deepcopy(node)
        other.ops = [SWAPPED[type(node.ops[0])]()]
        return ast.IfExp(switch, other, self.generic_visit(node))

    def visit_Constant(self, node):
        if node.value is True or node.value is False:
            return ast.IfExp(self.on("flag", node, f"not {node.value}"), ast.Constant(not node.value), node)
        if isinstance(node.value, (int, float)):
            more = ast.Constant(node.value + 1)
            return ast.IfExp(self.on("number", node, f"{node.value} + 1"), more, node)
        return node

    def visit_UnaryOp(self, node):
        negative = isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant)
        return node if negative else self.generic_visit(node)

    def visit_BinOp(self, node):
        if not isinstance(node.op, ast.Sub):
            return self.generic_visit(node)
        number = self.on("sign", node, "plus for minus: " + self.text(node)).args[0]
        call = ast.Name("_mutation_minus", ast.Load())
        return ast.Call(call, [number, self.visit(node.left), self.visit(node.right)], [])


def write():
    """Writes the package's modules into SITE with their switches, and the list of mutations."""
    found = []
    for path in sorted((places.ROOT / "python" / "openrnn").rglob("*.py")):
        below = path.relative_to(places.ROOT / "python")
        source = path.read_text()
        tree = Switches(f"python/{below}", source, found).visit(ast.parse(source))
        (places.SITE / below).write_text(ast.unparse(ast.fix_missing_locations(tree)) + "\n")
    places.keep("python.json", found)
    print(f"[mutation] {len(found)} mutations in Python")
