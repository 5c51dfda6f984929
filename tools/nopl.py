# SPDX-License-Identifier: MIT
"""nopl for other people's tests.

    from nopl import Guest

    def test_something():
        with Guest("riscv", smp=4) as guest:
            assert guest.run("echo hello") == "hello\\n"

tools/ must be on PYTHONPATH. With `pytest -p nopl` there is the fixture `nopl_guest` as well: it
starts guests, and ends them with the test. tests/README.md says more.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import pytest  # noqa: E402

from lib.guest import Guest  # noqa: E402
from lib.port import UsageError, architectures  # noqa: E402
from lib.qemu import Boot, Console, Machine, Verdict, boot, judge  # noqa: E402

__all__ = ["Boot", "Console", "Guest", "Machine", "UsageError", "Verdict", "architectures",
           "boot", "judge", "nopl_guest"]


@pytest.fixture
def nopl_guest():
    """Boot a guest: nopl_guest(arch, smp=2, append="...", elf=...). All end with the test."""
    guests = []

    def start(arch: str, **options) -> Guest:
        guests.append(Guest(arch, **options))
        return guests[-1]

    yield start
    for guest in guests:
        guest.close()
