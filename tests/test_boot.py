# SPDX-License-Identifier: MIT
"""Every architecture boots with 1, 2, 4 and 8 CPUs, some with 32, and passes its in-kernel
tests, under -icount too, where an interrupt may come between any two
instructions, and the boot line keeps its promises. Of three of these six boots
each commit has one."""

import re
import time
import subprocess

import pytest
from conftest import ARCHES, FACTS, ROOT, one_of, some_of
from lib.port import MAX_CPUS

SITES = re.compile(
    r"^sites: (\d+) calls \+ (\d+) jumps = (\d+) patched \+ (\d+) skipped \+ (\d+) failed, "
    r"nop=(.+), (\d+) us, (\d+) ns/site$", re.M)


SOME = one_of(["1", "2", "4", "1 --icount"])


@pytest.mark.parametrize("smp", ["2 --icount", *(smp for smp in SOME if smp != "4")])
def test_kernel_tests(arch, smp, run_tool):
    done = run_tool("--arch", arch, "--smp", *smp.split())
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("smp", ["8", *(smp for smp in SOME if smp == "4")])
def test_kernel_tests_of_many_cpus(arch, smp, run_tool, alone):
    done = run_tool("--arch", arch, "--smp", smp)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("arch", one_of(ARCHES), indirect=True)
def test_slow_machine(arch, run_tool):
    """31 million instructions a second, as on a busy host, but the same each time: no task needs
    all of a CPU's time, and no test takes a sleep to be longer than the work beside it."""
    done = run_tool("--arch", arch, "--smp", "2", "--icount", "5")
    assert done.returncode == 0, done.stdout


def test_three_cpus(arch, run_tool):
    """Tests that need as many, and interrupts at any instruction."""
    done = run_tool("--arch", arch, "--smp", "3", "--icount", "--append",
                    'run="test arch.ipi*; test sched.place*; poweroff"')
    assert done.returncode == 0 and "0 skipped" in done.stdout, done.stdout


def test_cpus_that_never_arrive(arch, run_tool):
    """Started at boot, and away for ever: waits for all tasks pass their idle tasks over.
    The boot waits for the CPU, which would be a hang if the tests came first."""
    done = run_tool("--arch", arch, "--smp", "2", "--append",
                    'fault=cpu_join_late run="uptime; test ops*; poweroff"')
    assert done.returncode == 0, done.stdout


# Those of a boot, and of the first lines on some ports. Of these each commit has three.
ALLOCATIONS = list(range(1, 250))


