# SPDX-License-Identifier: MIT
"""Run a program without the system call perf_event_open(): tools/inside.

Its counts would be those of this machine, and not of the guest that the program sees. So the call
fails with ENOSYS, as on a kernel that has none. Standard error says so where the program is perf
and its command counts or samples.
"""

import errno
import os
import sys

import seccomp

# The subcommands of perf that use the control files alone.
HARMLESS = ("ftrace", "list", "version", "--version", "help", "--help")


def refuse_perf() -> None:
    """For this process and all that it becomes."""
    refusal = seccomp.SyscallFilter(seccomp.ALLOW)
    refusal.add_rule(seccomp.ERRNO(errno.ENOSYS), "perf_event_open")
    refusal.load()


def main() -> None:
    """Become the program that the arguments name."""
    args = sys.argv[1:]
    refuse_perf()
    if os.path.basename(args[0]) == "perf" and args[1:] and args[1] not in HARMLESS:
        print(f"tools/inside: perf {args[1]}: perf's own system call counts events of this "
              "machine, not of the guest: refused; perf ftrace and trace-cmd see the guest",
              file=sys.stderr)
    try:
        os.execvp(args[0], args)
    except OSError as error:
        sys.exit(f"tools/inside: {args[0]}: {error.strerror}")


main()
