"""Under which acceptance and costs SpecRouter's published speedups come out, by exact theory and rooflines.

llama-68m drafts, TinyLlama-1.1B is the middle, Llama-2-7b the target. Acceptance is made up: it is swept.
Padded rows, no end of texts, no catching up; draft lengths and the kind of chain are the best for each case.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import joblib
import numpy as np
from scipy.optimize import linprog

from simspec.compare.specrouter.roofline_models import (
    CONTEXT,
    MIDDLE,
    SMALL,
    TARGET,
    prices_of,
    published_ratios,
    roofline,
)
from simspec.theory.numbers import Floats
from simspec.theory.padded_chains import BatchPrices, nested, pair, replace, truncate
from simspec.theory.third_level import Cycle, PlaceLaw, independent

DEVICES = ("a100-80g-sxm", "h100-sxm")
# SpecRouter's Table 2 (arXiv 2505.07680), the one row that is known: speedups at this batch size.
BATCH = 16
PUBLISHED = {"second": 1.31, "third": 1.20, "adaptive": 1.91}
# Made up, in round figures.
ROUND = {"lower": 0.55, "upper": 0.75, "outer": 0.45}

DRAFTS = range(1, 13)
ROUNDS = tuple(product(range(1, 7), range(2, 7)))  # (drafts, rounds)
ALPHAS = np.linspace(0.0, 1.0, 101)
MAPPED = ALPHAS[::5]
FACTORS = (0.0, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
FORWARD_MS = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
LAYER_US = (0.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
# Laws of agreement that phases of a text may have: parts of a place's chances, in this many steps; and in
# which bands all three alphas may have to lie.
STEPS = 8
BANDS = ((0.0, 1.0), (0.125, 0.875), (0.25, 0.75), (0.375, 0.625))


def triples(law: PlaceLaw[Floats], prices: BatchPrices) -> Iterator[Cycle[Floats]]:
    """Every chain of three."""
    for n in DRAFTS:
        yield truncate(law, n, prices)
        yield replace(law, n, prices)
    for n, rounds in ROUNDS:
        yield nested(law, n, rounds, prices)


def pairs(alpha: Floats, draft_seconds: float, prices: BatchPrices) -> Iterator[Cycle[Floats]]:
    for n in DRAFTS:
        yield pair(alpha, n, draft_seconds, prices)


def speed(cycle: Cycle[Floats], prices: BatchPrices) -> Floats:
    """Over plain decoding."""
    return np.asarray(cycle.tokens * prices.target[1] / cycle.seconds)


def fastest(cycles: Iterator[Cycle[Floats]], prices: BatchPrices) -> Floats:
    found = speed(next(cycles), prices)
    for cycle in cycles:
        found = np.maximum(found, speed(cycle, prices))
    return found


def favourable(lower: Floats, upper: Floats) -> PlaceLaw[Floats]:
    """As often as can be all three agree. alpha_13 is then at least the lesser of the two."""
    both = np.minimum(lower, upper)
    return PlaceLaw(both, lower - both, upper - both, 0.0 * both)


def alpha_map(batches: Sequence[int], jobs: int = 1) -> dict[str, Any]:
    """Speedups over alphas, what 1.91 needs, and speedups by batch size under two given sets of alphas.

    Returns:
        ``published`` {second, third, adaptive}, ``batch``, ``context``, ``models``; ``devices.<name>`` =
        {``label``, ``published_ratios`` (least, greatest: its fit); ``plain_ms``, ``small_ratio``,
        ``middle_ratio`` (of a forward over one token a row, at ``batch``); ``alphas``, ``small``, ``middle``
        (speedup of the pair by alpha); ``mapped``,
        ``independent``, ``favourable`` (of the best triple, rows alpha_12, columns alpha_23);
        ``needs.<second|third|adaptive>`` and ``sweeps.<draft|forward_ms|layer_us>.<value>`` as :func:`needs`;
        ``at_once`` as :func:`at_once`; ``phases[]`` as :func:`phases`, one a band; ``given.<name>`` =
        {alphas {lower, upper, outer}, ``batches.<B>`` as :func:`by_batch`}}.
    """
    done = joblib.Parallel(n_jobs=jobs)(joblib.delayed(_device)(d, tuple(batches)) for d in DEVICES)
    return {
        "published": PUBLISHED,
        "batch": BATCH,
        "context": CONTEXT,
        "models": [SMALL, MIDDLE, TARGET],
        "devices": dict(zip(DEVICES, done, strict=True)),
    }


def _device(device: str, batches: Sequence[int]) -> dict[str, Any]:
    prices = prices_of(device, BATCH)
    plain = float(prices.target[1])
    rows, columns = MAPPED[:, None], MAPPED[None, :]
    goals = {name: needs(prices, goal) for name, goal in PUBLISHED.items()}
    most = PUBLISHED["adaptive"]
    both = at_once(prices)
    given = {"round": ROUND}
    if known := [p for p in both if p["possible"]]:
        middle = known[len(known) // 2]
        given["published at once"] = {k: middle[k] for k in ROUND}
    return {
        "label": roofline(device, {}).label,
        "published_ratios": list(published_ratios(device)),
        "plain_ms": 1e3 * plain,
        "small_ratio": prices.draft / plain,
        "middle_ratio": float(prices.middle[1]) / plain,
        "alphas": ALPHAS.tolist(),
        "small": fastest(pairs(ALPHAS, prices.draft, prices), prices).tolist(),
        "middle": fastest(pairs(ALPHAS, float(prices.middle[1]), prices), prices).tolist(),
        "mapped": MAPPED.tolist(),
        "independent": fastest(triples(independent(rows, columns), prices), prices).tolist(),
        "favourable": fastest(triples(favourable(rows, columns), prices), prices).tolist(),
        "needs": goals,
        "sweeps": {
            "draft": {f"{k:g}": needs(prices_of(device, BATCH, k), most) for k in FACTORS},
            "forward_ms": {
                f"{ms:g}": needs(prices_of(device, BATCH, forward_overhead_seconds=ms / 1e3), most)
                for ms in FORWARD_MS
            },
            "layer_us": {
                f"{us:g}": needs(prices_of(device, BATCH, layer_overhead_seconds=us / 1e6), most)
                for us in LAYER_US
            },
        },
        "at_once": both,
        "phases": [phases(prices, *band) for band in BANDS],
        "given": {
            name: {"alphas": alphas, "batches": {str(b): by_batch(device, b, alphas) for b in batches}}
            for name, alphas in given.items()
        },
    }


def needs(prices: BatchPrices, goal: float) -> dict[str, float | None]:
    """The least acceptance at which each reaches a speedup, to 0.01; None if at no acceptance.

    Returns:
        ``small``: alpha(68m, 7b) for that pair; ``middle``: alpha(1.1B, 7b) for that one; ``triple``:
        alpha(68m, 1.1B) = alpha(1.1B, 7b), independent; ``favourable``: the same if all three agree as often
        as can be; ``middle_sure``: alpha(1.1B, 7b) for a triple whose drafter is always its middle.
    """

    def least(speeds: Floats) -> float | None:
        reached = np.flatnonzero(speeds >= goal)
        return round(float(ALPHAS[reached[0]]), 2) if len(reached) else None

    sure = np.ones_like(ALPHAS)
    return {
        "small": least(fastest(pairs(ALPHAS, prices.draft, prices), prices)),
        "middle": least(fastest(pairs(ALPHAS, float(prices.middle[1]), prices), prices)),
        "triple": least(fastest(triples(independent(ALPHAS, ALPHAS), prices), prices)),
        "favourable": least(fastest(triples(favourable(ALPHAS, ALPHAS), prices), prices)),
        "middle_sure": least(fastest(triples(independent(sure, ALPHAS), prices), prices)),
    }


def at_once(prices: BatchPrices) -> list[dict[str, Any]]:
    """Alphas at which the best pair has the published speedup and the best triple has its own.

    Agreement independent, everywhere alike. For each alpha_23 (to 0.01) whose own pair is not faster than
    published: the alpha_12 at which the triple has its speedup, the alpha_13 at which the pair does.

    Returns:
        ``lower``, ``upper``, ``outer``, ``possible``: whether three models can agree so: where two
        agreements are independent, the third is between ab and ab + (1 - a)(1 - b).
    """
    middle = fastest(pairs(ALPHAS, float(prices.middle[1]), prices), prices)
    small = fastest(pairs(ALPHAS, prices.draft, prices), prices)
    triple = fastest(triples(independent(ALPHAS[:, None], ALPHAS[None, :]), prices), prices)
    outer = float(np.interp(PUBLISHED["second"], small, ALPHAS))
    found = []
    for j, upper in enumerate(ALPHAS.tolist()):
        column = np.maximum.accumulate(triple[:, j])
        if middle[j] > PUBLISHED["second"] or not column[0] <= PUBLISHED["third"] <= column[-1]:
            continue
        lower = float(np.interp(PUBLISHED["third"], column, ALPHAS))
        both = lower * upper
        possible = both <= outer <= both + (1.0 - lower) * (1.0 - upper)
        found.append({"lower": lower, "upper": upper, "outer": outer, "possible": possible})
    return found


def phases(prices: BatchPrices, low: float, high: float) -> dict[str, Any]:
    """The most that choosing between one pair and one triple could make of the published speedups of both.

    Texts may go through phases of any laws of agreement (all parts of a place's chances in multiples of
    1 / STEPS) whose three alphas lie in a band, and the chooser knows each phase at once, for all rows: a
    linear program over shares of tokens, in which the pair takes 1/1.31 of plain decoding's time on average
    and the triple 1/1.20. Draft lengths are fixed, as in a candidate set of two. Over every pair and triple;
    where none can have both speedups, ``speedup`` is None.

    Returns:
        ``low``, ``high``, ``speedup``; ``phases[]`` = {share (of tokens), lower, upper, outer, pair, triple
        (speedups)}.
    """
    law = _laws(low, high)
    second, third = 1.0 / PUBLISHED["second"], 1.0 / PUBLISHED["third"]
    two = [1.0 / speed(c, prices) for c in pairs(law.outer, prices.draft, prices)]
    two += [1.0 / speed(c, prices) for c in pairs(law.upper, float(prices.middle[1]), prices)]
    three = [1.0 / speed(c, prices) for c in triples(law, prices)]
    best: tuple[float, Any] = (np.inf, None)
    for p, t in product(two, three):
        least = np.minimum(p, t)
        made = linprog(
            least, A_eq=np.stack([np.ones_like(p), p, t]), b_eq=[1.0, second, third], method="highs"
        )
        if made.fun is not None and made.fun < best[0]:
            best = (float(made.fun), (made.x, p, t))
    if best[1] is None:
        return {"low": low, "high": high, "speedup": None, "phases": []}
    share, p, t = best[1]
    return {
        "low": low,
        "high": high,
        "speedup": 1.0 / best[0],
        "phases": [
            {
                "share": float(share[i]),
                "lower": float(law.lower[i]),
                "upper": float(law.upper[i]),
                "outer": float(law.outer[i]),
                "pair": float(1.0 / p[i]),
                "triple": float(1.0 / t[i]),
            }
            for i in np.flatnonzero(share > 1e-9)
        ],
    }


def _laws(low: float, high: float) -> PlaceLaw[Floats]:
    cells = [c for c in product(range(STEPS + 1), repeat=4) if sum(c) <= STEPS]
    parts = np.array(cells, dtype=np.float64).T / STEPS
    law = PlaceLaw(*parts)
    inside = np.all([(low <= a) & (a <= high) for a in (law.lower, law.upper, law.outer)], axis=0)
    return PlaceLaw(*parts[:, inside])


def by_batch(device: str, batch: int, alphas: dict[str, float]) -> dict[str, float]:
    """Speedups where acceptance is everywhere alike and independent.

    No scheduler that does not see verdicts beforehand then does better in the long run than the best of its
    candidates, plain decoding among them: that is ``adaptive``, and so at once the bound. (Cycles' expected
    tokens less that rate times their seconds never sum to more than 0; nor if requests choose one by one, for
    a forward over some rows takes no less than their part of one over all.)

    Returns:
        ``small``, ``middle`` (the two pairs), ``second`` (the better), ``third``, ``adaptive``.
    """
    lower, upper, outer = (np.array(alphas[k]) for k in ("lower", "upper", "outer"))
    prices = prices_of(device, batch)
    small = float(fastest(pairs(outer, prices.draft, prices), prices))
    middle = float(fastest(pairs(upper, float(prices.middle[1]), prices), prices))
    third = float(fastest(triples(independent(lower, upper), prices), prices))
    return {
        "small": small,
        "middle": middle,
        "second": max(small, middle),
        "third": third,
        "adaptive": max(1.0, small, middle, third),
    }
