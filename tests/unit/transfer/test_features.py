"""Features of tasks and pairs against values computed by hand, and loss logs read from files."""

from __future__ import annotations

from dataclasses import replace
from math import log, sqrt
from pathlib import Path

import numpy as np
import pytest

from core.corpora.types import Corpus, Sentence, Task
from core.errors import CorpusError
from core.transfer.features import (
    CURVE_FEATURES,
    FEATURES,
    GRADIENTS,
    Features,
    LossCurve,
    curve_features,
    data_features,
    label_ami,
    pair_values,
    read_loss_log,
)


def _sentence(words: str, **labels: str) -> Sentence:
    return Sentence(tuple(words.split()), {task: tuple(text.split()) for task, text in labels.items()})


TRAIN = (
    _sentence("a b a", x="P Q P", y="1 2 1"),
    _sentence("c c", x="P P"),
    _sentence("z z z z", y="1 1 1 2"),
)
CORPUS = Corpus(
    "small",
    (Task("x", "plain", ("P", "Q")), Task("y", "plain", ("1", "2"))),
    TRAIN,
    (),
    (_sentence("a d", x="P Q"),),
)


def test_data_features_by_hand() -> None:
    features = data_features(CORPUS, "x", {"a", "c"}.__contains__)
    # Words of x: a 2, b 1, c 2; labels P 4, Q 1. Test: a 1, d 1.
    train, test = np.array([0.4, 0.2, 0.4, 0]), np.array([0.5, 0, 0, 0.5])
    middle = (train + test) / 2

    def divergence(p: np.ndarray) -> float:
        return float(sum(share * log(share / other) for share, other in zip(p, middle, strict=True) if share))

    assert features == pytest.approx(
        {
            "size": 2,
            "labels": 2,
            "tokens_per_type": 5 / 3,
            "oov_rate": 1 / 5,
            "label_entropy": -(0.8 * log(0.8) + 0.2 * log(0.2)),
            "frobenius_norm": sqrt(2**2 + 1 + 2**2),
            "jsd": (divergence(train) + divergence(test)) / 2,
        }
    )


def test_no_test_sentences_leave_no_divergence_and_no_training_ones_are_an_error() -> None:
    assert np.isnan(data_features(CORPUS, "y", lambda _: True)["jsd"])
    with pytest.raises(CorpusError, match="small: no training sentence is annotated for the task y"):
        data_features(replace(CORPUS, train=TRAIN[1:2]), "y", lambda _: True)


def test_divergence_is_0_for_equal_and_ln_2_for_disjoint_words() -> None:
    equal = replace(CORPUS, test=(_sentence("c a b c a", x="P P P P P"),))
    disjoint = replace(CORPUS, test=(_sentence("e f", x="P P"),))
    assert data_features(equal, "x", bool)["jsd"] == pytest.approx(0, abs=1e-12)
    assert data_features(disjoint, "x", bool)["jsd"] == pytest.approx(log(2))


def test_label_ami_is_of_the_words_that_both_label() -> None:
    # On "a b a" the labels of x and y are the same but for their names.
    assert label_ami(CORPUS, "x", "y") == pytest.approx(1)
    assert np.isnan(label_ami(replace(CORPUS, train=TRAIN[1:]), "x", "y"))


def test_gradients_of_a_parabola() -> None:
    steps = np.arange(1, 1001)
    values = curve_features(steps, 1e-6 * (steps - 2000.0) ** 2).values
    for name, share in GRADIENTS.items():  # 10 points in the window, made odd, keep a parabola's slope
        assert values[name] == pytest.approx(2e-6 * (share * 1000 - 2000), rel=1e-9)


def test_gradients_are_smoothed() -> None:
    steps = np.arange(10, 25_001, 10)
    noise = np.random.default_rng(0).normal(scale=0.05, size=len(steps))
    values = curve_features(steps, 2 - 0.5 * np.log1p(0.01 * steps) + noise).values
    # Central differences of single points would be off by 0.05 / (√2 · 10) = 3.5e-3; the slope is -5e-3 ·
    # 0.04.
    assert values["gradient_10"] == pytest.approx(-0.005 / 26, abs=4e-4)


@pytest.mark.parametrize(("a", "c", "b"), [(-0.4, 0.02, 3.0), (0.3, 1.5, 1.0), (-1.0, 0.002, 2.5)])
def test_log_curve_is_recovered_whatever_its_d(a: float, c: float, b: float) -> None:
    steps = np.arange(10, 5001, 10, dtype=np.float64)
    for d in (1.0, 7.0):
        losses = a * np.log(d * c * steps + d) + b
        values = curve_features(steps, losses + 1e-3 * np.random.default_rng(0).normal(size=500)).values
        assert values["curve_a"] == pytest.approx(a, rel=0.01)
        assert values["curve_c"] == pytest.approx(c, rel=0.05)


@pytest.mark.parametrize(
    ("losses", "gradient", "note"),
    [
        (np.full(50, 0.7), 0.0, "The loss curve is constant, which determines no c."),
        (2 - np.arange(1, 51) / 100, -0.01, "The loss curve is straight, which determines no c."),
        (
            np.log(np.arange(1, 51)),
            None,
            "The loss curve has bent before its first point, which determines no c.",
        ),
        (np.array([3.0, 2.0, 1.0]), np.nan, "The loss curve has 3 points; 10 are needed."),
        (np.full(50, np.nan), np.nan, "The loss curve has 0 points; 10 are needed."),
    ],
)
def test_curves_that_determine_nothing_are_nan_with_a_note(
    losses: np.ndarray, gradient: float | None, note: str
) -> None:
    features = curve_features(np.arange(1, len(losses) + 1), losses)
    assert features.notes[-1] == note
    assert np.isnan([features.values["curve_a"], features.values["curve_c"]]).all()
    if gradient is not None:
        gradients = [features.values[name] for name in GRADIENTS]
        assert gradients == pytest.approx([gradient] * 5, nan_ok=True, abs=1e-12)


