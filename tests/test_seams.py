# SPDX-License-Identifier: MIT
"""Seams: the tracer's clients follow one another at each moment, a part of the pairs for each
commit. All of them, hours: tools/seams --arch ARCH."""

import re
import subprocess

import pytest
from conftest import ROOT, one_of

PARTS = 200


def seams(arch, *args):
    """tools/seams's status, and its output."""
    done = subprocess.run([str(ROOT / "tools" / "seams"), "--arch", arch, *args], text=True,
                          capture_output=True)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("part", one_of(list(range(PARTS))))
def test_the_machine_is_a_fresh_one(arch, part):
    """After each case of the part."""
    status, text = seams(arch, "--part", f"{part}/{PARTS}", "--timeout", "600")
    assert status == 0, text
    assert int(re.search(r": (\d+) cases, 0 wrong", text)[1]) > 150
