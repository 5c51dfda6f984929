# SPDX-License-Identifier: MIT
"""Every front end, byte order and recorder: each kernel that is claimed to work is made, boots,
converts, traces and passes, the others are refused with the reason, and the
old way of recording is seen to be wrong where the linker relaxes."""

import dataclasses
import re
import subprocess

import pytest
from lib import variants
from conftest import ARCHES, FACTS, ROOT, make, one_of
from guest import Guest
from image import INFO
from lib.qemu import Verdict
from lib.variants import Variant

RECORDERS = ["link", "compiler", "object", "runtime"]


def refusal(v: Variant) -> str | None:
    """Why such a kernel cannot be, by the port's facts: a part of make's reason."""
    facts = FACTS[v.arch].get("refused", {})
    return facts.get(v.sites) or facts.get(f"{v.sites}-{v.record}") or facts.get(v.endian)


def relaxed(arch: str) -> list[str]:
    """Front ends where the linker shortens code, and moves the code behind."""
    return FACTS[arch].get("relaxed", [])


ALL = [Variant(arch, sites, endian, record) for arch in ARCHES
       for sites in INFO[arch]["sites"]
       for endian in ("little", "big") if endian not in FACTS[arch].get("refused", {})
       for record in RECORDERS]


def possible(v: Variant) -> bool:
    """Is a kernel made of it?"""
    return not refusal(v) and not (
        v.record == "object" and v.sites in relaxed(v.arch))


def default(v: Variant) -> bool:
    """Is it the port's default kernel? test_boot.py runs all in-kernel tests there."""
    choices = variants.choices(v.arch)
    return (v.sites, v.endian, v.record) == (choices["sites"][0], choices["endians"][0], "link")


def others(arch: str, *recorders: str) -> list[Variant]:
    """The port's other kernels by these recorders."""
    return [v for v in ALL if v.arch == arch and v.record in recorders and possible(v)
            and not default(v)]


# The kernels that boot here: the default ones, and of each port's others the one that this commit
# has. A port may have no second front end.
OTHERS = [v for arch in ARCHES for v in one_of(others(arch, "link", "runtime") or [None]) if v]
BOOTED = {*OTHERS, *(v for v in ALL if default(v))}


def proves(v: Variant) -> Variant:
    """The kernel that one with a proof of its record is a copy of."""
    return v if v.record == "runtime" else dataclasses.replace(v, record="link")


def of(*recorders: str):
    """Those of this commit that are possible with these recorders, as parameters. A proof has the
    front ends that boot."""
    return pytest.mark.parametrize(
        "variant", [v for v in ALL if v.record in recorders and possible(v)
                    and proves(v) in BOOTED],
        ids=str)


def made(v: Variant):
    """Make it, and return its folder."""
    make(*v.make_args(), "all")
    return v.elf().parent


def test_nothing_is_left_out():
    """tools/features examines what the ports' data files know of, and what they say is
    refused whole."""
    known = {v for arch in ARCHES for v in variants.variants(arch)}
    assert set(ALL) <= known
    assert {v for v in known - set(ALL) if not refusal(v)} == set()


@pytest.mark.parametrize("arch", ARCHES)
def test_each_has_its_own_folder(arch):
    """A variant is built beside the others, never over one."""
    every = [v for v in ALL
             if v.arch == arch and v.record in ("link", "runtime") and possible(v)]
    folders = [v.elf().parent for v in every]
    assert len(set(folders)) == len(every) > 1, folders
    assert folders[0] == ROOT / "build" / arch


# In-kernel tests that meet the code of a site, of its trampolines, or the tables.
OF_SITES = ("arch_trace* enabled* graph* nmi* ops* patch* record* returns* ring* sites* stop* "
            "unwind*")
# The kernels that run all in-kernel tests here.
WHOLE = one_of(OTHERS)


