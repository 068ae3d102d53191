"""Single rounds where acting on q is slower than acting on p-hat, in numbers that can be worked out by hand.

All that LibraSpec's theory (arXiv 2608.08721) asks for holds, but that q is p: a cycle of d tokens costs
T(d) = T0 + c d with T0 > 0 and c > 0, and gains S_1 + .. + S_d tokens and the bonus, S_j = p_1 .. p_j. T0 and
c are a straight line through the cost of cycles that draft and submit 1 .. D tokens, in whole microseconds;
q and p-hat have four decimals. Lengths and speeds of what is listed are worked out on fractions.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simspec.compare.batches import draw_prompts
from simspec.compare.libraspec.wrong_confidences import ROUNDING, decided, mean, rules_of
from simspec.compare.recalibrated import chances, isotonic_by_place, with_confidence
from simspec.cost.models import CostModel
from simspec.replay.pricing import two_level_seconds
from simspec.replay.trajectories import draft_limit
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import ExactMarginal, LengthRule, LibraSpec, expected_tokens
from simspec.speculation.lengths_libraspec import TheoremLibraSpec
from simspec.theory.lengths import expected_tokens as exact_tokens
from simspec.theory.lengths import first_stop, speedups
from simspec.theory.libraspec import algorithm_one, theorem_limit
from simspec.traces.index import Trace

Floats = NDArray[np.float64]

DECIMALS = 4
# Rounds whose lengths are both at least 1 and at most this are listed before others.
BY_HAND = 8


@dataclass(frozen=True)
class Affine:
    """T(d) = fixed + per_place d, microseconds, and how far the cost is from that at most, relative."""

    fixed: int
    per_place: int
    worst: float

    def seconds(self, depth: int) -> Floats:
        """T(0) .. T(depth)."""
        return 1e-6 * (self.fixed + self.per_place * np.arange(depth + 1.0))

    def exact(self, depth: int) -> list[Fraction]:
        return [Fraction(self.fixed + self.per_place * d, 10**6) for d in range(depth + 1)]


def affine(trace: Trace, drafter: str, cost: CostModel) -> Affine:
    """The line through the mean over all positions of a cycle's cost at batch 1; T(0) is the line's."""
    mean = 1e6 * two_level_seconds(trace, Chain((drafter, trace.target)), cost, 1).mean(axis=0)[1:]
    n = np.arange(1.0, len(mean) + 1.0)
    slope, start = np.polyfit(n, mean, 1) if len(n) > 1 else (0.0, float(mean[0]))
    line = Affine(round(float(start)), round(float(slope)), 0.0)
    worst = np.abs((line.fixed + line.per_place * n) / mean - 1.0).max()
    return Affine(line.fixed, line.per_place, float(worst))


def exact_length(rule: LengthRule, q: list[Fraction], cost: list[Fraction]) -> tuple[int, int]:
    """What a rule submits, in rationals, and how many of the confidences it has looked at by then."""
    if isinstance(rule, LibraSpec):
        run = algorithm_one(q, Fraction(str(rule.alpha)), rule.block, rule.longest)
        return run.submitted, max(run.lengths)
    if isinstance(rule, TheoremLibraSpec):
        alpha, d, drafted = Fraction(str(rule.alpha)), min(rule.block, rule.longest), rule.block
        while d < rule.longest:
            e = min(theorem_limit(q[:drafted], alpha, i) for i in range(1, d + 1))
            further, d = e > d, min(e, rule.longest)
            drafted = max(drafted, -(-d // rule.block) * rule.block)
            if not further:
                break
        return d, drafted
    if isinstance(rule, ExactMarginal):
        reach = min(rule.longest, len(q))
        d = first_stop(speedups(q[:reach], cost[: reach + 1]))
        return d, min(d + 1, reach)
    raise TypeError(f"no rational form of {rule} is known")


def slower_rounds(trace: Trace, drafter: str, cost: CostModel, draws: int, seed: int) -> dict[str, Any]:
    """One drafter under one cost.

    Returns:
        ``fixed_us``, ``per_place_us`` and ``worst_error`` (%, of the line), ``rules.<name>`` = {``slower``,
        ``faster`` (% of rounds whose length by q has fewer or more expected tokens a second under p-hat than
        the length by p-hat), ``loss`` (mean % of those of p-hat forgone), each [value, low, high]} over every
        position where a token can be drafted, and ``examples[]`` = {rule, parameters, prompt, position, q[],
        p[], length_q, length_p, speed_q, speed_p (tokens a second under p-hat), lost (%)}: of each rule the
        round that loses most, of those of 1 to BY_HAND tokens if there are any. No rules and no examples
        where the line is not rising from above 0.
    """
    line, depth = affine(trace, drafter, cost), trace.manifest.block_length
    told: dict[str, Any] = {
        "fixed_us": line.fixed,
        "per_place_us": line.per_place,
        "worst_error": 100.0 * line.worst,
        "rules": {},
        "examples": [],
    }
    if line.fixed <= 0 or line.per_place <= 0:
        return told
    counts = draw_prompts(trace, draws, seed).counts()
    limit = draft_limit(trace, drafter, np.arange(len(trace.tokens)))
    able = limit > 0
    recorded = trace.drafters[drafter].confidence.astype(np.float64)
    q: Floats = np.asarray(np.round(recorded, DECIMALS), dtype=np.float64)
    p: Floats = np.asarray(np.round(chances(trace, drafter, isotonic_by_place), DECIMALS), dtype=np.float64)
    times = line.seconds(depth)
    tokens = expected_tokens(p)
    for name, rule in rules_of(trace).items():
        lengths = [
            decided(
                with_confidence(trace, drafter, x), drafter, rule, np.broadcast_to(times, tokens.shape)
            ).submitted
            for x in (q, p)
        ]
        by_q, by_p = (np.take_along_axis(tokens / times, d[:, None], axis=1)[:, 0] for d in lengths)
        lost = 1.0 - by_q / by_p
        figures: dict[str, NDArray[Any]] = {
            "slower": lost > ROUNDING,
            "faster": lost < -ROUNDING,
            "loss": lost,
        }
        told["rules"][name] = {n: mean(trace, able, 100.0 * v, counts) for n, v in figures.items()}
        losing = np.flatnonzero((lost > ROUNDING) & (np.maximum(*lengths) < limit))
        near = (np.minimum(*lengths)[losing] >= 1) & (np.maximum(*lengths)[losing] <= BY_HAND)
        for at in losing[np.lexsort((losing, -lost[losing], ~near))]:
            example = worked(rule, q[at, : limit[at]], p[at, : limit[at]], line)
            if example and [example["length_q"], example["length_p"]] == [int(d[at]) for d in lengths]:
                place = {"prompt": int(trace.prompt[at]), "position": int(trace.position[at])}
                told["examples"].append({"rule": name, **place, **example})
                break
    return told


def worked(rule: LengthRule, q: Floats, p: Floats, line: Affine) -> dict[str, Any] | None:
    """On fractions; None where acting on q is not slower, or more is needed than the block holds."""
    told, true = ([Fraction(f"{x:.{DECIMALS}f}") for x in each] for each in (q, p))
    cost = line.exact(len(q))
    (by_q, seen_q), (by_p, seen_p) = (exact_length(rule, each, cost) for each in (told, true))
    seen = max(seen_q, seen_p)
    if max(seen, by_q, by_p) > len(q):
        return None
    speed = [n / t for n, t in zip(exact_tokens(true), cost, strict=True)]
    if speed[by_q] >= speed[by_p]:
        return None
    return {
        "parameters": {n: getattr(rule, n) for n in ("alpha", "block", "longest") if hasattr(rule, n)},
        "q": [float(x) for x in told[:seen]],
        "p": [float(x) for x in true[:seen]],
        "length_q": by_q,
        "length_p": by_p,
        "speed_q": float(speed[by_q]),
        "speed_p": float(speed[by_p]),
        "lost": float(100 * (1 - speed[by_q] / speed[by_p])),
    }
