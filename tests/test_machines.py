# SPDX-License-Identifier: MIT
"""Machines that are not QEMU's usual one: CPUs with other instructions, CPUs that a port refuses,
and more memory than 32 bits can address."""

import re

import pytest
from conftest import ARCHES, FACTS
from test_boot import SITES
from test_firmware import SAID


def models(fact: str) -> list[tuple]:
    """The rows of that fact, of each port that has some."""
    return [(arch, *row) for arch in ARCHES for row in FACTS[arch].get(fact, [])]


@pytest.mark.parametrize("arch,cpu,append,expected", models("nops"), indirect=["arch"])
def test_nop_of_the_cpu(arch, cpu, append, expected, guest):
    """The NOP that each CPU model must get, as the port's patch.c says, and what nop= makes of
    it."""
    g = guest(arch, cpu=cpu, append=append)
    assert expected in SITES.search(g.boot_text)[6]
    assert g.poweroff() == 0


@pytest.mark.parametrize("arch,cpu,append,why", models("no_word"), indirect=["arch"])
def test_no_word_on_the_cpu(arch, cpu, append, why, guest):
    """One store is no strategy where the CPU's maker promises nothing, whichever NOP there is."""
    g = guest(arch, cpu=cpu, append=f"patch_strategy=word {append}", refused_parameters=True)
    assert re.search(rf"^param: patch_strategy=word is not possible on this CPU: {why}",
                     g.boot_text, re.M), g.boot_text


MACHINES = [(arch, row) for arch in ARCHES for row in SAID[arch].get("machine", [])]


@pytest.mark.parametrize("arch, row", [
    pytest.param(arch, row, id=f"{arch}-{row['why']}") for arch, row in MACHINES],
    indirect=["arch"])
def test_other_machines(arch, row, run_tool, tmp_path):
    """On a machine that the kernel cannot run on, its first instructions say why, and end it. On
    one that differs from what all other tests have, the port keeps its contract."""
    assert set(row) in ({"why", "qemu", "refused"}, {"why", "qemu", "test"})
    tests, log = row.get("test", ""), tmp_path / "console"
    done = run_tool("--arch", arch, "--smp", "2" if tests else "1", *row["qemu"], "--log", str(log),
                    "--append", f'run="test {tests}; poweroff"')
    assert done.returncode == (0 if tests else 3), done.stdout
    last = log.read_text().splitlines()[-1:]
    assert tests or last == [f"boot: {row['refused']}"], done.stdout


ADDRESSES = "test arch.mmu_init; test arch.*_to_*; test arch.guard_page*"


def test_much_memory(arch, run_tool):
    """Addresses of more than 32 bits, where a machine can have so much memory. The memory is a
    file, of which the host supplies single pages. Of other memory it supplies 2 MiB at each
    touch."""
    size = FACTS[arch].get("most_memory", 4352)
    file = f"-object memory-backend-memfd,id=file,size={size}M -machine memory-backend=file"
    done = run_tool("--arch", arch, "--smp", "2", "--memory", str(size),
                    *(f"--qemu-arg={x}" for x in file.split()), "--append",
                    f'run="{ADDRESSES}; poweroff"', "--expect", f"{arch}: 2 CPUs, {size} MiB$")
    assert done.returncode == 0, done.stdout