@pytest.mark.parametrize("nth", some_of(ALLOCATIONS, len(ALLOCATIONS) // 3))
def test_memory_fails_at_boot(arch, nth, guest):
    """One allocation fails: the kernel ends in one line that says so. Or it boots, a line that is
    typed lacks memory at most, and the next ones do what they do in any guest."""
    try:
        g = guest(arch, smp=2, append=f"fault=memory_fails@{nth} panic=exit",
                  refused_parameters=True)
    except AssertionError as error:
        panic, = re.findall(r"^panic: (.*)", str(error), re.M)
        assert "no memory" in panic, error
        return
    said = "".join(g.run(line) for line in (
        "trace start -p function -e sched_switch", "trace reset", "repeat 60 'uptime | tail'"))
    assert said.count("memory") <= 1, said
    assert re.match(r"up \d", g.run("uptime", check=True))
    assert g.poweroff() == 0


@pytest.mark.parametrize("smp", [1, 8])
def test_boot_lines(arch, smp, image, guest):
    g = guest(arch, smp=smp)
    text = g.boot_text
    assert re.search(rf"^nopl \d+\.\d+ {arch}: {smp} CPUs?, 256 MiB$", text,
                     re.M), text
    counts = SITES.search(text)
    assert counts, text
    calls, jumps, patched, skipped, failed = map(int, counts.groups()[:5])
    assert calls == len(image.sites) + len(image.kept)
    assert jumps == image.section_size(".jump_labels") // (3 * image.bits // 8)
    assert calls + jumps == patched + skipped + failed
    assert failed == 0 and patched > 100 and jumps > 0
    assert g.poweroff() == 0


MOST = {arch: FACTS[arch].get("most_cpus", MAX_CPUS) for arch in ARCHES}


@pytest.mark.parametrize("arch", one_of(ARCHES), indirect=True)
def test_more_cpus_than_supported(arch, guest):
    """Four more than there can be: as many as can be run, and the rest is said."""
    g = guest(arch, smp=MOST[arch] + 4)
    assert re.search(rf"^nopl \S+ {arch}: {MOST[arch]} CPUs", g.boot_text, re.M)
    assert f"4 more CPUs are left out: nopl can run on {MOST[arch]} here" in g.boot_text
    assert g.poweroff() == 0


@pytest.mark.parametrize("arch", one_of([a for a in ARCHES if MOST[a] == MAX_CPUS]),
                         indirect=True)
def test_most_cpus(arch, run_tool):
    """All CPUs that nopl can have come up, and text is patched under each of them. So many threads
    wait for one another for minutes on a busy host: with --icount all CPUs share one."""
    done = run_tool("--arch", arch, "--smp", str(MAX_CPUS), "--icount", "--append",
                    'run="test patch.*; poweroff"')
    assert done.returncode == 0, done.stdout


def test_maxcpus(arch, guest):
    g = guest(arch, smp=4, append="maxcpus=2")
    assert re.search(rf"^nopl \S+ {arch}: 2 CPUs", g.boot_text, re.M)
    online = [x for x in g.lines("cpus") if re.match(r"\s*\d+ .* online ", x)]
    assert len(online) == 2
    assert g.poweroff() == 0


def test_debug(arch):
    """make debug: stopped at the first instruction, gdb finds kernel_main."""
    done = subprocess.run(
        [str(ROOT / "tools" / "run"), "--arch", arch, "--smp", "2", "--debug"],
        input="break kernel_main\ncontinue\nbacktrace\nkill\nquit\n",
        text=True, capture_output=True, timeout=60)
    assert re.search(r"Breakpoint 1.* kernel_main \(\)", done.stdout), \
        done.stdout + done.stderr


def test_nop_choice_runs(arch, guest, run_tool):
    """Every NOP that a port offers works: trace with it."""
    offered = re.search(r"accepted: (.*)|takes (.*)",
                        guest(arch, append="nop=none-such",
                              refused_parameters=True).boot_text)
    names = (offered[1] or offered[2]).replace(",", " ").split()
    assert names
    for name in names:
        g = guest(arch, smp=2, append=f"nop={name}")
        assert name in SITES.search(g.boot_text)[6]
        g.run("echo function > /sys/kernel/tracing/current_tracer")
        assert " <-" in g.run("cat /sys/kernel/tracing/trace | head -20")
        g.run("echo nop > /sys/kernel/tracing/current_tracer")
        assert g.poweroff() == 0


def test_console_waits_for_its_reader(arch, guest):
    """The console waits for its reader: QEMU's output is full long before this reads on."""
    g = guest(arch, smp=2)
    once = g.lines("cat /proc/kallsyms")
    assert len(once) > 500
    g.send("cat /proc/kallsyms\r")
    time.sleep(3)
    g.expect_prompt()
    assert g.text_before().splitlines()[1:] == once
    assert g.poweroff() == 0


@pytest.mark.parametrize("arch, loop", [
    (arch, name) for arch in ARCHES for name in FACTS[arch].get("measured", [])],
    indirect=["arch"])
def test_measured_loop_lies_in_one_page(arch, loop, image):
    """A port that measures its NOPs by such loops chooses another one where a loop goes on in
    another page: QEMU is slow there."""
    first, = image.by_name[loop]
    assert first.addr // 4096 == (first.addr + first.size - 1) // 4096
