# SPDX-License-Identifier: MIT
"""Programs that know nothing of nopl take a mounted guest for this machine: trace-cmd, perf."""

import os
import re
import select
import signal
import subprocess
import threading
from collections import Counter

import pytest

from conftest import ANY, ROOT, program
from test_mount import TRACING, Mounted, mounted, pytestmark  # noqa: F401


@pytest.fixture
def guest(mounted):  # noqa: F811
    """guest(arch, smp=n): a guest that programs can be run inside."""
    def start(arch: str, **options) -> Mounted:
        m = mounted(arch, **options)
        if m.inside("true").returncode:
            pytest.skip("no mount namespace can be made here")
        return m
    return start


def test_trace_cmd(arch, guest):
    """trace-cmd takes the guest for this machine."""
    m = guest(arch, smp=4)
    done = m.inside("trace-cmd", "list", "-t")
    assert done.stdout.split() == m.read("available_tracers").split()
    assert m.inside("trace-cmd", "list", "-f").stdout == m.read("available_filter_functions")
    done = m.inside("trace-cmd", "start", "-p", "function", "-l", "task_sleep")
    assert done.returncode == 0, done.stderr
    assert m.read("current_tracer") == "function\n"
    assert m.read("set_ftrace_filter") == "task_sleep\n"
    m.inside("trace-cmd", "stop")
    assert m.inside("trace-cmd", "show").stdout == m.read("trace")
    assert m.inside("trace-cmd", "reset").returncode == 0
    assert m.read("current_tracer") == "nop\n"
    data = m.folder.parent / "trace.dat"
    done = m.inside("trace-cmd", "record", "-o", str(data), "-p", "function", "-l", "task_sleep",
                    "-e", "sched_switch", "sleep", "0.5")
    assert done.returncode == 0, done.stderr
    report = m.inside("trace-cmd", "report", "-i", str(data)).stdout
    assert "cpus=4" in report
    assert re.search(r"^ +p9-\d+ +\[00\d\] +\d+\.\d+: function: +"
                     r"task_sleep( <-- serve_mailbox)?$", report, re.M), report[:2000]
    assert re.search(r"sched_switch: +\S+:\d+ \[\d+\] \S+ ==> \S+:\d+ \[\d+\]$", report, re.M)
    # Stopped, for the guest wakes a task for each read, and that would be another event.
    m.inside("trace-cmd", "start", "-e", "sched_wakeup")
    m.inside("trace-cmd", "stop")
    done = m.inside("trace-cmd", "extract", "-o", str(data))
    assert done.returncode == 0, done.stderr
    assert "sched_wakeup:" in m.inside("trace-cmd", "report", "-i", str(data)).stdout
    done = m.inside("trace-cmd", "start", "-B", "mine", "-e", "sched_switch")
    assert done.returncode == 0, done.stderr
    assert m.read("instances/mine/set_event") == "sched:sched_switch\n"
    assert "sched_switch:" in m.inside("trace-cmd", "show", "-B", "mine").stdout


def test_trace_cmd_reads_wakeups(arch, guest):
    """The calls of tracer wakeup, as Linux's own entries. The buffer begins anew with each
    wake-up: it is stopped until it holds one with its switch."""
    m = guest(arch, smp=2)
    data = m.folder.parent / "trace.dat"
    m.type("stress start")
    m.wait(lambda: "tasks on 2 CPUs" in m.text)
    ways = [re.compile(rf" {way} \d+:\d+:0 \[00[01]\]$", re.M) for way in (
        r"wakeup: +\d+:\d+:\d  ==>\+", r"context_switch: +\d+:\d+:\d  ==>")]

    def is_whole() -> bool:
        for command in (["start", "-p", "wakeup", "-O", "nofunction-trace"], ["stop"],
                        ["extract", "-o", str(data)]):
            assert m.inside("trace-cmd", *command).returncode == 0
        report = m.inside("trace-cmd", "report", "-i", str(data)).stdout
        return all(way.search(report) for way in ways)
    m.wait(is_whole)


