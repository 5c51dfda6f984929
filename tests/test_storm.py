# SPDX-License-Identifier: MIT
"""Storms: sites switched on and off endlessly, with each strategy, on four CPUs
that go and come at random under load. Nothing gets lost. Each commit has half of
the strategies."""

import re

import pytest
from conftest import ANY, some_of
from lib.storm import CPUS, STRATEGIES, TRACING, adds_up, loops_of, off_for, trace_stats


SOME = some_of(STRATEGIES, 2)


def choose(g, strategy: str) -> None:
    """Use that strategy. Skip where the machine refuses it and says why."""
    refused = g.run(f"echo {strategy} > {TRACING}/patch_strategy")
    if refused:
        assert strategy == "word" and len(refused.splitlines()) == 1, refused
        pytest.skip(refused.strip())


def check_stress(report: str) -> None:
    """No task was lost, all made progress, and CPUs did go and come."""
    assert "none lost" in report, report
    for kind in ("spin", "yield", "mutex-a", "ping", "pong", "fork", "sleep"):
        assert loops_of(report, kind) > 0, report
    went, came = re.search(r"went (\d+) times, came (\d+)", report).groups()
    assert went == came and int(went) > 0, report


@pytest.mark.parametrize("strategy", SOME)
def test_storm(arch, guest, alone, strategy):
    """All sites on and off. Afterwards the machine is as it was."""
    g = guest(arch, smp=4, timeout=180, append=off_for(arch, strategy))
    tasks = re.search(r"(\d+) tasks", g.run("uptime"))[1]
    g.run(f"cd {TRACING}")
    choose(g, strategy)
    g.run("stress start 2 cpus")
    for _ in range(4):
        assert g.run("repeat 25 'echo function > current_tracer; "
                     "echo nop > current_tracer'") == ""
    assert g.lines("cat enabled_functions") == []
    check_stress(g.run("stress stop"))
    assert g.lines(f"cat {CPUS}/online") == ["0-3"]
    assert re.search(r"(\d+) tasks", g.run("uptime"))[1] == tasks
    assert g.poweroff() == 0


@pytest.mark.parametrize("strategy", SOME)
def test_every_call(arch, guest, alone, strategy):
    """One function stays on while hundreds of others, that nobody calls, go on
    and off: its events are exactly the loops that its tasks count."""
    g = guest(arch, smp=4, timeout=180, append=off_for(arch, strategy))
    g.run(f"cd {TRACING}")
    choose(g, strategy)
    g.run("echo sleep_loop > set_ftrace_filter")
    g.run("echo function > current_tracer")
    g.run("stress start 4 cpus")
    for _ in range(4):
        assert g.run("repeat 20 \"echo 'ktest_*' >> set_ftrace_filter; "
                     "echo sleep_loop > set_ftrace_filter\"") == ""
    report = g.run("stress stop")
    check_stress(report)
    total = trace_stats(g, 4)
    assert total["written"] == loops_of(report, "sleep"), (total, report)
    assert adds_up(total), total
    assert g.poweroff() == 0


@pytest.mark.parametrize("strategy", SOME)
def test_everything_together(arch, guest, alone, strategy):
    """An instance traces one function, and records one event, while all functions and all
    events go on and off in the top level and in a second instance, beside triggers: the
    instance has exactly the calls that the function's tasks count."""
    g = guest(arch, smp=4, timeout=180, append=off_for(arch, strategy))
    g.run(f"cd {TRACING}")
    choose(g, strategy)
    g.run("mkdir instances/steady instances/other")
    g.run("echo sleep_loop > instances/steady/set_ftrace_filter")
    g.run("echo function > instances/steady/current_tracer")
    g.run("stress start 4 cpus")
    for _ in range(3):
        assert g.run("repeat 4 'echo function > current_tracer; "
                     "echo 1 > events/enable; "
                     "echo function > instances/other/current_tracer; "
                     "echo 1 > instances/other/events/enable; "
                     "echo sleep_loop:traceoff >> set_ftrace_filter; "
                     "echo nop > current_tracer; "
                     "echo 0 > instances/other/events/enable; "
                     "echo !sleep_loop:traceoff >> set_ftrace_filter; "
                     "echo 0 > events/enable; "
                     "echo nop > instances/other/current_tracer; "
                     "echo 1 > tracing_on'") == ""
    report = g.run("stress stop")
    check_stress(report)
    total = trace_stats(g, 4, "instances/steady/")
    assert total["written"] == loops_of(report, "sleep"), (total, report)
    assert total["dropped events"] == 0, total
    assert adds_up(total), total
    names = {line.split(": ")[1].split()[0]
             for line in g.lines("cat instances/steady/trace", timeout=120)
             if not line.startswith("#") and " <-" in line}
    assert names == {"sleep_loop"}, names
    assert g.run("rmdir instances/steady instances/other") == ""
    assert g.lines("cat enabled_functions") == []
    assert g.poweroff() == 0


def test_online_files(arch, guest):
    """Each impossible request is refused in one line and changes nothing."""
    g = guest(arch, smp=4)
    g.run(f"cd {CPUS}")
    assert "CPU 0 stays online" in g.error("echo 0 > cpu0/online")
    for text in ("2", "on", "''"):
        assert "is neither 0 nor 1" in g.error(f"echo {text} > cpu1/online")
    assert g.lines("cat online present possible") == ["0-3"] * 3
    for cpu, left in ((1, "0,2-3"), (3, "0,2"), (2, "0")):
        assert g.run(f"echo 0 > cpu{cpu}/online") == ""
        assert g.lines(f"cat online cpu{cpu}/online") == [left, "0"]
    assert g.lines("cat present") == ["0-3"]
    assert [line.split()[2] for line in g.lines("cpus")[1:]] == [
        "online", "offline", "offline", "offline"]
    for cpu in (3, 1, 2):
        assert g.run(f"echo 1 > cpu{cpu}/online") == ""
    assert g.lines("cat online") == ["0-3"]
    assert g.poweroff() == 0


def test_left_out(guest):
    """maxcpus= leaves a CPU out for good, and says so."""
    g = guest(ANY, smp=4, append="maxcpus=2")
    g.run(f"cd {CPUS}")
    assert g.lines("cat online present possible") == ["0-1", "0-1", "0-3"]
    assert "maxcpus=2" in g.error("echo 1 > cpu3/online")
    assert g.poweroff() == 0
