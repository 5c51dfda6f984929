# SPDX-License-Identifier: MIT
"""The Promela models: of the strategies (every interleaving of three CPUs, one of which
comes or goes, or of two for `bypass`, and a preempted task), of the trace buffer (a writer,
a reader, and memory that reorders stores), and of retiring a tracer's ops. All states are
gone through, and nothing is wrong, and with a step or a fence of the protocol taken out,
what it is for is seen to go wrong."""

import re
import subprocess

import pytest
from conftest import ROOT, some_of

MODELS = {path.stem: path for path in ROOT.glob("tracer/**/models/*.pml")}

# The meaning of an assertion, told by the comment behind it, or of the end of a path.
WRONG = {
    "half": r"tail==did",      # a CPU ran half an old, half a new instruction
    "unsynced": r"may\[.*want",  # a batch was done, and a CPU not synchronised
    "old": r"settled",         # the old state was acted upon after its end
    "unknown": r"vector",      # the trap did not find its entry
    "stuck": r"invalid end",   # somebody waits for ever
    "used": r"freed",          # a task used ops that were freed
    "mixed": r"copy\[i\]==seq",  # a reader kept entries of another page
}

GOOD = [("stop", ""), ("breakpoint", ""), ("word", ""), ("word", "MISALIGNED"), ("bypass", ""),
        ("stop", "LEAVES RUNS=1"), ("breakpoint", "LEAVES RUNS=1"), ("word", "LEAVES RUNS=1"),
        ("ring", ""), ("quiesce", "")]

# Model, the step taken out, and the damage that must then be seen, all of it.
BROKEN = [
    ("stop", "NO_SYNC", "half unsynced old"),
    ("stop", "SYNC_FIRST", "half unsynced old"),
    ("stop", "NO_GATHER", "half"),
    ("stop", "NO_LEAVE", "unsynced stuck"),
    ("stop", "NO_FENCE", "half unsynced old"),
    ("stop", "SYNC_BY_IPI", "stuck"),
    ("stop", "JOIN_ANYTIME", "half unsynced old"),
    ("stop", "SYNC_THEN_JOIN", "half old"),
    ("stop", "LEAVES LEAVE_ANYTIME", "half unsynced old stuck"),
    ("stop", "LEAVES NO_GONE", "half unsynced old"),
    ("breakpoint", "NO_SYNC", "half unsynced old unknown"),
    ("breakpoint", "NO_SYNC_BREAK", "half old"),
    ("breakpoint", "NO_SYNC_TAIL", "half"),
    ("breakpoint", "NO_SYNC_FIRST", "unsynced unknown"),
    ("breakpoint", "TAIL_FIRST", "half"),
    ("breakpoint", "FIRST_EARLY", "half"),
    ("breakpoint", "NO_FENCE", "half unsynced old unknown"),
    ("breakpoint", "SYNC_THEN_JOIN", "half unsynced old unknown"),
    ("breakpoint", "VECTOR_LATE", "unknown"),
    ("breakpoint", "VECTOR_SHORT", "unknown"),
    ("breakpoint", "TRAP_AS_OLD", "old"),
    ("word", "NO_SYNC", "unsynced old"),
    ("word", "NO_FENCE", "unsynced old"),
    ("word", "SYNC_THEN_JOIN", "unsynced old"),
    ("word", "LEAVES LEAVE_ANYTIME", "unsynced old stuck"),
    ("word", "LEAVES NO_GONE", "unsynced old"),
    ("word", "MISALIGNED NO_FALLBACK", "half"),
    ("bypass", "NO_WAIT", "half old"),
    ("bypass", "ONE_LOOK", "half old"),
    ("bypass", "RUNNING_ONLY", "half old"),
    ("bypass", "RESTING_ONLY", "half old"),
    ("bypass", "EARLY_LOOK", "half old"),
    ("bypass", "IN_PLACE", "half old"),
    ("bypass", "NO_SYNC_BREAK", "half old"),
    ("bypass", "NO_SYNC_TAIL", "half"),
    ("bypass", "NO_SYNC_FIRST", "unsynced old unknown"),
    ("bypass", "NO_FENCE", "half unsynced old unknown"),
    ("bypass", "VECTOR_LATE", "unknown"),
    ("ring", "NO_SLOT_FENCE", "mixed"),
    ("ring", "NO_TAKE_FENCE", "mixed"),
    ("ring", "NO_RELEASE", "mixed"),
    ("ring", "NO_SECOND_LOOK", "mixed"),
    ("ring", "NO_ACQUIRE", "mixed"),
    ("quiesce", "NO_QUIESCE", "used"),
    ("quiesce", "ONE_LOOK", "used"),
    ("quiesce", "RUNNING_ONLY", "used"),
    ("quiesce", "RESTING_ONLY", "used"),
    ("quiesce", "NO_RETURNS", "used"),
    ("quiesce", "NO_LOCK", "used"),
]


def explore(folder, model: str, switches: str) -> tuple[set[str], str]:
    """Go through all states, and return the damage that was seen, and pan's output."""
    defines = [f"-D{s}" for s in switches.split()]
    for command in (["spin", *defines, "-a", MODELS[model]],
                    # Many are compiled longer than they run: -Og takes the least of both.
                    # NOCOMP: states are kept as they are, not squeezed first.
                    ["gcc", "-Og", "-w", "-DSAFETY", "-DNOCOMP", "-DMEMLIM=1500",
                     "-o", "pan", "pan.c"]):
        done = subprocess.run(command, cwd=folder, text=True,
                              capture_output=True)
        assert done.returncode == 0, done.stdout + done.stderr
    # -c0: go on behind each violation.
    output = subprocess.run(["./pan", "-c0", "-m100000", "-w23"], cwd=folder,
                            text=True, capture_output=True).stdout
    # All states, or the verdict is worth nothing.
    assert "error: max search depth" not in output, output
    assert "Search not completed" not in output, output
    assert re.search(r"\d+ states, stored", output), output
    violations = set(re.findall(r"^pan:\d+: (.*) \(at depth", output, re.M))
    wrong = {name for name, pattern in WRONG.items()
             if any(re.search(pattern, v) for v in violations)}
    unknown = [v for v in violations
               if not any(re.search(p, v) for p in WRONG.values())]
    assert not unknown, unknown
    return wrong, output


@pytest.mark.parametrize("model,switches", GOOD)
def test_holds(tmp_path, model, switches):
    wrong, output = explore(tmp_path, model, switches)
    assert wrong == set(), output[-2000:]
    assert "errors: 0" in output, output[-2000:]


@pytest.mark.parametrize("model,switches,expected", some_of(BROKEN, 3))
def test_fails_without(tmp_path, model, switches, expected):
    # One run of the site by each CPU shows it. Two take ten times as long.
    wrong, output = explore(tmp_path, model, switches + " RUNS=1")
    assert wrong == set(expected.split()), output[-2000:]


def test_every_switch_is_tried():
    """The switches that a model's first comment lists, and those that its code asks for."""
    for path in MODELS.values():
        text = path.read_text()
        tried = {s for _, switches, _ in BROKEN for s in switches.split()}
        asked = set(re.findall(r"(?:ifn?def |defined\()(\w+)", text))
        assert asked - tried <= {"UNITS", "RUNS", "LEADER", "TURNS", "CALLS", "CPUS",
                                 "SEVERAL", "carry_out"}, path
        for listed in re.findall(r"^ \*\t([A-Z_, ]+?)\t", text, re.M):
            assert set(re.findall(r"[A-Z_]{3,}", listed)) <= tried, path
