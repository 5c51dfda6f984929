# SPDX-License-Identifier: MIT
"""tools/gdb/nopl.py: gdb and the guest say the same of the guest."""

import re
import subprocess

import pytest

from conftest import ANY, ROOT, make
from lib import qemu

TRACING = "/sys/kernel/tracing"


@pytest.fixture
def debugged(arch, image, guest, tmp_path):
    """A guest under load, and a function that runs gdb's commands on it."""
    socket = tmp_path / "gdb"
    g = guest(arch, smp=2, extra=["-chardev", f"socket,id=gdb,path={socket},server=on,wait=off",
                                  "-gdb", "chardev:gdb"])

    def gdb(*commands: str, errors: bool = False) -> str:
        # Where all CPUs are in the firmware, gdb asks for another moment: it gets twenty.
        for _ in range(20):
            done = subprocess.run(
                ["gdb-multiarch", "-nx", "-q", "-batch", "-iex",
                 f"add-auto-load-safe-path {ROOT}/build", image.path,
                 *(w for c in [*qemu.Machine(arch).gdb,
                               f"target remote {socket}",
                               "echo BEGIN\\n", *commands, "echo END\\n", "detach"]
                   for w in ("-ex", c))],
                text=True, capture_output=True, check=False, timeout=120)
            if "every CPU is in the firmware: continue" not in done.stderr:
                break
        assert errors or not done.stderr, done.stderr
        return (done.stderr if errors else
                done.stdout.partition("BEGIN\n")[2].partition("END\n")[0])

    return g, gdb


def calls(text: str) -> list[str]:
    """The functions of an nopl-bt, without the suffixes of compilers."""
    return re.findall(r"^#\d+ +(\w+)[\w.]*\+0x", text, re.M)


def test_tasks_and_their_calls(debugged):
    """As ps has them, also while function_graph has taken their return addresses."""
    g, gdb = debugged
    asleep = ["schedule", "give_up_cpu", "task_sleep", "sleep_loop", "worker_main",
              "task_start"]
    g.run("stress start 1", timeout=120)
    for tracer in ("nop", "function_graph"):
        g.run(f"echo {tracer} > {TRACING}/current_tracer", timeout=120)
        # But for children of stress, which come and go.
        own = re.findall(r"^ +(\d+) (?!child )(\S+) +(\d+) \w+ ", g.run("ps", timeout=120), re.M)
        said = gdb("nopl-tasks")
        lines = re.findall(r"^ +(\d+) (?!child )(\S+) +(\w+) +\d+ +(\d+) (\S+)$", said, re.M)
        assert [(pid, name, prio) for pid, name, _, prio, _ in lines] == own, said
        assert all(where.startswith("schedule+") for _, _, state, _, where in lines
                   if state == "blocked")
        cpus = gdb("nopl-cpus").splitlines()
        assert len(cpus) == 2 and all(", online, task " in x for x in cpus)
        # The sleeper sleeps most of the time.
        assert any(calls(gdb("nopl-bt sleep")) == asleep for _ in range(10))
        path = calls(gdb("nopl-bt 2"))
        assert "shell_task" in path and path[-1] == "task_start"
        assert re.search(r"^\S+ \(2\), blocked: schedule\+0x.* <- shell_task\S* <- .*<- "
                         r"task_start\S*$", gdb("nopl-bt"), re.M)
    assert g.run("echo it runs", timeout=120) == "it runs\n"


FRAMES = """
import gdb
try:
    f = gdb.selected_frame()
    while f:
        if f.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME) and f.name():
            print("frame", f.name())
        f = f.older()
except gdb.error:
    pass  # gdb does not find every way out of a trap
import re
for pid in re.findall(r"^ +([1-9][0-9]*) ", gdb.execute("nopl-tasks", to_string=True), re.M):
    gdb.execute("nopl-bt " + pid)
"""


