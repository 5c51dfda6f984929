#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Pictures of the measurements, in one file: build/report.html (make report).

It shows the results of earlier commands in build/: the lab of each port (ARCH/lab.json, of
make lab), its verdict on Linux's patch code (linux.json, of make lab-linux), the figures
(bench.json, of make bench), and the kernels there can be (features.json, of make features).
It boots each port under -icount with function_graph on, and shows the boot's calls as a
timeline and as a flame graph. The file needs no network.

Ends with 0, with 2 if something is not there: one line says which command makes it.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import layout  # noqa: E402
from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: E402
from lib import port, program, qemu  # noqa: E402
from lib.guest import Guest  # noqa: E402
from lib.qmp import socket_args  # noqa: E402

# The calls of a boot, without the time that a task sleeps.
BOOT = ("ftrace=function_graph trace_buf_size=8M trace_options=nosleep-time "
        'run="echo 0 > /sys/kernel/tracing/tracing_on"')


def read(path: Path, command: str, key: str):
    """The result of an earlier command."""
    try:
        value = json.loads(path.read_text())[key]
    except OSError as error:
        raise qemu.UsageError(f"{path}: {error.strerror}; it is made by: {command}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise qemu.UsageError(f"{path}: not what {command} writes: {error!r}") from None
    if not value:  # a picture of nothing would look like one of no harm
        raise qemu.UsageError(f"{path}: {key} is empty: {command} has not come to its end")
    return value


def boot(arch: str) -> dict:
    """The calls of a boot on 4 CPUs to the first prompt, and the lines it prints."""
    with tempfile.TemporaryDirectory() as folder:
        qmp = f"{folder}/qmp"
        with Guest(arch, smp=4, icount=0, append=BOOT,
                   extra=socket_args(qmp)) as guest:
            said = [line.strip() for line in guest.boot_text.splitlines()
                    if line.startswith(("nopl ", "sites: "))]

            def extracted(form: str) -> str:
                done = subprocess.run(
                    [qemu.ROOT / "build/host/extract", "--elf", guest.machine.elf,
                     "--qmp", qmp, "--format", form, "-o", f"{folder}/{form}"],
                    text=True, capture_output=True, check=False)
                if done.returncode:
                    raise qemu.UsageError(done.stderr.strip())
                return Path(folder, form).read_text()

            return {"said": said,
                    "timeline": layout.timeline(json.loads(extracted("chrome"))["traceEvents"]),
                    "flames": layout.flames(extracted("folded").splitlines())}


def commit() -> str:
    """The tree's commit."""
    done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=qemu.ROOT,
                          text=True, capture_output=True, check=False)
    return done.stdout.strip() or "unknown"


def page(folder: Path, arches: list[str]) -> str:
    """The whole report."""
    linux = {arch: port.read(arch).get("linux", {}) for arch in arches}
    figures = [f for f in read(folder / "bench.json", "make bench", "bench")
               if f["arch"] in linux]
    features = [f for f in read(folder / "features.json", "make features", "features")
                if f["arch"] in linux]
    judged = [f for f in read(folder / "linux.json", "make lab-linux", "linux")
              if f["architecture"] in linux]
    labs = {}
    for arch in arches:
        command = f"make lab ARCH={arch}"
        lab = {"schemes": read(folder / arch / "lab.json", command, "schemes"),
               "summary": read(folder / arch / "lab.json", command, "summary")}
        labs[arch] = lab | {"rows": layout.matrix(lab)}
    env = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True,
                      undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return env.get_template("page.html").render(
        commit=commit(), labs=labs, figures=layout.bars(figures, linux), features=features,
        judged=judged,
        boots={arch: boot(arch) for arch in arches})


def main() -> int:
    """Read, boot, write."""
    parser = argparse.ArgumentParser(
        prog="tools/report/report.py", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("arch", nargs="*", help="default: all")
    parser.add_argument("--input", metavar="FOLDER", type=Path, default=qemu.ROOT / "build",
                        help="with the other commands' files (default build)")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path,
                        default=qemu.ROOT / "build" / "report.html")
    args = parser.parse_args()
    try:
        text = page(args.input, args.arch or port.architectures())
        args.output.write_text(text)
    except AssertionError as error:  # a guest's, with its console behind the first line
        raise qemu.UsageError(str(error).splitlines()[0]) from None
    except OSError as error:
        raise qemu.UsageError(f"{args.output}: {error.strerror}") from None
    print(f"report: {args.output}")
    return 0


if __name__ == "__main__":
    program.end_with(main)
