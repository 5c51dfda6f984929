# SPDX-License-Identifier: MIT
"""Programs that ask a QEMU which does not answer: each wait ends, and says for what it was."""

import os
import re
import signal
import subprocess

from conftest import ANY, ROOT, built, make, stop_process
from lib.qmp import socket_args

PROGRAMS = 5  # more than QEMU's socket keeps waiting


def test_extract_of_a_stopped_qemu(guest, tmp_path):
    """The first has its connection. connect() itself waits for the last. Then QEMU goes on, and
    so does the guest."""
    built(ANY)
    make("build/host/extract")
    qmp = tmp_path / "qmp"
    g = guest(ANY, extra=socket_args(qmp))
    command = [ROOT / "build/host/extract", "--elf", g.machine.elf, "--qmp", qmp, "--format",
               "text", "-o", "-"]
    stop_process(g.pid)
    running = [subprocess.Popen(command, text=True, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE) for _ in range(PROGRAMS)]
    said = {p.communicate(timeout=60)[1] for p in running}
    os.kill(g.pid, signal.SIGCONT)
    assert {p.returncode for p in running} == {1}
    whats = {re.fullmatch(r"extract: \S+: QEMU has not (.*) for 20 s; is it stopped\?\n", x)[1]
             for x in said}
    assert whats == {"answered the connection", "accepted a connection"}
    assert g.run("echo hello") == "hello\n"
    assert subprocess.run(command, stdout=subprocess.DEVNULL, timeout=60).returncode == 0
