# SPDX-License-Identifier: MIT
"""traceoff_on_warning: the trace ends where the kernel has complained."""

TRACING = "/sys/kernel/tracing"


def test_traceoff_on_warning(arch, guest):
    """A CPU that has waited too long for a lock complains, and that is where the trace ends."""
    g = guest(arch, smp=2, append="ftrace=function trace_event=sched_switch trace_buf_size=32 "
                                  "traceoff_on_warning")
    switch = "/proc/sys/kernel/traceoff_on_warning"
    g.run(f"cd {TRACING}")
    assert g.lines(f"cat tracing_on {switch}") == ["1", "1"]
    assert "has spun for" in g.run("test lock.spin_diagnosis")
    assert g.lines("cat tracing_on") == ["0"]
    lines = g.lines("cat trace")
    assert any(": spin_complain <-spin_slow" in line for line in lines[-5:]), lines[-5:]
    g.run("ps")
    assert g.lines("cat trace") == lines
    g.run("echo 1 > tracing_on; ps")
    assert g.lines("cat tracing_on") == ["1"]
    assert "has spun for" in g.run("test lock.spin_diagnosis")
    assert g.lines("cat tracing_on") == ["0"]
    g.run(f"echo 0 > {switch}; echo 1 > tracing_on")
    assert "has spun for" in g.run("test lock.spin_diagnosis")
    assert g.lines(f"cat tracing_on {switch}") == ["1", "0"]
    assert "'soon' is no number" in g.error(f"echo soon > {switch}")
    g.run(f"echo 1 > {switch}; echo function_graph > current_tracer")
    assert "has spun for" in g.run("test lock.spin_diagnosis")
    assert g.lines("cat tracing_on") == ["0"]
    assert g.poweroff() == 0
