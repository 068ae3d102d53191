"""Rules replayed in batches whose rows are padded or packed, and what they did with unequal rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from simspec.compare.batches import batch_requests, draw_prompts, request_starts
from simspec.compare.length_runs import LengthSettings, replayed, tuned_static
from simspec.cost.models import CostModel
from simspec.cost.ragged import Layout, laid_out
from simspec.cost.shape import uniform
from simspec.replay.lockstep import price
from simspec.replay.planned import PlannedCycle, plan
from simspec.replay.pricing import draft_seconds, forward, two_level_seconds
from simspec.replay.trajectories import draft_limit, run
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import ExactMarginal, LengthRule
from simspec.speculation.planners_longrun import LongRun
from simspec.speculation.planners_told import Believes, BlocksAlone, DraftsBlocks, WholeBlocks
from simspec.speculation.planning import EachAlone, Planner
from simspec.speculation.rule_files import Rule, as_planner, published
from simspec.traces.index import Trace

Floats = NDArray[np.float64]

OURS, OURS_IN_BLOCKS, EXACT, TUNED = "ours", "ours in blocks of 7", "exact-marginal", "tuned-static"
# SGLang's planner, and the rule of one request that weighs the very same blocks.
JOINT_IN_BLOCKS, ALONE_IN_BLOCKS = "dspark-sglang", "exact-marginal in blocks of 7"
BLOCK = 7
ONE_LENGTH, BY_ROW = "one length", "row by row"
# What ours does by itself where rows are padded, or packed: a law. The other it does when told otherwise.
FITS: dict[Layout, str] = {"padded": ONE_LENGTH, "packed": BY_ROW}


def joint_arms(depth: int, layout: Layout) -> dict[str, Rule]:
    """Rules by name, for blocks of ``depth`` tokens."""
    rules, block = published(depth), min(BLOCK, depth)
    bases: dict[str, Planner] = {OURS: as_planner(rules["long-run"]), OURS_IN_BLOCKS: in_blocks(depth, block)}
    arms: dict[str, Rule] = {}
    for name, base in bases.items():
        for told, does in FITS.items():
            arms[f"{name}, {does}"] = base if told == layout else Believes(base, told)
    arms[ALONE_IN_BLOCKS] = DraftsBlocks(EachAlone(ExactMarginal(block)), block)
    shown = (JOINT_IN_BLOCKS, "dspark", "d-cut", EXACT, "libraspec")
    return arms | {name: rules[name] for name in shown}


def in_blocks(depth: int, block: int) -> Planner:
    """Ours where whole blocks are drafted and it only cuts."""
    ours = published(depth)["long-run"]
    assert isinstance(ours, LongRun)
    return DraftsBlocks(WholeBlocks(ours.objective, ours.calibration, ours.times), block)


@dataclass(frozen=True)
class Rows:
    """What batches did with their rows, over cycles of at least two running ones.

    Attributes:
        unequal: share of cycles in which a row submits less than the widest though it had drafted more;
            None without cycles.
        padding: share of a padded forward's new tokens that nobody submitted; None without cycles.
    """

    unequal: float | None
    padding: float | None


@dataclass(frozen=True)
class Played:
    """One arm: seconds a token of all prompts and of each draw, (draws + 1,); means over all prompts."""

    seconds_per_token: Floats
    drafted: float
    submitted: float
    rows: Rows | None = None


def rows_of(log: Sequence[PlannedCycle]) -> Rows:
    """From the cycles of one stream."""
    unequal, there, padded = [], 0, 0
    for cycle in log:
        runs = cycle.flat[0] >= 0
        if runs.sum() < 2:
            continue
        submitted, drafted = cycle.submitted[0][runs], cycle.drafted[0][runs]
        widest = submitted.max()
        unequal.append(bool((submitted < np.minimum(drafted, widest)).any()))
        there += int(submitted.sum()) + len(submitted)
        padded += len(submitted) * (int(widest) + 1)
    return Rows(float(np.mean(unequal)), 1.0 - there / padded) if unequal else Rows(None, None)


def play(
    trace: Trace, drafter: str, cost: CostModel, settings: LengthSettings, rule: Rule, layout: Layout
) -> Played:
    """Replay one rule, the target's forwards padded or packed."""
    held, laid = _held(trace, drafter), laid_out(cost, trace.target, layout)
    if settings.batch == 1:
        found = replayed(held, drafter, laid, settings, {"": rule})[""]
        return Played(found.seconds_per_token, float(found.drafted.mean()), float(found.submitted.mean()))
    return _streamed(held, drafter, laid, settings, as_planner(rule))


