# SPDX-License-Identifier: MIT
"""The site table: true to the text, and checked on every path by which it could
become wrong: by mksites when it is built, by patchpath against the call graph,
by the kernel at boot against the bytes in memory."""

import re
import struct
import subprocess

import pytest
from conftest import ARCHES, FACTS, ROOT, built
from image import CROSS, FORMAT, INFO, SITE

HOST = ROOT / "build" / "host"
# Ports that have a front end whose sites the compiler makes as NOPs, and that one.
NOPS = {arch: next(name for name, site in INFO[arch]["sites"].items() if "nops" in site)
        for arch in ARCHES
        if any("nops" in site for site in INFO[arch]["sites"].values())}


def tool_for(arch: str, name: str, *args: str, sites: str | None = None
             ) -> subprocess.CompletedProcess:
    """mksites or patchpath with an architecture's arguments. The limit finds
    hangs: without a stripped copy objdump takes minutes for many functions."""
    return subprocess.run(
        [str(HOST / name), "--arch", arch, "--sites",
         sites or FORMAT[arch],
         "--objdump", CROSS[arch] + "objdump", *args], text=True,
        capture_output=True, timeout=300)


def tool(name: str, image, *args: str) -> subprocess.CompletedProcess:
    return tool_for(image.arch, name, *args)


def changed(image, tmp_path, addr: int, new: bytes):
    """A copy of the image with other bytes at an address."""
    data = bytearray(image.data)
    at = image.offset(addr)
    data[at:at + len(new)] = new
    elf = tmp_path / "changed.elf"
    elf.write_bytes(data)
    return elf


def entry(image, index: int) -> int:
    """Address of an entry of the site table."""
    return image.symbols["site_table"] + 4 * index


def test_table_is_the_disassembly(image):
    """A scan of this test's own finds exactly the table's sites."""
    found = set()
    site = SITE[image.arch]
    stub, nops = site.get("stub"), bytes.fromhex(site.get("nops", ""))
    for f in image.functions:
        if stub:
            found |= {addr for addr, mnemonic, target in f.transfers()
                      if target == image.symbols[stub]}
        elif image.read(f.addr, len(nops)) == nops:
            found.add(f.addr)
    assert found == {*image.sites, *image.kept}
    assert not set(image.sites) & set(image.kept)
    assert image.sites == sorted(image.sites) and image.kept == sorted(image.kept)


def test_sites_are_in_every_folder(image):
    """Most functions of each folder of the kernel's can be traced, the tracer's own too."""
    sites = {image.function_at(a).name for a in image.sites}
    for folder in "kernel", "tracer", f"arch/{image.arch}", f"boot/{image.arch}":
        objects = [str(p) for p in (image.path.parent / folder).rglob("*.c.o")
                   if not p.name.endswith(("_test.c.o", "testing.c.o"))]
        listing = subprocess.run([CROSS[image.arch] + "nm", *objects], text=True,
                                 capture_output=True, check=True).stdout
        functions = set(re.findall(r"^[0-9a-f]+ [tT] (\w+)$", listing, re.M))
        assert len(functions & sites) > len(functions) / 2, functions - sites


def callees(f) -> set[int]:
    """Where a function's own instructions lead, calls through pointers left out."""
    return {target for _, _, target in f.transfers() if target is not None}


def test_what_patches_text_cannot_be_switched(image):
    """By a closure of this test's own: from where the strategies store and CPUs synchronise, no
    function can be traced. The kernel's own list has them all."""
    switched = {image.function_at(a).addr for a in image.sites}
    stub = image.symbols["trace_stub"]
    ends = {image.symbols[name] for name in ("panic", "irq_enter", "irq_event", "irq_exit",
                                             "irq_nmi", "trap_fault") if name in image.symbols}
    todo = [image.symbols[name] for name in ("stop_hold", "stop_lead", "patch_trap",
                                             "arch_text_sync", "trace_entry_ring")]
    reached = set()
    while todo:
        f = image.function_at(todo.pop())
        if f.addr in reached | ends | {stub}:
            continue
        reached.add(f.addr)
        todo += callees(f)
    assert len(reached) > 20
    assert {image.function_at(a).name for a in reached & switched} == set()
    count, = image.u32(image.symbols["path_count"])
    path = {image.functions[i].addr for i in image.u32(image.symbols["path_symbol"], count)}
    assert {image.function_at(a).name for a in reached - path} == set()


