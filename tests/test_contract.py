# SPDX-License-Identifier: MIT
"""The contract of arch/arch.h and arch/arch_trace.h: the porting guide names every
function and datum of it, and each has a conformance test of its name."""

import re

import pytest
from conftest import ROOT

HEADERS = ["arch", "arch_trace"]


def declared(header: str) -> tuple[set[str], set[str]]:
    """Functions and data declared there, outside comments, macros and structs."""
    text = (ROOT / "arch" / f"{header}.h").read_text()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"^#.*$", "", text, flags=re.M)
    text = re.sub(r"\{[^{}]*\}", "{}", text)
    text = re.sub(r"^static inline [^;{}]*\{\}", "", text, flags=re.M)  # nothing to port
    functions = re.findall(
        r"^(?:(?:static|layout)[ _]inline|noreturn|extern|const|unsigned|struct|void|int|u64|"
        r"bool|long|char)[\w \n\t*]*?\b(\w+)\([^;]*\);", text, re.M)
    data = re.findall(r"^extern [\w \n\t*]*?"
                      r"\b((?:arch|trace|lab|trampoline)_\w+)(?:\[\d*\])?;",
                      text, re.M)
    return set(functions), set(data)


def contract(header: str) -> set[str]:
    """All names that the header declares."""
    functions, data = declared(header)
    return functions | data


def ktests(*folders: str) -> set[str]:
    """Names of the in-kernel tests below some folders, or of all."""
    found = set()
    for folder in folders or ("arch", "boot", "kernel", "tracer"):
        for path in (ROOT / folder).rglob("*.[ch]"):
            found |= set(re.findall(r'^KTEST\(\w+,\s*"([^"]+)"\)',
                                    path.read_text(), re.M))
    return found


def test_contract_is_read_right():
    names = contract("arch") | contract("arch_trace")
    assert 60 <= len(names) <= 110
    for name in ("arch_this_cpu", "arch_frame_regs", "arch_timer_set",
                 "arch_site_prepare", "arch_live_write", "trace_entry_ring",
                 "arch_power_off", "arch_nop_select", "arch_nop_names",
                 "trace_ops", "patch_trap", "site_seen"):
        assert name in names
    assert "entry" not in names and "func" not in names


@pytest.mark.parametrize("header,most", [("arch", 41), ("arch_trace", 23)])
def test_contract_is_small(header, most):
    """So many functions a port supplies. The tracer supplies the others."""
    tracer = {"patch_trap", "trace_take_return", "trace_returned",
              "trace_ring_slow", "site_seen"}
    functions, _ = declared(header)
    assert len(functions - tracer) <= most


@pytest.mark.parametrize("header", [*HEADERS, "arch_lab"])
def test_guide_names_it(header):
    guide = (ROOT / "arch" / "README.md").read_text()
    assert sorted(n for n in contract(header)
                  if not re.search(rf"\b{n}\b", guide)) == []


def test_tests_run_in_the_order_of_the_guide(arch, guest):
    """`test arch*` goes from the console to breakpoints: each test needs only what an
    earlier section of the guide is about. The kernel's own order is looked at."""
    guide = (ROOT / "arch" / "README.md").read_text()
    # Each item of a section begins with the names that it explains.
    sections = [set(re.findall(r"`(\w+)`", " ".join(
        re.findall(r"^- (`[^:]*)(?::|$)", s, re.M))))
                for s in re.split(r"^## \d+\. ", guide, flags=re.M)[1:]]
    g = guest(arch, smp=2, timeout=120)
    shared = ktests("arch/conform")
    begun = [name for name in re.findall(r"^# begin (\S+)", g.run("test arch*"), re.M)
             if name in shared]
    places = []
    for test in begun:
        header, name = test.split(".")[:2]
        names = {name, f"arch_{name}"} if header == "arch" else {name}
        places += [(number, test) for number, items in enumerate(sections, 1)
                   if names & items][:1]
    assert len(places) > 60
    numbers = [number for number, _ in places]
    assert numbers == sorted(numbers), [
        (a, b) for a, b in zip(places, places[1:]) if a[0] > b[0]]


@pytest.mark.parametrize("header", HEADERS)
def test_each_has_a_test(header):
    """A test arch.<name> or arch_trace.<name>, arch_ left out or not."""
    names = ktests()
    missing = []
    for name in sorted(contract(header)):
        short = name.removeprefix("arch_")
        if not any(re.fullmatch(rf"{header}\.({name}|{short})(\..*)?", n)
                   for n in names):
            missing.append(name)
    assert missing == []
