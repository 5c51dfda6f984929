# SPDX-License-Identifier: MIT
"""build/host/extract: the trace of a guest that does not help, for other programs, which
say the same of it as the guest itself."""

import json
import mmap
import random
import re
import struct
import subprocess

import pexpect
import pytest

from conftest import ANY, ARCHES, EVERY_KERNEL, FACTS, ROOT, make
from guest import function_events, graph_events
from lib import qemu
from lib.qmp import socket_args

TRACING = "/sys/kernel/tracing"
EXTRACT = ROOT / "build/host/extract"
LOST = re.compile(r"extract: CPU (\d): (\d+) entries were overwritten, (\d+) skipped, "
                  r"(\d+) dropped\n")


def little(arch) -> str:
    """A memory that QEMU takes for the machine: it writes all of it when extract reads one."""
    return FACTS[str(arch)].get("least_memory", "64M")


@pytest.fixture
def guest(guest):
    """Guests of little memory."""
    return lambda arch, **options: guest(arch, memory=little(arch), **options)


def extract(image, *args, check: bool = True) -> subprocess.CompletedProcess:
    """Run it, and return its output. On the standard error only losses may stand."""
    make("build/host/extract")
    done = subprocess.run([EXTRACT, "--elf", image.path, *args], text=True,
                          capture_output=True, check=False, timeout=120)
    if check:
        assert (done.returncode, LOST.sub("", done.stderr)) == (0, ""), done.stderr
    return done


def text_of(image, qmp) -> str:
    """The trace as extract writes it."""
    return extract(image, "--qmp", qmp, "--format", "text", "-o", "-").stdout


def shown(g, file: str = "trace") -> str:
    """The trace as the guest prints it."""
    return g.run(f"cat {TRACING}/{file}", timeout=300)


def record(g, tracer: str, events: str = "sched") -> None:
    """Record under load, until buffers have run over."""
    g.run(f"echo 16 > {TRACING}/buffer_size_kb")
    if events:
        g.run(f"echo 1 > {TRACING}/events/{events}/enable")
    g.run(f"echo {tracer} > {TRACING}/current_tracer")
    g.run("stress start 4", timeout=120)
    g.run("ps", timeout=120)
    g.run(f"echo to be or not > {TRACING}/trace_marker; echo 0 > {TRACING}/tracing_on",
          timeout=120)
    g.run("stress stop", timeout=120)


@pytest.mark.parametrize("arch", EVERY_KERNEL, indirect=True)
@pytest.mark.parametrize("tracer", ["function", "function_graph"])
def test_text_equals_the_guests(arch, image, guest, tmp_path, tracer):
    """Byte for byte, whatever the options, of overwritten rings, too."""
    qmp = tmp_path / "qmp"
    g = guest(arch, smp=4, extra=socket_args(qmp))
    # Every field of every event, then as many calls as fit.
    g.run(f"echo 16 > {TRACING}/buffer_size_kb")
    g.run(f"echo 1 > {TRACING}/events/enable")
    g.run("stress start 4", timeout=120)
    g.run(f"echo 0 > {TRACING}/tracing_on", timeout=120)
    g.run("stress stop", timeout=120)
    text = shown(g)
    assert {"sched_switch", "timer_start", "ipi_raise", "kmalloc"} <= {
        *re.findall(r"\d: (\w+): ", text)}
    assert text_of(image, qmp) == text
    g.run(f"echo > {TRACING}/trace; echo 1 > {TRACING}/tracing_on")
    record(g, tracer)
    text = shown(g)
    assert len(text.splitlines()) > 1000
    assert tracer != "function" or "buffer started ####" in text
    assert text_of(image, qmp) == text
    g.run("trace snapshot -f")
    for options in ("sym-offset sym-addr noirq-info", "noprint-parent nocontext-info",
                    "context-info funcgraph-proc funcgraph-abstime funcgraph-tail "
                    "funcgraph-overrun nofuncgraph-overhead", "nofuncgraph-duration"):
        g.run(f"echo {options} > {TRACING}/trace_options")
        assert text_of(image, qmp) == shown(g), options


