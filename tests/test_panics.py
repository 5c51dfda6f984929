# SPDX-License-Identifier: MIT
"""Each panic of the kernel: gdb has a guest do what the kernel does not, and the panic says so. The
source has no panic() that is not here, or in the port's machine.json."""

import re

import pytest
from conftest import ARCHES, FACTS, ROOT
from gdbboots import Boots

SELF = "cpus[0].head.current"
# Functions that an interrupt calls, and the command `uptime`.
INTERRUPT = "timer_interrupt"
COMMAND = "cmd_uptime"
# Where the guest stops, what gdb does there, and what the panic says.
PANICS = [
    (COMMAND, ["call mutex_lock(&trace_mutex)", "call mutex_lock(&trace_mutex)"],
     "mutex_lock: init holds it already"),
    (COMMAND, ["call spin_lock(&'kmalloc.c'::lock)", "call spin_lock(&'kmalloc.c'::lock)"],
     r"lock kmalloc: taken again at .*; held by this CPU since .*"),
    (COMMAND, ["call page_free((char *)page_alloc(0) + 16, 0)"], r"\w+ is no allocated page"),
    (COMMAND, ["call page_free(page_alloc(2), 1)"], r"page_free: \w+ is of order 2, not 1"),
    ("mm_init", ["set var boot_info.nr_mem = 0"], "the firmware names no memory that can be used"),
    (COMMAND, ["call kfree((char *)kmalloc(30) + 16)"], r"kfree: \w+ is not allocated"),
    (COMMAND, ["call kfree((char *)page_alloc(0) + 128)"], r"kfree: \w+ is not allocated"),
    (COMMAND, ["set $p = (char *)kmalloc(30)", "set var $p[30] = 0", "call kfree($p)"],
     r"kfree: bytes behind the object at \w+ were written"),
    (INTERRUPT, ["call schedule()"],
     r"schedule: preempt_count \w+: called in an interrupt, or with a lock held"),
    (COMMAND, ["set $page = (char *)page_alloc(0)", f"set var {SELF}->stack = $page + 4096",
               f"set var {SELF}->guarded = 0"],
     "stack overflow: the canary of task init is damaged"),
    (COMMAND, [f"call task_create({SELF}->name, 0, 1, 0, 0)"],
     r"task init: priority 0 is not 1\.\.\d+"),
    (COMMAND, [f"thbreak *schedule if {SELF}->state == TASK_DEAD", "jump *task_exit", "return"],
     "task init runs after its end"),
    (COMMAND, [f"call task_bury({SELF})"], "task_bury: task init is not expendable"),
    (INTERRUPT, ["call task_exit(0)"], r"task_exit: [\w/]+ holds a lock or is in an interrupt"),
    ("arch_clock_init", ["return 0"], "clock: 0 Hz makes no sense"),
    ("schedule", ["return"], "the boot context runs again"),
    (COMMAND, ["call assert_irqs_off()"], "interrupts are on where they must be off, at .*"),
    (INTERRUPT, ["call assert_preemptible()"], "the task cannot be switched away here, at .*"),
    (INTERRUPT, ["call assert_task_context()"], "this is no place to sleep, at .*"),
    (COMMAND, ["call trace_returned(0)"], "a function returned whose return address nobody took"),
    ("clients_start", ["set var __start_trace_clients[1].name = __start_trace_clients[0].name"],
     "two clients of the tracer are called .*"),
    ("clients_start", ["set var __start_trace_clients[0].called = clients_start",
                       "set var __start_trace_clients[1].called = clients_start"],
     ".*: too many clients have the same hook"),
    (COMMAND, ["call trap_store_to(8)"], r".* at trap_store_to\+.*"),
    (COMMAND, ["set var cpus[0].in_fault = 1", "call trap_store_to(8)"],
     r".*, address 0x\w+, at trap_store_to\+.*, while handling a fault"),
]
# The others, and why they are not above.
OTHERS = {
    r".*no memory.*": "tests/test_boot.py has each allocation of a boot fail",
    r"%s": "the shell's command says that",
    r"lab: .*": "a CPU would have to stand still, or a victim to keep interrupts off",
}


def source_panics(*folders: str) -> set[str]:
    """Each format of panic() in the source below these folders."""
    found = set()
    for folder in folders:
        for path in (ROOT / folder).rglob("*.c"):
            if not path.name.endswith("_test.c"):
                for strings in re.findall(r'\bpanic\(((?:\s*"(?:[^"\\]|\\.)*")+)',
                                          path.read_text()):
                    found.add("".join(re.findall(r'"((?:[^"\\]|\\.)*)"', strings)))
    return found


def not_provoked(formats: set[str], rows: list, others) -> set[str]:
    """Those formats that no row's text has, and none of the others is."""
    texts = [re.sub(r"\\([.])", r"\1", says) for _, _, says in rows]
    said = {x: re.sub(r"%[-+ #0-9l]*(p[BS]|[a-z])", ".*", x) for x in formats}
    return {x for x in formats if not any(re.fullmatch(other, x) for other in others)
            and not any(re.fullmatch(said[x], text) for text in texts)}


def test_all_panics_are_here():
    """A new panic() is provoked, too, or has a reason why it is not."""
    formats = source_panics("kernel", "tracer")
    assert len(formats) > 20
    assert not not_provoked(formats, PANICS, OTHERS)
    for other in OTHERS:
        assert any(re.fullmatch(other, format) for format in formats), other


def provoke(arch, image, folder, rows):
    """Each is said in one line, and the machine ends."""
    boots = Boots(arch, image, folder)
    for at, do, _ in rows:
        # With a second CPU gdb may stop in that one's call of a function, or init may run there.
        boots.add(at, do, "cmd_poweroff", smp=1,
                  append='panic=exit run="uptime; sleep 0.1; poweroff"')
    for (_, do, says), (_, console) in zip(rows, boots.run()):
        said = re.findall(r"^panic: (.*?)\r*$", console, re.M)
        assert len(said) == 1, (do, console)
        assert re.fullmatch(rf"{says} \(CPU \d, task [\w/]+\)", said[0]), (do, said[0])


def test_each_panic(arch, image, tmp_path):
    """The panics of the code that all ports share."""
    provoke(arch, image, tmp_path, PANICS)


# Panics of a port that no test provokes, each with the reason.
OF_A_PORT = {
    ".*no memory.*": OTHERS[".*no memory.*"],
    ".*the image is larger than .*": "nothing in a guest changes the image's size",
    "the ACPI PM timer does not count": "that takes 10 s to see",
}


@pytest.mark.parametrize("arch", ARCHES, indirect=True)
def test_panics_of_a_port(arch, image, tmp_path):
    """The panics of the port's own code."""
    rows = FACTS[arch].get("panics", [])
    assert not not_provoked(source_panics(f"arch/{arch}", f"boot/{arch}"), rows, OF_A_PORT)
    provoke(arch, image, tmp_path, rows)
