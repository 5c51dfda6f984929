"""Fixtures: kernels built on demand, guests, and where everything is."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools")]

from guest import Guest  # noqa: E402
from image import Image  # noqa: E402

ARCHES = ["x86_64", "riscv", "mips"]
VARIABLES = ("ARCH", "SMP", "O", "V", "SITES", "APPEND", "CROSS_COMPILE")


def make(*args: str, check: bool = True) -> subprocess.CompletedProcess:
    """Run make in the project, one at a time among xdist's workers."""
    lock = ROOT / "build" / ".tests.lock"
    lock.parent.mkdir(exist_ok=True)
    with open(lock, "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        # Nothing of the `make test` that we may run under.
        env = {k: v for k, v in os.environ.items()
               if not k.startswith(("MAKE", "MFLAGS")) and k not in VARIABLES}
        done = subprocess.run(["make", "-j2", *args], cwd=ROOT, text=True,
                              capture_output=True, env=env)
    if check:
        assert done.returncode == 0, done.stdout + done.stderr
    return done


_images: dict[str, Image] = {}


def built(arch: str) -> Image:
    """The architecture's kernel, made at most once in this worker."""
    if arch not in _images:
        make(f"ARCH={arch}", "all")
        _images[arch] = Image(arch, ROOT / "build" / arch / "nopl.elf")
    return _images[arch]


@pytest.fixture(params=ARCHES)
def arch(request) -> str:
    """Each architecture in turn, its kernel built."""
    built(request.param)
    return request.param


@pytest.fixture
def image(arch) -> Image:
    """The architecture's kernel image."""
    return built(arch)


@pytest.fixture
def alone():
    """For guests with more CPUs than the host may have, that all spin: one such
    at a time among xdist's workers, or they only hold each other up."""
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
        built(arch)
        guests.append(Guest(arch, **options))
        return guests[-1]

    yield start
    for g in guests:
        g.close(force=True)


@pytest.fixture
def run_tool():
    """tools/run with these arguments."""
    def run(*args: str) -> subprocess.CompletedProcess:
        return subprocess.run([str(ROOT / "tools" / "run"), *args], text=True,
                              capture_output=True)
    return run
