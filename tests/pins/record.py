"""Record the present behaviour anew: `python -m tests.pins.record [PYTEST ARGUMENTS]`.

Runs the tests of this folder; where one would fail, it writes what it sees to `recorded/`. Look at the diff
before it is committed: every changed line is a change that a user sees. The gzipped stores are the exception:
they stand for stores that people have, and are made only where they are missing.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.pins.recorded import RECORDING

if __name__ == "__main__":
    os.environ[RECORDING] = "1"
    sys.exit(pytest.main(["-n", "0", str(Path(__file__).parent), *sys.argv[1:]]))
