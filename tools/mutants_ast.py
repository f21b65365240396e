"""What could be changed in a source: small faults of the kind that people make, found in clang's AST (Debian's python3-clang-19).

A Change knows two texts: what a careless hand would have written (`before`, `after`), and the edits that put it behind a switch
(`mutants::on(ID) ? after : before`), so that all changes of a build stand in one binary. Only places are taken where both texts mean the same
kind of thing; what does not compile nevertheless, tools/mutants drops."""
import bisect
import os
import re
from dataclasses import dataclass, field

import clang.cindex as ci
from clang.cindex import CursorKind as K

FLAGS = ("-std=c++23 -Isrc -Isdk/include -I. -include cmake/pch.h -DFMT_SHARED -DBERTH_WITH_CRI=1 -DBERTH_WITH_NFTABLES=1 -Wno-everything").split()

# How often a kind is drawn, against the others: mistakes of state and of conditions are the ones that recorded answers do not hold.
WEIGHTS = {"dropped": 3.0, "conjunct": 3.0, "always": 2.0, "never": 2.0, "negated": 1.0, "boundary": 2.0, "turned": 1.5, "swapped": 1.5,
           "constant": 0.7, "arithmetic": 1.0, "bool": 1.0, "extreme": 1.5}
BOUNDARY = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
TURNED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
OTHER_WORDS = {"min": "max", "max": "min", "lower_bound": "upper_bound", "upper_bound": "lower_bound"}
# What changes nothing but speed, or what is told to people in a log.
DULL = re.compile(r"^\s*(log::|[\w.>-]*(reserve|shrink_to_fit)\(|[A-Z][A-Z_]{3,}\()|co_await|co_return")
LOOPS = {K.FOR_STMT, K.WHILE_STMT, K.DO_STMT, K.CXX_FOR_RANGE_STMT}
UNEVALUATED = {K.STATIC_ASSERT, K.CXX_UNARY_EXPR, K.ENUM_DECL, K.TYPE_ALIAS_DECL, K.TYPEDEF_DECL}
FUNCTIONS = {K.FUNCTION_DECL, K.CXX_METHOD, K.CONSTRUCTOR, K.DESTRUCTOR, K.FUNCTION_TEMPLATE, K.CONVERSION_FUNCTION}


@dataclass
class Change:
    file: str
    function: str
    kind: str
    start: int  # The bytes that `before` holds.
    end: int
    before: str
    after: str
    edits: list = field(default_factory=list)  # (start, end, text with {id})
    once: bool = False  # Of what a process does once, for all tests behind: the value of a function's static.

    def key(self):
        short = [" ".join(text.split())[:140] for text in (self.before, self.after)]
        return f"{self.file} {self.function}: {short[0]} => {short[1]}"

    def span(self):
        return min(edit[0] for edit in self.edits), max(edit[1] for edit in self.edits)


class Source:
    """One file's bytes. clang counts bytes, so everything here does."""

    def __init__(self, path, shown):
        with open(path, "rb") as file:
            self.bytes = file.read()
        self.name = shown
        self.lines = [0] + [match.end() for match in re.finditer(rb"\n", self.bytes)]
        self.untold = [self.behind_comma(match.end()) for match in re.finditer(rb"\bBERTH_CHECK\(", self.bytes)]

    def behind_comma(self, at):
        """From the first comma of a call's arguments, which begin at `at`, to their end: what a check would say of what never is."""
        depth, comma, is_text = 1, None, False
        while at < len(self.bytes) and depth > 0:
            char = self.bytes[at:at + 1]
            if char == b"\\":
                at += 1
            elif char == b'"':
                is_text = not is_text
            elif not is_text and char in b"([{":
                depth += 1
            elif not is_text and char in b")]}":
                depth -= 1
            elif not is_text and char == b"," and depth == 1 and comma is None:
                comma = at
            at += 1
        return (at if comma is None else comma, at)

    def text(self, start, end):
        return self.bytes[start:end].decode("utf-8", "replace")

    def line(self, offset):
        return bisect.bisect_right(self.lines, offset)

    def after(self, offset):
        """The first character behind offset that is no space."""
        match = re.compile(rb"\s*(.)", re.S).match(self.bytes, offset)
        return match.group(1).decode("latin1") if match else ""

    def ahead(self, offset):
        text = self.bytes[max(0, offset - 200):offset].rstrip()
        return text[-1:].decode("latin1")