def test_symbol_table(image):
    count, = image.u32(image.symbols["symbol_count"])
    offsets = image.u32(image.symbols["symbol_offset"], count)
    starts = [f.addr - image.symbols["_text"] for f in image.functions]
    assert list(offsets) == starts


def test_unwind_table_is_small(image):
    """At most a fifth of the text that it describes."""
    s = image.symbols
    count, = image.u32(s["unwind_count"])
    size = 4 * count + s["unwind_rows"] - s["unwind_index"]
    print(f"{image.arch}: {count} rows, {size} bytes")
    assert size <= (s["_etext"] - s["_text"]) / 5


def test_lock_table(image):
    """All of x86's lock prefixes in text, and nothing else."""
    found = [addr for f in image.functions for addr, mnemonic, _ in f.code
             if mnemonic == "lock"]
    count, = image.u32(image.symbols["lock_count"])
    offsets = image.u32(image.symbols["lock_table"], count)
    assert [image.symbols["_text"] + x for x in offsets] == found
    assert bool(found) == ("lock" in INFO[image.arch]["code"].get("prefixes", []))


@pytest.mark.parametrize("arch", [a for a in ARCHES if "section" in SITE[a]], indirect=True)
def test_the_compiler_record_must_be_there(arch, image, tmp_path):
    """The record is cut out of the image: every build compares it."""
    section = SITE[arch]["section"]
    less = tmp_path / "less.elf"
    subprocess.run([CROSS[image.arch] + "objcopy", "--remove-section", section,
                    str(image.path), str(less)], check=True)
    done = tool("mksites", image, str(less), "-o", str(tmp_path / "t.S"))
    assert done.returncode == 1
    assert f"no record of the compiler's: {section}" in done.stderr


@pytest.mark.parametrize("change, complaint", [
    (lambda lines: lines[1:], r"object: 1 of \d+ sites were not recorded"),
    (lambda lines: [*lines[1:], re.sub(r"(\d+)$", lambda m: str(int(m[1]) + 2), lines[0])],
     r"object: 1 of \d+ recorded addresses hold no site after the link")])
def test_the_objects_record_is_compared(image, tmp_path, change, complaint):
    """A record of the objects that lacks a site, or is off by two bytes, stops the build of any
    kernel, but where the linker relaxes and RECORD is not object."""
    record = tmp_path / "object.sites"
    lines = (image.path.parent / "object.sites").read_text().splitlines()
    record.write_text("\n".join(change(lines)) + "\n")
    done = tool("mksites", image, "--objects", str(record), str(image.path),
                "-o", str(tmp_path / "t.S"))
    if INFO[image.arch]["code"].get("relaxes"):
        assert done.returncode == 0, done.stderr
    else:
        assert done.returncode == 1 and re.search(complaint, done.stderr), done.stderr


def test_verify_sees_a_missing_site(image, tmp_path):
    """An entry of the table is changed: the table lacks one site, and has a false one."""
    word, = image.u32(entry(image, 3))
    elf = changed(image, tmp_path, entry(image, 3),
                  struct.pack(image.order + "I", word + 1))
    done = tool("mksites", image, "--verify", str(image.path), str(elf))
    assert done.returncode == 1
    name = image.function_at(image.sites[3]).name
    lines = done.stderr.splitlines()
    assert len(lines) == 2 and all(f"({name}" in x for x in lines)
    assert lines[0].endswith("site_table lacks it")
    assert lines[1].endswith("site_table must not have it")


def test_verify_sees_moved_text(image, tmp_path):
    """An instruction of another kind where the first link had a site."""
    elf = changed(image, tmp_path, image.sites[5],
                  bytes.fromhex(FACTS[image.arch]["moved"]))
    done = tool("mksites", image, "--verify", str(image.path), str(elf))
    assert done.returncode == 1
    assert image.function_at(image.sites[5]).name in done.stderr


