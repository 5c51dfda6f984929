# SPDX-License-Identifier: MIT
"""The order log and its rules, from outside: the kernel's log is held against
the rules on the host (tools/patchcheck), as it is and with the code broken on
purpose, and a log with a line taken out must not pass. Each commit has half of
the strategies."""

import re
import subprocess

import pytest
from conftest import ANY, ARCHES, FACTS, ROOT, make, some_of
from lib.storm import STRATEGIES, off_for

SOME = some_of(STRATEGIES, 2)
CHECK = ROOT / "build" / "host" / "patchcheck"
# patchcheck's words on each in-kernel test that breaks the code.
SABOTAGE = {
    "order_sees_skipped_sync": {
        "stop": "a CPU was let go before it had synchronised",
        "breakpoint": "a site was written again before a CPU",
        "bypass": "before the tasks inside it had been waited for",
        "word": "a batch was declared done before a CPU"},
    "order_sees_early_sync": {
        "stop": "a CPU was let go before it had synchronised",
        "breakpoint": "a batch was declared done before a CPU",
        "bypass": "before the tasks inside it had been waited for",
        "word": "a batch was declared done before a CPU"},
    "order_sees_unsynced_cpu": dict.fromkeys(
        STRATEGIES, "a site ran on a CPU that had come online and not"),
}
ONE_STRATEGY = {
    "order_sees_waiting_leader": "a CPU waited for another inside",
    "order_sees_missing_rendezvous": "an instruction was written in pieces",
    "order_sees_missing_wait": "before the tasks inside it had been waited for",
}


@pytest.fixture(scope="module", params=ARCHES)
def machine(request):
    """A guest with the log on, 3 CPUs, for all tests of an architecture."""
    from conftest import built
    from guest import Guest
    built(request.param)
    make("build/host/patchcheck")
    nop = off_for(request.param, "word")
    with Guest(request.param, smp=3, append=f"patchlog=on {nop}") as guest:
        guest.run("cd /sys/kernel/tracing")
        guest.refused = re.findall(r"^not (\w+):",
                                   guest.run("cat patch_strategy"), re.M)
        yield guest


def ktest(guest, name: str) -> None:
    """Run one in-kernel test. The log that it leaves is still there."""
    out = guest.run(f"test patch.{name}", timeout=120)
    assert re.search(rf"^ok 1 patch\.{re.escape(name)}\s*$", out, re.M), out


def log_of(guest) -> str:
    """The log's text."""
    return guest.run("cat patch_log", timeout=120).replace("\r", "")


def check(log: str, tmp_path) -> tuple[int, str]:
    """patchcheck's status and its line."""
    file = tmp_path / "log"
    file.write_text(log)
    done = subprocess.run([str(CHECK), str(file)], text=True,
                          capture_output=True)
    return done.returncode, done.stdout + done.stderr


def available(guest, strategy: str) -> None:
    """Skip a strategy that this CPU refuses."""
    if strategy in guest.refused:
        pytest.skip(f"{strategy} is refused by this CPU")


@pytest.mark.parametrize("strategy", SOME)
def test_order_is_kept(machine, strategy, tmp_path):
    available(machine, strategy)
    ktest(machine, f"order_is_kept.{strategy}")
    log = log_of(machine)
    status, line = check(log, tmp_path)
    assert status == 0 and line.startswith("kept: "), line
    assert machine.run("cat patch_log_check").startswith("kept: ")
    assert re.search(rf" batch \d+ {strategy}$", log, re.M)
    assert re.search(r" run [0-9a-f]{6} victim_call\+", log)
    cpus = {m[1] for m in re.finditer(r"^\S+ (\d+) sync$", log, re.M)}
    assert cpus == {"0", "1", "2"}


@pytest.mark.parametrize("strategy", SOME)
def test_each_sync_is_needed(machine, strategy, tmp_path):
    """Take the last synchronisation of any CPU out of a good log."""
    available(machine, strategy)
    ktest(machine, f"order_is_kept.{strategy}")
    lines = log_of(machine).splitlines()
    last = max(i for i, x in enumerate(lines) if x.endswith(" done"))
    for cpu in range(3):
        at = max(i for i, x in enumerate(lines[:last])
                 if re.match(rf"\S+ {cpu} sync$", x))
        less = lines[:at] + lines[at + 1:]
        less[0] = re.sub(r"1: \d+", f"1: {len(less) - 2}", less[0])
        status, line = check("\n".join(less), tmp_path)
        assert status == 1 and f"CPU {cpu}: " in line, line


