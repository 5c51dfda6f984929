# SPDX-License-Identifier: MIT
"""tools/stale: an instruction-cache sanitizer outside the guest. It raises no alarm
while nopl switches sites by each strategy, and names the damage of a planted mistake."""

import importlib.machinery
import importlib.util
import json
import os
import re
import signal
import subprocess

import pytest
from conftest import ANY, ARCHES, FACTS, ROOT, built, make, one_of, program, qemu_of
from image import INFO
from lib import qemu
from lib.qemu import Verdict

# All strategies under load, CPUs that come and go, NMIs, return addresses.
CLEAN = ("arch*", "patch.t*", "patch.every*", "hotplug*", "returns.t*", "nmi*")
# (architecture, fault, rules): the damage of each mistake there, seen by the plugin. A site
# changes by one aligned store, which RISC-V and AMD let a CPU fetch at any time: there
# only stricter rules show the mistake, Intel's or those of a rendezvous ("none").
PLANTED = [(arch, *row) for arch in ARCHES for row in FACTS[arch]["stale"]]


def stale(arch: str, append: str, *args: str) -> subprocess.CompletedProcess:
    """Run it on the architecture's kernel."""
    built(arch)
    return subprocess.run(
        [str(ROOT / "tools" / "stale"), "--arch", arch, "--append", append, *args],
        text=True, capture_output=True)


@pytest.fixture
def program_of():
    """tools/stale as a module."""
    loader = importlib.machinery.SourceFileLoader("stale", str(ROOT / "tools" / "stale"))
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader("stale", loader))
    loader.exec_module(module)
    return module


def test_findings_that_are_cut_off(tmp_path, capsys, program_of):
    """QEMU was ended while the plugin wrote: one line says it, and nothing was counted."""
    file = tmp_path / "findings"
    file.write_text('{"total": {"changes": 5}}\n{"hazard": tru')
    assert program_of.read_findings(file) == ([], {})
    assert capsys.readouterr().err == "stale: the plugin's line is not whole: " \
        '{"hazard": tru\n'


@pytest.mark.parametrize("arch", ARCHES)
def test_no_false_alarm(arch, tmp_path):
    tests = "; ".join(f"test {glob}" for glob in CLEAN)
    done = stale(arch, f'run="{tests}; poweroff"', "--json",
                 str(tmp_path / "found.json"))
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["total"]["changes"] > 10000
    # It is not blind: CPUs do run into sites that are just being switched.
    assert found["total"]["harmless"] > 0 and found["total"]["hazards"] == 0
    assert found["total"]["unseen"] == 0


RULES = [(arch, field) for arch in ARCHES
         for field in ("whole", "line", "barrier", "only") if field in INFO[arch]["fetch"]]


@pytest.mark.parametrize("arch, field", one_of(RULES))
def test_rule_without_an_instruction(arch, field, tmp_path, monkeypatch, capsys, program_of):
    """A slip in one of a port's patterns makes every site a hazard: its name is the cause."""
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps(INFO[arch] | {"fetch": INFO[arch]["fetch"] | {field: "^none$"}}))
    monkeypatch.setattr(program_of, "rules_for", lambda command: rules)
    monkeypatch.setattr("sys.argv", ["stale", "--arch", arch, "--append",
                                     'run="test patch.t*; poweroff"'])
    built(arch)
    status, said = program_of.main(), capsys.readouterr().out
    if status or field != "whole" or "line" not in INFO[arch]["fetch"]:
        assert status == 1
        assert f"stale: fetch: {field} of the rules matches no instruction that has run" in said


@pytest.mark.parametrize("arch,fault,rules", PLANTED)
def test_planted_mistake_is_named(arch, fault, rules):
    """The instruction, and the store that a CPU may have missed, by function."""
    done = stale(arch, f'fault={fault} run="test patch.toggle_under_load.stop; '
                       'poweroff"', *(["--rules", rules] if rules else []))
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r"^hazard: CPU \d runs [0-9a-f]+ at \w+\+0x[0-9a-f]+; it may have "
                     r"missed \d+ stores?:\n"
                     r"  #\d+ CPU \d in stop_change\+0x[0-9a-f]+: ", done.stdout, re.M)


@pytest.mark.parametrize("arch", [a for a in ARCHES if "line" in INFO[a]["fetch"]
                                  and not INFO[a]["fetch"].get("broadcast")])
def test_shared_caches(arch):
    """The planted mistake is none where the CPUs share their caches: the writer synchronises."""
    append = 'fault=sync_early run="test patch.toggle_under_load.stop; poweroff"'
    done = [stale(arch, append, *rules) for rules in ((), ("--rules", "shared"))]
    assert [d.returncode for d in done] == [1, 0], done
    assert "; 0 kinds of hazard" in done[1].stdout


def test_another_kernel_that_qemu_ends(arch):
    """QEMU's 0 is no kernel's word: a signal gives it, too. The other kernel is nopl."""
    machine = qemu.Machine(arch)
    command = machine.command(smp=2, append='run="test patch.t*; echo ready; sleep 3000"')
    with program([ROOT / "tools" / "stale", "--symbols", machine.elf, "--timeout", "200", "--",
                  *command], text=True, stdout=subprocess.PIPE) as runner:
        while runner.stdout.readline().strip() != "ready":
            assert runner.poll() is None
        os.kill(qemu_of(runner), signal.SIGTERM)
        *_, why, last = runner.stdout.read().splitlines()
    assert runner.returncode == Verdict.BROKEN
    assert why == "stale: a signal ended QEMU"
    assert re.match(r"stale: \d{4,} stores changed code; 0 kinds of hazard, ", last)
    done = subprocess.run([ROOT / "tools" / "stale", "--symbols", machine.elf, "--", *command,
                           "-nosuch"], text=True, capture_output=True, check=False)
    assert done.returncode == Verdict.USAGE
    assert "stale: QEMU refused its arguments; no kernel ran" in done.stdout


def test_bad_input(tmp_path):
    """One line each."""
    empty = tmp_path / "System.map"
    empty.write_text("")
    for args, words in (
            (["--arch", "vax"], "--arch vax is unknown"),
            (["--symbols", str(empty), "--", INFO[ANY]["qemu"], "-m", "64M"],
             "no functions"),
            (["--symbols", str(built(ANY).path), "--", INFO[ANY]["qemu"]],
             "the command must give the memory's size")):
        done = subprocess.run([str(ROOT / "tools" / "stale"), *args], text=True,
                              capture_output=True, cwd=ROOT)
        assert done.returncode == 2 and words in done.stderr
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("field, value, says", [
    ("unit", "8", "unit must be a whole number"), ("words", 1, "words must be true or false"),
    ("breakpoint", 204, "breakpoint must be a text"), ("whole", "(", "a regular expression"),
    ("wholes", "^", "no field wholes is known; accepted: whole line barrier only ")])
def test_bad_rules(tmp_path, field, value, says):
    """One line that names the field of machine.json, and QEMU does not begin."""
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps({"fetch": INFO[ANY]["fetch"] | {field: value}}))
    make("build/host/stale.so")
    done = subprocess.run([INFO[ANY]["qemu"], "-M", "none", "-display", "none", "-plugin",
                           f"file={ROOT}/build/host/stale.so,rules={rules},ram=/x,out=/dev/null"],
                          text=True, capture_output=True, timeout=60)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert f"{rules}: fetch: " in done.stderr and says in done.stderr
