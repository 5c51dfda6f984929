# SPDX-License-Identifier: MIT
"""Non-maskable interrupts from outside, as many as QEMU gets in, while sites are
switched endlessly with each strategy, on the machines that have them."""

import re

import pytest
from conftest import ARCHES, FACTS
from lib.qmp import socket_args
from lib.storm import STRATEGIES, TRACING, Injector, off_for
from test_storm import choose

WITH_NMI = pytest.mark.parametrize(
    "arch", [a for a in ARCHES if FACTS[a].get("nmi")], indirect=True)


def nmis(g) -> list[int]:
    """How many NMIs each CPU has counted."""
    line, = (x for x in g.lines("cat /proc/interrupts") if x.endswith("nmi"))
    return [int(n) for n in re.findall(r"\d+", line)[1:]]


@pytest.mark.parametrize("strategy", STRATEGIES)
@WITH_NMI
def test_storm(arch, guest, alone, tmp_path, strategy):
    """All sites go on and off under load, until each CPU has had 100 NMIs. Nothing is
    lost. Several NMIs may arrive as one, so a CPU sees at most as many as were sent."""
    path = tmp_path / "qmp"
    g = guest(arch, smp=4, timeout=180, extra=socket_args(path),
              append=off_for(arch, strategy))
    g.run(f"cd {TRACING}")
    choose(g, strategy)
    before = nmis(g)
    g.run("stress start 2")
    rounds = 0
    with Injector(path) as storm:
        while rounds < 4 or min(nmis(g)) - max(before) <= 100:
            assert g.run("repeat 25 'echo function > current_tracer; "
                         "echo nop > current_tracer'") == ""
            rounds += 1
    assert "none lost" in g.run("stress stop")
    seen = [b - a for a, b in zip(before, nmis(g))]
    assert all(100 < n <= storm.sent for n in seen), (seen, storm.sent)
    assert g.lines("cat enabled_functions") == []
    assert g.poweroff() == 0


@WITH_NMI
def test_calls_from_nmi(arch, guest, alone, tmp_path):
    """Functions that NMIs call are traced, each call once, while sites are switched.
    The kernel sends itself some NMIs in between."""
    path = tmp_path / "qmp"
    g = guest(arch, smp=4, timeout=180, extra=socket_args(path))
    with Injector(path) as storm:
        while storm.sent <= 100:
            assert "ok 1 nmi.storm" in g.run("test nmi.storm")
    assert g.poweroff() == 0


@WITH_NMI
def test_cpus_go(arch, guest, alone, tmp_path):
    """A CPU that is parked, or on its way in or out, survives NMIs too."""
    path = tmp_path / "qmp"
    g = guest(arch, smp=4, timeout=180, extra=socket_args(path))
    with Injector(path):
        g.run("stress start 1 cpus")
        g.run("sleep 3")
        report = g.run("stress stop")
    assert "none lost" in report, report
    assert g.lines("cat /sys/devices/system/cpu/online") == ["0-3"]
    assert g.poweroff() == 0
