"""A linear-chain conditional random field on top of one task's logits.

Lafferty, McCallum and Pereira (2001). A path y of a sentence of m words scores
start[y_1] + Σ_i logits[i, y_i] + Σ_i transitions[y_i, y_i+1] + end[y_m]; Z sums exp(score) over all paths.

No library: pytorch-crf (2019) has no marginals, partial labels or forbidden moves, and trains at least 4
times as slowly; torch-struct (2021) takes O(C³) a word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from core.encoding.batches import IGNORED
from core.errors import MRNLabError

_FORBIDDEN = -1e30
"""Score of a forbidden move or label: exp gives 0, and unlike −∞ it never makes a NaN."""

_SCALED_UP_TO = 100.0
"""The limit of largest logit plus largest transition up to which messages are scaled probabilities.

They are then at least exp(−600), and float64 holds exp(−708).
"""

_Scores = tuple[Tensor, Tensor, Tensor]
"""Transitions (C, C), start (C,) and end (C,)."""


class LinearChain(nn.Module):
    """The CRF of a task with C labels: learned `transitions` (C, C) from row to column, `start`, `end` (C,).

    They are zero at first: each word is then labelled for itself, as by a softmax. `legal` gives every path
    that IOB2 forbids probability 0: I-X stands only after B-X or I-X. A gold I-X that continues nothing then
    counts as B-X, as scoring reads it.

    Methods take `logits` (n, C) of the words of B sentences one after the other, and `lengths` (B,), each
    sentence's number of words, in the processor's memory. They compute in float64. None waits for a GPU.
    Raises MRNLabError where `legal` is asked for labels that are not IOB2, or that have an I-X without B-X.
    """

    forbidden: Tensor
    opened: Tensor

    def __init__(self, labels: Sequence[str], scheme: str, *, legal: bool = False) -> None:
        super().__init__()
        size = len(labels)
        self.transitions = nn.Parameter(torch.zeros(size, size))
        self.start = nn.Parameter(torch.zeros(size))
        self.end = nn.Parameter(torch.zeros(size))
        self.legal = legal
        opened = _opened(labels, scheme) if legal else torch.arange(size).repeat(size + 1, 1)
        forbidden = torch.where(opened == torch.arange(size), 0.0, _FORBIDDEN)
        self.register_buffer("opened", opened, persistent=False)
        self.register_buffer("forbidden", forbidden, persistent=False)

    def loss(self, logits: Tensor, labels: Tensor, lengths: Tensor) -> Tensor:
        """Negative log-likelihood of the gold labels (n,), summed over sentences: a scalar.

        Words labelled IGNORED are marginalised over: a sentence's loss is log Z less log Z of the paths that
        agree with its gold labels (Tsuboi et al. 2008), 0 where it has none.
        """
        # Labels on a GPU are not read: whether all words have one is then not known, and none is left out.
        unlabelled = int((labels.numpy() == IGNORED).sum()) if _is_readable(labels) else None
        if unlabelled == len(labels) or not len(labels):
            return torch.stack([part[:0].sum() for part in (logits, *self.parameters())]).sum()
        chains = _chains(lengths, logits.device)
        if self.legal:
            labels = self._as_legal(labels, chains.first)
        emissions, scores, scaled = logits.double(), self._scores(), self._can_scale(logits)
        if complete := unlabelled == 0:
            gold = _path_score(emissions, labels, scores, chains)
        else:
            numbers = torch.arange(logits.shape[1], device=logits.device)
            others = (labels[:, None] != numbers) & (labels[:, None] != IGNORED)
            emissions = torch.cat([emissions, emissions.masked_fill(others, _FORBIDDEN)])
            chains = _chains(lengths.repeat(2), logits.device)
        log_z: Tensor = _LogPartition.apply(emissions, *scores, chains, scaled)  # type: ignore[no-untyped-call]
        if not complete:
            log_z, gold = log_z.chunk(2)
        loss = log_z.sum() - gold.sum()
        return loss.to(torch.promote_types(logits.dtype, torch.float32))

    @torch.no_grad()
    def decode(self, logits: Tensor, lengths: Tensor) -> Tensor:
        """Label numbers (n,) of each sentence's best path (Viterbi); of equally good labels the lowest."""
        if not len(logits):
            return torch.empty(0, dtype=torch.int64, device=logits.device)
        chains = _chains(lengths, logits.device)
        transitions, before, end = self._scores()
        to_from = transitions.T.contiguous()
        read = chains.grid[:, 0]
        scores, origins = [], []
        for emission in logits.double()[read].unbind():
            scores.append(before + emission)
            before, origin = (scores[-1].unsqueeze(1) + to_from).max(dim=2)
            origins.append(origin)
        last = torch.stack(scores).flatten(0, 1)[chains.forward[chains.last]]
        path = [(last + end).argmax(dim=1, keepdim=True)]
        # Steps past a sentence's end repeat its last word: the path keeps its label.
        goes_on = (read[1:] != read[:-1]).unsqueeze(2)
        moves = torch.where(goes_on, torch.stack(origins)[:-1], torch.arange(len(end), device=logits.device))
        for move in reversed(moves.unbind()):
            path.append(move.gather(1, path[-1]))
        return torch.cat(path[::-1]).flatten()[chains.forward]

    @torch.no_grad()
    def marginals(self, logits: Tensor, lengths: Tensor) -> Tensor:
        """Probability (n, C) of each label at each word, over all paths (forward-backward)."""
        if not len(logits):
            return logits
        chains, scaled = _chains(lengths, logits.device), self._can_scale(logits)
        before, after, _ = _messages(logits.double(), self._scores(), chains, scaled)
        return _posteriors(before, after, chains, scaled)[0].to(logits.dtype)

    def _scores(self) -> _Scores:
        transitions = self.transitions.double() + self.forbidden[:-1]
        return transitions, self.start.double() + self.forbidden[-1], self.end.double()

    def _can_scale(self, logits: Tensor) -> bool:
        """Whether the scores are known to be small enough."""
        if not _is_readable(logits):
            return False
        parts = (part.detach().float().numpy() for part in (logits, *self.parameters()))
        logit, *moves = (float(np.abs(part).max()) for part in parts)
        return logit + max(moves) <= _SCALED_UP_TO

    def _as_legal(self, labels: Tensor, first: Tensor) -> Tensor:
        """Gold labels with B-X for each I-X that continues nothing. After an IGNORED word I-X can stay."""
        before = labels.roll(1)
        before[first] = len(self.start)
        legal = self.opened[before.clamp(min=0), labels.clamp(min=0)]
        return torch.where((before == IGNORED) | (labels == IGNORED), labels, legal)


