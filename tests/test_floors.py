# SPDX-License-Identifier: MIT
"""The tracer's floors: calls and includes go down, as tracer/README.md lists them."""

import re
import subprocess

import pytest
from conftest import ARCHES, NEWCOMERS, ROOT, Kernel, built, make, one_of
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


# ---- rooms that are left out ----

OPTIONAL = sorted(name for name, (floor, _) in ROOMS.items() if floor in (6, 8))


def kernel_without(arch, rooms):
    """The port's kernel without these rooms."""
    return built(Kernel(f"{arch}-without-{'-'.join(sorted(rooms))}",
                        f"WITHOUT={' '.join(rooms)}"))


def lines_of(image) -> int:
    """Of the files of which the kernel is made, tests left out, with the headers of all."""
    objects = set(re.findall(r"^LOAD (\S+\.[cS]\.o)$",
                             image.path.with_suffix(".map").read_text(), re.M))
    sources = {name for o in objects for name in
               re.findall(r"[\w./]+\.[chS]\b", (ROOT / o).with_suffix(".d").read_text())}
    return sum((ROOT / name).read_text().count("\n") for name in sources
               if (ROOT / name).is_relative_to(ROOT) and (ROOT / name).exists()
               and not re.search(r"_test\.c$|/test/|/testing\.|conform|^/", name))


@pytest.mark.parametrize("rooms", [OPTIONAL, *([room] for room in one_of(OPTIONAL))],
                         ids=lambda rooms: "all" if rooms == OPTIONAL else rooms[0])
def test_left_out(arch, rooms, guest, run_tool):
    """The kernel links, passes the tests that remain, and traces functions."""
    image = kernel_without(arch, rooms)
    done = run_tool("--arch", arch, "--smp", "2", "--elf", str(image.path))
    assert done.returncode == 0, done.stdout
    assert re.search(r"PASS: \d{3} passed, 0 failed", done.stdout)
    g = guest(arch, smp=2, elf=image.path)
    assert g.run("trace start -p function -l cmd_pwd; pwd; trace stop").strip() == "/"
    assert sum("cmd_pwd <-" in line for line in g.lines("trace show")) == 1
    assert g.run("trace reset") == ""
    names = g.run("ls /sys/kernel/tracing").split()
    assert ("set_graph_function" in names) != ("graph" in rooms)
    assert ("events/" in names) != ("events" in rooms)
    assert g.poweroff() == 0


def test_lines_of_the_least_kernel():
    """tracer/README.md says how many lines the least kernel has."""
    said = re.search(r"least kernel has ([\d,]+) lines", (ROOT / floors.TABLE).read_text())
    least = min(lines_of(kernel_without(arch, OPTIONAL)) for arch in ARCHES)
    most = max(lines_of(kernel_without(arch, OPTIONAL)) for arch in ARCHES)
    assert least * 0.95 < int(said[1].replace(",", "")) < most * 1.05, (least, most)


@pytest.mark.parametrize("variables, words", [
    (["WITHOUT=ring"], ["WITHOUT=ring is unknown", "graph", "latency"]),
    (["RECORD=runtime", "WITHOUT=record"], ["RECORD=runtime needs", "WITHOUT"])])
def test_wrong_choice(variables, words):
    done = make(*variables, "all", check=False)
    assert done.returncode != 0
    for word in words:
        assert word in done.stderr


def test_needs_of_tests(tmp_path):
    """A test that needs a client which nothing registers would never run."""
    (tmp_path / "one_test.c").write_text('KNEED_CLIENT(t, "graph");\nKNEED_CLIENT(t, "grahp");\n')
    (tmp_path / "graph.c").write_text("TRACE_CLIENT(graph, .needs = needs);\n")
    assert floors.unknown_needs(sorted(tmp_path.iterdir())) == ["grahp"]


# ---- the stories of tracer/CALL.md ----

STORY = re.compile(r"^### (.*): (\d+) files?, (\d+) returns?, (\d+) pointers?\n\n"
                   r"((?:\d+\. .*\n)+)", re.M)
STEP = re.compile(r"^\d+\. (then )?`([\w./*]+)`: (.*)$", re.M)
# Files, returns into a file that was left, pointers: as many as a reader can be asked to follow.
AT_MOST = [(16, 6, 5), (16, 8, 6), (15, 8, 6), (16, 8, 6)]
STORIES = STORY.findall((ROOT / "tracer/CALL.md").read_text())


def body_of(path, name: str) -> str | None:
    """A function's text in a file, comments left out. A macro's function: the file's."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
    if "##" in name:
        return text if f"{name} params" in text else None
    if path.suffix == ".S":
        return text if re.search(rf"\({name}\)", text) else None
    found = re.search(rf"^(?!\s|#)[^;{{}}#]*\b{name}\([^;{{}}]*\)\s*\n\{{(.*?)^\}}", text,
                      re.M | re.S)
    return found[1] if found else None


def test_there_are_four_stories():
    assert len(STORIES) == len(AT_MOST)


@pytest.mark.parametrize("number", range(len(STORIES)))
def test_story(number):
    """Each function stands in its file, and one of those before it calls it, or its address is
    taken where it is registered."""
    _, *said, steps = STORIES[number]
    told: list[str] = []
    files: list[str] = []
    returns = pointers = 0
    for then, pattern, names in STEP.findall(steps):
        paths = sorted(ROOT.glob(pattern))
        assert len(paths) == (len(ARCHES + NEWCOMERS) if "*" in pattern else 1), pattern
        returns += pattern in files
        files.append(pattern)
        begins = not told or bool(then)
        for star, name in re.findall(r"(\*?)`([\w#]+)`", names):
            bodies = [body_of(path, name) for path in paths]
            assert None not in bodies, (pattern, name)
            if star:
                taken = "".join(path.read_text() for path in ROOT.glob("tracer/*/*.[ch]"))
                assert re.search(rf"[=,(?:]\s*{name}\b(?!\()", taken), f"nothing points to {name}()"
                pointers += 1
            elif not begins and "##" not in name:
                assert any(re.search(rf"\b{name}\b", body) for body in told), \
                    f"nothing before {name}() calls it"
            begins = False
            told += bodies
    assert (len(set(files)), returns, pointers) == tuple(map(int, said))
    assert all(a <= b for a, b in zip((len(set(files)), returns, pointers), AT_MOST[number]))
