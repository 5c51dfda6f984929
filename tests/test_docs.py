# SPDX-License-Identifier: MIT
"""Every folder lists its files, and every code that the tree uses is explained."""

import fnmatch
import re
import subprocess
from pathlib import Path

import pytest
from conftest import ARCHES, NEWCOMERS, ROOT
from image import INFO

FILES = [Path(name) for name in subprocess.run(
    ["git", "ls-files"], cwd=ROOT, check=True, text=True,
    capture_output=True).stdout.split()]
SOURCES = [f for f in FILES if f.suffix in (".c", ".h", ".S", ".py", ".pml")]
# A port's files have the same names in every port. The guide explains them.
PORTS = {Path(top) / arch for top in ("arch", "boot")
         for arch in ARCHES + NEWCOMERS}
# Folders of a few lines each, which are explained together.
PATCHERS = Path("tests/patchers")
FOLDERS = sorted({f.parent for f in SOURCES
                  if not PORTS & {f.parent, *f.parents}})


def listed(readme: str) -> list[str]:
    """Patterns of the files that a README names in backquotes."""
    return [word for group in re.findall(r"`([^`\n]+)`", readme)
            for word in re.split(r"[ ,]+", group)]


@pytest.mark.parametrize("folder", FOLDERS, ids=str)
def test_folder_is_explained(folder):
    """Each folder has a short README that names each of its source files."""
    explained = PATCHERS if PATCHERS in folder.parents else folder
    readme = (ROOT / explained / "README.md").read_text()
    if folder not in (Path("tests"), Path("arch")):
        assert len(readme.splitlines()) <= 45
    names = listed(readme)
    missing = []
    assert len(SOURCES) > 300 and any(f.parent == folder for f in SOURCES)
    for f in SOURCES:
        if f.parent != folder:
            continue
        if not any(re.fullmatch(re.escape(n).replace(r"\*", ".*"), f.name) or
                   n == f.stem for n in names):
            missing.append(f.name)
    if folder not in (Path("tests"), Path("arch")):
        assert missing == []


def code_lines(paths) -> int:
    """Lines that are neither empty nor comments."""
    return sum(bool(line.strip()) for path in paths for line in re.sub(
        r"/\*.*?\*/", "", path.read_text(), flags=re.S).split("\n"))


ROWS = dict(re.findall(r"^\| (\w+)((?: \| \d+){4}) \|$",
                       (ROOT / "arch" / "README.md").read_text(), re.M))


@pytest.mark.parametrize("arch", ROWS)
def test_the_guide_says_what_a_port_costs(arch):
    """Its table, recounted: a port that has just come needs no row. A few lines more or less are
    the same port."""
    files = {path for top in ("arch", "boot")
             for path in (ROOT / top / arch).glob("*.[chS]")}
    lab = {path for path in files if path.stem in ("lab", "lab_test")}
    sites = ROOT / "arch" / arch / "sites"
    first = sites / next(iter(INFO[arch]["sites"])) / "site.h"
    own = {first} | {sites / name for name in
                     re.findall(r"<sites/(\w+\.h)>", first.read_text())}
    patching = own | {path for path in files if path.name in (
        "patch.c", "arch_trace_inline.h", "trampoline.S")}
    counts = [code_lines(paths) for paths in
              (files - lab | own, patching, lab, set(sites.rglob("*.h")) - own)]
    for said, counted in zip(map(int, ROWS[arch].split(" | ")[1:]), counts, strict=True):
        assert abs(said - counted) <= said / 50, counts


def used(pattern: str) -> set[str]:
    """What the tree's sources and READMEs use of such codes."""
    found = set()
    for f in FILES:
        if f.suffix in (".c", ".h", ".S", ".py", ".pml", ".md") and \
                f.name not in ("HAZARDS.md", "ORIGINS.md", "test_docs.py"):
            found |= set(re.findall(pattern, (ROOT / f).read_text()))
    return found


def rows(name: str) -> set[str]:
    """The codes that a table explains: its first column."""
    return set(re.findall(r"^\| (\w[\w ]*?) \|",
                          (ROOT / "tracer" / name).read_text(), re.M))


def test_hazards_have_rows():
    codes = used(r"(?<![\w.#%x])H[1-9][0-9]?b?\b")
    assert len(codes) > 15
    assert codes - rows("HAZARDS.md") == set()


def test_origins_have_rows():
    codes = used(r"\bseed [0-9]\b")
    assert {"seed 0", "seed 1", "seed 2", "seed 3"} <= codes
    assert codes - rows("ORIGINS.md") == set()


def test_tests_that_texts_name_exist():
    """KTESTs, and lines of `test` for the shell, in every README. Of the hazards'
    rows the schemes of the lab, too, and every file of tests."""
    sources = "".join((ROOT / f).read_text() for f in FILES
                      if f.suffix in (".c", ".S", ".h"))
    tests = set(re.findall(r'(?:KTEST|PATCH_TEST)\(\w+,\s*"([^"]+)"', sources))
    named = [(f, name) for f in FILES if f.suffix == ".md"
             for group in re.findall(
                 r"KTESTs? ((?:[\w.*]+(?:, )?)+)|`test ([\w.* ]+)`",
                 (ROOT / f).read_text())
             for name in re.findall(r"[a-z]\w*\.[\w.*]*[\w*]", " ".join(group))]
    assert len(tests) > 400 and len(named) > 20
    missing = [(f, name) for f, name in named
               if not any(fnmatch.fnmatchcase(test, name) for test in tests)]
    hazards = (ROOT / "tracer" / "HAZARDS.md").read_text()
    schemes = re.findall(r"`([^`]+)`", " ".join(
        re.findall(r"lab: ([^.|]*)", hazards)))
    assert len(schemes) > 6
    missing += [name for name in schemes
                if f'"{name}' not in sources and not name.startswith("make ")]
    missing += [name for name in re.findall(r"tests/\w+\.py", hazards)
                if not (ROOT / name).exists()]
    assert missing == []
