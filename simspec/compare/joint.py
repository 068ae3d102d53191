"""What every level of a chain really reads in a cycle, counted from recorded blocks: exact on the trace.

A block survives all levels or it does not, and the record knows: counting that jointly keeps what one rate
for each pair of models loses, correlation between levels and along the block. Time needs no more than the
law of each level's width, since levels add up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simspec.replay.trajectories import (
    Trajectories,
    draft_limit,
    first_width,
    forwards,
    later_width,
    outcome,
)
from simspec.speculation.chains import Chain
from simspec.traces.index import Ints, Trace

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Level:
    """How wide one model's forwards are: one forward a cycle, or S that come one after another.

    Attributes:
        widths: rising, at least 1, shape (W,).
        counts: cycles of each prompt that have such a forward of such a width, (P, W, S); in the others the
            model is idle.
    """

    model: str
    widths: Ints
    counts: Floats


@dataclass(frozen=True)
class Counted:
    """Cycles of one chain and draft length by prompt.

    Attributes:
        cycles, tokens: cycles and emitted tokens of each prompt, shape (P,).
    """

    cycles: Floats
    tokens: Floats
    levels: tuple[Level, ...]


def visited(trace: Trace, runs: Trajectories) -> Counted:
    """The cycles that replay passes through, each text from its beginning: ``runs``' first P.

    Tokens a cycle are replay's own, and widths have in them what a level that lagged had to catch up on.
    """
    size = len(trace.prompts)
    on = runs.active[:size]
    prompt = np.nonzero(on)[0]

    def column(values: NDArray[np.int16]) -> Ints:
        return values[:size][on].astype(np.int64)

    lag, drafted = column(runs.lag), column(runs.drafted)
    middle = [column(m) for m in runs.middle]
    return _counted(trace, runs.chain, prompt, lag, drafted, middle, column(runs.width), column(runs.emitted))


def anywhere(trace: Trace, chain: Chain, length: int) -> Counted:
    """A cycle from every recorded position, all alike, whether a schedule would begin one there or not.

    Several times as many cycles as :func:`visited`, at the price that cycles really begin where a draft has
    just failed. No level lags.
    """
    at = np.arange(len(trace.tokens))
    drafted = np.zeros_like(at)
    if chain.drafter is not None:
        drafted = np.minimum(length, draft_limit(trace, chain.drafter, at))
    found = outcome(trace, chain, at, drafted)
    idle = chain.semantics == "funnel-truncate"
    middle = [np.where((given == 0) & idle, 0, given + 1) for given in found.offered[:-1]]
    lag = (drafted > 0).astype(np.int64)
    return _counted(trace, chain, trace.prompt, lag, drafted, middle, found.offered[-1] + 1, found.emitted)


def _counted(
    trace: Trace,
    chain: Chain,
    prompt: Ints,
    lag: Ints,
    drafted: Ints,
    middle: list[Ints],
    width: Ints,
    emitted: Ints,
) -> Counted:
    """From cycles, arrays of one length; names as in :class:`Trajectories`."""
    size = len(trace.prompts)
    levels = []
    if chain.drafter is not None:
        if trace.is_lookup(chain.drafter):
            levels.append(_level(chain.drafter, np.maximum(drafted, 1), prompt, size))
        else:
            at_once = trace.tokens_a_forward(chain.drafter)
            first = np.where(lag > 0, first_width(lag, at_once), 0)
            levels.append(_level(chain.drafter, first, prompt, size))
            ran = forwards(drafted, at_once)
            steps = np.arange(2, int(ran.max(initial=0)) + 1)
            if len(steps):
                counts = np.zeros((size, len(steps)))
                np.add.at(counts, prompt, ran[:, None] >= steps)
                levels.append(Level(chain.drafter, np.array([later_width(at_once)]), counts[:, None]))
    levels += [_level(m, w, prompt, size) for m, w in zip(chain.intermediates, middle, strict=True)]
    levels.append(_level(chain.target, width, prompt, size))
    return Counted(
        cycles=np.bincount(prompt, minlength=size).astype(np.float64),
        tokens=np.bincount(prompt, weights=emitted, minlength=size).astype(np.float64),
        levels=tuple(levels),
    )


def _level(model: str, width: Ints, prompt: Ints, size: int) -> Level:
    some = width > 0
    widths, which = np.unique(width[some], return_inverse=True)
    counts = np.zeros((size, len(widths)))
    np.add.at(counts, (prompt[some], which), 1.0)
    return Level(model, widths.astype(np.int64), counts[:, :, None])
