"""How long tests wait for what must come: another process, a page, a training.

What comes is found at once, so that only a test that fails takes so long. Machines that run tests are seldom
idle, and how fast they are is not what is tested.
"""

from __future__ import annotations

PATIENCE_S = 180.0
PATIENCE_MS = 1000 * PATIENCE_S
