"""From blocks of interleaved trainings to figures: of each, and ratios with their spread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from transformers import PretrainedConfig

from tests.benchmarks.turns import Block, Memory

__all__ = [
    "figures",
    "flops_of",
    "joined",
    "peak_flops",
    "ratio",
    "step_seconds",
    "words_per_cpu_second",
    "words_per_second",
]

_BF16_TFLOPS = {"NVIDIA H200": 790.0}
"""What matrix products in bfloat16 were measured to reach, by the beginning of the GPU's name."""


def joined(blocks: Sequence[Block], turns: int) -> list[Block]:
    """So many blocks together, one after another."""
    return [sum(blocks[start : start + turns], Block()) for start in range(0, len(blocks), turns)]


def words_per_second(block: Block) -> float:
    """Of the corpus's words."""
    return block.words / block.seconds


def words_per_cpu_second(block: Block) -> float:
    """The same of the processor's time, which other programs lengthen less; of all threads together."""
    return block.words / block.cpu_seconds


def step_seconds(block: Block) -> float:
    """By the clock."""
    return block.seconds / block.steps


def ratio(
    ours: Sequence[Block], theirs: Sequence[Block], of: Callable[[Block], float] = words_per_second
) -> dict[str, Any]:
    """The median of ours over theirs, pair by pair, with its quartiles, and that of all together."""
    ratios = [of(one) / of(other) for one, other in zip(ours, theirs, strict=True)]
    lower, middle, upper = np.quantile(ratios, [0.25, 0.5, 0.75]).tolist()
    return {
        "median": round(middle, 3),
        "quartiles": [round(lower, 3), round(upper, 3)],
        "pairs": len(ratios),
        "total": round(of(sum(ours, Block())) / of(sum(theirs, Block())), 3),
    }


def figures(
    blocks: Sequence[Block], memory: Memory, flops: Callable[[Block], float], peak: float | None
) -> dict[str, Any]:
    """What is printed of one variant; `flops` is what its subwords need, padding left out."""
    total = sum(blocks, Block())
    reached = [flops(block) / block.seconds / 1e12 for block in blocks]
    return {
        "words_per_s": round(float(np.median([words_per_second(block) for block in blocks]))),
        "ms_per_step": round(float(np.median([1000 * step_seconds(block) for block in blocks])), 1),
        "cpu_s_per_step": round(float(np.median([block.cpu_seconds / block.steps for block in blocks])), 3),
        "padding": round(1 - total.subwords / total.places, 4),
        "steps": total.steps,
        "words": total.words,
        "peak_mb": round(memory.peak / 2**20),
        "peak_mb_beyond_imports": round((memory.peak - memory.imports) / 2**20),
        "peak_mb_on_gpu": None if memory.cuda is None else round(memory.cuda / 2**20),
        "useful_tflops": round(float(np.median(reached)), 4),
        "mfu": None if peak is None else round(float(np.median(reached)) / peak, 4),
    }


def flops_of(encoder: PretrainedConfig, rows: int, subwords: float) -> Callable[[Block], float]:
    """How many floating-point operations training on a block needs: three times its forward pass (Kaplan et
    al. 2020, section 2.1), in sentences of so many subwords, with heads of so many rows in all.
    """
    layers, features, inner = encoder.num_hidden_layers, encoder.hidden_size, encoder.intermediate_size
    matrices = 2 * layers * (4 * features**2 + 2 * features * inner)
    attention = 4 * layers * subwords * features
    return lambda block: 3 * (block.subwords * (matrices + attention) + block.words * 2 * rows * features)


def peak_flops(gpu: str | None, half: bool) -> float | None:
    """TFLOP/s that this GPU reaches in bfloat16; None where that is not known here."""
    known = [peak for name, peak in _BF16_TFLOPS.items() if gpu is not None and gpu.startswith(name)]
    return known[0] if known and half else None
