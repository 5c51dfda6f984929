# SPDX-License-Identifier: MIT
"""Bad input: one clear line that names the mistake and the accepted values, and
nothing changes."""

import re

import pytest
from conftest import ARCHES
from lib.port import UsageError

TRACING = "/sys/kernel/tracing"

# The typed line, and words that the answer must have.
SHELL = [
    ("frobnicate", ["frobnicate", "help"]),
    ("cd /nowhere", ["/nowhere"]),
    ("cat /nowhere", ["/nowhere"]),
    ("cat", ["usage"]),
    ("echo 'open", ["quote|'"]),
    ("echo x |", ["|"]),
    ("echo x > /proc/uptime", ["uptime", "cannot be written"]),
    ("echo x > /nowhere", ["no such file"]),
    ("echo 0 > /proc/sys/kernel/ftrace_enabled", ["current_tracer", "nop"]),
    ("echo x | frobnicate", ["frobnicate"]),
    ("head -n x /proc/uptime", ["x", "number|usage"]),
    ("sleep soon", ["number"]),
    ("stress", ["start", "stop"]),
    ("stress start 0", ["at least 1"]),
    ("test none.such", ["none.such"]),
    ("trace", ["start", "begin with list"]),
    ("trace frobnicate", ["frobnicate|start"]),
    ("trace list -x", ["-x", "-t (tracers)"]),
    ("trace list -o a", ["a", "-f [GLOB]"]),
    ("trace list -e a b", ["b", "fewer"]),
    ("trace stack -x", ["-x", "--start"]),
    ("trace start -R traceoff", ["-e EVENT"]),
    ("trace start -e sched_switch -R explode", ["-R", "explode", "traceoff"]),
    ("trace start -e sched -R traceoff", ["sched", "of that name alone"]),
    ("trace start -M ff -p nop", ["ff", "-1 for all"]),
    ("trace start -P ping", ["-P 'ping'", "a number", "ps"]),
    ("trace start -p nop --max-graph-depth deep", ["deep", "a number", "0 is all"]),
    ("trace start -p", ["-p", "TRACER is missing"]),
    ("trace start -e sched_switch -f 'next_prio >>> 6'",
     ["Invalid value", "at character 12", "events/sched/sched_switch/format"]),
    ("trace start -e sched -f 'next_prio >>> 6'", ["Field not found", "events/sched/*/format"]),
    ("trace start -e sched_switch -R 'traceoff if next_prio >>> 6'", ["at character 12"]),
    ("trace start -e nothing", ["nothing", "available_events"]),
    ("trace start -f 'pid == 1'", ["-e EVENT"]),
    ("trace start -B new -p irqsoff", ["nop", "function"]),
    ("trace start -B new -p nop -g cmd_echo", ["-g", "top level"]),
    ("trace show -B nosuch", ["nosuch", "ls instances"]),
    ("trace show -B", ["name of an instance"]),
    ("trace stop soon", ["soon", "-B INSTANCE"]),
    ("mkdir", ["DIR"]),
    ("mkdir /nowhere", ["/nowhere", "tracing/instances"]),
    (f"mkdir {TRACING}/instances/a/b", ["tracing/instances"]),
    (f"mkdir {TRACING}/instances/{'x' * 32}", ["at most 31"]),
    (f"rmdir {TRACING}/instances/nosuch", ["nosuch", "no such folder"]),
    (f"rmdir {TRACING}/events", ["tracing/instances"]),
]

