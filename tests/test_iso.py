# SPDX-License-Identifier: MIT
"""A CD image, of each port that has one: it boots in QEMU and in Bochs, what GRUB says reaches
the kernel, and verdicts are those of a kernel that QEMU loads. Damaged words of a loader are
refused, on the host."""

import re
import subprocess

import pytest
from conftest import ARCHES, ROOT, make
from lib import port

WITH_ISO = [arch for arch in ARCHES if "iso" in port.read(arch)]
COPIES = 20000


def reader(arch, source, folder, *args):
    """What tests/iso/SOURCE.c, built with the port's reader of firmware, says."""
    subprocess.run(["gcc", "-std=gnu2x", "-g", "-O1", "-w", f"-Iarch/{arch}", "-I.",
                    f'-DFIRMWARE="boot/{arch}/firmware.c"',
                    "-fsanitize=address,undefined", "-fno-sanitize-recover",
                    f"tests/iso/{source}.c", "-o", str(folder / source)], cwd=ROOT, check=True)
    done = subprocess.run([str(folder / source), *args], text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("source", ["tags", "tables"])
@pytest.mark.parametrize("arch", WITH_ISO)
def test_damaged(arch, source, tmp_path):
    """Each list is read, or refused in one line. Nothing outside of it is read, no sum wraps, and
    no CPU is there twice."""
    said = reader(arch, source, tmp_path, str(COPIES))
    through, refused = map(int, re.match(r"(\d+) read, (\d+) refused", said).groups())
    assert through + refused == COPIES and min(through, refused) > COPIES / 100


@pytest.mark.parametrize("arch", WITH_ISO)
def test_each_value(arch, tmp_path):
    """The kernel gets what right words say. Each of their mistakes has a refusal of its own."""
    assert re.fullmatch(r"\d\d mistakes\n", reader(arch, "firmware", tmp_path))


@pytest.mark.parametrize("arch", WITH_ISO, indirect=True)
def test_make_iso(arch):
    """The image that make writes, by QEMU's bare -cdrom. Memory and CPUs are those that this
    machine has, the command line is APPEND's."""
    make(f"ARCH={arch}", "iso", 'APPEND=maxcpus=3 run="cat /proc/cmdline; test ops.one*; poweroff"')
    info = port.read(arch)
    done = subprocess.run(
        [info["qemu"], *info["args"], "-smp", "4", "-m", "192M", "-no-reboot", "-display", "none",
         "-serial", "stdio", "-cdrom", str(ROOT / "build" / arch / "nopl.iso")],
        stdin=subprocess.DEVNULL, text=True, capture_output=True, timeout=300)
    text = done.stdout.replace("\r", "")
    assert re.search(rf"^nopl \S+ {arch}: 3 CPUs, 192 MiB$", text, re.M), text
    assert '\nmaxcpus=3 "run=cat /proc/cmdline; test ops.one*; poweroff"\n' in text
    assert "\n# nopl tests: 1 passed, 0 failed, 0 skipped\n" in text
    assert done.returncode == 33, text


@pytest.mark.parametrize("arch", WITH_ISO, indirect=True)
@pytest.mark.parametrize("machine", ["cdrom", "bochs"])
def test_verdicts(machine, arch, run_tool):
    """Tests that pass, and a status that is none of success."""
    done = run_tool("--arch", arch, "--smp", "2", "--machine", machine, "--append",
                    'run="test patch.s*; poweroff"', "--expect", rf"{arch}: 2 CPUs, 256 MiB",
                    "--expect", "^# nopl tests: [1-9]")
    assert done.returncode == 0, done.stdout
    done = run_tool("--arch", arch, "--machine", machine, "--append", 'run="poweroff 3"',
                    "--expect", "nopl")
    assert done.returncode == 3, done.stdout
    assert "the kernel ended with status 3" in done.stdout


def test_refused(run_tool):
    """In one line: a port without a CD, a text that GRUB would change, QEMU's own words."""
    without = next(x for x in ARCHES if x not in WITH_ISO)
    for args, why in [
            (("--arch", without, "--machine", "cdrom"), f"{without} has no CD image"),
            (("--arch", WITH_ISO[0], "--machine", "cdrom", "--append", "x='"), "on a CD"),
            (("--arch", WITH_ISO[0], "--machine", "bochs", "--icount"), "that is QEMU's")]:
        done = run_tool(*args)
        assert done.returncode == 2 and why in done.stderr, done.stdout + done.stderr
        assert done.stderr.count("\n") == 1
