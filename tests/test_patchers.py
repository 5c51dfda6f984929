# SPDX-License-Identifier: MIT
"""Patch code that somebody brings is judged by the lab: an example that is wrong on purpose, code
that cannot be judged, and Linux's own."""

import json
import re
import subprocess

import pytest
from conftest import ANY, ARCHES, ROOT, building, built, make, one_of

PATCHERS = ROOT / "tests" / "patchers"
ADDRESS = re.compile(r"0x[0-9a-f]+|\w+\+0x[0-9a-f]+/0x[0-9a-f]+")
# What the lab says of Linux's code, and where a scheme that was written by hand has its stores.
LINUX = {path.parent.name: json.loads(path.read_text())
         for path in sorted((PATCHERS / "linux").glob("*/verdicts.json"))}
# What a patcher claims, and the strategy of a scheme that stores while the CPUs are in that state.
ALIKE = {"all held": "stop", "live": "live"}


def lab(arch, *args):
    """tools/lab, with its output."""
    if "--patcher" in args:  # it makes the kernel, too, unless that is there already
        make(f"ARCH={arch}", f"PATCHER={args[args.index('--patcher') + 1]}", "all", check=False)
    return subprocess.run([str(ROOT / "tools" / "lab"), "--arch", arch, *args], text=True,
                          capture_output=True, check=False)


@pytest.mark.parametrize("arch", ARCHES)
def test_wrong_code_is_found_out(arch, tmp_path):
    """Each transition breaks, and the instruction where a task stood is shown."""
    done = lab(arch, "--patcher", str(PATCHERS / "example"), "--output", str(tmp_path))
    assert done.returncode == 1, done.stdout + done.stderr
    rows = json.loads((tmp_path / "lab.json").read_text())["schemes"]
    assert [row["transition"] for row in rows] == ["off->on", "on->off"]
    for row in rows:
        assert row["verdict"] == "SURPRISE"
        assert row["held"] == row["boundaries"] > 4
        # Torn text harms a task that comes to it, and another CPU.
        assert {finding["between"] for finding in row["findings"]} == {False, True}
    assert re.search(r"^    \+0 .*<- held here$", done.stdout, re.M)


# In the order of bad.c. Of a switch off the first words, where they differ.
REASONS = [
    ("outside", r"on\(\) stores outside its site, -4 bytes from its start, in outside_on\+"),
    ("endless", r"on\(\) does not return: it stands at endless_on\+"),
    ("interrupts", r"on\(\) switches interrupts on while all CPUs are held, in stores_with_int"),
    ("unsynced", r"on\(\) synchronises no CPU behind its last store, in "
                 r"(same_prepare|store_same)\+"),
    ("nothing", r"on\(\) stores nothing"),
    ("refusing", r"on\(\) returns -22"),
    ("wild", r"on\(\) dies: (page fault \(write\)|access to an unmapped address \(store\)) "
             r"at wild_on\+"),
    ("masked", r"on\(\) stores with interrupts off, outside patcher_hold_all\(\), in "
               r"(masked_on|same_switch|store_same)\+"),
    ("lacking", r"has no on\(\)"),
    ("useless", r"does not work at rest: on"),
]


@pytest.mark.parametrize("arch", one_of(ARCHES))
def test_what_cannot_be_judged(arch, tmp_path):
    """One line each, which names the code, its function and the instruction. The lab goes on with
    the next."""
    done = lab(arch, "--patcher", str(PATCHERS / "bad"), "--output", str(tmp_path))
    assert done.returncode == 1, done.stdout + done.stderr
    rows = [row for row in json.loads((tmp_path / "lab.json").read_text())["schemes"]
            if row["transition"] == "off->on"]
    assert {row["scheme"].split()[-1] for row in rows} == {name for name, _ in REASONS}
    for row in rows:
        name = row["scheme"].split()[-1]
        assert re.match(dict(REASONS)[name], row["outcome"]), row
        assert row["verdict"] == ("SURPRISE" if name == "useless" else "INCOMPLETE")


def test_a_folder_without_code(tmp_path):
    """Without a C file make refuses it, without a patcher the lab."""
    done = lab(ANY, "--patcher", str(tmp_path))
    assert done.returncode == 2 and "holds no .c file" in done.stderr
    (tmp_path / "nothing.c").write_text("int nothing_here;\n")
    done = lab(ANY, "--patcher", str(tmp_path))
    assert done.returncode == 2
    assert done.stderr == (f"tools/lab: --patcher {tmp_path}: no LAB_PATCHER() of "
                           "tracer/lab/patcher.h is in it\n")


def judge_linux(*arches):
    """tools/lab-linux, which makes its kernels."""
    with building():
        return subprocess.run([str(ROOT / "tools" / "lab-linux"), *arches], text=True,
                              capture_output=True, check=False)


@pytest.mark.xdist_group("linux")
def test_linux():
    """Linux's files are judged whole, and what a scheme that was written by hand shows of the
    same stores is what they show."""
    done = judge_linux()
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads((ROOT / "build" / "linux.json").read_text())["linux"]
    verdicts = {arch: {} for arch in LINUX}
    for row in rows:
        verdicts[row["architecture"]].setdefault(row["file"], {})[row["transition"]] = \
            row["verdict"]
    assert verdicts == {arch: facts["verdicts"] for arch, facts in LINUX.items()}
    documented = (PATCHERS / "README.md").read_text()
    assert documented.count("unsafe: ") == sum(row["verdict"] == "unsafe" for row in rows) > 0


@pytest.mark.xdist_group("linux")
@pytest.mark.parametrize("arch, by_hand, name, transition", [
    (arch, *row) for arch, facts in LINUX.items() for row in facts["by_hand"]])
def test_a_scheme_by_hand_shows_the_same(arch, by_hand, name, transition, tmp_path):
    """The same victim, the same stores, the same damage at the same boundary. Two images have other
    addresses, but the same trap."""
    assert judge_linux(arch).returncode == 0
    built(arch)
    linux, = [row for row in json.loads(
        (ROOT / "build" / "linux" / arch / "lab.json").read_text())["schemes"]
        if (row["scheme"], row["transition"]) == (f"{arch} patcher {name}", transition)]
    done = lab(arch, "--schemes", by_hand, "--output", str(tmp_path))
    assert done.returncode == 0, done.stdout
    mine, = [row for row in json.loads((tmp_path / "lab.json").read_text())["schemes"]
             if row["transition"] == transition and row["strategy"] == ALIKE[linux["strategy"]]]
    assert mine["verdict"] == "broken as claimed"
    seen = [{(tuple(f["damage"]), ADDRESS.sub("ADDRESS", f["text"]), *f["held"])
             for f in row["findings"]} for row in (linux, mine)]
    assert seen[0] == seen[1]