@pytest.mark.parametrize("strategy", SOME)
@pytest.mark.parametrize("name", SABOTAGE)
def test_sabotage_is_seen(machine, name, strategy, tmp_path):
    available(machine, strategy)
    ktest(machine, f"{name}.{strategy}")
    status, line = check(log_of(machine), tmp_path)
    assert status == 1 and SABOTAGE[name][strategy] in line, line
    assert machine.run("cat patch_log_check").startswith("broken: ")


@pytest.mark.parametrize("name", ONE_STRATEGY)
def test_sabotage_of_one_is_seen(machine, name, tmp_path):
    ktest(machine, name)
    status, line = check(log_of(machine), tmp_path)
    assert status == 1 and ONE_STRATEGY[name] in line, line


@pytest.mark.parametrize("strategy", SOME)
def test_order_under_stress_and_hotplug(machine, strategy, tmp_path):
    """Everything switched while all CPUs are busy and one goes and comes. On a slow host more tasks
    run into a switch than the log can hold: such a log gets no verdict, another one does."""
    available(machine, strategy)
    online = "/sys/devices/system/cpu/cpu2/online"
    machine.run(f"echo {strategy} > patch_strategy")
    machine.run("stress start 2")
    kept = 0
    for turn in range(6):
        machine.run("echo > patch_log")
        machine.run("echo function > current_tracer")
        machine.run(f"echo {turn % 2} > {online}")
        machine.run("echo nop > current_tracer")
        if machine.run("cat patch_log_check") != "incomplete: entries were lost\n":
            status, line = check(log_of(machine), tmp_path)
            assert status == 0, line
            kept += 1
    assert kept
    machine.run(f"echo 1 > {online}")
    assert "none lost" in machine.run("stress stop", timeout=120)


def test_no_whole_log(machine, tmp_path):
    """A file that is no log, or not a whole one, is an error and gets no verdict."""
    log = log_of(machine)
    for text, said in [
            ("", 'does not say "# patch log 1"'),
            ("# patch log 1: 0 entries, 0 lost\n", "nothing was watched"),
            (log.replace(" 0 lost", " 7 lost"), "7 entries were lost"),
            ("\n".join(log.splitlines()[:3]), "entries are there"),
            (log + "what is this\n", "is no entry: what is this")]:
        status, line = check(text, tmp_path)
        assert status == 2 and said in line, line
    assert subprocess.run([str(CHECK)], capture_output=True).returncode == 2


def test_strategy_parameter(arch, guest):
    """A strategy is taken, or refused with the reason. For an unknown name the line
    lists the choices."""
    word = FACTS[arch].get("word", {})
    file = "/sys/kernel/tracing/patch_strategy"
    g = guest(arch, append="patch_strategy=word", refused_parameters="refused" in word)
    line = g.error(f"echo magic > {file}")
    refused = {"word"} if "refused" in word else set()
    assert all(s in line for s in set(STRATEGIES) - refused), line
    if "refused" in word:
        assert re.search(r"^param: patch_strategy=word is not possible on this CPU: .*; "
                         r"stop it is\s*$", g.boot_text, re.M), g.boot_text
        assert re.search(r"^not word: ", g.run(f"cat {file}"), re.M)
        assert re.search("not possible here: .*" + word["refused"],
                         g.error(f"echo word > {file}"))
    else:
        assert "[word]" in g.run(f"cat {file}")
    if "append" in word:
        g = guest(arch, append="patch_strategy=word " + word["append"])
        assert "[word]" in g.run(f"cat {file}")
    g = guest(arch, smp=2, append="patch_strategy=magic", refused_parameters=True)
    assert "it takes stop breakpoint word bypass" in g.boot_text


def test_off_and_bad_values(guest):
    g = guest(ANY, append="patchlog=maybe", refused_parameters=True)
    assert "it takes on or off" in g.boot_text
    g.run("cd /sys/kernel/tracing")
    assert "it is off" in g.lines("cat patch_log")[0]
    assert g.run("cat patch_log_check").startswith("empty: nothing was watched")
    assert "patchlog=on" in g.error("echo > patch_log")
