# SPDX-License-Identifier: MIT
"""Instances at the shell: each shows the events that it was told to record, in Linux's format,
while the top level traces something else, and each mistake is one line."""

import re

from guest import function_events, graph_events, graph_nesting

TRACING = "/sys/kernel/tracing"


def test_session(arch, guest):
    """Two tracers at once: who is called in the shell, and the graph of one command."""
    g = guest(arch, smp=2)
    g.run(f"cd {TRACING}")
    assert g.run("trace start -B calls -p function -l cmd_echo -l cmd_cd -e sched_switch") == ""
    assert g.run("trace start -p function_graph -g cmd_echo") == ""
    assert g.run("ls instances").split() == ["calls/"]
    for _ in range(3):
        g.run("echo x")
    g.run("cd .")
    g.run("trace stop; trace stop -B calls")
    lines = g.lines("trace show -B calls")
    switches = [x for x in lines if " sched_switch: " in x]
    assert switches and all(
        re.search(r"sched_switch: prev_comm=.* prev_pid=\d+ prev_prio=\d+ prev_state=\S+ ==> "
                  r"next_comm=.* next_pid=\d+ next_prio=\d+$", x) for x in switches)
    calls = [e["callee"] for e in function_events([x for x in lines if x not in switches])]
    assert calls == ["cmd_echo"] * 3 + ["cmd_cd"]
    events = graph_events(g.lines("trace show"))
    graph_nesting(events, whole=True)
    roots = [e["name"] for e in events if not e["indent"] and e["name"]]
    assert roots == ["cmd_echo"] * 3
    assert g.lines("cat instances/calls/trace_pipe") == [
        x for x in lines if not x.startswith("#")]
    # A setting of one instance is not one of another.
    assert g.lines("cat set_event") == []
    assert g.lines("cat instances/calls/set_event") == ["sched:sched_switch"]
    assert g.lines("cat instances/calls/set_ftrace_filter") == ["cmd_echo", "cmd_cd"]
    assert g.run("trace reset -B calls") == "instances/calls/ is removed\n"
    assert g.lines("ls instances") == []
    assert g.run("trace reset") == ""
    assert g.lines("cat enabled_functions") == []
    for name in ("''", "a/b"):
        assert g.run(f"trace start -B {name} -p function") == (
            "trace: -B takes the name of an instance\n")
    for name in (".", ".."):
        assert f"{name} is no name" in g.run(f"trace start -B {name} -p function")
    assert g.lines("ls instances") == []
    assert g.poweroff() == 0


def test_triggers_and_snapshots(arch, guest):
    """Actions in an instance when a function is called or an event happens."""
    g = guest(arch, smp=2)
    g.run(f"cd {TRACING}; mkdir instances/a")
    g.run("echo 'cmd_cd:traceoff' > instances/a/set_ftrace_filter")
    assert g.lines("cat instances/a/set_ftrace_filter") == [
        "#### all functions enabled ####", "cmd_cd:traceoff:unlimited"]
    assert g.lines("cat set_ftrace_filter") == ["#### all functions enabled ####"]
    g.run("echo before > instances/a/trace_marker; cd .; echo after > trace_marker")
    assert g.lines("cat instances/a/tracing_on tracing_on") == ["0", "1"]
    assert "no such trigger" in g.run("echo '!cmd_cd:traceoff' >> set_ftrace_filter")
    g.run("echo '!cmd_cd:traceoff' >> instances/a/set_ftrace_filter")
    g.run("echo 1 > instances/a/tracing_on; cd .")
    assert g.lines("cat instances/a/tracing_on") == ["1"]
    assert g.run("echo 1 > instances/a/snapshot") == ""
    assert g.lines("cat instances/a/snapshot")[-1].endswith("tracing_mark_write: before")
    assert "entries-in-buffer/entries-written: 0/0" in g.lines("cat instances/a/trace")[2]
    g.run("echo 'snapshot:1 if next_prio > 99' > instances/a/events/sched/sched_switch/trigger")
    assert g.lines("cat instances/a/events/sched/sched_switch/trigger") == [
        "snapshot:count=1 if next_prio > 99"]
    assert "character 1" in g.run("echo 'none == 1' > instances/a/events/sched/sched_switch/filter")
    assert "  Command: none == 1" in g.lines("cat instances/a/error_log")
    assert g.lines("cat error_log") == []
    assert g.run("rmdir instances/a") == ""
    assert g.poweroff() == 0


def test_views(arch, guest):
    """The buffer of an instance: all of it, of one CPU, and as Linux's binary page."""
    g = guest(arch)
    g.run(f"cd {TRACING}")
    g.run("mkdir instances/a; echo one > instances/a/trace_marker")
    whole = g.lines("cat instances/a/trace")
    assert whole[-1].endswith("tracing_mark_write: one")
    assert g.lines("cat instances/a/per_cpu/cpu0/trace") == whole
    assert "entries-in-buffer/entries-written: 1/1" in whole[2]
    g.run("echo 0 > instances/a/tracing_on")
    page = "".join(g.lines("xxd -p instances/a/per_cpu/cpu0/trace_pipe_raw"))
    assert len(page) == 2 * 4096 and b"one\n".hex() in page
    assert "entries-in-buffer/entries-written: 0/0" in g.lines("cat instances/a/trace")[2]
    assert g.poweroff() == 0


def test_from_boot(arch, guest):
    """trace_instance= makes an instance before the first command, with its events on."""
    g = guest(arch, append="trace_instance=early,sched:sched_switch,kmem:kfree")
    g.run(f"cd {TRACING}/instances/early")
    assert g.lines("cat set_event") == ["sched:sched_switch", "kmem:kfree"]
    g.run("echo 0 > tracing_on")
    assert any(" kfree: " in x for x in g.lines("cat trace"))
    assert g.lines("cat ../../set_event") == []
    assert g.poweroff() == 0
    g = guest(arch, append="trace_instance=late,none:such", refused_parameters=True)
    assert "none:such" in g.boot_text
    assert g.run(f"ls {TRACING}/instances").split() == ["late/"]
    assert g.poweroff() == 0
