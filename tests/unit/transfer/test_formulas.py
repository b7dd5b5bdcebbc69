"""Formulas learned from a table, and published ones."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest
import sympy

from core.errors import MRNLabError
from core.transfer import formulas
from core.transfer.formulas import PUBLISHED, Published, learn, nodes
from tests.benchmarks.formulas import equation_6_data, published_ranges

pytest.importorskip("pyoperon", reason="formulas are learned with pyoperon: pip install 'mrnlab[formulas]'")


@pytest.mark.slow
def test_equation_6_is_learned_from_data_made_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a third of the default's searches, of which a sixth is simplified. `tests.benchmarks.formulas` has
    the defaults and five data sets.
    """
    for name, value in {"_KEPT": 5, "_KEPT_PER_LENGTH": 1}.items():
        monkeypatch.setattr(formulas, name, value)
    learned = learn(*equation_6_data(1002, 501), seed=3, searches=16)
    assert learned.chosen.test_mse <= 2  # the noise alone is 1
    assert learned.chosen.length <= 15
    assert learned.linear_mse < learned.constant_mse
    assert (learned.train_rows, learned.test_rows) == (902, 100)


def test_a_seed_gives_one_front_and_the_front_improves_with_length(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"_EVALUATIONS": 20_000, "_KEPT": 3, "_KEPT_PER_LENGTH": 1}.items():
        monkeypatch.setattr(formulas, name, value)
    table = published_ranges(60, 1)
    f1 = 3 * np.sqrt(table["n"]) + np.random.default_rng(2).normal(0, 1, 60)
    first, again = (learn(table, f1, seed=3, searches=2) for _ in range(2))
    assert [formula.text() for formula in first.front] == [formula.text() for formula in again.front]
    lengths = [formula.length for formula in first.front]
    errors = [formula.train_mse for formula in first.front]
    assert lengths == sorted(set(lengths))
    assert errors == sorted(errors, reverse=True)
    assert first.chosen.test_mse < first.linear_mse
    assert r"\sqrt{n}" in first.chosen.latex()
    symbols = {name: sympy.Symbol(name) for name in table}
    for formula in first.front:  # what is shown is what was judged, with no function but those asked for
        shown = sympy.sympify(formula.text(), locals=symbols)
        assert shown.atoms(sympy.Function) <= shown.atoms(sympy.log, sympy.exp)
        assert nodes(shown) == formula.length


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("n", 1), ("0.69*sqrt(n)", 4), ("a - b", 3), ("a/b", 3), ("1/b", 3), ("a*a", 3), ("n**0.25*1.5", 5),
        ("-0.5*a + exp(b)", 6), ("sqrt((log(T) + 0.45)*(AMI*n/(AMI + 0.6)))", 13), ("a/sqrt(b)", 4),
    ],
)  # fmt: skip
def test_the_length_of_a_formula(text: str, length: int) -> None:
    assert nodes(sympy.sympify(text)) == length


def test_published_formulas_have_the_values_of_their_equations() -> None:
    n, tasks, ami = np.array([2000.0, 9000.0]), np.array([1.0, 7.0]), np.array([0.0, 0.4])
    table = {"n": n, "T": tasks, "AMI": ami, "n_ner": n, "n_syn": 3 * n}
    by_hand = {
        3: np.sqrt(n) * 0.69,
        4: np.sqrt(ami) / 0.015,
        5: np.sqrt(tasks) * 20,
        6: np.sqrt((np.log(tasks) + 0.45) * (ami * n / (ami + 0.6))),
        7: np.sqrt(n),
        8: np.sqrt(3 * n) * 0.69,
        9: np.sqrt(2 * ami) / 0.026,
        10: np.log(np.sqrt(tasks) + np.log(tasks)) / 0.039,
        11: np.sqrt(np.log(n / 0.38) * (np.sqrt(tasks) + tasks)) * np.sqrt(3 * n * ami) / 10,  # of 1,000
    }
    assert [each.equation for each in PUBLISHED] == list(by_hand)
    for each in PUBLISHED:
        values = each.value(table)
        np.testing.assert_allclose(values, by_hand[each.equation])
        assert each.error(table, values + 2) == pytest.approx(4)


PRINTED = {
    3: r"\sqrt{n}*0.69",
    4: r"\sqrt{AMI}/0.015",
    5: r"\sqrt{T}*20",
    6: r"\sqrt{(log(T)+0.45)*(AMI*n/(AMI+0.6))}",  # the paper closes one bracket more than it opens
    7: r"\sqrt{n_{ner}}",
    8: r"\sqrt{n_{syn}}*0.69",
    9: r"\sqrt{2*AMI}/0.026",
    10: r"log(\sqrt{T}+log(T))/0.039",
    11: r"(\sqrt{log(n_{ner}/0.38)*(\sqrt{T}+T)})*\sqrt{n_{syn}*AMI}",
}
"""The right sides of the paper's equations in its LaTeX."""


@pytest.mark.parametrize("published", PUBLISHED, ids=lambda each: each.equation)
def test_published_formulas_are_those_printed(published: Published) -> None:
    text = re.sub(r"_\{(\w+)\}", r"_\1", PRINTED[published.equation])
    printed = sympy.sympify(text.replace("\\sqrt{", "sqrt(").replace("}", ")"))
    assert sympy.sympify(published.text) == printed
    assert {str(symbol) for symbol in printed.free_symbols} == set(published.factors)


def test_without_pyoperon_a_sentence_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyoperon.sklearn", None)
    table = published_ranges(30, 1)
    with pytest.raises(MRNLabError, match=r"pip install 'mrnlab\[formulas\]'"):
        learn(table, table["n"])
    with pytest.raises(ValueError, match="19 rows are too few"):
        learn({}, np.zeros(19))
