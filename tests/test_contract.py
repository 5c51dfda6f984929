"""The contract of arch/arch.h and arch/arch_trace.h: the porting guide names every
function of it, and each has a conformance test of its name."""

import re

import pytest
from conftest import ROOT

ARCH = ROOT / "arch"
HEADERS = ["arch.h", "arch_trace.h"]
NAMES = re.compile(r"\b((?:arch|trace)_\w+|patch_trap|site_seen)"
                   r"(?=\s*(?:\(|\[|;))")


def contract(header: str) -> set[str]:
    """What is declared there, outside comments and macros."""
    text = (ARCH / header).read_text()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
    text = re.sub(r"struct \w+ \{.*?^\};", "", text, flags=re.S | re.M)
    return set(NAMES.findall(text))


@pytest.mark.parametrize("header", HEADERS)
def test_guide_names_it(header):
    guide = (ARCH / "README.md").read_text()
    names = contract(header)
    assert len(names) > 20
    assert sorted(n for n in names
                  if not re.search(rf"\b{n}\b", guide)) == []


@pytest.mark.parametrize("header", HEADERS)
def test_each_has_a_test(header):
    files = [*ARCH.glob("conform*.c"), ROOT / "tracer" / "record_test.c"]
    text = "".join(p.read_text() for p in files)
    tests = set(re.findall(r'KTEST\(\w+,\s*"arch\w*\.(\w+)"', text))
    tests |= {"arch_" + t for t in tests}
    assert sorted(contract(header) - tests) == []
