# SPDX-License-Identifier: MIT
"""The tests of a boot, as other programs want them: JUnit's XML, and one KTAP document."""

import re
import xml.etree.ElementTree as ElementTree

from lib.qemu import Boot, Verdict


def junit(name: str, result: Boot, verdict: Verdict, reason: str) -> str:
    """The tests of a boot as JUnit's XML. The boot itself is a test, too: it fails where no
    single test has, but the verdict is no pass."""
    suite = ElementTree.Element("testsuite", name=name, time=f"{result.seconds:.3f}")
    totals = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)

    def add(test: str, seconds: float, kind: str = "", why: str = "", text: str = "") -> None:
        case = ElementTree.SubElement(suite, "testcase", classname=name, name=test,
                                      time=f"{seconds:.3f}")
        totals["tests"] += 1
        if kind:
            ElementTree.SubElement(case, kind, message=printable(why)).text = printable(text)
            totals[{"failure": "failures", "error": "errors"}.get(kind, kind)] += 1

    for run in result.console.runs:
        for test in run.passed:
            add(test, run.seconds.get(test, 0))
        for test in run.failed:
            lines = run.diagnostics.get(test, [])
            add(test, run.seconds.get(test, 0), "failure", "".join(lines[:1]),
                "\n".join(lines))
        for test in run.skipped:
            add(test, 0, "skipped", run.reasons.get(test, ""))
    broken = verdict not in (Verdict.PASS, Verdict.FAIL)
    add("boot", result.seconds, "error" if broken else "", f"{verdict.name}: {reason}",
        "\n".join([*result.console.lines[-50:], *result.stacks]))
    for key, count in totals.items():
        suite.set(key, str(count))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def printable(text: str) -> str:
    """Without the bytes that XML cannot hold."""
    return re.sub(r"[^\t\n\x20-\ud7ff\ue000-\ufffd]", "?", text)


def ktap(result: Boot, verdict: Verdict, reason: str) -> str:
    """The same as one KTAP document. The boot itself is the last test."""
    lines = []
    for run in result.console.runs:
        for test in [*run.passed, *run.failed, *run.skipped]:
            lines.append((test in run.failed, test, run))
    out = ["KTAP version 1", f"1..{len(lines) + 1}"]
    for i, (failed, test, run) in enumerate(lines, 1):
        out += run.diagnostics.get(test, []) if failed else []
        skip = f" # SKIP {run.reasons.get(test, '')}".rstrip() if test in run.skipped else ""
        out.append(f"{'not ' if failed else ''}ok {i} {test}{skip}")
    broken = verdict not in (Verdict.PASS, Verdict.FAIL)
    out += [f"# {verdict.name}: {reason}"] if broken else []
    return "\n".join([*out, f"{'not ' if broken else ''}ok {len(lines) + 1} boot", ""])
