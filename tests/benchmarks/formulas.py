"""Whether equation (6) is found again in data made from it with unit noise, and what that costs.

`python -m tests.benchmarks.formulas --seeds 1101,1103,1105,1107,1109` makes 1,002 rows with each seed. It
prints, for the formula that is chosen: nodes (at most 15), MSE on the rows held out (at most 2; the noise
is 1), seconds (at most 120 on two cores) and processor seconds. The last line has the worst of each, and how
many formulas keep to the first two limits.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from core.transfer.formulas import PUBLISHED, learn
from tests.benchmarks._harness import arguments, print_json

ALPHA_AMI = (
    *(0, 0.13, 0.17, 0.21, 0.27, 0.34, 0.43, 0.55, 0.57),
    *(0.6, 0.63, 0.68, 0.71, 0.75, 0.8, 0.85, 0.91, 1),
)

Table = dict[str, NDArray[np.float64]]


def published_ranges(rows: int, seed: int) -> Table:
    """Factors drawn from the values of the paper's section 5.1."""
    random = np.random.default_rng(seed)
    return {
        "n": random.choice(np.arange(1000.0, 20_001.0, 500.0), rows),
        "T": random.integers(1, 16, rows).astype(float),
        "AMI": random.choice(ALPHA_AMI, rows),
    }


def equation_6_data(rows: int, seed: int) -> tuple[Table, NDArray[np.float64]]:
    """Such factors, and F1 by equation (6) with unit noise."""
    table = published_ranges(rows, seed)
    (equation_6,) = (each for each in PUBLISHED if each.equation == 6)
    noise = np.random.default_rng(seed + 1).normal(0, 1, rows)
    return table, equation_6.value(table) + noise


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seeds", default="1101,1103,1105,1107,1109", help="of the data sets")
    args = parser.parse_args()
    figures = []
    for seed in [1101] if args.quick else map(int, args.seeds.split(",")):
        table, f1 = equation_6_data(60 if args.quick else 1002, seed)
        began, began_cpu = time.perf_counter(), time.process_time()
        chosen = (learn(table, f1, searches=1) if args.quick else learn(table, f1)).chosen
        seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - began_cpu
        figures.append((chosen.length, chosen.test_mse, seconds, cpu_seconds))
        print_json(
            {"seed": seed, "nodes": chosen.length, "test_mse": round(chosen.test_mse, 2)}
            | {"seconds": round(seconds), "cpu_seconds": round(cpu_seconds), "formula": chosen.text()}
        )
    nodes, test_mse, seconds, cpu_seconds = np.max(figures, axis=0).tolist()
    print_json(
        {"found": sum(each[0] <= 15 and each[1] <= 2 for each in figures), "data_sets": len(figures)}
        | {"nodes": int(nodes), "test_mse": round(test_mse, 2)}
        | {"seconds": round(seconds), "cpu_seconds": round(cpu_seconds)}
    )


if __name__ == "__main__":
    main()