# File, text, and words that the line must have.
CONTROL = [
    ("current_tracer", "frobnicator", ["frobnicator", "nop", "function"]),
    ("set_ftrace_filter", "no_such_function", ["no_such_function"]),
    ("set_ftrace_filter", "'no_such_*'", ["no_such_"]),
    ("set_ftrace_notrace", "no_such_function", ["no_such_function"]),
    ("tracing_on", "2x", ["0 is off"]),
    ("tracing_on", "on", ["0 is off"]),
    ("buffer_size_kb", "0", ["buffer_size_kb"]),
    ("buffer_size_kb", "many", ["many|number"]),
    ("buffer_size_kb", "99999999", ["memory|to|most|max"]),
    ("trace_clock", "sundial", ["sundial", "local|global"]),
    ("tracing_cpumask", "xyz", ["mask|hex"]),
    ("trace_options", "nosuch", ["nosuch", "trace_options lists"]),
    ("max_graph_depth", "deep", ["deep", "0 is all"]),
    ("tracing_thresh", "-1", ["-1", "microseconds"]),
    ("set_graph_function", "no_such_function", ["no_such_function"]),
    ("set_ftrace_filter", "task_wake:explode", ["explode", "traceoff"]),
    ("set_ftrace_filter", "task_wake:traceoff:0", ["'0'", "at least 1"]),
    ("set_ftrace_filter", "'!task_wake:traceoff'", ["task_wake", "no such trigger"]),
    ("set_ftrace_pid", "init", ["init", "ps"]),
    ("stack_max_size", "7", ["7", "0"]),
    ("function_profile_enabled", "2", ["2", "0 nor 1"]),
    ("set_event_pid", "init", ["init", "ps"]),
    ("events/kmem/kfree/trigger", "explode", ["explode", "traceoff"]),
    ("events/enable", "2", ["2", "0 nor 1"]),
    ("events/sched/sched_switch/enable", "yes", ["yes", "0 nor 1"]),
    ("set_event", "sched:nothing", ["sched:nothing", "available_events"]),
    ("set_event", "nothing", ["nothing", "available_events"]),
    ("events/kmem/kfree/filter", "'ptr = 1'", ["Invalid operator", "format"]),
    ("events/kmem/filter", "'nothing == 1'", ["Field not found", "kmem"]),
]


def has_words(line: str, words: list[str]) -> bool:
    """Each word, or one of those that | separates, is in the line."""
    return all(any(w in line for w in word.split("|")) or word in line
               for word in words)


@pytest.fixture(scope="module", params=ARCHES)
def shared(request):
    """One guest for all lines that must change nothing."""
    from conftest import built
    from guest import Guest
    built(request.param)
    with Guest(request.param, smp=2) as g:
        yield g


def test_shell_lines(shared):
    wrong = [(line, said) for line, words in SHELL
             if not has_words(said := shared.error(line), words)]
    assert wrong == []
    # Nor is there the instance that `trace start -B new` would have made.
    assert shared.lines(f"ls {TRACING}/instances") == []


def test_control_files(shared):
    shared.run(f"cd {TRACING}")
    wrong = []
    for file, text, words in CONTROL:
        before = shared.run(f"cat {file}")
        said = shared.error(f"echo {text} > {file}")
        if not has_words(said, [file, *words]):
            wrong.append((file, text, said))
        if shared.run(f"cat {file}") != before:
            wrong.append((file, text, "changed"))
    shared.run("cd /")
    assert wrong == []


def test_too_long(shared):
    """A line longer than the editor's, and a write longer than a file takes."""
    assert "long" in shared.error("echo " + "x" * 1500)
    words = " ".join(["sched_yield"] * 60)
    assert shared.run(f"echo {words} > {TRACING}/set_ftrace_filter") == ""
    assert shared.run(f"echo > {TRACING}/set_ftrace_filter") == ""


def test_machine_is_unharmed(shared):
    assert shared.lines(f"cat {TRACING}/current_tracer") == ["nop"]
    assert shared.lines(f"cat {TRACING}/enabled_functions") == []
    assert "none lost" in shared.run("stress start 1; stress stop")


PARAMETERS = [
    ("frobnicate=1", ["frobnicate", "known"]),
    ("nop=none-such", ["none-such", "nop"]),
    ("maxcpus=0", ["maxcpus", "0"]),
    ("maxcpus=many", ["maxcpus", "many"]),
    ("p9=disk", ["p9", "memory"]),
    ("ftrace=frobnicator", ["frobnicator", "function"]),
    ("ftrace_filter=no_such_function", ["no_such_function"]),
    ("trace_buf_size=none", ["trace_buf_size", "none"]),
    ("panic=maybe", ["panic", "exit"]),
    ("trace_clock=sundial", ["sundial", "trace_clock", "uptime"]),
    ("trace_options=nosuch", ["nosuch", "option"]),
    ("ftrace_graph_filter=no_such_root", ["no_such_root"]),
    ("ftrace_graph_max_depth=deep", ["deep", "levels"]),
    ("stacktrace=1", ["stacktrace", "nothing"]),
    ("ftrace_dump_on_oops=3", ["ftrace_dump_on_oops", "orig_cpu"]),
    ("tp_printk=often", ["tp_printk", "1, on, 0 or off"]),
    ("traceoff_on_warning=2", ["traceoff_on_warning", "1, on, 0 or off"]),
]


