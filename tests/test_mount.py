# SPDX-License-Identifier: MIT
"""The guest's control files on this machine: tools/run --mount, tools/inside, and programs
that know nothing of nopl."""

import ctypes
import errno
import mmap
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import threading
import time
from pathlib import Path

import pytest

from conftest import ANY, ROOT, built, make, program, stop_process
from guest import Guest, function_events

pytestmark = pytest.mark.skipif(not os.access("/dev/fuse", os.R_OK | os.W_OK),
                                reason="no /dev/fuse that may be used here")
TRACING = Path("sys/kernel/tracing")


class Mounted:
    """A guest that was started by tools/run --mount."""

    def __init__(self, arch: str, folder: Path, smp: int = 2, without: str = ""):
        make("build/host/tracefs")
        self.folder, self.text = folder, ""
        self.process = subprocess.Popen(
            ["tools/run", "--arch", arch, "--smp", str(smp), "--interactive",
             "--mount", folder, *(["--mount-without", without] if without else [])],
            cwd=ROOT, stdin=subprocess.PIPE, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=1)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        self.wait(lambda: "tracefs: mounted on" in self.text)

    def _read(self) -> None:
        while piece := os.read(self.process.stdout.fileno(), 4096):
            self.text += piece.decode(errors="replace")

    def wait(self, condition) -> None:
        """Until it is true. A minute means that something hangs."""
        end = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < end, self.text[-2000:]
            time.sleep(0.05)

    def type(self, line: str) -> None:
        """At the guest's prompt."""
        self.process.stdin.write(line + "\r")
        self.process.stdin.flush()

    def qemu(self) -> int:
        """QEMU's process."""
        found = subprocess.run(["pgrep", "-P", str(self.process.pid), "qemu"], text=True,
                               capture_output=True, check=True)
        return int(found.stdout.split()[0])

    def read(self, name: str) -> str:
        """A file of the tracer, whole."""
        return (self.folder / TRACING / name).read_text()

    def write(self, name: str, text: str, flags: int = os.O_TRUNC) -> None:
        """In one write(), whose error is this one's."""
        fd = os.open(self.folder / TRACING / name, os.O_WRONLY | flags)
        try:
            assert os.write(fd, text.encode()) == len(text)
        finally:
            os.close(fd)

    def inside(self, *command: str, timeout: float = 60) -> subprocess.CompletedProcess:
        """A program that takes the guest for this machine."""
        return subprocess.run(["tools/inside", self.folder, *command], cwd=ROOT, text=True,
                              capture_output=True, timeout=timeout)

    def is_gone(self) -> bool:
        """Nothing is mounted there any more."""
        return not os.path.ismount(self.folder)

    def close(self) -> None:
        """End it, however it stands."""
        self.process.kill()
        self.process.wait()
        subprocess.run(["umount", "-l", self.folder], capture_output=True)


@pytest.fixture
def mounted(tmp_path):
    """mounted(arch, smp=n, without=glob)"""
    open_ones = []

    def start(arch: str, **options) -> Mounted:
        built(arch)
        folder = tmp_path / f"guest{len(open_ones)}"
        folder.mkdir()
        open_ones.append(Mounted(arch, folder, **options))
        return open_ones[-1]
    yield start
    for m in open_ones:
        m.close()


def answer_of(function, *args):
    """Its result, or its error's number."""
    try:
        return function(*args)
    except OSError as error:
        return error.errno


def fails(number: int, function, *args) -> bool:
    """Does it fail with this error?"""
    try:
        function(*args)
    except OSError as error:
        return error.errno == number
    return False


