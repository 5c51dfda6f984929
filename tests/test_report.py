# SPDX-License-Identifier: MIT
"""make report: the page agrees with its inputs, nothing stands on anything else, and it
can be read in dark and in light, as a browser draws it."""

import json
import re
import shutil
import struct
import subprocess
import sys
import zlib
from html.parser import HTMLParser

import pytest
from conftest import ARCHES, ROOT, built, make
from lib import port

# All in one of xdist's workers: the lab and the figures are made once.
pytestmark = pytest.mark.xdist_group("report")
REPORT = ROOT / "tools" / "report" / "report.py"
# Some port that knows the figures of Linux.
PORT = next(arch for arch in ARCHES if "linux" in port.read(arch))
FEATURES = [
    {"arch": PORT, "sites": "a-front-end", "endian": "little", "record": "link",
     "state": "made", "patched": 677, "nop": "nop <4>", "tests_passed": 391},
    {"arch": PORT, "sites": "a-front-end", "endian": "big", "record": "link",
     "state": "refused", "reason": "it has no big-endian kernel"}]
JUDGED = [{"architecture": PORT, "file": "ftrace.c", "verdict": "unsafe",
           "first boundary that breaks": "trap when held at +4"}]


class Page(HTMLParser):
    """The elements of a page: tag, attributes, classes, path of enclosing elements, text."""

    def __init__(self, text: str):
        super().__init__()
        self.open, self.elements = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        element = {"tag": tag, "classes": (dict(attrs).get("class") or "").split(),
                   "in": [*self.open], "text": "", **dict(attrs)}
        self.elements.append(element)
        if tag not in ("meta", "br"):
            self.open.append(element)

    def handle_endtag(self, tag):
        assert self.open.pop()["tag"] == tag

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data

    def all(self, name: str, inside: dict | None = None) -> list[dict]:
        """Elements of a class, or with a tag's name."""
        return [e for e in self.elements if (name in e["classes"] or name == e["tag"])
                and (inside is None or any(e2 is inside for e2 in e["in"]))]


def place(element: dict) -> tuple[float, float]:
    """Where it begins and ends, in percent."""
    left, width = (float(re.search(rf"{key}:\s+([\d.]+)%", element["style"])[1])
                   for key in ("left", "width"))
    return left, left + width


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """The other commands' results, of one port, of the lab, schemes that hold and that
    break."""
    folder = tmp_path_factory.mktemp("inputs")
    built(PORT)
    make("build/host/extract")
    (folder / PORT).mkdir()
    for command in (["lab", "--arch", PORT, "--output", folder / PORT, "--schemes", "*o*"],
                    ["bench", PORT, "--output", folder / "bench.json"]):
        subprocess.run([ROOT / "tools" / command[0], *command[1:]], check=True,
                       capture_output=True, timeout=600)
    (folder / "features.json").write_text(json.dumps({"features": FEATURES}))
    (folder / "linux.json").write_text(json.dumps({"linux": JUDGED}))
    return folder


def report(inputs, out, *args):
    """Make a report."""
    return subprocess.run([sys.executable, REPORT, PORT, "--input", inputs, "-o", out, *args],
                          text=True, capture_output=True, check=False, timeout=300)


@pytest.fixture(scope="module")
def html(inputs):
    """The report."""
    done = report(inputs, inputs / "report.html")
    assert done.returncode == 0, done.stderr
    return inputs / "report.html"


@pytest.fixture(scope="module")
def page(html):
    """The report, read."""
    text = html.read_text()
    assert not re.search(r"<script|<link|<img|https?:|url\(", text)
    found = Page(text)
    assert not found.open
    return found


def test_lab(page, inputs):
    """Each scheme's boxes, and red exactly where the lab says that harm was done."""
    schemes = json.loads((inputs / PORT / "lab.json").read_text())["schemes"]
    table, = (e for e in page.all("lab") if e["data-arch"] == PORT)
    rows = page.all("tr", table)[1:]
    assert len(rows) == len(schemes) > 20
    assert {s["claim"] for s in schemes} == {"safe", "unsafe"}
    harms = looked_at = 0
    for row, scheme in zip(rows, schemes):
        cells = [e["text"] for e in page.all("td", row)]
        assert cells[2] == scheme["transition"].replace("->", " → ")
        assert cells[5] == scheme["verdict"]
        boxes = page.all("box", row)
        between = any(f["between"] for f in scheme["findings"])
        boxes, others = (boxes[:-1], boxes[-1:]) if between else (boxes, [])
        assert all("bad" in b["classes"] for b in others)
        harmed = {f"held at {at:+d}:" for f in scheme["findings"] for at in f["held"]}
        assert {b["title"].split(":")[0] + ":" for b in boxes if "bad" in b["classes"]} == harmed
        harms += len(harmed)
        first = scheme["forms"][0]
        if first["insns"]:
            texts = [b["text"].replace(" ", "\t", 1) for b in boxes if "own" not in b["classes"]]
            assert len(texts) == sum(n > 0 for n in first["insns"])
            assert len(boxes) == len(texts) + 4 <= scheme["boundaries"]
            for text in texts:
                assert text.replace("\t", " ") in " ".join(first["text"]).replace("\t", " ")
            looked_at += len(texts)
    assert harms > 0 and looked_at > 20


