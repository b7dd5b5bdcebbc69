"""Formulas learned from a table by symbolic regression, and published ones to judge beside them.

Bettgenhäuser, Hedderich and Klakow (2020) learned formulas of F1 with gplearn. Here pyoperon searches
(Burlacu, Kronberger and Kommenda, 2020): genetic programming with least squares for the constants. Needs no
torch.
"""

from __future__ import annotations

import ast
import math
import os
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sympy
from numpy.typing import NDArray

from core.errors import MRNLabError

Column = NDArray[np.float64]
Table = Mapping[str, Column]
"""Factors by name, one value for each row."""

OPERATORS, _UNDER_ROOT = "add,sub,mul,div,log,sqrt,exp", "add,sub,mul,div,log"
_HELD_OUT = 0.1
_SEARCHES, _EVALUATIONS, _ROWS, _SEARCHED_LENGTH = 48, 300_000, 150, 12
_LONGEST = 15
_KEPT_PER_LENGTH, _KEPT = 2, 30
_SELDOM = 0.1
_DIGITS = 4


@dataclass(frozen=True)
class Formula:
    """An expression (of sympy) with its mean squared errors on the fitted rows and on the held-out rows.

    `length` counts operators, functions, factors and constants.
    """

    expression: Any
    length: int
    train_mse: float
    test_mse: float

    def text(self) -> str:
        """In plain text, as `sqrt(n)*0.69`."""
        return str(self.expression)

    def latex(self) -> str:
        """In LaTeX."""
        return str(sympy.latex(self.expression, ln_notation=False))


@dataclass(frozen=True)
class Learned:
    """The Pareto front of error against length, the shortest first.

    Each formula fits better than all shorter ones, and has at most 15 nodes. `linear_mse` and `constant_mse`
    are the errors of a linear fit and of the mean, on the rows held out.
    """

    front: tuple[Formula, ...]
    linear_mse: float
    constant_mse: float
    train_rows: int
    test_rows: int

    @property
    def chosen(self) -> Formula:
        """The best formula by the Bayesian information criterion on the rows it was fitted on.

        A node counts as a parameter. Raises ValueError where the front is empty.
        """
        return min(self.front, key=lambda each: _information(each, self.train_rows))


def learn(table: Table, y: Column, seed: int = 1, *, searches: int = _SEARCHES) -> Learned:
    """Formulas of y, found on nine tenths of the rows and judged on the others.

    Each search sees at most 150 of the rows, drawn for it: many short searches find more than a few long
    ones. Every fourth looks for y, the others for y² (where y is seldom negative) with + − × ÷ and log alone,
    and the root is taken of what they find: F1 grows with roots, and what stands under one is found sooner
    without it. Constants are fitted on all nine tenths. The number of formulas that are tried is fixed: a
    seed gives the same result on one machine, with any number of cores.

    Raises MRNLabError where pyoperon is not installed, ValueError for fewer than 20 rows.
    """
    if len(y) < 20:
        raise ValueError(f"{len(y)} rows are too few to learn a formula from and judge it")
    from sklearn.linear_model import LinearRegression

    order = np.random.default_rng(seed).permutation(len(y))
    held_out = max(1, round(_HELD_OUT * len(y)))
    every_row = _Data(table, y)
    held, data = every_row.rows(order[:held_out]), every_row.rows(order[held_out:])
    rooted = bool(np.mean(y < 0) <= _SELDOM)

    def search(number: int) -> list[Any]:
        drawn = np.random.default_rng([seed, number]).permutation(len(data.y))[:_ROWS]
        return _search(data.rows(drawn), seed + number, squared=rooted and number % 4 > 0)

    with warnings.catch_warnings(), ThreadPoolExecutor(os.cpu_count()) as pool:
        warnings.simplefilter("ignore")
        candidates = [data.judged(each) for front in pool.map(search, range(searches)) for each in front]
    best = sorted(candidates, key=lambda each: _information(each, len(data.y)))[:_KEPT]
    kept = dict.fromkeys(each.expression for each in [*_front(candidates, _KEPT_PER_LENGTH), *best])
    fitted = [formula for expression in kept for formula in _simplified(data, expression)]
    judged = [
        replace(each, test_mse=error)
        for each in _front([each for each in fitted if each.length <= _LONGEST], 1)
        if math.isfinite(error := held.judged(each.expression).train_mse)
    ]
    linear = LinearRegression().fit(data.matrix, data.y).predict(held.matrix)
    return Learned(
        tuple(judged),
        float(np.mean((linear - held.y) ** 2)),
        float(np.mean((data.y.mean() - held.y) ** 2)),
        len(data.y),
        len(held.y),
    )