def lab_holds(variant) -> None:
    """Each strategy switches the compiler's sites, and the trampolines."""
    # A glob for the two names that are looked for below.
    done = subprocess.run(
        [str(ROOT / "tools" / "lab"), "--arch", variant.arch, "--elf", str(variant.elf()),
         "--schemes", "[ot][wr][na]*"], text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    for scheme in ("own", "trampoline"):
        assert re.search(rf"^\w+ {scheme} .*holds$", done.stdout, re.M), done.stdout


@of("link")
def test_front_end(variant):
    """In-kernel tests on 2 CPUs, which convert, switch and trace, and a task
    held at each instruction of a site of its own while that is switched."""
    made(variant)
    done = variants.boot(variant, "sites*" if default(variant) else
                         "" if variant in WHOLE else OF_SITES)
    assert done.verdict == Verdict.PASS, done.reason
    assert done.sites_boot == done.patched > 300
    assert done.skipped == done.failed == 0
    lab_holds(variant)


@of("compiler", "object")
def test_recorder_agrees(variant):
    """Recorded before the link or found after it: the same tables, so the same kernel."""
    folder = made(variant)
    tables = (folder / f"tables-{variant.record}.S").read_text()
    assert tables == (folder / "tables.S").read_text()
    assert "site_table" in tables


@pytest.mark.parametrize("arch, sites", [
    (v.arch, v.sites) for v in ALL if v in BOOTED and v.record == "link" and
    v.sites in relaxed(v.arch)])
def test_object_record_is_wrong_under_relaxation(arch, sites):
    """make says in one line how many sites are wrong, and makes no kernel."""
    variant = Variant(arch, sites, variants.choices(arch)["endians"][0], "object")
    done = make(*variant.make_args(), "all", check=False)
    verdict = variants.read_make(variant, done)
    assert verdict.state == "wrong", done.stderr
    match = re.fullmatch(r"object: (\d+) of (\d+) recorded addresses hold no "
                         r"site after the link: relaxation moved them",
                         verdict.reason)
    assert 0 < int(match[1]) <= int(match[2])
    assert not (variant.elf().parent / "tables-object.S").exists()


REFUSED = [(v, refusal(v)) for v in {
    *ALL, *(v for arch in ARCHES for v in variants.variants(arch))} if refusal(v)]
REFUSED.sort(key=str)


@pytest.mark.parametrize("variant, reason", REFUSED, ids=str)
def test_refused(variant, reason):
    """make refuses it in one line, with the reason."""
    done = make(*variant.make_args(), "all", check=False)
    verdict = variants.read_make(variant, done)
    assert verdict.state == "refused", done.stderr
    assert re.search(re.escape(reason), verdict.reason)
    assert len(done.stderr.strip().splitlines()) == 1


@of("runtime")
def test_runtime_recorder(variant):
    """In-kernel tests, then a boot with too few records, which skips calls,
    counts them, and finds them later."""
    made(variant)
    done = variants.boot(variant, "" if variant in WHOLE else OF_SITES)
    assert done.verdict == Verdict.PASS, done.reason
    sweep = variants.boot(variant, "record.converts*", icount=0)
    assert sweep.verdict == Verdict.PASS, sweep.reason
    assert sweep.tests_passed == 1
    with Guest(variant.arch, smp=2, elf=variant.elf(),
               append="records=16") as g:
        info = "cat /sys/kernel/tracing/record_info"
        first = re.findall(r"\d+", g.run(info))
        # Each second has a turn. How long that takes is the host's matter.
        for _ in range(60):
            g.run("sleep 1")
            found, converted, left, known, waiting, skipped, records, turns = (
                int(x) for x in re.findall(r"\d+", g.run(info)))
            if records > 16 and turns > 1 and not left and converted > int(first[1]):
                break
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
    lab_holds(variant)


@of("runtime")
def test_runtime_recorder_with_each_nop(variant):
    """Every NOP that such a kernel offers: on x86-64 the 2-byte jump over the old
    operand, too, as in 2008."""
    made(variant)
    with Guest(variant.arch, elf=variant.elf(), append="nop=none-such",
               refused_parameters=True) as g:
        offered = re.search(r"accepted: (.*)|takes (.*)", g.boot_text)
    for name in (offered[1] or offered[2]).replace(",", " ").split():
        done = variants.boot(variant, "patch*", append=f"nop={name}")
        assert done.verdict == Verdict.PASS, done.reason
        assert done.nop.startswith(name)
