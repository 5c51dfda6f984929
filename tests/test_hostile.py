# SPDX-License-Identifier: MIT
"""A guest that answers tools/tracefs with nonsense. Whatever it writes, a program that uses the
mount gets an error soon, and tracefs neither ends, nor hangs, nor takes memory without end."""

import ctypes
import errno
import mmap
import os
import random
import resource
import struct
import subprocess
import threading
import time
from pathlib import Path

import pytest

from conftest import ROOT, make

pytestmark = pytest.mark.skipif(not os.access("/dev/fuse", os.R_OK | os.W_OK),
                                reason="no /dev/fuse that may be used here")
RING = 131072
# Words behind the mailbox's magic text.
RING_SIZE, HOST_EPOCH, GUEST_EPOCH, ALIVE, ASKED, TAKEN, ANSWERED, READ = range(8)
FOLDER, FILE = 0o40755, 0o100644
RLERROR, RLOPEN, RGETATTR, RREADDIR, RVERSION, RATTACH, RWALK, RREAD, RWRITE = (
    7, 13, 25, 41, 101, 105, 111, 117, 119)
QID = bytes(5) + struct.pack("<Q", 7)  # ls shows no inode 0
TEXT = b"a text\n"  # of a sound guest's file


def entry(name: bytes, place: int, size: int = -1) -> bytes:
    """A name of a folder, as a reply has it."""
    return QID + struct.pack("<QBH", place, 4, len(name) if size < 0 else size) + name


class FakeGuest(threading.Thread):
    """Answers as a guest with one file does, but for `replies`: from a reply's type to the body
    that stands for it, or to a function of the request that makes one. None: no reply."""

    def __init__(self, memory: Path, ring: int = RING, **replies):
        super().__init__(daemon=True)
        memory.write_bytes(b"")
        with open(memory, "r+b") as file:
            file.truncate(1 << 20)
            self.memory = mmap.mmap(file.fileno(), 0)
        # Whole words: struct's functions store a byte at a time, and tracefs reads meanwhile.
        self.words = (ctypes.c_uint32.__ctype_le__ * 8).from_buffer(self.memory, 16)
        self.replies, self.ends = replies, False
        self.flood, self.answered, self.flooded = False, 0, 0
        self.put(RING_SIZE, ring)
        self.memory[0:16] = b"nopl 9P mailbox\0"
        self.start()

    def get(self, word: int) -> int:
        """A word of the mailbox."""
        return self.words[word]

    def put(self, word: int, value: int) -> None:
        """Set one."""
        self.words[word] = value & 0xffffffff

    def send(self, message: bytes) -> None:
        """Put bytes into the ring of replies."""
        head = self.get(ANSWERED)
        for i, byte in enumerate(message):
            self.memory[4096 + RING + (head + i) % RING] = byte
        self.put(ANSWERED, head + len(message))

    def take(self) -> bytes:
        """The next request. B"": there is none."""
        tail = self.get(TAKEN)
        if self.get(ASKED) == tail:
            return b""
        at = [4096 + (tail + i) % RING for i in range(4)]
        size = struct.unpack("<I", bytes(self.memory[i] for i in at))[0]
        message = bytes(self.memory[4096 + (tail + i) % RING] for i in range(size))
        self.put(TAKEN, tail + size)
        return message

    def honest(self, kind: int, request: bytes) -> bytes | None:
        """The body that a sound guest sends."""
        names = struct.unpack_from("<H", request, 15)[0] if kind == RWALK else 0
        is_start = kind in (RREADDIR, RREAD) and not struct.unpack_from("<Q", request, 11)[0]
        data = {RREADDIR: entry(b"file", 1), RREAD: TEXT}[kind] if is_start else b""
        is_file = b"file" in request
        if kind == RWALK:
            self.replies["mode"] = FILE if is_file else FOLDER
        return {RVERSION: struct.pack("<IH", 65536, 8) + b"9P2000.L", RATTACH: QID,
                RWALK: struct.pack("<H", names) + QID * names,
                RGETATTR: struct.pack("<Q", 0x7ff) + QID +
                struct.pack("<IQQ", self.replies.get("mode", FOLDER), 0, 2) + bytes(8 * 14),
                RLOPEN: QID + struct.pack("<I", 4096),
                RREADDIR: struct.pack("<I", len(data)) + data,
                RREAD: struct.pack("<I", len(data)) + data,
                RWRITE: request[19:23], 121: b"", 109: b""}.get(kind)

    def run(self) -> None:
        """Until close()."""
        while not self.ends:
            self.put(ALIVE, self.get(ALIVE) + 1)
            self.put(GUEST_EPOCH, self.get(HOST_EPOCH))
            request = self.take()
            if not request:
                if self.flood and (self.get(ANSWERED) - self.get(READ)) % (1 << 32) < RING // 2:
                    self.send(struct.pack("<IBH", 7, 121, 5000) * 1000)
                    self.flooded += 7000
                time.sleep(0.0002)
                continue
            self.answered += 1
            kind, tag = request[4] + 1, struct.unpack_from("<H", request, 5)[0]
            body = self.replies.get(f"t{kind}", self.honest(kind, request))
            if callable(body):
                body = body(request)
            if isinstance(body, tuple):  # a message as it is
                self.send(body[0])
            elif body is None and f"t{kind}" not in self.replies:
                self.send(struct.pack("<IBHI", 11, RLERROR, tag, errno.EOPNOTSUPP))
            elif body is not None:
                self.send(struct.pack("<IBH", 7 + len(body), kind, tag) + body)

    def close(self) -> None:
        """No more answers."""
        self.ends = True
        self.join()


