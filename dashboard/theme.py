"""The look's constants: one colour per task, one line style per paradigm, one word and icon per state.

Charts name theme colours as CSS variables (`TEXT`, `FAINT`, ...); the chart component resolves them in the
browser, so every figure follows the light and the dark theme without the server knowing which is on.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from core.figures import SERIES
from core.store.types import RunState

TASK_COLOURS = SERIES
_PAIR = re.compile(r"light-dark\((#\w+),(#\w+)\)")

DASHES: Mapping[str, str] = {"stl": "dot", "mtl": "dash", "mrn": "solid", "other": "longdash"}
PARADIGM_NAMES: Mapping[str, str] = {"stl": "STL", "mtl": "MTL", "mrn": "MRN", "other": "Other"}
MARKERS: Mapping[str, str] = {
    "stl": "circle-open",
    "mtl": "square-open",
    "mrn": "circle",
    "other": "diamond-open",
}

TEXT = "var(--st-text-color)"
MUTED = "var(--st-gray-color)"
BORDER = "var(--st-border-color)"
BACKGROUND = "var(--st-background-color)"

# Negative blue, positive red, neutral at zero; the same hues on white and on near-black.
DIVERGING: tuple[tuple[float, str], ...] = (
    (0.0, "#0B4F8A"),
    (0.25, "#4A94C8"),
    (0.5, BACKGROUND),
    (0.75, "#DE7A5A"),
    (1.0, "#A6212B"),
)

# Matrices of correlations. On near-black the ends are the brightest, on white the darkest: what is further
# from zero is further from the page.
MATRIX_SCALE: Mapping[str, tuple[tuple[float, str], ...]] = {
    "light": DIVERGING,
    "dark": ((0.0, "#5FB2F5"), (0.25, "#2F6FA3"), (0.5, BACKGROUND), (0.75, "#9E3A28"), (1.0, "#F2553F")),
}


@dataclass(frozen=True)
class StateLook:
    """How a state is written: its word, its icon (Material), a mark for tables, Streamlit's colour name."""

    word: str
    icon: str
    mark: str
    colour: str


STATES: Mapping[RunState, StateLook] = {
    RunState.QUEUED: StateLook("Queued", ":material/schedule:", "○", "gray"),
    RunState.RUNNING: StateLook("Running", ":material/progress_activity:", "▶", "blue"),
    RunState.CANCELLING: StateLook("Stopping", ":material/stop_circle:", "◼", "gray"),
    RunState.SUCCEEDED: StateLook("Succeeded", ":material/check_circle:", "✓", "green"),
    RunState.FAILED: StateLook("Failed", ":material/error:", "✕", "orange"),
    RunState.CANCELLED: StateLook("Stopped", ":material/cancel:", "⊘", "gray"),
    RunState.LOST: StateLook("Lost", ":material/link_off:", "?", "violet"),
}

# Of a paradigm, on white and on near-black. STL's dotted line needs more than the others in the dark.
PARADIGM_COLOURS: Mapping[str, tuple[str, str]] = {
    "stl": ("#8A939B", "#8A939B"),
    "mtl": ("#56616B", "#C3CBD1"),
    "mrn": ("#306791", "#72A4CC"),
}
# From the smallest λ to the largest, on white and on near-black: a larger one stands out more from the page.
LAMBDA_ENDS: tuple[tuple[str, str], tuple[str, str]] = (("#3E97D6", "#22364C"), ("#296D9C", "#BBDAFC"))

# For other lines. Each has a contrast of 3 to 1 with white and with near-black, and the first six are told
# apart by colour-blind readers too.
RAMP = (
    *("#8A939B", "#DB7814", "#5067EB", "#4DA36C", "#AD46C0"),
    *("#985555", "#D64409", "#2B6E95", "#BD79C2", "#937EFD"),
)


def colours(tasks: Iterable[str], given: Mapping[str, str] | None = None) -> dict[str, str]:
    """Each task's colour: the one given, else the first that none of these tasks has; then they repeat."""
    by_task = {task: (given or {}).get(task) for task in tasks}
    free = [colour for colour in TASK_COLOURS if colour not in by_task.values()]
    following = itertools.chain(free, itertools.cycle(TASK_COLOURS))
    return {task: colour or next(following) for task, colour in by_task.items()}


def ramp(index: int) -> str:
    """The colour of the index-th line in a chart without tasks or configurations."""
    return RAMP[index % len(RAMP)]


def of_theme(light: str, dark: str) -> str:
    """The first colour on the light page, the second on the dark one; components resolve it."""
    return light if light == dark else f"light-dark({light},{dark})"


def lambda_colour(share: float) -> str:
    """The colour of a λ, or of another ordered value, at this share of the way from the smallest shown."""
    light, dark = (_between(*ends, share) for ends in LAMBDA_ENDS)
    return of_theme(light, dark)


def _between(first: str, last: str, share: float) -> str:
    mixed = ((1 - share) * a + share * b for a, b in zip(_rgb(first), _rgb(last), strict=True))
    return "#" + "".join(f"{round(part):02X}" for part in mixed)


def configuration_colours(kinds: Sequence[tuple[str, float | None]]) -> list[str]:
    """The colours of configurations shown together, of which each has a paradigm and a λ (None for none).

    A paradigm has its own colour, whatever stands beside it; MRN with several λ has the ramp of λ. What
    agrees in both with one before it, as MTL over another encoder, has one of the further colours.
    """
    lambdas = sorted({strength for paradigm, strength in kinds if paradigm == "mrn" and strength is not None})
    further = itertools.cycle(RAMP[1:])
    colours: list[str] = []
    taken: set[tuple[str, float | None]] = set()
    for kind in kinds:
        paradigm, strength = kind
        if kind in taken or paradigm not in PARADIGM_COLOURS:
            colours.append(next(further))
        elif paradigm == "mrn" and strength is not None and len(lambdas) > 1:
            colours.append(lambda_colour(lambdas.index(strength) / (len(lambdas) - 1)))
        else:
            colours.append(of_theme(*PARADIGM_COLOURS[paradigm]))
        taken.add(kind)
    return colours


def _rgb(colour: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(colour[1:]))


def faint(colour: str, opacity: float) -> str:
    """A hex colour, or one of each theme, with an opacity, as Plotly takes it."""
    if pair := _PAIR.fullmatch(colour):
        return of_theme(faint(pair[1], opacity), faint(pair[2], opacity))
    red, green, blue = _rgb(colour)
    return f"rgba({red},{green},{blue},{opacity:g})"


def order_tasks(groups: Iterable[Sequence[str]]) -> list[str]:
    """All tasks by first appearance, so that a task keeps its place and colour as more runs are added."""
    return list(dict.fromkeys(task for group in groups for task in group))


# The product's mark is a small correlation matrix, in logo.svg beside its name.
_RED, _ORANGE, _GREY, _BLUE = "#A6212B", "#DE7A5A", "#9BB8CC", "#4A94C8"
_CELLS = ((_RED, _ORANGE, _GREY), (_ORANGE, _RED, _BLUE), (_GREY, _BLUE, _RED))

LOGO = str(Path(__file__).parent / "static" / "logo.svg")


def tab_icon() -> Image.Image:
    """The matrix as a picture of 48 × 48 points. A named Material icon would be fetched from the network."""
    cells = np.array([[_rgb(colour) for colour in row] for row in _CELLS], dtype=np.uint8)
    return Image.fromarray(np.kron(cells, np.ones((16, 16, 1), dtype=np.uint8)))
