# SPDX-License-Identifier: MIT
"""tools/run's verdicts: whatever is not a whole, passing report with the right
exit status is never a pass. Most cases are consoles made up here, and the last ones
are machines that really end that way."""

import json
import os
import re
import signal
import struct
import subprocess
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from conftest import ANY, ARCHES, FACTS, NEWCOMERS, ROOT, built, program, qemu_of
from gdbstub import Stub
from lib import qemu, report, watchdog, witness
from lib.guest import Guest
from lib.qemu import Verdict
from lib.qmp import Qmp

GOOD = """SBI noise
KTAP version 1
1..3
ok 1 sched.priority
# a diagnostic
ok 2 mm.pages # SKIP needs icount
ok 3 ring.order
# nopl tests: 2 passed, 0 failed, 1 skipped
"""
FAILED = """KTAP version 1
1..2
ok 1 a.a
# kernel/b_test.c:12: x == 3 (x is 4)
not ok 2 b.b
# nopl tests: 1 passed, 1 failed, 0 skipped
"""


def judged(text: str, status: int | None, qemu_status: int | None = 0,
           expect: tuple = (), type_key=None) -> tuple[Verdict, str]:
    """The verdict on a console and a status."""
    console = qemu.Console()
    console.type_key = type_key
    for chunk in range(0, len(text), 7):  # whole lines must not matter
        console.feed(text[chunk:chunk + 7].replace("\n", "\r\n").encode())
    console.close()
    return qemu.judge(qemu.Boot(console, status, qemu_status, 1.0), expect)


def test_pass():
    assert judged(GOOD, 0) == (Verdict.PASS, "2 passed, 0 failed, 1 skipped")
    assert judged(GOOD + GOOD, 0)[0] == Verdict.PASS


def test_failed_test():
    assert judged(FAILED, 1)[0] == Verdict.FAIL
    assert judged(FAILED, 0)[0] == Verdict.FAIL
    assert judged(GOOD + FAILED, 1)[0] == Verdict.FAIL
    assert judged(FAILED, 1)[1] == "1 passed, 1 failed, 0 skipped: " \
        "b.b: kernel/b_test.c:12: x == 3 (x is 4)"
    assert judged(FAILED * 5, 1)[1].endswith("(x is 4); 2 more")


KEY = """KTAP version 1
1..1
# begin arch.console_irq_enable
# type a key
ok 1 arch.console_irq_enable{}
# nopl tests: {} passed, 0 failed, {} skipped
"""


def test_a_key_that_nobody_hears():
    """A test that asks for a key may be skipped only if nobody typed one."""
    typed = []
    skipped = GOOD + KEY.format(" # SKIP no key has interrupted a CPU", 0, 1)
    verdict, why = judged(skipped, 0, type_key=lambda: typed.append(1))
    assert verdict == Verdict.FAIL and typed == [1]
    assert "arch.console_irq_enable: a key was typed" in why
    heard = GOOD + KEY.format("", 1, 0)
    assert judged(heard, 0, type_key=lambda: 0)[0] == judged(skipped, 0)[0] == Verdict.PASS


def test_failure_is_named():
    console = qemu.Console()
    console.feed(FAILED.encode())
    assert console.runs[0].failed == ["b.b"]
    assert "x is 4" in console.runs[0].diagnostics["b.b"][0]


@pytest.mark.parametrize("text,reason", [
    ("", "no test ran"),
    ("KTAP version 1\n", "no plan"),
    (GOOD.replace("ok 3 ring.order\n", ""), "2 of 3"),
    (GOOD.replace("# nopl tests: 2 passed, 0 failed, 1 skipped\n", ""),
     "end marker"),
    (GOOD.replace("# nopl tests: 2", "# nopl tests: 3"), "marker says"),
    (GOOD + "KTAP version 1\n1..1\n", "0 of 1"),
    (GOOD + "KTAP version 1\n1..1\n# begin mm.late\n", "mm.late was running"),
    ("KTAP version 1\n1..1\nok 1 mm.pages # SKIP needs icount\n"
     "# nopl tests: 0 passed, 0 failed, 1 skipped\n", "every test was skipped"),
])
def test_incomplete_report_is_broken(text, reason):
    verdict, why = judged(text, 0)
    assert verdict == Verdict.BROKEN and reason in why