def test_figures(page, inputs):
    """Bars are as long as the figures say. Linux's stands beside ours where it is known."""
    figures = json.loads((inputs / "bench.json").read_text())["bench"]
    groups = page.all("figure")
    assert len(groups) == len(figures) > 10
    linux = port.read(PORT)["linux"]
    assert {*linux} & {figure["name"] for figure in figures}
    for group, figure in zip(groups, figures):
        values = [float(e["text"]) for e in page.all("value", group)]
        widths = [float(re.search(r"[\d.]+", e["style"])[0]) for e in page.all("i", group)]
        assert values == [figure["value"], *[linux[n] for n in linux if n == figure["name"]]]
        most = max(*values, figure["limit"] or 0)
        assert widths == [pytest.approx(100 * v / most, abs=0.01) for v in values]
        limits = [float(re.search(r"[\d.]+", e["style"])[0]) for e in page.all("b", group)]
        assert limits == [pytest.approx(100 * figure["limit"] / most, abs=0.01)
                          for _ in range(figure["limit"] is not None)]


def test_boot(page):
    """The first task starts three CPUs. No span stands on another of its depth, and each
    frame stands on one that is as wide at least."""
    lanes = page.all("lane")
    spans = [page.all("span", lane) for lane in lanes]
    init, = ([e for e in lane if "title" in e] for lane in spans if lane[0]["text"] == "init")
    ups = [place(e) for e in init if e["title"].startswith("cpu_up:")]
    others, = (place(e) for e in init if e["title"].startswith("cpu_start_others:"))
    assert len(ups) == 3 and all(others[0] <= a < b <= others[1] + 0.01 for a, b in ups)

    def check(elements: list[dict], depth) -> dict:
        levels = {}
        for e in elements:
            levels.setdefault(depth(e), []).append(place(e))
        for level in levels.values():
            level.sort()
            assert all(a[1] <= b[0] + 0.01 for a, b in zip(level, level[1:]))
            assert 0 <= level[0][0] and level[-1][1] <= 100.01
        return levels

    for lane in spans:
        check([e for e in lane if "title" in e], lambda e: "inner" in e["classes"])
    levels = check(page.all("frame"),
                   lambda e: int(re.search(r"bottom: (\d+)px", e["style"])[1]) // 18)
    assert levels[0] == [(0, 100)] and len(levels) > 5
    for depth in range(1, len(levels)):
        assert all(any(under[0] - 0.01 <= f[0] and f[1] <= under[1] + 0.01
                       for under in levels[depth - 1]) for f in levels[depth])


def test_features(page):
    """A row for each kernel, and why there is none, and text that looks like HTML stays text."""
    table, = page.all("features")
    rows = [[e["text"].strip() for e in page.all("td", row)] for row in page.all("tr", table)[1:]]
    assert rows == [[PORT, "a-front-end", "little", "link", "677", "nop <4>", "391", ""],
                    [PORT, "a-front-end", "big", "link", "", "", "",
                     "refused: it has no big-endian kernel"]]


def test_verdicts_on_linux(page):
    """The table of make lab-linux, with its columns as heads."""
    table, = page.all("judged")
    assert [[e["text"].strip() for e in page.all(tag, table)] for tag in ("th", "td")] == [
        [*JUDGED[0]], [*JUDGED[0].values()]]


def test_contrast(html):
    """Text can be read on its ground, 4.5 to 1 at least (WCAG 2, AA), in both themes."""
    text = html.read_text()
    light, dark = (dict(re.findall(r"--([\w-]+): #(\w{6})", part)) for part in
                   text.split("@media (prefers-color-scheme: dark)"))
    assert light.keys() == dark.keys()

    def luminance(colour: str) -> float:
        parts = [int(colour[i:i + 2], 16) / 255 for i in (0, 2, 4)]
        parts = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    for theme in (light, dark):
        for ink, ground in (("ink", "paper"), ("soft", "paper"), ("good-ink", "good"),
                            ("bad-ink", "bad"), ("frame-ink", "frame-a"),
                            ("frame-ink", "frame-b")):
            a, b = sorted((luminance(theme[ink]), luminance(theme[ground])))
            assert (b + 0.05) / (a + 0.05) >= 4.5, (ink, ground)


def pixels(path) -> tuple[int, int, bytes]:
    """A PNG's width, height, and its lines as they are stored, each behind its filter."""
    data = path.read_bytes()
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    assert depth == 8 and kind in (2, 6)
    at, packed = 8, b""
    while at < len(data):
        length, = struct.unpack(">I", data[at:at + 4])
        if data[at + 4:at + 8] == b"IDAT":
            packed += data[at + 8:at + 8 + length]
        at += 12 + length
    return width, height, zlib.decompress(packed)


# Which elements stand on others, and whether the page is wider than its window.
OVERLAPS = """<script>
const found = [];
function check(elements) {
	const r = [...elements].map(e => e.getBoundingClientRect());
	for (let i = 0; i < r.length; i++)
		for (let j = i + 1; j < r.length; j++)
			if (Math.min(r[i].right, r[j].right) - Math.max(r[i].left, r[j].left) > 1 &&
			    Math.min(r[i].bottom, r[j].bottom) - Math.max(r[i].top, r[j].top) > 1)
				found.push(elements[i].outerHTML + ' on ' + elements[j].outerHTML);
}
for (const row of document.querySelectorAll('.boxes, .lane > div, .flames, tr, body'))
	check(row.children);
if (document.documentElement.scrollWidth > innerWidth)
	found.push('wider than the window');
document.title = 'overlaps: ' + found.length + ' ' + found.slice(0, 3).join('; ');
</script>"""


def test_in_a_browser(html, tmp_path):
    """As Chromium draws it: on wide and narrow windows nothing stands on anything else, and
    neither theme is empty."""
    def chromium(*args):
        return subprocess.run(
            ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu",
             f"--user-data-dir={tmp_path / 'profile'}", *map(str, args)],
            text=True, capture_output=True, check=True, timeout=120).stdout

    checked = tmp_path / "checked.html"
    checked.write_text(html.read_text().replace("</body>", OVERLAPS + "</body>"))
    for width in (1280, 500):
        dom = chromium(f"--window-size={width},900", "--dump-dom", f"file://{checked}")
        assert re.search(r"<title>(.*?)</title>", dom, re.S)[1].strip() == "overlaps: 0"
    first = {}
    for theme, args in (("light", ()), ("dark", ("--blink-settings=preferredColorScheme=0",))):
        shot = tmp_path / f"{theme}.png"
        chromium("--window-size=1280,3000", "--hide-scrollbars", f"--screenshot={shot}", *args,
                 f"file://{html}")
        width, height, lines = pixels(shot)
        step = len(lines) // height
        assert (width, height) == (1280, 3000)
        # A line of one colour is stored as zeroes behind its first pixel.
        drawn = sum(any(lines[i * step + 5:(i + 1) * step]) for i in range(height))
        assert drawn > 1500
        first[theme] = lines[1]  # the paper's red, at the top left
    assert first["light"] > 200 and first["dark"] < 60


