# SPDX-License-Identifier: MIT
"""Mistakes by rule in C and in assembly, for tools/mutate: no list of places, only of
kinds. A mutant replaces a few bytes of one file and keeps the number of its lines."""

import dataclasses
import difflib
import fnmatch
import re
from pathlib import Path

# Comments, strings, characters: nothing in them is code.
HIDDEN = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'", re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.M)
FUNCTION = re.compile(r"^(?![\s#}])[^;{}\n=]*?(?:\n[^;{}\n=]*?)?\b(\w+)\([^;{}]*\)[^;{}]*\n\{\n"
                      r"(.*?)^\}", re.M | re.S)
DEFINE = re.compile(r"^#define[ \t]+(\w+)(\([^)\n]*\))?[ \t]+((?:[^\n\\]|\\.|\\\n)+)", re.M)
CONTROL = re.compile(r"\s*(?:\b(else|do)\b|\b(if|while|for|switch)\s*(?=\()|(\w+\s*:)(?!:)|"
                     r"(case\b[^:;]*:))")
DECLARATION = re.compile(r"return\b|(?!goto\b)(?:\w+\s+)+\**\w+\s*(?:=|,|\[|$)|"
                         r"\w+\s*\*+\s*\w+\s*(?:=|,|$)")
NUMBER = re.compile(r"(?<![\w.])(0x[0-9a-fA-F]+|0|[1-9]\d*)([uUlL]*)(?![\w.])")
# An operator, and the one that a tired hand writes instead.
OPERATORS = dict(pair.split() for pair in (
    "< <=", "<= <", "> >=", ">= >", "== !=", "!= ==", "&& ||", "|| &&", "+ -", "- +", "| &",
    "& |", "<< >>", ">> <<", "+= -=", "-= +=", "|= &=", "&= |="))
OPERATOR = re.compile(r"(?<=[\w)\]] )(<<|>>|<=|>=|==|!=|&&|\|\||[-+|&]=?|<|>)(?= [\w(&*!~-])")
WEAKER = re.compile(r"__ATOMIC_(?:ACQUIRE|RELEASE|ACQ_REL|SEQ_CST)\b")
NARROWER = {"u64": "u32", "u32": "u16", "u16": "u8", "unsigned long": "u32", "write64": "write32",
            "read64": "read32", "write32": "write16", "read32": "read16"}
WIDTH = re.compile(r"(?<=\()(?:u64|u32|u16|unsigned long)(?=\)[\w(])|"
                   r"(?<=_)(?:write|read)(?:64|32)(?=\()")
CALL = re.compile(r"\b(?!(?:if|while|for|switch|return|sizeof|asm|volatile)\b)\w+\(")
CONDITION = re.compile(r"\b(if|while|for)\s*\(")
ASM = re.compile(r"\basm\b[^(;]*\(")
# What begins, and what ends it, in the names of functions.
PAIRS = [("lock", "unlock"), ("disable", "enable"), ("acquire", "release"), ("begin", "end"),
         ("save", "restore"), ("open", "close")]


@dataclasses.dataclass
class Mutant:
    """One mistake: each edit is (from, to, new text) in `file`. old and new are the lines that
    differ, without blanks at their ends. verdict: none, equivalent, killed, survived."""

    file: str
    function: str
    rule: str
    edits: tuple
    old: str = ""
    new: str = ""
    diff: str = ""
    verdict: str = ""
    by: str = ""
    seconds: float = 0.0
    message: str = ""

    def apply(self, text: str) -> str:
        """The file with the mistake."""
        for start, end, new in sorted(self.edits, reverse=True):
            text = text[:start] + new + "\n" * (
                text.count("\n", start, end) - new.count("\n")) + text[end:]
        return text

    def key(self) -> tuple:
        """What tells it from another, also when lines above it have moved."""
        return self.file, self.function, self.rule, self.old, self.new

    def compare(self, text: str) -> bool:
        """Fill in old and new. Is there a difference?"""
        before, after = text.split("\n"), self.apply(text).split("\n")
        differ = [(x.strip(), y.strip()) for x, y in zip(before, after) if x != y]
        self.old, self.new = ("\n".join(filter(None, side)) for side in
                              (zip(*differ) if differ else ("", "")))
        return bool(differ)

    def explain(self, text: str) -> None:
        """Fill in diff, for patch(1)."""
        self.diff = "\n".join(difflib.unified_diff(
            text.split("\n"), self.apply(text).split("\n"), f"a/{self.file}", f"b/{self.file}",
            lineterm="", n=2))


def blanks(text: str) -> str:
    """As long, with the same lines, and without a word."""
    return re.sub(r"[^\n]", " ", text)


