# SPDX-License-Identifier: MIT
"""The build and the tree: errors of one line, a README that is true,
generic code that names no architecture."""

import re
import subprocess

import pytest
from conftest import ANY, ARCHES, ROOT, built, make
from image import FORMAT


def one_line_error(*args: str) -> str:
    """Make must fail, saying one line of its own."""
    done = make(*args, check=False)
    assert done.returncode != 0
    lines = [x for x in done.stderr.splitlines() if x.strip()]
    assert len(lines) == 1, lines
    return lines[0]


def test_unknown_arch():
    line = one_line_error("ARCH=vax")
    assert "vax" in line and all(a in line for a in ARCHES)


def test_unknown_sites():
    line = one_line_error(f"ARCH={ANY}", "SITES=none", "all")
    assert "SITES=none" in line and FORMAT[ANY] in line


@pytest.mark.parametrize("variable, choices", [
    ("RECORD", ["link", "compiler", "object", "runtime"]),
    ("ENDIAN", ["little", "big"])])
def test_unknown_variant(variable, choices):
    line = one_line_error(f"ARCH={ANY}", f"{variable}=none", "all")
    assert f"{variable}=none" in line and all(c in line for c in choices)


def test_missing_tool():
    line = one_line_error(f"ARCH={ANY}", "CROSS_COMPILE=none-", "all")
    assert "none-gcc" in line and "setup" in line


@pytest.mark.parametrize("word, choices", [
    ("ICOUNT=2", ["0 1"]), ("T=grap", ["graph", "trace"])])
def test_unknown_value(word, choices):
    line = one_line_error(word, "test")
    assert word in line and all(c in line for c in choices)


def test_one_file():
    """make test T=...: these files alone."""
    assert re.search(r"\stests/test_graph.py tests/test_run.py -k x$",
                     make("-n", "test", "T=graph run", "PYTEST_ARGS=-k x").stdout, re.M)
    assert re.search(r"\stests *$", make("-n", "test").stdout, re.M)


def test_quick():
    """One kernel, the tests inside it, and its own sites in the lab, in this order."""
    built(ANY)
    said = make("-n", "quick", f"ARCH={ANY}").stdout
    assert re.search(rf"^tools/run --arch {ANY} .*\n"
                     rf"tools/lab --arch {ANY} .*'own\*'$", said, re.M)


def test_run_counts_instructions():
    """make run ICOUNT=1 boots the machine that the lab needs."""
    assert "--icount lab" in make("-n", "run", "ICOUNT=1").stdout
    said = make("-n", "run").stdout
    assert "tools/run --arch " in said and "--icount" not in said


def test_help_names_all_targets():
    text = make("help").stdout
    for target in ("all", "setup", "run", "quick", "test", "bench", "features", "lab", "debug",
                   "check", "clean", "help", "compile_commands.json", "ARCH", "SMP",
                   "SITES", "ENDIAN", "RECORD", "ICOUNT", "T"):
        assert re.search(rf"^ +{re.escape(target)}\b", text, re.M), target


def test_checks_pass():
    """make check: format, static checks, and the rules of the tree."""
    done = make("check", check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_warnings(arch, tmp_path):
    """A build from nothing prints no warning. It prints the lines that the next test misses."""
    done = make(f"ARCH={arch}", f"O={tmp_path}", "all")
    assert done.stdout.count("CC\t") > 100 and "LINK\t" in done.stdout
    assert "warning:" not in done.stdout + done.stderr


def test_text_beyond_an_event(arch, tmp_path):
    """Text of 16 MiB more. Behind the linker's line come the compiler's and make's, as ever."""
    (tmp_path / "large.c").write_text('asm(".text\\n.skip 0x1000000");\n')
    done = make(f"ARCH={arch}", f"MORE={tmp_path}", "all", check=False)
    said = [line for line in done.stderr.splitlines()
            if not re.match(r"collect2: error: ld returned 1|make: \*\*\*", line)]
    assert done.returncode != 0 and len(said) == 1, done.stderr
    assert said[0].endswith(
        "ld: text is larger than the 16 MiB in which an event can name an address")


def test_second_make_does_nothing(arch):
    done = make(f"ARCH={arch}", "all")
    assert "CC" not in done.stdout and "LINK" not in done.stdout, done.stdout


def test_a_kernel_made_anew_is_named(monkeypatch):
    """What the tests have read of a kernel is no longer true of it then."""
    monkeypatch.setattr(built(ANY), "made_at", 0)
    with pytest.raises(AssertionError, match="nopl.elf was made anew at .*makes.log"):
        built(ANY)


def readme_lines() -> list[str]:
    """Lines of the README's indented and fenced blocks."""
    text = (ROOT / "README.md").read_text()
    fenced = "\n".join(re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S))
    return fenced.splitlines() + re.findall(r"^(?: {4}|\t)(.*)$", text, re.M)


def readme_commands() -> list[str]:
    """The lines that the README tells to type at the host's shell, without comments."""
    return [re.sub(r"^\$ ", "", line).partition("  #")[0].strip()
            for line in readme_lines()
            if re.match(r"(\$ )?(make|tools/\w+)\b", line)]


def test_readme_commands_exist():
    """Every make target that the README shows is one."""
    known = make("help").stdout
    shown = [c for c in readme_commands() if c.startswith("make")]
    assert shown
    for command in shown:
        for word in command.split()[1:]:
            if "=" not in word:
                assert re.search(rf"^ +{re.escape(word)}\b", known, re.M), word


def test_readme_tools_work():
    """The runner's command lines, as printed, pass."""
    shown = [c for c in readme_commands() if c.startswith("tools/run")]
    assert shown
    for command in shown:
        built(re.search(r"--arch (\w+)", command)[1])
        done = subprocess.run(command, shell=True, cwd=ROOT, text=True,
                              capture_output=True)
        assert done.returncode == 0, command + "\n" + done.stdout


def test_readme_shell_lines_work(guest):
    """What the README types at the prompt gives no error."""
    lines = [match[1] for line in readme_lines()
             if (match := re.match(r"nopl:\S*# (.+)$", line))]
    assert lines
    g = guest(ANY, smp=4)
    for line in lines:
        output = g.run(line.partition("  # ")[0].strip())
        assert not re.match(r"\w+: .*(unknown|no such|cannot|usage)", output), \
            (line, output)


def test_compile_commands(tmp_path):
    make(f"ARCH={ANY}", "compile_commands.json")
    import json
    entries = json.loads((ROOT / "compile_commands.json").read_text())
    assert any(e["file"].endswith("kernel/sched/sched.c") for e in entries)
    subprocess.run(["git", "check-ignore", "-q", "compile_commands.json"],
                   cwd=ROOT, check=True)