def test_files(arch, mounted):
    """Reading, writing, folders, errors: as the files themselves are."""
    m = mounted(arch)
    top = m.folder / TRACING
    assert {"current_tracer", "events", "instances", "per_cpu"} <= {*os.listdir(top)}
    assert sorted(os.listdir(m.folder)) == ["proc", "sys"]
    assert sorted(os.listdir(top / "per_cpu")) == ["cpu0", "cpu1"]
    assert m.read("available_tracers").startswith("function ")
    assert re.fullmatch(r"\d+\.\d+ \d+\.\d+\n", (m.folder / "proc/uptime").read_text())
    assert oct((top / "trace").stat().st_mode) == "0o100644"
    assert oct((top / "trace_pipe").stat().st_mode) == "0o100444"
    # An error belongs to the write, and nothing has changed.
    assert fails(errno.EINVAL, m.write, "current_tracer", "nosuch")
    assert m.read("current_tracer") == "nop\n"
    assert fails(errno.ENOENT, m.read, "nosuch")
    assert fails(errno.EINVAL, m.write, "available_tracers", "x")
    assert fails(errno.EISDIR, m.write, "events", "x", 0)
    # More than a message holds, as one write.
    functions = m.read("available_filter_functions")
    m.write("set_ftrace_filter", functions * 4)
    assert m.read("set_ftrace_filter") == functions
    m.write("set_ftrace_filter", "task_sleep\n")
    m.write("set_ftrace_filter", "task_wake", os.O_APPEND)
    assert m.read("set_ftrace_filter").split() == ["task_wake", "task_sleep"] or \
        m.read("set_ftrace_filter").split() == ["task_sleep", "task_wake"]
    m.write("current_tracer", "function")
    time.sleep(0.2)
    m.write("tracing_on", "0\n")
    text = m.read("trace")
    assert {e["callee"] for e in function_events(
        [x for x in text.splitlines() if not x.startswith("#")])} == {"task_sleep", "task_wake"} \
        or "task_sleep" in text
    assert m.read("trace") == text
    with open(top / "trace", "w", encoding="ascii"):
        pass
    assert "entries-in-buffer/entries-written: 0/0" in m.read("trace")
    # Folders.
    (top / "instances/one").mkdir()
    assert os.listdir(top / "instances") == ["one"]
    assert fails(errno.EEXIST, os.mkdir, top / "instances/one")
    m.write("instances/one/trace_marker", "a mark")
    assert "tracing_mark_write: a mark\n" in m.read("instances/one/trace")
    with open(top / "instances/one/trace", encoding="ascii"):
        assert fails(errno.EBUSY, os.rmdir, top / "instances/one")
    m.wait(lambda: not fails(errno.EBUSY, os.rmdir, top / "instances/one"))
    assert os.listdir(top / "instances") == []
    assert fails(errno.EPERM, os.mkdir, top / "elsewhere")
    # The guest's own user sees the same.
    m.write("current_tracer", "nop")
    m.type("cat /sys/kernel/tracing/set_ftrace_filter")
    m.wait(lambda: "task_sleep\r\n" in m.text)
    m.type("poweroff")
    assert m.process.wait(timeout=60) == 0
    m.wait(m.is_gone)


def test_raw_marker(arch, image, mounted):
    """Bytes of any value and every length arrive as they were written. Too few and too
    many are refused. An instance has a file of its own."""
    m = mounted(arch)
    top = m.folder / TRACING
    os.mkdir(top / "instances/one")
    file = top / "instances/one/trace_marker_raw"
    sent = [b"end\n", b"\0\0", *(bytes((i * 7 + n) % 256 for i in range(n))
                                 for n in (0, 1, 2, 3, 13, 255, 256))]
    for data in sent:
        file.write_bytes(struct.pack(image.order + "I", 0xcafe0a00) + data)
    assert [x.partition(": ")[2] for x in m.read("instances/one/trace").splitlines()
            if "buf:" in x] == [" ".join(["# cafe0a00 buf:", *(f"{b:02x}" for b in data)])
                                for data in sent]
    for size in (1, 3, 261, 5000):
        assert fails(errno.EINVAL, file.write_bytes, bytes(size))
    assert "buf:" not in m.read("trace")
    os.rmdir(top / "instances/one")


def test_copies(mounted):
    """splice() and sendfile() are refused, so that their users go on with read(). Names have
    the types and inodes of stat(), and Linux's errors stand for things that it refuses."""
    m = mounted(ANY)
    top = m.folder / TRACING
    copy, (_, into) = m.folder.parent / "copy", os.pipe()
    shutil.copyfile(top / "available_filter_functions", copy)
    assert copy.read_text() == m.read("available_filter_functions")
    for name in ("trace", "tracing_on", "available_events"):
        fd = os.open(top / name, os.O_RDONLY)
        assert os.fstat(fd).st_size == 0
        assert fails(errno.EINVAL, os.splice, fd, into, 4096)
        assert fails(errno.EINVAL, os.sendfile, into, fd, None, 4096)
        os.close(fd)
    # Every file but those of pages, of every kind.
    for place, folders, names in os.walk(top):
        if place == str(top / "events"):
            folders[:] = ["sched"]
        for name in names:
            fd = os.open(Path(place) / name, os.O_RDONLY)
            wanted = errno.EAGAIN if name == "trace_pipe_raw" else errno.EINVAL
            if name != "snapshot_raw":
                os.set_blocking(fd, False)
                assert fails(wanted, os.splice, fd, into, 4096), (place, name)
            os.close(fd)
    for entry in os.scandir(top):
        found = entry.stat()
        assert entry.inode() == found.st_ino
        assert entry.is_dir(follow_symlinks=False) == os.path.isdir(entry.path)
    assert fails(errno.EACCES, os.open, top / "new", os.O_CREAT | os.O_WRONLY)
    assert fails(errno.EPERM, os.unlink, top / "trace")
    assert fails(errno.EPERM, os.rename, top / "trace", top / "other")
    assert fails(errno.EINVAL, m.read, "trace_marker")
    # Calls that lower the size that the kernel has: the end, another one's O_TRUNC, stat().
    fd = os.open(top / "tracing_on", os.O_RDONLY)
    assert fails(errno.EINVAL, os.lseek, fd, 0, os.SEEK_END)
    with open(top / "tracing_on", "a", encoding="ascii"):
        os.close(os.open(top / "tracing_on", os.O_WRONLY | os.O_TRUNC))
        time.sleep(0.3)
        assert (top / "tracing_on").stat().st_size == os.fstat(fd).st_size == 0
        assert fails(errno.EINVAL, os.splice, fd, into, 4096)
    os.close(fd)
    assert (top / "tracing_on").stat().st_size == 0


