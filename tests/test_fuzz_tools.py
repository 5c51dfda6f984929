# SPDX-License-Identifier: MIT
"""The tools on damaged files, and tracefs before a hostile guest, under AFL++ and the compiler's
sanitizers: each case that has failed once, then a few seconds of new ones. More of it:
make fuzz-tools MINUTES=..."""

import importlib.util
import os
import random
import re
import subprocess
from importlib.machinery import SourceFileLoader

import pytest
from conftest import ANY, ARCHES, COMMIT, ROOT, built, one_of
from lib.port import UsageError
from lib.tree import Copy

# Mistakes: a file, a bound there, what stands for it, and the tool that AFL++ sees crash.
MISTAKES = {
    "a-cpu-of-any-number": (
        "tracer/patch/patch_check.c", "e->cpu < PATCH_CHECK_CPUS && (", "(", "patchcheck"),
    "a-reply-of-any-length": (
        "tools/tracefs/p9.c", "r->bad |= n > r->size - r->at;", "", "tracefs"),
}


def fuzz(*args: str, tree=ROOT, **env: str) -> subprocess.CompletedProcess:
    """tools/fuzz-tools with these arguments."""
    return subprocess.run([str(tree / "tools" / "fuzz-tools"), *args], text=True,
                          capture_output=True, env=os.environ | env)


@pytest.mark.parametrize("port", one_of(ARCHES))
def test_nothing_fails(port):
    """Another port's images for each commit, and other inputs."""
    built(port)
    done = fuzz("--arch", port, "--seconds", "2", "--seed", str(COMMIT % 10000))
    assert done.returncode == 0, done.stdout + done.stderr
    lines = re.findall(r"^fuzz-tools: [\w-]+: seed \d+, (\d+) inputs, 0 crashes, 0 hangs",
                       done.stdout, re.M)
    assert len(lines) == len(done.stdout.splitlines()) == 9 and all(map(int, lines)), done.stdout


@pytest.mark.parametrize("mistake", one_of(list(MISTAKES)))
def test_a_mistake_is_found(mistake):
    """A bound is taken out in a copy of the tree: the first crash ends the run, and is named."""
    *planted, tool = MISTAKES[mistake]
    copy = Copy(None, f"fuzz-tools/{mistake}")
    with copy.planted(*planted):
        done = fuzz(tool, "--seconds", "600", "--seed", "1", tree=copy.path,
                    AFL_BENCH_UNTIL_CRASH="1")
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(rf"{tool}: seed 1, \d+ inputs, [1-9]\d* crashes", done.stdout), done.stdout
    assert re.search(r"^  .*(tools|tracer)/\S+\.c:\d+.*\n +\d+ bytes: cp ", done.stdout, re.M), \
        done.stdout


def test_symbols_of_another_kernel(tmp_path):
    """The files that tools/stale takes functions from: damaged, they have some, or it says so."""
    loader = SourceFileLoader("stale", str(ROOT / "tools" / "stale"))
    stale = importlib.util.module_from_spec(importlib.util.spec_from_loader("stale", loader))
    loader.exec_module(stale)
    names = subprocess.run(["nm", str(built(ANY).path)], check=True, capture_output=True).stdout
    elf = next((built(ANY).path.parent).rglob("string.c.o")).read_bytes()
    dice, path = random.Random(COMMIT), tmp_path / "symbols"
    for i in range(320):
        data = bytearray(names[:2000] if i % 16 else elf)
        for _ in range(dice.choice([1, 4, 64])):
            data[dice.randrange(4 if i % 16 == 0 else 0, len(data))] = dice.randrange(256)
        path.write_bytes(data[:dice.choice([len(data), dice.randrange(len(data))])])
        try:
            assert stale.Symbols(path).rows
        except UsageError as error:
            assert re.fullmatch(r"--symbols \S+: no functions; [^\n]+", str(error))


def test_bad_arguments():
    """One line that says what is accepted."""
    for args, said in [(("--arch", "vax"), "choose one of"), (("mksight",), "choose some of: mkr"),
                       (("--seconds", "0"), "no number of seconds")]:
        done = fuzz(*args)
        assert done.returncode == 2 and not done.stdout and said in done.stderr, done
