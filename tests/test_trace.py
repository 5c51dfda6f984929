# SPDX-License-Identifier: MIT
"""Tracing while the machine runs: what the README shows, hundreds of switches
under load without a task lost, and every event checked against witnesses that
do not depend on the tracer: the disassembly, and an emulator that counts."""

import re
import struct
import subprocess
import time
from collections import Counter

import pytest
from conftest import EVERY_KERNEL, FACTS, ROOT
from guest import PROMPT, function_events, graph_events, graph_nesting, trace_stats
from image import INFO, name_among
from lib.port import MAX_CPUS

TRACING = "/sys/kernel/tracing"


def test_readme_session(arch, guest):
    """The session that the README shows, typed by a person."""
    g = guest(arch, smp=4)
    assert g.run("cd /sys/kernel/tracing") == ""
    assert g.cwd_shown == TRACING
    assert g.run("echo 'sched_*' > set_ftrace_filter") == ""
    assert g.run("echo function > current_tracer") == ""
    g.run("stress start 1")
    g.run("sleep 0.1")
    g.run("stress stop")
    lines = g.lines("cat trace | head -20")
    assert lines[0] == "# tracer: function" and len(lines) == 20
    names = {e["callee"] for e in function_events(lines)}
    assert names and all(n.startswith("sched_") for n in names), names
    assert g.run("echo nop > current_tracer") == ""
    assert g.lines("cat current_tracer") == ["nop"]
    assert g.poweroff() == 0


def test_trace_header(arch, guest):
    """The header is Linux's, to the byte."""
    g = guest(arch, smp=2, append="ftrace=function")
    lines = g.lines(f"cat {TRACING}/trace | head -12")
    assert re.fullmatch(
        r"# entries-in-buffer/entries-written: \d+/\d+   #P:2", lines[2])
    assert lines[:2] == ["# tracer: function", "#"]
    assert lines[3:] == [
        "#",
        "#                                _-----=> irqs-off/BH-disabled",
        "#                               / _----=> need-resched",
        "#                              | / _---=> hardirq/softirq",
        "#                              || / _--=> preempt-depth",
        "#                              ||| / _-=> migrate-disable",
        "#                              |||| /     delay",
        "#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION",
        "#              | |         |   |||||     |         |",
    ]


@pytest.mark.parametrize("arch", EVERY_KERNEL, indirect=True)
def test_toggle_under_stress(arch, guest, alone):
    """All sites on and off, hundreds of times, every CPU busy all the while."""
    g = guest(arch, smp=4, timeout=120)
    tasks = re.search(r"(\d+) tasks", g.run("uptime"))[1]
    g.run(f"cd {TRACING}")
    g.run("stress start 2")
    for _ in range(5):
        assert g.run("repeat 50 'echo function > current_tracer; "
                     "echo nop > current_tracer'") == ""
    assert g.lines("cat enabled_functions") == []
    report = g.run("stress stop")
    assert "none lost" in report, report
    loops = [int(n) for line in report.splitlines() if "loops" in line
             for n in re.findall(r" (\d+)", line.split(":")[1])]
    assert loops and all(loops), report
    assert re.search(r"(\d+) tasks", g.run("uptime"))[1] == tasks
    assert g.poweroff() == 0


def test_toggle_from_two_sides(arch, guest):
    """Filters change while all CPUs run: written = read + lost + held."""
    g = guest(arch, smp=4)
    g.run(f"cd {TRACING}")
    g.run("stress start 1")
    g.run("echo function > current_tracer")
    for pattern in ("stress_*", "*lock*", "sched_*", "task_*", "*"):
        g.run(f"echo '{pattern}' > set_ftrace_filter")
        g.run("sleep 0.02")
    g.run("echo 0 > tracing_on")
    assert "none lost" in g.run("stress stop")
    total = trace_stats(g, 4)
    assert total["written"] > 1000
    assert total["written"] == (total["read events"] + total["overrun"]
                                + total["dropped events"]
                                + total["entries"]), total
    assert g.poweroff() == 0


