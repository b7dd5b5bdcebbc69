"""The linear-chain CRF against the enumeration of every path, with and without illegal moves."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from core.encoding.batches import IGNORED
from core.errors import MRNLabError
from core.models import crf
from core.models.crf import LinearChain
from tests.unit.host_sync import NoHostSync

NAMES = ("O", "B-X", "I-X", "B-Y")
LENGTHS = torch.tensor([3, 0, 1, 5, 1, 4])
WORDS = int(LENGTHS.sum())


@pytest.fixture(params=["scaled", "logarithms", "unread"])
def domain(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ways to compute the loss and the marginals, whatever the scores; `unread` is a GPU's."""
    monkeypatch.setattr(crf, "_SCALED_UP_TO", math.inf if request.param == "scaled" else -math.inf)
    if request.param == "unread":
        monkeypatch.setattr(crf, "_is_readable", lambda tensor: False)


def chain(labels: int = 4, *, legal: bool = False, size: float = 1.0) -> LinearChain:
    """A CRF with random scores in float64."""
    model = LinearChain(NAMES[:labels], "iob2", legal=legal).double()
    generator = torch.Generator().manual_seed(labels)
    for parameter in model.parameters():
        parameter.data = size * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return model


def some_logits(labels: int = 4, size: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(7)
    return size * torch.randn(WORDS, labels, generator=generator, dtype=torch.float64)


def is_legal(path: list[int]) -> bool:
    names = ["O", *(NAMES[number] for number in path)]
    return all(
        now[0] != "I" or (before[0] in "BI" and before[2:] == now[2:])
        for before, now in itertools.pairwise(names)
    )


def sentences(model: LinearChain, logits: Tensor) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Of each sentence that has words: its words, all its allowed paths (P, m), and their scores (P,)."""
    end = 0
    for length in filter(None, LENGTHS.tolist()):
        words = slice(end, end + length)
        end += length
        every = map(list, itertools.product(range(logits.shape[1]), repeat=length))
        paths = torch.tensor([path for path in every if not model.legal or is_legal(path)])
        scores = logits[words][torch.arange(length), paths].sum(dim=1)
        scores = scores + model.transitions[paths[:, :-1], paths[:, 1:]].sum(dim=1)
        yield words, paths, scores + model.start[paths[:, 0]] + model.end[paths[:, -1]]


def true_loss(model: LinearChain, logits: Tensor, labels: Tensor) -> Tensor:
    losses = []
    for words, paths, scores in sentences(model, logits):
        agree = ((paths == labels[words]) | (labels[words] == IGNORED)).all(dim=1)
        losses.append(scores.logsumexp(0) - scores[agree].logsumexp(0))
    return torch.stack(losses).sum()


def gold(model: LinearChain, logits: Tensor, ignored: str) -> Tensor:
    """Labels of a random allowed path of each sentence, with some or all words of some sentences IGNORED."""
    generator = torch.Generator().manual_seed(3)
    labels = torch.empty(WORDS, dtype=torch.int64)
    for words, paths, _ in sentences(model, logits):
        labels[words] = paths[int(torch.randint(len(paths), (1,), generator=generator))]
    if ignored == "some":
        labels[[0, 2, 5, 7]] = IGNORED  # word 3 is a sentence of its own
    elif ignored == "sentences":
        labels[:9] = IGNORED
    return labels


@pytest.mark.usefixtures("domain")
@pytest.mark.parametrize("ignored", ["none", "some", "sentences"])
@pytest.mark.parametrize("legal", [False, True], ids=["free", "legal"])
@pytest.mark.parametrize("labels", [1, 2, 4])
def test_loss_and_gradients_are_those_of_all_paths(labels: int, legal: bool, ignored: str) -> None:
    if legal and labels < 4:
        labels = 3  # the smallest set of labels with illegal moves
    model, logits = chain(labels, legal=legal), some_logits(labels).requires_grad_()
    numbers = gold(model, logits.detach(), ignored)
    loss, truth = model.loss(logits, numbers, LENGTHS), true_loss(model, logits, numbers)
    torch.testing.assert_close(loss, truth)
    wanted = [logits, *model.parameters()]
    gradients = torch.autograd.grad(3 * loss, wanted)
    truths = torch.autograd.grad(3 * truth, wanted, allow_unused=True, materialize_grads=True)
    for gradient, true_gradient in zip(gradients, truths, strict=True):
        torch.testing.assert_close(gradient, true_gradient)


@pytest.mark.usefixtures("domain")
@pytest.mark.parametrize("legal", [False, True], ids=["free", "legal"])
@pytest.mark.parametrize("labels", [3, 4])
def test_marginals_are_those_of_all_paths(labels: int, legal: bool) -> None:
    model, logits = chain(labels, legal=legal), some_logits(labels)
    truth = torch.zeros_like(logits)
    for words, paths, scores in sentences(model, logits):
        chosen = torch.nn.functional.one_hot(paths, labels)
        truth[words] = torch.einsum("p,pmc->mc", scores.softmax(0).detach(), chosen.double())
    torch.testing.assert_close(model.marginals(logits, LENGTHS), truth)


@pytest.mark.parametrize("legal", [False, True], ids=["free", "legal"])
@pytest.mark.parametrize("labels", [1, 2, 3, 4])
def test_decodes_the_best_of_all_paths(labels: int, legal: bool) -> None:
    model, logits = chain(labels, legal=legal, size=2.0), some_logits(labels)
    best = [paths[scores.argmax()] for _, paths, scores in sentences(model, logits)]
    assert torch.equal(model.decode(logits, LENGTHS), torch.cat(best))


def test_without_transitions_each_word_is_labelled_for_itself() -> None:
    """As torch does: of equal logits the lowest label, and the loss is cross-entropy."""
    model = LinearChain(NAMES, "plain")
    logits = torch.randint(0, 3, (WORDS, 4), generator=torch.Generator().manual_seed(0)).float()
    assert torch.equal(model.decode(logits, LENGTHS), logits.argmax(dim=1))
    torch.testing.assert_close(model.marginals(logits, LENGTHS), logits.softmax(dim=1))
    numbers = logits.argmin(dim=1)
    numbers[4] = IGNORED
    cross_entropy = torch.nn.functional.cross_entropy(logits, numbers, ignore_index=IGNORED, reduction="sum")
    torch.testing.assert_close(model.loss(logits, numbers, LENGTHS), cross_entropy)


@pytest.mark.parametrize("transition", [0.0, 30.0, 1e4])
@pytest.mark.parametrize("logit", [1.0, 60.0, 1e4])
@pytest.mark.parametrize("legal", [False, True], ids=["free", "legal"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_large_scores(legal: bool, logit: float, transition: float, dtype: torch.dtype) -> None:
    """Scores are whole numbers, the same in `dtype`, and their signs are random: many paths nearly tie."""
    generator = torch.Generator().manual_seed(1)
    largest = torch.tensor([logit, transition]).to(dtype).double()
    logits = largest[0] * torch.randint(-1, 2, (WORDS, 4), generator=generator)
    model = chain(legal=legal)
    for parameter in model.parameters():
        parameter.data = largest[1] * torch.randint(-1, 2, parameter.shape, generator=generator)
    for ignored in ("none", "some"):
        numbers = gold(model, logits, ignored)
        truth = true_loss(model, logits, numbers).to(torch.promote_types(dtype, torch.float32))
        given = logits.to(dtype).requires_grad_()
        loss = model.to(dtype).loss(given, numbers, LENGTHS)
        torch.testing.assert_close(loss, truth)
        (gradient,) = torch.autograd.grad(loss, given)
        assert gradient.isfinite().all()
        model.double()
    marginals = model.to(dtype).marginals(logits.to(dtype), LENGTHS).double()
    tolerance = max(1e-6, 2 * torch.finfo(dtype).eps)
    torch.testing.assert_close(marginals.sum(dim=1), torch.ones(WORDS).double(), rtol=tolerance, atol=0)


@pytest.mark.parametrize("legal", [False, True], ids=["free", "legal"])
@pytest.mark.parametrize("transition", [0.0, 20.0, 50.0, 80.0, 100.0])
def test_largest_scores_that_are_scaled(
    transition: float, legal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """200 words of the least friendly scores for which messages are kept as probabilities."""
    generator = torch.Generator().manual_seed(2)
    lengths, logit = torch.tensor([200]), 100.0 - transition
    model = chain(legal=legal)
    for parameter in model.parameters():
        signs = torch.randint(0, 2, parameter.shape, generator=generator).double() * 2 - 1
        parameter.data = transition * signs
    logits = logit * (torch.randint(0, 2, (200, 4), generator=generator).double() * 2 - 1)
    logits.requires_grad_()
    numbers = torch.zeros(200, dtype=torch.int64)
    numbers[::3] = IGNORED
    results = []
    for limit in (100.0, 0.0):
        monkeypatch.setattr(crf, "_SCALED_UP_TO", limit)
        loss = model.loss(logits, numbers, lengths)
        marginals = model.marginals(logits.detach(), lengths)
        results.append([loss, marginals, *torch.autograd.grad(loss, [logits, *model.parameters()])])
    for scaled, exact in zip(*results, strict=True):
        torch.testing.assert_close(scaled, exact, rtol=1e-9, atol=1e-9)


def test_decoded_paths_and_marginals_are_legal() -> None:
    """Even where logits are for I-X everywhere."""
    model = LinearChain(NAMES, "iob2", legal=True)
    logits = torch.zeros(WORDS, 4)
    logits[:, 2] = 1e6
    ends = LENGTHS.cumsum(0).tolist()
    decoded = model.decode(logits, LENGTHS).tolist()
    for end, length in zip(ends, LENGTHS.tolist(), strict=True):
        assert is_legal(decoded[end - length : end])
        if length:
            assert model.marginals(logits, LENGTHS)[end - length, 2] == 0
    assert 2 in decoded
    assert set(model.state_dict()) == {"transitions", "start", "end"}


def test_labels_without_o_have_legal_paths() -> None:
    model = LinearChain(("B-X", "I-X"), "iob2", legal=True)
    logits = torch.tensor([[0.0, 50.0]]).repeat(WORDS, 1)
    decoded = model.decode(logits, LENGTHS)
    ends = LENGTHS.cumsum(0)
    assert decoded.tolist() == [int(word not in ends - LENGTHS) for word in range(WORDS)]
    assert model.loss(logits, decoded, LENGTHS).isfinite()


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ([2, 2, 0], [1, 2, 0]),
        ([2, 0, 1], [1, 0, 1]),
        ([0, 2, 2], [0, 1, 2]),
        ([3, 2, IGNORED], [3, 1, IGNORED]),
        ([IGNORED, 2, 0], [IGNORED, 2, 0]),
    ],
)
def test_gold_span_that_opens_with_inside_label_counts_as_a_span(written: list[int], read: list[int]) -> None:
    model, logits = chain(legal=True), some_logits()[:3]
    lengths = torch.tensor([3])
    loss = model.loss(logits, torch.tensor(written), lengths)
    assert loss < 100
    assert loss == model.loss(logits, torch.tensor(read), lengths)


@pytest.mark.parametrize(
    ("labels", "scheme", "message"),
    [
        (("ADJ", "NOUN"), "plain", "Only IOB2 labels have illegal moves to forbid; these labels are plain."),
        (("O", "B-X", "I-Y"), "iob2", "I-Y has no legal place, because B-Y is not among the labels."),
    ],
)
def test_legal_moves_need_iob2(labels: tuple[str, ...], scheme: str, message: str) -> None:
    with pytest.raises(MRNLabError) as error:
        LinearChain(labels, scheme, legal=True)
    assert str(error.value) == message


@pytest.mark.usefixtures("domain")
@pytest.mark.parametrize("lengths", [LENGTHS, torch.zeros(2, dtype=torch.int64)], ids=["words", "none"])
def test_nothing_labelled_costs_nothing(lengths: Tensor) -> None:
    model = chain()
    words = int(lengths.sum())
    logits = some_logits()[:words].requires_grad_()
    loss = model.loss(logits, torch.full((words,), IGNORED), lengths)
    loss.backward()
    assert loss == 0
    for tensor in (logits, *model.parameters()):
        torch.testing.assert_close(tensor.grad, torch.zeros_like(tensor))
    assert model.decode(logits, lengths).shape == (words,)
    assert model.marginals(logits, lengths).shape == (words, 4)


@pytest.mark.parametrize(
    "step",
    [
        lambda model, logits, labels: model.loss(logits, labels, LENGTHS).backward(),
        lambda model, logits, labels: model.decode(logits, LENGTHS),
        lambda model, logits, labels: model.marginals(logits, LENGTHS),
    ],
    ids=["loss", "decode", "marginals"],
)
@pytest.mark.parametrize("ignored", ["none", "some"])
@pytest.mark.usefixtures("domain")
def test_nothing_waits(step: Callable[[LinearChain, Tensor, Tensor], object], ignored: str) -> None:
    model, logits = chain(legal=True), some_logits().requires_grad_()
    numbers = gold(model, logits.detach(), ignored)
    with NoHostSync():  # type: ignore[no-untyped-call]
        step(model, logits, numbers)