def test_status_counts():
    assert judged(GOOD, 1)[0] == Verdict.BROKEN
    # A triple fault under -no-reboot, or a guest's reset: QEMU says 0, the
    # kernel nothing.
    assert judged(GOOD, None)[0] == Verdict.BROKEN
    verdict, why = judged(GOOD + "panic: CPU 1: bug\n", 1)
    assert verdict == Verdict.BROKEN and "panic: CPU 1: bug" in why


def test_no_status_of_qemus_own():
    """QEMU gives 0 and 1 by itself, and minus a signal's number."""
    assert [witness.kernel_status(status) for status in (33, 35, 253)] == [0, 1, 110]
    assert all(witness.kernel_status(status) is None for status in (*range(-64, 33), 34))


@pytest.mark.parametrize("reason, status", [
    ("guest-shutdown", 0), ("guest-panic", 1), ("host-signal", None), (None, None)])
def test_status_by_reason(reason, status):
    """Where no device takes a status, the port says which of QMP's reasons is which status."""
    told = {"event": "SHUTDOWN", "data": {"guest": True, "reason": reason}}
    of_port = witness.Witness(["qemu"], {"guest-shutdown": 0, "guest-panic": 1})
    of_none = witness.Witness(["qemu"])
    for theirs in (of_port.theirs, of_none.theirs):
        theirs.sendall(json.dumps(told if reason else {"return": {}}).encode() + b"\n")
        theirs.close()
    assert of_port.kernel_status(0) == status
    assert of_none.kernel_status(0) is None


def test_killed_is_timeout():
    assert judged(GOOD, None, None)[0] == Verdict.TIMEOUT


def test_expect():
    assert judged("one\ntwo\n", 0, expect=("^one$", "^two$"))[0] == 0
    assert judged("one\ntwo\n", 0, expect=("two", "one"))[0] == Verdict.BROKEN
    assert judged("one\n", 1, expect=("one",))[0] == Verdict.BROKEN
    assert judged("one\n" + FAILED, 1, expect=("one",))[0] == Verdict.FAIL


def test_real_panic(arch, run_tool):
    done = run_tool("--arch", arch, "--append", 'run="panic"')
    assert done.returncode == Verdict.BROKEN, done.stdout
    assert "panic" in done.stdout.splitlines()[-1]


def test_real_panic_after_tests(arch, run_tool):
    done = run_tool("--arch", arch, "--smp", "2", "--append",
                    'run="test printk.*; test string.*; panic"')
    assert done.returncode == Verdict.BROKEN, done.stdout


def with_code(image, function: str, code: str, path: Path, behind: int = 0) -> Path:
    """The image, with other instructions (hexadecimal) where that function begins, or from its
    first instruction on that is at least so many bytes behind: calls may enter behind the first."""
    data = bytearray(image.data)
    start = image.symbols[function]
    at = image.offset(start if not behind else next(
        addr for f in image.functions if f.name == function
        for addr, *_ in f.code if addr >= start + behind))
    data[at:at + len(code) // 2] = bytes.fromhex(code)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("by, said", [
    (signal.SIGTERM, "a signal ended QEMU: terminating on signal 15"),
    (signal.SIGKILL, "a signal ended QEMU: Killed"),
    ("quit", "QEMU was told to quit"),
    ("system_reset", "QEMU was told to reset the machine")])
def test_ended_from_outside_is_broken(arch, tmp_path, by, said):
    """All expected lines have been seen by then."""
    qmp = tmp_path / "qmp"
    with program([ROOT / "tools" / "run", "--arch", arch, "-v", "--qmp", qmp, "--expect",
                  "^hello", "--timeout", "60", "--append", 'run="echo hello; sleep 3000"'],
                 text=True, stdout=subprocess.PIPE) as runner:
        while runner.stdout.readline() != "hello\n":
            assert runner.poll() is None
        if isinstance(by, str):
            Qmp.connect(qmp).command(by)
        else:
            os.kill(qemu_of(runner), by)
        *_, verdict = runner.stdout.read().splitlines()
    assert runner.returncode == Verdict.BROKEN
    assert f"all expected lines seen, but the kernel gave no status: {said}" in verdict