def dump_of(g, line: str) -> list[str]:
    """The next dump's lines, after a command that prints nothing."""
    g.sendline(line)
    g.expect(r"Dumping ftrace buffer:\s+-{33}[\r\n]+(.*?)-{33}\s")
    text = g.match[1].replace("\r", "")
    g.sendline("echo in step")
    g.expect(r"\nin step\s")
    g.expect_prompt()
    # The prompt stands on a line of its own where it came between two lines of the dump.
    return [x for x in re.sub(PROMPT, "", text).splitlines() if x]


def test_dump(arch, guest):
    """The trigger dump: the whole trace on the console, as `trace` has it, the call that it is
    for is its task's last. The task that dumps goes with its last trigger."""
    g = guest(arch, smp=4)
    g.run(f"cd {TRACING}")
    tasks = re.search(r"(\d+) tasks", g.run("uptime"))[1]
    g.run("stress start 1; echo 16 > buffer_size_kb")
    g.run("echo cmd_sleep:dump > set_ftrace_filter; echo function > current_tracer")
    lines = dump_of(g, "sleep 0.01")
    g.run("stress stop")
    trace = [x for x in g.lines("cat trace") if x[0] != "#"]
    assert lines == trace and len(lines) > 1000
    own = [x for x in lines if x.split("-")[0].strip() == "init"]
    assert ": cmd_sleep <-" in own[-1], own[-3:]
    assert g.run("cat tracing_on").strip() == "0"
    # The recording has ended: there is no other dump, until it goes on.
    assert "Dumping" not in g.run("sleep 0.2")
    g.run("echo > trace; echo nop > current_tracer; echo 1 > tracing_on")
    assert dump_of(g, "sleep 0.01") == ["   (ftrace buffer empty)"]
    assert "set_ftrace_filter: 'dumps'" in g.run("echo cmd_ps:dumps > set_ftrace_filter")
    assert "of functions alone" in g.run("echo dump > events/sched/sched_switch/trigger")
    g.run("echo '!cmd_sleep:dump' > set_ftrace_filter")
    while re.search(r"(\d+) tasks", g.run("uptime"))[1] != tasks:
        g.run("sleep 0.1")
    assert g.poweroff() == 0


class Calls:
    """Which calls the text can make, for checking events."""

    def __init__(self, image):
        self.image = image
        # The name of a return address: the call before it.
        self.before: dict[int, tuple[str, int | None]] = {}
        # Out of each function by a jump: tail calls. None: anywhere.
        self.jumps: dict[int, set[int | None]] = {}
        is_call = name_among(image.arch, "calls")
        for f in image.functions:
            found = {addr: (m, t) for addr, m, t in f.transfers()}
            ends = [addr for addr, _, _ in f.code[1:]]
            ends.append(f.addr + f.size)
            for i, (addr, mnemonic, operands) in enumerate(f.code):
                if addr not in found:
                    continue
                _, target = found[addr]
                if is_call(mnemonic):
                    # A call returns behind its delay slot, if it has one.
                    at = i + INFO[image.arch]["code"].get("delay_slots", False)
                    if at < len(ends):
                        self.before[ends[at]] = (mnemonic, target)
                elif operands != "ra" and (target is None or not
                                           f.addr <= target < f.addr + f.size):
                    self.jumps.setdefault(f.addr, set()).add(target)

    def leads_to(self, parent: int, callee: int) -> bool:
        """Does the call before return address parent reach callee, at once or
        through functions that jump on?"""
        if parent not in self.before:
            return False
        todo = {self.before[parent][1]}
        seen: set[int | None] = set()
        while todo:
            target = todo.pop()
            if target is None:
                return True
            function = self.image.function_at(target)
            if function.addr == callee:
                return True
            seen.add(target)
            todo |= self.jumps.get(function.addr, set()) - seen
        return False




def live_return(image) -> int:
    """Bytes from a site to the return address of its live call."""
    facts = FACTS[image.arch]
    for sites, length in facts.get("variant_live_return", {}).items():
        if image.path.parent.name.endswith(f"-{sites}"):
            return length
    return facts["live_return"]


RING_TYPES = 0x1000000 - 256