def test_as_many_files_as_there_may_be(mounted):
    """1,024 are open at once, the next one is ENFILE, and each is free again when it is closed."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(
        resource.RLIMIT_NOFILE)[1]))
    m = mounted(ANY)
    path = m.folder / TRACING / "tracing_on"
    for _ in range(2):
        many = [os.open(path, os.O_RDONLY) for _ in range(1024)]
        assert fails(errno.ENFILE, os.open, path, os.O_RDONLY)
        assert path.stat().st_size == 0 and "trace" in os.listdir(path.parent)
        assert os.pread(many[0], 9, 0) == os.pread(many[-1], 9, 0) == b"1\n"
        for fd in many:
            os.close(fd)
        m.wait(lambda: not fails(errno.ENFILE, m.read, "tracing_on"))


def test_busybox(mounted):
    """Its cat and cp, which try sendfile() first, give the file's bytes."""
    if not shutil.which("busybox"):
        pytest.skip("no busybox here")
    m = mounted(ANY)
    functions = m.read("available_filter_functions")
    path, copy = m.folder / TRACING / "available_filter_functions", m.folder.parent / "copy"
    assert subprocess.run(["busybox", "cat", path], capture_output=True, text=True,
                          check=True).stdout == functions
    subprocess.run(["busybox", "cp", path, copy], check=True)
    assert copy.read_text() == functions


def test_guest_ends(mounted):
    """Killed or standing still: an error, never a hang."""
    m = mounted(ANY)
    pid = m.qemu()
    m.read("current_tracer")  # its name is known: the open itself fails
    stop_process(pid)
    assert fails(errno.EIO, m.read, "current_tracer")
    os.kill(pid, signal.SIGCONT)
    # The first open that is answered: its fid is free in the guest, too.
    answers = []
    m.wait(lambda: answers.append(answer_of(m.read, "current_tracer")) or
           answers[-1] != errno.EIO)
    assert answers[-1] == "nop\n"
    with program(["cat", m.folder / TRACING / "trace_pipe"],
                 stderr=subprocess.PIPE) as cat:
        time.sleep(0.2)
        os.kill(pid, signal.SIGKILL)
        assert cat.wait(timeout=30) == 1
    m.wait(m.is_gone)


def test_poweroff(mounted):
    """The folder is empty again, and no thread of tracefs has complained."""
    for _ in range(8):
        m = mounted(ANY, smp=1)
        m.read("trace")
        m.type("poweroff")
        assert m.process.wait(timeout=60) == 0
        m.wait(m.is_gone)
        m.reader.join(timeout=60)
        assert not m.reader.is_alive() and "fuse" not in m.text, m.text


def test_memory_has_no_name(mounted):
    """The file that is the guest's memory cannot be left behind."""
    m = mounted(ANY)
    fds = [os.readlink(fd) for fd in Path(f"/proc/{m.process.pid}/fd").iterdir()]
    assert "/memfd:nopl-memory (deleted)" in fds, fds


OWN = """
mount -t tracefs none "$1" && grep . "$1/available_events" >"$3" || exit 77
exec tools/inside "$2" sh -c '
	for place in $(grep tracefs /proc/self/mounts | cut -d" " -f2); do
		cmp "$place/available_events" "$0" || echo "$place: the guest"
		cat "$place/available_filter_functions" >"$1"
	done' "$3" "$4"
"""


def test_folder_goes_that_is_open(mounted):
    """A program looks into a folder below one that is removed: an error, and the mount stays."""
    m = mounted(ANY)
    instance = m.folder / TRACING / "instances" / "gone"
    instance.mkdir()
    folder = os.open(instance / "events", os.O_RDONLY | os.O_DIRECTORY)
    assert "sched" in os.listdir(folder)
    instance.rmdir()
    os.lseek(folder, 0, os.SEEK_SET)
    libc = ctypes.CDLL(None, use_errno=True)  # os.listdir() would ask for more
    assert libc.getdents64(folder, ctypes.create_string_buffer(4096), 4096) == -1
    assert ctypes.get_errno() == errno.ENOENT
    os.close(folder)
    assert m.read("current_tracer") == "nop\n" and not list(instance.parent.iterdir()), m.text