@pytest.mark.parametrize("args", [("-nosuchopt",), ("-device", "nosuch")])
def test_arguments_that_qemu_refuses(arch, run_tool, args):
    """No kernel ran: none is blamed."""
    args = [f"--qemu-arg={x}" for x in args]
    done = run_tool("--arch", arch, *args)
    assert done.returncode == Verdict.USAGE
    assert re.search(r": QEMU refused its arguments: .*nosuch.*; no kernel ran \(", done.stdout)
    done = run_tool("--arch", arch, "--interactive", *args)
    assert done.returncode == Verdict.USAGE
    assert "tools/run: QEMU refused its arguments; no kernel ran" in done.stderr
    with pytest.raises(AssertionError, match="QEMU refused its arguments: .*; no kernel ran"):
        Guest(arch, elf=built(arch).path, extra=["-nosuchopt"])


@pytest.mark.parametrize("tool", ["lab", "bench", "stale", "run --debug"])
def test_qemu_refuses_each_tools_arguments(arch, refusing, tool, tmp_path):
    """Each says so, in QEMU's own words."""
    tool, *args = tool.split()
    command = [f"tools/{tool}", *args, *([] if tool == "bench" else ["--arch"]), arch]
    if tool in ("lab", "bench"):
        command += ["--output", tmp_path / "out.json" if tool == "bench" else tmp_path]
    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=60)
    assert re.search("QEMU refused its arguments: -nosuchopt: invalid option; no kernel ran",
                     done.stdout + done.stderr), done
    assert done.returncode == Verdict.USAGE and "Traceback" not in done.stderr


def test_gdb_stub_is_refused(arch, refusing):
    """A test's stub, too."""
    with pytest.raises(qemu.UsageError, match="QEMU refused its arguments: -nosuchopt: "):
        Stub(arch)


def test_qemu_ends_under_gdb(arch, run_tool):
    """make debug: a QEMU that has been killed is named."""
    done = subprocess.run(
        [str(ROOT / "tools" / "run"), "--arch", arch, "--debug"], text=True, check=False,
        input="shell kill -KILL $(pgrep -P $(ps -o ppid= -p $PPID) qemu)\ncontinue\n",
        capture_output=True, timeout=60)
    assert "tools/run: a signal ended QEMU: Killed" in done.stderr
    assert done.returncode == Verdict.BROKEN


def test_real_hang(arch, run_tool):
    done = run_tool("--arch", arch, "--append", 'run="sleep 1000"',
                    "--timeout", "4")
    assert done.returncode == Verdict.TIMEOUT, done.stdout
    assert "TIMEOUT" in done.stdout.splitlines()[-1]


@pytest.mark.parametrize("hung, said", [(True, "hangs"), (False, "was running")])
def test_time_is_up(hung, said):
    """A test that runs when time is up is not said to hang. An idle CPU's calls say nothing."""
    console = qemu.Console()
    console.feed(b"KTAP version 1\n1..2\n# begin mm.late\n")
    stacks = ["CPU 0: wait <- idle_main", "CPU 1: a <- b"]
    boot = qemu.Boot(console, None, None, 5.0, stacks, hung)
    assert qemu.judge(boot) == (Verdict.TIMEOUT,
                                f"no end after 5 s; mm.late {said}; CPU 1: a <- b")


@pytest.mark.parametrize("arch", [ANY], indirect=True)
def test_time_is_up_in_the_middle(arch, run_tool):
    """A run that gets half of the time that it took before is in the middle of its tests."""
    whole = run_tool("--arch", arch)
    seconds = float(re.search(r"\((\S+) s\)$", whole.stdout.strip())[1])
    done = run_tool("--arch", arch, "--timeout", str(max(1, int(seconds / 2))))
    assert done.returncode == Verdict.TIMEOUT, done.stdout
    assert re.search(r": no end after \d+ s; \w+\.\S+ was running; CPU 0: ",
                     done.stdout), done.stdout