def test_trace_cmd_asks(arch, guest):
    """trace-cmd's lists and its report of the tracer's state, snapshots."""
    m = guest(arch, smp=2)
    os.mkdir(m.folder / TRACING / "instances/mine")

    def said(*args: str) -> list[str]:
        done = m.inside("trace-cmd", *args)
        assert done.returncode == 0, (args, done.stderr)
        return done.stdout.split()
    assert sorted(said("list", "-e")) == sorted(m.read("available_events").split())
    assert sorted(said("list", "-o")) == sorted(m.read("trace_options").split())
    assert said("list", "-B") == ["mine"]
    assert said("list", "-C") == m.read("trace_clock").split()
    # What the server of the files does itself would fill the buffer, and push the markers out.
    said("start", "-p", "function", "-l", "cmd_pwd", "-e", "sched_process_fork")
    text = " ".join(said("stat"))
    for part in ("Instances: mine", "Tracer: function", "sched_process_fork", "cmd_pwd",
                 "Tracing is enabled"):
        assert part in text, text
    m.write("trace_marker", "before the snapshot")
    said("snapshot", "-s")
    m.write("trace_marker", "behind it")
    shown = " ".join(said("snapshot"))
    assert "before the snapshot" in shown and "behind it" not in shown
    assert "behind it" in m.read("trace")
    said("snapshot", "-f")
    assert "Snapshot is freed" in m.read("snapshot")


# A program for trace-cmd to record on four busy CPUs. It ends when something of each CPU has been
# read: a recorder that the host has not let begin until then would end with nothing.
UNTIL_READ = ["bash", "-c", "for cpu in 0 1 2 3; do "
              "until grep -q 'read events: [1-9]' /sys/kernel/tracing/per_cpu/cpu$cpu/stats; "
              "do sleep 0.1; done; done; sleep 1"]


def test_record_counts(arch, guest):
    """All functions on four busy CPUs: the events that trace-cmd shows and calls lost are, on
    each CPU, as many as the guest has written."""
    m = guest(arch, smp=4)
    data = str(m.folder.parent / "trace.dat")
    m.type("stress start")
    done = m.inside("trace-cmd", "record", "-o", data, "-p", "function", *UNTIL_READ, timeout=300)
    assert done.returncode == 0, done.stderr
    m.type("stress stop")
    seen, lost, cpu = Counter(), Counter(), 0
    report = m.inside("trace-cmd", "report", "-i", data, timeout=300).stdout
    for line in report.splitlines():
        if match := re.match(r"CPU:(\d) \[(\d+) EVENTS DROPPED\]$", line):
            lost[int(match[1])] += int(match[2])
        elif match := re.match(r".*? \[00(\d)\] ", line):
            seen[int(match[1])] += 1
    stat = m.inside("trace-cmd", "report", "--stat", "-i", data).stdout
    written = [int(n) for n in re.findall(r"^written: (\d+)$", stat, re.M)]
    assert [seen[cpu] + lost[cpu] for cpu in range(4)] == written, (seen, lost)
    # More than a ring holds: it was read while it was written.
    assert min(written) > 0 and sum(lost.values()) > 0, written


