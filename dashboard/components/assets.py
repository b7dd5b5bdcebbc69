"""The files the components are made of, and Plotly's own script out of the installed package."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from importlib.resources import files
from pathlib import Path

import plotly

__all__ = ["plotly_url", "read_asset"]

STATIC = Path(__file__).resolve().parent.parent / "static"


def read_asset(name: str) -> str:
    """The text of a script or style sheet beside this file."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache
def plotly_url() -> str | None:
    """Where the browser finds Plotly, relative to the page; None where it could not be put there.

    Streamlit serves files only out of the app's own `static` folder, so the script of the installed
    package is copied there once per version. No network is involved.
    """
    name = f"plotly-{plotly.__version__}.min.js"
    target = STATIC / name
    if not target.is_file():
        script = files("plotly").joinpath("package_data", "plotly.min.js").read_bytes()
        try:
            STATIC.mkdir(exist_ok=True)
            # Written aside and renamed: another session may be reading or writing the same file.
            with tempfile.NamedTemporaryFile(dir=STATIC, suffix=".part", delete=False) as part:
                part.write(script)
            os.chmod(part.name, 0o644)
            os.replace(part.name, target)
        except OSError:
            return None
    return f"app/static/{name}"
