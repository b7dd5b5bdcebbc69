"""Parts of figures for several pages: bands, marks of kept epochs, a legend on top. No Streamlit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dashboard.theme import BACKGROUND

LEGEND_ON_TOP: dict[str, Any] = {
    "orientation": "h",
    "x": 0,
    "y": 1,
    "yanchor": "bottom",
    "font": {"size": 11},
}


def band(x: NDArray[Any], low: NDArray[Any], high: NDArray[Any], colour: str) -> dict[str, Any]:
    """A filled shape from low to high, a trace without a tooltip."""
    return {
        "x": np.concatenate([x, x[::-1]]).astype(np.float32),
        "y": np.concatenate([high, low[::-1]]).astype(np.float32),
        "fill": "toself",
        "fillcolor": colour,
        "mode": "lines",
        "line": {"width": 0},
        "hoverinfo": "skip",
    }


def kept_mark(x: float, y: float, colour: str, size: int) -> dict[str, Any]:
    """The diamond at the epoch of the kept checkpoint."""
    marker = {"symbol": "diamond", "size": size, "color": colour, "line": {"color": BACKGROUND, "width": 1.5}}
    return {"x": [x], "y": [y], "mode": "markers", "marker": marker, "hoverinfo": "skip"}
