# SPDX-License-Identifier: MIT
"""Events: their formats against the debugger's idea of the records, their text against
their own print formats, their order against the kernel's rules, and their number
against an emulator that counts."""

import re
import subprocess
from collections import Counter

import pytest
from conftest import EVERY_KERNEL
from test_trace import Witness, difference, witness_plugin  # noqa: F401 (a fixture)

TRACING = "/sys/kernel/tracing"
FIELD = re.compile(r"\tfield:(?P<type>.+?) (?P<name>\w+)(?P<array>\[\d*\])?;\t"
                   r"offset:(?P<offset>\d+);\tsize:(?P<size>\d+);\tsigned:(?P<signed>[01]);")
LINE = re.compile(r"\s*(?P<comm>.+)-(?P<pid>\d+)\s+\[(?P<cpu>\d{3})\] (?P<flags>\S{5})\s+"
                  r"(?P<time>\d+\.\d{6}): (?P<event>\w+): (?P<text>.*)$")
# The texts that each conversion of a print fmt may print.
CONVERSIONS = {"d": r"-?\d+", "u": r"\d+", "x": r"[0-9a-f]+", "s": r".*?",
               "p": r"0x[0-9a-f]+|0"}

# Those that are off the patching path.
EVENTS = ["sched_switch", "sched_wakeup", "sched_migrate_task", "sched_process_fork",
          "sched_process_exit", "irq_handler_entry", "irq_handler_exit", "ipi_raise",
          "ipi_entry", "ipi_exit", "timer_start", "timer_expire_entry", "timer_expire_exit",
          "kmalloc", "kfree", "mm_page_alloc", "mm_page_free", "signal_generate"]

def read_format(g, event: str) -> tuple[str, list[dict[str, str]], str]:
    """An event's name, its own fields, and its print fmt."""
    lines = g.lines(f"cat {TRACING}/events/{event.replace(':', '/')}/format")
    assert lines[0] == f"name: {event.split(':')[1]}"
    assert re.fullmatch(r"ID: \d+", lines[1]) and lines[2] == "format:"
    fields = []
    for line in lines[3:]:
        if line.startswith("\tfield:"):
            match = FIELD.fullmatch(line)
            assert match, line
            fields.append(match.groupdict())
    assert [f["name"] for f in fields[:4]] == [
        "common_type", "common_flags", "common_preempt_count", "common_pid"]
    assert lines[-1].startswith("print fmt: ")
    return lines[0][6:], fields[4:], lines[-1].removeprefix("print fmt: ")


def text_pattern(print_fmt: str) -> re.Pattern:
    """The pattern of lines of an event with this print fmt."""
    fmt = re.match(r'"((?:[^"\\]|\\.)*)"', print_fmt)[1]
    out = ""
    for literal, conversion in re.findall(r"([^%]*)(%[0-9]*[lz]*[dusxp][sS]?)?", fmt):
        out += re.escape(literal)
        if conversion.startswith("%p") and conversion != "%p":
            out += r"\S+"
        elif conversion:
            out += f"(?:{CONVERSIONS[conversion[-1]]})"
    return re.compile(out)


def events_of(lines: list[str]) -> list[dict[str, str]]:
    """The lines of a trace that has events alone."""
    found = []
    for line in lines:
        if not line.startswith("#"):
            match = LINE.fullmatch(line)
            assert match, f"not an event's line: {line!r}"
            found.append(match.groupdict())
    return found


def value(e: dict[str, str], name: str) -> str:
    """name=VALUE in an event's text."""
    return re.search(rf"\b{name}=(\S*)", e["text"])[1]


def test_formats_are_what_the_debugger_sees(arch, image, guest):
    """Every field's offset and size, as DWARF has them of the C struct."""
    g = guest(arch)
    names = g.lines(f"cat {TRACING}/available_events")
    assert len(names) > 20 and len(set(names)) == len(names)
    formats = [read_format(g, name) for name in names]
    done = subprocess.run(
        ["gdb-multiarch", "-batch", "-nx", *(
            x for name, _, _ in formats for x in (
                "-ex", f"echo @ {name}\\n", "-ex", f"ptype /o struct record_{name}")),
         str(image.path)], text=True, capture_output=True, check=True)
    seen: dict[str, dict[str, tuple[int, int]]] = {}
    for line in done.stdout.splitlines():
        if line.startswith("@ "):
            fields = seen[line[2:]] = {}
        if match := re.match(r"/\*\s+(\d+)\s+\|\s+(\d+) \*/\s+.*?(\w+)(?:\[\d+\])?;", line):
            fields[match[3]] = (int(match[1]), int(match[2]))
    for name, fields, _ in formats:
        said = {f["name"]: (int(f["offset"]) - 8, int(f["size"])) for f in fields}
        assert said == seen[name], name


