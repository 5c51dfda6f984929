# SPDX-License-Identifier: MIT
"""The tracer's floors: calls and includes go down, as tracer/README.md lists them."""

import subprocess

import pytest
from conftest import ROOT
from lib import floors

ROOMS = floors.read_floors((ROOT / floors.TABLE).read_text())


def test_each_room_has_a_floor():
    rooms = {p.name for p in (ROOT / "tracer").iterdir() if p.is_dir()}
    assert rooms == ROOMS.keys()
    for floor, below in ROOMS.values():
        assert below <= set(range(floor))


def test_calls_go_down(image):
    """By the symbols of the port's objects."""
    assert floors.check_floors() == []


@pytest.mark.parametrize("user, used, wrong", [
    ("core/tracer", "graph/graph", True), ("graph/graph", "core/tracer", False),
    ("graph/graph", "latency/latency", True), ("ring/ring", "patch/patch", True),
    ("ring/ring", "ring/ring_more", False)])
def test_a_call_is_seen(tmp_path, user, used, wrong):
    """Also one whose prototype is written by hand, where an include would be seen."""
    objects = []
    for unit, code in (user, "void far_away(void); void from_here(void) { far_away(); }"), \
                      (used, "void far_away(void) { }"):
        path = tmp_path / "tracer" / (unit + ".c")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
        objects.append(path.with_suffix(".c.o"))
        subprocess.run(["gcc", "-c", path, "-o", objects[-1]], check=True)
    assert floors.calls(objects) == {(user, used)}
    assert floors.goes_up(ROOMS, user, used) == wrong
