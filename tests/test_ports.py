# SPDX-License-Identifier: MIT
"""A port is arch/NAME and boot/NAME, and nothing else: nothing outside names one, a copy
under another name works at once, and a wrong data file is named with its field."""

import ast
import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tokenize

import pytest
from conftest import ANY, ARCHES, ROOT, one_of
from lib.variants import run_make

NEW = "zzz"


def code_of_python(text: str) -> str:
    """Without comments and docstrings."""
    doc = set()
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr) and \
                isinstance(getattr(body[0].value, "value", None), str):
            doc.add(body[0].lineno)
    return "\n".join(t.string for t in
                     tokenize.generate_tokens(io.StringIO(text).readline)
                     if t.type != tokenize.COMMENT and not (
                         t.type == tokenize.STRING and t.start[0] in doc))


def code(path) -> str:
    """A file as a machine reads it: its text without comments."""
    text = path.read_text()
    first = text.split("\n", 1)[0]
    if path.suffix == ".py" or "python" in first:
        return code_of_python(text)
    if path.suffix in (".c", ".h", ".S", ".pml"):
        return re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return re.sub(r"(?m)(^|\s)#.*$", "", text)


def files() -> list[str]:
    """All files but the ports' own and prose."""
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT,
                           text=True, capture_output=True, check=True).stdout.split()
    own = tuple(f"{folder}/{arch}/" for arch in ARCHES
                for folder in ("arch", "boot", "tests/patchers/linux"))
    return [n for n in names if not n.startswith(own) and not n.endswith(".md")
            and (ROOT / n).is_file()]


def test_nothing_else_names_a_port():
    """No file outside the ports' folders has the name of one, but in comments."""
    names = re.compile(rf"(?<![A-Za-z]){'|'.join(map(re.escape, ARCHES))}")
    names_of_files = files()
    assert len(names_of_files) > 300
    found = [f"{name}: {match[0]}" for name in names_of_files
             if (match := names.search(code(ROOT / name)))]
    assert found == []


def test_the_rule_sees_a_name():
    """The reading of files that the rule depends on."""
    assert ANY not in code_of_python(f'"""{ANY}"""\nx = 1  # {ANY}\n')
    assert ANY in code_of_python(f'def f():\n    """Doc."""\n    return "{ANY}"\n')


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the project, as another one who begins a port has it."""
    folder = tmp_path_factory.mktemp("tree") / "nopl"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)
    for name in subprocess.run(
            ["git", "ls-files", "-com", "--exclude-standard"], cwd=ROOT, text=True,
            capture_output=True, check=True).stdout.split():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]


def environment(**variables: str) -> dict[str, str]:
    """Of a run of tests in another tree: not as part of the one that runs here, nor as whole."""
    return {k: v for k, v in os.environ.items()
            if not k.startswith(("PYTEST_", "NEWCOMERS", "EVERYTHING"))} | variables


def files_that_test(arch: str, tree, **variables: str) -> set[str]:
    """Files of tests/ in that tree with a test of the port."""
    done = subprocess.run([*PYTEST, "--collect-only", "-k", arch, "tests"], cwd=tree, text=True,
                          capture_output=True, env=environment(**variables))
    return {line.partition("::")[0] for line in done.stdout.splitlines()
            if re.search(rf"::.*[\[-]{arch}[]-]", line)}


@contextlib.contextmanager
def copied(tree, arch: str):
    """Two folders of the port are copied, no other file is touched, but the kernel's own name."""
    for folder in ("arch", "boot"):
        shutil.copytree(tree / folder / arch, tree / folder / NEW)
    try:
        for path in tree.glob(f"[ab]*/{NEW}/*.c"):
            path.write_text(re.sub(rf'(arch_name\[\] = "){arch}"', rf'\1{NEW}"',
                                   path.read_text()))
        yield
    finally:
        for folder in ("arch", "boot"):
            shutil.rmtree(tree / folder / NEW)


