"""How much disk runs will fill: what past ones have left, else a rough guess."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from core.config import RunConfig
from core.corpora import summarise
from core.models.registry import ENCODERS, base_name
from core.paths import checkpoint_dir, home
from core.store import RunState, Store

__all__ = ["Disk", "disk"]

# The newest runs that succeeded, among which one of the kind is looked for: bounded, however many there are.
_NEWEST = 400
# Megabytes of a fine-tuned encoder's checkpoint, where no run has left one yet; of bare heads it is nothing.
_ROUGH_MB = {"minilm": 90.0}
_ROUGH_OTHER_MB = 500.0
_SUBWORDS_PER_WORD = 1.4
_BYTES = 4  # of a number of a frozen encoder's features
_OTHER_FEATURES = 768


@dataclass(frozen=True)
class Disk:
    """Bytes that runs will leave behind, and bytes that are free where they are kept."""

    needed: float
    free: float

    @property
    def short(self) -> bool:
        """Whether the runs would fill more than nine tenths of what is free."""
        return self.needed > 0.9 * self.free


def disk(store: Store, configs: Sequence[RunConfig]) -> Disk:
    """How much disk these runs will fill: their checkpoints, and the features of frozen encoders.

    Raises MRNLabError where a corpus cannot be read.
    """
    kinds = dict.fromkeys((one.encoder, one.encoder_training) for one in configs)
    left = {kind: _checkpoint_bytes(store, *kind) for kind in kinds}
    checkpoints = sum(left[one.encoder, one.encoder_training] for one in configs)
    return Disk(checkpoints + _feature_bytes(configs), float(shutil.disk_usage(home()).free))


def _checkpoint_bytes(store: Store, encoder: str, training: str) -> float:
    """What the newest such run has left, else a guess."""
    for run in store.runs(states={RunState.SUCCEEDED}, limit=_NEWEST, archived=None):
        if (run.config.encoder, run.config.encoder_training) == (encoder, training) and run.checkpoint:
            size = sum(path.stat().st_size for path in checkpoint_dir(run.id).rglob("*") if path.is_file())
            if size:  # else it was removed by hand
                return float(size)
    return 0.0 if training == "frozen" else 1e6 * _ROUGH_MB.get(base_name(encoder), _ROUGH_OTHER_MB)


def _feature_bytes(configs: Iterable[RunConfig]) -> float:
    """The features of each frozen encoder and each set of sentences, four bytes a number, once."""
    texts = {
        (one.corpus, one.columns, base_name(one.encoder), one.fraction, one.seed if one.fraction < 1 else 0)
        for one in configs
        if one.encoder_training == "frozen"
    }
    total = 0.0
    for corpus, columns, encoder, fraction, _ in texts:
        features = ENCODERS[encoder].features if encoder in ENCODERS else _OTHER_FEATURES
        words = fraction * summarise(corpus, columns).splits["train"].tokens
        total += _BYTES * features * _SUBWORDS_PER_WORD * words
    return total
