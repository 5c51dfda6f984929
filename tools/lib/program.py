# SPDX-License-Identifier: MIT
"""How the programs of tools/ end, and arguments that several of them accept."""

import argparse
import os
import re
import sys
from pathlib import Path
from typing import Callable, NoReturn

from lib.port import UsageError


def end_with(main: Callable[[], int]) -> NoReturn:
    """Run a program's main() and end with its status: 2 after a UsageError, 130 after Ctrl-C,
    141 if the reader of the output has ended, as with `| head`. A file that cannot be opened is
    such a mistake, too."""
    try:
        status = main()
        sys.stdout.flush()
    except UsageError as error:
        print(f"tools/{Path(sys.argv[0]).stem}: {error}", file=sys.stderr)
        status = 2
    except KeyboardInterrupt:
        status = 130
    except BrokenPipeError:
        # Python flushes once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 141
    except OSError as error:
        if not error.filename:
            raise
        print(f"tools/{Path(sys.argv[0]).stem}: {error.filename}: {error.strerror}",
              file=sys.stderr)
        status = 2
    sys.exit(status)


def seconds(text: str) -> float:
    """A time that a machine may take."""
    try:
        if 0 < float(text) < float("inf"):
            return float(text)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"'{text}' is no number of seconds above 0")


def regex(text: str) -> str:
    """A regular expression."""
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(
            f"'{text}' is no regular expression: {error}") from None
    return text
