"""Linux's own ftracetest on a guest: what happens is what tests/ftracetest.md says."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from conftest import ANY, ROOT
from test_mount import mounted, pytestmark  # noqa: F401 (a fixture; no /dev/fuse, no test)

SOURCE = next(iter(sorted(Path("/usr/src").glob("linux-source-6.1.tar.*"))), None)
SELFTESTS = "linux-source-6.1/tools/testing/selftests/ftrace"


@pytest.mark.skipif("FTRACETEST" not in os.environ, reason="by hand, FTRACETEST=1: some of "
                    "Linux's cases depend on the host's speed")
@pytest.mark.skipif(not SOURCE, reason="Debian's linux-source-6.1 is not installed")
def test_ftracetest(mounted, tmp_path):  # noqa: F811
    """Every case passes, or is in the table with its outcome."""
    subprocess.run(["tar", "-xf", SOURCE, "-C", tmp_path, SELFTESTS], check=True)
    m = mounted(ANY, smp=2)
    m.type("stress start 1")
    m.wait(lambda: "tasks on 2 CPUs" in m.text)
    if m.inside("true").returncode:
        pytest.skip("no mount namespace can be made here")
    said = subprocess.run([ROOT / "tools/inside", m.folder, "./ftracetest", "-l",
                           tmp_path / "logs"], cwd=tmp_path / SELFTESTS, text=True,
                          capture_output=True, check=False, timeout=1800).stdout
    found = {re.sub(" +", " ", case): outcome.lower()
             for case, outcome in re.findall(r"^\[\d+\] (.*?)\t\[(\w+)\]$", said, re.M)}
    assert len(found) > 100
    page = (ROOT / "tests" / "ftracetest.md").read_text()
    table = dict(re.findall(r"^\| (\S.*?) \| (fail|unsupported|unresolved) \| \S.* \|$", page,
                            re.M))
    assert {c: o for c, o in found.items() if o != "pass"} == table
    assert f"{len(found) - len(table)} of {len(found)} do" in page
