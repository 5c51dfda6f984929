# SPDX-License-Identifier: MIT
"""Nonsense for a guest, by its shell, by 9P and as kernel parameters: each is answered, and the
machine is as it was. More of it: make fuzz ARCH=... BY=... INPUTS=..."""

import re
import subprocess

import pytest
from conftest import ANY, ARCHES, COMMIT, ROOT, built, one_of
from lib.tree import Copy

# Mistakes: the way in, a file, a text there, its replacement, what is said, and what each of the
# fewest inputs has.
MISTAKES = {
    "a-name-that-is-missing": (
        "shell", "tracer/core/command.c", "if (name && !strcmp", "if (!strcmp",
        "the machine ends: ", [r"able_event"]),
    "a-refused-filter-stays": (
        "shell", "tracer/events/event_filter.c", "\tevent_filter_free(f);\n\t*error", "\t*error",
        r"machine: \d+ (objects|free pages), and", [r"/filter$|trigger$"]),
    "a-file-is-opened-twice": (
        "9p", "kernel/p9/p9.c", "if (!f || f->opened || in->bad || access", "if (!f || access",
        r"machine: \d+ (objects|free pages), and", ["^. 110 ", "^. 12 ", "^. 12 "]),
    "a-bad-value-ends-the-boot": (
        "boot", "kernel/param.c", "\t\tif (p->set(value))\n",
        "\t\textern void arch_power_off(int);\n"
        "\t\tif (p->set(value) && (arch_power_off(1), 1))\n",
        r"no prompt \(.*status 1\)", ["."]),
}


def fuzz(*args: str) -> subprocess.CompletedProcess:
    """tools/fuzz with these arguments."""
    return subprocess.run([str(ROOT / "tools" / "fuzz"), *args], text=True, capture_output=True)


@pytest.mark.parametrize("by, inputs, words", [
    ("shell", 1500, "writes taken"), ("9p", 8000, "messages answered"),
    ("boot", 60, "parameters taken")])
@pytest.mark.parametrize("port", one_of(ARCHES))
def test_nothing_fails(port, by, inputs, words):
    """Another port for each commit, and other inputs."""
    built(port)
    done = fuzz("--arch", port, "--by", by, "--inputs", str(inputs),
                "--seed", str(COMMIT % 10000))
    assert done.returncode == 0, done.stdout + done.stderr
    taken, refused = map(int, re.search(rf"{inputs} inputs, (\d+) {words}, (\d+) refused",
                                        done.stdout).groups())
    assert min(taken, refused) > inputs / 30


@pytest.mark.parametrize("mistake", one_of(list(MISTAKES)))
def test_a_mistake_is_found(mistake):
    """One that is planted in a copy of the tree: it is named, with the few inputs that show it."""
    by, *planted, said, shown = MISTAKES[mistake]
    with Copy(ANY, f"fuzz/{mistake}").planted(*planted) as elf:
        done = fuzz("--arch", ANY, "--by", by, "--seed", "77", "--elf", str(elf))
    assert done.returncode == 1, done.stdout + done.stderr
    first, *rest = done.stdout.splitlines()
    assert re.match(f"fuzz: {ANY}: seed 77, inputs \\d+ to \\d+: {said}", first), done.stdout
    inputs = [line for line in rest if line.startswith("$ ")]
    assert len(inputs) == len(shown), done.stdout
    assert all(map(re.search, shown, inputs)), done.stdout


def test_bad_arguments():
    """One line that says what is accepted."""
    for args, said in [(("--arch", "vax"), "choose one of"),
                       (("--arch", ANY, "--inputs", "many"), "must be a number up to"),
                       (("--arch", ANY, "--elf", "/nowhere"), "there is no /nowhere")]:
        done = fuzz(*args)
        assert done.returncode == 2 and not done.stdout, done
        assert done.stderr.count("\n") == 1 and said in done.stderr, done.stderr