@pytest.mark.parametrize("arch", one_of(ARCHES))
def test_a_copy_is_a_port(tree, arch):
    """It is built, proved, booted and tested, and every tool knows it."""
    with copied(tree, arch):
        done = run_make(f"ARCH={NEW}", "-j2", "all", cwd=tree)
        assert done.returncode == 0, done.stdout + done.stderr
        done = subprocess.run(
            ["tools/run", "-v", "--arch", NEW, "--smp", "2", "--append",
             'run="test arch*; test patch.t*; poweroff"'], cwd=tree, text=True,
            capture_output=True)
        assert done.returncode == 0, done.stdout
        assert f"nopl 0.1 {NEW}: 2 CPUs" in done.stdout
        assert re.search(rf"ARCH .*\b{NEW}\b", run_make("help", cwd=tree).stdout)
        for tool in (["tools/setup"], ["tools/mutations", "--arch", NEW, "no-such"],
                     ["tools/lab", "--arch", NEW, "--schemes", "vector-unsorted"]):
            done = subprocess.run(tool, cwd=tree, text=True, capture_output=True)
            assert done.returncode == (2 if "no-such" in tool else 0), \
                done.stdout + done.stderr
        # While it is taken in, other tests leave it alone, unless they are asked.
        data = tree / "arch" / NEW / "machine.json"
        info = json.loads(data.read_text())
        info["tests"]["newcomer"] = True
        data.write_text(json.dumps(info))
        assert files_that_test(NEW, tree) == {"tests/test_newcomers.py"}
        assert len(files_that_test(NEW, tree, NEWCOMERS="1", EVERYTHING="1")) > 30


@pytest.mark.parametrize("arch", one_of(ARCHES))
def test_a_copy_passes_host_tests(tree, arch):
    """None of them knows a port by its name. A commit has one file of them. All, a quarter of an
    hour a port: make test T=ports EVERYTHING=1 PYTEST_ARGS='-k "host_tests and NAME"'."""
    (tree / "build").mkdir(exist_ok=True)
    if not (tree / "build" / "ccache").exists():
        (tree / "build" / "ccache").symlink_to(ROOT / "build" / "ccache")
    failed = {}
    with copied(tree, arch):
        # The tests here would copy the copy.
        for name in one_of(sorted(files_that_test(NEW, tree) - {"tests/test_ports.py"})):
            done = subprocess.run([*PYTEST, "-k", NEW, name], cwd=tree, text=True,
                                  capture_output=True, env=environment())
            if done.returncode or " passed" not in done.stdout:
                failed[name] = done.stdout + done.stderr
    assert not failed, "\n".join(failed.values())


def change(info, path: str, value):
    """Set a field of nested objects. None takes it away."""
    *way, last = path.split("/")
    for key in way:
        info = info[key]
    if value is None:
        del info[last]
    else:
        info[last] = value


@pytest.mark.parametrize("field, value, says", [
    ("code/stops", None, "code: the field stops is missing: a list of strings"),
    ("code/calls", "call", "code: calls must be a list of strings"),
    ("code/sp", "seven", "code: sp must be a number"),
    ("code/jump", ["j"], "code: no field jump is known; accepted: calls jumps "),
    ("code/plain", [], "code: no list has the instruction "),
    ("sites", {}, "unknown --sites "),
])
def test_bad_code_stops_the_build(tree, field, value, says):
    """One line names the file, the field and the accepted values. An instruction that
    the port does not list is named with its function."""
    path = tree / "arch" / ANY / "machine.json"
    text = path.read_text()
    run_make(f"ARCH={ANY}", "-j2", "all", cwd=tree)
    try:
        info = json.loads(text)
        change(info, field, value)
        path.write_text(json.dumps(info))
        done = run_make(f"ARCH={ANY}", "all", cwd=tree)
    finally:
        path.write_text(text)
    lines = [x for x in done.stderr.splitlines() if not x.startswith("make")]
    assert done.returncode != 0 and len(lines) == 1, done.stderr
    assert says in lines[0] and f"arch/{ANY}/machine.json" in lines[0]


@pytest.mark.parametrize("field, value, says", [
    ("qemu", None, "the field qemu is missing: a string"),
    ("elf_machine", "eight", "elf_machine must be a number"),
    ("qemus", "x", "no field qemus is known; accepted: packages qemu "),
    ("limits/disabled_site", "x",
     "limits: the field disabled_site is missing: a number"),
])
def test_bad_data_stops_the_tools(tree, field, value, says):
    """The same of the fields that Python reads."""
    path = tree / "arch" / ANY / "machine.json"
    text = path.read_text()
    try:
        info = json.loads(text)
        change(info, field, value)
        path.write_text(json.dumps(info))
        done = subprocess.run(["tools/bench", ANY], cwd=tree, text=True,
                              capture_output=True)
    finally:
        path.write_text(text)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert f"arch/{ANY}/machine.json: {says}" in done.stderr
