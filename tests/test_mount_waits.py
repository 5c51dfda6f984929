# SPDX-License-Identifier: MIT
"""Reads of a mounted guest's files that wait: how many, for how long, and what ends them."""

import ctypes
import errno
import os
import resource
import select
import signal
import subprocess
import sys
import threading
import time

from conftest import ANY, ROOT, program, stop_process
from test_mount import TRACING, fails, mounted, pytestmark  # noqa: F401


def test_waiting_read(arch, mounted):  # noqa: F811
    """A read of trace_pipe waits, others go on. It ends when it is interrupted."""
    m = mounted(arch)
    with program(["cat", m.folder / TRACING / "trace_pipe"], text=True,
                 stdout=subprocess.PIPE) as cat:
        for i in range(3):
            m.write("trace_marker", f"mark {i}\n")
            assert cat.stdout.readline().endswith(f"tracing_mark_write: mark {i}\n")
            assert m.read("tracing_on") == "1\n"
        cat.send_signal(signal.SIGINT)
        cat.wait(timeout=30)
    fd = os.open(m.folder / TRACING / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
    assert fails(errno.EAGAIN, os.read, fd, 100)
    m.write("trace_marker", "another\n")
    assert os.read(fd, 4096).endswith(b"another\n")
    os.close(fd)


def test_signals(mounted):  # noqa: F811
    """A signal ends no read that would not wait in Linux, however slow the guest is: trace-cmd,
    whose clock ticks, takes the error for the end of a buffer."""
    if threading.current_thread() is not threading.main_thread():
        # Python lets the first thread alone take signals, and a worker of pytest's may be another.
        subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:xdist",
                        f"{__file__}::test_signals"], cwd=ROOT, check=True)
        return
    m = mounted(ANY, smp=1)
    m.write("buffer_percent", "0")
    libc, main, caught = ctypes.CDLL(None, use_errno=True), threading.get_ident(), []
    buf, pages = ctypes.create_string_buffer(4096), "per_cpu/cpu0/trace_pipe_raw"
    old = signal.signal(signal.SIGUSR1, lambda *_: caught.append(1))

    def go_on() -> None:
        for _ in range(3):
            time.sleep(0.2)
            signal.pthread_kill(main, signal.SIGUSR1)
        os.kill(m.qemu(), signal.SIGCONT)
    try:
        for name, flags, poll in (("trace", 0, 0), (pages, os.O_NONBLOCK, 0), (pages, 0, 1)):
            m.write("trace_marker", "a mark\n")
            fd = os.open(m.folder / TRACING / name, os.O_RDONLY | flags)
            if poll:
                assert select.select([fd], [], [], 30)[0]
                libc.read(fd, buf, 4096)
                m.write("trace_marker", "a mark\n")
            stop_process(m.qemu())
            helper = threading.Thread(target=go_on)
            helper.start()
            n, error = libc.read(fd, buf, 4096), ctypes.get_errno()
            helper.join()
            assert n > 0 and b"a mark\n" in buf.raw[:n], (name, n, errno.errorcode.get(error))
            assert caught.pop()
            os.close(fd)
    finally:
        signal.signal(signal.SIGUSR1, old)


def test_many_readers(mounted):  # noqa: F811
    """500 reads wait at once, other files are read meanwhile, and each reader is killed at once."""
    m = mounted(ANY)
    readers = [subprocess.Popen(["cat", m.folder / TRACING / "trace_pipe"],
                                stdout=subprocess.DEVNULL) for _ in range(500)]
    try:
        assert m.read("tracing_on") == "1\n"
        many = [os.open(m.folder / TRACING / "tracing_on", os.O_RDONLY) for _ in range(500)]
        assert "trace" in os.listdir(m.folder / TRACING)
        for fd in many:
            os.close(fd)
    finally:
        for reader in readers:
            reader.kill()
    for reader in readers:
        reader.wait(timeout=30)
    assert m.read("tracing_on") == "1\n"


WAITERS = """
import os, sys, threading
threading.stack_size(65536)
files = [os.open(sys.argv[1], os.O_RDONLY) for _ in range(1000)]
for i in range(5000):
    threading.Thread(target=os.pread, args=(files[i % 1000], 100, 0)).start()
print("begun", flush=True)
input()
print(threading.active_count() - 1, flush=True)
"""


def test_more_readers_than_requests(mounted):  # noqa: F811
    """5,000 reads wait, of 1,000 files: the guest has one a file, the mount has the others. No read
    has an error, others go on, and all are killed at once."""
    m = mounted(ANY)
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(
        resource.RLIMIT_NOFILE)[1]))
    with program(["/usr/bin/python3", "-c", WAITERS, m.folder / TRACING / "trace_pipe"],
                 text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as waiters:
        assert waiters.stdout.readline() == "begun\n"
        for _ in range(20):
            assert m.read("tracing_on") == "1\n"
        assert fails(errno.EAGAIN, os.read, os.open(
            m.folder / TRACING / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK), 100)
        waiters.stdin.write("\n")
        waiters.stdin.flush()
        assert waiters.stdout.readline() == "5000\n"
        waiters.kill()
        waiters.wait(timeout=60)
    assert m.read("tracing_on") == "1\n"
