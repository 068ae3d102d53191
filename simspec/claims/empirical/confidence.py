"""Is confidence the chance of acceptance (E4)?"""

from __future__ import annotations

import numpy as np

from simspec.claims.empirical.along import later_less_first
from simspec.claims.empirical.finding import Finding, Question, undecided
from simspec.claims.empirical.resample import Floats, flips, ratio, sums_by
from simspec.claims.empirical.setting import Firsts, Places, Setting, firsts, places
from simspec.compare.calibration import calibrate
from simspec.metrics import estimate

BINS = 10
# Resamples of acceptances that show what error a calibrated drafter of this confidence has by chance.
CALIBRATED_RESAMPLES = 200

CALIBRATED = Question(
    id="E4a",
    words="The drafter's confidence is the chance that its draft is accepted",
    null="in every bin of confidence the mean of (accepted - confidence) is 0, over prompts",
    statistic=(
        "expected calibration error (ECE) over 10 bins of equal counts; sign flips of prompts' sums by bin"
    ),
    source="LibraSpec and every length rule that multiplies confidences into survivals; L14 of the ledger",
    because=(
        "First drafts of every start: of an autoregressive drafter, every draft that follows accepted ones, "
        "once. Chance alone gives an ECE above 0 even to a calibrated drafter: numbers.ece_if_calibrated has "
        "it, from acceptances drawn with the recorded confidences; ECE and its interval err upward by about "
        "that. The p value does not rely on those draws being independent: it flips whole prompts."
    ),
)
ALONG = Question(
    id="E4b",
    words="Confidence is off by the same amount at every place of the block",
    null="mean of (confidence - accepted), given that all before were accepted, is one number for all places",
    statistic=(
        "mean of (confidence - accepted) at places 2 and later minus that at place 1; sign flips of prompts' "
        "scores of all places together"
    ),
    source="asked here: whether one recalibration serves the whole block",
    because="By place, over every start; places with fewer than 5 chances a prompt are left out.",
)


def calibration(
    at: Firsts, subject: str, counts: Floats, resamples: int, luck: np.random.Generator
) -> Finding:
    """E4a for one drafter."""
    size = counts.shape[1]
    edges = np.unique(np.quantile(at.confidence, np.linspace(0, 1, BINS + 1)[1:-1]))
    which = np.searchsorted(edges, at.confidence, side="left")
    bins = [k for k in range(len(edges) + 1) if (which == k).any()]
    sure = np.stack([sums_by(at.prompt, at.confidence * (which == k), size) for k in bins], axis=1)
    good = np.stack([sums_by(at.prompt, at.accepted & (which == k), size) for k in bins], axis=1)
    many = np.stack([sums_by(at.prompt, which == k, size) for k in bins], axis=1)
    used = int((many.sum(axis=1) > 0).sum())
    tested = flips(good - sure, resamples, luck, "absolute")
    if tested is None:
        return undecided(CALIBRATED, subject, "confidence is 1 or 0 and right every time", used)
    error = float(np.abs((good - sure).sum(axis=0)).sum() / many.sum())
    draws = np.abs(counts @ (good - sure)).sum(axis=1) / (counts @ many).sum(axis=1)
    chance = luck.random((CALIBRATED_RESAMPLES, len(at.confidence))) < at.confidence
    off = [np.abs((chance[:, which == k] - at.confidence[which == k]).sum(axis=1)) for k in bins]
    by_chance = np.sum(off, axis=0) / len(at.confidence)
    told = calibrate(at.confidence, at.accepted, BINS)
    return Finding(
        CALIBRATED,
        subject,
        None,
        value=estimate(error, draws),
        n=used,
        trials=len(at.confidence),
        tested=tested,
        numbers={
            "mean_confidence": told.mean_confidence,
            "accepted_share": told.accepted_share,
            "ece_if_calibrated": {
                "mean": float(by_chance.mean()),
                "high": float(np.quantile(by_chance, 0.975)),
            },
            "brier": told.brier,
            "auroc": told.auroc,
            "bins": [
                {
                    "tokens": int(many[:, k].sum()),
                    "mean_confidence": float(sure[:, k].sum() / many[:, k].sum()),
                    "accepted": ratio(good[:, k], many[:, k], counts)[0].as_json(),
                }
                for k in range(len(bins))
            ],
        },
    )


def along_block(
    by_place: Places, subject: str, counts: Floats, resamples: int, luck: np.random.Generator
) -> Finding:
    """E4b for one drafter."""
    return later_less_first(
        ALONG,
        subject,
        by_place.confidence - by_place.accepted,
        by_place.tried,
        counts,
        resamples,
        luck,
        name="gap",
        alike="the gap is the same at every place, without any spread",
    )


def ask_confidence(asked: Setting) -> list[Finding]:
    """E4a and E4b for every drafter that has a confidence."""
    trace, found = asked.trace, []
    for drafter in trace.drafters:
        if trace.is_lookup(drafter):
            reason = "a look-up's confidence is 1 by form and says nothing"
            found += [undecided(q, drafter, reason) for q in (CALIBRATED, ALONG)]
            continue
        at = firsts(trace, drafter)
        if not len(at.flat):
            found += [undecided(q, drafter, "it drafted nothing") for q in (CALIBRATED, ALONG)]
            continue
        found.append(calibration(at, drafter, asked.counts, asked.resamples, asked.luck("E4a", drafter)))
        found.append(
            along_block(
                places(trace, drafter), drafter, asked.counts, asked.resamples, asked.luck("E4b", drafter)
            )
        )
    return found
