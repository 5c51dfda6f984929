# SPDX-License-Identifier: MIT
"""The readers of device trees on the host, under the compiler's sanitizers: damaged trees, and
what the kernel gets of right ones. QEMU makes the trees."""

import json
import os
import re
import subprocess
import tomllib

import pytest
from conftest import ARCHES, ROOT
from lib import qemu

COPIES = 20000
# Ports whose firmware hands over a device tree.
WITH_TREE = [a for a in ARCHES
             if "boot/fdt.c" in (ROOT / "arch" / a / "port.mk").read_text()]


def build(name, folder, *more):
    """tests/fdt/NAME.c, built."""
    out = folder / name
    subprocess.run(["gcc", "-std=gnu2x", "-g", "-O1", "-w", "-I.", "-fsanitize=address,undefined",
                    "-fno-sanitize-recover", *more, f"tests/fdt/{name}.c", "-o", out], cwd=ROOT,
                   check=True)
    return out


@pytest.fixture(scope="module")
def fuzz(tmp_path_factory):
    """The reader alone, of any port's tree."""
    return build("fuzz", tmp_path_factory.mktemp("fdt"), f"-Iarch/{WITH_TREE[0]}")


def own_tree(info, smp, path):
    """What QEMU hands over."""
    args = [f"{a},dumpdtb={path}" if info["args"][i - 1] in ("-M", "-machine") else a
            for i, a in enumerate(info["args"])]
    subprocess.run([info["qemu"], *args, "-smp", str(smp), "-display", "none", "-m", "256M"],
                   check=False, capture_output=True)
    assert path.exists()


@pytest.mark.parametrize("smp", [1, 8])
@pytest.mark.parametrize("arch", WITH_TREE)
def test_damaged_trees(arch, smp, fuzz, tmp_path):
    """Each is read, or refused in one line. Nothing outside of it is read."""
    info = qemu.port.read(arch)
    tree = tmp_path / "tree.dtb"
    own_tree(info, smp, tree)
    done = subprocess.run([str(fuzz), str(tree), str(COPIES)], text=True,
                          capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    through, refused = map(int, re.match(r"(\d+) read, (\d+) refused",
                                         done.stdout).groups())
    assert through + refused == COPIES and min(through, refused) > COPIES / 100


def changed_tree(row, tree, words, copy):
    """A copy of the tree, with what the row changes in it."""
    text = subprocess.run(["dtc", "-q", "-O", "dts", tree], text=True, check=True,
                          capture_output=True).stdout
    reserve = "".join(f"/memreserve/ {x};\n" for x in row.get("reserve", ())).format(**words)
    subprocess.run(["dtc", "-q", "-O", "dtb", "-p", "4096", "-o", copy], text=True, check=True,
                   input=text.replace("/dts-v1/;\n", f"/dts-v1/;\n{reserve}"))
    for change in row.get("change", ()):
        subprocess.run(["fdtput", *change.replace("TREE", str(copy)).format(**words).split()],
                       check=True)
    data = bytearray(copy.read_bytes())
    for at, value in row.get("poke", {}).items():
        data[int(at):int(at) + 4] = value.to_bytes(4, "big")
    copy.write_bytes(data)
    return copy


BEGIN = """set confirm off
set startup-with-shell off
break tree_read
python
import json
def number(name):
    return int(gdb.parse_and_eval("boot_info." + name))
end
"""
RUN = """run {boot} {tree}
python
print("said", json.dumps([
    bool(gdb.parse_and_eval("whole")), gdb.parse_and_eval("why").string().strip(),
    [[number(f"mem[{{i}}].{{end}}") for end in ("start", "end")]
     for i in range(number("nr_mem"))], {{name: number(name) for name in {names}}}]))
end
"""


def read_trees(program, runs, folder):
    """Of each (boot, tree, names): was it read whole, why not, the memory, and what boot_info has
    under these names."""
    script = folder / "script.gdb"
    script.write_text(BEGIN + "".join(RUN.format(boot=boot, tree=tree, names=names)
                                      for boot, tree, names in runs))
    done = subprocess.run(["gdb-multiarch", "-nx", "-batch", "-x", script, program], text=True,
                          capture_output=True,
                          env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
    said = [json.loads(x) for x in re.findall("^said (.*)", done.stdout, re.M)]
    assert len(said) == len(runs), done.stdout[-1000:] + done.stderr
    return said


def words_of(tree):
    """What stands in braces in trees.toml."""
    nodes = subprocess.run(["fdtget", "-l", tree, "/"], text=True, check=True,
                           capture_output=True).stdout.split()
    memory = next(x for x in nodes if x.startswith("memory@"))
    ram = int(memory.partition("@")[2], 16)
    return {"memory": f"/{memory}", "ram": ram, "secure": ram + 0x4000000,
            "secure2": ram + 0x6000000}


def number_of(text, words):
    """Of a sum in trees.toml."""
    return sum(int(x, 0) for x in str(text).format(**words).replace("- ", "+ -").split(" + "))


@pytest.mark.parametrize("arch", WITH_TREE)
def test_each_value(arch, tmp_path):
    """The kernel gets what a tree says, and a tree that lacks something has a refusal of its
    own."""
    program = build("firmware", tmp_path, f"-Iarch/{arch}", "-Dregister=",
                    f'-DFIRMWARE="boot/{arch}/firmware.c"')
    rows = [row for place in ("tests/fdt/trees.toml", f"boot/{arch}/said.toml")
            for row in tomllib.loads((ROOT / place).read_text())["tree"]]
    runs = []
    for i, row in enumerate(rows):
        assert set(row) <= {"why", "smp", "boot", "change", "poke", "reserve", "gets", "has",
                            "lacks", "refused"}
        tree = tmp_path / f"of-{row.get('smp', 3)}.dtb"
        if not tree.exists():
            own_tree(qemu.port.read(arch), row.get("smp", 3), tree)
        row["words"] = words_of(tree)
        copy = changed_tree(row, tree, row["words"], tmp_path / f"{i}.dtb")
        runs.append((row.get("boot", 0), copy, list(row.get("gets", {}))))
    for row, (whole, why, memory, said) in zip(rows, read_trees(program, runs, tmp_path)):
        refused = f"boot: (device tree: )?{row['refused']}" if "refused" in row else ""
        assert re.fullmatch(refused, why) and whole == (not refused), f"{row['why']}: {why}"
        gets = {k: number_of(v, row["words"]) for k, v in row.get("gets", {}).items()}
        assert said == gets, row["why"]
        for wanted in ("has", "lacks"):
            for page in (number_of(x, row["words"]) for x in row.get(wanted, ())):
                found = any(start <= page < end for start, end in memory)
                assert found == (wanted == "has"), f"{row['why']}: {page:#x}"
