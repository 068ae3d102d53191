"""The shape of the measured verification cost (E2)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from simspec.claims.empirical.finding import Finding, Question, undecided
from simspec.claims.empirical.setting import Setting
from simspec.claims.empirical.timings import Curve, Floats, Grid, curves, priced_dtypes
from simspec.metrics import estimate

# An affine curve within this relative error of every median is called affine.
AFFINE_WITHIN = Fraction(1, 20)

CONVEX = Question(
    id="E2a",
    words="Verification cost is convex in the tokens of a forward",
    null="no test: exact on the medians (fractions), at the measured widths, all contexts together",
    statistic=(
        "the least relative error e such that some convex curve is within e of every median; holds if it is 0"
    ),
    source="LibraSpec Thm 3.5 (affine), convex in L2c; CaDDTree's first-non-improving stop (L13)",
    because=(
        "A median T above the chord C between two others breaks convexity; to hide it takes an error of "
        "(T - C) / (T + C) in all three, and the greatest over all triples is enough for all. Small values "
        "may be noise: see draws_refuting and draws_with_the_same_bump. Draws add noise to noise, so the "
        "interval errs upward."
    ),
)
AFFINE = Question(
    id="E2b",
    words=f"Verification cost is affine in the tokens of a forward, within {float(AFFINE_WITHIN):.0%}",
    null="no test: exact on the medians (fractions), at the measured widths, all contexts together",
    statistic=(
        f"the least relative error e such that some line is within e of every median; holds if at most "
        f"{float(AFFINE_WITHIN):g}"
    ),
    source="LibraSpec's T = T0 + c d; every affine profile",
    because="The same (T - C) / (T + C), of either sign: a line is off as much as its worst three points.",
)

Triple = tuple[int, int, int]


def bumps(widths: Sequence[int], seconds: Sequence[Fraction]) -> list[tuple[Fraction, Triple]]:
    """(T_j - C) / (T_j + C) of every i < j < k, C the chord from i to k at j; positive: above the chord."""
    found = []
    for i, j, k in combinations(range(len(widths)), 3):
        share = Fraction(widths[j] - widths[i], widths[k] - widths[i])
        chord = seconds[i] + share * (seconds[k] - seconds[i])
        found.append(((seconds[j] - chord) / (seconds[j] + chord), (i, j, k)))
    return found


def drawn_bumps(curve: Curve) -> Floats:
    """The same in floats for every draw, shape (draws, triples), triples in the order of :func:`bumps`."""
    triples = np.array(list(combinations(range(len(curve.widths)), 3)))
    i, j, k = triples.T
    share = (curve.widths[j] - curve.widths[i]) / (curve.widths[k] - curve.widths[i])
    seconds = curve.draws
    chord = seconds[:, i] + share * (seconds[:, k] - seconds[:, i])
    found: Floats = (seconds[:, j] - chord) / (seconds[:, j] + chord)
    return found


def shape(grid: Grid, dtype: str, batch: int) -> tuple[Finding, Finding]:
    """E2a and E2b of one number format and batch, over its contexts."""
    mine = {context: curve for (b, context), curve in grid.items() if b == batch}
    subject = f"{dtype}, batch {batch}"
    if min(len(c.widths) for c in mine.values()) < 3:
        reason = "fewer than three widths were timed"
        return undecided(CONVEX, subject, reason), undecided(AFFINE, subject, reason)
    exact = {
        context: bumps(c.widths.tolist(), [Fraction(s) for s in c.median.tolist()])
        for context, c in mine.items()
    }
    drawn = {context: drawn_bumps(c) for context, c in mine.items()}
    most = _worst(exact, signed=True)
    above = np.max([d.max(axis=1) for d in drawn.values()], axis=0)
    convex = Finding(
        CONVEX,
        subject,
        "refuted" if most[0] > 0 else "holds",
        value=estimate(float(max(most[0], Fraction(0))), np.maximum(above, 0.0)),
        trials=_rows(mine),
        note=_told(most, mine),
        numbers=_draws(above > 0, drawn[most[1]][:, most[2]] > 0, mine),
    )
    far = _worst(exact, signed=False)
    off = np.max([np.abs(d).max(axis=1) for d in drawn.values()], axis=0)
    affine = Finding(
        AFFINE,
        subject,
        "refuted" if abs(far[0]) > AFFINE_WITHIN else "holds",
        value=estimate(float(abs(far[0])), off),
        trials=_rows(mine),
        note=_told(far, mine),
        numbers=_draws(
            off > float(AFFINE_WITHIN), np.abs(drawn[far[1]][:, far[2]]) > float(AFFINE_WITHIN), mine
        ),
    )
    return convex, affine


Worst = tuple[Fraction, int, int, Triple]


def _worst(exact: dict[int, list[tuple[Fraction, Triple]]], *, signed: bool) -> Worst:
    """The greatest bump (or the greatest in absolute value): its size, context, number and triple."""
    every = [
        (size, context, number, triple)
        for context, found in exact.items()
        for number, (size, triple) in enumerate(found)
    ]
    return max(every, key=lambda bump: bump[0] if signed else abs(bump[0]))


def _rows(mine: dict[int, Curve]) -> int:
    """Measured cells."""
    return sum(len(c.widths) for c in mine.values())


def _told(worst: Worst, mine: dict[int, Curve]) -> str:
    size, context, _, triple = worst
    curve = mine[context]
    said = ", ".join(f"{curve.median[i] * 1e3:.4g} ms at {curve.widths[i]}" for i in triple)
    side = "above" if size > 0 else "below" if size < 0 else "on"
    return f"context {context}: {said}: the middle one is {side} the chord"


def _draws(refuting: Any, same: Any, mine: dict[int, Curve]) -> dict[str, Any]:
    none = not len(refuting)
    return {
        "draws": len(refuting),
        "draws_refuting": None if none else float(np.mean(refuting)),
        "draws_with_the_same_bump": None if none else float(np.mean(same)),
        "contexts": sorted(mine),
        "least_repetitions": min(c.repetitions for c in mine.values()),
    }


def ask_verification(asked: Setting) -> list[Finding]:
    """E2a and E2b of the target, for every number format and batch it was timed at."""
    found: list[Finding] = []
    for dtype in priced_dtypes(asked):
        grid = curves(asked, asked.trace.target, dtype)
        for batch in sorted({b for b, _ in grid}):
            found += shape(grid, dtype, batch)
    if not found:
        found = [undecided(q, asked.trace.target, "no forward of it was timed") for q in (CONVEX, AFFINE)]
    return found
