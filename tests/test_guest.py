# SPDX-License-Identifier: MIT
"""tools/lib/guest.py: a guest with a person at its console says why it ended, where it stands when
time is up, and whether a command has failed. Its console is in a file, as every guest's."""

import os
import re
import signal
import subprocess
import sys

import pytest
from conftest import ANY, ROOT, built, stop_process
from lib import port, qemu, stacks, witness
from lib.guest import Guest


def test_guest_says_why_it_ended(arch):
    """A person at the console is not only told that there is no prompt."""
    status = max(port.read(arch).get("ends", {"": 3}).values())
    with Guest(arch, elf=built(arch).path) as guest:
        with pytest.raises(AssertionError, match=f"the kernel ended with status {status}"):
            guest.run("poweroff 3")
    with Guest(arch, elf=built(arch).path) as guest:
        os.kill(guest.pid, signal.SIGTERM)
        with pytest.raises(AssertionError, match="a signal ended QEMU: terminating"):
            guest.run("uptime")
        assert guest.poweroff() is None


def qemus() -> int:
    """How many of our children are QEMU, and run."""
    return len(subprocess.run(["pgrep", "-P", str(os.getpid()), "-r", "RSDT", "qemu"],
                              capture_output=True, check=False).stdout.splitlines())


def test_guest_without_a_prompt_ends():
    """Its caller gets no object that could be closed."""
    before = qemus()
    with pytest.raises(AssertionError, match="no prompt"):
        Guest(ANY, elf=built(ANY).path, append='run="sleep 60"', timeout=2)
    assert qemus() == before


def test_somebody_elses_tests(tmp_path):
    """Tests in another folder, that know of nopl by PYTHONPATH alone."""
    built(ANY)
    (tmp_path / "test_theirs.py").write_text(f"""
from nopl import Guest, Machine, Verdict, boot, judge


def test_hello():
    with Guest("{ANY}", smp=2) as guest:
        assert guest.run("echo hello") == "hello\\n"
        assert guest.poweroff() == 0


def test_fixture(nopl_guest):
    assert "1 passed" in nopl_guest("{ANY}").run("test shell.words")


def test_without_a_person():
    machine = Machine("{ANY}")
    done = boot(machine, machine.command(append='run="test shell.words; poweroff"'), 60)
    assert judge(done) == (Verdict.PASS, "1 passed, 0 failed, 0 skipped")
""")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "nopl", "-p", "no:cacheprovider"],
        cwd=tmp_path, text=True, capture_output=True, check=False, timeout=300,
        env=os.environ | {"PYTHONPATH": str(ROOT / "tools")})
    assert "3 passed" in done.stdout, done.stdout + done.stderr


def test_typing_under_icount(arch):
    """Whatever an idle guest's time does, QEMU reads the console, and answers on its own."""
    built(arch)
    with Guest(arch, smp=2, icount=0, timeout=20) as guest:
        for i in range(4):
            assert guest.run(f"echo hello {i}") == f"hello {i}\n"
            assert guest.qmp.command("query-status")["running"]


def test_a_command_that_fails(guest):
    """run(check=True) asks the guest itself."""
    g = guest(ANY)
    assert g.run("echo hello", check=True) == "hello\n"
    assert "no such file" in g.run("cat /none")
    for line in ("cat /none", "echo 1 > /proc/uptime", "uptime && cat /none"):
        with pytest.raises(AssertionError, match=r"has failed with [1-9]\d*: (.*\n)?.*: /"):
            g.run(line, check=True)
    assert g.lines("cat /none || echo hello", check=True)[-1] == "hello"


def test_time_is_up_at_the_prompt(arch, guest):
    """Where each CPU and each task stands, the shell's among them, and the guest goes on."""
    g = guest(arch, smp=3)
    g.run("echo 0 > /sys/devices/system/cpu/cpu2/online", check=True)
    with pytest.raises(AssertionError) as error:
        g.run("echo begun; sleep 1000", timeout=3)
    said = str(error.value).splitlines()
    assert said[0] == "no prompt (waited for 3 s); the console ended:" and "begun" in said
    assert {"CPU 0", "CPU 1"} <= {x.partition(":")[0] for x in said}
    assert [",".join(x.split(",")[:2]) for x in said if re.match(r"CPU \d,", x)] == [
        "CPU 0, online", "CPU 1, online", "CPU 2, offline"]
    # The shell wakes each 20 ms, and may be running.
    assert any(re.match(r"task init \(2\)( on CPU \d|, blocked): .* <- cmd_sleep\+", x)
               for x in said), said
    g.send("\x03")
    g.expect_prompt()
    assert g.run("echo it runs") == "it runs\n"


def test_time_is_up_without_gdb(guest, monkeypatch):
    """Then the guest's own list of tasks, if it answers."""
    g = guest(ANY)

    def missing(name: str) -> str:
        raise qemu.UsageError(f"{name} is missing")

    monkeypatch.setattr(stacks, "find_program", missing)
    with pytest.raises(AssertionError, match=r"gdb-multiarch is missing\n(.*\n)* +2 init +"):
        g.run("sleep 1000", timeout=2)
    monkeypatch.setattr(g.qmp, "WAIT", 1)
    g.qmp.socket.settimeout(1)
    stop_process(g.pid)
    with pytest.raises(AssertionError, match="QEMU has not answered for 1 s; is it stopped.*\n"
                                             "the guest does not answer Ctrl-C"):
        g.run("uptime", timeout=1)


def test_console_log(monkeypatch, tmp_path):
    """The guest that began last is in one file, from its first line. One that still runs keeps
    its own."""
    elf = built(ANY).path
    log = tmp_path / "console.log"
    monkeypatch.setattr(witness, "LOG", log)
    with Guest(ANY, elf=elf) as first:
        first.run("echo the first")
        with Guest(ANY, elf=elf) as second:
            second.run("echo the second")
            first.run("echo the first again")
            text = log.read_text()
    assert "nopl 0.1" in text and "the second" in text and "the first" not in text


@pytest.mark.parametrize("option", [(), ("--interactive",), ("--debug",)])
def test_console_log_of_the_tools(option):
    """Whoever starts the guest. Other tests' guests may begin at the same time."""
    built(ANY)
    log = ROOT / "build" / "console.log"
    for _ in range(10):
        done = subprocess.run(
            [ROOT / "tools" / "run", "--arch", ANY, *option, "--append", 'run="poweroff 7"'],
            input="continue\n", text=True, capture_output=True, timeout=60, check=False)
        assert done.returncode == {(): 3, ("--interactive",): 1}.get(option, 0), done
        if log.is_file() and "nopl 0.1" in log.read_text():
            return
    pytest.fail("no guest's console is in build/console.log")
