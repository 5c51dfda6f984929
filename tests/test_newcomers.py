# SPDX-License-Identifier: MIT
"""Ports that are being taken in ("newcomer" in machine.json): such a port is in no other file's
tests. It is built, boots, and passes the tests in its kernel."""

import re

import pytest
from conftest import NEWCOMERS, built

WHOLE = re.compile(r"PASS: (\d+) passed, 0 failed, \d+ skipped")
NOW = {1: 400, 4: 450}  # tests that pass at least, by the number of CPUs


@pytest.mark.parametrize("smp", NOW)
@pytest.mark.parametrize("arch", NEWCOMERS)
def test_kernel_tests_pass(arch, smp, alone, run_tool):
    """The verdict needs the kernel's own status 0, too (lib/qemu.py)."""
    done = run_tool("--arch", arch, "--smp", str(smp), "--elf", str(built(arch).path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(WHOLE.search(done.stdout)[1]) >= NOW[smp], done.stdout
