"""How fast the mean and 95% band over 100 runs of 5,000 points is, beside pandas and scipy.

`python -m tests.benchmarks.curves` checks that both give the same numbers, and prints milliseconds (50 are
allowed). What an update of the page costs, `tests.benchmarks.pages` measures.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from core.evaluation.statistics import band
from dashboard.curves.numbers import side_by_side
from tests.benchmarks._harness import arguments, milliseconds, print_json


def main() -> None:
    runs, points = (5, 50) if arguments(__doc__).parse_args().quick else (100, 5000)
    random = np.random.default_rng(3)
    x = np.arange(1.0, points + 1)
    xs = [x.copy() for _ in range(runs)]
    ys = [np.exp(-x / 800) + 0.1 * random.random(points) for _ in range(runs)]

    def exact() -> Any:
        return band(side_by_side(xs, ys)[1])

    def naive() -> pd.DataFrame:
        table = pd.concat([pd.Series(y, index=x) for x, y in zip(xs, ys, strict=True)], axis=1)
        mean, sd, n = table.mean(axis=1), table.std(axis=1), table.count(axis=1)
        half = stats.t.ppf(0.975, n - 1) * sd / np.sqrt(n)
        return pd.DataFrame({"mean": mean, "sd": sd, "low": mean - half, "high": mean + half})

    for name, values in naive().items():
        np.testing.assert_allclose(getattr(exact(), str(name)), values, rtol=1e-9)
    # The shortest of several: other programs only add.
    print_json(
        {"band_ms": round(min(milliseconds(exact, 7)), 2), "naive_ms": round(min(milliseconds(naive, 3)), 2)}
    )


if __name__ == "__main__":
    main()
