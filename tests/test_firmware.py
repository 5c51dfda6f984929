# SPDX-License-Identifier: MIT
"""What a firmware says, changed before the kernel reads it: what the kernel gets, or why it refuses
to boot. Ports with device trees have tests/test_fdt.py. And what only gdb sees of a port on its way
from the first instruction to the machine's end. One boot a row."""

import re
import tomllib

import pytest
from conftest import ARCHES, ROOT
from gdbboots import Boots

SAID = {a: tomllib.loads((ROOT / "boot" / a / "said.toml").read_text()) for a in ARCHES}


def values(row: dict) -> dict[str, int]:
    """The values that gdb must find, by expression."""
    return {f"boot_info.{name}": n for name, n in row.get("gets", {}).items()} | \
        row.get("looks", {})


@pytest.mark.parametrize("arch", [a for a in ARCHES if "said" in SAID[a]])
def test_words(arch, image, tmp_path):
    """The kernel gets what the firmware says, and words that make no sense have a refusal."""
    boots, rows = Boots(arch, image, tmp_path), SAID[arch]["said"]
    for row in rows:
        assert set(row) <= {"why", "smp", "cpu", "do", "gets", "refused", "at", "until", "looks"}
        boots.add(row.get("at", SAID[arch].get("at", "boot_main")), row.get("do", []),
                  row.get("until", "kernel_main"), values(row), row.get("smp", 3),
                  "a b" if "at" not in row else "run=poweroff", row.get("cpu"))
    for row, (found, console) in zip(rows, boots.run()):
        assert found == values(row), row["why"]
        refusal = re.search(r"^boot: (.*?)\r*$", console, re.M)
        assert bool(refusal) == ("refused" in row), f"{row['why']}: {refusal}"
        assert not refusal or re.fullmatch(row["refused"], refusal[1]), refusal[1]