def closing(code: str, at: int) -> int:
    """Where the bracket that opens at `at` closes."""
    depth = 0
    for i in range(at, len(code)):
        depth += (code[i] in "([{") - (code[i] in ")]}")
        if not depth:
            return i
    return len(code)


def pieces(code: str, start: int, end: int, separator: str) -> list[tuple[int, int]]:
    """The parts between separators that stand in no bracket, blanks around them left out."""
    found, depth, first = [], 0, start
    for i in range(start, end + 1):
        if i == end or depth == 0 and code[i] == separator:
            part = code[first:i]
            found.append((first + len(part) - len(part.lstrip()),
                          first + len(part.rstrip())))
            first = i + 1
        else:
            depth += (code[i] in "([{") - (code[i] in ")]}")
    return [(a, b) for a, b in found if a < b]


def statements(code: str, start: int, end: int) -> list[tuple[int, int]]:
    """Simple statements with their semicolon, in the order of the text. What controls them (if,
    a label) is no part of them."""
    found, at, depth = [], start, 0
    for i in range(start, end):
        depth += (code[i] in "([") - (code[i] in ")]")
        if depth == 0 and code[i] in ";{}":
            while (match := CONTROL.match(code, at, i)) and match.end() <= i:
                at = closing(code, match.end()) + 1 if match[2] else match.end()
            at += len(code[at:i]) - len(code[at:i].lstrip())
            if code[i] == ";" and at < i:
                found.append((at, i + 1))
            at = i + 1
    return found


def numbers(code: str, start: int, end: int):
    """Each number, one more and one less."""
    for match in NUMBER.finditer(code, start, end):
        for other in (int(match[1], 0) + 1, int(match[1], 0) - 1):
            if other >= 0:
                text = hex(other) if "x" in match[1] else str(other)
                yield "constant", ((*match.span(), text + match[2]),)


def expressions(code: str, start: int, end: int):
    """What may be wrong in any expression."""
    yield from numbers(code, start, end)
    for match in OPERATOR.finditer(code, start, end):
        yield "operator", ((*match.span(1), OPERATORS[match[1]]),)
    for match in WEAKER.finditer(code, start, end):
        yield "barrier", ((*match.span(), "__ATOMIC_RELAXED"),)
    for match in WIDTH.finditer(code, start, end):
        yield "width", ((*match.span(), NARROWER[match[0]]),)
    for match in CALL.finditer(code, start, end):
        args = pieces(code, match.end(), closing(code, match.end() - 1), ",")
        for (a, b), (c, d) in zip(args, args[1:]):
            if code[a:b] != code[c:d] and "__ATOMIC" not in code[a:d]:
                yield "argument", ((a, b, code[c:d]),)
                yield "argument", ((c, d, code[a:b]),)


def conditions(code: str, start: int, end: int):
    """if, while, the middle of for: negated, always, never."""
    for match in CONDITION.finditer(code, start, end):
        a, b = match.end(), closing(code, match.end() - 1)
        if match[1] == "for":
            a, b = (pieces(code, a, b, ";")[1:2] or [(a, a)])[0]
        yield "negated", ((a, b, f"!({code[a:b]})"),)
        yield "never", ((a, b, f"({code[a:b]}) && 0"),)
        if match[1] == "if":
            yield "always", ((a, b, f"({code[a:b]}) || 1"),)


def assembler(text: str, code: str, start: int, end: int):
    """An instruction left out of an asm statement."""
    for match in ASM.finditer(code, start, end):
        a, b = match.end(), closing(code, match.end() - 1)
        b = next((i for i in range(a, b) if code[i] == ":"), b)
        for string in re.finditer(r'"((?:\\.|[^"\\\n])*)"', text[a:b]):
            at = a + string.start(1)
            for part in re.finditer(r"(?:\\[nt]|;)*((?:(?!\\[nt]|;).)*)", string[1]):
                if re.search(r"[a-z]", part[1]) and not part[1].strip().endswith(":"):
                    yield "instruction", ((at + part.start(1), at + part.end(1), ""),)


def of_body(text: str, code: str, start: int, end: int, head: str):
    """Of one function."""
    simple = []
    for a, b in statements(code, start, end):
        if DECLARATION.match(code[a:b - 1]):
            simple.append(None)
        else:
            yield "deleted", ((a, b, "{}"),)
            simple.append((a, b))
    for one, two in zip(simple, simple[1:]):
        if one and two and not code[one[1]:two[0]].strip() and text[slice(*one)] != \
                text[slice(*two)] and not re.match(r"(goto|break|continue)\b", code[two[0]:]):
            yield "exchanged", ((*one, text[slice(*two)]), (*two, text[slice(*one)]))
    for i, one in enumerate(simple):
        call = re.match(r"(\w+)\((.*)\);$", code[slice(*one)], re.S) if one else None
        for begins, ends in PAIRS if call else []:
            for two in simple[i + 1:]:
                if two and begins in call[1] and ends not in call[1] and re.fullmatch(
                        re.escape(call[1]).replace(begins, ends) + r"\(.*\);",
                        code[slice(*two)], re.S):
                    yield "unpaired", ((*one, "{}"), (*two, "{}"))
                    break
    yield "early return", ((start, start, "return;" if re.search(r"\bvoid\s+\w+\(", head)
                            else "return 0;"),)
    yield from conditions(code, start, end)
    yield from expressions(code, start, end)
    yield from assembler(text, code, start, end)


