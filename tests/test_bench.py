# SPDX-License-Identifier: MIT
"""make bench: every figure that has a limit is there, on every architecture, and
under it, the same twice, for they are counted, not timed."""

import json
import re
import runpy
import subprocess

import pytest
from conftest import ARCHES, FACTS, ROOT, building, one_of
from lib.port import MAX_CPUS

STRATEGIES = ["stop", "breakpoint", "word", "bypass"]
STALLS = {f"{s}_longest_stall" for s in STRATEGIES}
SECTIONS = {"longest_irqs_off", "longest_preempt_off", "irqsoff_from_outside",
            "preemptoff_from_outside"}
FIGURES = {*SECTIONS, "boot_conversion", "site_table", "jump_table", "disabled_site",
           "disabled_label", "sched_switch_event", "function_event",
           "filtered_by_pid", "beside_an_instance",
           "find_file", "list_name", "first_trigger", "further_trigger", "graph_call",
           "graph_bytes", "tracing_off",
           "enable_one_name", "filter_by_pattern", "filter_by_all_names", "list_all_names",
           "boot_to_prompt", *STALLS,
           *(f"{s}_enable_all" for s in STRATEGIES),
           *(f"{s}_disable_all" for s in STRATEGIES)}


def bench(arch: str, *args: str) -> dict[str, dict]:
    """One architecture's figures by name. make bench fails if one is over its limit."""
    done = subprocess.run([str(ROOT / "tools" / "bench"), arch, *args], text=True,
                          capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    line = next(x for x in done.stdout.splitlines() if x.startswith("{"))
    return {f["name"]: f for f in json.loads(line)["bench"]}


def test_figures(arch):
    first = bench(arch)
    assert FIGURES <= set(first)
    counted = FIGURES - {"boot_to_prompt"}
    assert all(first[name]["limit"] for name in counted - STALLS)
    stop = first["stop_longest_stall"]["value"]
    assert all(first[name]["value"] < stop
               for name in STALLS - {"stop_longest_stall"})
    # Stalls are read off a clock whose tick is coarser than an instruction.
    second = bench(arch, "--no-sections")  # tests/test_sections.py has two runs of these
    for name in counted - STALLS - SECTIONS:
        assert first[name]["value"] == second[name]["value"], name


@pytest.mark.parametrize("arch", one_of(ARCHES))
def test_leaves_what_a_user_has_set(arch, guest):
    """It counts nothing while the tracer is in use, and takes nothing back."""
    shell = guest(arch, smp=2, icount=0)
    shell.run("cd /sys/kernel/tracing")
    for file, word in {"set_event": "sched:sched_switch", "set_ftrace_pid": "1",
                       "set_ftrace_filter": "victim_call:traceoff",
                       "events/sched/sched_switch/trigger": "stacktrace",
                       "max_graph_depth": "3", "tracing_on": "0"}.items():
        before = shell.run(f"cat {file}")
        shell.run(f"echo '{word}' > {file}")
        assert shell.run("bench calls").strip() == \
            "bench: the tracer is in use; `trace reset` first", file
        assert word in shell.run(f"cat {file}") != before, file
        shell.run("trace reset")
    shell.run("mkdir instances/bench")
    said = shell.run("bench calls")
    assert "bench: /sys/kernel/tracing/instances/bench: " in said
    assert "bench: graph_call " in said and shell.run("ls instances").strip() == "bench/"
    for line in "bench foo", "bench calls calls":
        assert shell.run(line).strip() == "bench: takes `calls`, or nothing"


@pytest.mark.parametrize("arch", one_of(ARCHES))
def test_scale(arch):
    """With a thousand functions more: all grows as their number, or less. All sizes, an hour:
    make bench-scale."""
    with building():
        done = subprocess.run([str(ROOT / "tools" / "bench-scale"), arch, "--more", "0", "1000"],
                              text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    few, many = re.match(rf"{arch}, functions +([\d,]+) +([\d,]+)$", done.stdout, re.M).groups()
    assert int(many.replace(",", "")) == int(few.replace(",", "")) + 1000
    rows = json.loads((ROOT / "build" / "scale.json").read_text())["scale"][arch]
    assert {"image", "memory_used", "filter_by_all_names", "stop_enable_all"} <= set(rows[1])
    most = FACTS[arch].get("most_cpus", MAX_CPUS)
    held, = re.findall(rf"^{arch}, CPUs.* {most}\nstop_holds +(.*) +ns$", done.stdout, re.M)
    assert len(held.split()) == most.bit_length()
    growth = runpy.run_path(str(ROOT / "tools" / "bench-scale"))["growth"]
    quadratic = [{"sites": n, "x": (n / 1000, "instructions/site")} for n in (1000, 2000)]
    assert growth(*quadratic, "x") == (4, True)


def test_scale_refuses():
    """Numbers that are none of its own."""
    done = subprocess.run([str(ROOT / "tools" / "bench-scale"), "--more", "1500"], text=True,
                          capture_output=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "tools/bench-scale: --more: a multiple of 1000, up to 999000\n"
