"""A loop for tests of turns, in a module of its own: its process imports no more than it needs."""

from __future__ import annotations

import time

import torch

from tests.benchmarks.turns import Between


def sleeper(seconds: float, turns: Between) -> None:
    """Steps of nothing but waiting, a third of it not the loop's own."""
    turns.tell(warming=turns.warming)
    while not turns.between():
        turns.saw(3, torch.tensor(4), 5)
        time.sleep(seconds)
        turns.discount(seconds / 3)
