"""Acceptance rates by the name of where they come from: what every variant of Eq. 7 is given.

=============== ==============================================================================================
simscore        1 - mean TV along the texts, taken as acceptance (f the identity)
simscore-ema    the same as an exponential moving average by request, at the end of the texts
logistic        a sigmoid of SimScore, fitted to realised acceptance of every pair on every prompt
isotonic        a never falling map of SimScore, likewise
constant        one acceptance for all pairs, likewise
greedy-correct  share of places with the same most probable token
realised        share of drafts that the next level accepts, given that all before were: the reference
=============== ==============================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simspec.compare.batches import Draws
from simspec.compare.estimates import realised as blocks
from simspec.compare.estimates.maps import MAPS, Map
from simspec.compare.estimates.similarity import (
    Floats,
    Pair,
    agreement,
    along_text,
    by_prompt,
    similarity,
)
from simspec.compare.estimates.tracking import ema
from simspec.traces.index import Ints, Trace

SOURCES = ("simscore", "simscore-ema", "logistic", "isotonic", "constant", "greedy-correct", "realised")


def alphas(
    trace: Trace, draws: Draws, longest: int, sources: Sequence[str], ema_weight: float
) -> dict[str, dict[Pair, Floats]]:
    """Acceptance by source and (drafter, verifier), shape (draws,) each; nothing outside ``draws`` is read.

    Args:
        longest: drafts of a block that count as tried.
        sources: of :data:`SOURCES`.
        ema_weight: weight of the latest request in ``simscore-ema``.
    """
    counts = draws.counts()
    pairs = [(d, v) for d, index in trace.drafters.items() for v in (trace.target, *index.agreed)]
    score, known = similarity(trace, counts), points(trace, longest)
    found: dict[str, dict[Pair, Floats]] = {}
    for source in sources:
        if source == "simscore":
            found[source] = {p: score[p] for p in pairs}
        elif source == "simscore-ema":
            found[source] = _at_the_end(trace, draws, pairs, ema_weight)
        elif source == "greedy-correct":
            agreed = agreement(trace, counts)
            found[source] = {p: agreed[p] for p in pairs}
        elif source == "realised":
            found[source] = blocks.realised(trace, counts, longest)
        else:
            fitted = [_fit(source, known, row) for row in counts]
            found[source] = {
                p: np.array([float(f.of(s)) for f, s in zip(fitted, score[p], strict=True)]) for p in pairs
            }
    return found


def fit(trace: Trace, name: str, prompts: Ints, longest: int) -> Map:
    """A map from SimScore to acceptance, over every (drafter, verifier) on every one of ``prompts``.

    Args:
        name: of :data:`~simspec.compare.estimates.maps.MAPS`.
        prompts: prompts, some perhaps several times; no other is looked at.
    """
    return _fit(name, points(trace, longest), np.bincount(prompts, minlength=len(trace.prompts)))


def points(trace: Trace, longest: int) -> tuple[Floats, Floats, Floats]:
    """SimScore, drafts accepted and drafts tried of every (drafter, verifier) on each prompt, (pairs, P)."""
    size = trace.prompts["output_tokens"].to_numpy().astype(np.float64)
    score = {p: by_prompt(trace, v) / size for p, v in along_text(trace, "overlap").items()}
    counted = blocks.by_prompt(trace, longest)
    good, tried = (np.stack([c[i] for c in counted.values()]) for i in (0, 1))
    return np.stack([score[p] for p in counted]), good, tried


def _fit(name: str, known: tuple[Floats, Floats, Floats], counts: Ints | Floats) -> Map:
    some = counts > 0
    score, good, tried = (k[:, some] for k in known)
    times = counts[some]
    return MAPS[name](score.ravel(), (good * times).ravel(), (tried * times).ravel())


def _at_the_end(trace: Trace, draws: Draws, pairs: list[Pair], weight: float) -> dict[Pair, Floats]:
    size = trace.prompts["output_tokens"].to_numpy().astype(np.float64)
    score = {p: by_prompt(trace, v) / size for p, v in along_text(trace, "overlap").items()}
    return {p: ema(score[p][draws.prompts], weight)[:, -1] for p in pairs}