def test_real_hang_in_the_contract(image, run_tool, tmp_path):
    """A function that never returns: the test that calls it is named long before the
    timeout, with the calls of each CPU and of the other tasks."""
    elf = with_code(image, "arch_frame_print", FACTS[image.arch]["loop"], tmp_path / "h.elf", 20)
    done = run_tool("--arch", image.arch, "--smp", "2", "--elf", str(elf),
                    "--timeout", "600", "--append", 'run="test arch*; poweroff"')
    assert done.returncode == Verdict.TIMEOUT, done.stdout
    *_, verdict = done.stdout.splitlines()
    assert "; arch.trap_init hangs; CPU 0: " in verdict
    stacks = re.findall(r"^# CPU (\d): (.*)$", done.stdout, re.M)
    assert [cpu for cpu, _ in stacks] == ["0", "1"]
    assert any(calls.startswith("arch_frame_print") for _, calls in stacks), stacks
    # The task that runs the tests may have been preempted before it waits for the one that hangs.
    assert re.search(r"^# task init \(2\).* <- ktest_arch_trap_init\+.* <- task_start\+",
                     done.stdout, re.M), done.stdout


def test_watchdog_counts_what_the_guest_could_use(monkeypatch):
    """A process that wants no CPU time hangs. One that the host gives little does not.
    A test of the contract has four seconds, any other 120."""
    console = qemu.Console()
    console.feed(b"KTAP version 1\n1..1\n# begin arch.idle\n")
    wall, cpu = 100.0, 0.0
    monkeypatch.setattr(watchdog.time, "monotonic", lambda: wall)
    monkeypatch.setattr(watchdog.Watchdog, "cpu_time", lambda _self: cpu)
    slow, still, naps = (watchdog.Watchdog(0, console, True, False)
                         for _ in range(3))
    assert not slow.hangs() and not still.hangs() and not naps.hangs()
    for _ in range(6):
        for wall, cpu in ((wall + 3, cpu), (wall + 4, cpu + 0.2)):
            assert not naps.hangs()
    wall, cpu = 100.0, 0.0
    for _ in range(3):
        wall, cpu = wall + 5, cpu + 1
        assert not slow.hangs()
    cpu += 1
    assert slow.hangs()
    wall, cpu = 105.0, 0.1
    with monkeypatch.context() as starved:
        starved.setattr(watchdog.Watchdog, "waits_for_cpu", lambda _self: True)
        assert not still.hangs()
    wall, cpu = 110.0, 0.2
    assert still.hangs()
    console.feed(b"ok 1 arch.idle\n# begin sched.slow\n")
    for wall, cpu in ((999.0, 99.0), (1020.0, 130.0)):
        assert not slow.hangs() and not still.hangs()
    wall, cpu = 1021.0, 220.0
    assert slow.hangs()
    console.feed(b"ok 2 sched.slow\n# nopl tests: 2 passed, 0 failed, 0 skipped\n")
    wall, cpu = 2021.0, 999.0
    assert not slow.hangs() and not still.hangs()