@pytest.fixture
def against(tmp_path):
    """against(ring=..., t41=...): tracefs, mounted on such a guest, and the folder."""
    make("build/host/tracefs")
    folder, started = tmp_path / "mnt", []
    folder.mkdir()

    def start(**replies):
        guest = FakeGuest(tmp_path / "memory", **replies)
        tool = subprocess.Popen(
            [ROOT / "build/host/tracefs", tmp_path / "memory", folder], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            # An allocation that the guest's numbers decide meets this limit.
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (256 << 20, 256 << 20)))
        started.append((guest, tool))
        return guest, tool, folder
    yield start
    for guest, tool in started:
        tool.terminate()
        tool.wait(timeout=30)
        guest.close()
        subprocess.run(["umount", "-l", folder], capture_output=True)


def outcome(*command) -> str:
    """A program's words on the mount. It must end by itself."""
    done = subprocess.run(["timeout", "-s", "KILL", "60", *command], text=True,
                          errors="replace", capture_output=True, env={**os.environ, "LC_ALL": "C"})
    assert done.returncode not in (137, -9), f"{command} hangs"
    return done.stdout + done.stderr


@pytest.mark.parametrize("ring", [0, 1, 65535, 100000, 1 << 24, 0x7ffff000, 0x80000000])
def test_ring_size(against, ring):
    """One that is no power of two, is too small or is beyond the memory: one line, no mount."""
    _, tool, _ = against(ring=ring)
    assert tool.wait(timeout=60) == 2
    assert tool.stderr.read().endswith("its mailbox has rings of no possible size\n")


def number(size: int):
    """A reply that says that it has this size."""
    return lambda request: (struct.pack("<IBH", size, request[4] + 1, 0) + bytes(9),)


BROKEN = {
    "no size": {"t111": number(0)},
    "less than a header": {"t111": number(6)},
    "more than the ring": {"t111": number(0x7fffffff)},
    "more than was sent": {"t111": number(17)},
}


@pytest.mark.parametrize("name", BROKEN)
def test_sizes(against, name):
    """A reply of no possible size: an error for each program, and one line."""
    _, tool, folder = against(**BROKEN[name])
    assert "mounted on" in tool.stdout.readline()
    for _ in range(2):
        assert "Input/output error" in outcome("cat", folder / "file")
    tool.terminate()
    assert tool.stderr.read() == ("tracefs: the guest has sent a reply of no possible size: its "
                                  "files give errors from now on\n")


def test_positions(against):
    """A position outside the ring, of either ring, and a ring size that changes later."""
    guest, tool, folder = against()
    assert "mounted on" in tool.stdout.readline()
    guest.put(RING_SIZE, 0)
    assert outcome("cat", folder / "file") == "a text\n"
    guest.put(ANSWERED, guest.get(READ) + RING + 1)
    assert "Input/output error" in outcome("cat", folder / "file")
    tool.terminate()
    assert tool.stderr.read() == ("tracefs: the guest has written a position outside its ring: "
                                  "its files give errors from now on\n")


def names(*them: bytes, size: int = -1):
    """A folder's names. size: of the reply, instead of the true one."""
    body = b"".join(them)
    return {"t41": struct.pack("<I", len(body) if size < 0 else size) + body}


def endless(request: bytes) -> bytes:
    """A folder with any number of names."""
    place = struct.unpack_from("<Q", request, 11)[0]
    body = b"".join(entry(b"%d" % i, i + 1) for i in range(place, place + 1500))
    return struct.pack("<I", len(body)) + body


FOLDERS = {
    "a place that stays": names(entry(b"a", 1)),
    "a place that goes back": names(entry(b"a", 9), entry(b"b", 8)),
    "a name beyond the reply": names(entry(b"a", 1, size=300)),
    "a name of no length": names(entry(b"", 1)),
    "a name that is too long": names(entry(b"x" * 256, 1)),
    "a name with a slash": names(entry(b"a/../b", 1)),
    "a name with a zero": names(entry(b"a\0b", 1)),
    "a size beyond the reply": names(entry(b"a", 1), size=1 << 31),
    "half a name": names(entry(b"a", 1)[:20]),
    "names without end": {"t41": endless},
}