def test_verify_sees_a_label_that_the_tables_tell_wrong(image, tmp_path):
    """Another distance, or another key, than the label's instruction and record have."""
    s = image.symbols
    label = s["_text"] + image.u32(s["jump_table"])[0]
    name = image.function_at(label).name
    for addr in s["jump_distance"] + 1, s["jump_key_number"]:
        elf = changed(image, tmp_path, addr, bytes([image.read(addr, 1)[0] ^ 1]))
        done = tool("mksites", image, "--verify", str(image.path), str(elf))
        assert done.returncode == 1
        line, = done.stderr.splitlines()
        assert f"({name}" in line and line.endswith("not as the tables say")


def test_label_of_other_bytes_is_seen(image, tmp_path):
    """One bit is wrong in a byte of the NOP that a label's record points to. Where that
    gives no instruction that the port may have, mksites says so before it comes to labels."""
    s = image.symbols
    label = s["_text"] + image.u32(s["jump_table"])[0]
    nop = next(x for x in map(bytes.fromhex, INFO[image.arch]["code"]["labels"])
               if image.read(label, len(x)) == x)
    said = ""
    for i, byte in enumerate(nop):
        elf = changed(image, tmp_path, label + i, bytes([byte ^ 1]))
        done = tool("mksites", image, "--verify", str(elf), str(elf))
        assert done.returncode == 1
        assert f"({image.function_at(label).name}" in done.stderr
        said += done.stderr
    assert "a jump label that is not compiled as machine.json says (labels)" in said


def test_verify_passes(image):
    done = tool("mksites", image, "--verify", str(image.path),
                str(image.path))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("arch", [a for a in ARCHES if "nops" in SITE[a]],
                         indirect=True)
def test_compiler_record_is_compared(arch, tmp_path):
    """A site that the compiler did not record is an error."""
    image = built(arch)
    section = re.search(SITE[arch]["section"] + r"\s+PROGBITS\s+\S+\s+"
                        r"([0-9a-f]+)", image.tool("readelf", "-SW"))
    at = int(section[1], 16)
    data = bytearray(image.data)
    data[at:at + 8] = data[at + 8:at + 16]
    elf = tmp_path / "changed.elf"
    elf.write_bytes(data)
    done = tool("mksites", image, str(elf), "-o", str(tmp_path / "t.S"))
    assert done.returncode == 1
    assert "recorded by the compiler" in done.stderr or \
        "did not record" in done.stderr


@pytest.mark.parametrize("name, said", [
    ("shellxfind", "in a file that exports it: a name of one word"),
    ("task_block", "a name that stands for another function, too, in a file that")])
def test_names(image, tmp_path, name, said):
    """A function's name that another has, too, or that is one word, is refused with its file."""
    data = image.data.replace(b"\0shell_find\0", b"\0" + name.encode() + b"\0")
    assert data != image.data
    (tmp_path / "named.elf").write_bytes(data)
    done = tool("mksites", image, str(tmp_path / "named.elf"), "-o", str(tmp_path / "t.S"))
    assert done.returncode == 1 and not (tmp_path / "t.S").exists()
    line, = done.stderr.splitlines()
    assert f"({name})" in line and re.search(said, line), line


@pytest.mark.parametrize("arch", NOPS)
def test_many_functions(arch, tmp_path):
    """More functions than 16 bits count. RISC-V's objdump is the slow one."""
    built(arch)  # mksites
    count, sites = 70_000, NOPS[arch]
    nops, loop = (", ".join(f"0x{byte:02x}" for byte in bytes.fromhex(code)) for code in
                  (INFO[arch]["sites"][sites]["nops"], FACTS[arch]["loop"]))
    section = INFO[arch]["sites"][sites].get("section")
    record = f'.pushsection {section}, "a"\n.dc.a {{0}}\n.popsection\n' if section else ""
    source, elf = tmp_path / "many.S", tmp_path / "many.elf"
    table = tmp_path / "tables.S"
    source.write_text(
        ".globl _text, _etext\n"
        ".section patch, \"a\"\n__start_patch_roots: .dc.a trace_entry\n"
        "__stop_patch_roots:\n__start_patch_indirect: __stop_patch_indirect:\n"
        ".text\n_text:\n" + "".join(
            f"{name}: .cfi_startproc\n.byte {nops}, {loop}\n.cfi_endproc\n"
            f".type {name}, @function\n.size {name}, . - {name}\n" + record.format(name)
            for name in [*map("f_{}".format, range(count)),
                         "trace_entry", "trace_stub", "trap_vectors"]) +
        "trampoline_end:\n_etext:\n")
    cross = CROSS[arch]
    subprocess.run([cross + "gcc", "-c", str(source),
                    "-o", str(tmp_path / "many.o")], check=True)
    subprocess.run([cross + "ld", "-e", "0", "-Ttext", "0x80200000",
                    str(tmp_path / "many.o"), "-o", str(elf)], check=True)
    done = tool_for(arch, "mksites", str(elf), "-o", str(table), sites=sites)
    assert (done.returncode, done.stderr) == (0, "")
    text = table.read_text()
    assert re.search(rf"^site_count:\n\t.4byte {count + 1}$", text, re.M)  # and the stub's
    assert re.search(r"^kept_off_count:\n\t.4byte 2$", text, re.M)


