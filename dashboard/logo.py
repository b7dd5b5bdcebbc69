"""The product's mark: a small correlation matrix, as wordmark for the sidebar and as icon for the browser's
tab.
"""

from __future__ import annotations

import numpy as np
from PIL import Image

__all__ = ["LOGO", "tab_icon"]

_RED, _ORANGE, _GREY, _BLUE = "#A6212B", "#DE7A5A", "#9BB8CC", "#4A94C8"
_CELLS = ((_RED, _ORANGE, _GREY), (_ORANGE, _RED, _BLUE), (_GREY, _BLUE, _RED))
_NAME = "#3F87A8"  # reads on the light and on the dark sidebar

_SQUARES = "".join(
    f'<rect x="{1 + 8 * column}" y="{4 + 8 * row}" width="7" height="7" rx="1.5" fill="{colour}"/>'
    for row, line in enumerate(_CELLS)
    for column, colour in enumerate(line)
)

LOGO = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 130 32" width="130" height="32">'
    f"{_SQUARES}"
    '<text x="33" y="22.5" font-family="system-ui, sans-serif" font-size="19" font-weight="650" '
    f'fill="{_NAME}">MRN Lab</text></svg>'
)


def tab_icon() -> Image.Image:
    """The matrix as a picture of 48 × 48 points. A named Material icon would be fetched from the network."""
    cells = [[[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in line] for line in _CELLS]
    return Image.fromarray(np.kron(np.array(cells, dtype=np.uint8), np.ones((16, 16, 1), dtype=np.uint8)))
