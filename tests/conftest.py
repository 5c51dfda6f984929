# SPDX-License-Identifier: MIT
"""Fixtures: kernels built on demand, guests, and where everything is."""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools")]

# Most files compile alike for many of the kernels that are made here: the compiler's results
# are kept, also for copies of the tree. The compiler's list of the headers that it read
# (-MMD) saves a second run of the preprocessor.
os.environ |= {"PATH": "/usr/lib/ccache:" + os.environ["PATH"], "CCACHE_NOHASHDIR": "1",
               "CCACHE_DEPEND": "1",
               "CCACHE_DIR": str(ROOT / "build" / "ccache")}

from guest import Guest  # noqa: E402
from image import Image  # noqa: E402
from lib import port  # noqa: E402

# Ports that are being taken in: test_newcomers.py has all that is asked of them. With
# NEWCOMERS=1 they are in all other tests, too.
NEWCOMERS = [arch for arch in port.architectures() if port.read(arch)["tests"].get("newcomer")]
ARCHES = [arch for arch in port.architectures()
          if arch not in NEWCOMERS or os.environ.get("NEWCOMERS") == "1"]
# Facts that the tests must know of each port: "tests" in arch/NAME/machine.json.
FACTS = {arch: port.read(arch)["tests"] for arch in ARCHES}
# Some port, for tests of code that all ports share: the first.
ANY = ARCHES[0]
VARIABLES = ("ARCH", "SMP", "O", "V", "SITES", "ENDIAN", "RECORD", "APPEND",
             "CROSS_COMPILE", "ICOUNT", "T", "PYTEST_ARGS", "WITHOUT",
             "PATCHER")


class Kernel(str):
    """An architecture's name, and how its kernel is built if not by default."""

    def __new__(cls, folder: str, *variables: str):
        kernel = super().__new__(cls, folder.partition("-")[0])
        kernel.folder, kernel.variables = folder, variables
        return kernel


# Other byte orders and sites than the default's: for tests of code that depends on
# them. @pytest.mark.parametrize("arch", EVERY_KERNEL, indirect=True)
VARIANTS = {k.folder: k for k in (
    Kernel("-".join([arch, *(v.partition("=")[2] for v in variables)]), *variables)
    for arch in ARCHES for variables in FACTS[arch].get("variants", []))}
EVERY_KERNEL = [*ARCHES, *VARIANTS]


# The commit, as a number.
COMMIT = int(subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, text=True, check=False,
                            capture_output=True).stdout.strip() or "0", 16)


def one_of(choices: list) -> list:
    """One of the choices, another for each commit, where all are too much for each. All with
    make test EVERYTHING=1."""
    return choices if os.environ.get("EVERYTHING") == "1" else [choices[COMMIT % len(choices)]]


def some_of(choices: list, parts: int) -> list:
    """Each parts-th of the choices, others for each commit. All with make test EVERYTHING=1."""
    return choices if os.environ.get("EVERYTHING") == "1" else \
        choices[COMMIT % min(parts, len(choices) or 1)::parts]


# Files whose tests are of code that all ports share, and such tests of other files. Each test there
# runs on two ports for each commit, on other ones for the next.
SHARED = ["test_events", "test_exports", "test_extract", "test_graph", "test_input",
          "test_instances", "test_kernelshark", "test_latency", "test_mount", "test_mount_errors",
          "test_mount_waits", "test_programs", "test_raw", "test_trace", "test_no_warnings",
          "test_walk_is_exact_at_every_instruction"]


def in_commit(item) -> bool:
    """Does the commit have this test? All with make test EVERYTHING=1."""
    kernel = item.callspec.params.get("arch") if hasattr(item, "callspec") else None
    name = getattr(item, "originalname", None)
    if not kernel or os.environ.get("EVERYTHING") == "1" or \
            not {item.path.stem, name} & set(SHARED):
        return True
    place = ARCHES.index(kernel.partition("-")[0])
    return (zlib.crc32(name.encode()) + COMMIT - place) % len(ARCHES) < 2


# The output of each make that a test ran.
MAKES = ROOT / "build" / "makes.log"


