# SPDX-License-Identifier: MIT
"""build/host/extract: of rings that have run over, each format agrees with the guest's own text,
call by call, and each says which events are missing, of which tasks, by which clock."""

import json
import re
import struct
import subprocess
from collections import Counter, defaultdict

import pytest

from conftest import EVERY_KERNEL
from guest import graph_events
from image import Image
from lib.qmp import socket_args
from test_extract import LOST, TRACING, extract, guest, shown, text_of  # noqa: F401


def calls_of(text: str) -> list[tuple[str, str, float]]:
    """The calls that have returned, in the guest's text: CPU, function, microseconds."""
    opened, calls = {}, []
    for e in graph_events(text.splitlines()):
        place = e["cpu"], e["indent"]
        if e["how"] == " {":
            opened[place] = e["name"]
        elif not e["comment"]:
            calls.append((e["cpu"], e["name"] or e["ended"] or opened[place], float(e["us"])))
    return calls


def agree(ours: list, theirs: list) -> bool:
    """Are they the same calls, CPU by CPU? A time that is a difference may be a nanosecond longer,
    and the guest shows seven digits."""
    ours, theirs = (sorted(calls, key=lambda c: c[0]) for calls in (ours, theirs))
    return [c[:-1] for c in ours] == [c[:-1] for c in theirs] and all(
        -1e-4 < b[-1] - a[-1] < max(1.1e-3, a[-1] * 1e-5) for a, b in zip(ours, theirs))


def slices(chrome: list[dict]) -> list[dict]:
    """Slices of Chrome's JSON, with their beginning and end in nanoseconds."""
    return [e | {"from": round(e["ts"] * 1000), "to": round(e["ts"] * 1000) +
                 round(e["dur"] * 1000)} for e in chrome if e["ph"] == "X"]


def outermost(done: list[dict]) -> int:
    """Nanoseconds of the outermost slices of all tasks, which nest."""
    total, opened = 0, defaultdict(list)
    for e in sorted(done, key=lambda e: (e["from"], -e["to"])):
        stack = opened[e["tid"]]
        while stack and stack[-1] <= e["from"]:
            stack.pop()
        assert not stack or e["to"] <= stack[-1], e
        total += 0 if stack else e["to"] - e["from"]
        stack.append(e["to"])
    return total


def uftrace_calls(folder) -> Counter:
    """The calls that `uftrace dump` shows: functions and nanoseconds. They nest."""
    opened, calls = defaultdict(list), Counter()
    said = subprocess.run(["uftrace", "dump", "-d", folder], text=True, capture_output=True,
                          check=True).stdout
    for seconds, ns, tid, kind, name, depth in re.findall(
            r"^(\d+)\.(\d+) +(\d+): \[(entry|exit ) *\] ([\w.]+)\(\w+\) depth: (\d+)", said, re.M):
        now, stack = int(seconds) * 10**9 + int(ns), opened[tid]
        if kind == "entry":
            assert int(depth) == len(stack)
            stack.append((name, now))
        else:
            begun, start = stack.pop()
            assert (begun, len(stack)) == (name, int(depth))
            calls[name, now - start] += 1
    return calls


def run_over(g, settings: str = "echo") -> None:
    """Record a call graph of tasks that move between CPUs, until all rings have run over."""
    g.run(f"cd {TRACING}; {settings}; echo 32 > buffer_size_kb; stress start 4; "
          "echo function_graph > current_tracer", timeout=120)
    g.run("sleep 0.2", timeout=120)
    g.run("echo 0 > tracing_on; stress stop", timeout=120)