def test_text_of_stacks_repeats_and_an_instance(arch, image, guest, tmp_path):
    """Entries beside calls, clocks, the trace of an instance."""
    qmp = tmp_path / "qmp"
    g = guest(arch, smp=2, extra=socket_args(qmp))
    g.run(f"mkdir {TRACING}/instances/one; echo 1 > {TRACING}/instances/one/events/enable")
    g.run(f"echo func_stack_trace func-no-repeats > {TRACING}/trace_options")
    g.run(f"echo 'task_*' 'sched_*' > {TRACING}/set_ftrace_filter")
    g.run(f"echo function > {TRACING}/current_tracer")
    g.run("ps; sleep 0.1; ps")
    g.run(f"echo 0 > {TRACING}/tracing_on; echo 0 > {TRACING}/instances/one/tracing_on")
    text = shown(g)
    assert "<stack trace>" in text
    assert text_of(image, qmp) == text
    text = shown(g, "instances/one/trace")
    assert "sched_switch" in text
    assert extract(image, "--qmp", qmp, "--format", "text", "--instance", "one", "-o",
                   "-").stdout == text
    for clock in ("counter", "uptime"):
        g.run(f"echo {clock} > {TRACING}/trace_clock; echo 1 > {TRACING}/tracing_on; ps; "
              f"echo 0 > {TRACING}/tracing_on")
        assert text_of(image, qmp) == shown(g), clock


def test_clocks(arch, image, guest, tmp_path):
    """A clock that is no nanoseconds: the guest's text, extract's and trace-cmd's of trace.dat
    have the same numbers, of the counter, one an entry."""
    qmp, file = tmp_path / "qmp", tmp_path / "trace.dat"
    g = guest(arch, smp=2, extra=socket_args(qmp))
    g.run(f"echo 1 > {TRACING}/events/sched/enable")
    for clock in ("counter", "uptime"):
        g.run(f"echo {clock} > {TRACING}/trace_clock; echo function > {TRACING}/current_tracer; "
              f"echo 1 > {TRACING}/tracing_on; ps; echo 0 > {TRACING}/tracing_on")
        text = shown(g)
        assert text_of(image, qmp) == text
        own = [*map(int, re.findall(r"^ *\S+-\d+ +\[\d+\] \S+ +(\d+): ", text, re.M))]
        extract(image, "--qmp", qmp, "-o", file)
        said = subprocess.run(["trace-cmd", "report", "-t", file], text=True,
                              capture_output=True, check=True, timeout=120).stdout
        # trace-cmd takes uptime's hundredths for nanoseconds, Linux's too.
        report = re.findall(r"^ *\S+-\d+ +\[\d+\] +(?:0\.0*)?(\d+): ", said, re.M)
        assert [*map(int, report)] == own, clock
        assert len(own) > 200
        if clock == "counter":
            assert own == [*range(own[0], own[0] + len(own))]