def span(cursor):
    extent = cursor.extent
    return extent.start.offset, extent.end.offset


def plain(kind_type):
    """A type without const and reference, or "" where it says too little to be the same type."""
    spelling = kind_type.get_canonical().spelling
    return re.sub(r"\bconst\b|&", "", spelling).replace("  ", " ").strip()


ARITHMETIC = re.compile(r"^(unsigned |signed )?(char|short|int|long|long long|unsigned|float|double|std::chrono::duration<.*>)( int)?$")


class Finder:
    def __init__(self, source):
        self.source = source
        self.changes = []
        self.function = ""
        self.loops = 0  # Of the innermost function: `break` and `continue` belong to a loop, not to a switch.
        self.once = False

    def add(self, kind, start, end, after, edits):
        before = self.source.text(start, end)
        is_told = all(end <= first or last <= start for first, last in self.source.untold)
        if before.strip() != after.strip() and is_told:
            self.changes.append(Change(self.source.name, self.function, kind, start, end, before, after, edits, self.once))

    def replace(self, kind, start, end, after):
        """The text of an expression for another of the same type."""
        before = self.source.text(start, end)
        self.add(kind, start, end, after, [(start, end, "(mutants::on({id}) ? (" + escape(after) + ") : (" + escape(before) + "))")])

    def children(self, cursor):
        return [child for child in cursor.get_children()]

    def visit(self, cursor):
        kind = cursor.kind
        if kind in UNEVALUATED or kind.is_attribute():
            return
        start, end = span(cursor)
        outer_function, outer_loops, outer_once = self.function, self.loops, self.once
        if kind == K.VAR_DECL and cursor.storage_class == ci.StorageClass.STATIC:
            self.once = True
        if kind in FUNCTIONS:
            self.function, self.loops = self.name_of(cursor), 0
            if "consteval" in self.source.text(start, start + 40):
                return
        elif kind == K.LAMBDA_EXPR:
            self.loops = 0
        elif kind in LOOPS:
            self.loops += 1
        elif kind == K.SWITCH_STMT:
            self.loops = 0
        children = self.children(cursor)
        if kind == K.CASE_STMT:
            children = children[1:]
        if kind == K.VAR_DECL and re.match(r"[^=({]*\bconstexpr\b", self.source.text(start, end)):
            self.constant_declaration(cursor, start, end)
            children = []
        self.look_at(cursor, kind, start, end, children)
        for child in children:
            self.visit(child)
        self.function, self.loops, self.once = outer_function, outer_loops, outer_once

    def name_of(self, cursor):
        parent = cursor.semantic_parent
        owner = parent.spelling if parent is not None and parent.kind in (K.STRUCT_DECL, K.CLASS_DECL, K.CLASS_TEMPLATE) else ""
        return (owner + "::" if owner and not owner.startswith("(") else "") + cursor.spelling.split("<")[0]

    def look_at(self, cursor, kind, start, end, children):
        if kind == K.COMPOUND_STMT:
            for child in children:
                self.statement(child)
        elif kind == K.IF_STMT:
            self.condition(cursor, start, children)
        elif kind in LOOPS:
            if children and children[-1].kind != K.COMPOUND_STMT:
                self.statement(children[-1])
        elif kind == K.CONDITIONAL_OPERATOR and len(children) == 3:
            self.truth("negated", *span(children[0]))
        elif kind == K.RETURN_STMT and children:
            self.returned(children[0])
        elif kind == K.INTEGER_LITERAL:
            self.number(cursor, start, end)
        elif kind == K.CXX_BOOL_LITERAL_EXPR:
            text = self.source.text(start, end)
            if text in ("true", "false"):
                self.replace("bool", start, end, "false" if text == "true" else "true")
        if kind in (K.BINARY_OPERATOR, K.CALL_EXPR, K.UNEXPOSED_EXPR, K.COMPOUND_ASSIGNMENT_OPERATOR) and len(children) >= 2:
            self.operator(cursor, kind, start, end, children)
        if kind == K.CALL_EXPR:
            self.call(cursor, start, end)

    # Statements that are not there.

    def statement(self, cursor):
        kind = cursor.kind
        start, end = span(cursor)
        text = self.source.text(start, end)
        if self.source.after(end) != ";" or self.source.ahead(start) not in ("{", "}", ";", ")", ":", "e") or DULL.search(text):
            return
        is_jump = kind in (K.BREAK_STMT, K.CONTINUE_STMT) and self.loops > 0
        is_return = kind == K.RETURN_STMT and text == "return"
        is_throw = kind == K.CXX_THROW_EXPR
        if kind in (K.CALL_EXPR, K.BINARY_OPERATOR, K.COMPOUND_ASSIGNMENT_OPERATOR, K.UNARY_OPERATOR, K.UNEXPOSED_EXPR) or is_jump or is_return or is_throw:
            stop = self.source.bytes.index(b";", end)  # Taken along: behind another one there is no `else`.
            self.add("dropped", start, end, "", [(start, start, "{ if (!mutants::on({id})) { "), (stop, stop + 1, "; } }")])

    def condition(self, cursor, start, children):
        head = self.source.text(start, start + 20)
        if not re.match(r"if\s*\(", head):
            return
        bodies = 2 if len(children) > 2 and self.source.text(span(children[-2])[1], span(children[-1])[0]).strip(" ;\n") == "else" else 1
        for body in children[-bodies:]:
            if body.kind not in (K.COMPOUND_STMT, K.IF_STMT):
                self.statement(body)
        conditions = children[:-bodies]
        if not conditions:
            return
        first, last = span(conditions[-1])
        if self.source.ahead(first) not in ("(", ";") or self.source.after(last) != ")":
            return
        text = self.source.text(first, last)
        if DULL.search(text):
            return
        self.truth("negated", first, last)
        self.add("always", first, last, "true", [(first, last, "mutants::on({id}) || (" + escape(text) + ")")])
        self.add("never", first, last, "false", [(first, last, "!mutants::on({id}) && (" + escape(text) + ")")])

    def truth(self, kind, start, end):
        text = self.source.text(start, end)
        self.add(kind, start, end, f"!({text})", [(start, end, "(mutants::on({id}) != static_cast<bool>(" + escape(text) + "))")])

    def returned(self, value):
        if value.type.get_canonical().spelling == "bool":
            start, end = span(value)
            if self.source.text(start, end) not in ("true", "false") and self.source.after(end) == ";":
                self.truth("negated", start, end)

    # Values that are others.

    def number(self, cursor, start, end):
        text = self.source.text(start, end)
        if not re.fullmatch(r"\d[\d']*[uUlL]*", text):
            return
        digits = re.match(r"[\d']+", text).group(0)
        suffix = text[len(digits):]
        value = int(digits.replace("'", ""))
        for other in ([1] if value == 0 else [value + 1, value - 1]):
            self.replace("constant", start, end, f"{other}{suffix}")

    def constant_declaration(self, cursor, start, end):
        """`constexpr X kName = 5;`: a constant is no expression that a switch could stand in, so it becomes a const in the instrumented copy."""
        text = self.source.text(start, end)
        match = re.match(r"((?:static |inline )*)constexpr ([^=({]*?\b\w+ = (?:[\w:]+[({])?)(\d[\d']*)(?![\d.xX'])", text)
        if not match or self.source.after(end) != ";" or "[" in match.group(2):
            return
        digits = match.group(3)
        value = int(digits.replace("'", ""))
        at = start + match.start(3)
        of_const = text.index("constexpr") + start
        self.add("constant", at, at + len(digits), str(value + 1),
                 [(of_const, of_const + len("constexpr"), "const"), (at, at + len(digits), "(mutants::on({id}) ? " + f"{value + 1} : {digits})")])

    def operator(self, cursor, kind, start, end, children):
        spans = sorted({span(child) for child in children})
        spans = [one for one in spans if one[0] >= start and one[1] <= end and one[1] > one[0]]
        words = [one for one in spans if not re.fullmatch(r"operator.*|[<>=!+*/&|-]{1,3}", self.source.text(*one))]
        if len(words) < 2:
            return
        left, right = words[0], words[-1]
        between = self.source.text(left[1], right[0])
        op = between.strip()
        if left[0] != start or right[1] != end or left[1] > right[0]:
            return
        whole = lambda new: self.source.text(start, left[1]) + between.replace(op, new) + self.source.text(right[0], end)
        if op in TURNED:
            self.replace("turned", start, end, whole(TURNED[op]))
            if op in BOUNDARY:
                self.replace("boundary", start, end, whole(BOUNDARY[op]))
        elif op in ("&&", "||") and kind == K.BINARY_OPERATOR:
            for drop, keep in ((left, right), (right, left)):
                text = self.source.text(*drop)
                switch = "(mutants::on({id}) || (" if op == "&&" else "(!mutants::on({id}) && ("
                self.add("conjunct", start, end, self.source.text(*keep), [(drop[0], drop[1], switch + escape(text) + "))")])
        elif op in ("+", "-") and kind == K.BINARY_OPERATOR and ARITHMETIC.match(plain(cursor.type)):
            self.replace("arithmetic", start, end, whole("-" if op == "+" else "+"))
        elif op in ("+=", "-=") and kind == K.COMPOUND_ASSIGNMENT_OPERATOR and ARITHMETIC.match(plain(cursor.type)):
            self.replace("arithmetic", start, end, whole("-=" if op == "+=" else "+="))

    def call(self, cursor, start, end):
        text = self.source.text(start, end)
        if DULL.search(text):
            return
        match = re.match(r"((?:std::(?:ranges::)?)?|[\w.>-]+[.>])(min|max|lower_bound|upper_bound)\(", text)
        if match and match.group(1):
            at = match.start(2)
            self.replace("extreme", start, end, text[:at] + OTHER_WORDS[match.group(2)] + text[match.end(2):])
        if cursor.spelling in ("min", "max") or cursor.spelling.startswith("operator"):
            return
        arguments = [argument for argument in cursor.get_arguments() if argument is not None]
        for one, two in zip(arguments, arguments[1:]):
            first, second = span(one), span(two)
            texts = self.source.text(*first), self.source.text(*second)
            if not (start < first[0] < first[1] < second[0] < second[1] < end) or self.source.text(first[1], second[0]).strip() != ",":
                continue
            kinds = plain(one.type), plain(two.type)
            if kinds[0] != kinds[1] or not kinds[0] or "dependent" in kinds[0] or "(lambda" in kinds[0] or texts[0] == texts[1] or "{" in texts[0] + texts[1]:
                continue
            swap = lambda mine, other: "(mutants::on({id}) ? " + escape(other) + " : " + escape(mine) + ")"
            self.add("swapped", first[0], second[1], texts[1] + ", " + texts[0],
                     [(*first, swap(*texts)), (*second, swap(texts[1], texts[0]))])