def full_pages(qmp, image, cpus: int, folder) -> list[tuple[int, int]]:
    """(ip, parent) of the events in all pages that the rings' writers have
    left, read from the guest's memory (tracer/ring/ring.h)."""
    word = image.bits // 8
    pointer = "Q" if word == 8 else "I"
    size = image.size_of("rings") // MAX_CPUS
    events = []

    def read(addr: int, size: int) -> bytes:
        out = folder / "memory"
        qmp.command("memsave", val=addr - (addr >> 63 << 64), size=size, filename=str(out))
        return out.read_bytes()

    rings = read(image.symbols["rings"], cpus * size)
    for cpu in range(cpus):
        at = cpu * size
        pages, = image.unpack(pointer, rings, at)
        count, head, tail = image.unpack("III", rings, at + word)
        table = read(pages, count * word)
        for seq in range(tail, head):
            page, = image.unpack(pointer, table, seq % count * word)
            data = read(page, 4096)
            used, _inner, _pid, its_seq = image.unpack("HHiI", data, 20)
            assert its_seq == seq
            for slot in range(used):
                _, ip, parent = image.unpack("III", data, 32 + 12 * slot)
                if ip >> 8 < RING_TYPES:
                    events.append((ip >> 8, parent >> 8))
    return events


@pytest.mark.parametrize("arch", EVERY_KERNEL, indirect=True)
def test_events_against_disassembly(arch, image, guest, tmp_path):
    """Every event: its ip is the return address of a site's live call, and the
    instruction before its parent is a call that leads to that function."""
    g = guest(arch, smp=4)
    g.run(f"cd {TRACING}")
    g.run("echo function > current_tracer")
    g.run("stress start 1")
    g.run("sleep 0.05")
    g.run("echo 0 > tracing_on")
    assert "none lost" in g.run("stress stop")
    g.qmp.command("stop")
    pairs = set(full_pages(g.qmp, image, 4, tmp_path))
    assert len(pairs) > 40
    text = image.symbols["_text"]
    sites = {s + live_return(image): image.function_at(s) for s in image.sites}
    calls = Calls(image)
    wrong = []
    for ip, parent in sorted(pairs):
        callee = sites.get(text + ip)
        if callee and callee.name == "task_start" and \
                (text + parent) % 0x1000000 == 0:
            continue  # return address 0: the first code of every task
        if not callee or not calls.leads_to(text + parent, callee.addr):
            wrong.append(f"ip {text + ip:#x} ({callee and callee.name}), "
                         f"parent {text + parent:#x} "
                         f"({image.function_at(text + parent).name})")
    assert wrong == []


@pytest.mark.parametrize("arch", EVERY_KERNEL, indirect=True)
def test_trace_text(arch, image, guest):
    """The output of `trace`: names of sites' functions, per CPU, time never runs
    backwards, as many lines as its header says."""
    g = guest(arch, smp=4, append="trace_buf_size=32")
    g.run(f"cd {TRACING}")
    g.run("echo function > current_tracer")
    g.run("stress start 1")
    g.run("sleep 0.05")
    g.run("echo 0 > tracing_on")
    assert "none lost" in g.run("stress stop")
    lines = g.lines("cat trace", timeout=120)
    events = function_events(lines)
    held, written = map(int, re.search(r"written: (\d+)/(\d+)",
                                       lines[2]).groups())
    assert 1000 < held == len(events) <= written
    names = {image.function_at(a).name for a in image.sites}
    assert {e["callee"] for e in events} - names == set()
    strange = {(e["callee"], e["caller"]) for e in events
               if e["caller"] not in image.by_name}
    # Nobody called the first function of a task.
    assert {callee for callee, _ in strange} <= {"task_start"}, strange
    last: dict[str, int] = {}
    for e in events:
        now = int(e["seconds"]) * 10**6 + int(e["micros"])
        assert now >= last.get(e["cpu"], 0), e
        last[e["cpu"]] = now


@pytest.fixture(scope="session")
def witness_plugin(tmp_path_factory):
    """tests/plugin/witness.c, built."""
    out = tmp_path_factory.mktemp("plugin") / "witness.so"
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-o",
                    str(out), str(ROOT / "tests" / "plugin" / "witness.c")],
                   check=True)
    return out