def test_text_of_latencies(arch, image, guest, tmp_path):
    """The longest latency, of each tracer, other tracers in that format."""
    qmp = tmp_path / "qmp"
    g = guest(arch, smp=2, extra=socket_args(qmp))
    for tracer in ("irqsoff", "preemptoff", "wakeup"):
        g.run(f"echo {tracer} > {TRACING}/current_tracer; echo 1 > {TRACING}/tracing_on; ps; ps; "
              f"sleep 0.1; echo 0 > {TRACING}/tracing_on")
        text = shown(g)
        assert f"# {tracer} latency trace v1.1.5 on nopl" in text
        # The longest section may be one in which no function was called: then its end is all.
        said = re.search(r"^# latency: \d+ us, #(\d+)/\d+,", text, re.M)
        assert len([x for x in text.splitlines() if x[0] != "#"]) == int(said[1]) > 0, text
        assert text_of(image, qmp) == text
    shown_by_chrome = extract(image, "--qmp", qmp, "--format", "chrome", "-o", "-").stdout
    assert re.search(r'"wakeup","args":\{"text":"\d+:\d+:0  ==>\+ \d+:\d+:0 \[00[01]\]"',
                     shown_by_chrome)
    for tracer in ("function", "function_graph"):
        g.run(f"echo nop > {TRACING}/current_tracer; echo 1 > {TRACING}/options/latency-format; "
              f"echo 1 > {TRACING}/tracing_on; echo {tracer} > {TRACING}/current_tracer; ps; "
              f"echo 0 > {TRACING}/tracing_on")
        text = shown(g)
        assert "latency trace" in text and len(text.splitlines()) > 100
        assert text_of(image, qmp) == text
        g.run(f"echo funcgraph-abstime funcgraph-proc > {TRACING}/trace_options")
    # An instance has an option of its own.
    one = "instances/one"
    g.run(f"mkdir {TRACING}/{one}; echo hello > {TRACING}/{one}/trace_marker")
    for option in (0, 1):
        g.run(f"echo {1 - option} > {TRACING}/options/latency-format; "
              f"echo {option} > {TRACING}/{one}/options/latency-format")
        text = shown(g, f"{one}/trace")
        assert ("latency trace" in text) == option and "hello" in text
        assert extract(image, "--qmp", qmp, "--format", "text", "--instance", "one", "-o",
                       "-").stdout == text


def test_text_of_a_latency_has_its_own_cpus(arch, image, guest, tmp_path):
    """The spare pages of the other CPU hold an earlier latency, which may overlap this one."""
    qmp = tmp_path / "qmp"
    g = guest(arch, smp=2, extra=socket_args(qmp))
    # Every section is kept that is longer than this.
    g.run(f"echo 1 > {TRACING}/tracing_thresh; echo irqsoff > {TRACING}/current_tracer")
    for _ in range(12):
        g.run(f"stress start 2; echo 1 > {TRACING}/tracing_on; sleep 0.02; "
              f"echo 0 > {TRACING}/tracing_on; stress stop")
        assert text_of(image, qmp) == shown(g)
    g.run(f"echo > {TRACING}/trace")
    text = shown(g)
    assert "latency: 0 us" in text and text_of(image, qmp) == text


@pytest.mark.parametrize("arch", EVERY_KERNEL, indirect=True)
def test_trace_cmd_says_the_same(arch, image, guest, tmp_path):
    """trace.dat: every call, event and marker, in the order of the guest's own text."""
    qmp, file = tmp_path / "qmp", tmp_path / "trace.dat"
    g = guest(arch, smp=4, extra=socket_args(qmp))
    record(g, "function", "irq")
    extract(image, "--qmp", qmp, "-o", file)
    said = subprocess.run(["trace-cmd", "report", "-O", "parent", file], text=True,
                          capture_output=True, check=True, timeout=120).stdout
    report = re.findall(r"^ *(\S+)-(\d+) +\[(\d+)\] +(\d+\.\d+): (\w+): +(.*?) *$", said,
                        re.M)
    own = re.findall(r"^ *(\S+)-(\d+) +\[(\d+)\] \S+ +(\d+\.\d+): (.*)$", shown(g), re.M)
    assert len(report) == len(own) > 1000
    for (comm, pid, cpu, time, kind, what), (*start, text) in zip(report, own):
        # trace-cmd rounds a time, the kernel cuts it.
        assert (pid, cpu) == tuple(start[1:3])
        assert abs(float(time) - float(start[3])) < 2e-6
        assert comm in (start[0], "<...>", "<idle>")
        if kind == "function":
            assert re.sub(r" <-- ", " <-", what) == text
        elif kind == "print":
            assert text == what
        else:
            assert text.startswith(f"{kind}: ")
    assert {r[4] for r in report} >= {"function", "print", "irq_handler_entry"}


