# SPDX-License-Identifier: MIT
"""Inputs that are nearly right: control files, the shell's lines, kernel parameters."""

import random
import re

from lib.storm import CPUS, EVENTS, GLOBS, STRATEGIES, TRACERS

LONG = 1000  # bytes of a line, of which the shell takes 1024
NUMBERS = ["0", "0", "1", "1", "1", "-1", "2", "8", "00", "0x10", "1e3", "4095", "65536",
           "2147483648", "4294967296", "18446744073709551615", "99999999999999999999999", "٣",
           "1 2", " 7 "]
SPECIAL = ["*", "?", ":", ";", "!", "|", ">", "<", "&&", "||", "(", ")", "==", "~", "'", '"', "\\",
           "#", "$", "%s", "%n", " ", "  ", "/", "..", ",", ".", "-", "é", "[", "]", "{", "}", "^"]
FIELDS = ["common_pid", "next_pid", "prev_comm", "next_comm", "prio", "ptr", "bytes_req", "pid"]
COMMANDS = ["cat", "cd", "cpus", "echo", "grep", "head", "help", "history", "ls", "mkdir", "ps",
            "pwd", "rmdir", "tail", "trace", "uptime", "wc", "xxd"]
TRACE = ["list", "show", "reset", "stop", "stack", "snapshot", "start -p function",
         "start -e sched_switch", "start -B a -e sched", "start -p function_graph -g task_*"]


class Inputs:
    """Inputs for a guest with these files below TRACING, functions and options."""

    def __init__(self, dice: random.Random, files: list[str], names: list[str],
                 options: list[str]):
        self.dice, self.files, self.names, self.options = dice, files, names, options
        self.texts = {
            r"set_.*(filter|notrace|function)$|stack_trace_filter$": lambda: dice.choice(
                [self.pattern(), f"{self.pattern()} {self.pattern()}", "",
                 f"{dice.choice(['', '!'])}{self.pattern()}:{self.trigger()}"]),
            r"events/.*/filter$": lambda: dice.choice([self.condition(), self.condition(), "0"]),
            r"trigger$": lambda: self.trigger() + dice.choice(["", f" if {self.condition()}"]),
            r"set_event$": lambda: dice.choice(["", "!"]) + self.event(),
            r"current_tracer$": lambda: dice.choice(TRACERS),
            r"patch_strategy$": lambda: dice.choice(STRATEGIES),
            r"trace_options$": lambda: dice.choice(["", "no"]) + dice.choice(options),
            r"trace_clock$": lambda: dice.choice(["local", "global", "counter", "mono", "uptime"]),
            r"": lambda: dice.choice(NUMBERS),
        }
        # A language of its own is written more often than numbers are.
        self.weights = [1 if self.kind(file) == "" else 6 for file in files]

    def kind(self, file: str) -> str:
        """Of the texts that it takes."""
        return next(x for x in self.texts if re.search(x, file))

    def pattern(self) -> str:
        """Functions."""
        return self.dice.choice([*GLOBS, self.dice.choice(self.names)])

    def event(self) -> str:
        """Events, as set_event takes them."""
        return self.dice.choice([*EVENTS, "kmem/*", "*/*", "sched_*"]).replace("/", ":")

    def condition(self, deep: int = 0) -> str:
        """A filter of events."""
        if deep < 3 and self.dice.random() < 0.4:
            both = f"{self.condition(deep + 1)} {self.dice.choice(['&&', '||'])} " \
                   f"{self.condition(deep + 1)}"
            return self.dice.choice([both, f"({both})", f"!({both})"])
        if self.dice.random() < 0.3:
            return f'{self.dice.choice(FIELDS)} {self.dice.choice(["==", "!=", "~"])} "*i?"'
        return f"{self.dice.choice(FIELDS)} {self.dice.choice(['==', '!=', '<', '>=', '&'])} " \
               f"{self.dice.choice(NUMBERS)}"

    def trigger(self) -> str:
        """What happens at an event or a call."""
        what = self.dice.choice(["traceon", "traceoff", "snapshot", "stacktrace", "dump", "cpudump",
                                 "enable_event:sched:sched_switch", "disable_event:irq:*"])
        return f"{self.dice.choice(['', '!'])}{what}" + self.dice.choice(
            ["", f":{self.dice.choice(NUMBERS)}"])

    def text(self, file: str) -> str:
        """A text for that file, mostly one that it takes."""
        other = self.dice.choice([*self.texts.values(), lambda: self.dice.choice(SPECIAL)])
        return self.dice.choice([self.texts[self.kind(file)]] * 6 + [other])()

    def changed(self, text: str) -> str:
        """It, with up to four changes."""
        d = self.dice
        for _ in range(d.choice([0, 0, 0, 0, 1, 1, 2, 4])):
            i, j = sorted(d.randrange(len(text) + 1) for _ in range(2))
            ends = [0, *(x.end() for x in re.finditer(r"[: ]", text)), len(text)]
            part = d.randrange(len(ends) - 1)
            text = d.choice([
                text[:ends[part]] + text[ends[part + 1]:],
                text[:ends[part]].rstrip(": "),
                text[:i] + text[j:],
                text[:j] + text[i:],
                text[:i] + d.choice(SPECIAL + NUMBERS) + text[i:],
                text[:i] + chr(d.randrange(32, 127)) + text[i + 1:],
                text[:i] + text[i:j] * d.choice([2, 9, 90]) + text[j:],
                text[:j] + " " + self.text("") + text[j:],
            ])
        return text[:d.choice([60, 900])]

    def write(self) -> str:
        """A write to a control file, of whatever text."""
        file, = self.dice.choices(self.files, self.weights)
        text = self.changed(self.text(file)).replace("'", "'\"'\"'")
        return f"echo '{text}' {self.dice.choice(['>', '>', '>>'])} {file}"

    def line(self) -> str:
        """A line for the shell."""
        d = self.dice
        words = [d.choice([d.choice(self.files), d.choice(NUMBERS), d.choice(TRACE), self.pattern(),
                           "-" + chr(d.randrange(97, 123)), "instances/a"])
                 for _ in range(d.randrange(4))]
        return self.changed(" ".join([d.choice(COMMANDS), *words]))

    def any(self) -> str:
        """Either of them, no longer than a line may be."""
        while True:
            line = self.write() if self.dice.random() < 0.7 else self.line()
            if len(line.encode()) <= LONG:
                return line


