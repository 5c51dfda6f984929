"""Every front end, byte order and recorder: what is claimed to work is made, boots,
converts, traces and passes; what cannot be is refused with its reason; and the
old way of recording is seen to be wrong where the linker relaxes."""

import re
import subprocess

import pytest
from lib import variants
from conftest import ARCHES, ROOT, make
from guest import Guest
from lib.qemu import Verdict
from lib.variants import Variant

# What there has to be. The Makefiles say it too, and must agree.
SITES = {"x86_64": ["fentry", "fentry-nop", "patchable"],
         "riscv": ["patchable", "patchable-nc", "mcount", "mcount-far"],
         "mips": ["mcount", "mcount-ra", "mcount-long"]}
ENDIANS = {"x86_64": ["little"], "riscv": ["little"],
           "mips": ["little", "big"]}
RECORDERS = ["link", "compiler", "object", "runtime"]

NO_RECORD = "GCC (records no|leaves no record of the) sites of -pg"
NO_CALL = "(compiled as|sites are) NOPs"
PREEMPTED = "a task preempted between"
# (architecture, SITES, RECORD) of what cannot be, and why.
IMPOSSIBLE = {
    ("x86_64", "fentry-nop", "runtime"): NO_CALL,
    ("x86_64", "patchable", "runtime"): NO_CALL,
    ("riscv", "patchable", "runtime"): NO_CALL,
    ("riscv", "patchable-nc", "runtime"): NO_CALL,
    ("riscv", "mcount", "compiler"): NO_RECORD,
    ("riscv", "mcount-far", "compiler"): NO_RECORD,
    ("mips", "mcount", "compiler"): NO_RECORD,
    ("mips", "mcount-ra", "compiler"): NO_RECORD,
    ("mips", "mcount-long", "compiler"): NO_RECORD,
    ("mips", "mcount-long", "runtime"): PREEMPTED,
}
# The linker shortens code there, and moves what follows.
RELAXED = {("riscv", "patchable"), ("riscv", "patchable-nc"),
           ("riscv", "mcount")}

ALL = [Variant(arch, sites, endian, record) for arch in ARCHES
       for sites in SITES[arch] for endian in ENDIANS[arch]
       for record in RECORDERS]


def possible(v: Variant) -> bool:
    """Is a kernel made of it?"""
    return (v.arch, v.sites, v.record) not in IMPOSSIBLE and not (
        v.record == "object" and (v.arch, v.sites) in RELAXED)


def of(*recorders: str):
    """Those that are possible with these recorders, as parameters."""
    return pytest.mark.parametrize(
        "variant", [v for v in ALL if v.record in recorders and possible(v)],
        ids=str)


def made(v: Variant):
    """Make it; its folder."""
    make(*v.make_args(), "all")
    return v.elf().parent


def test_nothing_is_left_out():
    """tools/features examines what this test knows of, and the refused rest."""
    known = {v for arch in ARCHES for v in variants.variants(arch)}
    assert set(ALL) <= known
    assert {(v.arch, v.sites, v.endian) for v in known - set(ALL)} == {
        ("mips", "patchable", "little"), ("x86_64", "fentry", "big"),
        ("riscv", "patchable", "big")}


@of("link")
def test_front_end(variant):
    """All in-kernel tests on 2 CPUs, which convert, switch and trace; and a task
    held at each instruction of a site of its own while that is switched."""
    made(variant)
    done = variants.boot(variant)
    assert done.verdict == Verdict.PASS, done.reason
    assert done.sites_boot == done.patched > 300
    assert done.skipped == done.failed == 0
    lab = subprocess.run(
        [str(ROOT / "tools" / "lab"), "--arch", variant.arch, "--elf",
         str(variant.elf()), "--schemes", "own*"], text=True,
        capture_output=True)
    assert lab.returncode == 0, lab.stdout + lab.stderr
    assert re.search(r"^\w+ own .*holds$", lab.stdout, re.M), lab.stdout