@pytest.mark.parametrize("arch", EVERY_KERNEL, indirect=True)
def test_raw_marker(arch, image, guest, tmp_path):
    """Bytes of trace_marker_raw: the guest's text, trace-cmd's, and Chrome's JSON."""
    qmp, file = tmp_path / "qmp", tmp_path / "trace.dat"
    g = guest(arch, extra=socket_args(qmp))
    number, = struct.unpack(f"{image.order}I", b"\1\2\3\4")
    for tracer in ("function_graph", "nop"):
        g.run(f"echo {tracer} > {TRACING}/current_tracer")
        g.run(rf"echo $'\x01\x02\x03\x04\xffend' > {TRACING}/trace_marker_raw")
        g.run(f"echo 0 > {TRACING}/tracing_on")
        text = shown(g)
        assert f"# {number:x} buf: ff 65 6e 64 0a" in text
        assert text_of(image, qmp) == text
        g.run(f"echo 1 > {TRACING}/tracing_on")
    extract(image, "--qmp", qmp, "-o", file)
    said = subprocess.run(["trace-cmd", "report", file], text=True, capture_output=True,
                          check=True, timeout=120).stdout
    assert f"raw_data:             # {number:x} ff 65 6e 64 0a 00 00 00" in said
    chrome = json.loads(extract(image, "--qmp", qmp, "--format", "chrome", "-o",
                                "-").stdout)["traceEvents"]
    assert [e["args"]["text"] for e in chrome if e.get("name") == "raw_data"] == [
        f"# {number:x} buf: ff 65 6e 64 0a"]


@pytest.mark.parametrize("arch", EVERY_KERNEL, indirect=True)
def test_uftrace_and_the_others_say_the_same(arch, image, guest, tmp_path):
    """A call graph: uftrace replays each task's calls in the guest's order. Chrome's JSON
    has each call with its time, and the flame graph's times add up to those of the calls."""
    qmp = tmp_path / "qmp"
    g = guest(arch, smp=2, extra=socket_args(qmp))
    g.run(f"echo shell_run > {TRACING}/set_graph_function")
    g.run(f"echo nofuncgraph-irqs funcgraph-tail > {TRACING}/trace_options")
    g.run(f"echo function_graph > {TRACING}/current_tracer")
    g.run("uptime; cat /proc/uptime")
    g.run(f"echo 0 > {TRACING}/tracing_on")
    own = graph_events(shown(g).splitlines())
    calls = [e["name"] for e in own if e["name"]]
    ends = [e["name"] if e["name"] else e["ended"] for e in own
            if e["ended"] or e["how"] == ";"]
    assert "shell_run" in calls and len(calls) > 50
    extract(image, "--qmp", qmp, "--format", "uftrace", "-o", tmp_path / "u")
    said = subprocess.run(["uftrace", "replay", "--no-pager", "-d", tmp_path / "u", "-f",
                           "none"], text=True, capture_output=True, check=True).stdout
    # Calls that have not returned yet stand again at the end.
    said = said.partition("\nuftrace stopped")[0]
    assert re.findall(r"^ *([\w.]+)\(\)", said, re.M)[:len(calls)] == calls
    chrome = json.loads(extract(image, "--qmp", qmp, "--format", "chrome", "-o",
                                "-").stdout)["traceEvents"]
    done = [e for e in chrome if e["ph"] == "X"]
    assert [e["name"] for e in done] == ends
    folded = extract(image, "--qmp", qmp, "--format", "folded", "-o", "-").stdout
    stacks = dict(line.rsplit(" ", 1) for line in folded.splitlines())
    outer = [e for e in done if not any(
        o is not e and o["tid"] == e["tid"] and o["ts"] <= e["ts"] and
        e["ts"] + e["dur"] <= o["ts"] + o["dur"] for o in done)]
    total = sum(map(int, stacks.values()))
    assert abs(total - sum(e["dur"] for e in outer) * 1000) < 2
    assert any(s.startswith("init;shell_run;") for s in stacks)