@pytest.mark.parametrize("name", FOLDERS)
def test_folders(against, name):
    """ls ends with an error."""
    _, tool, folder = against(**FOLDERS[name])
    assert "mounted on" in tool.stdout.readline()
    assert "Input/output error" in outcome("ls", "-U", folder)
    assert tool.poll() is None


def attributes(mode: int) -> dict:
    """A file of that mode."""
    return {"t25": struct.pack("<Q", 0x7ff) + QID + struct.pack("<IQQ", mode, 0, 2) +
            bytes(8 * 14)}


FILES = {
    "a walk through more names": {"t111": struct.pack("<H", 9) + QID * 9},
    "an empty walk": {"t111": b""},
    "attributes that are cut": {"t25": bytes(9)},
    "a file of no type": attributes(0),
    "a device": attributes(0o20666),
    "a pipe": attributes(0o10666),
    "more bytes than asked": {"t117": struct.pack("<I", 65520) + bytes(65520)},
    "more bytes than sent": {"t117": struct.pack("<I", 4000) + bytes(10)},
    "a size of 2^32": {"t117": struct.pack("<I", 0xffffffff) + bytes(10)},
    "no size": {"t117": b""},
    "another reply's type": {"t117": lambda r: (struct.pack("<IBH", 7, 99, r[5] | r[6] << 8),)},
    "error 0": {"t13": lambda r: (struct.pack("<IBHI", 11, RLERROR, r[5] | r[6] << 8, 0),)},
    "error 5000": {"t13": lambda r: (struct.pack("<IBHI", 11, RLERROR, r[5] | r[6] << 8, 5000),)},
    "an error that is cut": {"t13": lambda r: (struct.pack("<IBH", 7, RLERROR, r[5] | r[6] << 8),)},
}


@pytest.mark.parametrize("name", FILES)
def test_files(against, name):
    """cat ends with an error, and another file is as before."""
    _, tool, folder = against(**FILES[name])
    assert "mounted on" in tool.stdout.readline()
    assert "Input/output error" in outcome("cat", folder / "file")
    assert tool.poll() is None
    if "walk" not in name:
        assert outcome("ls", folder) == "file\n"


def test_writes(against):
    """A write of which the guest has taken more than there was."""
    _, tool, folder = against(t119=struct.pack("<I", 1 << 31))
    assert "mounted on" in tool.stdout.readline()
    assert "I/O error" in outcome("sh", "-c", f"echo x >{folder}/file")


def test_silence(against):
    """A guest that goes on, and answers nothing more: an error, then errors at once."""
    guest, tool, folder = against()
    assert "mounted on" in tool.stdout.readline()
    for kind in (RWALK, RGETATTR, RLOPEN, RREADDIR, 121):
        guest.replies[f"t{kind}"] = None
    assert "Input/output error" in outcome("cat", folder / "file")
    start = time.monotonic()
    assert "Input/output error" in outcome("cat", folder / "file")
    assert time.monotonic() - start < 5
    assert tool.poll() is None


def test_order(against):
    """A request is answered, and the one on which it relies is not: as a position outside."""
    guest, tool, folder = against(t111=None)
    assert "mounted on" in tool.stdout.readline()
    assert "Input/output error" in outcome("cat", folder / "file")
    tool.terminate()
    assert tool.stderr.read() == ("tracefs: the guest has answered out of order: its files give "
                                  "errors from now on\n")


def test_flood(against):
    """Replies that belong to no request, without end."""
    guest, tool, folder = against()
    assert "mounted on" in tool.stdout.readline()
    guest.flood = True
    assert outcome("ls", folder) == "file\n"
    assert outcome("cat", folder / "file") == "a text\n"
    end = time.monotonic() + 60
    while guest.flooded < 4 * RING:  # it all is taken, and nothing ends
        assert time.monotonic() < end and tool.poll() is None
        time.sleep(0.01)
    assert outcome("cat", folder / "file") == "a text\n"


def test_random_bodies(against):
    """Bodies of any bytes and lengths: each operation ends."""
    dice = random.Random(35)
    guest, tool, folder = against()
    assert "mounted on" in tool.stdout.readline()

    def body(request: bytes) -> bytes:
        made = dice.randbytes(dice.choice((0, 1, 2, 4, 13, 20, 200, 5000)))
        sound = guest.honest(request[4] + 1, request) or b""
        return dice.choice((made, sound, sound[:dice.randrange(len(sound) + 1)],
                            sound + made, sound[:4] + made))
    for kind in (RWALK, RGETATTR, RLOPEN, RREADDIR, RREAD, RWRITE, 121):
        guest.replies[f"t{kind}"] = body
    for i in range(60):
        before = guest.answered
        outcome("sh", "-c", f"ls {folder} {folder}/file{i}; head -c 9000 {folder}/file{i}; "
                            f"echo x >{folder}/file{i}; mkdir {folder}/d{i}")
        assert tool.poll() is None and guest.answered > before
