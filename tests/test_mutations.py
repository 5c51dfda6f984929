# SPDX-License-Identifier: MIT
"""make mutations: a few of the porting mistakes that are planted, others for each
commit. The whole campaign is run by hand."""

import re
import subprocess
import tomllib
import zlib

from conftest import ARCHES, COMMIT, ROOT

COUNT = 6


def test_some_are_caught():
    """Each by the check that its file names. Mistakes that show only where an
    interrupt comes at the right instruction are left to the campaign."""
    names = sorted({m["name"]
                    for path in [*(ROOT / "arch" / arch / "mutations.toml" for arch in ARCHES),
                                 *ROOT.glob("tests/mutations/*.toml")]
                    for m in tomllib.loads(path.read_text()).get("mutation", [])
                    if m["by"] in ("build", "arch")
                    and not re.search("-loses-|^idle-", m["name"])})
    names.sort(key=lambda name: zlib.crc32(f"{COMMIT} {name}".encode()))
    done = subprocess.run([str(ROOT / "tools" / "mutations"), *names[:COUNT]],
                          text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_bad_input():
    """One line that lists the known names."""
    done = subprocess.run([str(ROOT / "tools" / "mutations"), "no-such-mistake"],
                          text=True, capture_output=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "no-such-mistake is unknown; known: " in done.stderr