def wedge(image, g, folder) -> None:
    """Let every CPU spin for ever where it handles an interrupt, with interrupts off."""
    loop = bytes.fromhex(FACTS[image.arch]["loop"])
    address = image.symbols["irq_event"]
    stores = [f"set {{unsigned char}}{address + i:#x} = {b}" for i, b in enumerate(loop)]
    done = subprocess.run(
        ["gdb-multiarch", "-nx", "-q", "-batch", image.path,
         *(w for c in [*qemu.Machine(image.arch).gdb,
                       f"target remote {folder}/gdb", *stores, f"x/{len(loop)}xb {address:#x}",
                      "detach"]
           for w in ("-ex", c))],
        text=True, capture_output=True, check=True, timeout=300)
    shown_bytes = re.findall(r"\t0x(\w\w)", done.stdout)
    assert shown_bytes == [f"{b:02x}" for b in loop], done
    g.send("\r")
    assert g.expect(["nopl:", pexpect.TIMEOUT], timeout=2) == 1


def test_a_guest_that_hangs_or_has_panicked(arch, image, guest, tmp_path):
    """Nothing of the guest runs any more. Its trace is read all the same."""
    qmp = tmp_path / "qmp"
    g = guest(arch, smp=2, extra=[*socket_args(qmp), "-chardev",
                                  f"socket,id=gdb,path={tmp_path}/gdb,server=on,wait=off",
                                  "-gdb", "chardev:gdb"])
    record(g, "function")
    text = shown(g)
    wedge(image, g, tmp_path)
    assert text_of(image, qmp) == text
    g = guest(arch, smp=2, append="panic=halt",
              extra=socket_args(tmp_path / "second"))
    record(g, "function")
    text = shown(g)
    g.send("panic oh no\r")
    g.expect("oh no")
    g.expect("backtrace:")
    assert text_of(image, tmp_path / "second") == text


def calls_of(text: str) -> list[dict[str, str]]:
    """The calls in a text of the function tracer."""
    return function_events([x for x in text.splitlines() if " <-" in x])


