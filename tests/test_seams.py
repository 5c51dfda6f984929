# SPDX-License-Identifier: MIT
"""Seams: the tracer's clients follow one another at each moment, a part of the pairs for each
commit. All of them, hours: tools/seams --arch ARCH."""

import re
import subprocess

import pytest
from conftest import ANY, ROOT, one_of
from lib.tree import Copy

PARTS = 60


def seams(arch, *args):
    """tools/seams's status, and its output."""
    done = subprocess.run([str(ROOT / "tools" / "seams"), "--arch", arch, *args], text=True,
                          capture_output=True)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("part", one_of(list(range(PARTS))))
def test_the_machine_is_a_fresh_one(arch, part):
    """After each case of the part."""
    status, text = seams(arch, "--part", f"{part}/{PARTS}", "--timeout", "600")
    assert status == 0, text
    assert int(re.search(r": (\d+) cases, 0 wrong", text)[1]) > 150


# Defects of the kind that issue 35 mended: a file, a text there, its replacement, the cases that
# see it, and the field or the variable that they name.
DEFECTS = {
    "graph-returns-of-an-earlier-session": (
        "tracer/graph/graph.c", " &&\n\t    (s64)(r->clock - graph_session_began) >= 0)", ")",
        "graph,graph-*", "sleeps-apart", "its text"),
    "a-session-keeps-its-depth": (
        "tracer/ops/returns.c", "\t\tt->graph_depth = t->returns_missed = 0;\n", "",
        "graph,graph-*", "sleeps-apart", "its text"),
    "an-idle-task-keeps-its-traces": (
        "kernel/sched/task.c", "\t\ttask_clear_traces(t);\n\t\tarch_task_init",
        "\t\tarch_task_init", "graph-hidden,graph", "cpu-away", "idle/1 0: nr_returns is 1"),
    "a-section-stays-open": (
        "tracer/latency/latency.c", "\t\tcpu_call(~0u, close_section, NULL);\n",
        "\t\t(void)close_section;\n", "preemptoff,wakeup", "quiet", "sections+"),
    "no-memory-is-a-mistake-of-the-text": (
        "tracer/events/event_filter.c", "ps.error == no_memory ? NULL : ps.error", "ps.error",
        "event-filter,*", "memory_fails@?", "error -22, and not -12"),
    "a-filter-stays-when-memory-fails": (
        "tracer/events/event_filter.c", "\tevent_filter_free(f);\n\t*error", "\t*error",
        "event-filter,*", "memory_fails@?", "kmalloc objects"),
}


@pytest.mark.parametrize("defect", one_of(list(DEFECTS)))
def test_a_defect_is_named(defect):
    """One that is planted in a copy of the tree."""
    *mistake, pair, moment, says = DEFECTS[defect]
    with Copy(ANY, f"seams/{defect}").planted(*mistake) as elf:
        status, said = seams(ANY, "--pair", pair, "--moment", moment, "--elf", str(elf))
    assert status == 1 and says in said, said
    assert f"tools/seams --arch {ANY} --pair " in said
