# SPDX-License-Identifier: MIT
"""The grammar of `trace`, for the tracer function and for function_graph, line by line."""

import re

TRACE_LINE = re.compile(
    r"\s*(?P<comm>.+)-(?P<pid>\d+)\s+\[(?P<cpu>\d{3})\] (?P<flags>\S{5})\s+"
    r"(?P<seconds>\d+)\.(?P<micros>\d{6}): (?P<callee>\S+) <-(?P<caller>\S+)$")


def function_events(lines: list[str]) -> list[dict[str, str]]:
    """The function events of a trace file's text. Any other line, other than a
    header's, is an error."""
    events = []
    for line in lines:
        if line.startswith("#") or not line.strip():
            continue
        match = TRACE_LINE.match(line)
        assert match, f"not a trace line: {line!r}"
        events.append(match.groupdict())
    return events


GRAPH_LINE = re.compile(
    r" +(?P<cpu>\d+)\) (?: {14}|(?P<mark>[ +!#*@$]) (?P<us>\d+(?:\.\d{1,3})?) us "
    r"(?P<pad> *))\|  (?P<indent>(?:  )*)(?:"
    r"(?P<name>[\w.]+)\(\)(?P<how> \{|;)|"
    r"(?P<end>\})(?: /\* (?P<ended>[\w.]+) \*/)?|"
    r"/\* (?P<comment>.*) \*/)$")
GRAPH_SWITCH = re.compile(r" +(\d+)\) +\S.*?-(\d+) +=> +\S.*?-(\d+) +$")
# Where an interrupt begins and ends: around the lines of irq_event(), and nowhere else.
GRAPH_IRQ = re.compile(r" +(\d+)\)   (==========>|<==========) \|$")
GRAPH_RULE = " " + 42 * "-"
# A duration of more microseconds than this has that mark.
GRAPH_MARKS = [("$", 10**6), ("@", 10**5), ("*", 10**4), ("#", 1000),
               ("!", 100), ("+", 10), (" ", -1)]


def graph_events(lines: list[str]) -> list[dict[str, str]]:
    """The lines of a trace file in function_graph's format, each with the pid of
    the task that it is of ("task"). Idle tasks, and that of a CPU which shows no
    task's name, are told apart by CPU. Any other line is an error."""
    events: list[dict[str, str]] = []
    task: dict[str, str] = {}
    marks: list[tuple[int, str, str]] = []
    lines = [x for x in lines if not x.startswith("#")]
    while lines:
        line = lines.pop(0)
        if line == GRAPH_RULE:
            switch, rule, empty = (lines.pop(0) for _ in range(3))
            match = GRAPH_SWITCH.match(switch)
            assert match and (rule, empty) == (GRAPH_RULE, ""), switch
            cpu, before, task[cpu] = match.groups()
            for e in events:
                if e["cpu"] == cpu:
                    e["task"] = e["task"] or before
            continue
        mark = GRAPH_IRQ.match(line)
        if mark:
            marks.append((len(events), mark[1], mark[2]))
            continue
        match = GRAPH_LINE.match(line)
        assert match, f"not a graph line: {line!r}"
        e = match.groupdict()
        events.append(e | {"task": task.get(e["cpu"], "")})
    graph_interrupts(events, marks)
    for e in events:
        if e["task"] in ("", "0"):
            e["task"] += f" on CPU {e['cpu']}"
    return events


def graph_interrupts(events: list[dict[str, str]], marks: list[tuple[int, str, str]]) -> None:
    """Does each mark stand directly before the call of irq_event(), or behind its return,
    and has each call its mark? marks: (events before it, CPU, the mark)."""
    begins = {at for at, _, mark in marks if mark.startswith("=")}
    ends = {at for at, _, mark in marks if mark.startswith("<")}
    assert len(begins) + len(ends) == len(marks), "a mark stands twice"
    for at, cpu, mark in marks:
        assert events[at - mark.startswith("<")]["cpu"] == cpu, (at, mark)
    assert begins == {i for i, e in enumerate(events) if e["name"] == "irq_event"}
    leaves = {i + 1 for i in begins if events[i]["how"] == ";"}
    assert leaves <= ends
    for at in ends - leaves:
        assert events[at - 1]["end"], events[at - 1]
        assert events[at - 1]["ended"] in (None, "irq_event"), events[at - 1]


def graph_nesting(events: list[dict[str, str]], whole: bool) -> None:
    """Is every line where it belongs, task by task? whole: nothing was lost, so
    that all begins at the left, and every brace closes one that is there, else
    from where the last CPU's ring begins, for tasks may have come from there."""
    stacks: dict[str, list[str | None]] = {}
    if not whole:
        seen = [e["cpu"] for e in events]
        events = events[max(map(seen.index, set(seen)), default=0):]
    for e in events:
        depth = len(e["indent"]) // 2
        if e["comment"]:
            continue
        # Outer functions were called before the trace begins.
        stack = stacks.setdefault(
            e["task"], [] if whole else [None] * (depth + bool(e["end"])))
        assert depth == len(stack) - bool(e["end"]), (e, stack)
        if e["us"]:
            value = float(e["us"])
            assert len(e["us"] + e["pad"]) >= 8 and len(e["us"]) <= 8 + (
                value >= 10**8), e
            assert e["mark"] == next(
                m for m, over in GRAPH_MARKS
                if value > over or (value == over and m == e["mark"])), e
        if e["end"]:
            name = stack.pop()
            assert name or not whole, e
            assert e["ended"] in (None, name) or not name, (e, name)
        elif e["how"] == " {":
            stack.append(e["name"])