def _is_readable(tensor: Tensor) -> bool:
    """Whether its values can be read without waiting for a device."""
    return tensor.device.type == "cpu"


def _opened(labels: Sequence[str], scheme: str) -> Tensor:
    """(C + 1, C): how a label (column) is read after a label (row), or at a start (last row).

    As itself where IOB2 allows it; an I-X that continues nothing as B-X.
    """
    if scheme != "iob2":
        raise MRNLabError(f"Only IOB2 labels have illegal moves to forbid; these labels are {scheme}.")
    table = torch.arange(len(labels)).repeat(len(labels) + 1, 1)
    for number, label in enumerate(labels):
        if label.startswith("I-"):
            if (opening := f"B-{label[2:]}") not in labels:
                raise MRNLabError(f"{label} has no legal place, because {opening} is not among the labels.")
            table[:, number] = labels.index(opening)
            table[[labels.index(opening), number], number] = number
    return table


class _Chains(NamedTuple):
    """The indices of n words in B sentences, none empty, while L steps read all sentences at once.

    grid (L, 2, B)   the word read at each step, forwards and backwards; past a sentence's end the last word
                     again, whose messages are not used
    forward (n,)     each word's row in messages (2·L·B, C) when its sentence is read forwards
    backward (n,)    and backwards
    sentence (n,)    each word's sentence
    first, last (B,) each sentence's first and last word
    moves (n − B,)   the words that another word of their sentence follows
    """

    grid: Tensor
    forward: Tensor
    backward: Tensor
    sentence: Tensor
    first: Tensor
    last: Tensor
    moves: Tensor


