# SPDX-License-Identifier: MIT
"""How gdb prints the guest's lists, tasks and masks of CPUs: nopl.py."""

import gdb


def text(pointer: gdb.Value) -> str:
    """A C string."""
    return pointer.string(errors="replace")


class ListPrinter:
    """struct list: how many are on it."""

    def __init__(self, value: gdb.Value):
        self.value = value

    def to_string(self) -> str:
        """For print."""
        head, node, n = int(self.value.address or 0), self.value["next"], 0
        while head and int(node) and int(node) != head and n < 10000:
            node, n = node["next"], n + 1
        return f"list of {n}" if n else "empty list"


class TaskPrinter:
    """struct task: its name, pid and state, the members below."""

    def __init__(self, value: gdb.Value):
        self.value = value

    def to_string(self) -> str:
        """For print."""
        state = str(self.value["state"]).removeprefix("TASK_").lower()
        return f"task {text(self.value['name'])} ({int(self.value['pid'])}), {state}"

    def children(self):
        """The members."""
        for field in self.value.type.fields():
            yield field.name, self.value[field.name]


class MaskPrinter:
    """cpumask_t: the numbers of its CPUs."""

    def __init__(self, value: gdb.Value):
        self.value = value

    def to_string(self) -> str:
        """For print."""
        mask = int(self.value)
        cpus = ",".join(str(i) for i in range(32) if mask >> i & 1)
        return f"{mask:#x} (CPUs {cpus})" if mask else "0 (no CPU)"


def printer(value: gdb.Value):
    """The printer for a value, or None."""
    if value.type.name == "cpumask_t":
        return MaskPrinter(value)
    return {"list": ListPrinter, "task": TaskPrinter}.get(
        value.type.strip_typedefs().tag or "", lambda _: None)(value)
