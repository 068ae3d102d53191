"""What a ranking found: replayed and predicted times, and how well each prediction picks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simspec.compare.estimates.similarity import Pair
from simspec.compare.parts import Part
from simspec.compare.taus import kendall_taus
from simspec.cost.models import CostModel
from simspec.metrics import estimate
from simspec.speculation.chains import Chain

Floats = NDArray[np.float64]
Candidate = tuple[Chain, int]


@dataclass(frozen=True)
class Score:
    """How one prediction does on each draw, shape (draws + 1,); the first is all prompts once.

    Attributes:
        tau: Kendall's tau-b between predicted and replayed times.
        pick: which candidate it takes, the first of equals.
        regret: replayed time of the pick over that of the fastest, in %.
        right: whether the pick is the fastest.
        error: median over candidates of |predicted / replayed - 1|.
    """

    tau: Floats
    pick: NDArray[np.int64]
    regret: Floats
    right: NDArray[np.bool_]
    error: Floats

    def as_json(self) -> dict[str, Any]:
        taus, regrets = estimate(self.tau[0], self.tau[1:]), estimate(self.regret[0], self.regret[1:])
        return {
            "kendall_tau": taus.value,
            "kendall_tau_interval": [taus.low, taus.high],
            "top1": bool(self.right[0]),
            "top1_share_of_draws": float(self.right[1:].mean()) if len(self.right) > 1 else None,
            "regret": regrets.value,
            "regret_interval": [regrets.low, regrets.high],
            "median_abs_error": float(self.error[0]) if np.isfinite(self.error[0]) else None,
            "pick": int(self.pick[0]),
        }


def score(predicted: Floats, replayed: Floats) -> Score:
    """Hold a prediction against replay, shape (draws + 1, K) both."""
    rows = np.arange(len(replayed))
    pick, best = predicted.argmin(axis=1), replayed.argmin(axis=1)
    return Score(
        tau=kendall_taus(predicted, replayed),
        pick=pick,
        regret=100.0 * (replayed[rows, pick] / replayed[rows, best] - 1.0),
        right=pick == best,
        error=np.median(np.abs(predicted / replayed - 1.0), axis=1),
    )


@dataclass(frozen=True)
class BatchRanking:
    """One batch size. K candidates, row 0 of the draws being all prompts once.

    Attributes:
        replayed: seconds a token, shape (draws + 1, K).
        predicted: by "variant/alpha source", seconds a token on all prompts, shape (K,).
        scores: by the same names.
    """

    batch: int
    replayed: Floats
    predicted: dict[str, Floats]
    scores: dict[str, Score]

    def lead(self) -> Floats:
        """How much longer than the fastest of all prompts the second takes, in %, shape (draws + 1,)."""
        if self.replayed.shape[1] < 2:
            return np.full(len(self.replayed), np.inf)
        first, second = np.argsort(self.replayed[0], kind="stable")[:2]
        return np.asarray(100.0 * (self.replayed[:, second] / self.replayed[:, first] - 1.0))

    def clear(self) -> bool:
        """Whether the two fastest differ by more than their interval; never without draws."""
        low = estimate(1.0, self.lead()[1:]).low
        return low is not None and low > 0.0

    def as_json(self, candidates: Sequence[Candidate]) -> dict[str, Any]:
        replayed = self.replayed
        plain = next(k for k, c in enumerate(candidates) if c[0].drafter is None)
        speedup = replayed[:, [plain]] / replayed
        chains = []
        for k, (chain, length) in enumerate(candidates):
            time = estimate(replayed[0, k], replayed[1:, k])
            gain = estimate(speedup[0, k], speedup[1:, k])
            chains.append(
                {
                    "chain": list(chain.levels),
                    "draft_length": length,
                    "semantics": chain.semantics if chain.intermediates else None,
                    "replay_seconds_per_token": time.value,
                    "replay_interval": [time.low, time.high],
                    "speedup": gain.value,
                    "speedup_interval": [gain.low, gain.high],
                }
            )
        lead = estimate(self.lead()[0], self.lead()[1:])
        return {
            "best": int(replayed[0].argmin()),
            "lead": lead.value,
            "lead_interval": [lead.low, lead.high],
            "chains": chains,
            "predicted": {
                name: [float(f"{t:.6g}") if np.isfinite(t) else None for t in times]
                for name, times in self.predicted.items()
            },
            "scores": {name: s.as_json() for name, s in self.scores.items()},
        }


@dataclass(frozen=True)
class Ranking:
    """A ranking of candidates under one cost; ``bound`` is the dynamic program's seconds a token.

    Attributes:
        part: which prompts were fitted on and which scored.
        alphas: by source and pair, on all prompts that were fitted on.
    """

    cost: CostModel
    candidates: list[Candidate]
    batches: list[BatchRanking]
    bound: float
    part: Part
    alphas: dict[str, dict[Pair, float]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """See :mod:`simspec.cli.rank` for the keys."""
        return {
            "cost": {"name": self.cost.name, "label": self.cost.label},
            "prompts": {
                "task": self.part.task,
                "fitted_on": sorted(set(self.part.fit.prompts[0].tolist())),
                "scored_on": sorted(set(self.part.score.prompts[0].tolist())),
            },
            "lower_bound_seconds_per_token": self.bound,
            "alphas": {
                source: {f"{a} > {b}": value for (a, b), value in sorted(pairs.items())}
                for source, pairs in self.alphas.items()
            },
            "batches": {str(b.batch): b.as_json(self.candidates) for b in self.batches},
        }


def summary(rankings: Sequence[Ranking]) -> dict[str, dict[str, Any]]:
    """By prediction, over all batch sizes of these rankings together (the two halves of one task, say).

    Keys: median_regret, median_regret_interval, mean_regret, worst_regret (%), mean_kendall_tau, top1 (how
    often), median_abs_error, of (batch sizes counted), clear (those where the two fastest differ by more than
    their interval), clear_top1. The interval is of the median on each draw, draws of halves paired.
    """
    batches = [b for r in rankings for b in r.batches]
    clear = [b.clear() for b in batches]
    found = {}
    for name in batches[0].scores:
        mine = [b.scores[name] for b in batches]
        regret = np.stack([s.regret for s in mine])
        medians = np.median(regret, axis=0)
        interval = estimate(medians[0], medians[1:])
        taus = [float(s.tau[0]) for s in mine if np.isfinite(s.tau[0])]
        found[name] = {
            "median_regret": interval.value,
            "median_regret_interval": [interval.low, interval.high],
            "mean_regret": float(regret[:, 0].mean()),
            "worst_regret": float(regret[:, 0].max()),
            "mean_kendall_tau": float(np.mean(taus)) if taus else None,
            "top1": int(sum(bool(s.right[0]) for s in mine)),
            "median_abs_error": float(np.median([s.error[0] for s in mine])),
            "of": len(mine),
            "clear": int(sum(clear)),
            "clear_top1": int(sum(bool(s.right[0]) for s, c in zip(mine, clear, strict=True) if c)),
        }
    return found