def heed_signals() -> None:
    """For a program that a test starts (preexec_fn): Ctrl-C and a hangup end it, also where
    whoever started the tests ignores them, as a shell's background or nohup does."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def stop_process(pid: int) -> None:
    """By SIGSTOP. Returns when no thread of it runs: a busy host stops them one after another."""
    os.kill(pid, signal.SIGSTOP)
    while any(x.read_text().rpartition(") ")[2][0] != "T"
              for x in Path(f"/proc/{pid}/task").glob("*/stat")):
        time.sleep(0.01)


@contextlib.contextmanager
def program(*args, **options):
    """subprocess.Popen(), which a test that fails does not wait for."""
    with subprocess.Popen(*args, preexec_fn=heed_signals, **options) as process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise


def qemu_of(runner: subprocess.Popen) -> int:
    """The process that is the runner's QEMU, once there is one."""
    deadline = time.monotonic() + 60
    while not (found := subprocess.run(
            ["pgrep", "-P", str(runner.pid), "qemu"], text=True, check=False,
            capture_output=True).stdout.split()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return int(found[0])


@contextlib.contextmanager
def building():
    """Around all that makes kernels: one at a time among xdist's workers."""
    lock = ROOT / "build" / ".tests.lock"
    lock.parent.mkdir(exist_ok=True)
    with open(lock, "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def make(*args: str, check: bool = True) -> subprocess.CompletedProcess:
    """Run make in the project, one at a time among xdist's workers."""
    with building():
        # pytest may run under `make test`, whose variables must not reach this make.
        env = {k: v for k, v in os.environ.items()
               if not k.startswith(("MAKE", "MFLAGS")) and k not in VARIABLES}
        done = subprocess.run(["make", "-j2", *args], cwd=ROOT, text=True,
                              capture_output=True, env=env)
        with open(MAKES, "a") as log:
            log.write(f"{time.strftime('%T')} make {' '.join(args)}\n{done.stdout}")
    if check:
        assert done.returncode == 0, done.stdout + done.stderr
    return done


_images: dict[str, Image] = {}


def built(arch: str) -> Image:
    """The architecture's kernel, made at most once in this worker. It stays as it was then: a
    test that makes it anew, from other text, would fail those behind it."""
    kernel = arch if isinstance(arch, Kernel) else Kernel(arch)
    if kernel.folder not in _images:
        make(f"ARCH={arch}", *kernel.variables, "all")
        _images[kernel.folder] = Image(
            arch, ROOT / "build" / kernel.folder / "nopl.elf")
    image = _images[kernel.folder]
    changed = image.path.stat().st_mtime_ns
    assert changed == image.made_at, \
        f"{image.path} was made anew at {time.ctime(changed / 1e9)}: see {MAKES}"
    return image


@pytest.fixture(params=ARCHES)
def arch(request) -> str:
    """Each architecture in turn, its kernel built."""
    kernel = VARIANTS.get(request.param, request.param)
    built(kernel)
    return kernel


@pytest.fixture
def image(arch) -> Image:
    """The architecture's kernel image."""
    return built(arch)


# The first: a test that makes each port's kernel, for the compiler's cache, then the
# files whose single tests take longest, or one would be left at the end. Not test_mutations: the
# cache would keep objects that name the sources of its copies, and gdb warns of these.
FIRST = ["test_bench", "test_unwind", "test_ftracetest"]


@pytest.hookimpl(tryfirst=True)  # before xdist looks at groups
def pytest_collection_modifyitems(config, items):
    """The commit's tests. Those that use `alone` go to one worker, so that the others never wait
    for them."""
    config.hook.pytest_deselected(items=[item for item in items if not in_commit(item)])
    items[:] = [item for item in items if in_commit(item)]
    items.sort(key=lambda item: FIRST.index(item.path.stem) if item.path.stem in FIRST
               else len(FIRST))
    for item in items:
        if "alone" in item.fixturenames:
            item.add_marker(pytest.mark.xdist_group("alone"))


@pytest.fixture
def alone(request):
    """For guests that have more busy CPUs than the host: only one such guest
    runs at a time among xdist's workers, or they hold each other up."""
    assert request.node.nodeid.endswith("@alone") or \
        not getattr(request.config.option, "loadgroup", False), "not in the group"
    lock = ROOT / "build" / ".alone.lock"
    lock.parent.mkdir(exist_ok=True)
    with open(lock, "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@pytest.fixture
def guest():
    """Boot a guest: guest(arch, smp=2, ...). All end with the test."""
    guests = []

    def start(arch: str, **options) -> Guest:
        options.setdefault("elf", built(arch).path)
        guests.append(Guest(arch, **options))
        return guests[-1]

    yield start
    for g in guests:
        g.close()


@pytest.fixture
def run_tool():
    """tools/run with these arguments."""
    def run(*args: str) -> subprocess.CompletedProcess:
        return subprocess.run([str(ROOT / "tools" / "run"), *args], text=True,
                              capture_output=True)
    return run


@pytest.fixture
def refusing(tmp_path, monkeypatch):
    """A QEMU of each port comes first in PATH that has one argument too many."""
    for name in {port.read(arch)["qemu"] for arch in ARCHES}:
        path = tmp_path / name
        path.write_text(f'#!/bin/sh\nexec {shutil.which(name)} -nosuchopt "$@"\n')
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
