"""MRN in 80 lines of plain torch: linear heads over frozen features, tied by the relational prior.

Two tasks name the parts of speech of different sentences of the demo corpus, with tag sets that mostly agree.
Each has a head. The prior learns from the heads how tasks, labels and features relate, and holds related
weights together. Equation numbers are those of the dissertation (docs/mathematics.md): the prior (5), the
losses (21) and (22) and the sum of losses and penalty (23) are published. Three things belong to `relational`
alone and are marked OURS: the weight of the penalty, the scale of the covariances, their shrinkage. `core`
gives the corpus and the place of the encoder; tests/unit/training/test_examples.py holds losses and
covariances equal to the trainer's.
"""

import torch
from torch.nn.functional import cross_entropy
from transformers import AutoModel, AutoTokenizer

from core.corpora import load
from core.models.sources import locate

RATE, LAMBDA, KAPPA, UPDATE_EVERY = 0.02, 0.001, 1.0, 10
UNLABELLED = -100  # of a word that a task is not annotated on
TASK, LABEL, FEATURE = range(3)  # the modes of W


def word_states(sentences, folder):
    """The frozen encoder's state (N, D) of each word's first subword."""
    tokenizer, encoder = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    states = []
    for sentence in sentences:
        subwords = tokenizer(list(sentence.tokens), is_split_into_words=True, return_tensors="pt")
        firsts = [subwords.word_ids().index(word) for word in range(len(sentence.tokens))]
        with torch.no_grad():
            states.append(encoder(**subwords).last_hidden_state[0, firsts])
    return torch.cat(states)


def label_numbers(sentences, task):
    """The number (N,) of each word's label."""
    numbers = {name: number for number, name in enumerate(task.labels)}
    columns = [sentence.labels.get(task.name, [None] * len(sentence.tokens)) for sentence in sentences]
    return torch.tensor([numbers.get(label, UNLABELLED) for column in columns for label in column])


class RelationalPrior:
    """vec W ~ N(0, s · Ω_task ⊗ Ω_label ⊗ Ω_feature), (5), and its covariances as the heads show them."""

    def __init__(self, label_sets, features, words):
        names = list(dict.fromkeys(name for labels in label_sets for name in labels))
        rows = [(task, names.index(name)) for task, labels in enumerate(label_sets) for name in labels]
        self.align = torch.zeros(len(label_sets), len(names), len(rows), dtype=torch.float64)
        for row, (task, label) in enumerate(rows):
            self.align[task, label, row] = 1  # W[t] = A_t W_t: labels of equal name share a row
        self.sizes = len(label_sets), len(names), features
        self.covariances = [torch.eye(size, dtype=torch.float64) for size in self.sizes]
        self.strength = LAMBDA / (2 * words / (3 * features))  # OURS: λ / (2 N s), s = 1 / (3 D); (23) has λ

    def whitened(self, weights, modes):
        """W times the inverse covariances of these modes."""
        for mode in modes:
            inverse = torch.linalg.inv(self.covariances[mode])
            weights = torch.tensordot(inverse, weights, dims=([1], [mode])).movedim(0, mode)
        return weights

    def penalty(self, heads):
        """The penalty of (23), <W, Ω^-1 W>, with the weight `strength`."""
        weights = self.align @ heads.double()
        return self.strength * (weights * self.whitened(weights, (TASK, LABEL, FEATURE))).sum()

    @torch.no_grad()
    def update(self, heads):
        """Each covariance in turn from its scatter S_u, with the newest of the others.

        (24) to (26) compute all three at once, as S_u / (D_j D_k), without scale or shrinkage.
        """
        weights = self.align @ heads.double()
        for mode, others in ((FEATURE, (TASK, LABEL)), (LABEL, (TASK, FEATURE)), (TASK, (LABEL, FEATURE))):
            unfolded = weights.movedim(mode, 0).flatten(1)
            scatter = unfolded @ self.whitened(weights, others).movedim(mode, 0).flatten(1).T
            pseudo, columns = KAPPA * self.sizes[mode], unfolded.shape[1]
            share = pseudo / (columns + pseudo)  # ρ_u: how far Ω_u is drawn to the identity
            identity = torch.eye(self.sizes[mode], dtype=torch.float64)
            # OURS: S_u with mean variance 1, and shrinkage.
            self.covariances[mode] = (1 - share) * scatter / scatter.diagonal().mean() + share * identity


def train(states, labels, label_sets, batches):
    """The heads (r, D), the prior, the loss of each step. `labels` (N, T); a batch is numbers of words."""
    counts = [len(names) for names in label_sets]
    heads = torch.zeros(sum(counts), states.shape[1], requires_grad=True)
    bias = torch.zeros(sum(counts), requires_grad=True)
    prior = RelationalPrior(label_sets, states.shape[1], int((labels != UNLABELLED).sum()))
    optimiser = torch.optim.AdamW([heads, bias], lr=RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1 - step / len(batches))
    losses = []
    for step, words in enumerate(batches, start=1):
        logits = (states[words] @ heads.T + bias).split(counts, dim=1)
        loss = prior.penalty(heads).float()
        for of_task, gold in zip(logits, labels[words].T, strict=True):  # (21) to (23)
            summed = cross_entropy(of_task, gold, ignore_index=UNLABELLED, reduction="sum")
            loss = loss + summed / (gold != UNLABELLED).sum().clamp_min(1) / len(counts)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        losses.append(loss.item())
        if step % UPDATE_EVERY == 0 or step == len(batches):
            prior.update(heads)
    return heads, prior, losses


if __name__ == "__main__":
    torch.manual_seed(1)
    corpus = load("demo-both-pos?train=50")
    states = word_states(corpus.train, locate("minilm"))
    labels = torch.stack([label_numbers(corpus.train, task) for task in corpus.tasks], dim=1)
    batches = [words for _ in range(12) for words in torch.randperm(len(states)).split(128)]
    heads, prior, losses = train(states, labels, [task.labels for task in corpus.tasks], batches)
    task = prior.covariances[TASK]
    print(f"loss {losses[-1]:.2f}, task correlation {task[0, 1] / (task[0, 0] * task[1, 1]).sqrt():.2f}")
