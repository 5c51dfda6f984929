# SPDX-License-Identifier: MIT
"""The guest's stack walk against the truth, at every instruction.

QEMU's gdb server steps a task instruction by instruction, interrupts included. The
true stack of calls is kept here, from the disassembly alone: a call pushes, a
return pops, a trap pushes the interrupted place. At each instruction boundary the
kernel's own walker (kernel/image/unwind.c, compiled for the host by tests/unwind) walks
from the guest's registers, stack and table, and must find exactly that."""

import collections
import ctypes
import re
import struct
import subprocess

from conftest import FACTS, ROOT, built
from gdbstub import Ended, Stub
from image import INFO, name_among

UNWIND_END, UNWIND_LOST = 1, 2
STACK_SIZE = 0x7000
INTERRUPT_EVERY = 4000  # steps

# Commands whose work is stepped, a boot each: switches, locks, control files, what
# function_graph's trampolines do to every call, and, with an option off, C code. (malta
# cuts a command line at 255 bytes, other parameters included.) The test gives way to
# another task however slow the host is. A sleep may be over too soon.
LINES = ["test task.join; ps; ls /proc; cpus; help | wc; repeat 2 pwd; "
         "cat /proc/interrupts | grep -c a; test s[ty][rm]*; test param*; history",
         "cd /sys/kernel/tracing; echo a > trace_marker; cat trace | tail -1; "
         "trace stat; echo wake_from > set_ftrace_filter; echo > set_ftrace_filter; "
         "echo function_graph > current_tracer; uptime",
         "cd /sys/kernel/tracing; echo 0 > options/funcgraph-irqs; "
         "echo function_graph > current_tracer; pwd"]


