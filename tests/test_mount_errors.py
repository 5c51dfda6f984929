# SPDX-License-Identifier: MIT
"""The errors of the mount's files, call by call, against those of a real Linux."""

import ctypes
import errno
import mmap
import os
from pathlib import Path

from conftest import ANY
from test_mount import TRACING, mounted, pytestmark  # noqa: F401


def code(function, *args) -> str:
    """The name of its error, or ""."""
    try:
        function(*args)
    except OSError as error:
        return errno.errorcode[error.errno]
    return ""


def on(path: Path, flags: int, function) -> str:
    """The error of the open, or of the next call on the file."""
    try:
        fd = os.open(path, flags)
    except OSError as error:
        return "open " + errno.errorcode[error.errno]
    try:
        return code(function, fd)
    finally:
        os.close(fd)


def map_page(fd: int, how: int = mmap.MAP_PRIVATE) -> None:
    """mmap(), without Python's own look at the file's size."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_ssize_t
    if libc.mmap(None, 4096, mmap.PROT_READ, how, fd, ctypes.c_long(0)) == -1:
        raise OSError(ctypes.get_errno(), "mmap")


def share_page(fd: int) -> None:
    """A mapping that this machine's kernel asks the mount about."""
    map_page(fd, mmap.MAP_SHARED)


# A Linux 6.1.192 (Debian's 6.1.0-56-amd64, in QEMU) gave these, in its own tracefs, to the same
# calls in the same order. Where the mount differs, its error stands behind.
LINUX_6_1 = {
    "create": "EACCES", "create in instances": "EACCES", "unlink": "EPERM", "rename": "EPERM",
    "rename a folder": "EPERM", "link": "EPERM", "symlink": "EPERM", "mkdir": "EPERM",
    "mknod": ("EACCES", "EPERM"), "mkdir in events": "EPERM", "rmdir": "EPERM",
    "rmdir of a file": "ENOTDIR", "mkdir instance": "", "mkdir again": "EEXIST",
    "rmdir of none": "ENOENT", "rmdir while open": "EBUSY",
    "read trace_marker": "EINVAL", "read a folder": "EISDIR", "read trace_pipe": "EAGAIN",
    "read for write": "EBADF", "read none": "open ENOENT", "write available_tracers": "EINVAL",
    "write format": "EINVAL", "write stats": "EINVAL", "write a folder": "open EISDIR",
    "write for read": "EBADF", "write current_tracer": "EINVAL", "write none": "open ENOENT",
    "write tracing_on": "", "marker while off": "EBADF", "raw marker while off": "EBADF",
    "tracing_on again": "", "raw marker short": "EINVAL", "no markers": "",
    "marker without markers": "EINVAL", "markers": "",
    "splice trace": ("", "EINVAL"), "sendfile trace": ("", "EINVAL"),
    "splice tracing_on": "EINVAL", "sendfile tracing_on": "EINVAL",
    "copy_file_range trace": "EXDEV", "mmap trace": ("ENODEV", ""),
    "copy_file_range tracing_on": "EXDEV", "mmap tracing_on": ("ENODEV", ""),
    "mmap shared trace": "ENODEV", "mmap shared tracing_on": "ENODEV",
    "SEEK_END trace": "EINVAL", "SEEK_SET trace": "", "pread trace": "",
    "SEEK_END tracing_on": ("", "EINVAL"), "SEEK_SET tracing_on": "", "pread tracing_on": "",
    "fsync trace": ("EINVAL", ""), "truncate": "", "truncate to 5": ("", "EINVAL"), "chmod": "",
    "utime": "", "O_DIRECTORY": "open ENOTDIR", "below a file": "open ENOTDIR",
    "O_EXCL": "open EEXIST", "trace for both": "",
}


