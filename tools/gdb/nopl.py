# SPDX-License-Identifier: MIT
"""nopl for gdb: tasks and their calls, CPUs, sites, the trace.

  nopl-tasks            every task, and where it stands
  nopl-bt [TASK]        the calls that a task (a pid or a name) stands in, by the kernel's own
                        table. Without TASK: those of every task
  nopl-cpus             every CPU: its task, the lock that it waits for, its way up or down
  nopl-sites [GLOB]     sites and jump labels of functions: what is in memory, and what the
                        books say, where these differ
  nopl-trace [N]        the last N lines of the trace (default 20)

A breakpoint on a function that has a site says where it stands. The guest does not help: it
may hang, or have panicked. `make debug` loads this file. gdb finds it by itself for kernels in
folders that it trusts: build/ARCH/nopl.elf-gdb.py.
"""

import fnmatch
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import gdb

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools" / "gdb")]

from lib import port  # noqa: E402
from printers import printer, text  # noqa: E402

STACK_SIZE = 7 * 4096  # TASK_STACK_SIZE in kernel/sched/task.h
STEPS_MAX = 64


# ---- The guest's values ---------------------------------------------------------


def number(expression: str) -> int:
    """A C expression's value."""
    return int(gdb.parse_and_eval(expression))


def address(value: gdb.Value | int) -> int:
    """A pointer as the kernel prints it: gdb extends the sign of MIPS's."""
    return int(value) & (1 << 8 * number("sizeof(long)")) - 1


def extended(at: int) -> int:
    """And as gdb wants it."""
    is_long = number("sizeof(long)") == 8
    return at if is_long or not at >> 31 else at | 0xffffffff << 32


def kernel() -> Path:
    """The ELF file."""
    files = [o.filename for o in gdb.objfiles() if o.filename]
    if not files:
        raise gdb.GdbError("no kernel: file build/ARCH/nopl.elf")
    return Path(files[0])


def image_start() -> int:
    """Where in RAM the kernel's text begins."""
    text_at = number("(unsigned long)&_text")
    heads = subprocess.run(["readelf", "-lW", kernel()], text=True, capture_output=True,
                           check=True).stdout
    for line in heads.splitlines():
        fields = line.split()
        if fields[:1] == ["LOAD"] and \
                0 <= text_at - int(fields[2], 16) < int(fields[5], 16):
            return text_at - int(fields[2], 16) + int(fields[3], 16)
    raise gdb.GdbError(f"{kernel()}: its text is in no segment")


def facts() -> dict:
    """The port's machine.json: whose kernel has this machine, byte order aside."""
    name = gdb.execute("show architecture", to_string=True)
    for arch in port.architectures():
        info = port.read(arch)
        options = info["objdump"]
        if f'"{options[options.index("-m") + 1].partition(":")[0]}' in name:
            return info
    raise gdb.GdbError(f"no port has this machine: {name.strip()}")


def words(start: str, count: int) -> list[int]:
    """An array of u32, read at once. Not every table of tables.S has a type."""
    if not count:
        return []
    # A pointer, not a number: gdb extends the sign of MIPS's addresses.
    at = gdb.parse_and_eval(f"(char *){start}")
    raw = bytes(gdb.selected_inferior().read_memory(at, 4 * count))
    order = "big" if "big" in gdb.execute("show endian", to_string=True) else "little"
    return [int.from_bytes(raw[i:i + 4], order) for i in range(0, len(raw), 4)]


