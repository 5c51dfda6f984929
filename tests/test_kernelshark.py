# SPDX-License-Identifier: MIT
"""KernelShark draws a guest's trace: CPUs and a task."""

import os
import shutil
import struct
import subprocess
import time
from collections import Counter
from pathlib import Path

from conftest import ROOT, built, make
from lib.qmp import socket_args

TRACING = "/sys/kernel/tracing"
# Where KernelShark 2.2 draws the plots in its first window. They are black on white without
# events.
ROWS, COLUMNS = (140, 284), (96, 610)
LOOKS = 60  # seconds for a program on a slow machine


def colours(screen: Path) -> Counter:
    """The colours that are not grey in the plots, and how many pixels have each, of an X
    server's screen, which it keeps in an XWD file."""
    data = screen.read_bytes()
    words = struct.unpack(">25I", data[:100])
    header, line, palette = words[0], words[12], words[19]
    first = header + 12 * palette
    found = Counter()
    for y in range(*ROWS):
        at = first + y * line
        found.update(struct.iter_unpack("<I", data[at + 4 * COLUMNS[0]:at + 4 * COLUMNS[1]]))

    def is_colour(pixel: int) -> bool:
        parts = [pixel >> shift & 0xff for shift in (0, 8, 16)]
        return max(parts) - min(parts) > 120

    return Counter({p: n for (p,), n in found.items() if is_colour(p)})


def looks_at(trace: Path, home: Path, tasks: str, done) -> Counter:
    """Start KernelShark on a trace until done(colours of the screen), or in vain."""
    # As another user than root, which KernelShark would first ask about.
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] \
        if os.geteuid() == 0 else []
    env = os.environ | {"HOME": str(home), "XDG_RUNTIME_DIR": str(home),
                        "QT_QPA_PLATFORM": "xcb"}
    read, write = os.pipe()
    with subprocess.Popen(["Xvfb", "-screen", "0", "1024x768x24", "-ac", "-fbdir", home,
                           "-displayfd", str(write)], pass_fds=[write],
                          stderr=subprocess.DEVNULL) as server:
        os.close(write)
        try:
            env["DISPLAY"] = ":" + os.read(read, 16).decode().strip()
            with subprocess.Popen([*user, "kernelshark", "-i", trace, "--cpu", "0,1",
                                   "--pid", tasks], env=env, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) as program:
                end = time.monotonic() + LOOKS
                seen = Counter()
                while not done(seen) and time.monotonic() < end:
                    time.sleep(0.5)
                    seen = colours(home / "Xvfb_screen0")
                program.kill()
        finally:
            os.close(read)
            server.kill()
    return seen


def test_plots(arch, guest, tmp_path):
    """Two CPUs and the shell's task, which has switched: KernelShark gives each task a
    colour of its own."""
    built(arch)
    make("build/host/extract")
    home = Path("/tmp") / f"kernelshark-{os.getpid()}"
    home.mkdir()
    home.chmod(0o777)
    try:
        qmp = tmp_path / "qmp"
        g = guest(arch, smp=2, extra=socket_args(qmp))
        g.run(f"echo 1 > {TRACING}/events/sched/enable; stress start 6; ps; stress stop; "
              f"echo 0 > {TRACING}/tracing_on", timeout=120)
        subprocess.run([ROOT / "build/host/extract", "--elf", g.machine.elf, "--qmp", qmp,
                        "-o", home / "trace.dat"], check=True, timeout=120)

        def is_drawn(seen: Counter) -> bool:
            return len(seen) >= 5 and seen.total() > 2000

        seen = looks_at(home / "trace.dat", home, "2", is_drawn)
        assert is_drawn(seen), seen
    finally:
        shutil.rmtree(home)