def test_splice(guest):
    """poll() and splice() on trace_pipe_raw, which trace-cmd records with: every page comes once,
    and where there is none, nothing waits."""
    m = guest(ANY, smp=1)
    top = m.folder / TRACING / "instances/one"
    os.mkdir(top)
    m.write("instances/one/buffer_percent", "0")
    raw = os.open(top / "per_cpu/cpu0/trace_pipe_raw", os.O_RDONLY)
    poll = select.poll()
    poll.register(raw, select.POLLIN)
    out, into = os.pipe()
    assert not poll.poll(300)
    with pytest.raises(BlockingIOError):
        os.splice(raw, into, 65536)

    def pages() -> bytes:
        assert poll.poll(60000)
        n = os.splice(raw, into, 65536)
        assert n and n % 4096 == 0
        return os.read(out, n)
    m.write("instances/one/trace_marker", "a mark")
    assert b"a mark\n" in pages()
    with open(top / "trace_marker", "w", encoding="ascii", buffering=1) as marker:
        for i in range(1000):
            marker.write(f"{i:5d}{'x' * 200}\n")
    found = []
    while len(found) < 1000:
        found += re.findall(rb" *(\d+)x{200}", pages())
    assert [*map(int, found)] == [*range(1000)]
    assert not poll.poll(300)
    # A read gets the entries that are there.
    os.set_blocking(raw, False)
    for i in range(5):
        m.write("instances/one/trace_marker", f"early {i}")
        assert f"early {i}\n".encode() in os.read(raw, 4096)
    with pytest.raises(BlockingIOError):
        os.read(raw, 4096)
    os.set_blocking(raw, True)
    assert not poll.poll(300)
    # Tracing is off for a while: that is no end.
    m.write("instances/one/tracing_on", "0")
    for _ in range(2):
        assert not poll.poll(300)
        with pytest.raises(BlockingIOError):
            os.splice(raw, into, 65536)
    m.write("instances/one/tracing_on", "1")
    m.write("instances/one/trace_marker", "on again")
    assert b"on again\n" in pages()
    # read() as well, and it waits where nobody asked before.
    m.write("instances/one/trace_marker", "the last one")
    assert poll.poll(60000)
    assert b"the last one\n" in os.read(raw, 4096)
    os.close(raw)
    raw = os.open(top / "per_cpu/cpu0/trace_pipe_raw", os.O_RDONLY)
    m.write("instances/one/trace_marker", "to another reader")
    assert b"to another reader\n" in os.read(raw, 4096)
    for fd in (raw, out, into):
        os.close(fd)


@pytest.mark.parametrize("percent", [25, 75, 100])
def test_buffer_percent(guest, percent):
    """As in Linux: poll() waits until the ring is buffer_percent full, splice() gives full pages,
    and read() the first entry."""
    m = guest(ANY, smp=1)
    top = m.folder / TRACING / "instances/one"
    os.mkdir(top)
    m.write("instances/one/buffer_size_kb", "64")
    m.write("instances/one/buffer_percent", str(percent))
    raw = os.open(top / "per_cpu/cpu0/trace_pipe_raw", os.O_RDONLY)
    poll = select.poll()
    poll.register(raw, select.POLLIN)
    out, into = os.pipe()

    def held() -> int:
        """Bytes in the ring."""
        text = (top / "per_cpu/cpu0/stats").read_text()
        return int(re.search(r"^bytes: (\d+)$", text, re.M)[1])
    room, part, written = int(m.read("instances/one/buffer_size_kb")) << 10, 0, 0
    with open(top / "trace_marker", "w", encoding="ascii", buffering=1) as marker:
        while not poll.poll(0):
            part = held()
            assert part < room, "poll() never sees the ring full"
            for _ in range(8):
                marker.write(f"{'x' * 200}\n")
                written += 1
    # Within the page that is written, and the rest of each page that no entry has room in.
    wanted = room * percent // 100
    assert 0.8 * wanted - 4096 <= part <= wanted, (part, wanted)
    pages = b""
    while True:
        try:
            pages += os.read(out, os.splice(raw, into, 65536))
        except BlockingIOError:
            break
    assert not poll.poll(200)
    os.set_blocking(raw, False)
    rest = b""
    while True:  # the last one is not full: only read() gives it
        try:
            rest += os.read(raw, 4096)
        except BlockingIOError:
            break
    assert pages and pages.count(b"x" * 200) + rest.count(b"x" * 200) == written
    m.write("instances/one/trace_marker", "one entry")
    assert not poll.poll(200)
    with pytest.raises(BlockingIOError):
        os.splice(raw, into, 65536)
    assert b"one entry\n" in os.read(raw, 4096)
    m.write("instances/one/trace_marker", "another one")
    assert not poll.poll(200)
    m.write("instances/one/buffer_percent", "0")
    assert poll.poll(60000)
    for fd in (raw, out, into):
        os.close(fd)