def _chains(lengths: Tensor, device: torch.device) -> _Chains:
    sizes = lengths.numpy()
    sizes = sizes[sizes > 0]
    ends = np.cumsum(sizes)
    starts, words = ends - sizes, np.arange(ends[-1])
    steps = np.arange(sizes.max())[:, None]
    read = np.minimum(steps, sizes - 1)
    sentence = np.repeat(np.arange(len(sizes)), sizes)
    forward = (words - starts[sentence]) * len(sizes) + sentence
    backward = (len(steps) + ends[sentence] - 1 - words) * len(sizes) + sentence
    grid = np.stack([starts + read, ends - 1 - read], axis=1)
    parts = [grid, forward, backward, sentence, starts, ends - 1, np.delete(words, ends - 1)]
    flat = torch.from_numpy(np.concatenate(parts, axis=None))
    if device.type != "cpu":  # one copy, from pinned memory: it does not wait for the device's queued work
        flat = flat.pin_memory().to(device, non_blocking=True)
    first, *others = flat.split([part.size for part in parts])
    return _Chains(first.view(grid.shape), *others)


def _path_score(emissions: Tensor, labels: Tensor, scores: _Scores, chains: _Chains) -> Tensor:
    """Summed scores of the gold paths of sentences. Every word has a label."""
    transitions, start, end = scores
    moves = transitions[labels[chains.moves], labels[chains.moves + 1]].sum()
    borders = start[labels[chains.first]].sum() + end[labels[chains.last]].sum()
    return emissions.gather(1, labels[:, None]).sum() + moves + borders


def _messages(
    emissions: Tensor, scores: _Scores, chains: _Chains, scaled: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Messages before and after each word's emission (2·L·B, C), and log Z (B,).

    Forwards and backwards in the same steps: either way a word's emission comes first, then a transition.
    `scaled` messages are probabilities that sum to 1 after each emission, and a step is a matrix product.
    Others are logarithms, exact for scores of any size.
    """
    transitions, start, end = scores
    moves = torch.stack([transitions, transitions.T])
    before = torch.stack([start, end]).unsqueeze(1).expand(2, len(chains.first), len(start))
    read, last = emissions[chains.grid], chains.forward[chains.last]
    befores, afters, sums = [], [], []
    if scaled:
        moves, before = moves.exp(), before.exp()
        for emission in read.exp().unbind():
            product = before * emission
            sums.append(product.sum(dim=2, keepdim=True))
            befores.append(before)
            afters.append(product / sums[-1])
            before = torch.bmm(afters[-1], moves)
    else:
        for emission in read.unbind():
            befores.append(before)
            afters.append(before + emission)
            before = (afters[-1].unsqueeze(3) + moves.unsqueeze(1)).logsumexp(dim=2)
    before, after = (torch.stack(steps, dim=1).flatten(0, 2) for steps in (befores, afters))
    if not scaled:
        return before, after, (after[last] + end).logsumexp(dim=1)
    log_sums = torch.stack(sums)[:, 0].log().cumsum(dim=0).flatten()
    return before, after, log_sums[last] + (after[last] @ end.exp()).log()


def _posteriors(before: Tensor, after: Tensor, chains: _Chains, scaled: bool) -> tuple[Tensor, Tensor]:
    """Probability (n, C) of each label at each word, and its divisor (n, 1)."""
    forward, backward = before[chains.forward], after[chains.backward]
    if scaled:
        joint = forward * backward
        total = joint.sum(dim=1, keepdim=True)
        return joint / total, total
    joint = forward + backward
    total = joint.logsumexp(dim=1, keepdim=True)
    return (joint - total).exp(), total


class _LogPartition(torch.autograd.Function):
    """log Z (B,). The gradient is the probabilities of labels and of moves, from the same messages."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        emissions, *scores, ctx.chains, ctx.scaled = inputs
        before, after, log_z = _messages(emissions, (scores[0], scores[1], scores[2]), ctx.chains, ctx.scaled)
        ctx.save_for_backward(before, after, scores[0])
        return log_z

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        before, after, transitions = ctx.saved_tensors
        chains: _Chains = ctx.chains
        posteriors, total = _posteriors(before, after, chains, ctx.scaled)
        weights = grad[chains.sentence].unsqueeze(1)
        labels = posteriors * weights
        weights, total = weights[chains.moves + 1], total[chains.moves + 1]
        left, right = after[chains.forward[chains.moves]], after[chains.backward[chains.moves + 1]]
        if ctx.scaled:
            moves = transitions.exp() * (left.T @ (right * (weights / total)))
        else:
            paths = left.unsqueeze(2) + transitions + (right - total).unsqueeze(1)
            moves = (paths.exp() * weights.unsqueeze(2)).sum(dim=0)
        return labels, moves, labels[chains.first].sum(dim=0), labels[chains.last].sum(dim=0), None, None