class Symbols:
    """The kernel's table of functions."""

    def __init__(self):
        count = number("symbol_count")
        self.text = number("(unsigned long)&_text")
        self.offsets, self.sizes = words("&symbol_offset", count), words("&symbol_size", count)

    def at(self, addr: int) -> tuple[str, int] | None:
        """The function that has the address, and how far it is from its beginning."""
        offset, lo, hi = addr - self.text, 0, len(self.offsets)
        while lo < hi:
            mid = (lo + hi) // 2
            lo, hi = (mid + 1, hi) if self.offsets[mid] <= offset else (lo, mid)
        if not lo or not 0 <= offset - self.offsets[lo - 1] < self.sizes[lo - 1]:
            return None
        name = gdb.parse_and_eval(f"&symbol_names[symbol_name[{lo - 1}]]")
        return text(name), offset - self.offsets[lo - 1]

    def show(self, addr: int, is_return: bool = False) -> str:
        """name+0x12. A return address may lie behind the end of its function."""
        found = self.at(addr - is_return)
        return f"{found[0]}+{found[1] + is_return:#x}" if found else f"{addr:#x}"


# ---- Tasks ----------------------------------------------------------------------


def all_tasks() -> list[gdb.Value]:
    """Every task, as the list of all tasks has them."""
    task = gdb.lookup_type("struct task")
    offset = next(f.bitpos // 8 for f in task.fields() if f.name == "all_link")
    head = gdb.parse_and_eval("&'task_list.c'::tasks")
    found, node = [], head["next"]
    while int(node) != int(head) and len(found) < 10000:
        found.append(gdb.Value(int(node) - offset).cast(task.pointer()))
        node = node["next"]
    return sorted(found, key=lambda t: (int(t["pid"]), text(t["name"])))


def find_task(word: str) -> gdb.Value:
    """By pid, or by name."""
    for task in all_tasks():
        if word in (str(int(task["pid"])), text(task["name"])) and (
                word != "0" or text(task["name"]) == "idle/0"):
            return task
    raise gdb.GdbError(f"no task is '{word}': nopl-tasks lists them")


def running() -> dict[int, tuple[int, gdb.InferiorThread | None]]:
    """Of each task that runs: its CPU, and the thread that is that CPU for gdb. That is the
    one whose stack pointer is on the task's stack, or else on one of the CPU's own."""
    found, before, places = {}, gdb.selected_thread(), {}
    for thread in gdb.selected_inferior().threads():
        thread.switch()
        places[thread] = number("(unsigned long)$sp")
    before.switch()
    for cpu in range(number("nr_cpus")):
        head = gdb.parse_and_eval(f"cpus[{cpu}].head")
        task, trap = head["current"], int(head["trap_stack"])
        if not int(task):
            continue
        stack = address(task["stack"])
        thread = next((t for t, sp in places.items()
                       if stack and stack - 4096 <= sp <= stack + STACK_SIZE or
                       trap and trap - 16384 <= sp <= trap), None)
        places.pop(thread, None)
        found[int(task)] = (cpu, thread)
    # The boot CPU's first task has no stack of its own. One thread is left then.
    left = [task for task, (_, thread) in found.items() if not thread]
    if len(left) == len(places) == 1:
        found[left[0]] = (found[left[0]][0], next(iter(places)))
    return found


class Walk:
    """The calls of a task: kernel/image/unwind.c, from outside."""

    def __init__(self, task: gdb.Value, thread):
        self.task, self.forms = task, facts()["debugger"]
        self.text, self.end = number("(unsigned long)&_text"), number("(unsigned long)&_etext")
        rule = gdb.lookup_type("struct unwind_rule").pointer()
        self.rules = gdb.parse_and_eval("&unwind_rules").cast(rule)
        self.where = {f.name.removeprefix("UNWIND_"): f.enumval for f in
                      gdb.lookup_type("enum unwind_where").fields()}
        self.index = words("&unwind_index", (self.end - self.text) // 256 + 2)
        self.rows = words("&unwind_rows", number("*(unsigned int *)&unwind_count"))
        self.exact = thread is not None
        gdb.set_convenience_variable("task", task)
        if thread:
            before = gdb.selected_thread()
            thread.switch()
            self.registers(self.forms["cpu"])
            before.switch()
        else:
            self.registers(self.forms["task"])

    def registers(self, forms: list[str]) -> None:
        """pc and sp, and where the port has them, the link and the alternate register."""
        values = [number(f"(unsigned long)({f})") for f in forms] + [None, None]
        self.pc, self.sp, self.link, self.alt = values[:4]

    def rule(self) -> gdb.Value:
        """The table's rule where the task stands."""
        if self.exact and not self.text <= self.pc < self.end:
            return self.rules[1]  # a call of a wrong pointer: as at a function's entry
        offset = self.pc - (not self.exact) - self.text
        if not 0 <= offset < self.end - self.text:
            return self.rules[0]
        at = self.index[offset // 256]
        while at + 1 < len(self.rows) and self.rows[at + 1] >> 8 <= offset:
            at += 1
        return self.rules[self.rows[at] & 0xff]

    def caller(self, where: int, at: int) -> int | None:
        """A value that the caller had. None: not known."""
        if where == self.where["STACK"]:
            return number(f"*(unsigned long *){at:#x}")  # a word of the stack
        if where == self.where["LINK"]:
            return self.link
        if where == self.where["ALT"]:
            return self.alt if self.exact else None
        if where == self.where["TAKEN"]:
            return number("(unsigned long)trace_return")
        return None

    def taken(self, cfa: int) -> int:
        """The return address that a tracer has taken out of the frame."""
        for i in range(min(int(self.task["nr_returns"]), 48)):
            if int(self.task["returns"][i]["cfa"]) == cfa:
                return int(self.task["returns"][i]["ret"])
        return self.pc

    def step(self) -> bool:
        """To the caller. False: there is none."""
        rule = self.rule()
        cfa = self.sp + int(rule["cfa"])
        if int(rule["pc"]) == self.where["TRAP"]:
            frame = gdb.lookup_type("struct trap_frame").pointer()
            gdb.set_convenience_variable("frame", gdb.Value(cfa).cast(frame))
            self.registers(self.forms["trap"])
            self.exact = True
            return True
        pc = self.caller(int(rule["pc"]), cfa + int(rule["pc_at"]))
        if pc is None:
            return False
        link = self.caller(int(rule["link"]), cfa + int(rule["link_at"]))
        self.pc = self.taken(cfa) if pc == number("(unsigned long)trace_return") else pc
        self.sp, self.link, self.exact = cfa, link, bool(rule["exact"])
        return self.text <= self.pc < self.end


# ---- Commands -------------------------------------------------------------------


class Command(gdb.Command):
    """A command of this file. Its help is its class's text."""

    def __init__(self, name: str, usage: str, most: int, complete=gdb.COMPLETE_NONE):
        super().__init__(name, gdb.COMMAND_DATA, complete)
        self.name, self.usage, self.most = name, usage, most

    def invoke(self, argument: str, _from_tty: bool) -> None:
        """Called by gdb."""
        arguments = gdb.string_to_argv(argument)
        if len(arguments) > self.most:
            raise gdb.GdbError(f"usage: {self.name} {self.usage}".strip())
        before = gdb.selected_thread()
        if not before:
            raise gdb.GdbError(f"{self.name}: no guest: target remote, or make debug")
        try:
            self.see_memory()
            self.run(*arguments)
        finally:
            before.switch()

    def see_memory(self) -> None:
        """Select a CPU that sees the kernel's memory: one that is in the firmware does not."""
        cpus = None
        for thread in gdb.selected_inferior().threads():
            thread.switch()
            try:
                cpus = number("nr_cpus")
                break
            except gdb.MemoryError:
                pass
        if cpus is None:
            raise gdb.GdbError(f"{self.name}: every CPU is in the firmware: continue, and stop "
                               "the guest again")
        if not cpus:
            raise gdb.GdbError(f"{self.name}: the kernel has not begun yet")


def state_of(task: gdb.Value, on_cpu: dict) -> str:
    """What the task does or waits for."""
    return "running" if int(task) in on_cpu else str(task["state"]).removeprefix("TASK_").lower()


class Tasks(Command):
    """Every task: pid, name, state, CPU, priority, and where it stands."""

    def run(self) -> None:
        on_cpu, symbols = running(), Symbols()
        for task in all_tasks():
            runs, state = int(task) in on_cpu, state_of(task, on_cpu)
            walk = Walk(task, on_cpu[int(task)][1] if runs else None)
            print(f"{int(task['pid']):5} {text(task['name']):<15} {state:<8} "
                  f"{int(task['cpu']):3} {int(task['prio']):4} {symbols.show(walk.pc)}")


class Backtrace(Command):
    """A task's calls, the innermost first. Without TASK: every task's, in a line each."""

    def run(self, word: str = "") -> None:
        on_cpu, symbols = running(), Symbols()
        for task in [find_task(word)] if word else all_tasks():
            cpu, thread = on_cpu.get(int(task), (None, None))
            calls = list(self.calls(task, thread, symbols))
            where = f", {state_of(task, on_cpu)}" if cpu is None else f" on CPU {cpu}"
            if word:
                print("\n".join(f"#{depth:<3} {call}" for depth, call in enumerate(calls)))
            elif thread or cpu is None:
                print(f"{text(task['name'])} ({int(task['pid'])}){where}: {' <- '.join(calls)}")

    @staticmethod
    def calls(task: gdb.Value, thread, symbols: Symbols):
        """Each call, as a text."""
        walk = Walk(task, thread)
        for _ in range(STEPS_MAX):
            yield symbols.show(walk.pc, not walk.exact)
            try:
                more = walk.step()
            except gdb.MemoryError:
                more = False
                yield "no stack here: a CPU is between this task and another"
            if not more:
                return


class Cpus(Command):
    """Every CPU: is it online, which task runs, its depth in interrupts, the lock that it spins
    for, what other CPUs interrupt it for, how many tasks wait for it."""

    def run(self) -> None:
        on_cpu, symbols = running(), Symbols()
        for cpu in range(number("nr_cpus")):
            c = gdb.parse_and_eval(f"cpus[{cpu}]")
            task, count = c["head"]["current"], int(c["head"]["preempt_count"])
            online = number("cpus_online") >> cpu & 1
            said = [f"CPU {cpu}", self.state(cpu)]
            if online and int(task):
                thread = on_cpu[int(task)][1]
                said += [f"task {text(task['name'])} ({int(task['pid'])})"]
                said += [f"at {symbols.show(Walk(task, thread).pc)}"] if thread else []
                said += [f"preempt depth {count & 0xff}"] if count & 0xff else []
                said += ["in an interrupt"] if count & 0xf00 else []
                said += ["in an NMI"] if count & 0x1000 else []
                said += ["in a rendezvous"] if bool(c["in_stop"]) else []
                if int(c["spins_for"]):
                    said += [f"waits for lock {text(c['spins_for']['name'])}"]
            if wanted := int(c["ipi_pending"]):
                said += [f"wanted for {gdb.Value(wanted).cast(gdb.lookup_type('enum ipi'))}"]
            if ready := int(c["rq"]["nr_ready"]):
                said += [f"{ready} ready tasks wait"]
            print(", ".join(said))

    @staticmethod
    def state(cpu: int) -> str:
        """On its way up or down, as hotplug.c calls it."""
        # The boot CPU has no such state.
        state = gdb.parse_and_eval(f"(enum cpu_state)'hotplug.c'::states[{cpu}]")
        return "online" if cpu == 0 else str(state).removeprefix("CPU_").lower()


class Sites(Command):
    """Sites and jump labels of functions whose names match: state in memory and in the books."""

    def run(self, glob: str = "*") -> None:
        symbols, code = Symbols(), facts()["code"]
        live, shown, wrong = number("site_boot.live_at"), 0, 0
        machine = gdb.selected_inferior().architecture()
        for kind, count, books, on in (
                ("call", "site_count", "live_calls", code["calls"]),
                ("jump", "jump_count", "live_jumps", code["jumps"])):
            count = number(count)
            enabled = words(f"{books}.enabled", (count + 31) // 32)
            patchable = words(f"{books}.patchable", (count + 31) // 32)
            for i, offset in enumerate(words(f"{books}.table", count)):
                function = symbols.at(symbols.text + offset)
                if not function or not fnmatch.fnmatchcase(function[0], glob):
                    continue
                at = symbols.text + offset + (live if kind == "call" else 0)
                insn = " ".join(machine.disassemble(extended(at))[0]["asm"].split())
                in_memory = insn.split()[0] in on
                in_books = bool(enabled[i // 32] >> i % 32 & 1)
                differ = in_memory != in_books and patchable[i // 32] >> i % 32 & 1
                shown, wrong = shown + 1, wrong + bool(differ)
                print(f"{at:#x} {kind} {function[0]}+{function[1]:#x}: "
                      f"{'on' if in_memory else 'off'}: {insn}"
                      + (f"; the books say {'on' if in_books else 'off'}" if differ else "")
                      + ("" if patchable[i // 32] >> i % 32 & 1 else "; never switched"))
        print(f"{shown} sites and jump labels, {wrong} of them not as the books say")


EXTRACT_WAIT = 120  # seconds


class Trace(Command):
    """The last lines of the trace, of all CPUs (default 20)."""

    def run(self, lines: str = "20") -> None:
        if not lines.isdigit() or not int(lines):
            raise gdb.GdbError(f"nopl-trace {lines}: a number of lines from 1 on")
        tool = ROOT / "build/host/extract"
        if not tool.is_file():
            raise gdb.GdbError(f"there is no {tool}: make {tool.relative_to(ROOT)}")
        ram = [[number(f"boot_info.mem[{i}].{edge}") for i in range(number("boot_info.nr_mem"))]
               for edge in ("start", "end")]
        start, end = min(ram[0] + [image_start()]) & -4096, max(ram[1])
        with tempfile.TemporaryDirectory() as folder:
            memory = os.path.join(folder, "memory")
            gdb.execute(f'monitor pmemsave {start:#x} {end - start:#x} "{memory}"',
                        to_string=True)
            try:
                done = subprocess.run(
                    [tool, "--elf", kernel(), "--memory", memory, "--format", "text", "-o", "-"],
                    text=True, capture_output=True, check=False, timeout=EXTRACT_WAIT)
            except subprocess.TimeoutExpired:
                raise gdb.GdbError(f"{tool} has not ended for {EXTRACT_WAIT} s") from None
        if done.returncode:
            raise gdb.GdbError(done.stderr.strip())
        print("\n".join(done.stdout.splitlines()[-int(lines):]))


# ---- Breakpoints ----------------------------------------------------------------


def say_where(breakpoint: gdb.Breakpoint) -> None:
    """A breakpoint on a function with a site: before, on or behind the live instruction."""
    try:
        symbols = Symbols()
        sites = words("live_calls.table", number("site_count"))
        for location in breakpoint.locations or []:
            stands = address(location.address)
            function = symbols.at(stands)
            start = stands - symbols.text - function[1] if function else -1
            site = next((s for s in sites if start <= s < start + 64 and
                         symbols.at(symbols.text + s) and
                         symbols.at(symbols.text + s)[0] == function[0]), None)
            if site is None:
                continue
            at, end = symbols.text + site, symbols.text + site + number("site_boot.length")
            place = "before" if stands <= at else "inside" if stands < end else "behind"
            print(f"nopl: breakpoint {breakpoint.number} stands {place} the site of "
                  f"{function[0]} ({at:#x} to {end:#x})")
    except gdb.error:
        pass  # no kernel, or no guest yet


Tasks("nopl-tasks", "", 0)
Backtrace("nopl-bt", "[TASK]", 1)
Cpus("nopl-cpus", "", 0)
Sites("nopl-sites", "[GLOB]", 1, gdb.COMPLETE_SYMBOL)
Trace("nopl-trace", "[N]", 1)
gdb.events.breakpoint_created.connect(say_where)
gdb.pretty_printers.append(printer)
# Seconds. gdb's own 2 are too few for QEMU on a busy host.
gdb.execute("set remotetimeout 20")
