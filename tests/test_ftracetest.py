# SPDX-License-Identifier: MIT
"""Linux's own ftracetest on a guest: the results are those of tests/ftracetest.md."""

import re
import subprocess
from pathlib import Path

import pytest

from conftest import ANY, ROOT, heed_signals
from test_mount import Mounted, mounted, pytestmark  # noqa: F401 (no /dev/fuse, no test)

SOURCE = next(iter(sorted(Path("/usr/src").glob("linux-source-6.1.tar.*"))), None)
SELFTESTS = "linux-source-6.1/tools/testing/selftests/ftrace"


def run(m: Mounted, selftests: Path, *cases: Path) -> dict[str, str]:
    """The outcome of each case that passes or fails, by its description, of all, or of these.
    Cases end their children by a hangup."""
    said = subprocess.run([ROOT / "tools/inside", m.folder, "./ftracetest", "-l",
                           selftests / "logs", *cases], cwd=selftests, text=True,
                          capture_output=True, check=False, timeout=1800,
                          preexec_fn=heed_signals).stdout
    return {re.sub(" +", " ", case): outcome.lower()
            for case, outcome in re.findall(r"^\[\d+\] (.*?)\t\[(\w+)\]$", said, re.M)}


@pytest.mark.skipif(not SOURCE, reason="Debian's linux-source-6.1 is not installed")
def test_ftracetest(mounted, tmp_path):  # noqa: F811
    """Every case passes, or is in the table with its outcome. A case that wants something of
    the guest within a moment may fail on a busy machine. Then it is run again, alone."""
    subprocess.run(["tar", "-xf", SOURCE, "-C", tmp_path, SELFTESTS], check=True)
    selftests = tmp_path / SELFTESTS
    # A process of the host is no task of the guest: a case that wants its own pid's calls and
    # events asks for these files first.
    m = mounted(ANY, smp=2, without="set_*_pid")
    # Tasks that are started, woken, and end: the host's own are none of the guest's. They leave
    # the CPUs idle most of the time. The buffer holds a wakeup that takes as long as a busy host
    # lets it.
    m.write("buffer_size_kb", "4096")
    m.type("stress start 1 fork sleep")
    m.wait(lambda: "tasks on 2 CPUs" in m.text)
    if m.inside("true").returncode:
        pytest.skip("no mount namespace can be made here")
    page = (ROOT / "tests" / "ftracetest.md").read_text()
    table = dict(re.findall(r"^\| (\S.*?) \| (unsupported|unresolved) \| \S.* \|$", page, re.M))
    found = run(m, selftests)
    assert len(found) > 100
    files = {re.sub(" +", " ", re.search(r"^# description: *(.*)$", file.read_text(), re.M)[1]):
             file for file in selftests.glob("test.d/*/*.tc")}
    for case in [case for case, outcome in found.items() if outcome == "fail"]:
        for _ in range(2):
            if found[case] != table.get(case, "pass"):
                found |= run(m, selftests, files[case.removeprefix("(instance) ")])
    assert {case: outcome for case, outcome in found.items() if outcome != "pass"} == table
    assert f"{len(found) - len(table)} of {len(found)} do" in page
