"""What a batch gains by choosing draft lengths together, and what stopping the drafting gains."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from simspec.compare.asked import Asked, Progress
from simspec.compare.length_runs import LengthSettings, best_drafters
from simspec.compare.libraspec.batch_arms import (
    ALONE_IN_BLOCKS,
    BY_ROW,
    EXACT,
    FITS,
    JOINT_IN_BLOCKS,
    ONE_LENGTH,
    OURS,
    OURS_IN_BLOCKS,
    TUNED,
    Played,
    in_blocks,
    joint_arms,
    play,
    play_exact,
    play_tuned,
    shape_of,
)
from simspec.compare.libraspec.shares import over_draws
from simspec.cost.models import CostModel
from simspec.cost.ragged import prices
from simspec.metrics import percent_over
from simspec.speculation.planners_as_drafted import LongRunAsDrafted
from simspec.speculation.planners_longrun import LongRun
from simspec.speculation.rule_files import Rule, published
from simspec.traces.index import Trace

JOINT, STOPPING = (4, 16, 64), (1, 4, 16)
# Whole blocks that are drafted and only cut; the last is LibraSpec's d_max.
BLOCKS = (2, 4, 8, 24)
# Draws at most: rules that learn are replayed for each.
DRAWS = 40
UNCUT = "uncut"

Key = tuple[Any, ...]
Jobs = dict[Key, tuple[Callable[..., Played], tuple[Any, ...]]]


def study(trace: Trace, costs: list[CostModel], asked: Asked, say: Progress) -> dict[str, Any]:
    """Rules in batches whose target forwards are padded or packed; rules that stop drafting or only cut.

    Returns:
        ``prompts``, ``draws`` (numbers), ``fits.<layout>`` (what ours does by itself there),
        ``names`` = {ours, blocks (ours in blocks), one_length, by_row, alone, joint (the same blocks weighed
        alone or together), exact, tuned},
        ``costs.<name>`` = {``label``, ``prices`` (padded or packed: how the cost itself takes unequal rows),
        ``joint[]``, one a drafter and batch size from 2 = {``batch``, ``drafter``, ``lookup``, ``slope`` and
        ``draft`` (%, of :func:`~simspec.compare.libraspec.batch_arms.shape_of`),
        ``layouts.<layout>`` = {``arms.<name>`` = {``seconds_per_token``, ``over_ours`` (% more time than ours
        under the same layout) with ``_interval``, ``drafted``, ``submitted`` (a request's cycle), ``unequal``
        and ``padding`` (shares, as :class:`~simspec.compare.libraspec.batch_arms.Rows`)}, and in % more time,
        each with ``_interval``: ``one_length`` (ours with one length over ours row by row),
        ``one_length_in_blocks`` (the same in blocks; None for look-ups, which draft so anyhow),
        ``alone_in_blocks`` (alone over joint)}, ``packing`` (ours padded over ours packed, % more time) with
        ``_interval``},
        ``stopping[]``, one a drafter and batch size = {``batch``, ``drafter``, ``lookup``, ``slope``,
        ``draft``, ``rules.<ours or exact>`` = {``stop`` = {seconds_per_token, drafted, submitted},
        ``blocks.<D>`` = {the same, ``over_stop`` (% more time) with ``_interval``}: D tokens are drafted
        whatever comes of them; ``best`` (the D of least time on these very prompts); ``uncut`` likewise: all
        that is drafted is submitted, None where that was not tried}}}. Ours is tried with the other rule's
        best D and the longest.
    """
    settings = LengthSettings(draws=min(asked.draws, DRAWS), seed=asked.seed)
    found = {cost.name: _of_cost(trace, cost, settings, asked, say) for cost in costs}
    names = {
        "ours": OURS,
        "blocks": OURS_IN_BLOCKS,
        "one_length": ONE_LENGTH,
        "by_row": BY_ROW,
        "alone": ALONE_IN_BLOCKS,
        "joint": JOINT_IN_BLOCKS,
        "exact": EXACT,
        "tuned": TUNED,
    }
    return {
        "prompts": len(trace.prompts),
        "draws": settings.draws,
        "fits": dict(FITS),
        "names": names,
        "costs": found,
    }


def _of_cost(
    trace: Trace, cost: CostModel, settings: LengthSettings, asked: Asked, say: Progress
) -> dict[str, Any]:
    several = [b for b in asked.batches if b > 1]
    joint = [b for b in several if b in JOINT] or several
    stopping = [b for b in asked.batches if b in STOPPING] or list(asked.batches)
    every = sorted({*joint, *stopping})
    best = best_drafters(trace, cost, every, settings.seed)
    able = [d for d in trace.drafters if d in cost.models]
    reading = [d for d in able if not trace.is_lookup(d)]
    reader = best_drafters(trace, cost, every, settings.seed, reading) if reading else best
    native, depth = prices(cost, trace.target), trace.manifest.block_length
    blocks = [n for n in BLOCKS if n <= depth] or [depth]
    work: Jobs = {}
    for batch in joint:
        here = replace(settings, batch=batch)
        # A look-up is sure of all it finds; beside it the best drafter whose confidences say something.
        for drafter in dict.fromkeys([best[batch], reader[batch]]):
            for layout in FITS:
                given = (trace, drafter, cost, here)
                work["joint", batch, drafter, layout, TUNED] = play_tuned, (*given, layout)
                for name, rule in joint_arms(depth, layout).items():
                    # What a look-up finds is there at once: it drafts in blocks anyhow.
                    if not (trace.is_lookup(drafter) and name.startswith(OURS_IN_BLOCKS)):
                        work["joint", batch, drafter, layout, name] = play, (*given, rule, layout)
    for batch in stopping:
        for drafter in able:
            for block in (None, *blocks):
                given = (trace, drafter, cost, replace(settings, batch=batch))
                work[EXACT, batch, drafter, block] = play_exact, (*given, block)
    say(f"{cost.name}: {len(work)} replays, best drafters {best}")
    done = _played(work, asked.jobs)
    ours = published(depth)["long-run"]
    assert isinstance(ours, LongRun)
    as_drafted = LongRunAsDrafted(ours.objective, ours.calibration, ours.times)
    more: Jobs = {}
    for batch in stopping:
        # At batch 1 ours takes long: with one drafter.
        for drafter in able if batch > 1 else [reader[batch]]:
            fastest = _fastest({n: done[EXACT, batch, drafter, n] for n in blocks})
            ways: dict[Any, Rule] = {n: in_blocks(depth, n) for n in (fastest, blocks[-1])}
            if drafter == reader[batch]:
                ways[UNCUT] = as_drafted
            stops = done.get(("joint", batch, drafter, native, f"{OURS}, {FITS[native]}"))
            if stops:
                done[OURS, batch, drafter, None] = stops
            else:
                ways[None] = ours
            for name, planner in ways.items():
                given = (trace, drafter, cost, replace(settings, batch=batch))
                more[OURS, batch, drafter, name] = play, (*given, planner, native)
    say(f"{cost.name}: {len(more)} replays of ours that stops or only cuts")
    done |= _played(more, asked.jobs)

    def about(batch: int, drafter: str) -> dict[str, Any]:
        named = {"batch": batch, "drafter": drafter, "lookup": trace.is_lookup(drafter)}
        return named | shape_of(trace, cost, drafter, batch)

    pairs = dict.fromkeys(key[1:3] for key in work if key[0] == "joint")
    return {
        "label": cost.label,
        "prices": native,
        "joint": [
            about(*pair) | _joint({key[3:]: p for key, p in done.items() if key[:3] == ("joint", *pair)})
            for pair in pairs
        ],
        "stopping": [
            about(b, d)
            | {"rules": {rule: told for rule in (OURS, EXACT) if (told := _stopping(done, rule, b, d))}}
            for b in stopping
            for d in able
        ],
    }


def _played(work: Jobs, jobs: int) -> dict[Key, Played]:
    # The longest first: fewer rows mean more cycles one after another.
    keys = sorted(work, key=lambda key: int(key[1]))
    found = Parallel(n_jobs=jobs, batch_size=1)(delayed(work[key][0])(*work[key][1]) for key in keys)
    return dict(zip(keys, found, strict=True))


def _fastest(played: Mapping[int, Played]) -> int:
    return min(played, key=lambda n: float(played[n].seconds_per_token[0]))


def _joint(played: Mapping[Key, Played]) -> dict[str, Any]:
    """From what was played by (layout, arm)."""
    ours = {layout: played[layout, f"{OURS}, {does}"] for layout, does in FITS.items()}
    layouts = {}
    for layout in FITS:
        arms = {key[1]: one for key, one in played.items() if key[0] == layout}
        layouts[layout] = {
            "arms": {
                name: _told(one)
                | _over("over_ours", one, ours[layout])
                | {
                    "unequal": one.rows.unequal if one.rows else None,
                    "padding": one.rows.padding if one.rows else None,
                }
                for name, one in arms.items()
            },
            **_over("one_length", arms[f"{OURS}, {ONE_LENGTH}"], arms[f"{OURS}, {BY_ROW}"]),
            **_over(
                "one_length_in_blocks",
                arms.get(f"{OURS_IN_BLOCKS}, {ONE_LENGTH}"),
                arms.get(f"{OURS_IN_BLOCKS}, {BY_ROW}"),
            ),
            **_over("alone_in_blocks", arms[ALONE_IN_BLOCKS], arms[JOINT_IN_BLOCKS]),
        }
    return {"layouts": layouts, **_over("packing", ours["padded"], ours["packed"])}


def _stopping(done: Mapping[Key, Played], rule: str, batch: int, drafter: str) -> dict[str, Any] | None:
    mine = {key[3]: one for key, one in done.items() if key[:3] == (rule, batch, drafter)}
    if not mine:
        return None
    stop, uncut = mine.pop(None), mine.pop(UNCUT, None)
    return {
        "stop": _told(stop),
        "uncut": _told(uncut) | _over("over_stop", uncut, stop) if uncut else None,
        "blocks": {str(n): _told(one) | _over("over_stop", one, stop) for n, one in mine.items()},
        "best": _fastest(mine),
    }


def _told(one: Played) -> dict[str, Any]:
    return {
        "seconds_per_token": float(one.seconds_per_token[0]),
        "drafted": one.drafted,
        "submitted": one.submitted,
    }


def _over(name: str, one: Played | None, other: Played | None) -> dict[str, Any]:
    if one is None or other is None:
        return {name: None, f"{name}_interval": [None, None]}
    return over_draws(name, np.asarray(percent_over(one.seconds_per_token, other.seconds_per_token)))