class Walker:
    """The kernel's walker on the host."""

    def __init__(self, image, folder):
        library = folder / f"walker-{image.arch}.so"
        options = [f"-DWALKER_CFA={INFO[image.arch]['code'].get('cfa', 0)}",
                   *["-DWALKER_32"] * (image.bits == 32), *["-DWALKER_BIG"] * (image.order == ">")]
        subprocess.run(["gcc", "-std=gnu2x", "-shared", "-fPIC", "-O1", "-w",
                        "-I.", f"-Iarch/{image.arch}", *options,
                        "tests/unwind/walker.c", "-o", library],
                       cwd=ROOT, check=True)
        self.lib = ctypes.CDLL(str(library))
        s = image.symbols
        addresses = [s["_text"], s["_etext"], s["_data"], s["_end"],
                     s["trace_return"], STACK_SIZE]
        count, = image.u32(s["unwind_count"])
        index = image.u32(s["unwind_index"], (s["unwind_rows"] - s["unwind_index"]) // 4)
        rules = struct.iter_unpack(image.order + "hhh4B", image.read(s["unwind_rules"], 10 * 256))
        tables = [struct.pack(f"<{len(index)}I", *index),
                  struct.pack(f"<{count}I", *image.u32(s["unwind_rows"], count)),
                  b"".join(struct.pack("<hhh4B", *rule) for rule in rules)]
        self.keep = [ctypes.create_string_buffer(t, len(t)) for t in tables]
        self.lib.walker_image((ctypes.c_uint64 * 6)(*addresses), *self.keep)
        self.lib.walker_frame((ctypes.c_int * 4)(*frame_offsets(image)))
        self.pcs = (ctypes.c_uint64 * 64)()

    def walk(self, regs, stack, memory, returns) -> list[int]:
        """The addresses that the walk finds, innermost first."""
        flat = [x for pair in returns for x in pair]
        n = self.lib.walk((ctypes.c_uint64 * 4)(*regs), ctypes.c_uint64(stack),
                          memory, len(returns),
                          (ctypes.c_uint64 * max(1, len(flat)))(*flat),
                          self.pcs, 64)
        return list(self.pcs[:n])

    def where(self, pc: int) -> int:
        """The table's row of the return address at pc."""
        return self.lib.where_at(ctypes.c_uint64(pc))


def by_gdb(image, *expressions: str) -> list[int]:
    """gdb's answers, from the image's debug information."""
    commands = [word for x in expressions for word in ("-ex", f"p (int)({x})")]
    done = subprocess.run(["gdb-multiarch", "-batch", "-ex",
                           "set $frame = (struct trap_frame *)0", *commands,
                           str(image.path)], check=True, text=True,
                          capture_output=True)
    return [int(v) for v in re.findall(r"^\$\d+ = (-?\d+)$", done.stdout, re.M)]


def frame_offsets(image) -> list[int]:
    """Of pc, sp, link and alt in a trap frame. -1: the machine has no such register."""
    places = [place.partition(" + ")[0] for place in INFO[image.arch]["debugger"]["trap"]]
    return by_gdb(image, *(f"&({place})" for place in places), *["-1"] * (4 - len(places)))


def offsets(image) -> dict[str, int]:
    """Where fields of the kernel's structs stand, by its debug information."""
    fields = ["task::name", "task::nr_returns", "task::returns", "task::stack",
              "task_return::cfa", "task_return::ret"]
    values = by_gdb(image, *("&((struct {} *)0)->{}".format(*field.split("::"))
                             for field in fields), "sizeof(struct task_return)")
    return dict(zip([*fields, "task_return"], values, strict=True))


class Stepper:
    """One task, stepped, with its true stack."""

    def __init__(self, stub: Stub, image, walker: Walker):
        self.stub, self.image, self.walker = stub, image, walker
        self.word = image.bits // 8
        self.facts, code = FACTS[image.arch], INFO[image.arch]["code"]
        self.calls = set(code["calls"])
        self.may_return = name_among(image.arch, "jumps", "branches", "stops")
        self.leads_on = name_among(image.arch, "calls", "jumps", "branches")
        self.cfa = code.get("cfa", 0)
        self.order = "big" if image.order == ">" else "little"
        self.delay_slots = code.get("delay_slots", False)
        self.call_pushes = "link" not in code
        self.at = offsets(image)
        self.code = {}
        for f in image.functions:
            ends = [*[c[0] for c in f.code[1:]], f.addr + f.size]
            for (addr, mnemonic, _), end in zip(f.code, ends, strict=True):
                self.code[addr] = (mnemonic, end, f.name)
        # No walk can begin where a trap begins.
        entries = [f for f in image.functions if f.name in ("trap_entry", "trap_vectors") or
                   walker.where(f.addr) == UNWIND_LOST]
        self.entries = {f.name for f in entries}
        self.traps = {f.addr for f in entries}
        for f in image.by_name.get("trap_vectors", []):
            self.traps |= set(range(f.addr, f.addr + f.size))
        self.sites = {*image.sites, *image.kept}
        self.true: list[int] = []
        self.slot = None     # the branch whose delay slot is next
        self.seen = collections.Counter()
        self.functions: set[str] = set()
        self.places: set[int] = set()  # instructions that were compared
        self.compared = self.lost = self.switches = self.interrupts = 0
        self.taken = 0       # comparisons with a return taken
        self.task = self.stack = 0
        self.beside = None   # words that look() has read beside the registers

    # ---- the guest ----

    def ordered(self, data: bytes) -> list[int]:
        """pc, sp, link, alt."""
        size, places = self.facts["gdb_registers"]
        regs = [0 if i is None else
                int.from_bytes(data[int(i * size):int((i + 1) * size)], self.order)
                for i in places]
        regs[1] += self.cfa
        return regs

    def regs(self) -> list[int]:
        """pc, sp, link, alt."""
        self.beside = None
        return self.ordered(self.stub.registers())

    def look(self, sp: int, n: int) -> list[int]:
        """The same, and the stack from below sp on, and n taken returns, in one go."""
        low = max(self.stack, sp - 256)
        top = max(self.stack + STACK_SIZE, low)
        data, stack, count, entries = self.stub.look(
            (low, top - low), (self.task + self.at["task::nr_returns"], 4),
            (self.task + self.at["task::returns"], n * self.at["task_return"]))
        self.beside = low, stack, int.from_bytes(count, self.order), entries
        return self.ordered(data)

    def number(self, addr: int, size: int) -> int:
        """A number in the guest's memory."""
        return int.from_bytes(self.stub.memory(addr, size), self.order)

    def returns(self, n: int, data: bytes) -> list[tuple[int, int]]:
        """(cfa, return address) of the task's n taken returns."""
        size, found = self.at["task_return"], []
        for i in range(n):
            entry = data[i * size:(i + 1) * size]
            found.append(tuple(
                int.from_bytes(entry[self.at[f]:self.at[f] + self.word], self.order)
                for f in ("task_return::cfa", "task_return::ret")))
        return found

    def on_stack(self, sp: int) -> bool:
        """Is that the stepped task's stack?"""
        return self.stack <= sp <= self.stack + STACK_SIZE

    # ---- the truth ----

    def begin(self) -> None:
        """A task's first instruction."""
        self.stub.run_to(self.image.symbols["task_start"])
        self.task = self.number(self.image.symbols["cpus"] + self.word,
                                self.word)
        self.stack = self.number(self.task + self.at["task::stack"], self.word)
        self.true = []

    def behind(self, p: int, n: int) -> int:
        """Where the instruction at p ends, if that is n. The boot has made others, and fewer, of
        a site's."""
        for site in self.sites & {*range(p - self.facts["live_return"] + 1, p + 1)}:
            end = site + self.facts["live_return"]
            return n if p < n < end else end
        return self.code[p][1]

    def account(self, p: int, n: int) -> None:
        """Control went from the instruction at p to the one at n."""
        mnemonic, after, name = self.code[p]
        if n in self.traps and name not in self.entries:
            self.true.append(p)
            self.interrupts += 1
            self.stub.interrupts(False)
        elif n == self.image.symbols["trace_entry"]:
            site = max(s for s in self.sites if s <= p)
            self.true.append(site + self.facts["live_return"])
        elif mnemonic in self.calls and n != after and p not in self.sites:
            self.true.append(after + (4 if self.delay_slots else 0))
        elif mnemonic in self.facts["trap_returns"]:
            back = self.true.pop()
            # QEMU's step may execute two instructions behind a trap's return, too.
            for _ in range(2):
                if back != n and not self.leads_on(self.code[back][0]):
                    back = self.behind(back, n)
            if back != n:
                assert self.leads_on(self.code[back][0]), self.name(n)
                self.account(back, n)
        elif self.true and n == self.true[-1] and self.may_return(mnemonic):
            self.true.pop()

    def name(self, addr: int) -> str:
        """For messages."""
        f = self.image.function_at(addr)
        return f"{f.name}+{addr - f.addr:#x}" if f else f"{addr:#x}"

    def compare(self, regs: list[int]) -> None:
        """The walk from here against the truth."""
        pc, sp = regs[0], regs[1]
        low, stack, n, entries = self.beside or (sp, b"", 0, b"")
        while low > max(self.stack, sp - 256) or len(entries) < n * self.at["task_return"]:
            self.look(sp, n)
            low, stack, n, entries = self.beside
        memory = bytes(low - self.stack) + stack
        returns = self.returns(n, entries)
        found = self.walker.walk(regs, self.stack, memory, returns)
        where = self.walker.where(pc)
        truth = [pc, *reversed(self.true)]
        if where in (UNWIND_LOST, UNWIND_END):
            truth = [pc]
            self.lost += 1
        assert found == truth, "\n".join(
            [f"at {self.name(pc)}, {len(returns)} returns taken", "walk:",
             *map(self.name, found), "truth:", *map(self.name, truth)])
        self.compared += 1
        self.taken += bool(returns)
        self.functions.add(self.code[pc][2])
        self.places.add(pc)

    # ---- stepping ----

    def resume(self, target: int, sp: int) -> list[int]:
        """Run until this task is at target with its stack pointer above sp."""
        while True:
            self.stub.run_to(target)
            regs = self.regs()
            if self.on_stack(regs[1]) and regs[1] >= sp:
                return regs
            self.stub.step()

    def finish(self, regs: list[int]) -> list[int]:
        """Leave the function that is running, at full speed."""
        target = self.true.pop()
        return self.resume(target, regs[1] + self.call_pushes)

    def hot(self, pc: int) -> bool:
        """Has this instruction been compared often enough to run on at full speed?
        The outermost functions never have, nor those that lead to a switch."""
        if self.seen[pc] <= 3 or not self.true or \
                self.code[pc][2].startswith(
                    ("shell_run", "run_", "init_", "ktest_", "cmd_test", "task_join",
                     "task_block", "give_up_cpu", "schedule", "switch_to")):
            return False
        # Functions that the trampolines call run in every interrupt, too: a breakpoint
        # there would be hit again and again.
        names = [self.code[pc][2], *[self.code[a][2] for a in self.true[-5:]
                                     if a in self.code]]
        return not (names[0].startswith(("trap", "arch_switch")) or
                    any(n.startswith(("trace_entry", "trace_return",
                                      "call_slow")) for n in names))

    def run(self, steps: int) -> None:
        """Step and compare."""
        regs = self.regs()
        for step in range(steps):
            pc = regs[0]
            if step % INTERRUPT_EVERY == 0:
                self.stub.interrupts(True)
            if self.slot is None:
                self.seen[pc] += 1
                if self.hot(pc):
                    regs = self.finish(regs)
                    continue
                self.compare(regs)
            if self.code[pc][0] in self.facts["trap_returns"]:
                self.stub.interrupts(False)  # which of two instructions it came before?
            self.stub.step()
            # It is as deep as before, or by one function more.
            taken = self.beside[2] + 1 if self.beside else 1
            regs = self.advance(pc, self.look(regs[1] - 256, taken)
                                if self.on_stack(regs[1]) else self.regs())

    def advance(self, p: int, regs: list[int]) -> list[int]:
        """After a step from p: the truth, and over to where this task goes on."""
        n = regs[0]
        if n == p:
            return regs  # QEMU stopped before the instruction
        delayed = self.delay_slots and self.slot is None and \
            re.match(r"j|b(?!reak)", self.code[p][0]) and n == p + 4 and \
            (p not in self.sites or any(self.stub.memory(p, 4)))
        if delayed:
            self.slot = p
            return regs
        p, self.slot = (p, None) if self.slot is None else (self.slot, None)
        if self.code[p][2] == "arch_switch" and not self.on_stack(regs[1]):
            self.switches += 1
            return self.resume(self.true.pop(), 0)
        self.account(p, n)
        return regs


def stepped(arch, lines, tmp_path) -> Stepper:
    """The task that runs these shell lines, from its first instruction."""
    image = built(arch)
    stub = Stub(arch, append=f'run="{lines}; poweroff"', elf=image.path)
    try:
        stepper = Stepper(stub, image, Walker(image, tmp_path))
        while True:
            stepper.begin()
            name = stepper.task + stepper.at["task::name"]
            if stub.memory(name, 5) == b"init\0":
                break
            stub.step()
        stepper.run(25000)
    except Ended:
        pass
    finally:
        stub.close()
    print(f"{arch}: {stepper.compared} walks compared, "
          f"{len(stepper.functions)} functions, {stepper.taken} with returns "
          f"taken, {stepper.interrupts} interrupts, {stepper.switches} switches, "
          f"{stepper.lost} where no walk can begin")
    return stepper


def test_walk_is_exact_at_every_instruction(arch, tmp_path):
    """200 functions and all assembly that a task can be stepped through."""
    runs = [stepped(arch, lines, tmp_path) for lines in LINES]
    functions = set().union(*(r.functions for r in runs))
    assert len(functions) >= 200
    assert runs[1].taken > 1000 and runs[2].taken > 1000
    assert sum(r.interrupts for r in runs) and runs[0].switches
    for name in ("arch_switch", "trace_entry", "trace_return",
                 "trace_entry_graph", "trace_entry_return"):
        assert name in functions, name
    # Not only their ways to C. A step takes the host so long that a fast clock makes each
    # call a long one, whose return is C's.
    names = ["trace_entry_graph"] + ["trace_return"] * FACTS[arch].get("slow_clock", False)
    for name in names:
        all_of_it = {pc for pc, code in runs[1].code.items() if code[2] == name}
        assert 3 * len(all_of_it & runs[1].places) > 2 * len(all_of_it), name
