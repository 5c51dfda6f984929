# SPDX-License-Identifier: MIT
"""Nonsense that is typed into a guest: each is answered, and the machine is as it was. More of it:
make fuzz ARCH=... INPUTS=..."""

import re
import subprocess

import pytest
from conftest import ANY, ARCHES, COMMIT, ROOT, built, one_of
from lib.tree import Copy

# Mistakes: a file, a text there, its replacement, what is said, and what the fewest inputs have.
MISTAKES = {
    "a-name-that-is-missing": (
        "tracer/core/command.c", "if (name && !strcmp", "if (!strcmp", "the machine ends: ",
        r"able_event"),
    "a-refused-filter-stays": (
        "tracer/events/event_filter.c", "\tevent_filter_free(f);\n\t*error", "\t*error",
        r"machine: \d+ (objects|free pages), and", r"/filter$|trigger$"),
}


def fuzz(*args: str) -> subprocess.CompletedProcess:
    """tools/fuzz with these arguments."""
    return subprocess.run([str(ROOT / "tools" / "fuzz"), *args], text=True, capture_output=True)


@pytest.mark.parametrize("port", one_of(ARCHES))
def test_nothing_fails(port):
    """Another port for each commit, and other inputs."""
    built(port)
    done = fuzz("--arch", port, "--inputs", "1500", "--seed", str(COMMIT % 10000))
    assert done.returncode == 0, done.stdout + done.stderr
    taken, refused = map(int, re.search(r"1500 inputs, (\d+) writes taken, (\d+) refused",
                                        done.stdout).groups())
    assert min(taken, refused) > 50


@pytest.mark.parametrize("mistake", one_of(list(MISTAKES)))
def test_a_mistake_is_found(mistake):
    """One that is planted in a copy of the tree: it is named, with the one input that shows it."""
    *planted, said, shown = MISTAKES[mistake]
    with Copy(ANY, f"fuzz/{ANY}").planted(*planted) as elf:
        done = fuzz("--arch", ANY, "--seed", "77", "--elf", str(elf))
    assert done.returncode == 1, done.stdout + done.stderr
    first, *rest = done.stdout.splitlines()
    assert re.match(f"fuzz: {ANY}: seed 77, inputs \\d+ to \\d+: {said}", first), done.stdout
    inputs = [line for line in rest if line.startswith("$ ")]
    assert len(inputs) == 1 and re.search(shown, inputs[0]), done.stdout


def test_bad_arguments():
    """One line that says what is accepted."""
    for args, said in [(("--arch", "vax"), "choose one of"),
                       (("--arch", ANY, "--inputs", "many"), "must be a number up to"),
                       (("--arch", ANY, "--elf", "/nowhere"), "there is no /nowhere")]:
        done = fuzz(*args)
        assert done.returncode == 2 and not done.stdout, done
        assert done.stderr.count("\n") == 1 and said in done.stderr, done.stderr
