"""Mapping files of runs, kept in the laboratory under a hash of their content.

A run names the kept copy, so it stays what it was when the researcher's own file changes later.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from pathlib import Path, PurePath

from core.mrn.alignments.mapping_file import MappingFile
from core.paths import upload_dir

__all__ = ["keep_mapping"]

_NAME_LENGTH = 60


def keep_mapping(mapping: MappingFile) -> Path:
    """Stores the file; returns where it is kept.

    The same content under the same name is kept once, and a kept file is found again where it is.
    """
    digest = hashlib.sha256(mapping.content).hexdigest()[:12]
    stem = PurePath(mapping.name).stem.removesuffix(f"-{digest}")
    slug = re.sub(r"[^A-Za-z0-9_-]+", "-", stem).strip("-")[:_NAME_LENGTH] or "mapping"
    folder = upload_dir() / "mappings"
    folder.mkdir(exist_ok=True)
    kept = folder / f"{slug}-{digest}.csv"
    if not kept.exists():
        # Written beside, then moved in place: all of it or nothing, whoever else stores the same.
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as beside:
            beside.write(mapping.content)
        os.replace(beside.name, kept)
    return kept