@pytest.mark.parametrize("half", [0, 1])  # a machine's loader may cut at 255 bytes
def test_parameters(arch, guest, half):
    """Several wrong boot parameters: each has a line of its own, and the boot goes on."""
    wrong = PARAMETERS[half::2]
    g = guest(arch, smp=2, append=" ".join(p for p, _ in wrong), refused_parameters=True)
    lines = g.boot_text.splitlines()
    for parameter, words in wrong:
        assert any(line.startswith("param: ") and has_words(line, words) for line in lines), \
            (parameter, lines)
    assert re.search(r"^nopl \S+ \S+: 2 CPUs", g.boot_text, re.M)
    assert g.lines(f"cat {TRACING}/current_tracer") == ["nop"]
    for file in ("stack_tracer_enabled", "ftrace_dump_on_oops", "traceoff_on_warning"):
        assert g.lines(f"cat /proc/sys/kernel/{file}") == ["0"]
    assert g.poweroff() == 0


def test_unknown_parameter(arch, image, guest):
    """Its line names every parameter there is."""
    line, = re.findall(r"^param: unknown 'nosuch' \(known:(.*)\)\r?$",
                       guest(arch, append="nosuch=1",
                             refused_parameters=True).boot_text, re.M)
    known = line.split()
    assert {name.partition("=")[0] for name, _ in PARAMETERS} <= {*known, "frobnicate"}
    assert len({*known}) == sum(name.startswith("kernel_param_") for name in image.symbols)


# Parameters that a boot does not take as they stand. Each way to say so has one.
REFUSED = [
    ("trace_evnt=sched", "param: unknown 'trace_evnt'"),
    ("maxcpus=many", "param: bad value 'many' for maxcpus; it takes 1 to 32"),
    ("trace_event=nosuch", f"param: {TRACING}/set_event: no event 'nosuch'"),
    ("trace_instance=a/b", f"param: {TRACING}/instances/a/b: "),
    ("trace_buf_size=900M", "param: trace_buf_size: no memory for 921600 KiB a CPU"),
]


@pytest.mark.parametrize("append, said", REFUSED, ids=[append for append, _ in REFUSED])
def test_refused_parameter_is_no_pass(arch, guest, run_tool, append, said):
    """A parameter that the kernel does not take is no pass, of tools/run and of a guest of a
    test."""
    with pytest.raises(UsageError, match=re.escape(said) + ".*; refused_parameters=True"):
        guest(arch, append=append)
    args = ("--arch", arch, "--append", append + ' run="test shell.words; poweroff"')
    done = run_tool(*args)
    assert done.returncode == 2
    assert "1 passed, 0 failed, 0 skipped, but " + said in done.stdout
    assert run_tool(*args, "--refused-parameters").returncode == 0


@pytest.mark.parametrize("append, said", [
    ('run="test shell.words; poweroff', "a double quote is not closed"),
    ('run="test shell.words; poweroff"' + " " * 1100 + "panic=halt",
     "the command line was longer")], ids=["quote", "length"])
def test_command_line_cut_short(arch, run_tool, append, said):
    """Where only the end of the line is missing. QEMU itself, or a port's loader, may take less
    than the kernel does."""
    done = run_tool("--arch", arch, "--timeout", "20", "--append", append)
    assert done.returncode == 2, done.stdout
    assert "1 passed, 0 failed, 0 skipped, but param: " + said in done.stdout


def test_editing(arch, guest):
    """Backspace, history, Ctrl-C, Ctrl-U, and Tab over commands, paths and
    function names."""
    g = guest(arch)
    assert g.run("echo abX\x7fc") == "abc\n".replace("\n", "\r\n") \
        or "abc" in g.run("echo abX\x7fc")
    assert "abc" in g.run("\x1b[A")
    assert "hello" in g.run("rubbish\x15echo hello")
    g.send("sleep 100\r")
    g.expect("sleep 100")
    g.send("\x03")
    g.expect_prompt(10)
    assert "up " in g.run("upt\t")
    g.run("cat /proc/upt\t")
    assert re.search(r"^\d+\.\d+", g.text_before().split("\n", 1)[1])
    g.run("echo sched_yie\t > /sys/kernel/tracing/set_ftrace_filter")
    assert g.lines(f"cat {TRACING}/set_ftrace_filter") == ["sched_yield"]
    assert g.poweroff() == 0
