# SPDX-License-Identifier: MIT
"""Machines that are not QEMU's usual one: CPUs with other instructions, CPUs that a port refuses,
and more memory than 32 bits can address."""

import re

import pytest
from conftest import ARCHES, FACTS
from test_boot import SITES


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


@pytest.mark.parametrize("arch,args,why", models("refused_machines"), indirect=["arch"])
def test_refused_machine(arch, args, why, run_tool):
    """The first instructions find what the CPU lacks, and say so where no C can run."""
    done = run_tool("--arch", arch, *args.split(), "--timeout", "60", "--expect",
                    f"^boot: {why}$")
    assert done.returncode == 3 and "all expected lines seen, but" in done.stdout, done.stdout


ADDRESSES = "test arch.mmu_init; test arch.*_to_*; test arch.guard_page*"


def test_much_memory(arch, run_tool):
    """Addresses of more than 32 bits, where a machine can have so much memory. It is a file, of
    which the host supplies a page where the guest touches one. Else it supplies 2 MiB."""
    size = FACTS[arch].get("most_memory", 4352)
    file = f"-object memory-backend-memfd,id=file,size={size}M -machine memory-backend=file"
    done = run_tool("--arch", arch, "--smp", "2", "--memory", str(size),
                    *(f"--qemu-arg={x}" for x in file.split()), "--append",
                    f'run="{ADDRESSES}; poweroff"', "--expect", f"{arch}: 2 CPUs, {size} MiB$")
    assert done.returncode == 0, done.stdout
