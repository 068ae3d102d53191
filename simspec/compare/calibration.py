"""How far a drafter gets, and whether its confidence says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simspec.metrics import Estimate, wilson
from simspec.traces.index import Ints, Trace

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

BINS = 10


@dataclass(frozen=True)
class Survival:
    """Share of starts whose first j drafts are all accepted by the target, j = 1 .. len.

    Attributes:
        accepted: starts whose first j drafts are all accepted, shape (J,).
        starts: starts with at least j tokens of text left, shape (J,). Fewer starts can be
            told apart the longer the draft, so the shares need not fall from one j to the next.
    """

    accepted: NDArray[np.int64]
    starts: NDArray[np.int64]

    def estimates(self) -> list[Estimate]:
        """The share with its 95% Wilson interval at each j; starts are taken as independent."""
        return [wilson(int(a), int(n)) for a, n in zip(self.accepted, self.starts, strict=True)]


def survival(trace: Trace, drafter: str, longest: int) -> Survival:
    """Count over every start position of the trace, up to ``longest`` drafts.

    A block that is shorter than j, or empty, counts as not accepted to j. Stops where no start
    has that much text left.
    """
    matched = trace.drafters[drafter].matched
    top = min(longest, int(trace.remaining.max()))
    place = np.arange(1, top + 1)[:, None]
    return Survival(
        accepted=(matched[None] >= place).sum(axis=1).astype(np.int64),
        starts=(trace.remaining[None] >= place).sum(axis=1).astype(np.int64),
    )


@dataclass(frozen=True)
class Bin:
    """Tokens of similar confidence: how many, their mean confidence, how many were accepted."""

    tokens: int
    accepted: int
    mean_confidence: float

    def estimate(self) -> Estimate:
        """Accepted share with its 95% Wilson interval; tokens are taken as independent."""
        return wilson(self.accepted, self.tokens)


@dataclass(frozen=True)
class Calibration:
    """Confidence held against acceptance, over distinct drafted tokens.

    Attributes:
        bins: of about equal counts, confidence rising.
        expected_error: ECE: mean over bins, by count, of |mean confidence - accepted share|.
        brier: mean of (confidence - accepted)^2.
        auroc: chance that an accepted token has more confidence than a refused one, ties
            counting half; None where all were accepted or all refused.
    """

    tokens: int
    mean_confidence: float
    accepted_share: float
    bins: list[Bin]
    expected_error: float
    brier: float
    auroc: float | None

    def as_json(self) -> dict[str, Any]:
        """Keys: tokens, mean_confidence, accepted_share, ece, brier, auroc, bins[]."""
        bins = []
        for b in self.bins:
            share = b.estimate()
            bins.append(
                {
                    "tokens": b.tokens,
                    "mean_confidence": b.mean_confidence,
                    "accepted_share": share.value,
                    "accepted_share_interval": [share.low, share.high],
                }
            )
        return {
            "tokens": self.tokens,
            "mean_confidence": self.mean_confidence,
            "accepted_share": self.accepted_share,
            "ece": self.expected_error,
            "brier": self.brier,
            "auroc": self.auroc,
            "bins": bins,
        }


def first_drafts(trace: Trace, drafter: str) -> tuple[Floats, Flags]:
    """Confidence and fate of every distinct token drafted after accepted ones, shape (n,) each.

    For an autoregressive drafter a token drafted behind accepted tokens is the first token that
    it drafts from that place, so taking the first draft of every start counts each such token
    once; going through the blocks would count it once for every start before it. Empty blocks
    have no token.
    """
    index = trace.drafters[drafter]
    some = index.length > 0
    return index.confidence[some, 0].astype(np.float64), index.matched[some] > 0


@dataclass(frozen=True)
class Drafts:
    """Drafted tokens whose predecessors in their block were all accepted, of blocks from many starts.

    Each of shape (n,): flat position of the block's start, place in the block from 0, prompt, the drafter's
    probability, and whether the token was accepted. Blocks overlap, so a token is in it once for every block
    that gets to it, each time at another place.
    """

    flat: Ints
    place: Ints
    prompt: Ints
    confidence: Floats
    accepted: Flags


def drafts(trace: Trace, drafter: str, starts: Flags | None = None) -> Drafts:
    """Of blocks from everywhere, or from the flat positions where ``starts`` (N,) is true."""
    index = trace.drafters[drafter]
    offered = np.minimum(index.length, trace.remaining)
    if starts is not None:
        offered = np.where(starts, offered, 0)
    every = np.arange(index.confidence.shape[1])
    flat, place = np.nonzero((every <= index.matched[:, None]) & (every < offered[:, None]))
    sure = index.confidence[flat, place].astype(np.float64)
    return Drafts(flat, place, trace.prompt[flat], sure, index.matched[flat] > place)


def binned(confidence: Floats, bins: int = BINS) -> Ints:
    """Which bin each is in, from 0: of about equal counts, never parting equal confidences."""
    edges = np.unique(np.quantile(confidence, np.linspace(0, 1, bins + 1)[1:-1]))
    return np.searchsorted(edges, confidence, side="left")


def calibrate(confidence: Floats, accepted: Flags, bins: int = BINS) -> Calibration:
    """Equal-count bins and scores.

    Args:
        confidence: probabilities, shape (n,), n at least 1.
        accepted: what came of each, shape (n,).
        bins: how many bins to aim at. Equal confidences are never parted, so counts can
            differ and bins can be fewer.

    Raises:
        ValueError: when there is nothing to count, or the shapes differ.
    """
    if not len(confidence) or confidence.shape != accepted.shape:
        raise ValueError(f"need as many fates as confidences, got {accepted.shape}, {confidence.shape}")
    which = binned(confidence, bins)
    found = [
        Bin(int(mine.sum()), int(accepted[mine].sum()), float(confidence[mine].mean()))
        for mine in (which == k for k in range(int(which.max()) + 1))
        if mine.any()
    ]
    error = sum(abs(b.mean_confidence * b.tokens - b.accepted) for b in found) / len(confidence)
    return Calibration(
        tokens=len(confidence),
        mean_confidence=float(confidence.mean()),
        accepted_share=float(accepted.mean()),
        bins=found,
        expected_error=float(error),
        brier=float(((confidence - accepted) ** 2).mean()),
        auroc=auroc(confidence, accepted),
    )


def auroc(score: Floats, positive: Flags) -> float | None:
    """Area under the ROC curve by mid-ranks (the Mann-Whitney statistic); None with one class."""
    good = int(positive.sum())
    bad = len(positive) - good
    if not good or not bad:
        return None
    _, which, count = np.unique(score, return_inverse=True, return_counts=True)
    rank = np.cumsum(count) - (count - 1) / 2.0
    return float((rank[which][positive].sum() - good * (good + 1) / 2.0) / (good * bad))