class Parameters(Inputs):
    """Kernel parameters, each with a value that it may have."""

    # They end the machine, change how it ends, make it fail on purpose, or print all events.
    LEFT_OUT = ["run", "panic", "fault", "icount", "p9", "tp_printk"]

    def __init__(self, dice: random.Random, known: list[str], names: list[str],
                 options: list[str]):
        super().__init__(dice, [], names, options)
        self.known = [x for x in known if x not in self.LEFT_OUT]
        self.values = {
            r"^ftrace$": lambda: dice.choice(TRACERS),
            r"filter|notrace": lambda: ",".join([self.pattern()] * dice.randrange(1, 4)),
            r"event|instance": lambda: dice.choice(["", "a,", "a^"]) + self.event(),
            r"options": lambda: dice.choice(["", "no"]) + dice.choice(options),
            r"strategy": lambda: dice.choice(STRATEGIES),
            r"clock": lambda: dice.choice(["local", "global", "counter", "mono", "uptime"]),
            r"": lambda: dice.choice([*NUMBERS, "on", "off", ""]),
        }

    def any(self) -> str:
        """A parameter, which no quote leaves open."""
        name = self.dice.choice(self.known)
        value = next(self.values[x] for x in self.values if re.search(x, name))()
        word = self.changed(self.dice.choice([f"{name}={value}"] * 9 + [name, value]))[:60]
        word = word.replace('"', "")
        left_out = word.partition("=")[0].strip() in self.LEFT_OUT or " " in word
        return self.any() if left_out or not word else word
