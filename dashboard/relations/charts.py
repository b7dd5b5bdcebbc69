"""The data that the browser draws on Relations: the player's names and numbers, a pair's line.

The player gets everything but the numbers as JSON, and the numbers as bytes (docs/adr/0009-matrix-player.md).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.evaluation.relation_verdicts import NEGLIGIBLE, OPPOSED, RELATED, UNDECIDED, RelationVerdicts
from core.figures import Chart, Figure, axis
from core.mrn.relations import stretches
from core.wording import without_shared
from dashboard.relations.matrices import Axis, Picture
from dashboard.relations.views import AlignedSteps, Floats, Trajectory, signed
from dashboard.shared.figures import LEGEND_ON_TOP, band
from dashboard.theme import BORDER, MATRIX_SCALES, MUTED, TEXT, faint, ramp

_SEED = "#8A939B"


def player_numbers(picture: Picture, name: str, identity: str) -> bytes:
    """All matrices at all steps as bytes.
    They are the length of a JSON header, the header, integers (little-endian), and after a panel's integers
    its variances in float32.

    The largest integer stands for the panel's limit, the smallest for NaN. A correlation is off by at most
    1/65,534, a mean of a block of features by 1/254. Of symmetric matrices the upper triangle is sent.
    """
    dtype = np.dtype("<i2" if picture.rows.block == picture.columns.block == 1 else "<i1")
    blobs, panels, offset = [], [], 0
    for panel in picture.panels:
        steps, rows, columns = panel.values.shape
        symmetric = picture.rows == picture.columns
        values = panel.values[:, *np.triu_indices(rows)] if symmetric else panel.values.reshape(steps, -1)
        blob = _integers(values, panel.limit, dtype).tobytes()
        spread = panel.variances.astype("<f4").tobytes()
        panels.append(
            {"bits": 8 * dtype.itemsize, "limit": panel.limit, "rows": rows, "columns": columns}
            | {"steps": steps, "size": values.shape[1], "triangle": symmetric}
            | {"offset": offset, "bytes": len(blob), "variances": len(spread)}
        )
        blobs += [blob, spread]
        offset += len(blob) + len(spread)
    header = json.dumps({"name": name, "id": identity, "panels": panels}).encode()
    return b"".join([struct.pack("<I", len(header)), header, *blobs])


def _integers(values: Floats, limit: float, dtype: np.dtype[Any]) -> NDArray[np.signedinteger[Any]]:
    info = np.iinfo(dtype)
    finite = np.isfinite(values)
    scaled = np.rint(np.clip(np.where(finite, values, 0) / limit, -1, 1) * info.max)
    return np.asarray(np.where(finite, scaled, info.min).astype(dtype))


def player_frame(
    picture: Picture, steps: AlignedSteps, colours: Mapping[str, str], *, blocks: bool
) -> dict[str, Any]:
    """The player's data without its numbers. `colours` are the tasks'.
    `blocks`: rows of the same tasks are neighbours, so their blocks get borders and names.
    """
    mode, rows, columns = picture.mode, picture.rows, picture.columns
    named = mode != "feature" or blocks or rows.block == columns.block == 1
    blocks = blocks and mode == "label"
    edges = [top for top, _ in stretches(rows.rows.owners) if top] if blocks and rows == columns else []
    owners = {task for tasks in (*rows.rows.owners, *columns.rows.owners) for task in tasks}
    legend = [{"name": task, "colour": colours[task]} for task in colours if task in owners]
    panels = [
        {
            "title": panel.title,
            "scale": panel.scale,
            "limit": panel.limit,
            "impossible": [[b.top, b.bottom, b.left, b.right] for b in panel.impossible],
            "variances": bool(panel.variances.size),
            "verdicts": None if panel.verdicts is None else verdict_codes(panel.verdicts),
            # Where all runs have the same steps, the slider tells them.
            "steps": [] if steps.exact else list(panel.steps),
        }
        for panel in picture.panels
    ]
    return {
        "mode": mode,
        "named": named,
        "stretches": blocks,
        "edges": edges,
        "rows": _axis(rows, mode, colours) | {"legend": legend if mode == "label" else []},
        "columns": _axis(columns, mode, colours),
        "panels": panels,
        "steps": list(steps.steps),
        "shares": [round(share, 4) for share in steps.shares],
        "most_variance": max(
            float(np.nan_to_num(p.variances, posinf=0).max(initial=1)) for p in picture.panels
        ),
        "scales": MATRIX_SCALES,
    }


_CODES = {UNDECIDED: "1", RELATED: "2", OPPOSED: "3", NEGLIGIBLE: "4"}
_UNTESTED, _DIAGONAL = "0", "5"


def verdict_codes(verdicts: RelationVerdicts) -> dict[str, Any]:
    """The verdicts as the player reads them, of the upper triangle with the diagonal, row by row.

    A character a cell, and the bounds of the interval in thousandths, 0 where a cell is not tested.
    """
    upper = np.triu_indices(len(verdicts.mean))
    tested = verdicts.tested[upper]
    words = np.array([_CODES[str(word)] for word in verdicts.verdict[upper]], dtype="<U1")
    codes = np.where(upper[0] == upper[1], _DIAGONAL, np.where(tested, words, _UNTESTED))
    bounds = {
        side: np.rint(1000 * np.where(tested, bound[upper], 0)).astype(int).tolist()
        for side, bound in (("low", verdicts.low), ("high", verdicts.high))
    }
    return {"codes": "".join(codes.tolist()), **bounds}


def _axis(drawn: Axis, mode: str, colours: Mapping[str, str]) -> dict[str, Any]:
    names, owners = drawn.rows.names, drawn.rows.owners
    # Within the block of its task a label needs no task's name before it.
    short = [
        name.partition(":")[2] or name if mode == "label" and len(tasks) == 1 else name
        for name, tasks in zip(names, owners, strict=True)
    ]
    if mode == "task":
        short = list(without_shared(names).values())
    short_tasks = without_shared(list(dict.fromkeys(task for tasks in owners for task in tasks)))
    groups = [
        " + ".join(short_tasks[task] for task in tasks) if len(tasks) <= 2 else f"{len(tasks)} tasks"
        for tasks in owners
    ]
    shades = [colours.get(tasks[0], MUTED) if len(tasks) == 1 else MUTED if tasks else "" for tasks in owners]
    return {
        "names": list(names),
        # A block of features is named after its first.
        "short": [name.split(" …")[0].removeprefix("feature ") for name in short]
        if mode == "feature"
        else short,
        "groups": groups,
        "colours": shades,
        "stretches": [[top, bottom, groups[top], shades[top]] for top, bottom in stretches(owners)],
        "block": drawn.block,
        "start": drawn.start,
        "stop": drawn.stop,
    }


def pair_chart(
    trajectories: Sequence[Trajectory],
    values: Floats,
    at: int,
    height: int = 200,
    *,
    by_share: bool = False,
    mean: bool = False,
) -> Figure:
    """The correlation of one pair over training (runs, k), a line per run, with the position that is shown.

    `by_share`: over the share of training, for runs of other steps. `mean`: the runs are seeds, thin, with
    their mean, thick, and one SD to either side.
    """
    several = len(values) > 1
    mean = mean and several
    chart = Chart(height, margin={"l": 40, "r": 10, "t": 24 if several else 8, "b": 34})
    xs = [np.round(100 * of.shares, 1) if by_share else of.steps for of in trajectories]
    chart.add_line(y=0, line={"color": MUTED, "width": 1})
    chart.add_line(x=float(xs[0][at]), line={"color": BORDER, "width": 6}, layer="below")
    unit = "%{x}% of training" if by_share else "step %{x:,}"
    if mean:
        _add_mean(chart, xs[0], values, unit)
    for index, (trajectory, x, line) in enumerate(zip(trajectories, xs, values, strict=True)):
        colour = MUTED if mean else ramp(index) if several else TEXT
        name = f"run {trajectory.run.id}, seed {trajectory.run.config.seed}"
        chart.add(
            "scatter",
            x=x.astype(np.float32),
            y=line.astype(np.float32),
            mode="lines" if mean else "lines+markers",
            name="each seed" if mean else name,
            showlegend=not mean or index == 0,
            line={"color": colour, "width": 1 if mean else 1.8},
            marker={"size": 4, "color": colour},
            text=[signed(value, 3) for value in line],
            hovertemplate=f"{name}, {unit}: %{{text}}<extra></extra>",
        )
    title = "Share of training, %" if by_share else "Step"
    chart.layout["xaxis"] = axis(title, showgrid=False, rangemode="tozero")
    chart.layout["yaxis"] = axis("", range=[-1.05, 1.05], tickvals=[-1, -0.5, 0, 0.5, 1])
    if several:
        legend = LEGEND_ON_TOP | {"y": 1.02, "font": {"size": 11, "color": MUTED}}
        chart.layout |= {"showlegend": True, "legend": legend}
    return chart.figure()


def _add_mean(chart: Chart, x: NDArray[Any], values: Floats, unit: str) -> None:
    mean, spread = values.mean(axis=0), values.std(axis=0, ddof=1)
    low, high = (mean - spread).clip(-1, 1), (mean + spread).clip(-1, 1)
    chart.add("scatter", **band(x, low, high, faint(_SEED, 0.25)), name="± 1 SD")
    chart.add(
        "scatter",
        x=x.astype(np.float32),
        y=mean.astype(np.float32),
        text=[f"{signed(at, 3)} ± {sd:.3f}" for at, sd in zip(mean, spread, strict=True)],
        mode="lines",
        name=f"mean of {len(values)} seeds",
        line={"color": TEXT, "width": 3},
        hovertemplate=f"mean, {unit}: %{{text}}<extra></extra>",
    )