def test_stream(guest):
    """trace-cmd stream shows events. It may show the last of those that it has read with the next
    event alone, and so it ends by Ctrl-C: its poll() has no limit of time (3.1.6)."""
    m = guest(ANY, smp=2)
    m.write("buffer_percent", "0")  # as on Linux, it shows nothing before
    # A line is written when it is whole: what trace-cmd has read when it is stopped, and not
    # shown, is lost.
    with program(["tools/inside", m.folder, "stdbuf", "-oL", "trace-cmd", "stream", "-e",
                  "sched_process_fork"], cwd=ROOT, text=True, start_new_session=True,
                 stdout=subprocess.PIPE) as stream:
        def opened() -> int:
            """How many CPUs trace-cmd reads from. Then it switches tracing on. find only
            complains of a process that ends while it looks."""
            kids = subprocess.run(["pgrep", "-P", str(stream.pid)], text=True,
                                  capture_output=True, check=False).stdout.split()
            found = subprocess.run(["find", "/proc/self/fd", *(f"/proc/{k}/fd" for k in kids),
                                    "-lname", "*/trace_pipe_raw"], text=True,
                                   capture_output=True, check=False).stdout
            return len(found.splitlines())
        m.wait(lambda: opened() >= 2 and m.read("tracing_on") == "1\n")

        over = threading.Event()

        def next_events() -> None:
            """One a second. After two minutes the program hangs, and so would its children."""
            for _ in range(120):
                if over.wait(1):
                    return
                m.write("trace_marker", "another event\n")
            os.killpg(stream.pid, signal.SIGKILL)
        others = threading.Thread(target=next_events)
        others.start()
        shown = ""
        # One by one: on a busy host trace-cmd loses pages when it is behind by many.
        for i in range(40):
            m.write("trace_marker", f"mark {i}\n")
            while f"mark {i}\n" not in shown:
                line = stream.stdout.readline()
                assert line, shown
                shown += line
        stream.send_signal(signal.SIGINT)
        stream.communicate(timeout=60)
        over.set()
        others.join()
        assert stream.returncode == 0
        assert re.findall(r"print: +\S+: (mark \d+)$", shown, re.M) == \
            [f"mark {i}" for i in range(40)], shown


def test_perf(arch, guest):
    """perf ftrace, function by function. It counts the lines typed in the guest."""
    m = guest(arch, smp=2)
    if m.inside("perf", "version").returncode:
        pytest.skip("perf does not run here")
    # Of all tasks: perf's own command is none of the guest's.
    done = m.inside("perf", "ftrace", "trace", "-a", "-T", "task_sleep", "sleep", "0.5")
    lines = [x for x in done.stdout.splitlines() if x and not x.startswith("#")]
    # perf takes the column of interrupts and preemption away.
    line = re.compile(r" +\S+-\d+ +\[00[01]\] +\d+\.\d{6}: task_sleep <-\w+$")
    assert len(lines) > 5, done.stderr
    assert all(map(line.match, lines)), done.stdout[:2000]
    done = m.inside("perf", "ftrace", "trace", "-a", "-G", "task_sleep", "--graph-opts",
                    "depth=2", "sleep", "0.5")
    assert re.search(r"^ \d\) +\|  task_sleep\(\) \{$", done.stdout, re.M), done.stderr
    assert re.search(r"^ \d\) .*\|    task_block\(\) \{$|^ \d\) .*\|    task_block\(\);$",
                     done.stdout, re.M), done.stdout[:3000]
    typed = m.folder.parent / "typed"
    process = subprocess.Popen(
        ["tools/inside", m.folder, "perf", "ftrace", "latency", "-a", "-T", "shell_run",
         "bash", "-c", f"until [ -e {typed} ]; do sleep 0.1; done"],
        cwd=ROOT, text=True, stdout=subprocess.PIPE)
    m.wait(lambda: m.read("current_tracer") == "function_graph\n" and
           m.read("tracing_on") == "1\n")
    for i in range(7):
        m.type(f"echo line {i}")
        m.wait(lambda i=i: re.search(rf"^line {i}\r?$", m.text, re.M))
    typed.touch()
    counts = re.findall(r"^ +\d+ - \S+ +\ws +\| +(\d+) \|", process.communicate()[0], re.M)
    assert sum(map(int, counts)) == 7
    assert m.read("current_tracer") == "nop\n"


