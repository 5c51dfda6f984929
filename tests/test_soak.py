# SPDX-License-Identifier: MIT
"""Soak: a minute of random use on a port, and each book with a mistake in it. More minutes:
make soak ARCH=... MINUTES=..."""

import re
import subprocess

import pytest
from conftest import ANY, ARCHES, COMMIT, ROOT, built, make, one_of
from lib.books import Books, Wrong
from lib.port import find_program
from lib.stacks import gdb_socket
from lib.storm import TRACING


def soak(*args: str) -> subprocess.CompletedProcess:
    """tools/soak with these arguments."""
    return subprocess.run([str(ROOT / "tools" / "soak"), *args], text=True, capture_output=True)


@pytest.mark.parametrize("port", one_of(ARCHES))
def test_a_minute(port, alone):
    """Every book is right after it, and all functions went on and off. Another port for each
    commit, and another seed."""
    make("build/host/tracefs")
    built(port)
    done = soak("--arch", port, "--seed", str(COMMIT % 10000))
    assert done.returncode == 0, done.stdout + done.stderr
    seed, toggles = re.search(r"1 minutes, seed (\d+), (\d+) toggles .* 1 times all books right",
                              done.stdout).groups()
    assert int(toggles) > 1, seed


def test_bad_arguments():
    """One line that says what is accepted."""
    for args, said in [(("--arch", "vax"), "choose one of"),
                       (("--arch", ANY, "--minutes", "0"), "must be a number from 1"),
                       (("--arch", ANY, "--minutes", "ten"), "must be a number from 1"),
                       (("--arch", ANY, "--smp", "1"), "must be a number from 2 to 32"),
                       (("--arch", ANY, "--elf", "/nowhere"), "there is no /nowhere")]:
        done = soak(*args)
        assert done.returncode == 2 and not done.stdout, done
        assert done.stderr.count("\n") == 1 and said in done.stderr, done.stderr


def test_a_broken_order_is_named():
    """The kernel breaks a rule on purpose: one line with the seed, and what was typed last."""
    built(ANY)
    done = soak("--arch", ANY, "--seed", "4", "--append", "fault=sync_early")
    assert done.returncode == 1, done.stdout + done.stderr
    first = done.stdout.splitlines()[1]
    assert first.startswith(f"soak: {ANY}: seed 4, minute 0: order: broken: "), done.stdout
    assert "| $ echo function > current_tracer" in done.stdout


@pytest.fixture
def books(guest, tmp_path):
    """Those of a guest, gdb(commands), which may write into its memory, and its kernel's image."""
    image = built(ANY)
    g = guest(ANY, smp=2)
    for i in range(40):  # the shell's history is full
        g.run(f"echo {i}")
    g.run(f"cd {TRACING}; stress start 1 sleep; stress stop")
    socket = gdb_socket(g.qmp, str(tmp_path))

    def gdb(*commands: str) -> None:
        done = subprocess.run(
            [find_program("gdb-multiarch"), "-nx", "-q", "-batch", image.path,
             *(word for c in [*g.machine.gdb, f"target remote {socket}", *commands]
               for word in ("-ex", c))], text=True, capture_output=True, check=True)
        assert "Cannot access" not in done.stderr, done.stderr
    return Books(g, image.path, 2), gdb, image


def poke(address: int, data: bytes) -> list[str]:
    """gdb's commands that write it."""
    return [f"set {{unsigned char}}{address + i:#x} = {byte}" for i, byte in enumerate(data)]


def is_wrong(check, said: str) -> None:
    """The book names the mistake."""
    with pytest.raises(Wrong, match=said):
        check()


def test_memory_from_outside(books):
    """Other bytes in text, and a call that is on while the kernel says that it is off."""
    book, gdb, image = books
    book.guest.run("echo stress_leaf > set_ftrace_filter; echo function > current_tracer")
    book.memory()
    site, = (s for s in image.sites if image.function_at(s).name == "stress_leaf")
    on = book.text.read(site, 16)
    is_wrong(book.machine, r"memory: all is off, and stress_leaf\+")
    book.guest.run("echo nop > current_tracer")
    book.memory()
    book.machine()
    off = book.text.read(site, 16)
    gdb(*poke(site, on))
    is_wrong(book.memory, "memory: stress_leaf: calls are on in 1 functions, .* names 0")
    gdb(*poke(site, off))
    book.memory()
    at = image.symbols["cmd_stress"] + 40
    gdb(*poke(at, bytes([book.text.read(at, 1)[0] ^ 255])))
    is_wrong(book.memory, r"memory: cmd_stress\+0x28 has .*, which is neither on nor off")
    is_wrong(book.machine, r"memory: all is off, and cmd_stress\+0x28")


def test_counts(books):
    """Calls that were not made, and an event that a buffer has lost."""
    book, gdb, _ = books
    book.guest.run("echo sleep_loop > set_ftrace_filter; echo function > current_tracer")
    book.guest.run("stress start 1 sleep")
    book.guest.run("head -n 20 trace")
    report = book.guest.run("stress stop")
    book.calls(report, "")
    book.counts()
    book.guest.run("stress start 1 sleep; stress stop")
    is_wrong(lambda: book.calls(report, ""), "calls of sleep_loop, and")
    book.counts()
    gdb("set var rings[1].overwritten += 1")
    is_wrong(book.counts, "counts: per_cpu/cpu1: .*'overrun': 1")


def test_machine(books):
    """A task, pages and objects that stay."""
    book, _, _ = books
    for on, off, said in [("stress start 1 sleep", "stress stop", "machine: 5 tasks, and 4"),
                          ("echo 1 > snapshot", "echo 0 > snapshot", "free pages, and"),
                          ("echo 1 > set_ftrace_pid", "echo > set_ftrace_pid", "objects, and")]:
        book.guest.run(on)
        is_wrong(book.machine, said)
        book.guest.run(off)
        book.machine()
