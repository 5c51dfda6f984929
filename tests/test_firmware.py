# SPDX-License-Identifier: MIT
"""What a firmware says, changed before the kernel reads it: what the kernel gets, or why it refuses
to boot. One boot a change, by gdb. Ports with device trees have tests/test_fdt.py."""

import json
import re
import shlex
import subprocess
import tomllib

import pytest
from conftest import ARCHES, ROOT
from lib import qemu

SAID = {a: tomllib.loads((ROOT / "boot" / a / "said.toml").read_text()) for a in ARCHES}
GDB = """
import gdb, json
# Else gdb asks twice where QEMU is slow to begin, and takes the first answer for another's.
for command in ["set confirm off", "set pagination off", "set remotetimeout 300"] + {setup}:
    gdb.execute(command)
def execute(command):
    "QEMU may be faster than gdb in ending."
    try:
        gdb.execute(command)
    except gdb.error:
        if gdb.selected_inferior().pid:
            raise
for qemu, do, names in {runs}:
    gdb.execute("delete")
    gdb.execute("target remote | exec " + qemu)
    gdb.execute("thbreak {at}")
    gdb.execute("continue")
    for command in do:
        gdb.execute(command)
    gdb.execute("thbreak kernel_main")
    execute("continue")
    booted = gdb.selected_inferior().pid != 0
    print("\\nsaid", json.dumps({{name: int(gdb.parse_and_eval("boot_info." + name))
                                  for name in names if booted}}))
    if booted:
        execute("kill")
"""


@pytest.mark.parametrize("arch", [a for a in ARCHES if "said" in SAID[a]])
def test_words(arch, image, tmp_path):
    """The kernel gets what the firmware says, and words that make no sense have a refusal."""
    runs, info, rows = [], qemu.port.read(arch), SAID[arch]["said"]
    for i, row in enumerate(rows):
        assert set(row) <= {"why", "smp", "do", "gets", "refused"}
        command = [info["qemu"], *info["args"], "-smp", str(row.get("smp", 3)), "-m", "256M",
                   "-no-reboot", "-display", "none", "-monitor", "none", "-chardev",
                   f"file,id=console,path={tmp_path}/{i}", "-serial", "chardev:console",
                   "-kernel", image.path, "-append", "a b", "-S", "-gdb", "stdio"]
        runs.append((shlex.join(map(str, command)), row.get("do", []), list(row.get("gets", {}))))
    script = tmp_path / "script.py"
    script.write_text(GDB.format(setup=info.get("gdb", []), at=SAID[arch].get("at", "boot_main"),
                                 runs=runs))
    done = subprocess.run(["gdb-multiarch", "-nx", "-batch", image.path, "-x", script], text=True,
                          capture_output=True, timeout=600)
    said = [json.loads(x) for x in re.findall("^said (.*)", done.stdout, re.M)]
    for i, (row, found) in enumerate(zip(rows, said)):
        assert found == row.get("gets", {}), row["why"]
        refusal = re.search(r"^boot: (.*?)\r*$", (tmp_path / str(i)).read_text(), re.M)
        assert bool(refusal) == ("refused" in row), f"{row['why']}: {refusal}"
        assert not refusal or re.fullmatch(row["refused"], refusal[1]), refusal[1]
    assert len(said) == len(rows), done.stdout[-2000:] + done.stderr[-2000:]