def of_c(file: str, text: str):
    """All of a C file: its functions, its macros, its tables."""
    code = HIDDEN.sub(lambda match: blanks(match[0]), text)
    for match in DEFINE.finditer(code):
        for rule, edits in expressions(code, *match.span(3)):
            yield Mutant(file, match[1], rule, edits)
    code = DIRECTIVE.sub(lambda match: blanks(match[0]), code)
    rest = code
    for match in FUNCTION.finditer(code):
        head = code[match.start():match.start(2)]
        for rule, edits in of_body(text, code, *match.span(2), head):
            yield Mutant(file, match[1], rule, edits)
        rest = rest[:match.start()] + blanks(match[0]) + rest[match.end():]
    for match in re.finditer(r"\b(\w+)\[[^]]*\]\s*=\s*\{", rest):
        start, end = match.end(), closing(rest, match.end() - 1)
        rows = pieces(rest, start, end, ",")
        for one, two in zip(rows, rows[1:]):
            yield Mutant(file, match[1], "rows", ((*one, text[slice(*two)]),
                                                  (*two, text[slice(*one)])))
        for rule, edits in numbers(rest, start, end):
            yield Mutant(file, match[1], rule, edits)


INSN = re.compile(r"^((?:[\w.$\\]+:)?[ \t]+)([a-z][\w.]*)((?:[ \t]+[^\n]*?)?)[ \t]*$", re.M)
REGISTER = re.compile(r"[%$]?\b[a-z]{1,3}\d{0,2}\b(?![\w(])")


def of_assembly(file: str, text: str, code_info: dict):
    """All of an assembly file. code_info: the port's data on how instructions are written."""
    code = DIRECTIVE.sub(lambda match: blanks(match[0]),
                         HIDDEN.sub(lambda match: blanks(match[0]), text))
    begins = [(m.start(), m[1] or m[2]) for m in re.finditer(
        r"(?:\w*FUNCTION|TRAMPOLINE)\((\w+)\)|^[ \t]*\.macro[ \t]+(\w+)", code, re.M)]

    def mutant(rule: str, *edits) -> Mutant:
        function = next((name for at, name in reversed(begins) if at < edits[0][0]), "")
        return Mutant(file, function, rule, edits)

    insns = [m for m in INSN.finditer(code) if "FUNCTION" not in m[0]]
    for match, following, before in zip(insns, [*insns[1:], None], ["", *(m[3] for m in insns)]):
        a, b = match.start(2), match.end(3)
        yield mutant("deleted", (a, b, ""))
        if any(fnmatch.fnmatchcase(match[2], p) for p in code_info["branches"]):
            target = match[3].split(",")[-1].strip()
            yield mutant("always", (a, b, f"{code_info['jumps'][0]} {target}"))
        if following and not code[match.end():following.start()].strip():
            c, d = following.start(2), following.end(3)
            yield mutant("exchanged", (a, b, text[c:d]), (c, d, text[a:b]))
        for rule, edits in numbers(code, *match.span(3)):
            yield mutant(rule, *edits)
        registers = list(REGISTER.finditer(code, *match.span(3)))
        for register in registers:
            for other in {r[0] for r in registers} | {*REGISTER.findall(before)[:1]}:
                yield mutant("register", (*register.span(), other))
    for match in re.finditer(r"^[ \t]*(\.cfi_(?!startproc|endproc)\w+[^\n]*)", code, re.M):
        yield mutant("deleted", (*match.span(1), ""))


def of_data(file: str, text: str):
    """Of a data file: each number that stands alone."""
    for match in re.finditer(r'"(\w+)": (\d+)(?=[,\s}\]])', text):
        for rule, edits in numbers(text, *match.span(2)):
            yield Mutant(file, match[1], rule, edits)


def of_file(root: Path, file: str, code_info: dict) -> list[Mutant]:
    """All mutants of a file, in the same order each time."""
    text = (root / file).read_text()
    found = (of_assembly(file, text, code_info) if file.endswith(".S") else
             of_data(file, text) if file.endswith(".json") else of_c(file, text))
    return sorted((m for m in {m.edits: m for m in found}.values() if m.compare(text)),
                  key=lambda m: m.edits)
