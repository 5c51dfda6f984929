"""make lab: every scheme of every architecture bears its claim out, each
instruction boundary held; and a lab that is wrong on purpose is found out."""

import importlib.machinery
import importlib.util
import json
import subprocess

import pytest
from conftest import ROOT, built, make

LIMIT = 180  # seconds, on two cores
# What each port's lab must have, by name and claim.
REQUIRED = {
    "x86_64": {("p6", "safe"), ("k8", "safe"), ("generic", "safe"),
               ("5x90", "unsafe"), ("66x2", "unsafe"), ("nop+lea", "unsafe"),
               ("ds-lea", "unsafe"), ("torn 4+1", "unsafe"),
               ("int3", "safe"), ("int3-nop", "unsafe"),
               ("lock-90", "unsafe"), ("lock-3e", "safe")},
    "riscv": {("nop=auipc", "safe"), ("nop=jump", "safe"),
              ("far mcount", "safe"), ("auipc+jalr", "unsafe"),
              ("retarget", "unsafe"), ("3 steps", "safe"),
              ("3 steps only", "unsafe"), ("odd low high", "unsafe"),
              ("ebreak", "safe"), ("ebreak-nop", "unsafe")},
    "mips": {("jal/addiu", "unsafe"), ("jal/addiu 0 1", "unsafe"),
             ("jal/addiu 1 0", "unsafe"), ("jal/addiu", "safe"),
             ("jal/nop", "safe"), ("jal/nop link", "unsafe"),
             ("long both", "unsafe"), ("long b/lui", "safe"),
             ("break", "safe"), ("break-nop", "unsafe")},
}
COMMON = {("own", "safe"), ("own return", "safe"), ("vector", "safe"),
          ("vector-unsorted", "unsafe"), ("trampoline", "safe")}


def lab(arch, folder, *args):
    """tools/lab's exit status, its lab.json, and what it printed."""
    done = subprocess.run(
        [str(ROOT / "tools" / "lab"), "--arch", arch, "--output", str(folder),
         *args], text=True, capture_output=True)
    path = folder / "lab.json"
    report = json.loads(path.read_text()) if path.exists() else {}
    return done.returncode, report, done.stdout + done.stderr