@pytest.mark.parametrize("spoil, said", [
    (lambda d: (d / PORT / "lab.json").unlink(), rf"lab.json: No such .*make lab ARCH={PORT}"),
    (lambda d: (d / "bench.json").write_text("{"), r"bench.json: not what make bench writes"),
    (lambda d: (d / "features.json").write_text("[]"), r"features.json: not what make features"),
    (lambda d: (d / "linux.json").unlink(), r"linux.json: No such .*make lab-linux"),
    (lambda d: (d / PORT / "lab.json").write_text('{"schemes": [], "summary": ""}'),
     rf"lab.json: schemes is empty: make lab ARCH={PORT} has not come to its end"),
    (lambda d: (d / "report.html").mkdir(), r"report.html: Is a directory")])
def test_bad_input(inputs, tmp_path, spoil, said):
    """One line that names the file and the command, status 2, and no report."""
    copied = shutil.copytree(inputs, tmp_path / "in")
    (copied / "report.html").unlink(missing_ok=True)
    spoil(copied)
    done = report(copied, copied / "report.html")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert re.search(said, done.stderr)
    assert not (copied / "report.html").is_file()


def test_qemu_refuses(inputs, tmp_path, refusing):
    """One line, in QEMU's own words."""
    done = report(inputs, tmp_path / "report.html")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert "QEMU refused its arguments: -nosuchopt: invalid option; no kernel ran" in done.stderr