def _information(formula: Formula, rows: int) -> float:
    """The Bayesian information criterion, a node counting as a parameter."""
    return rows * math.log(formula.train_mse or 1e-300) + formula.length * math.log(rows)


def _is_defined(expression: Any) -> bool:
    return not expression.has(sympy.zoo, sympy.oo, sympy.nan, sympy.I)


@dataclass(frozen=True)
class _Data:
    """Rows to fit or to judge formulas on."""

    table: Table
    y: Column

    @property
    def matrix(self) -> Column:
        return np.column_stack(list(self.table.values()))

    def rows(self, chosen: NDArray[np.int64]) -> _Data:
        return _Data({name: column[chosen] for name, column in self.table.items()}, self.y[chosen])

    def judged(self, expression: Any) -> Formula:
        """The formula as it is, its error infinite where it is not defined for a row."""
        error = math.inf
        if _is_defined(expression):
            with np.errstate(all="ignore"):
                values = np.asarray(sympy.lambdify(list(self.table), expression)(*self.table.values()))
            if not np.iscomplexobj(values) and np.isfinite(values).all():
                error = float(np.mean((values - self.y) ** 2))
        return Formula(expression, nodes(expression), error, math.nan)

    def fitted(self, expression: Any) -> Formula:
        """The formula with its constants fitted by least squares, in a few digits."""
        from scipy.optimize import least_squares

        constants = sorted(expression.atoms(sympy.Float), key=str)
        names = sympy.symbols(f"c0:{len(constants)}")
        open_form = expression.xreplace(dict(zip(constants, names, strict=True)))
        if not constants or not _is_defined(expression):
            return self.judged(expression)
        function = sympy.lambdify([*self.table, *names], open_form)

        def residuals(values: Column) -> Column:
            with np.errstate(all="ignore"):
                off = np.asarray(function(*self.table.values(), *values)) - self.y
            return np.broadcast_to(np.nan_to_num(np.clip(off.real, -1e6, 1e6), nan=1e6), self.y.shape)

        start = np.array(constants, dtype=float)
        best = least_squares(residuals, start, x_scale=np.abs(start) + 1e-9, max_nfev=20).x
        # A constant on the edge of what a root allows may fit best, and fail once it is rounded.
        shown = [
            self.judged(open_form.xreplace(dict(zip(names, map(_rounded, values), strict=True))))
            for values in (start, best)
        ]
        return min(shown, key=lambda each: each.train_mse)


def _rounded(value: float) -> Any:
    """The constant in a few digits."""
    text = f"{value:.{_DIGITS}g}"
    return sympy.Integer(1) if text == "1" else sympy.Float(text, _DIGITS)


def _search(data: _Data, seed: int, *, squared: bool) -> list[Any]:
    """The Pareto front of one search, as expressions.

    Where the search was for y², they are the roots of its results.
    """
    try:
        from pyoperon.sklearn import SymbolicRegressor
    except ImportError:
        raise MRNLabError(
            "Formulas are learned with pyoperon, which is not installed; install it with "
            "pip install 'mrnlab[formulas]'."
        ) from None

    regressor = SymbolicRegressor(
        allowed_symbols=f"{_UNDER_ROOT if squared else OPERATORS},constant,variable",
        objectives=["mse", "length"],
        max_length=_SEARCHED_LENGTH,
        optimizer_iterations=5,
        generations=1_000_000,
        max_evaluations=_EVALUATIONS,
        epsilon=1e-9,
        random_state=seed,
    )
    regressor.fit(data.matrix, data.y**2 if squared else data.y)
    texts = [
        regressor.get_model_string(model["tree"], 9, list(data.table)) for model in regressor.pareto_front_
    ]
    expressions = [_parsed(text, data.table) for text in texts]
    if not squared:
        return expressions
    # Where F1 is about 0, a constant slightly below 0 under the root leaves the formula undefined.
    return [
        sympy.sqrt(part) for expression in expressions for part in (expression, expression.as_coeff_Add()[1])
    ]


