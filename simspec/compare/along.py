"""One length rule, cycle by cycle, along texts at batch 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from simspec.cost.models import CostModel
from simspec.oracle.lengths import myopic_hindsight
from simspec.replay.lockstep import price
from simspec.replay.planned import plan
from simspec.replay.pricing import two_level_seconds
from simspec.replay.trajectories import run
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import LengthRule
from simspec.speculation.planning import Planner
from simspec.speculation.rule_files import ALONE, Rule, published
from simspec.traces.index import Ints, Trace


@dataclass(frozen=True)
class Followed:
    """The cycles of some prompts, one prompt after another.

    Attributes:
        flat: position that each cycle began at, (C,).
        submitted, accepted: tokens, (C,).
        seconds: of each of the trace's prompts, 0 for those that were not decoded, (P,).
    """

    flat: Ints
    submitted: Ints
    accepted: Ints
    seconds: NDArray[np.float64]


def follow(
    trace: Trace, drafter: str, cost: CostModel, rule: Rule, prompts: Sequence[int], *, afresh: bool = False
) -> Followed:
    """Decode distinct ``prompts`` alone, in their order.

    Args:
        afresh: whether a rule whose memory lasts begins each prompt knowing nothing.
    """
    chain, chosen = Chain((drafter, trace.target)), np.asarray(prompts, dtype=np.int64)
    starts = trace.offsets[chosen]
    seconds = np.zeros(len(trace.prompts))
    if isinstance(rule, tuple(ALONE.values())):
        runs = run(trace, chain, cast("LengthRule", rule), starts, two_level_seconds(trace, chain, cost, 1))
        alone = np.arange(len(chosen))[:, None]
        seconds[chosen] = price(runs, alone, [cost], lookup=trace.is_lookup(drafter))[0].seconds
        on = runs.active
        flat, submitted, accepted = (
            values[on].astype(np.int64) for values in (runs.flat, runs.submitted, runs.accepted)
        )
        return Followed(flat, submitted, accepted, seconds)
    queues = starts[:, None, None] if afresh else starts[None, :, None]
    log = plan(trace, chain, cost, cast("Planner", rule), queues, keep=len(queues)).log
    flat, submitted, accepted = (
        np.concatenate([getattr(cycle, name)[:, 0] for cycle in log])
        for name in ("flat", "submitted", "accepted")
    )
    took = np.concatenate([cycle.seconds for cycle in log])
    seconds += np.bincount(trace.prompt[flat], weights=took, minlength=len(seconds))
    # Streams run side by side: back to one prompt after another.
    turn = np.empty(len(trace.prompts), dtype=np.int64)
    turn[chosen] = np.arange(len(chosen))
    order = np.lexsort((flat, turn[trace.prompt[flat]]))
    return Followed(flat[order], submitted[order], accepted[order], seconds)


@dataclass(frozen=True)
class LengthsAlongText:
    """Chosen against oracle length, cycle by cycle, along one prompt's text.

    ``position``, ``chosen`` and ``hindsight`` (what the oracle would have submitted at the same
    place) have one entry a cycle of the rule.
    """

    prompt: int
    rule: str
    position: Ints
    chosen: Ints
    hindsight: Ints
    accepted: Ints


def lengths_along_text(
    trace: Trace, drafter: str, cost: CostModel, prompt: int, rule_name: str
) -> LengthsAlongText:
    """Follow one published rule along one text at batch 1, knowing nothing before it."""
    rule = published(trace.manifest.block_length)[rule_name]
    found = follow(trace, drafter, cost, rule, [prompt])
    wanted = myopic_hindsight(trace, Chain((drafter, trace.target)), cost, 1).lengths
    return LengthsAlongText(
        prompt=prompt,
        rule=rule_name,
        position=trace.position[found.flat],
        chosen=found.submitted,
        hindsight=wanted[found.flat],
        accepted=found.accepted,
    )