def test_own_tracer_is_out_of_reach(mounted, tmp_path):
    """Wherever this machine shows a tracer, a program inside sees the guest's."""
    m = mounted(ANY)
    if m.inside("true").returncode:
        pytest.skip("no mount namespace can be made here")
    place, own, seen = tmp_path / "own", tmp_path / "own-events", tmp_path / "seen"
    place.mkdir()
    done = subprocess.run(["unshare", "--mount", "sh", "-c", OWN, "sh", place, m.folder, own,
                           seen], cwd=ROOT, text=True, capture_output=True, timeout=60)
    if done.returncode == 77:
        pytest.skip("this machine lets nobody mount its tracefs")
    assert f"{place}: the guest" in done.stdout, done
    assert seen.read_text() == m.read("available_filter_functions")


def test_left_out(mounted):
    """Files that are left out are not there, and all others are."""
    m = mounted(ANY, without="set_*_pid")
    top = m.folder / TRACING
    pids = {"set_ftrace_pid", "set_ftrace_notrace_pid", "set_event_pid",
            "set_event_notrace_pid"}
    m.type(f"ls /{TRACING}")
    m.wait(lambda: pids <= set(m.text.split()))  # the guest has them
    there = set(os.listdir(top))
    assert not there & pids and {"set_event", "set_ftrace_filter"} <= there
    for name in pids:
        assert not (top / name).exists() and fails(errno.ENOENT, m.write, name, "1")
    (top / "instances" / "a").mkdir()
    assert not (top / "instances" / "a" / "set_event_pid").exists()
    assert m.read("instances/a/set_event") == ""


def test_bad_input(mounted, tmp_path):
    """Each mistake is one line, and nothing is begun."""
    built(ANY)
    make("build/host/tracefs")
    full = tmp_path / "full"
    full.mkdir()
    (full / "file").write_text("x")

    def line(*command) -> str:
        done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, timeout=90,
                              stdin=subprocess.DEVNULL)
        assert done.returncode == 2 and not done.stdout, done
        assert done.stderr.count("\n") == 1
        return done.stderr
    run = ("tools/run", "--arch", ANY, "--interactive", "--mount")
    assert "must be an empty folder" in line(*run, full)
    assert "must be an empty folder" in line(*run, tmp_path / "nosuch")
    assert "there is no --mount" in line(*run[:3], "--mount-without", "x")
    assert "no guest's control files" in line("tools/inside", full, "true")
    assert "usage: " in line("tools/inside", full)
    assert "usage: " in line("build/host/tracefs")
    assert "No such file" in line("build/host/tracefs", tmp_path / "nosuch", full)


WORDS = {"host_epoch": 20, "request_head": 32, "reply_tail": 44}


def test_nonsense_in_the_mailbox(arch, tmp_path):
    """Random bytes, positions and sizes: the guest lives, and serves the next client."""
    shared = tmp_path / "memory"
    folder = tmp_path / "guest"
    folder.mkdir()
    make("build/host/tracefs")
    extra = ["-object", f"memory-backend-file,id=ram,size=256M,share=on,mem-path={shared}",
             "-machine", "memory-backend=ram"]
    dice = random.Random(10)
    with Guest(arch, smp=2, append="p9=memory", extra=extra) as g, open(shared, "r+b") as file:
        memory = mmap.mmap(file.fileno(), 0)
        at = next(i for i in range(0, len(memory), 4096)
                  if memory[i:i + 16] == b"nopl 9P mailbox\0")

        def store(word: str, value: int) -> None:
            struct.pack_into("<I", memory, at + WORDS[word], value)

        for i in range(60):
            size = dice.choice((7, 11, 100, 5000, 65536))
            start = dice.randrange(65536 - size + 1)
            body = bytearray(dice.randbytes(size))
            if i % 2:  # a plausible beginning
                body[:4] = struct.pack("<I", dice.choice((size, 6, 23, 1 << 31)))
                body[4] = dice.choice((100, 104, 110, 12, 116, 118, 120))
            memory[at + 4096 + start:at + 4096 + start + size] = bytes(body)
            if i % 3 == 0:
                store("host_epoch", dice.getrandbits(32))
            if i % 5 == 0:
                store("reply_tail", dice.getrandbits(32))
            store("request_head", dice.choice((start + size, dice.getrandbits(32))))
            time.sleep(0.02)
        assert g.run("echo alive").strip() == "alive"
        tool = subprocess.Popen([ROOT / "build/host/tracefs", shared, folder, str(g.pid)],
                                stdout=subprocess.PIPE, text=True)
        assert tool.stdout.readline() == f"tracefs: mounted on {folder}\n"
        assert (folder / TRACING / "current_tracer").read_text() == "nop\n"
        assert g.poweroff() == 0
        assert tool.wait(timeout=30) == 0