@pytest.mark.parametrize("arch", EVERY_KERNEL, indirect=True)
@pytest.mark.parametrize("depth", ["0", "9"])
def test_all_formats_agree(arch, image, guest, tmp_path, depth):  # noqa: F811
    """Of four CPUs' rings that have run over, and of calls that C code writes: all formats have
    the guest's calls, each with the guest's time, and the losses."""
    qmp = tmp_path / "qmp"
    g = guest(arch, smp=4, extra=socket_args(qmp))
    run_over(g, f"echo {depth} > max_graph_depth")
    text = shown(g)
    assert text_of(image, qmp) == text
    own = calls_of(text)
    assert len(own) > 500
    stats = [g.run(f"cat per_cpu/cpu{cpu}/stats") for cpu in range(4)]
    lost = {str(cpu): re.search(r"^overrun: (\d+)", s, re.M)[1] for cpu, s in enumerate(stats)}
    assert "0" not in lost.values()
    # Chrome's JSON: slices in the order of the text.
    run = extract(image, "--qmp", qmp, "--format", "chrome", "-o", "-")
    assert {cpu: n for cpu, n, _, _ in LOST.findall(run.stderr)} == lost
    chrome = json.loads(run.stdout)
    assert chrome["otherData"]["clock"] == "local"
    done = slices(chrome["traceEvents"])
    assert agree(own, [(str(e["args"]["cpu"]), e["name"], e["dur"]) for e in done])
    assert {str(e["args"]["cpu"]): str(e["args"]["lost"]) for e in chrome["traceEvents"]
            if "DROPPED" in e["name"]} == lost
    # Flame graphs: all time is in them, and no call but those of the text.
    folded = extract(image, "--qmp", qmp, "--format", "folded", "-o", "-").stdout
    rows = [row.rsplit(" ", 1) for row in folded.splitlines()]
    assert sum(int(weight) for _, weight in rows) == outermost(done)
    for cpu, n in lost.items():
        assert [f"[lost];CPU:{cpu} [{n} EVENTS DROPPED]", "0"] in rows
    assert {stack.rsplit(";", 1)[1] for stack, _ in rows if "DROPPED" not in stack} == {
        name for _, name, _ in own}
    # uftrace.
    extract(image, "--qmp", qmp, "--format", "uftrace", "-o", tmp_path / "u")
    assert uftrace_calls(tmp_path / "u") == Counter(
        (e["name"], e["to"] - e["from"]) for e in done)
    info = subprocess.run(["uftrace", "info", "-d", tmp_path / "u"], text=True,
                          capture_output=True, check=True).stdout
    assert all(f"CPU:{cpu} [{n} EVENTS DROPPED]" in info for cpu, n in lost.items())
    # trace-cmd.
    extract(image, "--qmp", qmp, "-o", tmp_path / "dat")
    report = subprocess.run(["trace-cmd", "report", tmp_path / "dat"], text=True,
                            capture_output=True, check=True).stdout
    assert dict(re.findall(r"^CPU:(\d) \[(\d+) EVENTS DROPPED\]$", report, re.M)) == lost


def test_uftrace_names_tasks(arch, image, guest, tmp_path):  # noqa: F811
    """By the names that the guest's text has, and an idle task with its CPU's number."""
    qmp = tmp_path / "qmp"
    g = guest(arch, smp=2, extra=socket_args(qmp))
    run_over(g)
    text = shown(g)
    extract(image, "--qmp", qmp, "--format", "uftrace", "-o", tmp_path / "u")
    said = subprocess.run(["uftrace", "report", "--task", "-d", tmp_path / "u"], text=True,
                          capture_output=True, check=True).stdout
    names = {tid: name for tid, name in re.findall(r" (\d+) +\d+  (\S+) *$", said, re.M)}
    switches = dict(re.findall(r" (\S+)-(\d+) +(?:=>|$)", text, re.M))
    assert len(names) > 1 and "nopl" not in names.values(), said
    for name, pid in switches.items():
        assert pid == "0" or pid not in names or names[pid].startswith(name), (name, pid)
    assert all(re.fullmatch(r"\d", n) for tid, n in names.items() if int(tid) > 10**6)


@pytest.mark.parametrize("tracer", ["function", "function_graph", "wakeup"])
def test_text_with_each_option(arch, image, guest, tmp_path, tracer):  # noqa: F811
    """Of rings that have run over: byte for byte the guest's own text, with each option the other
    way round, whether it says how lines look or what is recorded."""
    qmp = tmp_path / "qmp"
    g = guest(arch, smp=2, extra=socket_args(qmp))
    g.run(f"cd {TRACING}; echo 8 > buffer_size_kb; echo 1 > events/sched/enable; "
          f"echo '*task*' > set_ftrace_filter; echo {tracer} > current_tracer")
    options = [x.removeprefix("no") for x in g.run("cat trace_options").split()
               if x not in ("overwrite", "pause-on-trace")]
    assert len(options) > 20
    for option in options:
        was = g.run(f"cat options/{option}").strip()
        g.run(f"echo {1 - int(was)} > options/{option}; echo 1 > tracing_on; ps; sleep 0.01; "
              "echo 0 > tracing_on")
        assert text_of(image, qmp) == shown(g), option
        g.run(f"echo {was} > options/{option}")


def test_image_that_the_loader_moves(arch, image, guest, tmp_path):
    """QEMU may load an image elsewhere than its file says: here the file says so afterwards."""
    qmp, file = tmp_path / "qmp", bytearray(image.data)
    head, at, number = (32, 24, "Q") if image.bits == 64 else (28, 12, "I")
    table, = image.unpack(number, image.data, head)
    size, count = image.unpack("HH", image.data, head + (22 if image.bits == 64 else 14))
    for place in range(table + at, table + at + count * size, size):
        physical, = image.unpack(number, file, place)
        struct.pack_into(image.order + number, file, place, physical + (4 << 20))
    moved = tmp_path / "moved.elf"
    moved.write_bytes(file)
    g = guest(arch, smp=2, extra=socket_args(qmp))
    g.run(f"echo function > {TRACING}/current_tracer; ps; echo 0 > {TRACING}/tracing_on")
    assert text_of(Image(arch, moved), qmp) == shown(g)
