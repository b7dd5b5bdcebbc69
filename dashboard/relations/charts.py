"""What the matrix player gets: a frame of names and words, and the numbers as bytes
(docs/adr/0009-matrix-player.md).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from core.mrn.relations import stretches
from dashboard.relations.matrices import Axis, Panel, Picture
from dashboard.relations.pair_views import PairLine, Planted
from dashboard.relations.views import Moments
from dashboard.shared.charts import axis, figure
from dashboard.text import plotly_text
from dashboard.theme import BORDER, MATRIX_SCALES, MUTED, TEXT, faint, ramp

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


# The line of a pair over training, and planted beside learned relatedness. Matrices: above.


_NAMED_UP_TO = 12
_SEED = "#8A939B"


def pair_chart(
    lines: Sequence[PairLine], at: int, *, by_share: bool = False, mean: bool = False, height: int = 220
) -> go.Figure:
    """The correlation of one pair over training, a line per run, with the moment that is shown.

    `by_share`: over the share of training, for runs of other steps. `mean`: the runs are seeds, thin, with
    their mean, thick, and one SD to either side.
    """
    several = len(lines) > 1
    chart = figure(height, margin={"l": 40, "r": 10, "t": 24 if several else 8, "b": 34})
    xs = [np.round(100 * line.shares, 1) if by_share else line.steps for line in lines]
    chart.add_hline(y=0, line={"color": MUTED, "width": 1})
    chart.add_vline(x=float(xs[0][at]), line={"color": BORDER, "width": 6}, layer="below")
    unit = "%{x}% of training" if by_share else "step %{x:,}"
    if mean and several:
        _band(chart, xs[0], np.stack([line.values for line in lines]), unit)
    for place, (line, x) in enumerate(zip(lines, xs, strict=True)):
        colour = MUTED if mean and several else ramp(place) if several else TEXT
        name = f"run {line.run_id}, seed {line.seed}"
        chart.add_scatter(
            x=x.astype(np.float32),
            y=line.values.astype(np.float32),
            mode="lines" if mean and several else "lines+markers",
            name="each seed" if mean else name,
            showlegend=not mean or place == 0,
            line={"color": colour, "width": 1 if mean and several else 1.8},
            marker={"size": 4, "color": colour},
            hovertemplate=f"{name}, {unit}: %{{y:.3f}}<extra></extra>",
        )
    chart.update_xaxes(
        axis("Share of training, %" if by_share else "Step", showgrid=False, rangemode="tozero")
    )
    chart.update_yaxes(axis("", range=[-1.05, 1.05], tickvals=[-1, -0.5, 0, 0.5, 1]))
    if several:
        legend = {
            "orientation": "h",
            "x": 0,
            "y": 1.02,
            "yanchor": "bottom",
            "font": {"size": 11, "color": MUTED},
        }
        chart.update_layout(showlegend=True, legend=legend)
    return chart


def _band(chart: go.Figure, x: np.ndarray, values: np.ndarray, unit: str) -> None:
    mean, spread = values.mean(axis=0), values.std(axis=0, ddof=1)
    there = np.concatenate([x, x[::-1]]).astype(np.float32)
    edges = np.concatenate([mean + spread, (mean - spread)[::-1]]).clip(-1, 1).astype(np.float32)
    chart.add_scatter(
        x=there,
        y=edges,
        fill="toself",
        fillcolor=faint(_SEED, 0.25),
        line={"width": 0},
        mode="lines",
        hoverinfo="skip",
        name="± 1 SD",
    )
    chart.add_scatter(
        x=x.astype(np.float32),
        y=mean.astype(np.float32),
        customdata=spread.astype(np.float32),
        mode="lines",
        name=f"mean of {len(values)} seeds",
        line={"color": TEXT, "width": 3},
        hovertemplate=f"mean, {unit}: %{{y:.3f}} ± %{{customdata:.3f}}<extra></extra>",
    )


def planted_chart(planted: Planted, colours: Mapping[str, str], *, height: int = 300) -> go.Figure:
    """Learned correlation with the real task over planted relatedness: a point in each simulated task's
    colour, named where there is room.
    """
    chart = figure(height, margin={"l": 52, "r": 16, "t": 16, "b": 44})
    chart.add_hline(y=0, line={"color": MUTED, "width": 1})
    pairs = planted.pairs
    names = [plotly_text(pair.task) for pair in pairs]
    chart.add_scatter(
        x=np.array([pair.ami for pair in pairs], dtype=np.float32),
        y=np.array([pair.learned for pair in pairs], dtype=np.float32),
        mode="markers+text" if len(pairs) <= _NAMED_UP_TO else "markers",
        text=names,
        textposition="top center",
        textfont={"size": 12, "color": TEXT},
        marker={"size": 10, "color": [colours.get(pair.task, TEXT) for pair in pairs]},
        cliponaxis=False,
        hovertemplate="%{text}: planted %{x:.3f}, learned %{y:.3f}<extra></extra>",
    )
    lowest = min((pair.learned for pair in pairs), default=0.0)
    chart.update_xaxes(axis("Planted: adjusted mutual information", range=[-0.03, 1.03]))
    chart.update_yaxes(axis("Learned correlation", range=[min(-0.12, 1.15 * lowest), 1.08]))
    return chart