class Witness:
    """Counts of executed sites, or of other instructions, from the plugin's mapped
    file."""

    def __init__(self, image, plugin, folder, addresses=None):
        self.image = image
        low = {a & 0xffffffff: a for a in addresses or image.sites}
        self.order = [low[a] for a in sorted(low)]
        self.counts_file = folder / "counts"
        self.counts_file.write_bytes(bytes(8 * len(low)))
        addrs = folder / "addrs"
        addrs.write_bytes(struct.pack(f"<{len(low)}I", *sorted(low)))
        self.qemu_args = ["-plugin", f"file={plugin},addrs={addrs},"
                                     f"counts={self.counts_file}"]

    def read(self) -> dict[str, int]:
        """Executions since the start, by function, static twins left out."""
        data = self.counts_file.read_bytes()
        found: dict[str, int] = {}
        for addr, n in zip(self.order, struct.unpack(f"<{len(data) // 8}Q",
                                                     data)):
            name = self.image.function_at(addr).name
            if len(self.image.by_name[name]) == 1:
                found[name] = n
        return found


def difference(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """Executions since the last reading."""
    return {name: after[name] - before[name] for name in after
            if after[name] != before[name]}


WORKLOAD = "test sched.*"


@pytest.mark.parametrize("arch", EVERY_KERNEL, indirect=True)
@pytest.mark.parametrize("tracer", ["function", "function_graph"])
def test_events_against_witness(arch, image, guest, witness_plugin, tmp_path,
                                tracer):
    """The tracer records each call of a function exactly as often as the
    emulator executes its site: none lost, none invented, on 2 CPUs.

    Functions that typing and switching tracing on and off execute too are left
    out: found by a rehearsal of exactly that."""
    witness = Witness(image, witness_plugin, tmp_path)
    g = guest(arch, smp=2, extra=witness.qemu_args)
    g.run(f"cd {TRACING}")
    g.run("echo 4096 > buffer_size_kb")
    start = witness.read()
    for line in ("echo 0 > tracing_on", "echo kfree > set_ftrace_filter",
                 f"echo {tracer} > current_tracer", "echo 1 > tracing_on",
                 "echo 0 > tracing_on", "echo > trace", "cat trace | tail -2"):
        g.run(line)
    time.sleep(0.5)
    rehearsed = difference(start, witness.read())
    start = witness.read()
    g.run(WORKLOAD, timeout=120)
    wanted = sorted(set(difference(start, witness.read())) - set(rehearsed))
    if tracer == "function_graph":
        # Nobody called it, so there is no return address to take.
        wanted = [name for name in wanted if name != "task_start"]
    assert len(wanted) > 5, wanted
    g.run("echo 0 > tracing_on")
    g.run("echo > set_ftrace_filter")
    for i in range(0, len(wanted), 20):
        g.run(f"echo {' '.join(wanted[i:i + 20])} >> set_ftrace_filter")
    g.run("echo > trace")
    typing = witness.read()
    g.run("echo 1 > tracing_on")
    before = witness.read()
    g.run(WORKLOAD, timeout=120)
    executed = difference(before, witness.read())
    g.run("echo 0 > tracing_on")
    most = difference(typing, witness.read())
    lines = g.lines("cat trace", timeout=120)
    if tracer == "function":
        calls = [e["callee"] for e in function_events(lines)]
    else:
        events = graph_events(lines)
        graph_nesting(events, whole=True)
        calls = [e["name"] for e in events if e["name"]]
    recorded = dict(Counter(calls))
    # Functions that ran while those lines were typed, too (a lock that was held, where the host is
    # busy), is recorded as often as it ran while tracing was on: perhaps in between.
    exact = {n: c for n, c in executed.items() if n in wanted and c == most[n]}
    assert len(exact) > 5
    assert {n: recorded.get(n) for n in exact} == exact
    assert set(recorded) <= set(wanted)
    assert all(executed.get(n, 0) <= recorded.get(n, 0) <= most.get(n, 0)
               for n in wanted)
    assert trace_stats(g, 2)["overrun"] == 0


def test_ps_marks_tasks_preempted_on_a_site(arch, guest):
    """ps shows each task, where it stands, and says so when that is a site."""
    g = guest(arch, smp=2)
    g.run("stress start 2")
    lines = g.lines("ps")
    assert len([x for x in lines if "spin" in x or "yield" in x]) >= 4
    assert any("+0x" in x for x in lines)
    assert "none lost" in g.run("stress stop")


NEWEST = re.compile(r"^ *(\S+)-(\d+) +\[(\d{3})\] \S{5} +(\d+\.\d{6}): (\S+) <-\S+$", re.M)


def test_panic_dumps_the_last_events(arch, run_tool):
    """The newest first, symbolised. The last call led to the panic, and is not one that
    the panic itself calls to print."""
    done = run_tool("--arch", arch, "--smp", "2", "-v", "--append",
                    'ftrace=function ftrace_dump_on_oops run="ps; ps; panic asked"')
    text = done.stdout[done.stdout.index("Dumping ftrace buffer: "):]
    shown, seen = map(int, re.search(r"the last (\d+) of (\d+) events", text).groups())
    events = NEWEST.findall(text)
    assert len(events) == shown == 200 and seen > shown
    times = [float(event[3]) for event in events]
    assert times == sorted(times, reverse=True)
    panicking = [event[4] for event in events if event[0] == "init"]
    later = panicking[:panicking.index("panic")]
    # An interrupt may come before panic()'s first instruction, and take the CPU away.
    assert len(later) <= 2 or "irq_exit" in later, later
    assert "cmd_panic" in panicking or "shell_find" in panicking


def test_dump_of_one_cpu_and_bad_input(arch, run_tool):
    done = run_tool("--arch", arch, "--smp", "2", "-v", "--append",
                    "ftrace=function ftrace_dump_on_oops=orig_cpu "
                    'run="echo 3 > /proc/sys/kernel/ftrace_dump_on_oops; panic"')
    assert ": 3 is no number from 0 (no dump), 1 (all CPUs), 2" in done.stdout
    assert len({event[2] for event in NEWEST.findall(done.stdout)}) == 1
    done = run_tool("--arch", arch, "-v", "--append",
                    'ftrace_dump_on_oops=all run="panic"')
    assert "bad value 'all' for ftrace_dump_on_oops" in done.stdout
    assert re.search("^panic: ", done.stdout, re.M) and "Dumping" not in done.stdout


# In a line of the trace, and alone, of all tasks but the one that prints them.
TRACED = re.compile(r"\d: (sched_process_\w+: (?!.*tp_printk).*\S)")
PRINTED = re.compile(r"(?<!\d: )(sched_process_\w+: (?!.*tp_printk).*\S)")


def test_tp_printk(arch, guest):
    """Events on the console, soon after they happened: those that the trace has, in its order,
    from boot on, and while the file says so."""
    g = guest(arch, smp=2, append="trace_event=sched_process_fork,sched_process_exit tp_printk")
    switch = "/proc/sys/kernel/tracepoint_printk"
    printed = PRINTED.findall(g.boot_text)

    def run(line: str) -> str:
        g.run(line)
        printed.extend(PRINTED.findall(g.text_before()))
        return g.text_before()

    def traced() -> list[str]:
        return TRACED.findall(run(f"cat {TRACING}/trace"))

    def expect_printed(wanted: list[str]) -> None:
        until = time.monotonic() + 60
        while len(printed) < len(wanted) and time.monotonic() < until:
            run("sleep 0.05")
        assert printed == wanted and wanted

    assert re.search(r"^1\s*$", run(f"cat {switch}"), re.M)
    run("test task.join")
    expect_printed(traced())
    run(f"echo 0 > {switch}")
    until = time.monotonic() + 60
    while "tp_printk" in run("ps"):
        assert time.monotonic() < until
    before = traced()
    run("test task.join")
    run("sleep 0.1")
    assert printed == before
    missing = traced()[len(before):]
    run(f"echo 1 > {switch}")
    run("test task.join")
    expect_printed([e for e in traced() if e not in missing])
    assert missing and "'soon' is no number" in g.error(f"echo soon > {switch}")
    assert g.poweroff() == 0
