# SPDX-License-Identifier: MIT
"""function_graph at the shell: Linux's header, lines that nest for every task
while all CPUs are at work and after the ring has gone round, returns in plenty
while tracers change, and errors. That each call is there as often as it was made
is tested beside the function tracer: test_trace.py, against an emulator's count."""

import re
from collections import Counter

from guest import graph_events, graph_nesting, trace_stats

TRACING = "/sys/kernel/tracing"
HEADER = ["# tracer: function_graph", "#",
          "# CPU  DURATION                  FUNCTION CALLS",
          "# |     |   |                     |   |   |   |"]


def test_from_boot(arch, guest):
    """function_graph, selected on the command line, traces from the start."""
    g = guest(arch, smp=2, append="ftrace=function_graph trace_buf_size=16K")
    g.run(f"cd {TRACING}")
    assert g.lines("cat current_tracer") == ["function_graph"]
    g.run("echo 0 > tracing_on")
    lines = g.lines("cat trace")
    assert lines[:4] == HEADER
    graph_nesting(graph_events(lines), whole=False)
    total = trace_stats(g, 2)
    assert total["overrun"] > 0
    assert total["written"] == (total["overrun"] + total["dropped events"]
                                + total["entries"]), total
    assert g.poweroff() == 0


def test_other_cpus_come_up(arch, guest):
    """The tracer from the command line sees how the first task starts each other CPU."""
    g = guest(arch, smp=4, append="ftrace=function_graph trace_buf_size=1M")
    g.run(f"cd {TRACING}; echo 0 > tracing_on")
    lines = g.lines("cat trace")
    assert sum("cpu_start_others() {" in line for line in lines) == 1
    assert sum("cpu_up() {" in line for line in lines) == 3
    graph_nesting(graph_events(lines), whole=False)


def test_limits_and_options_from_boot(arch, guest):
    """Only calls that begin in the function asked for, two levels of them, with the
    columns asked for, and the deepest stack."""
    g = guest(arch, smp=2, append="ftrace=function_graph ftrace_graph_filter=shell_run "
              "ftrace_graph_max_depth=2 trace_clock=uptime stacktrace "
              "trace_options=funcgraph-proc,funcgraph-tail,nofuncgraph-cpu")
    g.run("echo x")
    g.run(f"echo 0 > {TRACING}/tracing_on")
    lines = g.lines(f"cat {TRACING}/trace")
    assert lines[2] == "#  TASK/PID         DURATION                  FUNCTION CALLS"
    calls = [line for line in lines if not line.startswith("#")]
    assert all(re.match(r" {4,5}init-2 {4,5} \|", line) for line in calls), calls[:3]
    depths = {len(m[1]) for line in calls if (m := re.search(r"\|( +)\w+\(\)", line))}
    assert depths == {2, 4}
    roots = [line for line in calls if re.search(r"\|  \w", line)]
    assert roots and all("shell_run() {" in line for line in roots)
    assert any(line.endswith("  } /* shell_run */") for line in calls)
    assert "[uptime]" in g.lines(f"cat {TRACING}/trace_clock")[0]
    depth = int(g.lines(f"cat {TRACING}/stack_max_size")[0])
    stack = g.lines(f"cat {TRACING}/stack_trace")
    assert 500 < depth and int(stack[2].split()[1]) >= depth
    assert stack[-1].split()[3].startswith("task_start+")


def test_session(arch, guest):
    """A command's calls, with a note among them, trace and trace_pipe agree."""
    g = guest(arch)
    g.run(f"cd {TRACING}")
    for line in ("echo 'sched_*' > set_ftrace_notrace",
                 "echo 'cmd_* ctl_* shell_* snprintf format_args' "
                 "> set_ftrace_filter",
                 "trace start -p function_graph", "echo a note > trace_marker",
                 "cat current_tracer",
                 "echo 0 > tracing_on"):
        g.run(line)
    lines = g.lines("cat trace")
    assert lines[:4] == HEADER
    events = graph_events(lines)
    graph_nesting(events, whole=True)
    assert [e["comment"] for e in events if e["comment"]] == ["a note"]
    assert g.lines("cat trace_pipe") == lines[4:]
    assert graph_events(g.lines("cat trace")) == []
    assert "none such" in g.error("echo none such > current_tracer")
    assert g.poweroff() == 0


def test_all_calls_under_stress(arch, guest):
    """Every function, every CPU at work, the ring gone round many times."""
    g = guest(arch, smp=4, append="trace_buf_size=32K")
    g.run(f"cd {TRACING}")
    g.run("echo function_graph > current_tracer")
    g.run("stress start 1")
    g.run("sleep 0.05")
    g.run("echo 0 > tracing_on")
    assert "none lost" in g.run("stress stop")
    events = graph_events(g.lines("cat trace", timeout=120))
    assert len(events) > 1000
    graph_nesting(events, whole=False)
    # Nobody calls task_start, so its return is not taken. No other call is left out.
    info, = (x for x in g.lines("cat dyn_ftrace_total_info") if "returns" in x)
    assert re.fullmatch(r"returns not taken: 0 too deep, \d+ without an address",
                        info)
    total = trace_stats(g, 4)
    assert total["overrun"] > 0
    assert total["entries"] == sum(
        (e["how"] == ";") + 1 for e in events if not e["comment"]), total
    assert g.poweroff() == 0


