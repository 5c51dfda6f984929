#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Print compile_commands.json for the C files named on the command line.

compile_commands.py 'COMPILER FLAGS' 'SITE FLAGS' FILE...: files of kernel/ are
compiled with the site flags as well, the others without.
"""
import json
import os
import shlex
import sys

common, site_flags, *files = sys.argv[1:]
commands = []
for name in files:
    flags = shlex.split(common)
    if name.startswith("kernel/"):
        flags += shlex.split(site_flags)
    commands.append({"directory": os.getcwd(), "file": name,
                     "arguments": flags + ["-c", name]})
json.dump(commands, sys.stdout, indent=1)
print()
