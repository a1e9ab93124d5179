"""Mutations of the C++ sources: libclang finds the places, each with the edits that put a switch there.

Left out are macros, constants of the compiler, the kernels of each instruction set and what the GPU kernels share
with them: those are held by hashes of their results.
"""
import json
import multiprocessing
import os
import pathlib
import re
import shlex

import clang.cindex as clang
import places

Kind, Type = clang.CursorKind, clang.TypeKind
LEFT_OUT = re.compile(r"/kernels/|src/base/(power|log_series|counter)\.h")
NUMBERS = {Type.BOOL, Type.CHAR_S, Type.SCHAR, Type.CHAR_U, Type.UCHAR, Type.SHORT, Type.USHORT, Type.INT, Type.UINT,
           Type.LONG, Type.ULONG, Type.LONGLONG, Type.ULONGLONG, Type.FLOAT, Type.DOUBLE, Type.LONGDOUBLE}
OPERATORS = {b"<": "less", b"<=": "less_equal", b">": "greater", b">=": "greater_equal",
             b"+": "plus", b"-": "minus", b"*": "times"}
CONSTANT = (Kind.ENUM_CONSTANT_DECL, Kind.STATIC_ASSERT, Kind.CASE_STMT, Kind.TEMPLATE_NON_TYPE_PARAMETER)
BODIES = (Kind.COMPOUND_STMT, Kind.IF_STMT, Kind.FOR_STMT, Kind.WHILE_STMT, Kind.CXX_FOR_RANGE_STMT)
STATEMENTS = (Kind.CALL_EXPR, Kind.COMPOUND_ASSIGNMENT_OPERATOR, Kind.UNARY_OPERATOR, Kind.BREAK_STMT,
              Kind.CONTINUE_STMT, Kind.UNEXPOSED_EXPR, Kind.BINARY_OPERATOR)
ON = "::openrnn_mutation::on(@)"
done = set()  # headers that this process has been through


def ours(path):
    below = os.path.relpath(path, places.ROOT)
    return below.startswith(("src/", "include/")) and not LEFT_OUT.search(path)


def span(cursor):
    return cursor.extent.start.offset, cursor.extent.end.offset


class Source:
    """One file: its bytes, the spans of its macros, and the mutations found so far by (begin, end, kind)."""

    def __init__(self, path, macros):
        self.bytes, self.macros, self.found = pathlib.Path(path).read_bytes(), macros, {}

    def text(self, begin, end):
        return " ".join(self.bytes[begin:end].decode(errors="replace").split())[:120]

    def add(self, kind, begin, end, edits, text):
        """Edits: (place, text) inserts before, (place, end, text) replaces; '@' stands for the number."""
        in_macro = any(first < end and begin < last for first, last in self.macros)
        defaulted = self.bytes[max(0, begin - 6):end].endswith(b"default")
        if begin < end and not in_macro and not defaulted:
            line = self.bytes.count(b"\n", 0, begin) + 1
            self.found[begin, end, kind] = {"kind": kind, "begin": begin, "end": end, "line": line,
                                            "edits": edits, "text": text}

    def around(self, kind, begin, end, before, after, text):
        self.add(kind, begin, end, [(begin, before), (end, after)], text)


def operator_of(cursor, source):
    """(left, right, operator, its begin, its end) of a binary operator that is written out."""
    parts = list(cursor.get_children())
    if cursor.kind != Kind.BINARY_OPERATOR or len(parts) != 2:
        return None
    begin, end = span(parts[0])[1], span(parts[1])[0]
    match = re.fullmatch(rb"\s*([^\s\w]+)\s*", source.bytes[begin:end])
    return match and (*parts, match.group(1), begin + match.start(1), begin + match.end(1))


def computes(cursor):
    kind = cursor.type.get_canonical().kind
    return kind in NUMBERS or kind in (Type.POINTER, Type.ENUM)


def binary(cursor, source):
    found = operator_of(cursor, source)
    if not found:
        return
    left, right, sign, begin, end = found
    first, last = span(cursor)
    whole = source.text(first, last)
    if sign in OPERATORS and computes(left) and computes(right) and b"nullptr" not in source.bytes[first:last]:
        edits = [(first, f"::openrnn_mutation::{OPERATORS[sign]}(@, "), (begin, end, ","), (last, ")")]
        source.add("operator", first, last, edits, f"other operator than {sign.decode()}: {whole}")
    elif sign in (b"&&", b"||"):
        before = f"({ON} || (" if sign == b"&&" else f"(!{ON} && ("
        for part in (left, right):
            inner = operator_of(part, source)
            if not inner or inner[2] != sign:
                text = f"without `{source.text(*span(part))}` of {whole}"
                source.around("part", *span(part), before, "))", text)


def condition(cursor, source):
    begin = span(cursor)[0]
    parts = [p for p in cursor.get_children() if p.kind not in (Kind.DECL_STMT, Kind.VAR_DECL)]
    if not re.match(rb"if\s*\(", source.bytes[begin:begin + 20]) or not parts:
        return
    first, last = span(parts[0])
    if source.bytes[last:last + 3].lstrip()[:1] == b")":
        source.around("never", first, last, f"(!{ON} && bool(", "))", f"never if ({source.text(first, last)})")


def truth(kind, cursor, source, text):
    source.around(kind, *span(cursor), f"({ON} != bool(", "))", text)


