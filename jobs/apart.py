"""How a process is started that shall outlive the one that starts it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

__all__ = ["APART"]

APART: dict[str, Any] = {"stdin": subprocess.DEVNULL, "start_new_session": True}
"""Options of Popen: a session of its own, so that neither a terminal's Ctrl-C nor its end reaches it."""

if sys.platform == "win32":  # start_new_session means nothing there
    APART["creationflags"] = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