def check_order(events: list[dict[str, str]]) -> None:
    """CPU by CPU: a switch leaves the task that the last one began, a handler's exit
    follows its entry, a timer's function ends before the next one begins."""
    running: dict[str, str] = {}
    inside: dict[tuple[str, str], str] = {}
    for e in events:
        cpu, name = e["cpu"], e["event"]
        if name == "sched_switch":
            assert e["pid"] == value(e, "prev_pid")
            assert running.get(cpu, e["pid"]) == e["pid"], e
            running[cpu] = value(e, "next_pid")
        elif name in ("irq_handler_entry", "ipi_entry", "timer_expire_entry"):
            kind = name.removesuffix("_entry")
            assert (cpu, kind) not in inside, e
            inside[cpu, kind] = e["text"].split()[0]
        elif name in ("irq_handler_exit", "ipi_exit", "timer_expire_exit"):
            kind = name.removesuffix("_exit")
            entered = inside.pop((cpu, kind), None)
            assert entered in (None, e["text"].split()[0]), e


@pytest.mark.parametrize("arch", EVERY_KERNEL, indirect=True)
def test_text(arch, guest, alone):
    """Every line is as its event's print fmt says, and the lines are in the order in which
    a kernel does things."""
    g = guest(arch, smp=4, append="trace_buf_size=2M")
    formats = {}
    for name in g.lines(f"cat {TRACING}/available_events"):
        event, _, print_fmt = read_format(g, name)
        formats[event] = text_pattern(print_fmt)
    g.run(f"cd {TRACING}")
    g.run("stress start 1")
    g.run("echo breakpoint > patch_strategy")
    g.run("echo victim_call > set_ftrace_filter")
    g.run("echo function > current_tracer")
    # What comes before all events are on is not looked at: a CPU may take an interrupt when only
    # its entry is switched on, not yet its exit. All stands in one line, because on a busy host
    # the answers to several lines would take so long that entries would be overwritten.
    # Functions that are not called are switched, and a CPU goes and comes.
    g.run("echo 1 > events/enable; echo > trace; sleep 0.05; test trap.kills_expendable; "
          "echo victim_other > set_ftrace_filter; "
          "echo 0 > /sys/devices/system/cpu/cpu3/online; "
          "echo 1 > /sys/devices/system/cpu/cpu3/online; sleep 0.02; echo 0 > tracing_on")
    assert "none lost" in g.run("stress stop")
    lines = g.lines("cat trace", timeout=300)
    events = events_of(lines)
    held, written = map(int, re.search(r"written: (\d+)/(\d+)", lines[2]).groups())
    assert len(events) == held == written > 200
    for e in events:
        assert formats[e["event"]].fullmatch(e["text"]), e
    check_order(events)
    seen = Counter(e["event"] for e in events)
    never = set(formats) - set(seen)
    assert never <= {"patch_trap"}, never
    killed = [e["text"] for e in events if e["event"] == "signal_generate"]
    assert len(killed) == 3 * 4 and all("sig=11 errno=0 code=128 " in x for x in killed)
    assert g.run("echo 0 > events/enable") == ""
    assert g.poweroff() == 0


@pytest.mark.parametrize("strategy", ["stop", "breakpoint"])
def test_toggle_under_stress(arch, guest, alone, strategy):
    """All events and all functions, on and off many times, every CPU busy."""
    g = guest(arch, smp=4, timeout=120)
    g.run(f"cd {TRACING}")
    g.run(f"echo {strategy} > patch_strategy")
    g.run("stress start 2")
    assert g.run("repeat 30 'echo 1 > events/enable; echo function > current_tracer; "
                 "echo 0 > events/enable; echo nop > current_tracer'", timeout=300) == ""
    assert g.lines("cat set_event") == [] == g.lines("cat enabled_functions")
    assert "none lost" in g.run("stress stop")
    assert g.poweroff() == 0


