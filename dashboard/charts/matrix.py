"""What the matrix player gets: a frame of names and words, and the numbers as bytes
(docs/adr/0009-matrix-player.md).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.mrn.rows import stretches
from dashboard.queries.relations_course import Moments
from dashboard.queries.relations_picture import Axis, Panel, Picture
from dashboard.theme import MATRIX_SCALES, MUTED

__all__ = ["player_frame", "player_numbers"]

Floats = NDArray[np.floating]

# The largest of these whole numbers stands for the panel's limit, the least for what is no number.
_EXACT, _ROUGH = np.int16, np.int8


def player_numbers(picture: Picture, name: str, identity: str) -> bytes:
    """All matrices at all moments: the length of a JSON header, the header, whole numbers.

    A correlation is off by 1/65,534 at most; a mean of a block of features by 1/254.
    """
    dtype = _EXACT if picture.rows.block == picture.columns.block == 1 else _ROUGH
    symmetric = picture.rows == picture.columns
    blobs, panels, offset = [], [], 0
    for panel in picture.panels:
        steps, rows, columns = panel.values.shape
        values = panel.values[:, *np.triu_indices(rows)] if symmetric else panel.values.reshape(steps, -1)
        blob = _whole(values, panel.limit, dtype).tobytes()
        panels.append(
            {
                "bits": 8 * np.dtype(dtype).itemsize,
                "limit": panel.limit,
                "rows": rows,
                "columns": columns,
                "steps": steps,
                "size": values.shape[1],
                "triangle": symmetric,
                "offset": offset,
                "bytes": len(blob),
            }
        )
        blobs.append(blob)
        offset += len(blob)
    header = json.dumps({"name": name, "id": identity, "panels": panels}).encode()
    return b"".join([struct.pack("<I", len(header)), header, *blobs])


def _whole(
    values: Floats, limit: float, dtype: type[np.signedinteger[Any]]
) -> NDArray[np.signedinteger[Any]]:
    info = np.iinfo(dtype)
    known = np.isfinite(values)
    scaled = np.rint(np.clip(np.where(known, values, 0) / limit, -1, 1) * info.max)
    return np.asarray(np.where(known, scaled, info.min).astype(np.dtype(dtype).newbyteorder("<")))


def player_frame(
    picture: Picture, moments: Moments, colours: Mapping[str, str], *, blocks: bool
) -> dict[str, Any]:
    """Everything but the numbers. `colours` are the tasks'. `blocks`: rows of the same tasks stand together,
    so their blocks get borders and names.
    """
    mode, rows, columns = picture.mode, picture.rows, picture.columns
    named = mode != "feature" or rows.block == columns.block == 1
    blocks = blocks and mode == "label"
    owners = {task for axis in (rows, columns) for of in axis.rows.owners for task in of}
    legend = [{"name": task, "colour": colours[task]} for task in colours if task in owners]
    return {
        "mode": mode,
        "named": named,
        "stretches": blocks,
        "edges": _edges(rows) if blocks and rows == columns else [],
        "rows": _axis(rows, mode, colours) | {"legend": legend if mode == "label" else []},
        "columns": _axis(columns, mode, colours),
        "panels": [_panel(panel, moments) for panel in picture.panels],
        "moments": {"steps": list(moments.steps), "shares": [round(share, 4) for share in moments.shares]},
        "scales": MATRIX_SCALES,
    }


def _edges(axis: Axis) -> list[int]:
    return [top for top, _ in stretches(axis.rows.owners) if top]


def _axis(axis: Axis, mode: str, colours: Mapping[str, str]) -> dict[str, Any]:
    rows = axis.rows
    # Within the block of its task a label needs no task's name before it.
    short = [
        name.partition(":")[2] or name if mode == "label" and len(owners) == 1 else name
        for name, owners in zip(rows.names, rows.owners, strict=True)
    ]
    return {
        "names": list(rows.names),
        "short": [name.removeprefix("feature ") for name in short] if mode == "feature" else short,
        "groups": [_group(owners) for owners in rows.owners],
        "colours": [_colour(owners, colours) for owners in rows.owners],
        "stretches": [
            [top, bottom, _group(rows.owners[top]), _colour(rows.owners[top], colours)]
            for top, bottom in stretches(rows.owners)
        ],
        "block": axis.block,
        "start": axis.first[0],
        "stop": axis.first[-1] + axis.block,
    }


def _group(owners: tuple[str, ...]) -> str:
    return " + ".join(owners) if len(owners) <= 2 else f"{len(owners)} tasks"


def _colour(owners: tuple[str, ...], colours: Mapping[str, str]) -> str:
    if not owners:
        return ""
    return colours.get(owners[0], MUTED) if len(owners) == 1 else MUTED


def _panel(panel: Panel, moments: Moments) -> dict[str, Any]:
    return {
        "title": panel.title,
        "scale": panel.scale,
        "limit": panel.limit,
        "impossible": [[b.top, b.bottom, b.left, b.right] for b in panel.impossible],
        # Where all runs have the same steps, the slider tells them.
        "steps": [] if moments.exact else list(panel.steps),
    }