def test_real_triple_fault(image, run_tool, tmp_path):
    """An illegal instruction before there are vectors. A machine that resets then ends
    QEMU with 0. The others stand still."""
    name = next(x for x in ("_start", "_start32") if x in image.symbols)
    undefined = FACTS[image.arch]["undefined"]
    elf = with_code(image, name, undefined * (32 // len(undefined)), tmp_path / "broken.elf")
    done = run_tool("--arch", image.arch, "--elf", str(elf), "--timeout", "5")
    assert done.returncode in (Verdict.BROKEN, Verdict.TIMEOUT), done.stdout
    if FACTS[image.arch].get("resets"):
        assert done.returncode == Verdict.BROKEN


def test_a_reset_from_inside_is_broken(image, run_tool, tmp_path):
    """A wild store to the reset register, or a triple fault, where the kernel would give
    its status. All expected lines have been seen by then."""
    elf = with_code(image, "arch_power_off", FACTS[image.arch]["reset"], tmp_path / "resets.elf",
                    behind=20)  # boot writes the site
    done = run_tool("--arch", image.arch, "--elf", str(elf), "--expect", "^hello", "--timeout",
                    "60", "--append", 'run="echo hello; poweroff"')
    assert done.returncode == Verdict.BROKEN, done.stdout
    assert "all expected lines seen, but the kernel gave no status: the machine was reset " \
        "from inside" in done.stdout.splitlines()[-1]


def test_real_failing_test(image, run_tool, tmp_path):
    """A kernel whose index of names is not in order any more: the in-kernel test
    that proves the order must fail, and tools/run and tools/stale must name it."""
    data = bytearray(image.data)
    at = image.offset(image.symbols["symbol_by_name"])
    count, = image.u32(image.symbols["symbol_count"])
    order = image.unpack(f"{count}I", data, at)
    struct.pack_into(f"{image.order}{count}I", data, at, *reversed(order))
    elf = tmp_path / "broken.elf"
    elf.write_bytes(data)
    args = ["--arch", image.arch, "--elf", str(elf), "--append",
            'run="test symbols.sorted; poweroff"']
    done = run_tool(*args)
    assert done.returncode == Verdict.FAIL, done.stdout
    assert "not ok symbols.sorted\n# " in done.stdout
    said = re.search(r"FAIL: 0 passed, 1 failed, 0 skipped: symbols.sorted: \S+_test.c:\d+: .*",
                     done.stdout)[0].rpartition(" (")[0]
    stale = subprocess.run([str(ROOT / "tools" / "stale"), *args], text=True, capture_output=True)
    assert said in stale.stdout, stale.stdout + stale.stderr


@pytest.mark.parametrize("args,says", [
    (("--arch", "vax"), "choose one of: " + " ".join(sorted({*ARCHES, *NEWCOMERS}))),
    (("--arch", ANY, "--elf", "/none.elf"), f"make ARCH={ANY}"),
    (("--arch", ANY, "--smp", "0"), "--smp 0: must be 1 to 255"),
    (("--arch", ANY, "--elf", "README.md"), "README.md is no ELF file"),
    (("--arch", ARCHES[-1], "--elf", f"build/{ARCHES[0]}/nopl.elf"), "of another architecture"),
    (("--arch", ANY, "--timeout", "-3"), "'-3' is no number of seconds above 0"),
    (("--arch", ANY, "--expect", "("), "'(' is no regular expression"),
    (("--arch", ANY, "--log", "/none/log"), "tools/run: /none/log: No such file"),
    (("--arch", ANY, "--interactive", "--mount", "", "--append", 'run="poweroff"'),
     "make mount DIR=FOLDER"),
    ((), "--arch"),
])
def test_usage(args, says, run_tool):
    built(ANY)
    done = run_tool(*args)
    assert done.returncode == Verdict.USAGE
    assert says in done.stderr and "Traceback" not in done.stderr


def test_missing_qemu_names_its_package(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(qemu.UsageError, match="apt-get install qemu-system-"):
        qemu.find_program(qemu.Machine(ANY).info["qemu"])


def result_of(text: str, status: int | None, qemu_status: int | None = 0) -> tuple:
    """A boot that printed that, and its verdict."""
    console = qemu.Console()
    console.feed(text.encode())
    console.close()
    boot = qemu.Boot(console, status, qemu_status, 1.0)
    return boot, *qemu.judge(boot)


@pytest.mark.parametrize("text,status,failures,errors", [
    (GOOD, 0, 0, 0), (FAILED, 1, 1, 0), (GOOD, 3, 0, 1), ("panic: \x1b\x01 oh\n", 1, 0, 1)])
def test_reports(text, status, failures, errors):
    """JUnit and KTAP agree with the verdict. A boot that is broken is a test that fails."""
    boot, verdict, reason = result_of(text, status)
    suite = ElementTree.fromstring(report.junit("nopl", boot, verdict, reason).encode())
    cases = {case.get("name"): [child.tag for child in case] for case in suite}
    assert (suite.get("failures"), suite.get("errors")) == (str(failures), str(errors))
    assert suite.get("tests") == str(len(cases))
    assert cases["boot"] == (["error"] if errors else [])
    if text == GOOD:
        assert cases["mm.pages"] == ["skipped"] and cases["ring.order"] == []
        assert suite.find("*[@name='mm.pages']/skipped").get("message") == "needs icount"
    if text == FAILED:
        assert cases["b.b"] == ["failure"]
        assert "x is 4" in suite.find("*[@name='b.b']/failure").text
    # The KTAP, read as a guest's own.
    tap = report.ktap(boot, verdict, reason)
    console = qemu.Console()
    console.feed(tap.encode())
    run, = console.runs
    assert run.planned == sum(run.counts()) == len(cases)
    assert len(run.failed) == failures + errors
    assert ("boot" in run.failed) == bool(errors)
    assert run.skipped == (["mm.pages"] if text == GOOD else [])


def test_reports_of_a_guest(arch, run_tool, tmp_path):
    """tools/run writes both, with the time of each test. A file that cannot be written is
    one line."""
    junit, ktap = tmp_path / "j.xml", tmp_path / "k.tap"
    done = run_tool("--arch", arch, "--junit", junit, "--ktap", ktap,
                    "--append", 'run="test shell*; poweroff"')
    assert done.returncode == 0
    suite = ElementTree.parse(junit).getroot()
    passed = re.search(r"PASS: (\d+) passed, 0 failed, 0 skipped", done.stdout)[1]
    assert len(suite) == int(passed) + 1
    assert ktap.read_text().startswith(f"KTAP version 1\n1..{int(passed) + 1}\nok 1 shell.")
    slow = suite.find("*[@name='shell.endless']")
    assert 0 < float(slow.get("time")) < float(suite.get("time"))
    done = run_tool("--arch", arch, "--junit", tmp_path / "no" / "j.xml",
                    "--append", 'run="test shell.words; poweroff"')
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "No such file or directory" in done.stderr


def test_accelerators(run_tool):
    """kvm is used, or refused in one line with the reason. It never just fails."""
    built(ANY)
    done = run_tool("--arch", ANY, "--accel", "xen")
    assert done.returncode == 2 and "tcg and kvm are accepted" in done.stderr
    done = run_tool("--arch", ANY, "--accel", "kvm", "--icount")
    assert done.returncode == 2 and "--icount" in done.stderr
    for arch in ARCHES:
        built(arch)
        try:
            command = qemu.Machine(arch).command(accel="kvm")
            assert command[command.index("-accel") + 1] == "kvm"
        except qemu.UsageError as error:
            assert re.match(r"--accel kvm: .+", str(error)) and "\n" not in str(error)


def test_qemu_is_killed():
    """Say, because there is no memory left: the person at the console is told."""
    built(ANY)
    with program([ROOT / "tools" / "run", "--arch", ANY, "--interactive"], text=True,
                 stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                 stderr=subprocess.PIPE) as runner:
        os.kill(qemu_of(runner), signal.SIGBUS)
        said = runner.stderr.read()
    assert "tools/run: a signal ended QEMU: Bus error" in said
    assert runner.returncode == Verdict.BROKEN


@pytest.mark.parametrize("option", [(), ("--interactive",)])
def test_no_guest_outlives_the_runner(option):
    """A guest that is left behind would slow down all that comes after it."""
    built(ANY)
    with program([ROOT / "tools" / "run", "--arch", ANY, *option, "--append",
                  'run="sleep 1000"'], stdin=subprocess.PIPE,
                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as runner:
        guest = Path("/proc") / str(qemu_of(runner))
        runner.kill()
    deadline = time.monotonic() + 60
    while guest.exists() and ") Z " not in guest.joinpath("stat").read_text():
        assert time.monotonic() < deadline, "QEMU runs on"
        time.sleep(0.05)


def test_a_reader_that_ends_early():
    """tools/run -v | head: it ends as other programs do whose reader has gone."""
    built(ANY)
    line = f"""tools/run --arch {ANY} -v --append 'run="help; ls; poweroff"' | head -1
               echo ${{PIPESTATUS[0]}}"""
    done = subprocess.run(["bash", "-c", line], cwd=ROOT, text=True, capture_output=True)
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == "141"