def play_tuned(
    trace: Trace, drafter: str, cost: CostModel, settings: LengthSettings, layout: Layout
) -> Played:
    """One length for all rows, that of the other half of the prompts."""
    held, laid = _held(trace, drafter), laid_out(cost, trace.target, layout)
    fixed, _ = tuned_static(held, drafter, laid, settings)
    found = replayed(held, drafter, laid, settings, {TUNED: fixed})[TUNED]
    return Played(found.seconds_per_token, float(found.drafted.mean()), float(found.submitted.mean()))


def play_exact(
    trace: Trace, drafter: str, cost: CostModel, settings: LengthSettings, block: int | None
) -> Played:
    """The exact marginal rule that stops drafting (``block`` None), or that cuts whole blocks."""
    held = _held(trace, drafter)
    longest = trace.manifest.block_length if block is None else block
    rule: LengthRule = ExactMarginal(min(ExactMarginal().longest, longest))
    if settings.batch > 1:
        alone: Planner = EachAlone(rule)
        return _streamed(
            held, drafter, cost, settings, alone if block is None else DraftsBlocks(alone, block)
        )
    chain, draws = Chain((drafter, trace.target)), draw_prompts(trace, settings.draws, settings.seed)
    seconds = two_level_seconds(held, chain, cost, 1)
    if block is not None:
        seconds = whole_block_seconds(held, chain, cost, block)
        rule = cast("LengthRule", BlocksAlone(rule, block))
    runs = run(held, chain, rule, trace.offsets[:-1], seconds)
    each = np.arange(len(trace.prompts))[:, None]
    times = price(runs, each, [cost], lookup=trace.is_lookup(drafter))[0]
    counts, active = draws.counts(), runs.active
    return Played(
        (counts @ times.seconds) / (counts @ times.tokens),
        float(runs.drafted[active].mean()),
        float(runs.submitted[active].mean()),
    )


def whole_block_seconds(trace: Trace, chain: Chain, cost: CostModel, block: int) -> Floats:
    """Seconds of a cycle of one request that drafts a whole block and submits n of it, (N, D + 1)."""
    assert chain.drafter is not None
    context = trace.context[:, None]
    drafted = np.minimum(draft_limit(trace, chain.drafter, np.arange(len(trace.tokens))), block)[:, None]
    draft = draft_seconds(trace, cost, chain.drafter, 1, drafted, np.ones_like(context), context)
    width = np.arange(trace.manifest.block_length + 1)[None] + 1
    return draft + forward(cost, trace.target, 1, width, context) + cost.step_overhead_seconds


def shape_of(trace: Trace, cost: CostModel, drafter: str, batch: int) -> dict[str, Any]:
    """How costs rise here: ``slope``, what one more token in every row adds to the target's forward (% of
    that of one token, mean over the first 8), and ``draft``, one forward of the drafter (% likewise)."""
    rows, width, context = np.array([batch]), np.array([1, 9]), np.array([int(np.median(trace.context))])
    one, nine = cost.forward_seconds(trace.target, uniform(rows, width, context)) + np.zeros(2)
    draft = cost.forward_seconds(drafter, uniform(rows, width[:1], context))
    return {"slope": float(100 * (nine / one - 1) / 8), "draft": float(100 * draft.ravel()[0] / one)}


def _held(trace: Trace, drafter: str) -> Trace:
    return replace(trace, drafters={drafter: trace.drafters[drafter]})


def _streamed(
    trace: Trace, drafter: str, cost: CostModel, settings: LengthSettings, planner: Planner
) -> Played:
    draws = draw_prompts(trace, settings.draws, settings.seed)
    requests, _ = batch_requests(draws, settings.batch)
    queues = request_starts(trace)[requests].reshape(len(draws.prompts), -1, settings.batch)
    found = plan(trace, Chain((drafter, trace.target)), cost, planner, queues, keep=1)
    cycles = float(found.decisions[0])
    return Played(
        found.seconds / found.tokens,
        float(found.drafted[0]) / cycles,
        float(found.submitted[0]) / cycles,
        rows_of(found.log) if settings.batch > 1 else None,
    )
