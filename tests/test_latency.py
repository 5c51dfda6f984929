# SPDX-License-Identifier: MIT
"""The latency tracers at the shell, in Linux's latency format: every line of it, against a
strict grammar, and the header against the lines. That a section is as long as it
says is tested in the guest, against sections that a test makes (tracer/latency/)."""

import re

import pytest

TRACING = "/sys/kernel/tracing"
HEADER = re.compile(r"""# tracer: (?P<tracer>\w+)
#
# (?P=tracer) latency trace v1\.1\.5 on nopl
# -{68}
# latency: (?P<us>\d+) us, #(?P<n>\d+)/(?P<all>\d+), CPU#(?P<cpu>\d) \| MODEL
#    -----------------
#    \| task: (?P<comm>\S*)-(?P<pid>\d+) \(uid:0 nice:0 policy:0 rt_prio:(?P<prio>\d+)\)
#    -----------------
(?P<places>#  => started at: (?P<began>\w+)
#  => ended at:   (?P<ended>\w+)
#
)?#
#                    _------=> CPU#            
#                   / _-----=> irqs-off/BH-disabled
#                  \| / _----=> need-resched    
#                  \|\| / _---=> hardirq/softirq 
#                  \|\|\| / _--=> preempt-depth   
#                  \|\|\|\| / _-=> migrate-disable 
#                  \|\|\|\|\| /     delay           
#  cmd     pid     \|\|\|\|\|\| time  \|   caller     
#     \\   /        \|\|\|\|\|\|  \\    \|    /       
""".replace("MODEL", r"\(M:preempt VP:0, KP:0, SP:0 HP:0 #P:(?P<cpus>\d)\)"))
LINE = re.compile(r"(?P<comm>[ \S]{8})-(?P<pid>\d+) +(?P<cpu>\d)"
                  r"(?P<flags>[d.][N.][hzZ.][0-9a-f.]\.) "
                  r"(?P<us> *\d+)us(?P<mark>[ +!#*@$]): (?P<text>.+)")
LONG = [(10, " "), (100, "+"), (1000, "!"), (10000, "#"), (100000, "*"), (1000000, "@")]


def shown(guest, file="trace"):
    """The header's fields, and the lines' ones."""
    lines = guest.lines(f"cat {file}")
    header = "".join(line + "\n" for line in lines if line.startswith("#"))
    fields = HEADER.fullmatch(header)
    assert fields, header
    body = [LINE.fullmatch(line) for line in lines if not line.startswith("#")]
    assert all(body), [line for line in lines if not line.startswith("#")
                       and not LINE.fullmatch(line)][:3]
    return fields, body


def check_marks(body):
    """The mark says how much later the next line is. Both are rounded to microseconds."""
    times = [int(line["us"]) for line in body]
    assert times == sorted(times)
    for line, later in zip(body, times[1:]):
        gap = later - int(line["us"])
        fits = {next((m for end, m in LONG if g <= end), "$") for g in (gap - 1, gap, gap + 1)}
        assert line["mark"] in fits, line[0]


@pytest.mark.parametrize("tracer", ["irqsoff", "preemptoff", "preemptirqsoff"])
def test_sections(arch, guest, tracer):
    """Under load: the longest section, on one CPU, its first call and its last."""
    g = guest(arch, smp=4)
    g.run(f"cd {TRACING}")
    g.run("stress start")
    # Few enough calls that the buffer holds the longest section on any host.
    g.run(f"trace start -p {tracer} -l schedule -l 'irq_*' -l timer_interrupt")
    g.run("stress stop")
    g.run("echo 0 > tracing_on")
    header, body = shown(g)
    assert header["tracer"] == tracer and header["cpus"] == "4"
    assert int(header["n"]) == int(header["all"]) == len(body) >= 2
    assert {line["cpu"] for line in body} == {header["cpu"]}
    assert g.lines("cat tracing_max_latency") == [header["us"]]
    assert int(body[-1]["us"]) >= int(header["us"])
    assert body[0]["text"].startswith(header["began"] + " <-")
    assert body[-1]["text"].startswith(header["ended"] + " <-")
    if tracer == "irqsoff":
        assert all(line["flags"][0] == "d" for line in body)
    check_marks(body)
    # Each CPU's file has its own part, which is all or nothing.
    for cpu in range(4):
        found = g.lines(f"cat per_cpu/cpu{cpu}/trace | grep -v '^#' | wc")[0].split()[0]
        assert int(found) == (len(body) if str(cpu) == header["cpu"] else 0)
    assert g.poweroff() == 0


@pytest.mark.parametrize("tracer", ["wakeup", "wakeup_rt"])
def test_wakeups(arch, guest, tracer):
    """From the call that wakes the task to the switch to it, each as Linux shows it."""
    g = guest(arch, smp=4)
    g.run(f"cd {TRACING}")
    g.run("stress start")
    g.run(f"trace start -p {tracer} -l schedule")
    g.run("sleep 1")
    g.run("echo 0 > tracing_on")
    header, body = shown(g)
    assert header["tracer"] == tracer and not header["places"]
    assert tracer == "wakeup" or int(header["prio"]) >= 16
    # Other CPUs' calls may come before the first of these, between them, and after the last.
    woken, = [i for i, line in enumerate(body) if "   + [" in line["text"]]
    waker = [line for line in body[woken:] if line["cpu"] == body[woken]["cpu"]]
    assert waker[1]["text"].startswith("put_on <-")
    there = [line for line in body if line["cpu"] == header["cpu"]]
    assert there[-2]["text"] == "schedule <-schedule"
    task = rf"{header['pid']:>7}:{header['prio']:>3}:R {re.escape(header['comm'])}"
    assert f" [00{header['cpu']}] " in there[-1]["text"]
    for line, arrow in (body[woken], r"  \+"), (there[-1], "==>"):
        who = f"{line['pid']:>7}"
        assert re.fullmatch(rf" {who}:  ?\d+:[RSTX] {arrow} \[00\d\] {task}", line["text"]), (
            line[0], task)
    check_marks(body)
    g.run("stress stop")
    assert g.poweroff() == 0


def test_latency_format_of_other_tracers(arch, guest):
    """Option latency-format: the same header and lines, times since the buffer began."""
    g = guest(arch)
    g.run(f"cd {TRACING}")
    g.run("trace start -p function -l 'task_*' -O latency-format")
    g.run("sleep 1")
    g.run("echo 0 > tracing_on")
    header, body = shown(g)
    assert header["tracer"] == "function" and header["us"] == "0"
    assert int(header["n"]) == len(body) > 0
    plain = g.lines("echo nolatency-format > trace_options; cat trace | grep -v '^#'")
    assert [line.split(": ", 1)[1] for line in plain] == [line["text"] for line in body]
    check_marks(body)
    assert g.poweroff() == 0


def test_from_boot(arch, guest):
    """ftrace=irqsoff, and the snapshot that it keeps is refused to others."""
    g = guest(arch, smp=2, append="ftrace=irqsoff trace_options=nofunction-trace")
    g.run(f"cd {TRACING}")
    assert g.lines("cat current_tracer") == ["irqsoff"]
    header, body = shown(g)
    assert header["began"] and len(body) >= 2
    refused = g.lines("echo 1 > snapshot")
    assert len(refused) == 1 and "the tracer irqsoff keeps its longest latency there" in refused[0]
    g.run("echo nop > current_tracer")
    assert "# * Snapshot is freed *" in g.lines("cat snapshot")
    assert g.poweroff() == 0