def _parsed(text: str, table: Table) -> Any:
    """An expression in which the names of the table are factors."""
    return sympy.sympify(text, locals={name: sympy.Symbol(name) for name in table})


def _simplified(data: _Data, expression: Any) -> Iterator[Formula]:
    """The fitted formula in simpler variants: as it is, with factors taken out, with constants left out.

    One constant after another is left out, as long as the information criterion improves.
    """

    def factored(power: Any) -> Any:
        return sympy.Pow(sympy.factor(power.base), power.exp)

    for form in (expression, expression.replace(lambda part: part.is_Pow, factored)):
        best = data.fitted(form)
        yield best
        while True:
            constants = sorted(best.expression.atoms(sympy.Float), key=str)
            shorter = [
                data.fitted(best.expression.xreplace({constant: sympy.Integer(value)}))
                for constant in constants
                for value in (0, 1)
            ]
            shortest = min([best, *shorter], key=lambda each: _information(each, len(data.y)))
            if shortest is best:
                break
            best = shortest
            yield best


def _front(formulas: list[Formula], kept: int) -> list[Formula]:
    """The best `kept` expressions of each length, where they are better than all shorter ones."""
    front: list[Formula] = []
    least = math.inf
    for length in sorted({formula.length for formula in formulas}):
        same_length = sorted((f for f in formulas if f.length == length), key=lambda each: each.train_mse)
        front += [formula for formula in same_length[:kept] if formula.train_mse < least]
        least = min(least, same_length[0].train_mse)
    return front


def nodes(expression: Any) -> int:
    """The number of operators, functions, factors and constants in a written expression."""
    written = ast.walk(ast.parse(str(expression), mode="eval"))
    return sum(isinstance(node, ast.BinOp | ast.Name | ast.Constant) for node in written)


@dataclass(frozen=True)
class Published:
    """A formula of the paper as printed: its equation, F1 times `scale` as a function of factors.

    Also the printed MSE of F1 in [0, 1] (times 10,000 in percent); None where none is printed.
    """

    equation: int
    text: str
    factors: tuple[str, ...]
    printed_mse: float | None = None
    scale: int = 100

    def value(self, table: Table) -> Column:
        """F1 in percent, with logarithms and roots as gplearn has them, which never fail."""
        gplearn = {
            "log": lambda x: np.where(np.abs(x) > 1e-3, np.log(np.maximum(np.abs(x), 1e-3)), 0.0),
            "sqrt": lambda x: np.sqrt(np.abs(x)),
        }
        function = sympy.lambdify(self.factors, _parsed(self.text, table), [gplearn, "numpy"])
        values = np.asarray(function(*(table[factor] for factor in self.factors)), dtype=np.float64)
        return values * (100 / self.scale)

    def error(self, table: Table, y: Column) -> float:
        """The mean squared error on these rows, F1 in percent."""
        return float(np.mean((self.value(table) - y) ** 2))


PUBLISHED: tuple[Published, ...] = (
    Published(3, "sqrt(n)*0.69", ("n",), 0.027),
    Published(4, "sqrt(AMI)/0.015", ("AMI",), 0.034),
    Published(5, "sqrt(T)*20", ("T",), 0.072),
    Published(6, "sqrt((log(T) + 0.45)*(AMI*n/(AMI + 0.6)))", ("n", "T", "AMI"), 0.009),
    Published(7, "sqrt(n_ner)", ("n_ner",)),
    Published(8, "sqrt(n_syn)*0.69", ("n_syn",)),
    Published(9, "sqrt(2*AMI)/0.026", ("AMI",)),
    Published(10, "log(sqrt(T) + log(T))/0.039", ("T",)),
    Published(
        11, "sqrt(log(n_ner/0.38)*(sqrt(T) + T))*sqrt(n_syn*AMI)", ("n_ner", "n_syn", "T", "AMI"), scale=1000
    ),
)
"""Equations (3) to (6) of balanced and (7) to (11) of unbalanced data.

F1 was scaled by 100 or 1,000 (section 4), the paper does not say where: (11), from 64 to 1,305 on its cells,
is read as 1,000.
"""
