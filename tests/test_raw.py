# SPDX-License-Identifier: MIT
"""trace_pipe_raw: trace-cmd reads nopl's binary pages, with nopl's own formats, and says
the same as nopl's own text, event by event."""

import re
import struct
import subprocess

import pytest
from conftest import EVERY_KERNEL
from guest import TRACE_LINE
from test_events import LINE

TRACING = "/sys/kernel/tracing"


def read_hex(g, file: str, timeout: float = 120) -> bytes:
    """A binary file of the guest's, through its console."""
    return bytes.fromhex("".join(g.lines(f"xxd -p {file}", timeout=timeout)))


class TraceDat:
    """A trace.dat of version 6, made of the guest's control files."""

    def __init__(self, image, g, cpus: int):
        self.g, self.cpus = g, cpus
        self.end = image.order
        self.bits = image.bits
        # trace-cmd never resolves the last symbol, so one stands behind it.
        self.symbols = "".join(
            f"{f.addr:x} T {f.name}\n" for f in image.functions
        ) + f"{image.symbols['_etext']:x} T _etext\n"

    def number(self, form: str, value: int) -> bytes:
        """In the guest's byte order."""
        return struct.pack(self.end + form, value)

    def text(self, file: str, form: str = "Q") -> bytes:
        """A file's contents, with its length in front."""
        data = ("\n".join(self.g.lines(f"cat {TRACING}/{file}")) + "\n").encode()
        return self.number(form, len(data)) + data

    def pages(self, file: str = "trace_pipe_raw") -> list[bytes]:
        """Each CPU's raw pages."""
        return [read_hex(self.g, f"{TRACING}/per_cpu/cpu{cpu}/{file}")
                for cpu in range(self.cpus)]

    def make(self, pages: list[bytes]) -> bytes:
        """The file."""
        g = self.g
        out = b"\x17\x08\x44tracing6\0"
        out += bytes([self.end == ">", self.bits // 8]) + self.number("I", 4096)
        out += b"header_page\0" + self.text("events/header_page")
        out += b"header_event\0" + self.text("events/header_event")
        own = ["function", "funcgraph_entry", "funcgraph_exit", "kernel_stack",
               "func_repeats", "print"]
        out += self.number("I", len(own))
        for name in own:
            out += self.text(f"events/ftrace/{name}/format")
        systems: dict[str, list[str]] = {}
        for line in g.lines(f"cat {TRACING}/available_events"):
            systems.setdefault(line.split(":")[0], []).append(line.split(":")[1])
        out += self.number("I", len(systems))
        for system, names in systems.items():
            out += system.encode() + b"\0" + self.number("I", len(names))
            for name in names:
                out += self.text(f"events/{system}/{name}/format")
        symbols = self.symbols.encode()
        out += self.number("I", len(symbols)) + symbols
        out += self.text("printk_formats", "I") + self.text("saved_cmdlines")
        out += self.number("I", self.cpus) + b"flyrecord\0"
        at = (len(out) + 16 * self.cpus + 4095) // 4096 * 4096
        head, data = b"", b""
        for page in pages:
            head += self.number("Q", at + len(data)) + self.number("Q", len(page))
            data += page
        return (out + head).ljust(at, b"\0") + data


@pytest.mark.parametrize("arch", EVERY_KERNEL, indirect=True)
def test_trace_cmd_reads_it(arch, image, guest, tmp_path):
    """Functions, every event, a marker and a time far ahead, on two CPUs."""
    g = guest(arch, smp=2, append="trace_buf_size=512K")
    g.run(f"cd {TRACING}")
    # task_die() is called last in its caller, and does not return.
    g.run("echo 'task_wake wake_all timer_start task_die' > set_ftrace_filter")
    g.run("echo function > current_tracer")
    g.run("echo 'sched:* signal:* irq:* ipi:* timer:* kmem:* nopl:*' > set_event")
    g.run("stress start 1")
    g.run("sleep 0.01")
    g.run("stress stop")
    g.run("echo a note > trace_marker")
    g.run("sleep 0.3")  # more than 2^27 ns
    g.run("echo 0 > tracing_on")
    lines = [x for x in g.lines("cat trace", timeout=300) if not x.startswith("#")]
    dat = TraceDat(image, g, 2)
    pages = dat.pages()
    assert all(len(p) % 4096 == 0 for p in pages)
    assert g.lines("cat trace | grep -v '^#'") == []  # read is consumed
    file = tmp_path / "trace.dat"
    file.write_bytes(dat.make(pages))
    done = subprocess.run(["trace-cmd", "report", "-O", "parent", str(file)], text=True,
                          capture_output=True, check=True)
    assert "FIELD" not in done.stdout and not done.stderr.strip(), done.stderr
    said = [x for x in done.stdout.splitlines() if not x.startswith("cpus=")]
    assert len(said) == len(lines) > 100
    assert any("task_die" in x for x in lines)
    report = re.compile(r"\s*(?P<comm>.+)-(?P<pid>\d+)\s+\[(?P<cpu>\d+)\]\s+"
                        r"(?P<time>\d+\.\d+): (?P<event>\w+): +(?P<text>.*)")
    ours, theirs = [], []
    for line in lines:
        call, event = TRACE_LINE.match(line), LINE.match(line)
        m = event or call
        time = event["time"] if event else f"{call['seconds']}.{call['micros']}"
        name = event["event"] if event else "function"
        text = event["text"] if event else f"{call['callee']} <-- {call['caller']}"
        ours.append((int(m["cpu"]), int(m["pid"]), round(float(time) * 1e6), name, text))
    for line in said:
        m = report.match(line)
        assert m, line
        theirs.append((int(m["cpu"]), int(m["pid"]), round(float(m["time"]) * 1e6),
                       m["event"], m["text"].strip()))
    # Two CPUs may have entries of the same time, and a microsecond may be rounded.
    ours.sort(key=lambda e: e[0])
    theirs.sort(key=lambda e: e[0])
    for a, b in zip(ours, theirs):
        assert a[:2] == b[:2] and abs(a[2] - b[2]) <= 1, (a, b)
        assert a[3].replace("tracing_mark_write", "print") == b[3], (a, b)
        if a[3] == "function":
            assert a[4] == b[4], (a, b)
        elif a[3] == "tracing_mark_write":
            assert b[4].endswith(a[4]), (a, b)
        elif a[3] == "sched_switch":
            # trace-cmd's own words: "ping:7 [7] S ==> pong:8 [7]"
            numbers = re.findall(r"_pid=(\d+)", a[4])
            assert re.findall(r":(\d+) \[", b[4]) == numbers, (a, b)
        elif a[3] in ("ipi_entry", "ipi_exit", "patch_step", "sched_migrate_task",
                      "irq_handler_entry", "kfree"):
            words = re.findall(r"[a-z_]+=(\d+)\b|\((.*)\)", a[4])
            # trace-cmd 3.1 reads a pointer to a text in the host's byte order.
            assert all((n or t) in b[4] for n, t in words
                       if n or image.order == "<"), (a, b)


def test_trace_cmd_reads_a_snapshot(arch, image, guest, tmp_path):
    """snapshot_raw: the entries of each CPU's snapshot, while tracing goes on."""
    g = guest(arch, smp=2)
    g.run(f"cd {TRACING}")
    g.run("echo 'task_wake timer_start' > set_ftrace_filter")
    g.run("echo function > current_tracer")
    g.run("sleep 0.05")
    g.run("stress start 1")
    g.run("sleep 0.01")
    g.run("stress stop")
    g.run("echo 1 > snapshot")
    texts = [[x for x in g.lines(f"cat per_cpu/cpu{cpu}/snapshot", timeout=300)
              if not x.startswith("#")] for cpu in range(2)]
    dat = TraceDat(image, g, 2)
    file = tmp_path / "trace.dat"
    file.write_bytes(dat.make(dat.pages("snapshot_raw")))
    done = subprocess.run(["trace-cmd", "report", "-O", "parent", str(file)], text=True,
                          capture_output=True, check=True)
    said = re.findall(r"\[(\d+)\]\s+(\d+\.\d+): function: +(\w+) <-- (\w+)", done.stdout)
    for cpu, lines in enumerate(texts):
        calls = [TRACE_LINE.match(x) for x in lines]
        theirs = [(float(time), callee, caller) for at, time, callee, caller in said
                  if int(at) == cpu]
        assert len(theirs) == len(calls) > 10
        for m, (time, callee, caller) in zip(calls, theirs):
            assert (m["callee"], m["caller"]) == (callee, caller)
            assert abs(float(f"{m['seconds']}.{m['micros']}") - time) < 2e-6
    assert not any("[00" in x for x in g.lines("cat snapshot") if not x.startswith("#"))


def test_trace_cmd_reads_repeats(arch, image, guest, tmp_path):
    """Option func-no-repeats: calls that came again are one entry, in both texts."""
    g = guest(arch)
    g.run(f"cd {TRACING}")
    g.run("trace start -p function -l cmd_echo -l cmd_pwd -O func-no-repeats")
    g.run("echo a; echo b; echo c; pwd")
    g.run("echo 0 > tracing_on")
    lines = [x for x in g.lines("cat trace") if not x.startswith("#")]
    said = [re.sub(r"<-\S+| last_ts: *\d+\.\d{6}", "", x.split(": ", 1)[1]) for x in lines]
    # The shell that turns tracing off calls cmd_echo, too.
    assert [x.rstrip() for x in said] == [
        "cmd_echo", "cmd_echo  (repeats: 2,)", "cmd_pwd", "cmd_echo"]
    dat = TraceDat(image, g, 1)
    file = tmp_path / "trace.dat"
    file.write_bytes(dat.make(dat.pages()))
    done = subprocess.run(["trace-cmd", "report", str(file)], text=True,
                          capture_output=True, check=True)
    assert "FIELD" not in done.stdout and not done.stderr.strip(), done.stderr
    # trace-cmd's own words.
    (name, count, last), = re.findall(
        r"func_repeats: +(\w+) \(count: (\d+) +last_ts: +(\d+\.\d+)\)", done.stdout)
    ours = re.search(r"last_ts: +(\d+\.\d+)\)", "\n".join(lines))[1]
    assert (name, count) == ("cmd_echo", "2"), done.stdout
    assert abs(float(last) - float(ours)) < 2e-6, (last, ours)