def escape(text):
    """Braces of the text survive str.format, which puts in the number."""
    return text.replace("{", "\0").replace("}", "\1")


def fill(text, number):
    return text.replace("{id}", str(number)).replace("\0", "{").replace("\1", "}")


def parse(paths, replaced=None):
    """One translation unit of sources of one folder, with other texts for some of them (path to text)."""
    unsaved = [("mutants_unit.cpp", "".join(f'#include "{os.path.abspath(path)}"\n' for path in paths))]
    unsaved += [(os.path.abspath(path), text) for path, text in (replaced or {}).items()]
    return ci.Index.create().parse("mutants_unit.cpp", args=FLAGS, unsaved_files=unsaved)


def errors(unit):
    """(path, line) of what does not compile."""
    return [(os.path.relpath(one.location.file.name), one.location.line, one.spelling) for one in unit.diagnostics
            if one.severity >= ci.Diagnostic.Error and one.location.file]


def changes_of(paths):
    """All changes of sources of one folder, by path, and the paths that clang cannot read."""
    unit = parse(paths)
    unread = {path for path, _, _ in errors(unit)}
    finders = {os.path.abspath(path): Finder(Source(path, path)) for path in paths}

    def top(cursor):
        for child in cursor.get_children():
            file = child.location.file
            finder = finders.get(os.path.abspath(file.name)) if file else None
            if finder is None:
                continue
            if child.kind in (K.NAMESPACE, K.LINKAGE_SPEC, K.UNEXPOSED_DECL):
                top(child)
            else:
                finder.visit(child)

    top(unit.cursor)
    return {os.path.relpath(path): finder.changes for path, finder in finders.items()}, unread
