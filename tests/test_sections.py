# SPDX-License-Identifier: MIT
"""tools/sections: each section with interrupts or preemption off, counted by a plugin outside the
guest. A planted long one is seen, and its function named. tests/test_bench.py has the figures."""

import json
import re
import subprocess

import pytest
from conftest import ANY, ARCHES, ROOT, built, make, one_of
from lib import sections


def run(arch: str, text: str, *args: str) -> subprocess.CompletedProcess:
    """The tool on a kernel that runs these lines."""
    built(arch)
    return subprocess.run([str(ROOT / "tools" / "sections"), "--arch", arch, "--append",
                           f'run="{text}; poweroff"', *args], text=True, capture_output=True,
                          check=False)


@pytest.mark.parametrize("arch", one_of(ARCHES))
def test_planted(arch, tmp_path):
    """A test of the kernel's own keeps interrupts off for 3 ms, another one preemption."""
    done = run(arch, "test latency.irqsoff; test latency.preemptoff", "--limit", "100000",
               "--json", str(tmp_path / "rows"))
    assert done.returncode == 1, done.stdout + done.stderr
    rows = json.loads((tmp_path / "rows").read_text())
    for kind in "irqs", "preempt":
        # A compiler may have spin_for() inline.
        planted = [r for r in rows if r["kind"] == kind
                   and re.match("hold_|spin_for", r["hot"])]
        assert planted and abs(planted[0]["longest"] - 3000000) < 10000, rows[:3]
    assert re.search(r"^irqs: +\d+ instructions, .*: hold_irqs <- .* 99 % in (hold_irqs|spin_for)$",
                     done.stdout, re.M)


@pytest.mark.parametrize("arch", one_of(ARCHES))
def test_repeats(arch, tmp_path):
    """Two runs: the same places, the same lengths."""
    found = []
    for name in "one", "two":
        done = run(arch, "sections waking", "--json", str(tmp_path / name))
        assert "interrupts off 0," not in done.stdout, done.stdout + done.stderr
        found.append((tmp_path / name).read_text())
    assert found[0] == found[1]
    rows = [row for row in json.loads(found[0]) if row["kind"] == "irqs"]
    # 500 tasks are woken in groups of 32: kernel/LATENCY.md.
    assert 5000 < rows[0]["longest"] < 50000


def test_restored(monkeypatch):
    """Every instruction that turns interrupts off or on, as objdump writes it on each port."""
    monkeypatch.chdir(ROOT)
    for arch in ARCHES:
        built(arch)
        machine = sections.qemu.Machine(arch)
        kernel = sections.Kernel(machine, machine.elf)
        kinds = [kind for _, kind in kernel._interrupts()]
        assert kinds.count(sections.OFF) > 100 and kinds.count(sections.ON) > 30
        assert sections.RETURN in kinds
        assert sections.POP in kinds or kinds.count(sections.SAVE) >= 3


@pytest.mark.parametrize("arch", one_of(ARCHES))
def test_stop_says_it(arch, guest, tmp_path):
    """Strategy `stop` says beforehand that it will hold CPUs for more than 1 ms, and not when it
    will not."""
    for i in range(17):
        (tmp_path / f"more_{i}.c").write_text("".join(
            f"__attribute__((noipa)) unsigned int more_fn_{i}_{k}(unsigned int x)\n"
            f"{{\n\treturn x ^ {k};\n}}\n" for k in range(1000)))
    make(f"ARCH={arch}", f"MORE={tmp_path}", f"O={tmp_path}/kernel", "all")
    said = re.compile(r"^patch: stop is going to hold all CPUs for about (\d+) us, "
                      r"for (\d+) sites; other strategies hold none\r?$", re.M)
    for elf, expected in (None, 0), (tmp_path / "kernel" / "nopl.elf", 2):
        g = guest(arch, smp=2, elf=elf, append="patch_strategy=stop")
        g.run("cd /sys/kernel/tracing")
        text = g.run("echo function > current_tracer; echo nop > current_tracer")
        found = said.findall(text)
        assert len(found) == expected, text
        assert all(int(us) >= 1000 and int(sites) > 17000 for us, sites in found), text
        assert g.poweroff() == 0


@pytest.mark.parametrize("between", [
    "schedule", "schedule,no_such_function",
])
def test_refuses(between):
    """Functions that there are not."""
    done = run(ANY, "ps", "--between", between)
    assert (done.returncode, done.stderr) == (
        2, f"tools/sections: --between {between}: two functions of the kernel\n")
