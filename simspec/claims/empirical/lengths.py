"""Has the expected speedup one peak over draft lengths, on the measured costs (E1)?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from simspec.claims.empirical.finding import Finding, Question, undecided
from simspec.claims.empirical.setting import Setting
from simspec.claims.empirical.timings import Curve, Floats, Grid, curves, priced_dtypes
from simspec.metrics import estimate
from simspec.traces.index import Trace

ONE_PEAK = Question(
    id="E1",
    words="Expected speedup over draft lengths has one peak",
    null="no test: exact on the table's medians and the recorded counts (fractions), all contexts together",
    statistic=(
        "the depth of the deepest dip: how far the speedup at some length is below the best shorter and the "
        "best longer one, relative to itself; holds if there is no dip"
    ),
    source="LibraSpec Thm 3.5 (L2), whose steps of one and first-non-improving stops need it",
    because=(
        "Speedup of length d: (1 + S_1 + ... + S_d) T(1) / (d T_drafter(1) + T(d + 1)); a look-up drafter "
        "costs one look-up at every length, 0 included. S_j is the share of starts with enough text left "
        "whose first j drafts are accepted. Only lengths whose verification width was timed are compared, so "
        "nothing is interpolated but look-ups of microseconds; lengths in between can only add dips. Draws "
        "resample prompts and repetitions together and add noise to noise, so the interval errs upward: "
        "draws_with_the_same_dip says how often the dip of the medians comes back at its place."
    ),
)


@dataclass(frozen=True)
class Runs:
    """Accepted runs by prompt.

    Attributes:
        accepted: starts whose first j drafts are accepted, j = 1 .. longest, shape (P, longest).
        starts: starts with at least ``longest`` tokens of text left, shape (P,).
    """

    accepted: Floats
    starts: Floats


def runs(trace: Trace, drafter: str, longest: int) -> Runs:
    """Count over the starts with ``longest`` tokens of text left, so that no text's end cuts a run."""
    size, whole = len(trace.prompts), trace.remaining >= longest
    matched, prompt = trace.drafters[drafter].matched[whole], trace.prompt[whole]
    accepted = [np.bincount(prompt, weights=matched >= j, minlength=size) for j in range(1, longest + 1)]
    starts = np.bincount(prompt, minlength=size).astype(np.float64)
    return Runs(np.array(accepted, dtype=np.float64).reshape(longest, size).T, starts)


def dips(speedup: Sequence[Fraction]) -> list[Fraction]:
    """At each length, how far the lesser of the best before and the best after is above it, relative."""
    found = [Fraction(0)] * len(speedup)
    for j in range(1, len(speedup) - 1):
        over = min(max(speedup[:j]), max(speedup[j + 1 :])) / speedup[j] - 1
        found[j] = max(over, Fraction(0))
    return found


def drawn_dips(speedup: Floats) -> Floats:
    """The same in floats for every draw, shape (draws, lengths)."""
    before = np.maximum.accumulate(speedup, axis=1)
    after = np.maximum.accumulate(speedup[:, ::-1], axis=1)[:, ::-1]
    # A length is among its own best before and after, so that the least over it is 0.
    found: Floats = np.minimum(before, after) / speedup - 1.0
    return np.where(found > 1e-12, found, 0.0)


def first_peak_loss(speedup: Sequence[Fraction]) -> Fraction:
    """What stopping at the first length that does not improve loses against the best, relative."""
    at = 0
    while at + 1 < len(speedup) and speedup[at + 1] > speedup[at]:
        at += 1
    return max(speedup) / speedup[at] - 1


def speedups(emitted: Sequence[Any], verify: Sequence[Any], draft: Sequence[Any]) -> list[Any]:
    """emitted(d) verify(0) / (draft(d) + verify(d)) at each length; fractions, or arrays over draws."""
    return [e * verify[0] / (c + v) for e, v, c in zip(emitted, verify, draft, strict=True)]


@dataclass(frozen=True)
class Priced:
    """Speedups at one context: exact on the medians, and of every draw, shape (draws, lengths)."""

    lengths: list[int]
    speedup: list[Fraction]
    draws: Floats


def priced(by_prompt: Runs, verify: Curve, model: Curve, counts: Floats, *, lookup: bool) -> Priced | None:
    """Speedups of the lengths whose verification width was timed; None for fewer than three."""
    lengths = [int(w) - 1 for w in verify.widths if w - 1 <= by_prompt.accepted.shape[1]]
    starts = int(by_prompt.starts.sum())
    if lengths[:1] != [0] or len(lengths) < 3 or (not lookup and model.widths[0] != 1) or not starts:
        return None
    total = [int(a) for a in by_prompt.accepted.sum(axis=0)]
    emitted_draws = _emitted(counts @ by_prompt.accepted, counts @ by_prompt.starts)
    drawn = speedups(
        [emitted_draws[:, d] for d in lengths],
        list(verify.draws.T[: len(lengths)]),
        _draft_draws(model, lengths, lookup=lookup),
    )
    return Priced(
        lengths,
        speedups(
            [Fraction(starts + sum(total[:d]), starts) for d in lengths],
            [Fraction(s) for s in verify.median[: len(lengths)].tolist()],
            _draft_exact(model, lengths, lookup=lookup),
        ),
        np.stack(drawn, axis=1),
    )


