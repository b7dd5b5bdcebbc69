"""The files that a run keeps on disk: its best model and its last training states.

Needs no torch: other modules write the content of the folders.
"""

from core.checkpoints.folders import Checkpoint, checkpoint_seconds
from core.checkpoints.sealed import Damaged

__all__ = ["Checkpoint", "Damaged", "checkpoint_seconds"]
