"""The files that the components are made of, and where the browser finds Plotly's script.

Of Plotly's bundles it is the one of cartesian charts, a third of the whole, which the Python package carries:
the browser has read it four times as fast, and it draws all that our pages draw. It is the file of the npm
package plotly.js-cartesian-dist-min as it is, under its MIT licence, beside it.
"""

from __future__ import annotations

from importlib.resources import files

__all__ = ["plotly_url", "read_asset"]

_PLOTLY = "plotly-cartesian-4.1.1.min.js"


def read_asset(name: str) -> str:
    """The text of a script or style sheet beside this file."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def plotly_url() -> str:
    """Where the browser finds Plotly, relative to the page: Streamlit serves `dashboard/static` there."""
    return f"app/static/{_PLOTLY}"