def one_peak(
    by_prompt: Runs, target: Grid, drafter: Grid, subject: str, batch: int, counts: Floats, *, lookup: bool
) -> Finding:
    """E1 of one drafter, number format and batch, over the contexts that both were timed at."""
    n, starts = int((by_prompt.starts > 0).sum()), int(by_prompt.starts.sum())
    worst, note = Fraction(0), ""
    dipping: list[Floats] = []
    same, loss, cells = None, Fraction(0), {}
    for context in (c for b, c in target if b == batch and (b, c) in drafter):
        found = priced(by_prompt, target[batch, context], drafter[batch, context], counts, lookup=lookup)
        if found is None:
            continue
        depth, drawn = dips(found.speedup), drawn_dips(found.draws)
        dipping.append(drawn.max(axis=1))
        at = max(range(len(depth)), key=lambda j: depth[j])
        if depth[at] > worst:
            worst, note = depth[at], _told(context, found, at)
            same = float(np.mean(drawn[:, at] > 0)) if len(counts) else None
        loss = max(loss, first_peak_loss(found.speedup))
        cells[str(context)] = {
            "lengths": found.lengths,
            "speedup": [float(s) for s in found.speedup],
            "best": found.lengths[max(range(len(depth)), key=lambda j: found.speedup[j])],
        }
    if not cells:
        return undecided(ONE_PEAK, subject, "fewer than three draft lengths can be priced", n)
    deepest = np.max(dipping, axis=0)
    return Finding(
        ONE_PEAK,
        subject,
        "refuted" if worst > 0 else "holds",
        value=estimate(float(worst), deepest),
        n=n,
        trials=starts,
        note=note,
        numbers={
            "draws": len(counts),
            "draws_refuting": float(np.mean(deepest > 0)) if len(counts) else None,
            "draws_with_the_same_dip": same,
            "lost_by_the_first_peak": float(loss),
            "contexts": cells,
        },
    )


def _emitted(accepted: Floats, starts: Floats) -> Floats:
    """Expected tokens of a cycle by length 0 .. longest, shape (draws, longest + 1); NaN without starts."""
    with np.errstate(invalid="ignore"):
        survival = accepted / starts[:, None]
    return 1.0 + np.concatenate([np.zeros((len(starts), 1)), np.cumsum(survival, axis=1)], axis=1)


def _draft_exact(model: Curve, lengths: Sequence[int], *, lookup: bool) -> list[Fraction]:
    if not lookup:
        return [d * Fraction(float(model.median[0])) for d in lengths]
    return [
        (1 - share) * Fraction(float(model.median[i])) + share * Fraction(float(model.median[k]))
        for i, k, share in _between(model, lengths)
    ]


def _draft_draws(model: Curve, lengths: Sequence[int], *, lookup: bool) -> list[Floats]:
    if not lookup:
        return [d * model.draws[:, 0] for d in lengths]
    return [
        float(1 - share) * model.draws[:, i] + float(share) * model.draws[:, k]
        for i, k, share in _between(model, lengths)
    ]


def _between(model: Curve, lengths: Sequence[int]) -> list[tuple[int, int, Fraction]]:
    """Where the widths of a look-up (at least 1) lie in its table: two places and how far along."""
    found = []
    widths = model.widths.tolist()
    for d in lengths:
        wanted = min(max(d, 1, widths[0]), widths[-1])
        k = next(i for i, w in enumerate(widths) if w >= wanted)
        i = max(k - 1, 0)
        share = Fraction(wanted - widths[i], widths[k] - widths[i]) if k > i else Fraction(0)
        found.append((i, k, share))
    return found


def _told(context: int, found: Priced, at: int) -> str:
    speedup = found.speedup
    before = max(range(at), key=lambda j: speedup[j])
    after = max(range(at + 1, len(speedup)), key=lambda j: speedup[j])
    said = ", ".join(f"{float(speedup[j]):.4f} at {found.lengths[j]}" for j in (before, at, after))
    return f"context {context}: speedup {said}"


def ask_lengths(asked: Setting) -> list[Finding]:
    """E1 for every drafter, in every number format and batch that it and the target were timed at."""
    trace, found = asked.trace, []
    for dtype in priced_dtypes(asked):
        target = curves(asked, trace.target, dtype)
        widest = max(int(c.widths[-1]) for c in target.values())
        longest = min(trace.manifest.block_length, widest - 1, int(trace.remaining.max()))
        for drafter in trace.drafters:
            lookup = trace.is_lookup(drafter)
            if trace.tokens_a_forward(drafter) != 1:
                reason = "it drafts a block a forward: its cost is not d times a step"
                found.append(undecided(ONE_PEAK, f"{drafter}, {dtype}", reason))
                continue
            grid = curves(asked, drafter, "none" if lookup else dtype)
            counted = runs(trace, drafter, longest)
            found += [
                one_peak(
                    counted,
                    target,
                    grid,
                    f"{drafter}, {dtype}, batch {batch}",
                    batch,
                    asked.counts,
                    lookup=lookup,
                )
                for batch in sorted({b for b, _ in target} & {b for b, _ in grid})
            ]
    return found or [undecided(ONE_PEAK, "all", "no forward was timed")]