def test_patchpath_passes(image):
    done = tool("patchpath", image, str(image.path))
    assert (done.returncode, done.stderr) == (0, "")


def test_patchpath_fails_on_an_unannotated_call(image, tmp_path):
    """Without patch_indirect, the rendezvous' calls through pointers lead
    anywhere. Without roots there is nothing to prove. Both are errors."""
    start, stop = (image.symbols[f"__{x}_patch_indirect"]
                   for x in ("start", "stop"))
    elf = changed(image, tmp_path, start, bytes(stop - start))
    done = tool("patchpath", image, str(elf))
    assert done.returncode == 1
    assert "patchpath: indirect call that nobody annotated: " in done.stderr


def test_patchpath_fails_on_a_site_that_can_be_switched(image, tmp_path):
    """One kept site stands in the wrong table: the way to it is named. So it is when nothing
    turns it off."""
    s = image.symbols
    kept = next(a for a in image.kept if image.function_at(a).name == "patch_write_back")
    word = struct.pack(image.order + "I", kept - s["_text"])
    elf = changed(image, tmp_path, s["site_table"], word)
    done = tool("patchpath", image, str(elf))
    assert done.returncode == 1
    assert re.search(r"patchpath: site on the patching path: \w+ -> .*patch_write_back "
                     r"\(patch_write_back is a site\)", done.stderr), done.stderr
    at = s["kept_off_table"] + 4 * image.kept.index(kept)
    elf = changed(image, tmp_path, at, bytes(4))
    done = tool("patchpath", image, str(elf))
    assert done.returncode == 1
    assert re.search(r"that nothing turns off: .*\(patch_write_back is a site\)",
                     done.stderr), done.stderr


# Put over a site: instructions that are harmless, but that no port knows for a site.
STRANGE = {arch: bytes.fromhex(FACTS[arch]["strange"]) for arch in ARCHES}


@pytest.mark.parametrize("name", ["stress_leaf", "parse_u64"])
def test_corrupted_site_is_left_alone(image, name, tmp_path, guest):
    """The kernel says which site does not look as recorded, does not touch it,
    and everything else works."""
    f = image.by_name[name][0]
    site = next(s for s in image.sites if f.addr <= s < f.addr + f.size)
    elf = changed(image, tmp_path, site, STRANGE[image.arch])
    g = guest(image.arch, smp=2, elf=elf)
    assert re.search(r" 1 failed", g.boot_text), g.boot_text
    line = re.search(rf"^sites: failed {name}\+0x\S+: (.*)$", g.boot_text,
                     re.M)
    assert line and "expected" in line[1], g.boot_text
    found = STRANGE[image.arch].hex(" ")[:11]
    assert found in line[1]
    g.run("cd /sys/kernel/tracing")
    listed = g.run("cat available_filter_functions").split()
    assert len(listed) > 500 and name not in listed
    g.run("echo function > current_tracer")
    g.run("stress start 1")
    g.run("sleep 0.05")
    assert "none lost" in g.run("stress stop")
    g.run("echo 0 > tracing_on")
    called = re.findall(r": (\S+) <-", g.run("cat trace | tail -5000"))
    assert called and name not in called
    g.run("echo nop > current_tracer")
    assert g.poweroff() == 0
