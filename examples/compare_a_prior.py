"""A prior of one's own beside MRN: five seeds each, and the differences with their intervals.

`CommonMean` draws what tasks have for the same label to their mean (Evgeniou and Pontil, Regularized
multi-task learning, 2004). It learns no relations: where it does as well as MRN, relations do not help.
Its λ is not tuned here.

Workers and pages know the priors of the installation alone; CONTRIBUTING.md says how to add one there.
"""

import torch

import core
from core.evaluation import compare
from core.mrn.priors import PRIOR_CLASSES, NoPrior
from core.registry import PRIORS, PriorSpec


class CommonMean(NoPrior):
    """Penalty λ / N · Σ_t |W[t] − mean over tasks|², with W[t] = A_t W_t; no covariances to learn."""

    def __init__(self, alignment, settings, device):
        self.align = torch.as_tensor(alignment.matrix, dtype=torch.float32, device=device)  # (T, C, r)
        self.strength = settings.lambda_ / settings.tokens

    def penalty(self, heads):
        weights = self.align.to(heads.dtype) @ heads  # (T, C, D)
        return self.strength * (weights - weights.mean(dim=0)).square().sum()


PRIORS["common-mean"] = PriorSpec("Draws equal labels of tasks to their mean.", lambda_=1.0, has_scales=False)
PRIOR_CLASSES["common-mean"] = CommonMean


def scores_by_seed(prior, seeds, **fields):
    """The test score of each task and seed, (seed, task) → score in [0, 1]."""
    scores = {}
    for seed in seeds:
        config = core.describe(
            "demo-both-pos", paradigm="mrn", prior=prior, alignment="exact", encoder_training="frozen",
            seed=seed, **fields,
        )  # fmt: skip
        run = core.train(config, progress=False)
        scores[seed] = run.scores().loc["test"]["score"]
    return scores


def main(seeds=range(1, 6), **fields):
    """Prints the mean score of both priors on each task, and the difference paired by seed."""
    settings = {"fraction": 0.03, "epochs": 30} | fields
    own, mrn = (scores_by_seed(prior, seeds, **settings) for prior in ("common-mean", "relational"))
    pairs = {
        task: tuple({seed: scores[seed][task] for seed in seeds} for scores in (own, mrn))
        for task in mrn[seeds[0]].index
    }
    for task, difference in compare(pairs).items():
        own_mean, mrn_mean = (100 * sum(scores.values()) / len(scores) for scores in pairs[task])
        print(f"{task}: common-mean {own_mean:.2f}, MRN {mrn_mean:.2f}; {difference.sentence}")


if __name__ == "__main__":
    main()