@pytest.mark.parametrize("arch", EVERY_KERNEL, indirect=True)
def test_against_witness(arch, image, guest, witness_plugin, tmp_path):  # noqa: F811
    """Each event is recorded as often as the emulator executes its function."""
    witness = Witness(image, witness_plugin, tmp_path,
                      [image.symbols[name] + image.skipped.get(name, 0)
                       for name in map("event_{}".format, EVENTS)])
    g = guest(arch, smp=2, extra=witness.qemu_args)
    g.run(f"cd {TRACING}")
    g.run("echo 4096 > buffer_size_kb")
    g.run("echo 0 > tracing_on")
    g.run("echo 'sched:* irq:* ipi:* timer:* kmem:*' > set_event")
    g.run("echo > trace")
    typing = witness.read()
    g.run("echo 1 > tracing_on")
    before = witness.read()
    g.run("stress start 1")
    g.run("sleep 0.2")
    g.run("stress stop")
    executed = difference(before, witness.read())
    g.run("echo 0 > tracing_on")
    most = difference(typing, witness.read())
    recorded = Counter(e["event"] for e in events_of(g.lines("cat trace", timeout=300)))
    assert len(recorded) > 10
    for name in set(executed) | {f"event_{x}" for x in recorded}:
        count = recorded[name.removeprefix("event_")]
        assert executed.get(name, 0) <= count <= most.get(name, 0), name


def test_in_a_call_graph(arch, guest):
    """Under function_graph events are comments between the calls, as in Linux."""
    g = guest(arch, append="trace_event=kmem:kmalloc ftrace=function_graph")
    g.run("echo 0 > /sys/kernel/tracing/tracing_on")
    lines = g.lines(f"cat {TRACING}/trace", timeout=120)
    comments = [line for line in lines if "/* kmalloc: call_site=" in line]
    assert comments
    assert all(re.fullmatch(r" \d\) {15}\|  (?:  )*/\* kmalloc: .* \*/", x)
               for x in comments), comments[0]


def test_from_the_shell(arch, guest):
    """trace start -e and -f, its output, and that reset takes all of it back."""
    g = guest(arch, smp=2, append="trace_event=timer:*,sched_switch")
    assert g.lines(f"cat {TRACING}/set_event") == [
        "sched:sched_switch", "timer:timer_start", "timer:timer_expire_entry",
        "timer:timer_expire_exit"]
    g.run("trace stop; trace clear")
    assert g.run("trace start -e sched_switch -f 'prev_pid == 0' -e kmem:kfree") == ""
    assert g.lines(f"cat {TRACING}/set_event") == ["sched:sched_switch", "kmem:kfree"]
    g.run("sleep 0.05")
    g.run("trace stop")
    events = events_of(g.lines("trace show"))
    assert {e["event"] for e in events} == {"sched_switch", "kfree"}
    assert {value(e, "prev_pid") for e in events if e["event"] == "sched_switch"} == {"0"}
    assert g.lines("trace list -e") == g.lines(f"cat {TRACING}/available_events")
    assert "Field not found" in g.error("trace start -e sched_switch -f 'nothing == 1'")
    for wrong in ("-f 'next_prio >>> 6'", "-R 'traceoff if next_prio >>> 6'"):
        g.run(f"echo > {TRACING}/error_log")
        g.error("trace start -e sched_switch " + wrong)
        assert g.lines(f"tail -n 2 {TRACING}/error_log") == [
            "  Command: next_prio >>> 6", " " * 22 + "^"]
    assert "'nothing'" in g.error("trace start -e nothing")
    assert "behind -e" in g.error("trace start -f 'prev_pid == 0'")
    assert g.run("trace reset") == ""
    assert g.lines(f"cat {TRACING}/set_event") == []
    assert g.lines(f"cat {TRACING}/events/sched/sched_switch/filter") == ["none"]
    assert g.poweroff() == 0


SILENT = "trace: tracing_cpumask is {}: nothing is recorded on CPU {}; -M -1 is all CPUs"