def number(cursor, source, parents):
    begin, end = span(cursor)
    literal = source.bytes[begin:end].decode()
    intrinsic = any(p.kind == Kind.CALL_EXPR and (p.spelling or "").startswith("_") for p in parents[-3:])
    follows = source.bytes[end:end + 1]
    if cursor.type.get_canonical().kind not in NUMBERS or intrinsic or follows.isalnum() or follows == b"_":
        return
    if re.fullmatch(r"[0-9][0-9a-zA-Z'.+\-]*", literal):
        around = source.text(max(0, begin - 50), end + 30)
        source.around("number", begin, end, f"({ON} ? ({literal} + 1) : ", ")", f"{literal} + 1 in {around}")


def statement(cursor, parent, source):
    begin, end = span(cursor)
    semicolon = re.match(rb"\s*;", source.bytes[end:end + 200])
    before = source.bytes[max(0, begin - 200):begin].rstrip()
    in_block = parent.kind == Kind.COMPOUND_STMT
    starts = before.endswith((b"{", b"}", b";", b":", b"else") if in_block else (b")", b"else"))
    if semicolon and starts and not source.bytes[begin:end].startswith((b"throw", b"delete", b"(void)")):
        last = end + semicolon.end()
        source.around("without", begin, last, f"{{ if (!{ON}) ", " }", "without " + source.text(begin, end))


def is_constexpr(cursor, source):
    """A variable that the compiler computes: a switch there would never be asked."""
    begin = span(cursor)[0]
    return cursor.kind == Kind.VAR_DECL and b"constexpr " in source.bytes[begin:begin + 60].split(b"=")[0]


def look_at(cursor, parent, parents, source):
    kind = cursor.kind
    if any(p.kind in CONSTANT or is_constexpr(p, source) for p in parents):
        return
    if kind == Kind.BINARY_OPERATOR:
        binary(cursor, source)
    elif kind == Kind.IF_STMT:
        condition(cursor, source)
    elif kind == Kind.CONDITIONAL_OPERATOR:
        parts = list(cursor.get_children())
        if parts:
            truth("swapped", parts[0], source, "swapped " + source.text(*span(cursor)))
    elif kind in (Kind.INTEGER_LITERAL, Kind.FLOATING_LITERAL):
        number(cursor, source, parents)
    elif kind == Kind.CXX_BOOL_LITERAL_EXPR and source.bytes[slice(*span(cursor))] in (b"true", b"false"):
        begin, end = span(cursor)
        around = source.text(max(0, begin - 50), end + 30)
        truth("flag", cursor, source, f"not {source.text(begin, end)} in {around}")
    elif kind == Kind.RETURN_STMT:
        value = next(cursor.get_children(), None)
        if value and value.type.get_canonical().kind == Type.BOOL and value.kind != Kind.CXX_BOOL_LITERAL_EXPR:
            truth("returned", value, source, "returned: not " + source.text(*span(value)))
    if parent.kind in BODIES and kind in STATEMENTS:
        statement(cursor, parent, source)


def walk(cursor, parents, sources):
    for child in cursor.get_children():
        file = child.extent.start.file
        source = file and sources.get(os.path.normpath(file.name))
        if source:
            look_at(child, cursor, [*parents, cursor], source)
            walk(child, [*parents, cursor], sources)


def mutations_of(job):
    """(file, mutations) of all files of a unit that were not seen before."""
    path, flags = job
    option = clang.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD
    unit = clang.Index.create().parse(path, args=flags, options=option)
    macros = {}
    for cursor in unit.cursor.get_children():
        if cursor.kind in (Kind.MACRO_INSTANTIATION, Kind.MACRO_DEFINITION, Kind.INCLUSION_DIRECTIVE) and \
                cursor.extent.start.file:
            macros.setdefault(os.path.normpath(cursor.extent.start.file.name), []).append(span(cursor))
    files = {path, *(os.path.normpath(i.include.name) for i in unit.get_includes())}
    sources = {f: Source(f, macros.get(f, [])) for f in files if ours(f) and f not in done}
    done.update(sources)
    walk(unit.cursor, [], sources)
    return [(os.path.relpath(f, places.ROOT), list(s.found.values())) for f, s in sources.items()]


def jobs():
    """(file, flags) of what the release build compiles of the library, several files of a room at a time."""
    for entry in json.loads((places.RELEASE / "compile_commands.json").read_text()):
        path = os.path.normpath(os.path.join(entry["directory"], entry["file"]))
        unity = "/Unity/" in path and f"{places.ROOT}/src/" in pathlib.Path(path).read_text()
        if unity or ours(path):
            words = shlex.split(entry["command"])
            flags = [f for last, f in zip(["", *words], words)
                     if f.startswith(("-I", "-D", "-std", "-m", "-isystem")) or last == "-isystem"]
            yield path, [*flags, "-x", "c++", "-resource-dir", resources()]


def resources():
    """The headers of the compiler that clang needs: those of the system's clang."""
    folders = sorted(pathlib.Path("/usr/lib").glob("llvm-14/lib/clang/*"))
    if not folders:
        raise SystemExit("[mutation] no clang 14, expected Debian's package clang-14 (scripts/setup check)")
    return str(folders[-1])


def find():
    """Keeps the list of mutations."""
    by_file = {}
    with multiprocessing.Pool() as pool:
        for files in pool.imap_unordered(mutations_of, list(jobs())):
            for file, found in files:
                by_file.setdefault(file, {}).update({(m["begin"], m["end"], m["kind"]): m for m in found})
    result = [{"file": f, **by_file[f][key]} for f in sorted(by_file) for key in sorted(by_file[f])]
    places.keep("cpp.json", result)
    print(f"[mutation] {len(result)} mutations in C++")
