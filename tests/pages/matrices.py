"""The matrices on the Relations page, read back as the browser reads them."""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from streamlit.testing.v1 import AppTest

from core.events import RunFacts, Snapshot
from core.mrn.relations import Relations
from core.store import Store
from tests.making import claimed, run_facts

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Shown:
    """The frame of the player; each panel's matrices (k, n, m) and variances (k, n), if any."""

    frame: dict[str, Any]
    panels: list[Floats]
    variances: list[Floats]

    @property
    def titles(self) -> list[str]:
        return [panel["title"] for panel in self.frame["panels"]]


def unpacked(numbers: bytes) -> tuple[dict[str, Any], list[Floats], list[Floats]]:
    """The header, the matrices and the variances of what `player_numbers` wrote; NaN where was no number."""
    (length,) = struct.unpack("<I", numbers[:4])
    header, place = json.loads(numbers[4 : 4 + length]), 4 + length
    sizes = [of["size"] * of["bits"] // 8 + (of["variances"] and 4 * of["rows"]) for of in header["panels"]]
    body = zlib.decompress(numbers[place + sum(sizes) :])
    matrices, variances = [], []
    for panel in header["panels"]:
        dtype = np.dtype(f"<i{panel['bits'] // 8}")
        start, rows, columns = panel["offset"], panel["rows"], panel["columns"]
        added = np.frombuffer(body[start : start + panel["bytes"]], dtype).reshape(
            panel["steps"], panel["size"]
        )
        whole = np.cumsum(added, axis=0, dtype=dtype).astype(float)
        shown_first = numbers[place : place + panel["size"] * dtype.itemsize]
        assert np.frombuffer(shown_first, dtype).tolist() == whole[-1].tolist()
        place += sizes.pop(0)
        whole[whole == np.iinfo(dtype).min] = np.nan
        whole = whole / np.iinfo(dtype).max * panel["limit"]
        if panel["triangle"]:
            square = np.zeros((panel["steps"], rows, columns))
            above = np.triu_indices(rows)
            square[:, above[0], above[1]] = square[:, above[1], above[0]] = whole
            matrices.append(square)
        else:
            matrices.append(whole.reshape(-1, rows, columns))
        end = start + panel["bytes"]
        of_panel = np.frombuffer(body[end : end + panel["variances"]], "<f4").astype(float)
        variances.append(of_panel.reshape(-1, rows))
    return header, matrices, variances


def shown(app: AppTest) -> Shown:
    """What the page shows. Frame and numbers must belong together."""
    parts = app.get("bidi_component")
    frames = [json.loads(part.proto.json) for part in parts if part.proto.component_name == "mrnlab_matrix"]
    numbers = [part.proto.bytes for part in parts if part.proto.component_name == "mrnlab_matrix_feed"]
    assert (len(frames), len(numbers)) == (1, 1)
    header, panels, variances = unpacked(numbers[0])
    assert (header["name"], header["id"]) == (frames[0]["name"], frames[0]["id"])
    assert len(panels) == len(frames[0]["panels"])
    return Shown(frames[0], panels, variances)


def _list(app: AppTest) -> dict[str, Any]:
    parts = app.get("bidi_component")
    (data,) = (part.proto.json for part in parts if part.proto.component_name == "mrnlab_relation_list")
    return dict(json.loads(data))


def lines(app: AppTest) -> list[dict[str, Any]]:
    """The lines of the list of pairs, as the browser gets them."""
    return list(_list(app)["lines"])


def listed(app: AppTest) -> pd.DataFrame:
    """The list of pairs as it reads, with the full names of both rows."""
    data = _list(app)
    columns = ["First", "Second", *(column["name"] for column in data["columns"])]
    return pd.DataFrame([[*line["pair"], *line["cells"]] for line in data["lines"]], columns=columns)


def number(text: str) -> float:
    """The number that a cell begins with."""
    return float(text.split(" ")[0].replace("−", "-"))


def matrix(size: int, **pairs: float) -> np.ndarray:
    """Correlations: `_01=0.5` is that of rows 0 and 1."""
    values = np.eye(size)
    for name, value in pairs.items():
        values[int(name[1]), int(name[2])] = values[int(name[2]), int(name[1])] = value
    return values


def learned_run(learned: Relations, facts: RunFacts | None = None, **values: Any) -> int:
    """A running run with one snapshot."""
    store = Store.open()
    run_id = claimed(store, **values)
    store.set_facts(run_id, facts or run_facts())
    store.add_snapshot(run_id, Snapshot(10, 1.0, learned))
    store.close()
    return run_id


def of_tasks(task: NDArray[Any], diagonal: float = 1.0) -> Relations:
    """These relations of tasks; nothing else is related."""
    return Relations(task, np.eye(4), np.zeros((16, 0)), diagonal)