def errors_of(top: Path, copy: Path) -> dict[str, str]:
    """The calls of LINUX_6_1."""
    read, write, both = os.O_RDONLY, os.O_WRONLY, os.O_RDWR
    new, a = os.O_CREAT | write, top / "instances" / "a"
    _, into = os.pipe()
    out = os.open(copy, os.O_CREAT | both)

    def take(fd: int) -> None:
        os.read(fd, 60)

    def put(text: str):
        return lambda fd: os.write(fd, text.encode())

    def put_in(name: str, text: str, flags: int = write) -> str:
        return on(top / name, flags, put(text))

    found = {
        "create": code(os.open, top / "new", new),
        "create in instances": code(os.open, top / "instances" / "new", new),
        "unlink": code(os.unlink, top / "trace"),
        "rename": code(os.rename, top / "trace", top / "other"),
        "rename a folder": code(os.rename, top / "events", top / "other"),
        "link": code(os.link, top / "trace", top / "other"),
        "symlink": code(os.symlink, "trace", top / "other"),
        "mknod": code(os.mknod, top / "other"), "mkdir": code(os.mkdir, top / "other"),
        "mkdir in events": code(os.mkdir, top / "events" / "other"),
        "rmdir": code(os.rmdir, top / "events"), "rmdir of a file": code(os.rmdir, top / "trace"),
        "mkdir instance": code(os.mkdir, a), "mkdir again": code(os.mkdir, a),
        "rmdir of none": code(os.rmdir, top / "instances" / "none"),
        "rmdir while open": on(a / "trace", read, lambda fd: os.rmdir(a)),
        "read trace_marker": on(top / "trace_marker", read, take),
        "read a folder": on(top / "events", read, take),
        "read trace_pipe": on(top / "trace_pipe", read | os.O_NONBLOCK, take),
        "read for write": on(top / "tracing_on", write, take),
        "read none": on(top / "nosuch", read, take),
        "write available_tracers": put_in("available_tracers", "x"),
        "write format": put_in("events/sched/sched_switch/format", "x"),
        "write stats": put_in("per_cpu/cpu0/stats", "x"),
        "write a folder": put_in("events", "x"),
        "write for read": put_in("tracing_on", "1", read),
        "write current_tracer": put_in("current_tracer", "nosuch"),
        "write none": put_in("nosuch", "1"),
        "write tracing_on": put_in("tracing_on", "0", write | os.O_TRUNC),
        "marker while off": put_in("trace_marker", "x\n"),
        "raw marker while off": put_in("trace_marker_raw", "xxxxyyyy"),
        "tracing_on again": put_in("tracing_on", "1"),
        "raw marker short": put_in("trace_marker_raw", "x"),
        "no markers": put_in("options/markers", "0"),
        "marker without markers": put_in("trace_marker", "x\n"),
        "markers": put_in("options/markers", "1"),
    }
    for name in ("trace", "tracing_on"):
        for what, function in (
                ("splice", lambda fd: os.splice(fd, into, 100)),
                ("sendfile", lambda fd: os.sendfile(out, fd, None, 100)),
                ("copy_file_range", lambda fd: os.copy_file_range(fd, out, 100)),
                ("mmap", map_page), ("mmap shared", share_page),
                ("SEEK_END", lambda fd: os.lseek(fd, 0, os.SEEK_END)),
                ("SEEK_SET", lambda fd: os.lseek(fd, 0, os.SEEK_SET)),
                ("pread", lambda fd: os.pread(fd, 10, 1)), ("fsync", os.fsync)):
            found[f"{what} {name}"] = on(top / name, read, function)
    for name, value in (
            ("truncate", code(os.truncate, top / "tracing_on", 0)),
            ("truncate to 5", code(os.truncate, top / "tracing_on", 5)),
            ("chmod", code(os.chmod, top / "tracing_on", 0o644)),
            ("utime", code(os.utime, top / "tracing_on")),
            ("O_DIRECTORY", on(top / "trace", os.O_DIRECTORY, take)),
            ("below a file", on(top / "trace" / "x", read, take)),
            ("O_EXCL", on(top / "trace", new | os.O_EXCL, take)),
            ("trace for both", on(top / "trace", both, lambda fd: None))):
        found[name] = value
    os.close(out)
    os.close(into)
    return found


def test_errors(mounted, tmp_path):  # noqa: F811
    """Each call has the error that Linux gives it, but for those that are known to differ."""
    found = errors_of(mounted(ANY).folder / TRACING, tmp_path / "copy")
    expected = {k: v if isinstance(v, str) else v[1] for k, v in LINUX_6_1.items()}
    assert {k: v for k, v in found.items() if k in expected} == expected