@of("compiler", "object")
def test_recorder_agrees(variant):
    """Recorded before the link or found after it: the same tables, which the
    build has compared with the text; and the kernel finds its sites there."""
    link = Variant(variant.arch, variant.sites, variant.endian, "link")
    assert (made(variant) / "tables.S").read_text() == \
        (made(link) / "tables.S").read_text()
    done = variants.boot(variant, "sites*")
    assert done.verdict == Verdict.PASS, done.reason
    assert done.sites_boot == done.patched > 300


@pytest.mark.parametrize("arch, sites", sorted(RELAXED))
def test_object_record_is_wrong_under_relaxation(arch, sites):
    """make says in one line how many sites are wrong, and makes no kernel."""
    variant = Variant(arch, sites, "little", "object")
    done = make(*variant.make_args(), "all", check=False)
    verdict = variants.read_make(variant, done)
    assert verdict.state == "wrong", done.stderr
    match = re.fullmatch(r"object: (\d+) of (\d+) recorded addresses hold no "
                         r"site after the link: relaxation moved them",
                         verdict.reason)
    assert 0 < int(match[1]) <= int(match[2])
    assert not variant.elf().exists()


REFUSED = [(v, IMPOSSIBLE[v.arch, v.sites, v.record]) for v in ALL
           if (v.arch, v.sites, v.record) in IMPOSSIBLE] + [
    (Variant("mips", "patchable", "little", "link"),
     "^mips: -fpatchable-function-entry puts its NOPs before the function's "
     "label$"),
    (Variant("x86_64", "fentry", "big", "link"), "big-endian"),
    (Variant("riscv", "patchable", "big", "link"), "big-endian")]


@pytest.mark.parametrize("variant, reason", REFUSED, ids=str)
def test_refused(variant, reason):
    """make refuses it in one line, with the reason."""
    done = make(*variant.make_args(), "all", check=False)
    verdict = variants.read_make(variant, done)
    assert verdict.state == "refused", done.stderr
    assert re.search(reason, verdict.reason)
    assert len(done.stderr.strip().splitlines()) == 1


@of("runtime")
def test_runtime_recorder(variant):
    """All in-kernel tests; then a boot with too few records, which skips calls,
    counts them, and finds them later."""
    made(variant)
    done = variants.boot(variant)
    assert done.verdict == Verdict.PASS, done.reason
    sweep = variants.boot(variant, "record.converts*", icount=0)
    assert sweep.verdict == Verdict.PASS, sweep.reason
    assert sweep.tests_passed == 1
    with Guest(variant.arch, smp=2, elf=variant.elf(),
               append="records=16") as g:
        info = "cat /sys/kernel/tracing/record_info"
        first = re.findall(r"\d+", g.run(info))
        g.run("sleep 3.5")
        later = re.findall(r"\d+", g.run(info))
        found, converted, left, known, waiting, skipped, records, turns = (
            int(x) for x in later)
        assert found == converted + left + known + waiting
        assert skipped > 0 and records > 16 and turns > 1 and not left
        assert converted > int(first[1])
        listed = g.lines("cat /sys/kernel/tracing/available_filter_functions")
        assert len(listed) >= converted
        g.run("echo function > /sys/kernel/tracing/current_tracer")
        g.run("sleep 1.5")
        on = {x.split()[0] for x in
              g.lines("cat /sys/kernel/tracing/enabled_functions")}
        assert set(listed) <= on
        g.run("echo nop > /sys/kernel/tracing/current_tracer")
        assert g.lines("cat /sys/kernel/tracing/enabled_functions") == []
        assert g.poweroff() == 0


def test_runtime_recorder_with_its_own_nop():
    """x86-64: the 2-byte jump over the old operand, as in 2008."""
    variant = Variant("x86_64", "fentry", "little", "runtime")
    made(variant)
    done = variants.boot(variant, append="nop=jmp")
    assert done.verdict == Verdict.PASS, done.reason
    assert done.nop.startswith("jmp eb03")
