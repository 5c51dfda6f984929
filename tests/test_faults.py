# SPDX-License-Identifier: MIT
"""Faults of the kernel's list (`cat /proc/faults`) in a running guest: each is survived, or ends in
one clear line."""

import os
import random
import re

import pexpect
import pytest
from conftest import COMMIT, ROOT
from lib.storm import STRATEGIES

LINES = 8


@pytest.mark.parametrize("nth", [1, 2, 5])
def test_console_lost(arch, nth, guest):
    """An interrupt of the console is lost. The next line that is typed is answered, and those
    behind it."""
    g = guest(arch, smp=2, append=f"fault=console_lost@{nth}")
    late = 0
    for _ in range(LINES):
        g.send("uptime\r")
        # Some devices tell of bytes when the next one comes, and not before.
        late += g.expect([r"up \d", pexpect.TIMEOUT], timeout=3)
    assert late <= 1, f"{late} of {LINES} lines had no answer"
    g.send("echo all of it\r")
    g.expect("\nall of it")
    g.expect_prompt()
    counts = [x for x in g.lines("cat /proc/interrupts") if x.endswith("console")]
    assert sum(map(int, counts[0].split()[1:-1])) >= nth, counts
    assert g.poweroff() == 0


@pytest.mark.parametrize("nth", [1, 2, 3, 4])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_batch_traps(arch, strategy, nth, guest):
    """The task that patches takes a fault amid a batch, under `stop` while all CPUs are held. The
    panic names it, and the machine ends."""
    g = guest(arch, smp=2, append=f"panic=exit fault=batch_traps@{nth}")
    if why := g.run(f"echo {strategy} >/sys/kernel/tracing/patch_strategy"):
        pytest.skip(why)
    for line in ("echo function", "echo nop") * 2:
        g.send(f"{line} >/sys/kernel/tracing/current_tracer\r")
    g.expect(pexpect.EOF)
    said = re.findall(r"^panic: .*", g.text_before(), re.M)
    assert len(said) == 1 and "task init" in said[0], g.text_before()
    assert re.search(r" at (patch_fault_trap|stop_change|patch_step_end)\+", said[0])


# What a port's words for an access have.
ACCESS = {"store": "write|store", "load": "read|load", "fetch": "execute|fetch"}


def test_reports(arch, image, guest):
    """A fault's report has the access that was refused, its address, and the function that did it,
    or none: each by the image. At some addresses a whole table of pages is not there."""
    g = guest(arch)
    said = g.run("test trap.kills_expendable; test trap.text_is_not_writable")
    below = g.run("test arch.mmu_init.below")
    found = re.findall(r"^fault: (.*), address 0x(\w+), at (\w+)\S*, CPU", said + below, re.M)
    symbol = {name: hex(image.symbols[name])[2:] for name in ("_text", "schedule", "symbol_count")}
    symbol["data"] = next(hex(image.symbols[row[7]])[2:] for row in image.symbol_rows
                          if row[7].startswith("data.") and row[2] == "64")
    wanted = [("store", "0", "trap_store_to"), ("load", "0", "trap_load_from"),
              ("fetch", "0", "0x0")]
    if "1 passed" in said.splitlines()[-1]:
        wanted += [("store", symbol["_text"], "trap_store_to"),
                   ("store", symbol["schedule"], "trap_store_to"),
                   ("fetch", symbol["data"], f"0x{symbol['data']}"),
                   ("store", symbol["symbol_count"], "trap_store_to")]
    wanted += [("load", hex(1 << (20 + i))[2:], "mm_load_from")
               for i in range(below.count("fault: task"))]
    unit = image.u32(image.symbols["arch_fault_unit"])[0]
    assert len(found) == len(wanted) > 12, said + below
    for (words, at, where), (access, addr, name) in zip(found, wanted):
        assert re.search(ACCESS[access], words), (words, access)
        assert (access == "store") == bool(re.search(ACCESS["store"], words)), (words, access)
        assert int(at, 16) == int(addr, 16) // unit * unit and where == name, (words, at, where)


@pytest.mark.parametrize("test", ["arch.cpu_start.trap_stack", "arch.nmi_send.own_stack"])
def test_own_stacks(arch, test, image, guest, tmp_path):
    """Where CPUs stand on a stack of their own, by the image's symbols: near the top of that part
    of one array which has the CPU's index. The kernel's test sees only that no two CPUs share."""
    g = guest(arch, smp=4)
    if f"ok 1 {test} # SKIP" in (said := g.run(f"test {test}")):
        pytest.skip(said)
    size = image.size_of("meeting_place")
    word = image.bits // 8
    addr = image.symbols["meeting_place"]
    g.qmp.command("memsave", val=addr - (addr >> 63 << 64), size=size,
                  filename=str(tmp_path / "places"))
    places = image.unpack("QI"[word == 4] * (size // word), (tmp_path / "places").read_bytes())
    found = set()
    for cpu, at in enumerate(places[:4]):
        (start, stack, name), = (
            (start, int(row[2], 0) // len(places), row[7]) for row in image.symbol_rows
            if row[3] == "OBJECT"
            and (start := image.symbols[row[7]]) <= at < start + int(row[2], 0))
        assert (at - start) // stack == cpu, (name, cpu)
        assert stack - (at - start) % stack < stack // 2, (name, cpu)
        found.add(name)
    assert len(found) == 1


# The kernel's own tests, but those that PATCH_TEST() makes.
TESTS = sorted({name for glob in ("kernel/**/*_test.c", "tracer/**/*_test.c", "arch/conform/*.c")
                for path in ROOT.glob(glob) for name in re.findall(
                    r'^KTEST\(\w+,\s*"([^"]+)"\)', path.read_text(), re.M)})
# Of these, each commit has so many, each with another of its allocations failing: every n of each
# would take a day a port.
SAMPLE = 50


def run_test(guest, test: str, fault: str) -> tuple[int, list[str]]:
    """How often the fault could happen in the test, and what was lost with it. The test may fail:
    it may lack memory."""
    text = guest.run(f"test {test} {fault}", timeout=120)
    times = re.findall(r"^# \w+ could happen (\d+) times$", text, re.M)
    assert re.match(r"up \d", guest.run("uptime", check=True))
    return int(times[0]) if times else 0, re.findall(r"^# .*: \d+ before, \d+ after$", text, re.M)


@pytest.mark.parametrize("seed", range(COMMIT % 10000, COMMIT % 10000 +
                                       (20 if os.environ.get("EVERYTHING") == "1" else 1)))
def test_memory_fails_in_tests(arch, seed, guest):
    """One allocation fails in a test of the kernel. What lacks it is refused and changes nothing,
    so most tests pass when they have asked again. None loses memory, tasks or sites."""
    dice = random.Random(f"{arch} {seed}")
    g = guest(arch, smp=2, append="panic=exit")
    lost = {}
    for test in dice.sample(TESTS, SAMPLE):
        if times := run_test(g, test, "memory_fails@4000000000")[0]:
            fault = f"memory_fails@{max(1, round(times**dice.random()))}"
            lost[test, fault] = run_test(g, test, fault)[1]
    assert len(lost) > SAMPLE // 3, lost
    assert not any(lost.values()), {run: what for run, what in lost.items() if what}
    assert g.poweroff() in (0, 1)
