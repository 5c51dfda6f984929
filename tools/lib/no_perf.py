"""Run a program without the system call perf_event_open(): tools/inside.

Its counts would be those of this machine, and not of the guest that the program sees. So the call
fails with ENOSYS, as on a kernel that has none; standard error says so where the program is perf
and its command counts or samples.
"""

import ctypes
import os
import platform
import struct
import sys

NUMBERS = {"x86_64": (0xC000003E, 298), "aarch64": (0xC00000B7, 241)}  # audit's machine, the call
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | 38  # 38: ENOSYS
LOAD, IS, RETURN = 0x20, 0x15, 0x06
# What perf does with the control files alone.
HARMLESS = ("ftrace", "list", "version", "--version", "help", "--help")


def refuse_perf() -> bool:
    """For this process and all that it becomes. False: unknown here."""
    if platform.machine() not in NUMBERS:
        return False
    audit, call = NUMBERS[platform.machine()]
    lines = [(LOAD, 0, 0, 4), (IS, 0, 3, audit), (LOAD, 0, 0, 0), (IS, 0, 1, call),
             (RETURN, 0, 0, REFUSE), (RETURN, 0, 0, ALLOW)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *x) for x in lines))

    class Program(ctypes.Structure):
        """struct sock_fprog."""
        _fields_ = [("lines", ctypes.c_ushort), ("code", ctypes.c_void_p)]
    program = Program(len(lines), ctypes.addressof(code))
    return not ctypes.CDLL(None).prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER,
                                       ctypes.byref(program), 0, 0)


def main() -> None:
    """Become the program that the arguments name."""
    args = sys.argv[1:]
    refused = refuse_perf()
    if os.path.basename(args[0]) == "perf" and args[1:] and args[1] not in HARMLESS:
        print(f"tools/inside: perf {args[1]}: perf's own system call counts events of this "
              f"machine, not of the guest: {'refused' if refused else 'not refused here'}; "
              "perf ftrace and trace-cmd see the guest", file=sys.stderr)
    try:
        os.execvp(args[0], args)
    except OSError as error:
        sys.exit(f"tools/inside: {args[0]}: {error.strerror}")


main()