def test_pages_that_make_no_sense(arch, image, guest, tmp_path):
    """A page whose header is broken, or in which an entry goes beyond the end, is named,
    skipped and counted. All others are read, and the gaps between them are said, in
    trace.dat too. A ring whose header is broken is named and skipped. From the file that is a
    running guest's RAM."""
    memory = tmp_path / "memory"
    g = guest(arch, smp=1, extra=[
        "-object", f"memory-backend-file,id=ram,size={little(arch)},share=on,mem-path={memory}",
        "-machine", "memory-backend=ram"])
    record(g, "function", events="")
    args = ("--memory", memory, "--format", "text", "-o", "-")
    text = shown(g)
    assert extract(image, *args).stdout == text
    with open(memory, "r+b") as file, mmap.mmap(file.fileno(), 0) as ram:
        names = image.symbols["symbol_names"]
        base = names - ram.find(image.read(names, 256))
        # The first members of struct ring, pages as tracer/ring/ring.h describes them.
        pointer = {32: "I", 64: "Q"}[image.bits]
        pages, = image.unpack(pointer, ram, image.symbols["rings"] - base)
        nr, _head, tail = image.unpack("3I", ram, image.symbols["rings"] - base +
                                       image.bits // 8)
        at = [image.unpack(pointer, ram, pages - base + (tail + i) % nr * image.bits // 8)[0]
              - base for i in range(2)]
        used, inner = image.unpack("2H", ram, at[1] + 20)
        ram[at[1] + 16] ^= 0xff   # of `state`: the page is another ring's
        ram[at[1] + 19] ^= 0xff
        slots, = image.unpack("H", ram, at[0] + 20)
        last = at[0] + 32 + (slots - 1) * 12  # it says that one more slot follows
        ram[last + 4:last + 8] = struct.pack(
            image.order + "I", (0x1000000 - 256 + 10) << 8)  # RING_RETURN
    done = extract(image, *args, check=False)
    assert done.returncode == 0
    assert re.search(r"CPU 0, page \d+: it is being written, or is no page", done.stderr)
    assert re.search(r"CPU 0, page \d+: an entry is not whole", done.stderr)
    assert "2 pages were skipped" in done.stderr
    own, left = calls_of(text), calls_of(done.stdout)
    assert own[-len(left) + 1:] == left[1:] or {*map(str, left)} < {*map(str, own)}
    # The last slot of a page is a call, but for a task's or a time's.
    # record()'s marker may be among the missing entries.
    marks = text.count("to be or not") - done.stdout.count("to be or not")
    missing = len(own) - len(left) + marks
    assert missing - (used - inner) in (0, 1)
    lost = str(missing)
    (_, overwritten, skipped, _), = LOST.findall(done.stderr)
    assert skipped == lost
    assert re.findall(r"^CPU:0 \[LOST (\d+) EVENTS\]$", done.stdout, re.M) == [lost]
    data = tmp_path / "trace.dat"
    extract(image, "--memory", memory, "--format", "trace.dat", "-o", data, check=False)
    report = subprocess.run(["trace-cmd", "report", "-i", data], text=True, check=True,
                            capture_output=True).stdout
    assert re.findall(r"^CPU:0 \[(\d+) EVENTS DROPPED\]$", report, re.M) == [overwritten, lost]
    with open(memory, "r+b") as file, mmap.mmap(file.fileno(), 0) as ram:
        nr = image.symbols["rings"] - base + image.bits // 8
        ram[nr:nr + 4] = b"\xff" * 4  # more pages than the guest has
    done = extract(image, *args, check=False)
    assert done.returncode == 0
    assert LOST.sub("", done.stderr) == "extract: CPU 0: its ring makes no sense; skipped\n"
    assert not calls_of(done.stdout)


def formats_of(data: bytes, order: str) -> list[bytes]:
    """The format files in a trace.dat: sizes of 8 bytes, and so many bytes of text."""
    return [data[at:at + struct.unpack(order + "Q", data[at - 8:at])[0]]
            for at in (m.start() for m in re.finditer(rb"name: \w+\nID: ", data))]


def test_formats_equal_the_guests(arch, image, guest, tmp_path):
    """The format of each event, and of each of Linux's own entries, is the guest's own file."""
    qmp, file = tmp_path / "qmp", tmp_path / "trace.dat"
    g = guest(arch, smp=1, extra=socket_args(qmp))
    extract(image, "--qmp", qmp, "-o", file)
    formats = [x.decode() for x in formats_of(file.read_bytes(), image.order)]
    names = [f"ftrace/{x}" for x in g.run(f"ls {TRACING}/events/ftrace").split()]
    names += g.run(f"cat {TRACING}/available_events").replace(":", "/").split()
    own = [g.run(f"cat {TRACING}/events/{x.strip('/')}/format") for x in names
           if "/enable" not in x and "/filter" not in x]
    assert len(formats) == len(own) > 30
    assert {x.strip() for x in formats} == {x.strip() for x in own}


def test_damaged_memory(arch, image, guest, tmp_path):
    """Words of the kernel's data and of its ring have any value: extract ends by itself, with
    a line for nonsense, of any kind."""
    memory = tmp_path / "memory"
    g = guest(arch, smp=2, extra=[
        "-object", f"memory-backend-file,id=ram,size={little(arch)},share=on,mem-path={memory}",
        "-machine", "memory-backend=ram"])
    record(g, "function_graph")
    g.run(f"echo 1 > {TRACING}/events/enable")
    g.close()
    numbers = random.Random(arch)
    values = (0, 1, 0x7f, 0xff, 0x7fffffff, 0x80000000, 0xffffffff)
    make("build/host/extract")
    ends = set()
    with open(memory, "r+b") as file, mmap.mmap(file.fileno(), 0) as ram:
        base = image.symbols["symbol_names"] - ram.find(image.read(image.symbols["symbol_names"],
                                                                   256))
        pointer = {32: "I", 64: "Q"}[image.bits]
        pages, = image.unpack(pointer, ram, image.symbols["rings"] - base)
        page, = image.unpack(pointer, ram, pages - base)
        # The variables that extract reads, each with so many words of it.
        places = [(image.symbols[name] - base, words) for name, words in (
            ("trace_instances", 40), ("rings", 40), ("__start_events", 200), ("comms", 200),
            ("to_ns", 2), ("clock_base", 2), ("nr_cpus", 1), ("longest", 16))]
        places += [(page - base, 1024), (pages - base, 8)]
        for i in range(60):
            at = [place + 4 * numbers.randrange(words) for place, words in
                  numbers.choices(places, k=numbers.choice((1, 1, 4)))]
            before = [(a, ram[a:a + 4]) for a in at]
            for a in at:
                ram[a:a + 4] = struct.pack("<I", numbers.choice(
                    (*values, numbers.getrandbits(32))))
            out = tmp_path / f"out{i}"
            kind = ("text", "trace.dat", "chrome", "folded", "uftrace")[i % 5]
            done = subprocess.run([EXTRACT, "--elf", image.path, "--memory", memory, "--format",
                                   kind, "-o", out], text=True, capture_output=True,
                                  errors="replace", check=False, timeout=60)
            assert done.returncode in (0, 1), (kind, [*map(hex, at)], done)
            assert done.returncode == 0 or done.stderr.startswith("extract: ")
            ends.add(done.returncode)
            for a, was in before:
                ram[a:a + 4] = was
        shift = image.symbols["to_ns"] - base + 4
        ram[shift:shift + 4] = struct.pack(image.order + "I", 200)
        done = extract(image, "--memory", memory, "--format", "text", "-o", "-", check=False)
        assert (done.returncode, done.stderr) == (
            1, "extract: the guest's clock makes no sense: it is shifted by 200 bits\n")
    assert 0 in ends


def test_bad_input(arch, image, guest, tmp_path):
    """One line, status 1 or 2, and no file is left half-written."""
    out = tmp_path / "out"

    def refused(*args: str, elf=image) -> str:
        done = extract(elf, *args, check=False)
        assert done.returncode in (1, 2) and len(done.stderr.splitlines()) == 1
        assert not [*tmp_path.glob("out*")]
        return done.stderr

    memory = tmp_path / "memory"
    memory.write_bytes(bytes(1 << 20))
    assert "is not in this memory" in refused("--memory", memory, "-o", out)
    assert "No such file" in refused("--memory", tmp_path / "none", "-o", out)
    assert "No such file" in refused("--qmp", tmp_path / "none", "-o", out)
    assert "trace.dat, text, uftrace" in refused(
        "--memory", memory, "--format", "xml", "-o", out)
    assert "--help" in refused("-o", out)
    empty = tmp_path / "empty"
    empty.touch()
    assert "it is empty" in refused("--memory", empty, "-o", out)
    qmp = tmp_path / "qmp"
    g = guest(arch, smp=1, extra=socket_args(qmp))
    assert "no instance 'none'" in refused("--qmp", qmp, "--instance", "none", "-o", out)
    # No room for the symbols: nothing is left of the folder.
    full = tmp_path / "full"
    done = subprocess.run(
        ["bash", "-c", 'trap "" XFSZ; ulimit -f 1; exec "$@"', "bash", EXTRACT, "--elf",
         image.path, "--qmp", qmp, "--format", "uftrace", "-o", full], text=True,
        capture_output=True, check=False)
    assert done.returncode != 0 and not [*tmp_path.glob("full*")]
    assert "it exists" in refused("--qmp", qmp, "--format", "uftrace", "-o", tmp_path)
    # Another kernel: one byte of a constant is different.
    other = tmp_path / "other.elf"
    data = bytearray(image.path.read_bytes())
    data[image.offset(image.symbols["own_formats"])] ^= 1
    other.write_bytes(data)

    class Other:
        path = other

    assert "is not in this memory" in refused("--qmp", qmp, "-o", out, elf=Other)
    # After all of that the guest runs as before.
    assert "init" in g.run("ps")