@pytest.fixture(scope="module")
def tool():
    """tools/lab as a module."""
    loader = importlib.machinery.SourceFileLoader(
        "lab", str(ROOT / "tools" / "lab"))
    spec = importlib.util.spec_from_loader("lab", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_every_claim(arch, tmp_path, alone):
    status, report, text = lab(arch, tmp_path)
    assert status == 0, text
    rows = report["schemes"]
    names = {(row["scheme"].split(" ", 1)[1], row["claim"]) for row in rows}
    assert REQUIRED.get(arch, set()) | COMMON <= names
    assert report["seconds"] <= LIMIT
    assert {"safe", "unsafe"} == {row["claim"] for row in rows}
    for row in rows:
        assert row["held"] == row["boundaries"] > 0, row["scheme"]
        assert row["runs"] >= row["held"], row["scheme"]
        # What is claimed unsafe was seen to do harm; what is safe was not.
        assert bool(row["findings"]) == (row["claim"] == "unsafe")
    for name in (" own", " own return"):
        own = {r["strategy"] for r in rows if r["scheme"].endswith(name)}
        assert "stop" in own and "breakpoint" in own
    ways = {r["transition"] for r in rows if r["scheme"].endswith(" trampoline")}
    assert {"off->return", "return->off", "ring->return", "return->ring"} < ways
    table = (tmp_path / "lab.txt").read_text()
    assert table.splitlines()[-1] == report["summary"]
    assert table in text


@pytest.mark.parametrize("variant", [
    ("x86_64", "SITES=patchable"), ("x86_64", "RECORD=runtime"),
    ("x86_64", "SITES=fentry-nop", "RECORD=compiler"),
    ("riscv", "SITES=patchable-nc"), ("riscv", "SITES=mcount"),
    ("riscv", "SITES=mcount-far"), ("mips", "SITES=mcount-ra"),
    ("mips", "SITES=mcount-long"), ("mips", "ENDIAN=big")],
    ids=" ".join)
def test_own_site_of_every_front_end(tmp_path, variant):
    """What the compiler makes is switched by each strategy; the trampolines."""
    arch, *variables = variant
    folder = "build/" + "-".join([arch, *(v.split("=")[1] for v in variables)])
    make(f"ARCH={arch}", *variables, "all")
    for schemes in ("own*", "trampoline"):
        status, report, text = lab(
            arch, tmp_path, "--elf", str(ROOT / folder / "nopl.elf"),
            "--schemes", schemes)
        assert status == 0, text
        assert {r["verdict"] for r in report["schemes"]} == {"holds"}


@pytest.mark.parametrize("wrong, verdict", [
    ("claim", "SURPRISE"), ("boundary", "INCOMPLETE")])
def test_wrong_lab_is_found_out(arch, tmp_path, wrong, verdict):
    status, report, text = lab(arch, tmp_path, "--schemes", "vector*",
                               "--append", f"fault=lab_{wrong}")
    assert status == 1, text
    assert [row["verdict"] for row in report["schemes"]] == [verdict] * 2


def test_lost_return_is_found_out(arch, tmp_path):
    """Returns that count only while their tracer is on: whoever is inside when
    it is switched off was called, and never came back."""
    status, report, text = lab(arch, tmp_path, "--schemes", "trampoline",
                               "--append", "fault=lab_return")
    assert status == 1, text
    for row in report["schemes"]:
        lost = row["transition"].startswith("return->")
        assert row["verdict"] == ("SURPRISE" if lost else "holds"), text
        assert not lost or "a call lost or doubled" in row["outcome"]


def test_false_form_is_found_out_by_the_machine(tmp_path, image):
    """A boundary that is declared, but where nobody is ever interrupted."""
    status, report, text = lab(image.arch, tmp_path, "--schemes", "own",
                               "--append", "fault=lab_form")
    assert status == 1, text
    assert {row["verdict"] for row in report["schemes"]} == {"INCOMPLETE"}
    assert "never interrupted at +1" in text


def row_of(insns, code):
    """As the lab prints it."""
    form = {"name": "off", "insns": insns, "bytes": code}
    return {"scheme": "x86_64 test", "transition": "off->on", "site": 4096,
            "verdict": "holds", "held": 5, "boundaries": 5, "forms": [form]}


@pytest.mark.parametrize("insns, code, right", [
    ([5], "0f1f440000", True), ([5], "6666666690", True),
    ([2, -3], "eb03feffff", True), ([1, 1, 1, 1, 1], "9090909090", False),
    ([5], "9090909090", False), ([3, 2], "666690e890", False),
    ([5], "0f1f4400ff", True), ([5], "06ffffffff", False)])
def test_forms_are_checked_by_objdump(tool, insns, code, right):
    machine = tool.qemu.Machine("x86_64")
    objdump = tool.Disassembler(machine, ROOT / "build/x86_64/nopl.elf")
    problems = tool.check_row(objdump, row_of(insns, code))
    assert (not problems) == right, problems


def test_missing_boundary_is_not_called_complete(tool):
    machine = tool.qemu.Machine("x86_64")
    objdump = tool.Disassembler(machine, ROOT / "build/x86_64/nopl.elf")
    row = row_of([5], "0f1f440000")
    assert not tool.check_row(objdump, row)
    assert tool.check_row(objdump, row | {"held": 4})
    assert tool.check_row(objdump, row | {"held": 4, "boundaries": 4})


def test_summary_must_add_up(tool):
    row = row_of([5], "0f1f440000")
    last = ("lab: 1 schemes: {} safe hold, 0 unsafe broken as claimed, "
            "{} surprises, 0 incomplete")
    assert not tool.check_last([last.format(1, 0)], [row])[1]
    assert tool.check_last([last.format(0, 1)], [row])[1]
    assert tool.check_last([last.format(2, 0)], [row])[1]
    assert tool.check_last([], [row])[1]


def test_without_icount_proves_nothing(guest):
    out = guest("x86_64", smp=2).run("lab run 5x90")
    assert "proves nothing" in out
    assert out.rstrip().endswith("0 safe hold, 0 unsafe broken as claimed, "
                                 "0 surprises, 2 incomplete")


@pytest.mark.parametrize("smp", [2, 4])
def test_counts_are_lost_on_real_cpus(smp, run_tool):
    """What the lab calls not atomic, without -icount: none of it is skipped."""
    done = run_tool("--arch", "x86_64", "--smp", str(smp), "--append",
                    'run="test lab.lock_*; poweroff"')
    assert done.returncode == 0, done.stdout
    assert "2 passed, 0 failed, 0 skipped" in done.stdout


def test_one_cpu_cannot_show_what_two_do(tmp_path):
    built("x86_64")
    status, report, _text = lab("x86_64", tmp_path, "--smp", "1",
                                "--schemes", "int3")
    assert status == 1
    assert {row["outcome"] for row in report["schemes"]} == {
        "needs a second CPU"}


def test_bad_input_is_one_line(guest):
    shell = guest("x86_64")
    for line, says in (("lab run foo", "'lab list'"), ("lab", "takes list"),
                       ("lab walk all", "takes list"),
                       ("lab run", "takes list")):
        out = shell.run(line).strip().splitlines()
        assert len(out) == 1 and out[0].startswith("lab: "), line
        assert says in out[0]
    assert "5x90" in shell.run("lab list")
    shell.run("echo function > /sys/kernel/tracing/current_tracer")
    assert shell.run("lab run own").strip() == (
        "lab: tracing is on: current_tracer must be nop")
