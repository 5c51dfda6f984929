# SPDX-License-Identifier: MIT
"""Guests' output, read line by line, and the guest itself, of tools/lib."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

from lib.grammar import (  # noqa: E402, F401
    TRACE_LINE, function_events, graph_events, graph_nesting)
from lib.guest import PROMPT, Guest  # noqa: E402, F401
from lib.storm import trace_stats  # noqa: E402, F401