def test_nothing_lost_under_stress(arch, guest):
    """Interrupts and sleepers call so little that the ring holds all of it: every
    closing brace has its opening line."""
    g = guest(arch, smp=2, append="trace_buf_size=4M")
    g.run(f"cd {TRACING}")
    g.run("echo 'irq_* *_interrupt task_sleep task_block task_wake wake_from' "
          "> set_ftrace_filter")
    g.run("stress start 1")
    g.run("echo function_graph > current_tracer")
    g.run("sleep 0.05")
    g.run("echo 0 > tracing_on")
    assert "none lost" in g.run("stress stop")
    assert trace_stats(g, 2)["overrun"] == 0
    events = graph_events(g.lines("cat trace", timeout=120))
    graph_nesting(events, whole=True)
    calls = Counter(e["name"] for e in events if e["name"])
    assert calls.total() > 100, calls
    assert g.poweroff() == 0


def test_balanced_across_exits_kills_and_hotplug(arch, guest, alone):
    """Tasks end, are killed by faults, and leave CPUs that go: the recorded calls nest."""
    g = guest(arch, smp=4, append="trace_buf_size=4M")
    g.run(f"cd {TRACING}")
    g.run("echo 'task_[bcej]* task_sleep task_wake kernel_clone' > set_ftrace_filter; "
          "echo task_check_stack > set_ftrace_notrace")
    # Not fork: each test finds as many tasks as before.
    g.run("stress start 1 spin yield mutex-a mutex-b ping pong sleep cpus")
    g.run("echo function_graph > current_tracer")
    for tests in ("task.*", "assert.*"):  # the second kills tasks
        assert " 0 failed" in g.run(f"test {tests}")
    g.run("echo 0 > tracing_on")
    report = g.run("stress stop")
    assert "none lost" in report and re.search(r"went [1-9]\d* times", report), report
    whole = trace_stats(g, 4)["overrun"] == 0  # not if the host was very slow
    events = graph_events(g.lines("cat trace", timeout=180))
    graph_nesting(events, whole)
    calls = Counter(e["name"] for e in events if e["name"])
    assert calls["task_exit"] > 10 and calls["task_bury"] > 0, calls
    assert g.poweroff() == 0


def test_tracers_change_under_stress(arch, guest, alone):
    """function, function_graph and nop in turn: tasks find their way back through
    return addresses taken long ago."""
    g = guest(arch, smp=4, timeout=120)
    tasks = re.search(r"(\d+) tasks", g.run("uptime"))[1]
    g.run(f"cd {TRACING}")
    g.run("stress start 2")
    assert g.run("repeat 60 'echo function_graph > current_tracer; "
                 "echo function > current_tracer; "
                 "echo function_graph > current_tracer; "
                 "echo nop > current_tracer'") == ""
    assert "none lost" in g.run("stress stop")
    assert re.search(r"(\d+) tasks", g.run("uptime"))[1] == tasks
    assert g.poweroff() == 0


def test_reports_see_through_taken_returns(guest, arch):
    """ps names where tasks wait, and a lock its taker, not trace_return, while
    every return address is taken."""
    g = guest(arch, smp=2)
    g.run(f"echo function_graph > {TRACING}/current_tracer")
    g.run("stress start; sleep 0.2; stress stop")
    shown = g.run("ps")
    assert "reaper" in shown and "trace_return" not in shown, shown
    assert g.run("test lock.holder_is_named").count("ok 1 ") == 1
    g.run(f"echo nop > {TRACING}/current_tracer")


def test_latency_format(arch, guest):
    """Linux's latency format has a column of flags more, and a legend above it."""
    g = guest(arch)
    g.run(f"cd {TRACING}")
    g.run("trace start -p function_graph -g shell_run -O latency-format -O funcgraph-proc")
    g.run("echo x")
    g.run("echo 0 > tracing_on")
    lines = g.lines("cat trace")
    assert lines[2] == "# function_graph latency trace v1.1.5 on nopl"
    begin = lines.index("#                       _-----=> irqs-off        ")
    assert [x.rstrip() for x in lines[begin:begin + 7]] == [
        "#                       _-----=> irqs-off",
        "#                      / _----=> need-resched",
        "#                     | / _---=> hardirq/softirq",
        "#                     || / _--=> preempt-depth",
        "#                     ||| /",
        "# CPU  TASK/PID       ||||     DURATION                  FUNCTION CALLS",
        "# |     |    |        ||||      |   |                     |   |   |   |"]
    calls = lines[begin + 7:]
    columns = re.compile(r" 0\) +\S+-\d+ +\|  [d.][N.][hzZ.][0-9a-f.]\. \| .{14}\|  ")
    shown = [x for x in calls if re.search(r"[;{}]$|\*/$", x)]
    assert len(shown) > 100 and all(columns.match(x) for x in shown), [
        x for x in shown if not columns.match(x)][:3]
    assert any(re.search(r"\|  d\S+ \|", x) for x in shown)
    assert g.poweroff() == 0
