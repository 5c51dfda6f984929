# SPDX-License-Identifier: MIT
"""Boots that gdb changes on their way: a guest stops at a function, gdb gives it other words, other
arguments, or a call, and it goes on."""

import json
import re
import shlex
import subprocess

from lib import qemu

GDB = """
import gdb, json
for command in ["set confirm off", "set pagination off"] + {setup}:
    gdb.execute(command)
def execute(command):
    "The machine may end in it, and QEMU may be faster than gdb."
    try:
        if gdb.selected_inferior().pid:
            gdb.execute(command)
    except gdb.error:
        if gdb.selected_inferior().pid:
            raise
for qemu, at, do, until, names in {runs}:
    gdb.execute("delete")
    gdb.execute("target remote | exec " + qemu)
    for command in ["thbreak *" + at, "continue"] + do + ["thbreak *" + until, "continue"]:
        execute(command)
    alive = gdb.selected_inferior().pid != 0
    print("\\nsaid", json.dumps({{name: int(gdb.parse_and_eval(name)) for name in names if alive}}))
    execute("kill")
"""


class Boots:
    """The boots of one test. Each is added, then all are run, by one gdb."""

    def __init__(self, arch: str, image, folder):
        self.machine, self.image, self.folder, self.runs = qemu.Machine(arch), image, folder, []

    def console(self, i: int):
        """The file with the console of the i-th boot."""
        return self.folder / f"console{i}"

    def add(self, at: str, do: list[str], until: str, names=(), smp: int = 2, append: str = "",
            cpu: str | None = None):
        """The guest stops at a function, gdb does these commands, and the guest goes on until
        another function, where these variables are read. cpu: QEMU's model, not the port's."""
        info = self.machine.info
        args = qemu.replace_option(info["args"], "-cpu", cpu) if cpu else info["args"]
        command = ["timeout", "120", info["qemu"], *args, "-smp", str(smp), "-m", "256M",
                   "-no-reboot", "-display", "none", "-monitor", "none", "-chardev",
                   f"file,id=console,path={self.console(len(self.runs))}", "-serial",
                   "chardev:console", "-kernel", self.image.path, "-append", append, "-S",
                   "-gdb", "stdio"]
        self.runs.append((shlex.join(map(str, command)), at, do, until, list(names)))

    def run(self) -> list[tuple[dict, str]]:
        """Of each boot the variables, or none if the machine has ended, and its console."""
        script = self.folder / "script.py"
        script.write_text(GDB.format(setup=self.machine.gdb, runs=self.runs))
        log = self.folder / "gdb.log"  # a pipe would wait for a guest that outlives gdb
        with log.open("w") as to:
            subprocess.run(["gdb-multiarch", "-nx", "-batch", self.image.path, "-x", script],
                           stdin=subprocess.DEVNULL, stdout=to, stderr=to, timeout=600)
        said = [json.loads(x) for x in re.findall("^said (.*)", log.read_text(), re.M)]
        assert len(said) == len(self.runs), log.read_text()[-2000:]
        return [(found, self.console(i).read_text(errors="replace"))
                for i, found in enumerate(said)]