def test_calls_of_a_running_cpu_are_those_of_gdb(debugged, tmp_path):
    """gdb walks the stack by itself, by the compiler's own description."""
    g, gdb = debugged
    g.run("stress start 2", timeout=120)
    frames = tmp_path / "frames.py"
    frames.write_text(FRAMES)
    same = []
    while len(same) < 3:
        said = gdb(f"source {frames}")
        own = re.findall(r"^frame (\w+)", said, re.M)
        walks = [calls(x) for x in re.split(r"(?m)^(?=#0)", said)]
        # Of a CPU that gdb cannot follow to the end, nothing is compared, nor of one that
        # is between two tasks.
        if own[-1:] == ["task_start"] and "arch_switch" not in own:
            same.append(own in walks)
            assert same[-1], said


def test_sites_and_breakpoints(debugged, image):
    """Sites are on that enabled_functions lists. One that is changed behind the tracer's back
    is named, and a breakpoint on a live site says where it stands, and is reached."""
    g, gdb = debugged
    g.run(f"echo 'task_*' > {TRACING}/set_ftrace_filter; "
          f"echo function > {TRACING}/current_tracer")
    enabled = {line.split()[0] for line in
               g.lines(f"cat {TRACING}/enabled_functions") if line.strip()}
    said = gdb("nopl-sites")
    state = dict(re.findall(r"^0x\w+ call ([\w.]+)\+0x\w+: (on|off): ", said, re.M))
    assert {f for f, on in state.items() if on == "on"} == enabled
    assert "task_sleep" in enabled and len(state) > 300
    assert re.search(r"^\d+ sites and jump labels, 0 of them not as the books say$", said, re.M)
    # Another function's site, which is off, over that of one that is on.
    other = next(f for f, now in state.items() if now == "off")
    on, off = (re.search(rf"^(0x\w+) call {re.escape(f)}\+\S+: ", said, re.M)[1]
               for f in ("task_sleep", other))
    said = gdb(f"set {{unsigned}}{on} = *(unsigned *){off}", "nopl-sites 'task_s*'")
    assert re.search(r"task_sleep\+0x\w+: off: .*; the books say on$", said, re.M), said
    assert "1 of them not as the books say" in said
    said = gdb("break sched_yield", "info breakpoints")
    assert re.search(r"^nopl: breakpoint 1 stands (before|behind) the site of sched_yield "
                     r"\(0x\w+ to 0x\w+\)$", said, re.M), said


def test_breakpoint_is_reached(debugged):
    """On a function whose site is on."""
    g, gdb = debugged
    g.run(f"echo function > {TRACING}/current_tracer; stress start 1", timeout=120)
    said = gdb("break sched_finish_switch", "continue", "info symbol $pc", "delete")
    assert re.search("Breakpoint 1[,.]", said) and re.search("^sched_finish_switch", said, re.M)
    assert g.run("echo it runs", timeout=120) == "it runs\n"


def test_trace_and_printers(debugged):
    """The trace's end, as the guest shows it, values as people read them."""
    make("build/host/extract")
    g, gdb = debugged
    g.run(f"echo function > {TRACING}/current_tracer; ps; echo 0 > {TRACING}/tracing_on")
    own = g.run(f"cat {TRACING}/trace").splitlines()
    assert gdb("nopl-trace 30").splitlines() == own[-30:]
    assert gdb("nopl-trace").splitlines() == own[-20:]
    said = gdb("print cpus_online", "print *cpus[0].idle", "print 'task_list.c'::tasks")
    assert "0x3 (CPUs 0,1)" in said and "task idle/0 (0), ready" in said
    assert re.search(r"list of \d", said)


@pytest.mark.parametrize("arch", [ANY], indirect=True)
def test_bad_input(debugged):
    """One line each."""
    _, gdb = debugged
    for command, said in (("nopl-bt nobody", "no task is 'nobody'"),
                          ("nopl-bt 1 2", "usage: nopl-bt"),
                          ("nopl-trace x", "a number of lines"), ("nopl-tasks 1", "usage:"),
                          ("nopl-trace 0", "from 1 on")):
        error = gdb(command, errors=True)
        assert said in error and len(error.strip().splitlines()) == 1, error
    done = subprocess.run(["gdb-multiarch", "-nx", "-q", "-batch", "-ex",
                           f"source {ROOT}/tools/gdb/nopl.py", "-ex", "nopl-tasks"],
                          text=True, capture_output=True, check=False, timeout=60)
    assert "no guest" in done.stderr
