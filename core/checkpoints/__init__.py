"""What a run keeps on disk while it trains and afterwards: its best model, its last training states. Needs no
torch: what goes into the folders is written by others.
"""

from core.checkpoints.folders import Checkpoint, checkpoint_seconds
from core.checkpoints.sealed import Damaged

__all__ = ["Checkpoint", "Damaged", "checkpoint_seconds"]
