"""Prints the lowest versions of the dependencies that pyproject.toml allows, as constraints of pip."""

import re
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
for text in (*project["dependencies"], *project["optional-dependencies"]["test"]):
    if lowest := re.match(r"([\w.-]+)(?:\[\w+\])?(?:>=|==)([\d.]+)", text):
        print(f"{lowest[1]}=={lowest[2]}")