def test_losses_that_are_not_finite_are_left_out() -> None:
    steps = np.arange(1, 101, dtype=np.float64)
    losses = 3 - 0.4 * np.log1p(0.1 * steps)
    losses[[3, 60]] = np.nan, np.inf
    features = curve_features(steps, losses)
    assert features.notes == ("2 losses not finite, left out.",)
    assert features.values["curve_a"] == pytest.approx(-0.4)
    with pytest.raises(ValueError, match="do not fit"):
        curve_features(steps, losses[1:])
    with pytest.raises(ValueError, match="increase"):
        curve_features(steps[::-1], losses)


@pytest.mark.parametrize("power", [-1000, 1000])
def test_features_of_tiny_and_of_huge_losses_scale_with_them(power: int) -> None:
    steps = np.arange(1, 101)
    losses = 3 - 0.4 * np.log1p(0.1 * steps)
    usual, scaled = (curve_features(steps, losses * scale).values for scale in (1, 2.0**power))
    assert scaled == {
        name: value if name == "curve_c" else value * 2.0**power for name, value in usual.items()
    }


@pytest.mark.parametrize(
    ("losses", "slope", "note"),
    [
        ([1e308 * (-1) ** step for step in range(50)], 0, "The loss curve has bent"),
        ([10.0**power for power in range(309)], 18.315 * 5.5e153, "The loss curve is straight"),
        ([1e308] + [2 - step / 100 for step in range(49)], -0.01, "The loss curve has bent"),
        ([1.7e308 * log(1 + i / 1000) / log(1.05) for i in range(50)], 3.4e306, "The losses are too large"),
    ],
)
def test_the_features_of_a_diverged_run_do_not_overflow(losses: list[float], slope: float, note: str) -> None:
    features = curve_features(np.arange(1, len(losses) + 1), losses)
    assert np.isfinite([features.values[name] for name in GRADIENTS]).all()
    assert features.values["gradient_50"] == pytest.approx(slope, rel=0.01)
    assert features.notes[-1].startswith(note)
    assert np.isnan([features.values["curve_a"], features.values["curve_c"]]).all()


def test_a_pair_has_42_features_and_no_ratio_to_zero() -> None:
    main = Features(dict.fromkeys(FEATURES, 3.0) | {"jsd": np.nan})
    aux = Features(dict.fromkeys(FEATURES, 2.0) | {"oov_rate": 0.0})
    values = pair_values([("m", "a")], {"m": main, "a": aux}).iloc[0].to_dict()
    assert len(values) == 42
    assert (values["main size"], values["aux size"], values["main/aux size"]) == (3, 2, 1.5)
    assert np.isnan([values["main/aux oov_rate"], values["main/aux jsd"], values["main jsd"]]).all()
    assert pair_values([("m", "a")], {"m": main, "a": aux}, CURVE_FEATURES).shape == (1, 21)


def test_a_loss_log_has_a_curve_for_each_task(tmp_path: Path) -> None:
    log_file = tmp_path / "loss_tr.log"
    log_file.write_text(
        "Iter 10, task mwe, loss 2.39\nIter 12, task chunk, big, loss nan\n\nIter 20, task mwe, loss 2.29\n"
    )
    curves = read_loss_log(log_file)
    assert list(curves) == ["mwe", "chunk, big"]
    assert isinstance(curves["mwe"], LossCurve)
    np.testing.assert_array_equal([curves["mwe"].steps, curves["mwe"].losses], [[10, 20], [2.39, 2.29]])


def test_of_a_restarted_run_the_last_loss_of_a_step_counts(tmp_path: Path) -> None:
    log_file = tmp_path / "loss_tr.log"
    runs = [(10, 1.5), (20, 1.4), (30, 1.3), (10, 1.9), (20, 1.8), (30, 1.6), (40, 1.5), (20, 1.7)]
    log_file.write_text("".join(f"Iter {step}, task a, loss {loss}\n" for step, loss in runs))
    curve = read_loss_log(log_file)["a"]
    np.testing.assert_array_equal([curve.steps, curve.losses], [[10, 20, 30, 40], [1.9, 1.7, 1.6, 1.5]])
    assert curve.superseded == 4


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"Iter 10, task a, loss 2.4\nEpoch 2\n", "line 2: expected `Iter N, task T, loss L`, not 'Epoch 2'"),
        (b"Iter 10, task a, loss 2.4x\n", "line 1: the loss '2.4x' is not a number"),
        (
            b"Iter 9, task a, loss 1\nIter 0, task a, loss 1\n",
            "line 2: the step '0' is not from 1 to 9,007,199,",
        ),
        (
            b"Iter 9007199254740992, task a, loss 1\n",
            "'9007199254740992' is not from 1 to 9,007,199,254,740,991;",
        ),
        (b"Iter 1" + b"0" * 309 + b", task a, loss 1\n", "line 1: the step '1000"),
        (b"Iter 1" + b"0" * 9999 + b", task a, loss 1\n", "(10,000 characters)' is not from 1"),
        (b"\n", "is empty"),
        (b"\xff", "line 1: byte 0xff at position 1 is not UTF-8"),
        (None, "check the name"),
    ],
)
def test_a_wrong_loss_log_names_file_and_line(tmp_path: Path, content: bytes | None, message: str) -> None:
    log_file = tmp_path / "loss_tr.log"
    if content is not None:
        log_file.write_bytes(content)
    with pytest.raises(CorpusError) as caught:
        read_loss_log(log_file)
    assert str(log_file) in str(caught.value)
    assert message in str(caught.value)