def test_trace_cmd_keeps_the_pids(guest):
    """record -F saves set_event_pid, and writes the same text back. Once that failed, all
    later recordings were empty."""
    m = guest(ANY)
    data = m.folder.parent / "trace.dat"
    for _ in range(2):
        done = m.inside("trace-cmd", "record", "-o", str(data), "-e", "sched_switch", "-F",
                        "sleep", "0.1")
        assert done.returncode == 0, done.stderr
        assert m.read("set_event_pid") == ""
        assert m.read("set_event_notrace_pid") == ""
    done = m.inside("trace-cmd", "record", "-o", str(data), "-e", "sched_switch", "sleep", "0.5")
    assert done.returncode == 0, done.stderr
    assert "sched_switch:" in m.inside("trace-cmd", "report", "-i", str(data)).stdout


def test_trace_cmd_finds_each_tracer(guest):
    """libtracefs takes the last name of available_tracers with the newline behind it."""
    m = guest(ANY)
    for tracer in m.read("available_tracers").split():
        done = m.inside("trace-cmd", "start", "-p", tracer)
        assert done.returncode == 0, (tracer, done.stderr)
        assert m.read("current_tracer") == tracer + "\n"
    assert m.inside("trace-cmd", "reset").returncode == 0


def test_trace_cmd_takes_each_trigger_away(guest):
    """reset writes each line of the files back, behind a "!": counts, filters, and "unlimited"."""
    m = guest(ANY)
    for text in ("task_wake:traceoff:3", "task_wake:stacktrace", "task_*:traceon:2",
                 "task_sleep:enable_event:sched:sched_switch:2"):
        m.write("set_ftrace_filter", text, os.O_APPEND)
    event = "events/sched/sched_wakeup/"
    for text in ("stacktrace:3 if prio > 200", "traceoff if pid == 1 || pid == 2"):
        m.write(event + "trigger", text, os.O_APPEND)
    assert len(m.read("set_ftrace_filter").splitlines()) > 4
    assert len([x for x in m.read(event + "trigger").splitlines() if x[0] != "#"]) == 2
    assert m.inside("trace-cmd", "reset").returncode == 0
    assert m.read("set_ftrace_filter") == "#### all functions enabled ####\n"
    assert not [x for x in m.read(event + "trigger").splitlines() if x[0] != "#"]


def test_inside_takes_rights_away(guest):
    """A program cannot reach this machine's tracer, nor have it count, root or not, what the
    guest has not is this machine's."""
    m = guest(ANY)
    ours = m.read("available_tracers")
    done = m.inside("sh", "-c", "umount /sys/kernel/tracing; mount -t tracefs none /mnt; "
                    "cat /sys/kernel/tracing/available_tracers")
    assert done.stdout == ours, done.stderr
    assert m.inside("cat", "/proc/sys/kernel/osrelease").stdout == \
        open("/proc/sys/kernel/osrelease").read()
    # All that the guest has is the guest's, also where this machine has no such file.
    assert {"ftrace_enabled", "stack_tracer_enabled"} <= {*os.listdir(m.folder / "proc/sys/kernel")}
    for file in (m.folder / "proc/sys/kernel").iterdir():
        text = m.inside("sh", "-c", f"echo 1 > /proc/sys/kernel/{file.name}; "
                        f"cat /proc/sys/kernel/{file.name}")
        assert text.stdout == file.read_text() == "1\n", (file, text)
    if os.path.isdir("/sys/kernel/debug"):
        assert m.inside("cat", "/sys/kernel/debug/tracing/available_tracers").stdout == ours
    done = m.inside("perf", "stat", "-e", "sched:sched_switch", "true")
    assert "events of this machine, not of the guest" in done.stderr
    assert not re.search(r"\d +sched:sched_switch", done.stderr), done.stderr