def test_triggers_from_the_shell(arch, guest):
    """trace start -R and -M. A mistake changes nothing, a further start begins without
    triggers, and reset takes all of it back."""
    g = guest(arch, smp=2)
    g.run(f"cd {TRACING}")
    show = "cat events/sched/sched_switch/trigger"
    none = g.lines(show)
    assert g.error("trace start -M 1 -e sched_switch -f 'prev_pid != 0' -R 'stacktrace:2 if "
                   "prev_pid > 1' -R 'traceoff if prev_pid == 1' -e sched_wakeup -R snapshot") \
        == SILENT.format(1, 1)
    assert g.lines("cat tracing_cpumask") == ["1"]
    assert g.lines("cat events/sched/sched_wakeup/trigger") == ["snapshot:unlimited"]
    lines = g.lines(show)
    assert re.fullmatch(r"stacktrace:count=[012] if prev_pid > 1", lines[0])
    assert lines[1:] == ["traceoff:unlimited if prev_pid == 1"]
    g.run("sleep 0.05")
    for wrong in ("-e sched_switch -R explode", "-e sched -R traceoff", "-R traceoff",
                  "-e sched_switch -R !traceoff", "-e sched_switch -R 'traceoff if no == 1'",
                  "-M 4 -e sched_switch", "-M all -e sched_switch", "-M 0x1 -e sched_switch",
                  "-M +1 -e sched_switch", "-M '' -e sched_switch"):
        g.error("trace start " + wrong)
        assert [x.split(":")[0] for x in g.lines(show)] == ["stacktrace", "traceoff"]
        assert g.lines("cat tracing_cpumask") == ["1"]
    assert g.run("trace start -M -1 -e sched_switch -R stacktrace:3") == ""
    g.run("sleep 0.05")
    assert g.lines(show) == ["stacktrace:count=0"]
    assert g.lines("cat events/sched/sched_wakeup/trigger") == none
    assert g.lines("cat events/sched/sched_switch/filter") == ["none"]
    assert g.lines("cat tracing_cpumask") == ["3"]
    assert sum("<stack trace>" in x for x in g.lines("trace show")) == 3
    assert g.error("trace start -M 0 -e sched_switch") == SILENT.format(0, "0 1")
    # The mask stays, as with trace-cmd, and is said again.
    assert g.error("trace start -e sched_switch") == SILENT.format(0, "0 1")
    assert g.run("trace start -M 3 -e sched_switch") == ""
    assert g.error("trace start -B a -M 2 -e sched_switch -R traceoff:1 -R stacktrace:1") \
        == SILENT.format(2, 0)
    assert g.lines("cat instances/a/tracing_cpumask") == ["2"]
    g.run("sleep 0.05")
    assert g.lines("cat instances/a/tracing_on") == ["0"]
    assert {e["cpu"] for e in events_of(g.lines("trace show -B a"))} <= {"001"}
    assert g.run("trace reset -B a; trace reset") == "instances/a/ is removed\n"
    for event in ("sched_switch", "sched_wakeup"):
        assert g.lines(f"cat events/sched/{event}/trigger") == none
    assert g.poweroff() == 0


def test_list_and_stack(arch, guest):
    """trace list with trace-cmd's letters and a glob, and trace stack: as the files say."""
    g = guest(arch, smp=2)
    g.run(f"cd {TRACING}; mkdir instances/one instances/two")
    for letters, file in (("tp", "available_tracers"), ("fl", "available_filter_functions"),
                          ("oO", "trace_options"), ("C", "trace_clock")):
        for letter in letters:
            assert g.lines(f"trace list -{letter}") == g.lines(f"cat {file}")
    names = g.lines("cat available_filter_functions")
    assert g.lines("trace list -f 'sched_*'") == [x for x in names if x.startswith("sched_")]
    events = g.lines("cat available_events")
    assert g.lines("trace list -e irq") == [x for x in events if x.startswith("irq:")]
    assert g.lines("trace list -e '*_exit'") == [x for x in events if x.endswith("_exit")]
    assert g.lines("trace list -e sched:sched_switch") == ["sched:sched_switch"]
    assert g.lines("trace list -B") == ["one", "two"]
    g.run("echo cmd_echo > set_ftrace_notrace")
    left_out = g.lines("trace list -n")
    assert left_out[1] == "cmd_echo"
    assert left_out[3:] == g.lines("cat unpatchable_functions")
    assert any(" <- " in line for line in left_out[3:])
    assert {"function_graph", "markers", "[local]"} <= {
        *re.findall(r"\S+", g.run("trace list"))}
    assert g.lines("trace stack")[0] == "(stack tracer not running)"
    assert g.run("trace stack --start") == ""
    g.run("ps")
    assert g.lines("trace stack")[0] == "(stack tracer running)"
    assert g.run("trace stack --stop") == ""
    stack = g.lines("cat stack_trace")
    assert re.match(r"  0\) +\d+ +\d+   \w+", stack[2])
    assert g.lines("trace stack") == ["(stack tracer not running)", *stack]
    assert g.run("trace stack --reset") == ""
    assert "Stack tracer disabled" in g.run("trace stack")
    assert g.poweroff() == 0
