"""Rules that choose draft lengths, replayed at one batch size on all prompts and on draws of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simspec.compare.batches import batch_requests, draw_prompts, request_starts
from simspec.cost.models import CostModel
from simspec.errors import BadInput
from simspec.replay.lockstep import price
from simspec.replay.planned import plan
from simspec.replay.pricing import two_level_seconds
from simspec.replay.trajectories import Trajectories, run
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import LengthRule, Prescribed, Static
from simspec.speculation.planning import Planner
from simspec.speculation.rule_files import ALONE, WEIGH_COST, Rule, as_planner
from simspec.traces.index import Ints, Trace

Floats = NDArray[np.float64]

STATIC_LENGTHS = (0, 1, 2, 3, 4, 5, 6, 8, 12, 16)


@dataclass(frozen=True)
class LengthSettings:
    """Batch size, bootstrap draws of prompts, seed."""

    batch: int = 1
    draws: int = 100
    seed: int = 0


@dataclass(frozen=True)
class Replayed:
    """What came of a rule.

    Attributes:
        seconds_per_token: for all prompts and for each draw, (draws + 1,).
        flat: where the cycles of all prompts' requests began, (cycles,), those that fill a batch up too.
        drafted, submitted: tokens of these cycles, (cycles,).
    """

    seconds_per_token: Floats
    flat: Ints
    drafted: Ints
    submitted: Ints


def replayed(
    trace: Trace,
    drafter: str,
    cost: CostModel,
    settings: LengthSettings,
    rules: Mapping[str, Rule | Prescribed],
) -> dict[str, Replayed]:
    """Replay rules with one drafter.

    A rule of a request goes the fast way, each request once for all draws, where that is exact: at batch 1,
    or where it does not weigh costs. The others see the whole stream of a draw, its batches one after
    another, with the prices of the rows that run: a rule that learns begins each draw knowing nothing.
    """
    chain, draws = Chain((drafter, trace.target)), draw_prompts(trace, settings.draws, settings.seed)
    requests, owner = batch_requests(draws, settings.batch)
    starts, lookup = request_starts(trace), trace.is_lookup(drafter)
    seconds = two_level_seconds(trace, chain, cost, settings.batch)

    def alone(rule: LengthRule | Prescribed) -> Replayed:
        runs = run(trace, chain, rule, starts, seconds)
        if settings.batch == 1:
            times = price(runs, np.arange(len(trace.prompts))[:, None], [cost], lookup=lookup)[0]
            counts = draws.counts()
            per_token = (counts @ times.seconds) / (counts @ times.tokens)
        else:
            times = price(runs, requests, [cost], lookup=lookup)[0]
            per_token = np.bincount(owner, weights=times.seconds) / np.bincount(owner, weights=times.tokens)
        first = requests[owner == 0].ravel()
        active = runs.active[first]
        cycles = (
            values[first][active].astype(np.int64) for values in (runs.flat, runs.drafted, runs.submitted)
        )
        return Replayed(per_token, *cycles)

    def together(planner: Planner) -> Replayed:
        queues = starts[requests].reshape(len(draws.prompts), -1, settings.batch)
        found = plan(trace, chain, cost, planner, queues, keep=1)
        shown = [(c.flat[0], c.drafted[0], c.submitted[0]) for c in found.log]
        flat, drafted, submitted = (np.concatenate(values) for values in zip(*shown, strict=True))
        ran = flat >= 0
        return Replayed(found.seconds / found.tokens, flat[ran], drafted[ran], submitted[ran])

    return {
        name: alone(rule)  # type: ignore[arg-type] # one of ALONE is no planner
        if isinstance(rule, Prescribed)
        or (
            isinstance(rule, tuple(ALONE.values()))
            and (settings.batch == 1 or not isinstance(rule, WEIGH_COST))
        )
        else together(as_planner(rule))
        for name, rule in rules.items()
    }


def static_lengths(trace: Trace) -> list[int]:
    """Static lengths that fit the record's blocks."""
    return [n for n in STATIC_LENGTHS if n <= trace.manifest.block_length]


def _static_runs(trace: Trace, drafter: str) -> dict[int, Trajectories]:
    chain = Chain((drafter, trace.target))
    return {n: run(trace, chain, Static(n), request_starts(trace)) for n in static_lengths(trace)}


def _static_time(
    trace: Trace, runs: Trajectories, cost: CostModel, batch: int, seed: int, among: Ints | None = None
) -> float:
    """Seconds a token of prompts (``among`` them) in their shuffled order."""
    requests, _ = batch_requests(draw_prompts(trace, 0, seed, among), batch)
    drafter = runs.chain.drafter
    assert drafter is not None
    times = price(runs, requests, [cost], lookup=trace.is_lookup(drafter))[0]
    return float(times.seconds.sum() / times.tokens.sum())


def tuned_static(
    trace: Trace, drafter: str, cost: CostModel, settings: LengthSettings
) -> tuple[Prescribed, tuple[int, int]]:
    """The static length of each half of the prompts (even and odd) that is fastest on the other half.

    The halves' lengths too. Batches mix prompts of both, each drafting its own half's length.
    """
    number = np.arange(len(trace.prompts))
    runs = _static_runs(trace, drafter)

    def fastest_without(half: int) -> int:
        others = number[number % 2 != half]
        among = others if len(others) else number  # a single prompt has no other half
        return min(
            runs, key=lambda n: _static_time(trace, runs[n], cost, settings.batch, settings.seed, among)
        )

    even, odd = fastest_without(0), fastest_without(1)
    return Prescribed(np.where(trace.prompt % 2 == 0, even, odd).astype(np.int64)), (even, odd)


def best_drafters(
    trace: Trace, cost: CostModel, batches: Sequence[int], seed: int, among: Sequence[str] | None = None
) -> dict[int, str]:
    """By batch size the priced drafter (of ``among``) whose best static length, at least 1, is fastest."""
    able = [d for d in (among or trace.drafters) if d in cost.models]
    if not able:
        raise BadInput(f"cost {cost.name!r} prices no drafter", allowed=", ".join(trace.drafters))
    least: dict[int, dict[str, float]] = {batch: {} for batch in batches}
    for drafter in able:
        runs = _static_runs(trace, drafter)
        for batch, found in least.items():
            found[drafter] = min(_static_time(trace, runs[n], cost, batch, seed) for n in runs if n >= 1)
    return {batch: min(found, key=found.__getitem__) for batch, found in least.items()}
